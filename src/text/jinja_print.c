/* jinja_print.c - values as text, byte for byte as Python's str() and repr() and json.dumps write them. A byte is marked if
 * the string, number or container that it belongs to came out of a marked variable. */
#include "text/jinja.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* ---- floats */

/* The shortest digits that read back as f: 0.1, 1e+16, 1.5e-05, 3.0. */
int qn_jfloat_text(double f, char out[40])
{
    if (isnan(f)) return snprintf(out, 40, "nan");
    if (isinf(f)) return snprintf(out, 40, f < 0 ? "-inf" : "inf");
    char e[40], digits[24];
    int prec = 0, n = 0;
    do {
        snprintf(e, sizeof e, "%.*e", prec, f);
    } while (strtod(e, NULL) != f && prec++ < 17);
    const char *exp = strchr(e, 'e');
    const int power = exp ? (int)strtol(exp + 1, NULL, 10) : 0;
    for (const char *p = e; p < exp; p++) /* the point may be a comma in the locale: only digits count */
        if (*p >= '0' && *p <= '9' && n < 20) digits[n++] = *p;
    digits[n] = 0;
    char *o = out;
    if (signbit(f)) *o++ = '-';
    if (power < -4 || power >= 16) {
        o += snprintf(o, 38, "%c%s%s%s%c%02d", digits[0], n > 1 ? "." : "", digits + 1, "e", power < 0 ? '-' : '+',
                      abs(power));
    } else if (power < 0) {
        o += snprintf(o, 38, "0.%.*s%s", -power - 1, "0000", digits);
    } else {
        for (int i = 0; i <= power || i < n; i++) {
            if (i == power + 1) *o++ = '.';
            *o++ = i < n ? digits[i] : '0';
        }
        if (n <= power + 1) o += snprintf(o, 3, ".0");
    }
    *o = 0;
    return (int)(o - out);
}

/* ---- repr */

static bool printable(u32 cp)
{
    if (cp < 0x80) return cp >= 32 && cp < 127;
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_CC: case UTF8PROC_CATEGORY_CF: case UTF8PROC_CATEGORY_CS: case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN: case UTF8PROC_CATEGORY_ZL: case UTF8PROC_CATEGORY_ZP: case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
    }
}

static bool is_marked(qn_jstr s, size_t at) { return s.marks && s.marks[at]; }

static bool repr_str(qn_jx *x, qn_jbuild *b, qn_jstr s, bool frame_marked)
{
    const bool has_single = memchr(s.p, '\'', s.n), has_double = memchr(s.p, '"', s.n);
    const char quote = has_single && !has_double ? '"' : '\'';
    if (!qn_jx_step(x, s.n / 64) || !qn_jbuild_bytes(x, b, &quote, 1, frame_marked)) return false;
    for (size_t at = 0, len; at < s.n; at += len) {
        u32 cp;
        char esc[16];
        int n = 0;
        len = qn_jchar(s.p + at, s.n - at, &cp);
        if (cp == (u32)quote || cp == '\\') n = snprintf(esc, sizeof esc, "\\%c", (char)cp);
        else if (cp == '\n' || cp == '\r' || cp == '\t')
            n = snprintf(esc, sizeof esc, "\\%c", cp == '\n' ? 'n' : cp == '\r' ? 'r' : 't');
        else if (!printable(cp))
            n = snprintf(esc, sizeof esc, cp < 256 ? "\\x%02x" : cp < 65536 ? "\\u%04x" : "\\U%08x", cp);
        if (n ? !qn_jbuild_bytes(x, b, esc, (size_t)n, is_marked(s, at))
              : !qn_jbuild_put(x, b, qn_jstr_part(s, at, at + len)))
            return false;
    }
    return qn_jbuild_bytes(x, b, &quote, 1, frame_marked);
}

static bool put(qn_jx *x, qn_jbuild *b, const char *s, bool marked) { return qn_jbuild_bytes(x, b, s, strlen(s), marked); }

static bool repr_list(qn_jx *x, qn_jbuild *b, qn_jv v, const char *open, const char *close)
{
    if (!put(x, b, open, v.marked)) return false;
    for (size_t i = 0; i < v.l->n; i++)
        if ((i && !put(x, b, ", ", v.marked)) || !qn_jv_repr(x, b, v.l->at[i])) return false;
    if (v.type == JT_tuple && v.l->n == 1 && !put(x, b, ",", v.marked)) return false;
    return put(x, b, close, v.marked);
}

static bool repr_dict(qn_jx *x, qn_jbuild *b, qn_jv v, const char *open, const char *close)
{
    if (!put(x, b, open, v.marked)) return false;
    for (size_t i = 0; i < v.d->n; i++) {
        if ((i && !put(x, b, ", ", v.marked)) || !qn_jv_repr(x, b, v.d->keys[i])) return false;
        if (!put(x, b, ": ", v.marked) || !qn_jv_repr(x, b, v.d->vals[i])) return false;
    }
    return put(x, b, close, v.marked);
}

static bool repr_range(qn_jx *x, qn_jbuild *b, qn_jv v)
{
    char text[80];
    const qn_jrange *r = v.r;
    if (r->step == 1) snprintf(text, sizeof text, "range(%lld, %lld)", (long long)r->start, (long long)r->stop);
    else snprintf(text, sizeof text, "range(%lld, %lld, %lld)", (long long)r->start, (long long)r->stop, (long long)r->step);
    return put(x, b, text, v.marked);
}

static bool repr(qn_jx *x, qn_jbuild *b, qn_jv v)
{
    static const char *const views[] = { "dict_items([", "dict_keys([", "dict_values([" };
    char text[40];
    switch (v.type) {
    case JT_undef:
    case JT_missing: return put(x, b, "Undefined", v.marked);
    case JT_none: return put(x, b, "None", v.marked);
    case JT_bool: return put(x, b, v.b ? "True" : "False", v.marked);
    case JT_int: snprintf(text, sizeof text, "%lld", (long long)v.i); return put(x, b, text, v.marked);
    case JT_float: qn_jfloat_text(v.f, text); return put(x, b, text, v.marked);
    case JT_big: return qn_jbuild_bytes(x, b, v.s->p, v.s->n, v.marked);
    case JT_str: return repr_str(x, b, *v.s, qn_jstr_marked(*v.s));
    case JT_list: return repr_list(x, b, v, "[", "]");
    case JT_tuple: return repr_list(x, b, v, "(", ")");
    case JT_view: return repr_list(x, b, v, views[v.sub % 3], "])");
    case JT_dict: return repr_dict(x, b, v, "{", "}");
    case JT_ns: return repr_dict(x, b, v, "<Namespace {", "}>");
    case JT_range: return repr_range(x, b, v);
    case JT_gen: return put(x, b, "<generator object>", v.marked);
    case JT_loop: return put(x, b, "<LoopContext>", false);
    case JT_macro: return put(x, b, "<Macro>", false);
    default: return put(x, b, "<function>", false);
    }
}

bool qn_jv_repr(qn_jx *x, qn_jbuild *b, qn_jv v)
{
    if (!qn_jx_step(x, 1) || !qn_jx_enter(x) || !repr(x, b, v)) return false;
    qn_jx_leave(x);
    return true;
}

/* str(): as repr, but a string is itself and undefined is nothing. */
bool qn_jv_print(qn_jx *x, qn_jbuild *b, qn_jv v)
{
    if (v.type == JT_str) return qn_jbuild_put(x, b, *v.s);
    return qn_jv_is_undef(v) || qn_jv_repr(x, b, v);
}

bool qn_jv_text(qn_jx *x, qn_jv v, qn_jstr *out)
{
    qn_jbuild b = { 0 };
    if (v.type == JT_str) {
        *out = *v.s;
        return true;
    }
    if (!qn_jv_print(x, &b, v)) return false;
    *out = qn_jbuild_str(&b);
    return true;
}

/* ---- JSON */

typedef struct json_state { qn_jx *x; qn_jbuild *b; const qn_jjson *how; int depth; } json_state;

static bool json_value(json_state *s, qn_jv v);

static bool json_escape(json_state *s, u32 cp, bool marked)
{
    static const char from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
    char esc[16];
    int n;
    const char *hit = cp && cp < 128 ? strchr(from, (char)cp) : NULL;
    if (hit) n = snprintf(esc, sizeof esc, "\\%c", to[hit - from]);
    else if (cp < 0x10000) n = snprintf(esc, sizeof esc, "\\u%04x", cp);
    else n = snprintf(esc, sizeof esc, "\\u%04x\\u%04x", 0xD800 + ((cp - 0x10000) >> 10), 0xDC00 + ((cp - 0x10000) & 0x3FF));
    return qn_jbuild_bytes(s->x, s->b, esc, (size_t)n, marked);
}

static bool json_str(json_state *s, qn_jstr v)
{
    const bool marked = qn_jstr_marked(v);
    size_t from = 0;
    if (!qn_jx_step(s->x, v.n / 256) || !put(s->x, s->b, "\"", marked)) return false;
    for (size_t at = 0, len; at < v.n; at += len) {
        u32 cp;
        len = qn_jchar(v.p + at, v.n - at, &cp);
        if (cp >= 32 && cp != '"' && cp != '\\' && (cp < 127 || !s->how->ascii)) continue;
        if (cp == 127) continue;
        if (!qn_jbuild_put(s->x, s->b, qn_jstr_part(v, from, at)) || !json_escape(s, cp, is_marked(v, at))) return false;
        from = at + len;
    }
    return qn_jbuild_put(s->x, s->b, qn_jstr_part(v, from, v.n)) && put(s->x, s->b, "\"", marked);
}

static bool json_newline(json_state *s, bool marked)
{
    if (!s->how->pretty) return true;
    if (!put(s->x, s->b, "\n", marked)) return false;
    for (int i = 0; i < s->depth; i++)
        if (!qn_jbuild_bytes(s->x, s->b, s->how->indent.p, s->how->indent.n, marked || qn_jstr_marked(s->how->indent)))
            return false;
    return true;
}

static bool json_separator(json_state *s, qn_jstr sep, bool marked)
{
    return qn_jbuild_bytes(s->x, s->b, sep.p, sep.n, marked || qn_jstr_marked(sep));
}

static bool json_list(json_state *s, qn_jv v)
{
    if (!v.l->n) return put(s->x, s->b, "[]", v.marked);
    if (!put(s->x, s->b, "[", v.marked)) return false;
    s->depth++;
    for (size_t i = 0; i < v.l->n; i++) {
        if (i && !json_separator(s, s->how->comma, v.marked)) return false;
        if (!json_newline(s, v.marked) || !json_value(s, v.l->at[i])) return false;
    }
    s->depth--;
    return json_newline(s, v.marked) && put(s->x, s->b, "]", v.marked);
}

static bool json_key(json_state *s, qn_jv key)
{
    if (key.type == JT_str) return json_str(s, *key.s);
    if (key.type != JT_int && key.type != JT_float && key.type != JT_bool && key.type != JT_none)
        return qn_jx_fail(s->x, "tojson: a key of type %s", qn_jv_type_name(key));
    return put(s->x, s->b, "\"", key.marked) && json_value(s, key) && put(s->x, s->b, "\"", key.marked);
}

/* Keys in order: an insertion sort on indices, paid for in steps like any other work. */
static bool sorted_keys(qn_jx *x, const qn_jdict *d, size_t **out)
{
    size_t *order = qn_jx_new(x, (d->n + 1) * sizeof *order);
    if (!order) return false;
    for (size_t i = 0; i < d->n; i++) {
        size_t k = i;
        for (; k > 0; k--) {
            int cmp;
            if (!qn_jv_order(x, d->keys[order[k - 1]], d->keys[i], &cmp)) return false;
            if (cmp <= 0) break;
            order[k] = order[k - 1];
        }
        order[k] = i;
    }
    *out = order;
    return true;
}

static bool json_dict(json_state *s, qn_jv v)
{
    size_t *order = NULL;
    if (!v.d->n) return put(s->x, s->b, "{}", v.marked);
    if (s->how->sort && !sorted_keys(s->x, v.d, &order)) return false;
    if (!put(s->x, s->b, "{", v.marked)) return false;
    s->depth++;
    for (size_t i = 0; i < v.d->n; i++) {
        const size_t k = order ? order[i] : i;
        if (i && !json_separator(s, s->how->comma, v.marked)) return false;
        if (!json_newline(s, v.marked) || !json_key(s, v.d->keys[k])) return false;
        if (!json_separator(s, s->how->colon, v.marked) || !json_value(s, v.d->vals[k])) return false;
    }
    s->depth--;
    return json_newline(s, v.marked) && put(s->x, s->b, "}", v.marked);
}

static bool json_scalar(json_state *s, qn_jv v)
{
    if (v.type == JT_none) return put(s->x, s->b, "null", v.marked);
    if (v.type == JT_bool) return put(s->x, s->b, v.b ? "true" : "false", v.marked);
    if (v.type == JT_float && !isfinite(v.f))
        return put(s->x, s->b, isnan(v.f) ? "NaN" : v.f < 0 ? "-Infinity" : "Infinity", v.marked);
    if (v.type == JT_int || v.type == JT_float || v.type == JT_big) return qn_jv_repr(s->x, s->b, v);
    return qn_jx_fail(s->x, "tojson: an object of type %s is not JSON serializable", qn_jv_type_name(v));
}

static bool json_value(json_state *s, qn_jv v)
{
    bool ok;
    if (!qn_jx_step(s->x, 1) || !qn_jx_enter(s->x)) return false;
    switch (v.type) {
    case JT_str: ok = json_str(s, *v.s); break;
    case JT_list:
    case JT_tuple: ok = json_list(s, v); break;
    case JT_dict: ok = json_dict(s, v); break;
    default: ok = json_scalar(s, v); break;
    }
    if (ok) qn_jx_leave(s->x);
    return ok;
}

bool qn_jv_json(qn_jx *x, qn_jbuild *b, qn_jv v, const qn_jjson *how)
{
    json_state s = { .x = x, .b = b, .how = how };
    return json_value(&s, v);
}
