/* read_chrome.c - traces in Chrome's JSON (Chrome, Perfetto, PyTorch, ONNX Runtime, our own export) as a run. A span's own time
 * is what its children on the same track leave of it, so nothing is counted twice. Spans may come in any order (complete events
 * are written when they end, children first), so all are kept, 24 bytes each, and sorted by track and begin.
 * A span whose name begins with prefill, decode, tokenize, sample or load gives that phase to all that lies in it, and a prefill
 * or decode span is a pass. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "report/cover.h"
#include "report/json_items.h"

#define SPANS_MOST ((size_t)16 << 20) /* 384 MB */
#define TS_MOST    4e15               /* us: 126 years, enough for clocks that count from 1970 */
#define DEEP       256
#define SHOWN      4000               /* spans kept for drawings */

typedef struct span { i64 t; u64 ns; u32 name, track; } span; /* name: of a kind */
typedef struct kind { const char *kernel, *op, *role; qn_phase phase; bool marks; u32 series[N_PHASES]; } kind;
typedef struct open_span { i64 t; u32 name, before; } open_span; /* before: index + 1 in the stack of its track */

typedef struct chrome {
    qn_run *r;
    bool started;
    double base;            /* us: the first time stamp */
    QN_RUN_LIST(span) spans;
    QN_RUN_LIST(kind) kinds;
    QN_RUN_LIST(open_span) open;
    QN_RUN_LIST(u32) tops;  /* of each track's stack, index + 1 */
    qn_table names, tracks;
    u64 unfinished, left_out;
} chrome;

/* ---- events */

static qn_str text_of(yyjson_val *object, const char *key)
{
    yyjson_val *v = yyjson_obj_get(object, key);
    return yyjson_is_str(v) ? (qn_str){ yyjson_get_str(v), yyjson_get_len(v) } : (qn_str){ "", 0 };
}

/* Numbers, and texts of numbers, as some writers have them. False: none, or senseless. */
static bool number_of(yyjson_val *object, const char *key, double lo, double hi, double *out)
{
    yyjson_val *v = yyjson_obj_get(object, key);
    if (yyjson_is_str(v)) return qn_parse_double(yyjson_get_str(v), lo, hi, out);
    if (!yyjson_is_num(v)) return false;
    *out = yyjson_get_num(v);
    return *out >= lo && *out <= hi;
}

static void put_id(yyjson_val *v, char *out, size_t cap)
{
    if (yyjson_is_str(v)) snprintf(out, cap, "%.60s", yyjson_get_str(v));
    else if (yyjson_is_num(v)) snprintf(out, cap, "%.17g", yyjson_get_num(v));
    else snprintf(out, cap, "-");
}

/* The number of a key in a table that owns its keys; QN_NONE: no memory. */
static u32 number_for(chrome *c, qn_table *t, const char *key, size_t n, bool *made, qn_err *e)
{
    const u32 known = qn_table_get(t, key, n);
    *made = known == QN_NONE;
    if (known != QN_NONE) return known;
    const char *kept = qn_arena_strndup(&c->r->arena, key, n, e);
    return kept ? qn_table_put(t, kept, n, (u32)t->n, e) : QN_NONE;
}

static u32 track_of(chrome *c, yyjson_val *ev, qn_err *e)
{
    char pid[64], tid[64], key[132];
    bool made;
    put_id(yyjson_obj_get(ev, "pid"), pid, sizeof pid);
    put_id(yyjson_obj_get(ev, "tid"), tid, sizeof tid);
    const int n = snprintf(key, sizeof key, "%s/%s", pid, tid);
    const u32 at = number_for(c, &c->tracks, key, (size_t)n, &made, e);
    if (at == QN_NONE) return QN_NONE;
    return !made || QN_RUN_PUSH(&c->tops, e) ? at : QN_NONE;
}

static void mark_phase(kind *k)
{
    static const struct { const char *word; qn_phase phase; } words[] = {
        { "prefill", PHASE_prefill }, { "decode", PHASE_decode }, { "generat", PHASE_decode },
        { "tokenize", PHASE_tokenize }, { "sample", PHASE_sample }, { "sampling", PHASE_sample }, { "load", PHASE_load },
        { "model_loading", PHASE_load }, { "session_initialization", PHASE_load },
    };
    k->phase = PHASE_other;
    for (size_t i = 0; i < QN_COUNT(words); i++)
        if (!strncasecmp(k->kernel, words[i].word, strlen(words[i].word))) k->phase = words[i].phase, k->marks = true;
}

/* ONNX Runtime names a node's span NODE_kernel_time and has the operator beside it; our own export has op and kernel. */
static u32 kind_of(chrome *c, yyjson_val *ev, qn_err *e)
{
    const qn_str name = text_of(ev, "name"), cat = text_of(ev, "cat");
    yyjson_val *args = yyjson_obj_get(ev, "args");
    const qn_str kernel = text_of(args, "kernel"), op = kernel.n ? text_of(args, "op") : text_of(args, "op_name");
    char key[512];
    bool made;
    const size_t tail = name.n > 12 && !memcmp(name.p + name.n - 12, "_kernel_time", 12) ? 12 : 0;
    const int n = snprintf(key, sizeof key, "%.*s\n%.*s\n%.*s\n%.*s", (int)qn_minz(name.n, 200), name.p,
                           (int)qn_minz(cat.n, 80), cat.p, (int)qn_minz(op.n, 80), op.p, (int)qn_minz(kernel.n, 100), kernel.p);
    const u32 at = number_for(c, &c->names, key, (size_t)n, &made, e);
    if (at == QN_NONE || !made) return at;
    kind *k = QN_RUN_PUSH(&c->kinds, e);
    if (!k) return QN_NONE;
    *k = (kind){ .kernel = "", .op = "", .role = "" };
    const char *whole = qn_run_text(c->r, (qn_str){ name.p, qn_minz(name.n, 200) - (name.n <= 200 ? tail : 0) }, e);
    const char *group = whole ? qn_run_text(c->r, op.n ? op : cat, e) : NULL;
    const char *own = group && kernel.n ? qn_run_text(c->r, kernel, e) : group;
    if (!own) return QN_NONE;
    k->kernel = op.n ? own : whole;
    k->op = group;
    k->role = op.n ? whole : "";
    mark_phase(k);
    return at;
}

static i64 ns_at(const chrome *c, double us) { return (i64)llround((us - c->base) * 1000); }

static bool add_span(chrome *c, i64 t, u64 ns, u32 name, u32 track, qn_err *e)
{
    if (c->spans.n == SPANS_MOST) {
        c->left_out++;
        return true;
    }
    span *s = QN_RUN_PUSH(&c->spans, e);
    if (s) *s = (span){ .t = t, .ns = ns, .name = name, .track = track };
    return s != NULL;
}

static bool begin_span(chrome *c, i64 t, u32 name, u32 track, qn_err *e)
{
    open_span *o = QN_RUN_PUSH(&c->open, e);
    if (!o) return false;
    *o = (open_span){ .t = t, .name = name, .before = c->tops.p[track] };
    c->tops.p[track] = (u32)c->open.n;
    return true;
}

static bool end_span(chrome *c, i64 t, u32 track, qn_err *e)
{
    const u32 top = c->tops.p[track];
    if (!top || c->open.p[top - 1].t > t) { /* an end without a begin, or before it */
        c->r->ignored++;
        return true;
    }
    const open_span o = c->open.p[top - 1];
    c->tops.p[track] = o.before;
    if (top == c->open.n) c->open.n--; /* the list stays as short as what is open */
    return add_span(c, o.t, (u64)(t - o.t), o.name, track, e);
}

static bool add_event(chrome *c, yyjson_val *ev, qn_err *e)
{
    const qn_str ph = text_of(ev, "ph");
    const char what = ph.n == 1 ? ph.p[0] : 0;
    double ts, dur = 0;
    if (!what || !strchr("XBE", what)) {
        c->r->unknown += !what || !strchr("MiIRCsftbneNODPvVcSTp", what); /* what has no length is passed over */
        return true;
    }
    if (!number_of(ev, "ts", 0, TS_MOST, &ts) || (what == 'X' && !number_of(ev, "dur", 0, 1e13, &dur))) {
        c->r->ignored++;
        return true;
    }
    if (!c->started) c->base = floor(ts);
    c->started = true;
    const u32 track = track_of(c, ev, e);
    const u32 name = track == QN_NONE ? QN_NONE : what == 'E' ? 0 : kind_of(c, ev, e);
    if (name == QN_NONE) return false;
    if (what == 'E') return end_span(c, ns_at(c, ts), track, e);
    if (what == 'B') return begin_span(c, ns_at(c, ts), name, track, e);
    return add_span(c, ns_at(c, ts), (u64)llround(dur * 1000), name, track, e);
}

/* ---- own times */

static int by_track(const void *x, const void *y)
{
    const span *a = x, *b = y;
    if (a->track != b->track) return a->track < b->track ? -1 : 1;
    if (a->t != b->t) return a->t < b->t ? -1 : 1;
    return a->ns > b->ns ? -1 : a->ns < b->ns; /* the longer one is the parent */
}

typedef struct level { i64 end; u64 children; size_t span; qn_phase phase; size_t pass; } level; /* pass: index + 1 */

static bool close_level(chrome *c, const level *l, qn_err *e)
{
    const span *s = &c->spans.p[l->span];
    kind *k = &c->kinds.p[s->name];
    u32 *slot = &k->series[l->phase];
    const u64 own = s->ns > l->children ? s->ns - l->children : 0;
    if (l->pass && k->marks && c->r->passes.p[l->pass - 1].t == s->t) c->r->passes.p[l->pass - 1].steps_ns = s->ns - own;
    if (!*slot) {
        const qn_series *made = qn_run_series(c->r, l->phase, k->kernel, k->op, k->role, "", -1, e);
        if (!made) return false;
        *slot = (u32)(made - c->r->series.p) + 1;
    }
    if (c->r->spans.n < SHOWN) {
        qn_run_span *shown = QN_RUN_PUSH(&c->r->spans, e);
        if (!shown) return false;
        *shown = (qn_run_span){ .t = s->t, .ns = s->ns, .series = *slot - 1, .pass = (u32)l->pass };
    }
    return qn_series_add(&c->r->series.p[*slot - 1], own, e);
}

static bool open_level(chrome *c, level *stack, int depth, size_t i, qn_err *e)
{
    const span *s = &c->spans.p[i];
    const kind *k = &c->kinds.p[s->name];
    level *l = &stack[depth];
    *l = (level){ .end = s->t + (i64)s->ns, .span = i, .phase = k->phase };
    if (depth) {
        const i64 inside = l->end < l[-1].end ? l->end : l[-1].end;
        l[-1].children += (u64)(inside - s->t);
        l->pass = l[-1].pass;
        if (!k->marks) l->phase = l[-1].phase;
    }
    if (!k->marks || (k->phase != PHASE_prefill && k->phase != PHASE_decode) || l->pass) return true;
    qn_run_pass *p = QN_RUN_PUSH(&c->r->passes, e);
    if (!p) return false;
    *p = (qn_run_pass){ .t = s->t, .number = (i64)c->r->passes.n, .ns = s->ns, .phase = k->phase, .rows = 1, .seqs = 1 };
    l->pass = c->r->passes.n;
    return true;
}

/* Spans in order, a stack of those that are open: a child takes its time from its parent. */
static bool share_out(chrome *c, qn_err *e)
{
    level stack[DEEP] = { 0 };
    int depth = 0;
    for (size_t i = 0; i <= c->spans.n; i++) {
        const span *s = i < c->spans.n ? &c->spans.p[i] : NULL;
        const bool other = !s || (i && s->track != c->spans.p[i - 1].track);
        while (depth && (other || stack[depth - 1].end <= s->t))
            if (!close_level(c, &stack[--depth], e)) return false;
        if (!s) break;
        if (depth == DEEP) { /* deeper than anything sensible: it stays in its parent */
            c->left_out++;
            continue;
        }
        if (!open_level(c, stack, depth++, i, e)) return false;
    }
    return true;
}

static int by_begin(const void *x, const void *y)
{
    const qn_run_pass *a = x, *b = y;
    return a->t < b->t ? -1 : a->t > b->t;
}

static int by_time(const void *x, const void *y)
{
    const span *a = x, *b = y;
    return a->t < b->t ? -1 : a->t > b->t;
}

/* The phases' times by the clock, whatever the tracks; spans are sorted by begin now. */
static bool sum_phases(chrome *c, qn_err *e)
{
    qn_run *r = c->r;
    qn_cover *cover = qn_new(sizeof *cover, e);
    if (!cover) return false;
    i64 last = 0;
    if (c->spans.n) qsort(c->spans.p, c->spans.n, sizeof *c->spans.p, by_time);
    for (size_t i = 0; i < c->spans.n; i++) {
        const span *s = &c->spans.p[i];
        const kind *k = &c->kinds.p[s->name];
        if (s->t + (i64)s->ns > last) last = s->t + (i64)s->ns;
        if (k->marks) qn_cover_add(cover, k->phase, s->t, s->ns);
    }
    u64 sum = 0;
    qn_cover_sum(cover, r->phase_ns);
    qn_free(cover);
    for (int i = 0; i < N_PHASES; i++) sum += r->phase_ns[i];
    r->wall_ns = (u64)last;
    if (r->wall_ns < sum) r->wall_ns = sum;
    r->phase_ns[PHASE_other] += r->wall_ns - sum;
    for (size_t i = 0; i < r->passes.n; i++) r->phase_tokens[r->passes.p[i].phase]++;
    return true;
}

/* The run begins with its first span, wherever the clock of the log began. */
static void begin_at_zero(chrome *c)
{
    i64 first = INT64_MAX;
    for (size_t i = 0; i < c->spans.n; i++)
        if (c->spans.p[i].t < first) first = c->spans.p[i].t;
    for (size_t i = 0; i < c->spans.n; i++) c->spans.p[i].t -= first;
}

static bool finish(chrome *c, const qn_items *it, qn_err *e)
{
    qn_run *r = c->r;
    for (size_t i = 0; i < c->tops.n; i++)
        for (u32 at = c->tops.p[i]; at; at = c->open.p[at - 1].before) c->unfinished++;
    r->ignored += c->unfinished;
    r->bad += it->bad;
    r->level = "step";
    r->ended = true;
    begin_at_zero(c);
    if (c->spans.n) qsort(c->spans.p, c->spans.n, sizeof *c->spans.p, by_track);
    if (!share_out(c, e) || !sum_phases(c, e)) return false;
    if (r->passes.n) qsort(r->passes.p, r->passes.n, sizeof *r->passes.p, by_begin);
    bool ok = !it->cut || qn_run_note(r, e, "1 cut record at byte %" PRIu64, it->cut_at);
    if (ok && r->bad) ok = qn_run_note(r, e, "%" PRIu64 " damaged records, the first at byte %" PRIu64, r->bad, it->bad_at);
    if (ok && c->unfinished) ok = qn_run_note(r, e, "%" PRIu64 " spans begin and never end; they are left out", c->unfinished);
    if (ok && c->left_out) ok = qn_run_note(r, e, "%" PRIu64 " spans were too many or too deep and are left out", c->left_out);
    return ok;
}

static bool take_all(chrome *c, qn_items *it, qn_err *e)
{
    qn_str text;
    for (qn_got got; (got = qn_items_next(it, &text, e)) != QN_GOT_END;) {
        qn_err why = { 0 };
        if (got == QN_GOT_ERROR) return false;
        yyjson_doc *doc = qn_json_parse(text.p, text.n, 0, "event", &why);
        if (!doc && why.code == QN_ENOMEM) *e = why;
        if (!doc && why.code == QN_ENOMEM) return false;
        if (!doc && it->bad++ == 0) it->bad_at = qn_stream_at(it->im->text) - text.n;
        const bool ok = !doc || add_event(c, yyjson_doc_get_root(doc), e);
        yyjson_doc_free(doc);
        if (!ok) return false;
    }
    return true;
}

bool qn_import_chrome(qn_import *im, qn_err *e)
{
    chrome c = { .r = qn_import_run(im, "chrome", e) };
    qn_items it = { .im = im, .key = "traceEvents" };
    const bool ok = c.r && take_all(&c, &it, e) && finish(&c, &it, e);
    qn_free(c.spans.p);
    qn_free(c.kinds.p);
    qn_free(c.open.p);
    qn_free(c.tops.p);
    qn_table_close(&c.names);
    qn_table_close(&c.tracks);
    return ok;
}
