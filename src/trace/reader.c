/* reader.c - lines into events, two ways. A line as our writer writes it (no spaces, no key that is not known, nor one twice) is
 * walked once beside the table of its kind: no document is built, 1 GB/s and more on steps. Any other JSON of the same sense, and
 * every line that is wrong in some way, goes through the parser: it is 10 times slower and says what is wrong.
 * A number that makes no sense (a duration below zero, of 1e300, no number at all) makes its line a bad one: it is counted and
 * its place is kept, and no sum ever sees it. */
#include "trace/reader.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "trace/stream.h"

#define LIST_MOST 1024        /* numbers in a list: more threads than any machine of ours has */
#define TIME_MOST ((i64)1e17) /* ns: three years */
#define JSON_MOST 4           /* fields of type json in one record */

struct qn_reader {
    qn_stream *stream;
    char *path;
    qn_reader_state state;
    bool follow, ended;
    qn_ev_kind last_kind;     /* of the line before: mostly the same again */
    yyjson_doc *doc;          /* holds the texts of the record that was handed out */
    char *json[JSON_MOST];
    int n_json;
    qn_err why;               /* no memory, seen deep in a record */
    i64 list[LIST_MOST];
};

/* ---- what a number may be */

static bool may_be_negative(const char *name)
{
    static const char *const names[] = { "layer", "predict", "rep", "seed" };
    for (size_t i = 0; i < QN_COUNT(names); i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

static bool is_time(const qn_ev_field *f)
{
    const size_t n = f->n_key - 4; /* of the name, without ,"": */
    return n >= 2 && !memcmp(f->name + n - 2, "ns", 2) && (n == 2 || f->name[n - 3] == '_');
}

static bool is_sensible(const qn_ev_field *f, i64 v)
{
    return v >= 0 ? v <= TIME_MOST || !is_time(f) : may_be_negative(f->name);
}

/* ---- the quick way */

static const char *take_int(const char *p, i64 *out)
{
    const bool negative = *p == '-';
    p += negative;
    const char *begin = p;
    u64 v = 0;
    for (u32 d; (d = (u32)*p - '0') < 10; p++) v = v * 10 + d;
    if (p == begin || p - begin > 18 || (*begin == '0' && p - begin > 1)) return NULL;
    *out = negative ? -(i64)v : (i64)v;
    return p;
}

static const char *take_text(const char *p, const char *end, qn_str *out)
{
    if (*p != '"') return NULL;
    const char *begin = ++p;
    while (p < end && *p != '"') {
        if (*p < ' ' || *p == '\\' || *p == 0x7F) return NULL; /* escapes and what is not ASCII: the other way */
        p++;
    }
    *out = (qn_str){ begin, (size_t)(p - begin) };
    return p < end ? p + 1 : NULL;
}

static const char *take_list(qn_reader *r, const char *p, qn_ev_list *out)
{
    size_t n = 0;
    if (*p != '[') return NULL;
    do {
        if (n == LIST_MOST || !(p = take_int(p + 1, &r->list[n++]))) return NULL;
    } while (*p == ',');
    *out = (qn_ev_list){ r->list, n };
    return *p == ']' ? p + 1 : NULL;
}

static bool find_kind(qn_reader *r, qn_str name, qn_ev_kind *out)
{
    for (int i = 0; i < N_EV_KINDS; i++) {
        const qn_ev_kind k = (qn_ev_kind)(((int)r->last_kind + i) % N_EV_KINDS);
        const qn_ev_info *known = qn_ev_info_of(k);
        if (known->n_name == name.n && !memcmp(known->name, name.p, name.n)) {
            r->last_kind = *out = k;
            return true;
        }
    }
    return false;
}

/* The value of one field at p; NULL: take the other way. A byte that is no part of a number stands behind every line, so
 * looking one byte too far is safe. */
static const char *take_value(qn_reader *r, const qn_ev_field *f, const char *p, const char *end, qn_event *out)
{
    void *at = (char *)out + f->offset;
    switch (f->type) {
    case QN_EV_INT:
        p = take_int(p, at);
        return p && is_sensible(f, *(i64 *)at) ? p : NULL;
    case QN_EV_STR: return take_text(p, end, at);
    case QN_EV_LIST: return take_list(r, p, at);
    case QN_EV_NUM:
    case QN_EV_JSON: break;
    }
    return NULL;
}

/* A field's key at p, where more than n bytes are? Two loads that overlap instead of a call: 30 % of a line is its keys. */
static bool is_key(const char *p, const char *key, size_t n)
{
    u64 a[2], b[2];
    u32 c[2], d[2];
    if (n > 16) return !memcmp(p, key, n);
    if (n >= 8) {
        memcpy(&a[0], p, 8), memcpy(&a[1], p + n - 8, 8);
        memcpy(&b[0], key, 8), memcpy(&b[1], key + n - 8, 8);
        return a[0] == b[0] && a[1] == b[1];
    }
    assert(n >= 4); /* the shortest is ,"t": */
    memcpy(&c[0], p, 4), memcpy(&c[1], p + n - 4, 4);
    memcpy(&d[0], key, 4), memcpy(&d[1], key + n - 4, 4);
    return c[0] == d[0] && c[1] == d[1];
}

/* The field whose key stands at p: mostly the next one, or one soon after; texts of other writers have them in any order.
 * NULL: none of this kind. */
static const qn_ev_field *find_field(const qn_ev_info *info, int next, const char *p, const char *end)
{
    const size_t left = (size_t)(end - p);
    for (int i = 0, k = next; i < info->n_fields; i++, k++) {
        if (k >= info->n_fields) k = 0;
        if (left > info->fields[k].n_key && is_key(p, info->fields[k].key, info->fields[k].n_key)) return &info->fields[k];
    }
    return NULL;
}

/* True: *out is the record. False: nothing is known yet. end[0] is the line's end or the text's: readable, and no digit. */
static bool decode_quickly(qn_reader *r, const char *p, const char *end, qn_event *out)
{
    qn_str name;
    if (end - p < 20 || memcmp(p, "{\"ev\":", 6)) return false;
    if (!(p = take_text(p + 6, end, &name)) || end - p < 6 || memcmp(p, ",\"t\":", 5)) return false;
    qn_ev_kind kind;
    if (!find_kind(r, name, &kind)) return false;
    const qn_ev_info *info = qn_ev_info_of(kind);
    memset(out, 0, sizeof *out);
    out->kind = kind;
    if (!(p = take_int(p + 5, &out->t)) || out->t < 0 || out->t > TIME_MOST) return false;
    u64 seen = 0;
    assert(info->n_fields <= 64);
    for (int next = 0; *p == ',';) {
        const qn_ev_field *f = find_field(info, next, p, end);
        const int at = f ? (int)(f - info->fields) : 0;
        if (!f || (seen & 1ull << at) || !(p = take_value(r, f, p + f->n_key, end, out))) return false;
        seen |= 1ull << at;
        next = at + 1;
    }
    return p + 1 == end && *p == '}';
}

/* ---- the other way */

static bool complain(qn_reader *r, u64 at, const char *why)
{
    if (r->state.bad++ == 0) {
        r->state.bad_at = at;
        snprintf(r->state.bad_why, sizeof r->state.bad_why, "%.119s", why);
    }
    return false;
}

static bool as_int(yyjson_val *v, i64 *out)
{
    if (yyjson_is_sint(v) || (yyjson_is_uint(v) && yyjson_get_uint(v) <= INT64_MAX)) {
        *out = yyjson_get_sint(v);
        return true;
    }
    const double d = yyjson_is_real(v) ? yyjson_get_real(v) : NAN;
    if (!(fabs(d) < 9e15) || d != floor(d)) return false;
    *out = (i64)d;
    return true;
}

static bool as_list(qn_reader *r, yyjson_val *v, qn_ev_list *out)
{
    const size_t n = yyjson_is_arr(v) ? yyjson_arr_size(v) : SIZE_MAX;
    if (n > LIST_MOST) return false;
    size_t i, most;
    yyjson_val *x;
    yyjson_arr_foreach(v, i, most, x) {
        if (!as_int(x, &r->list[i])) return false;
    }
    *out = (qn_ev_list){ r->list, n };
    return true;
}

static bool as_json(qn_reader *r, yyjson_val *v, qn_str *out)
{
    size_t n;
    if (r->n_json == JSON_MOST) return false;
    char *text = qn_json_text(v, &n, &r->why);
    if (!text) return false;
    r->json[r->n_json++] = text;
    *out = (qn_str){ text, n };
    return true;
}

static bool take_json_field(qn_reader *r, const qn_ev_field *f, yyjson_val *v, qn_event *out)
{
    void *at = (char *)out + f->offset;
    switch (f->type) {
    case QN_EV_INT: return as_int(v, at) && is_sensible(f, *(i64 *)at);
    case QN_EV_NUM: return yyjson_is_num(v) && isfinite(*(double *)at = yyjson_get_num(v));
    case QN_EV_STR:
        *(qn_str *)at = (qn_str){ yyjson_get_str(v), yyjson_get_len(v) };
        return yyjson_is_str(v);
    case QN_EV_LIST: return as_list(r, v, at);
    case QN_EV_JSON: return as_json(r, v, at);
    }
    return false;
}

static void note_unknown(qn_reader *r, yyjson_val *ev)
{
    char name[40];
    qn_reader_state *s = &r->state;
    qn_printable(yyjson_get_str(ev), yyjson_get_len(ev), 24, name, sizeof name);
    const size_t n = strlen(s->unknown_kinds);
    if (!strstr(s->unknown_kinds, name) && n + strlen(name) + 3 < sizeof s->unknown_kinds)
        snprintf(s->unknown_kinds + n, sizeof s->unknown_kinds - n, "%s%s", n ? ", " : "", name);
    s->unknown++;
}

static bool decode_object(qn_reader *r, yyjson_val *root, u64 at, qn_event *out)
{
    char why[120];
    yyjson_val *ev = yyjson_obj_get(root, "ev"), *t = yyjson_obj_get(root, "t");
    if (!yyjson_is_str(ev)) return complain(r, at, "no record: it has no \"ev\"");
    qn_ev_kind kind;
    if (!find_kind(r, (qn_str){ yyjson_get_str(ev), yyjson_get_len(ev) }, &kind)) {
        note_unknown(r, ev);
        return false;
    }
    const qn_ev_info *info = qn_ev_info_of(kind);
    memset(out, 0, sizeof *out);
    out->kind = kind;
    if (t && (!as_int(t, &out->t) || out->t < 0 || out->t > TIME_MOST)) {
        snprintf(why, sizeof why, "the t of a %s makes no sense", info->name);
        return complain(r, at, why);
    }
    for (int i = 0; i < info->n_fields; i++) {
        yyjson_val *v = yyjson_obj_get(root, info->fields[i].name);
        if (!v || yyjson_is_null(v) || take_json_field(r, &info->fields[i], v, out)) continue;
        snprintf(why, sizeof why, "the %s of a %s makes no sense", info->fields[i].name, info->name);
        return complain(r, at, why);
    }
    return true;
}

static void forget(qn_reader *r)
{
    yyjson_doc_free(r->doc);
    r->doc = NULL;
    while (r->n_json) qn_free(r->json[--r->n_json]);
}

/* What stands at the end of a text that was cut is forgiven: no complaint, but its place is kept. */
static bool decode_slowly(qn_reader *r, const qn_line *line, qn_event *out)
{
    qn_err why = { 0 };
    if (line->cut) return complain(r, line->at, "a line of more than 1 MiB");
    r->doc = qn_json_parse(line->text.p, line->text.n, 0, "line", &why);
    if (r->doc && yyjson_is_obj(yyjson_doc_get_root(r->doc)))
        return decode_object(r, yyjson_doc_get_root(r->doc), line->at, out);
    if (why.code == QN_ENOMEM) r->why = why;
    else if (line->whole) complain(r, line->at, r->doc ? "not a JSON object" : why.msg);
    else {
        r->state.cut = true;
        r->state.cut_at = line->at;
    }
    return false;
}

static bool is_blank(qn_str s)
{
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t' || s.p[s.n - 1] == '\r')) s.n--;
    return s.n == 0;
}

int qn_reader_next(qn_reader *r, qn_event *out, qn_err *e)
{
    for (;;) {
        qn_line line;
        if (r->doc) forget(r);
        const qn_got got = r->ended ? QN_GOT_END : qn_stream_line(r->stream, &line, e);
        if (got != QN_GOT_ONE) return (int)got;
        const char *end = line.text.p + line.text.n;
        bool good = line.whole && !line.cut && decode_quickly(r, line.text.p, end, out);
        if (!good) {
            if (is_blank(line.text)) continue;
            good = decode_slowly(r, &line, out);
            if (r->why.code) {
                *e = r->why;
                return QN_GOT_ERROR;
            }
        }
        if (!good) continue;
        r->state.records++;
        if (r->follow && out->kind == QN_EV_end) r->ended = true;
        return QN_GOT_ONE;
    }
}

/* ---- opening */

/* One of the first lines must be ours: a trace whose first line is damaged is still a trace. */
static bool has_our_record(qn_str text)
{
    for (size_t i = 0; i + 5 < text.n; i++)
        if (text.p[i] == '"' && !memcmp(text.p + i, "\"ev\"", 4)) return true;
    return false;
}

static bool check_beginning(qn_reader *r, qn_err *e)
{
    qn_str text;
    const qn_got got = qn_stream_peek(r->stream, (size_t)64 << 10, &text, e);
    if (got == QN_GOT_ERROR) return false;
    if (got == QN_GOT_NOTHING_YET) return true; /* lines will be judged one by one */
    const char *name = qn_path_tail(r->path);
    if (got == QN_GOT_END) return qn_fail(e, QN_EFORMAT, "%s: is empty", name);
    if (has_our_record(text)) return true;
    return qn_fail(e, QN_EFORMAT, "%s: not a trace of quern: no line of it is a record with \"ev\"", name);
}

qn_reader *qn_reader_open_stream(const char *path, qn_stream *text, bool follow, qn_err *e)
{
    qn_reader *r = text ? qn_new(sizeof *r, e) : NULL;
    if (!r) {
        qn_stream_close(text);
        return NULL;
    }
    r->stream = text;
    r->follow = follow;
    r->path = qn_strdup(path, e);
    if (r->path && check_beginning(r, e)) return r;
    qn_reader_close(r);
    return NULL;
}

qn_reader *qn_reader_open(const char *path, bool follow, qn_err *e)
{
    return qn_reader_open_stream(path, qn_stream_open(path, follow, e), follow, e);
}

void qn_reader_get_state(const qn_reader *r, qn_reader_state *out)
{
    *out = r->state;
    qn_stream_progress(r->stream, &out->bytes, &out->size);
    const char *damage = qn_stream_damage(r->stream);
    snprintf(out->damage, sizeof out->damage, "%s", damage ? damage : "");
}

void qn_reader_close(qn_reader *r)
{
    if (!r) return;
    forget(r);
    qn_stream_close(r->stream);
    qn_free(r->path);
    qn_free(r);
}
