/* jinja_filters.c - filters on text and numbers: each row of the table at the end is one, with the names of its arguments.
 * Filters on lists are in jinja_filters_list.c. There is no autoescape here, so `safe` changes nothing. */
#include "text/jinja.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/str.h"

#define FILTER(name) static bool name(qn_jx *x, qn_jv self, const qn_jargs *raw, const qn_jv *a, qn_jv *out)
#define UNUSED (void)x, (void)self, (void)raw, (void)a

static bool as_str(qn_jx *x, qn_jv v, const char *what, qn_jstr *out)
{
    if (v.type != JT_str)
        return qn_jx_fail(x, "%s: a string was expected, not a value of type %s", what, qn_jv_type_name(v));
    *out = *v.s;
    return true;
}

static bool as_int(qn_jx *x, qn_jv v, const char *what, i64 missing, i64 *out)
{
    *out = missing;
    if (!qn_jv_given(v)) return true;
    return qn_jv_integer(v, out) ||
           qn_jx_fail(x, "%s: an integer was expected, not a value of type %s", what, qn_jv_type_name(v));
}

/* ---- case and space */

static bool change_case(qn_jx *x, qn_jv self, qn_jcase how, qn_jv *out)
{
    qn_jstr s;
    return qn_jv_text(x, self, &s) && qn_jstr_case(x, s, how, out);
}

FILTER(f_upper) { UNUSED; return change_case(x, self, JC_upper, out); }
FILTER(f_lower) { UNUSED; return change_case(x, self, JC_lower, out); }
FILTER(f_title) { UNUSED; return change_case(x, self, JC_words, out); }
FILTER(f_capitalize) { UNUSED; return change_case(x, self, JC_capitalize, out); }

FILTER(f_trim)
{
    UNUSED;
    qn_jstr s, chars;
    const bool given = qn_jv_given(a[0]) && a[0].type != JT_none;
    if (!qn_jv_text(x, self, &s) || (given && !as_str(x, a[0], "trim", &chars))) return false;
    if (!qn_jx_step(x, s.n / 256 + (given ? s.n / 64 * chars.n / 64 : 0))) return false;
    return qn_jv_str(x, qn_jstr_strip(s, given ? &chars : NULL, QN_JSTRIP_LEFT | QN_JSTRIP_RIGHT), out);
}

FILTER(f_string)
{
    UNUSED;
    qn_jstr s;
    return qn_jv_text(x, self, &s) && qn_jv_str(x, s, out);
}

FILTER(f_replace)
{
    UNUSED;
    qn_jstr s, old, with;
    i64 most = -1;
    if (!qn_jv_text(x, self, &s) || !qn_jv_text(x, a[0], &old) || !qn_jv_text(x, a[1], &with)) return false;
    if (a[2].type != JT_none && !as_int(x, a[2], "replace", -1, &most)) return false;
    return qn_jstr_replace(x, s, old, with, most, out);
}

FILTER(f_escape)
{
    UNUSED;
    static const char from[] = "&<>'\"";
    static const char *const to[] = { "&amp;", "&lt;", "&gt;", "&#39;", "&#34;" };
    qn_jbuild b = { 0 };
    qn_jstr s;
    if (!qn_jv_text(x, self, &s) || !qn_jx_step(x, s.n / 64)) return false;
    for (size_t i = 0; i < s.n; i++) {
        const char *hit = s.p[i] ? strchr(from, s.p[i]) : NULL;
        const bool marked = s.marks && s.marks[i];
        const char *text = hit ? to[hit - from] : &s.p[i];
        if (!qn_jbuild_bytes(x, &b, text, hit ? strlen(text) : 1, marked)) return false;
    }
    return qn_jbuild_value(x, &b, out);
}

/* Tags and comments go, runs of whitespace become one blank. */
FILTER(f_striptags)
{
    UNUSED;
    qn_jbuild b = { 0 };
    qn_jstr s, sep = QN_JLIT(" ");
    qn_jv words;
    if (!qn_jv_text(x, self, &s)) return false;
    for (size_t at = 0; at < s.n;) {
        const size_t lt = qn_jstr_find(s, QN_JLIT("<"), at);
        const bool comment = lt != (size_t)-1 && s.n - lt > 3 && memcmp(s.p + lt, "<!--", 4) == 0;
        const size_t gt = lt == (size_t)-1 ? lt : qn_jstr_find(s, comment ? QN_JLIT("-->") : QN_JLIT(">"), lt);
        const size_t end = gt == (size_t)-1 ? s.n : lt;
        if (!qn_jx_step(x, 1) || !qn_jbuild_put(x, &b, qn_jstr_part(s, at, end))) return false;
        at = gt == (size_t)-1 ? s.n : gt + (comment ? 3 : 1);
    }
    if (!qn_jstr_split(x, qn_jbuild_str(&b), NULL, -1, false, &words)) return false;
    qn_jbuild text = { 0 };
    for (size_t i = 0; i < words.l->n; i++)
        if ((i && !qn_jbuild_put(x, &text, sep)) || !qn_jbuild_put(x, &text, *words.l->at[i].s)) return false;
    return qn_jbuild_value(x, &text, out);
}

static bool indent_by(qn_jx *x, qn_jv width, qn_jstr *out)
{
    i64 n = 4;
    qn_jv v;
    if (width.type == JT_str) return *out = *width.s, true;
    if (!as_int(x, width, "indent", 4, &n)) return false;
    if (!qn_jv_str(x, QN_JLIT(" "), &v) || !qn_jx_binary(x, '*', v, qn_jv_int(n), &v)) return false;
    *out = *v.s;
    return true;
}

FILTER(f_indent)
{
    UNUSED;
    qn_jbuild b = { 0 };
    qn_jstr s, by;
    qn_jv lines;
    const bool first = qn_jv_truth(a[1]), blank = qn_jv_truth(a[2]);
    if (!as_str(x, self, "indent", &s) || !indent_by(x, a[0], &by) || !qn_jstr_lines(x, s, false, &lines)) return false;
    u32 last = 0;
    if (s.n) qn_jchar_before(s.p, s.n, &last);
    const bool open_end = !s.n || qn_jchar_line(last); /* jinja2 adds a newline before it splits: one more, empty line */
    const size_t n = lines.l->n + open_end;
    for (size_t i = 0; i < n; i++) {
        const qn_jstr line = i < lines.l->n ? *lines.l->at[i].s : QN_JLIT("");
        if (i && !qn_jbuild_put(x, &b, QN_JLIT("\n"))) return false;
        if ((i ? blank || line.n : first) && !qn_jbuild_put(x, &b, by)) return false;
        if (!qn_jbuild_put(x, &b, line)) return false;
    }
    return qn_jbuild_value(x, &b, out);
}

FILTER(f_wordcount)
{
    UNUSED;
    qn_jstr s;
    i64 n = 0;
    bool inside = false;
    if (!qn_jv_text(x, self, &s) || !qn_jx_step(x, s.n / 64)) return false;
    for (size_t at = 0; at < s.n;) {
        u32 cp;
        at += qn_jchar(s.p + at, s.n - at, &cp);
        const utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
        const bool word = cp == '_' || (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO) ||
                          (c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO);
        n += word && !inside;
        inside = word;
    }
    *out = qn_jv_int(n);
    return true;
}

FILTER(f_center)
{
    UNUSED;
    qn_jstr s;
    i64 width;
    if (!qn_jv_text(x, self, &s) || !as_int(x, a[0], "center", 80, &width)) return false;
    const i64 pad = width - (i64)qn_jstr_chars(s);
    if (pad <= 0) return qn_jv_str(x, s, out);
    if (pad > (i64)QN_TEMPLATE_OUTPUT) return qn_jx_fail(x, "center: a text of more than %u MiB", QN_TEMPLATE_OUTPUT >> 20);
    const i64 left = pad / 2 + (pad & width & 1); /* where Python puts the odd blank */
    qn_jbuild b = { 0 };
    for (i64 i = 0; i < left; i++)
        if (!qn_jbuild_put(x, &b, QN_JLIT(" "))) return false;
    if (!qn_jbuild_put(x, &b, s)) return false;
    for (i64 i = left; i < pad; i++)
        if (!qn_jbuild_put(x, &b, QN_JLIT(" "))) return false;
    return qn_jbuild_value(x, &b, out);
}

FILTER(f_truncate)
{
    UNUSED;
    qn_jstr s, end = QN_JLIT("...");
    i64 length, leeway;
    size_t n_self;
    if (!as_int(x, a[0], "truncate", 255, &length) || !as_int(x, a[3], "truncate", 5, &leeway)) return false;
    if (qn_jv_given(a[2]) && !as_str(x, a[2], "truncate", &end)) return false;
    const i64 n_end = (i64)qn_jstr_chars(end);
    if (length < n_end || leeway < 0) return qn_jx_fail(x, "truncate: a length of %lld is too small", (long long)length);
    if (!qn_jv_length(x, self, &n_self)) return false;
    const i64 n = (i64)n_self;
    if (n <= length || n - length <= leeway) return *out = self, true;
    if (!as_str(x, self, "truncate", &s)) return false;
    size_t cut = qn_jstr_offset(s, (size_t)(length - n_end));
    if (!qn_jv_truth(a[1])) {
        size_t blank;
        if (!qn_jstr_rfind(x, s, QN_JLIT(" "), cut, &blank)) return false;
        if (blank != (size_t)-1) cut = blank;
    }
    return qn_jx_concat(x, qn_jstr_part(s, 0, cut), end, out);
}

FILTER(f_format)
{
    UNUSED;
    qn_jstr s;
    qn_jv args;
    if (!qn_jv_text(x, self, &s)) return false;
    if (raw->n && raw->n_kw) return qn_jx_fail(x, "format: positional and named arguments at once");
    if (raw->n_kw) {
        if (!qn_jv_dict(x, JT_dict, raw->n_kw, &args)) return false;
        for (size_t i = 0; i < raw->n_kw; i++) {
            qn_jv key;
            if (!qn_jv_str(x, raw->kw[i].name, &key) || !qn_jdict_put(x, args.d, key, raw->kw[i].v)) return false;
        }
    } else {
        if (!qn_jv_list(x, JT_tuple, raw->n, &args)) return false;
        for (size_t i = 0; i < raw->n; i++) args.l->at[i] = raw->pos[i];
    }
    return qn_jformat_percent(x, s, args, out);
}

FILTER(f_tojson)
{
    UNUSED;
    qn_jjson how = { .ascii = qn_jv_truth(a[0]), .sort = qn_jv_truth(a[3]), .comma = QN_JLIT(", "), .colon = QN_JLIT(": ") };
    qn_jbuild b = { 0 };
    i64 width;
    if (qn_jv_given(a[1]) && a[1].type != JT_none) {
        how.pretty = true;
        how.comma = QN_JLIT(",");
        if (a[1].type == JT_str) how.indent = *a[1].s;
        else if (!as_int(x, a[1], "tojson", 0, &width) || !indent_by(x, qn_jv_int(width), &how.indent)) return false;
    }
    if (qn_jv_is_seq(a[2])) {
        if (a[2].l->n != 2 || !as_str(x, a[2].l->at[0], "tojson", &how.comma) ||
            !as_str(x, a[2].l->at[1], "tojson", &how.colon))
            return qn_jx_fail(x, "tojson: separators are two strings");
    }
    return qn_jv_json(x, &b, self, &how) && qn_jbuild_value(x, &b, out);
}

/* ---- numbers */

/* Python's int(text, base); false: not one. */
static bool read_int(qn_jstr s, i64 base, i64 *out)
{
    s = qn_jstr_strip(s, NULL, QN_JSTRIP_LEFT | QN_JSTRIP_RIGHT);
    size_t at = 0;
    const bool negative = s.n && s.p[0] == '-';
    if (s.n && (s.p[0] == '-' || s.p[0] == '+')) at++;
    const char tag = base == 16 ? 'x' : base == 8 ? 'o' : base == 2 ? 'b' : 0;
    if (tag && s.n > at + 2 && s.p[at] == '0' && (s.p[at + 1] | 32) == tag) at += 2;
    if (at >= s.n) return false;
    *out = 0;
    for (bool was_digit = false; at < s.n; at++) {
        const char c = s.p[at];
        if (c == '_' && was_digit && at + 1 < s.n) {
            was_digit = false;
            continue;
        }
        const int d = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'z' ? (c | 32) - 'a' + 10 : 99;
        if (d >= base || __builtin_mul_overflow(*out, base, out) || __builtin_add_overflow(*out, (i64)d, out)) return false;
        was_digit = true;
    }
    if (negative) *out = -*out;
    return true;
}

static bool read_float(qn_jstr s, double *out)
{
    char text[400];
    s = qn_jstr_strip(s, NULL, QN_JSTRIP_LEFT | QN_JSTRIP_RIGHT);
    const size_t sign = s.n && (s.p[0] == '-' || s.p[0] == '+');
    if (s.n - sign >= sizeof text || s.n == sign) return false;
    memcpy(text, s.p + sign, s.n - sign);
    text[s.n - sign] = 0;
    if (strcasecmp(text, "inf") == 0 || strcasecmp(text, "infinity") == 0) *out = INFINITY;
    else if (strcasecmp(text, "nan") == 0) *out = NAN;
    else if (text[0] == '-' || text[0] == '+' || !qn_parse_double(text, 0, DBL_MAX, out)) return false;
    if (sign && s.p[0] == '-') *out = -*out;
    return true;
}

FILTER(f_int)
{
    UNUSED;
    i64 i, base;
    double f = 0;
    bool ok = qn_jv_integer(self, &i);
    if (!as_int(x, a[1], "int", 10, &base)) return false;
    if (base < 2 || base > 36) return qn_jx_fail(x, "int: a base of %lld", (long long)base);
    if (!ok && self.type == JT_undef)
        return qn_jx_fail(x, "%.*s", self.s ? (int)self.s->n : 9, self.s ? self.s->p : "undefined");
    if (!ok && self.type == JT_str) ok = read_int(*self.s, base, &i);
    if (!ok && (self.type == JT_float ? (f = self.f, true) : self.type == JT_str && read_float(*self.s, &f))) {
        ok = fabs(f) < 9.2e18;
        i = ok ? (i64)f : 0;
    }
    *out = ok ? qn_jv_int(i) : qn_jv_given(a[0]) ? a[0] : qn_jv_int(0);
    out->marked |= ok && (self.marked || (self.type == JT_str && qn_jstr_marked(*self.s)));
    return true;
}

FILTER(f_float)
{
    UNUSED;
    double f;
    if (self.type == JT_undef) return qn_jx_fail(x, "%.*s", self.s ? (int)self.s->n : 9, self.s ? self.s->p : "undefined");
    const bool ok = qn_jv_number(self, &f) || (self.type == JT_str && read_float(*self.s, &f));
    *out = ok ? qn_jv_float(f) : qn_jv_given(a[0]) ? a[0] : qn_jv_float(0);
    out->marked |= ok && (self.marked || (self.type == JT_str && qn_jstr_marked(*self.s)));
    return true;
}

static bool round_common(qn_jx *x, qn_jv v, i64 places, qn_jv *out)
{
    double f;
    qn_jv_number(v, &f);
    if (v.type != JT_float && places >= 0) return *out = v, out->type = JT_int, true;
    if (!isfinite(f)) return *out = v, true;
    char text[400];
    if (places >= 0) {
        snprintf(text, sizeof text, "%.*f", (int)(places > 30 ? 30 : places), f);
        *out = qn_jv_float(strtod(text, NULL));
        return true;
    }
    const double scale = pow(10, (double)(places < -300 ? 300 : -places)), r = nearbyint(f / scale) * scale;
    if (v.type == JT_float) *out = qn_jv_float(r);
    else if (fabs(r) < 9.2e18) *out = qn_jv_int((i64)r);
    else return qn_jx_fail(x, "an integer out of range");
    return true;
}

FILTER(f_round)
{
    UNUSED;
    i64 places;
    double f;
    qn_jstr how = QN_JLIT("common");
    if (!qn_jv_number(self, &f))
        return qn_jx_fail(x, "round: a number was expected, not a value of type %s", qn_jv_type_name(self));
    if (self.type == JT_bool) self = qn_jv_int(self.b);
    if (!as_int(x, a[0], "round", 0, &places) || (qn_jv_given(a[1]) && !as_str(x, a[1], "round", &how))) return false;
    if (qn_jstr_is(how, "common")) {
        if (!round_common(x, self, places, out)) return false;
    } else if (qn_jstr_is(how, "ceil") || qn_jstr_is(how, "floor")) {
        const double scale = pow(10, (double)places), r = qn_jstr_is(how, "ceil") ? ceil(f * scale) : floor(f * scale);
        *out = qn_jv_float(r / scale);
    } else {
        return qn_jx_fail(x, "round: the method must be common, ceil or floor");
    }
    out->marked = self.marked;
    return true;
}

FILTER(f_abs)
{
    UNUSED;
    i64 i;
    if (self.type == JT_float) *out = qn_jv_float(fabs(self.f));
    else if (!qn_jv_integer(self, &i))
        return qn_jx_fail(x, "abs: a number was expected, not a value of type %s", qn_jv_type_name(self));
    else if (i == INT64_MIN) return qn_jx_fail(x, "an integer out of range");
    else *out = qn_jv_int(i < 0 ? -i : i);
    out->marked = self.marked;
    return true;
}

/* ---- any value */

FILTER(f_length)
{
    UNUSED;
    size_t n;
    if (!qn_jv_length(x, self, &n)) return false;
    *out = qn_jv_int((i64)n);
    return true;
}

FILTER(f_default)
{
    UNUSED;
    const bool use = qn_jv_is_undef(self) || (qn_jv_truth(a[1]) && !qn_jv_truth(self));
    *out = self;
    if (!use) return true;
    if (!qn_jv_given(a[0])) return qn_jv_str(x, QN_JLIT(""), out);
    *out = a[0];
    return true;
}

FILTER(f_attr)
{
    UNUSED;
    qn_jstr name;
    return qn_jv_text(x, a[0], &name) && qn_jx_attr_only(x, self, name, out);
}

const qn_jrow qn_jfilters_text[] = {
    { "abs", f_abs, "", 0 }, { "attr", f_attr, "name", 1 }, { "capitalize", f_capitalize, "", 0 },
    { "center", f_center, "width", 0 }, { "count", f_length, "", 0 }, { "d", f_default, "default_value boolean", 0 },
    { "default", f_default, "default_value boolean", 0 }, { "e", f_escape, "", 0 }, { "escape", f_escape, "", 0 },
    { "float", f_float, "default", 0 }, { "forceescape", f_escape, "", 0 }, { "format", f_format, NULL, 0 },
    { "indent", f_indent, "width first blank", 0 }, { "int", f_int, "default base", 0 },
    { "length", f_length, "", 0 }, { "lower", f_lower, "", 0 }, { "replace", f_replace, "old new count", 2 },
    { "round", f_round, "precision method", 0 }, { "safe", f_string, "", 0 }, { "string", f_string, "", 0 },
    { "striptags", f_striptags, "", 0 }, { "title", f_title, "", 0 },
    { "tojson", f_tojson, "ensure_ascii indent separators sort_keys", 0 }, { "trim", f_trim, "chars", 0 },
    { "truncate", f_truncate, "length killwords end leeway", 0 }, { "upper", f_upper, "", 0 },
    { "wordcount", f_wordcount, "", 0 }, { NULL, NULL, NULL, 0 } };

const qn_jrow *qn_jrow_find(const qn_jrow *rows, qn_jstr name)
{
    for (; rows->name; rows++)
        if (qn_jstr_is(name, rows->name)) return rows;
    return NULL;
}

const qn_jrow *qn_jfilter_find(qn_jstr name)
{
    const qn_jrow *row = qn_jrow_find(qn_jfilters_text, name);
    return row ? row : qn_jrow_find(qn_jfilters_list, name);
}
