/* jinja_methods.c - methods of strings, dictionaries, lists and `loop`, as Python has them. Those that would change their
 * object are not here: jinja_access.c refuses them by name. */
#include "text/jinja.h"

#include <string.h>
#include <utf8proc.h>

#define METHOD(name) static bool name(qn_jx *x, qn_jv self, const qn_jargs *raw, const qn_jv *a, qn_jv *out)
#define UNUSED (void)x, (void)self, (void)raw, (void)a

static bool need_str(qn_jx *x, qn_jv v, qn_jstr *out)
{
    *out = QN_JLIT("");
    if (v.type != JT_str) return qn_jx_fail(x, "a string was expected, not a value of type %s", qn_jv_type_name(v));
    *out = *v.s;
    return true;
}

static bool need_int(qn_jx *x, qn_jv v, i64 missing, i64 *out)
{
    *out = missing;
    if (!qn_jv_given(v)) return true;
    return qn_jv_integer(v, out) || qn_jx_fail(x, "an integer was expected, not a value of type %s", qn_jv_type_name(v));
}

static bool is_given(qn_jv v) { return qn_jv_given(v) && v.type != JT_none; }

/* ---- strings: case and ends */

METHOD(m_upper) { UNUSED; return qn_jstr_case(x, *self.s, JC_upper, out); }
METHOD(m_lower) { UNUSED; return qn_jstr_case(x, *self.s, JC_lower, out); }
METHOD(m_title) { UNUSED; return qn_jstr_case(x, *self.s, JC_title, out); }
METHOD(m_capitalize) { UNUSED; return qn_jstr_case(x, *self.s, JC_capitalize, out); }
METHOD(m_swapcase) { UNUSED; return qn_jstr_case(x, *self.s, JC_swap, out); }

static bool strip(qn_jx *x, qn_jstr s, qn_jv what, int sides, qn_jv *out)
{
    qn_jstr chars;
    if (is_given(what) && !need_str(x, what, &chars)) return false;
    if (!qn_jx_step(x, s.n / 256 + (is_given(what) ? s.n / 64 * chars.n / 64 : 0))) return false;
    return qn_jv_str(x, qn_jstr_strip(s, is_given(what) ? &chars : NULL, sides), out);
}

METHOD(m_strip) { UNUSED; return strip(x, *self.s, a[0], QN_JSTRIP_LEFT | QN_JSTRIP_RIGHT, out); }
METHOD(m_lstrip) { UNUSED; return strip(x, *self.s, a[0], QN_JSTRIP_LEFT, out); }
METHOD(m_rstrip) { UNUSED; return strip(x, *self.s, a[0], QN_JSTRIP_RIGHT, out); }

static bool begins(qn_jstr s, qn_jstr with) { return with.n <= s.n && memcmp(s.p, with.p, with.n) == 0; }
static bool ends(qn_jstr s, qn_jstr with) { return with.n <= s.n && memcmp(s.p + s.n - with.n, with.p, with.n) == 0; }

METHOD(m_removeprefix)
{
    UNUSED;
    qn_jstr what;
    if (!need_str(x, a[0], &what)) return false;
    return qn_jv_str(x, begins(*self.s, what) ? qn_jstr_part(*self.s, what.n, self.s->n) : *self.s, out);
}

METHOD(m_removesuffix)
{
    UNUSED;
    qn_jstr what;
    if (!need_str(x, a[0], &what)) return false;
    return qn_jv_str(x, ends(*self.s, what) ? qn_jstr_part(*self.s, 0, self.s->n - what.n) : *self.s, out);
}

/* The part of s that optional start and end (in characters) leave, and how many characters come before it. */
static bool window(qn_jx *x, qn_jv self, qn_jv start, qn_jv end, qn_jstr *out, i64 *before)
{
    const qn_jv part[3] = { qn_jv_given(start) ? start : qn_jv_none(), qn_jv_given(end) ? end : qn_jv_none(), qn_jv_none() };
    qn_jv v;
    *out = *self.s;
    *before = 0;
    if (part[0].type == JT_none && part[1].type == JT_none) return true;
    if (!qn_jx_slice(x, self, part, &v)) return false;
    *out = *v.s;
    *before = v.s->n ? (i64)qn_jstr_chars(qn_jstr_part(*self.s, 0, (size_t)(v.s->p - self.s->p))) : 0;
    return true;
}

/* startswith and endswith: one string or a tuple of them. */
static bool edge(qn_jx *x, qn_jv self, const qn_jv *a, bool (*fits)(qn_jstr, qn_jstr), qn_jv *out)
{
    qn_jstr s, what;
    i64 before;
    bool yes = false;
    if (!window(x, self, a[1], a[2], &s, &before)) return false;
    if (a[0].type == JT_tuple) {
        for (size_t i = 0; i < a[0].l->n && !yes; i++) {
            if (!need_str(x, a[0].l->at[i], &what)) return false;
            yes = fits(s, what);
        }
    } else {
        if (!need_str(x, a[0], &what)) return false;
        yes = fits(s, what);
    }
    *out = qn_jv_bool(yes);
    return true;
}

METHOD(m_startswith) { UNUSED; return edge(x, self, a, begins, out); }
METHOD(m_endswith) { UNUSED; return edge(x, self, a, ends, out); }

/* ---- strings: search */

static bool search(qn_jx *x, qn_jv self, const qn_jv *a, bool last, bool must, qn_jv *out)
{
    qn_jstr s, what;
    i64 before;
    size_t at;
    if (!need_str(x, a[0], &what) || !window(x, self, a[1], a[2], &s, &before) || !qn_jx_step(x, s.n / 256)) return false;
    if (!last) at = qn_jstr_find(s, what, 0);
    else if (!qn_jstr_rfind(x, s, what, s.n, &at)) return false;
    if (at == (size_t)-1 && must) return qn_jx_fail(x, "substring not found");
    *out = qn_jv_int(at == (size_t)-1 ? -1 : before + (i64)qn_jstr_chars(qn_jstr_part(s, 0, at)));
    return true;
}

METHOD(m_find) { UNUSED; return search(x, self, a, false, false, out); }
METHOD(m_rfind) { UNUSED; return search(x, self, a, true, false, out); }
METHOD(m_index) { UNUSED; return search(x, self, a, false, true, out); }
METHOD(m_rindex) { UNUSED; return search(x, self, a, true, true, out); }

METHOD(m_count)
{
    UNUSED;
    qn_jstr s, what;
    i64 before, n = 0;
    if (!need_str(x, a[0], &what) || !window(x, self, a[1], a[2], &s, &before) || !qn_jx_step(x, s.n / 256)) return false;
    if (!what.n) n = (i64)qn_jstr_chars(s) + 1;
    else
        for (size_t at = 0; (at = qn_jstr_find(s, what, at)) != (size_t)-1; at += what.n, n++)
            if (!qn_jx_step(x, 1)) return false;
    *out = qn_jv_int(n);
    return true;
}

METHOD(m_replace)
{
    UNUSED;
    qn_jstr old, with;
    i64 most;
    if (!need_str(x, a[0], &old) || !need_str(x, a[1], &with) || !need_int(x, a[2], -1, &most)) return false;
    return qn_jstr_replace(x, *self.s, old, with, most, out);
}

/* ---- strings: apart and together */

static bool split(qn_jx *x, qn_jv self, const qn_jv *a, bool from_right, qn_jv *out)
{
    qn_jstr sep;
    i64 most;
    if (is_given(a[0]) && !need_str(x, a[0], &sep)) return false;
    if (!need_int(x, a[1], -1, &most)) return false;
    return qn_jstr_split(x, *self.s, is_given(a[0]) ? &sep : NULL, most, from_right, out);
}

METHOD(m_split) { UNUSED; return split(x, self, a, false, out); }
METHOD(m_rsplit) { UNUSED; return split(x, self, a, true, out); }
METHOD(m_splitlines) { UNUSED; return qn_jstr_lines(x, *self.s, qn_jv_truth(a[0]), out); }

static bool partition(qn_jx *x, qn_jstr s, qn_jv by, bool last, qn_jv *out)
{
    qn_jstr sep;
    size_t at;
    if (!need_str(x, by, &sep) || !qn_jx_step(x, s.n / 256)) return false;
    if (!sep.n) return qn_jx_fail(x, "partition: an empty separator");
    if (!last) at = qn_jstr_find(s, sep, 0);
    else if (!qn_jstr_rfind(x, s, sep, s.n, &at)) return false;
    const bool hit = at != (size_t)-1;
    const qn_jstr empty = QN_JLIT("");
    const qn_jstr part[3] = { hit ? qn_jstr_part(s, 0, at) : last ? empty : s, hit ? qn_jstr_part(s, at, at + sep.n) : empty,
                              hit ? qn_jstr_part(s, at + sep.n, s.n) : last ? s : empty };
    if (!qn_jv_list(x, JT_tuple, 3, out)) return false;
    for (int i = 0; i < 3; i++)
        if (!qn_jv_str(x, part[i], &out->l->at[i])) return false;
    return true;
}

METHOD(m_partition) { UNUSED; return partition(x, *self.s, a[0], false, out); }
METHOD(m_rpartition) { UNUSED; return partition(x, *self.s, a[0], true, out); }

METHOD(m_join)
{
    UNUSED;
    qn_jlist *items;
    qn_jbuild b = { 0 };
    if (!qn_jv_items(x, a[0], &items)) return false;
    for (size_t i = 0; i < items->n; i++) {
        qn_jstr s;
        if (!need_str(x, items->at[i], &s) || (i && !qn_jbuild_put(x, &b, *self.s)) || !qn_jbuild_put(x, &b, s))
            return false;
    }
    return qn_jbuild_value(x, &b, out);
}

METHOD(m_format) { UNUSED; return qn_jformat_braces(x, *self.s, raw, out); }

static bool pad(qn_jx *x, qn_jv self, const qn_jv *a, bool left, qn_jv *out)
{
    qn_jstr fill = QN_JLIT(" ");
    qn_jbuild b = { 0 };
    i64 width;
    if (!need_int(x, a[0], 0, &width) || (qn_jv_given(a[1]) && !need_str(x, a[1], &fill))) return false;
    if (qn_jstr_chars(fill) != 1) return qn_jx_fail(x, "the fill must be one character");
    const i64 n = width - (i64)qn_jstr_chars(*self.s);
    if (n > (i64)QN_TEMPLATE_OUTPUT) return qn_jx_fail(x, "a text of more than %u MiB", QN_TEMPLATE_OUTPUT >> 20);
    if (!left && !qn_jbuild_put(x, &b, *self.s)) return false;
    for (i64 i = 0; i < n; i++)
        if (!qn_jbuild_put(x, &b, fill)) return false;
    if (left && !qn_jbuild_put(x, &b, *self.s)) return false;
    return qn_jbuild_value(x, &b, out);
}

METHOD(m_ljust) { UNUSED; return pad(x, self, a, false, out); }
METHOD(m_rjust) { UNUSED; return pad(x, self, a, true, out); }

METHOD(m_zfill)
{
    UNUSED;
    const bool sign = self.s->n && (self.s->p[0] == '-' || self.s->p[0] == '+');
    qn_jv rest, zero, width = a[0];
    i64 n;
    if (!need_int(x, a[0], 0, &n)) return false;
    width = qn_jv_int(n < INT64_MIN + 1 ? n : n - sign);
    if (!qn_jv_str(x, qn_jstr_part(*self.s, sign, self.s->n), &rest) || !qn_jv_str(x, QN_JLIT("0"), &zero)) return false;
    const qn_jv args[2] = { width, zero };
    if (!pad(x, rest, args, true, out)) return false;
    return !sign || qn_jx_concat(x, qn_jstr_part(*self.s, 0, 1), *out->s, out);
}

/* ---- strings: what they are made of */

static bool every(qn_jx *x, qn_jstr s, bool (*fits)(u32 cp, utf8proc_category_t c), qn_jv *out)
{
    bool yes = s.n != 0;
    if (!qn_jx_step(x, s.n / 64)) return false;
    for (size_t at = 0; at < s.n && yes;) {
        u32 cp;
        at += qn_jchar(s.p + at, s.n - at, &cp);
        yes = fits(cp, utf8proc_category((utf8proc_int32_t)cp));
    }
    *out = qn_jv_bool(yes);
    return true;
}

static bool is_letter(u32 cp, utf8proc_category_t c)
{
    return (void)cp, c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}
static bool is_decimal(u32 cp, utf8proc_category_t c) { return (void)cp, c == UTF8PROC_CATEGORY_ND; }
static bool is_number(u32 cp, utf8proc_category_t c)
{
    return (void)cp, c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO;
}
static bool is_alnum(u32 cp, utf8proc_category_t c) { return is_letter(cp, c) || is_number(cp, c); }
static bool is_blank(u32 cp, utf8proc_category_t c) { return (void)c, qn_jchar_space(cp); }
static bool is_ascii(u32 cp, utf8proc_category_t c) { return (void)c, cp < 128; }

METHOD(m_isalpha) { UNUSED; return every(x, *self.s, is_letter, out); }
METHOD(m_isalnum) { UNUSED; return every(x, *self.s, is_alnum, out); }
METHOD(m_isdigit) { UNUSED; return every(x, *self.s, is_decimal, out); }
METHOD(m_isnumeric) { UNUSED; return every(x, *self.s, is_number, out); }
METHOD(m_isspace) { UNUSED; return every(x, *self.s, is_blank, out); }

METHOD(m_isascii)
{
    UNUSED;
    if (self.s->n) return every(x, *self.s, is_ascii, out);
    *out = qn_jv_bool(true);
    return true;
}

static bool by_test(qn_jx *x, qn_jv self, const char *name, qn_jv *out)
{
    const qn_jargs none = { 0 };
    return qn_jx_call_row(x, qn_jrow_find(qn_jtests, (qn_jstr){ name, NULL, strlen(name) }), self, &none, out);
}

METHOD(m_islower) { UNUSED; return by_test(x, self, "lower", out); }
METHOD(m_isupper) { UNUSED; return by_test(x, self, "upper", out); }

const qn_jrow qn_jmethods_str[] = {
    { "capitalize", m_capitalize, "", 0 }, { "casefold", m_lower, "", 0 }, { "count", m_count, "sub start end /", 1 },
    { "endswith", m_endswith, "suffix start end /", 1 }, { "find", m_find, "sub start end /", 1 },
    { "format", m_format, NULL, 0 }, { "index", m_index, "sub start end /", 1 }, { "isalnum", m_isalnum, "", 0 },
    { "isalpha", m_isalpha, "", 0 }, { "isascii", m_isascii, "", 0 }, { "isdecimal", m_isdigit, "", 0 },
    { "isdigit", m_isdigit, "", 0 }, { "islower", m_islower, "", 0 }, { "isnumeric", m_isnumeric, "", 0 },
    { "isspace", m_isspace, "", 0 }, { "isupper", m_isupper, "", 0 }, { "join", m_join, "iterable /", 1 },
    { "ljust", m_ljust, "width fillchar /", 1 }, { "lower", m_lower, "", 0 }, { "lstrip", m_lstrip, "chars /", 0 },
    { "partition", m_partition, "sep /", 1 }, { "removeprefix", m_removeprefix, "prefix /", 1 },
    { "removesuffix", m_removesuffix, "suffix /", 1 }, { "replace", m_replace, "old new count /", 2 },
    { "rfind", m_rfind, "sub start end /", 1 }, { "rindex", m_rindex, "sub start end /", 1 },
    { "rjust", m_rjust, "width fillchar /", 1 }, { "rpartition", m_rpartition, "sep /", 1 },
    { "rsplit", m_rsplit, "sep maxsplit", 0 }, { "rstrip", m_rstrip, "chars /", 0 },
    { "split", m_split, "sep maxsplit", 0 }, { "splitlines", m_splitlines, "keepends", 0 },
    { "startswith", m_startswith, "prefix start end /", 1 }, { "strip", m_strip, "chars /", 0 },
    { "swapcase", m_swapcase, "", 0 }, { "title", m_title, "", 0 }, { "upper", m_upper, "", 0 },
    { "zfill", m_zfill, "width /", 1 }, { NULL, NULL, NULL, 0 } };

/* ---- dictionaries */

enum { VIEW_items, VIEW_keys, VIEW_values };

static bool view(qn_jx *x, qn_jv self, u8 which, qn_jv *out)
{
    const qn_jdict *d = self.d;
    if (!qn_jv_list(x, JT_view, d->n, out)) return false;
    out->sub = which;
    out->marked = self.marked;
    for (size_t i = 0; i < d->n; i++) {
        qn_jv *to = &out->l->at[i];
        if (which == VIEW_keys) *to = d->keys[i];
        else if (which == VIEW_values) *to = d->vals[i];
        else {
            if (!qn_jv_list(x, JT_tuple, 2, to)) return false;
            to->l->at[0] = d->keys[i];
            to->l->at[1] = d->vals[i];
            to->marked = self.marked;
        }
    }
    return true;
}

METHOD(m_items) { UNUSED; return view(x, self, VIEW_items, out); }
METHOD(m_keys) { UNUSED; return view(x, self, VIEW_keys, out); }
METHOD(m_values) { UNUSED; return view(x, self, VIEW_values, out); }

METHOD(m_get)
{
    UNUSED;
    qn_jv *hit;
    if (!qn_jdict_get(x, self.d, a[0], &hit)) return false;
    *out = hit ? *hit : qn_jv_given(a[1]) ? a[1] : qn_jv_none();
    return true;
}

METHOD(m_copy) { UNUSED; return *out = self, true; } /* nothing can change it, so it is its own copy */

const qn_jrow qn_jmethods_dict[] = {
    { "copy", m_copy, "", 0 }, { "get", m_get, "key default /", 1 }, { "items", m_items, "", 0 },
    { "keys", m_keys, "", 0 }, { "values", m_values, "", 0 }, { NULL, NULL, NULL, 0 } };

/* ---- lists and tuples */

METHOD(m_list_count)
{
    UNUSED;
    i64 n = 0;
    for (size_t i = 0; i < self.l->n; i++) {
        bool same;
        if (!qn_jv_equal(x, self.l->at[i], a[0], &same)) return false;
        n += same;
    }
    *out = qn_jv_int(n);
    return true;
}

METHOD(m_list_index)
{
    UNUSED;
    for (size_t i = 0; i < self.l->n; i++) {
        bool same;
        if (!qn_jv_equal(x, self.l->at[i], a[0], &same)) return false;
        if (same) return *out = qn_jv_int((i64)i), true;
    }
    return qn_jx_fail(x, "the value is not in the list");
}

const qn_jrow qn_jmethods_list[] = {
    { "copy", m_copy, "", 0 }, { "count", m_list_count, "value /", 1 }, { "index", m_list_index, "value /", 1 },
    { NULL, NULL, NULL, 0 } };

/* ---- loop */

METHOD(m_cycle)
{
    UNUSED;
    if (!raw->n) return qn_jx_fail(x, "loop.cycle: no items for cycling given");
    *out = raw->pos[self.loop->i % raw->n];
    return true;
}

METHOD(m_changed)
{
    UNUSED;
    qn_jv now;
    bool same = false;
    if (!qn_jv_list(x, JT_tuple, raw->n, &now)) return false;
    for (size_t i = 0; i < raw->n; i++) now.l->at[i] = raw->pos[i];
    if (self.loop->has_changed && !qn_jv_equal(x, self.loop->last_changed, now, &same)) return false;
    self.loop->last_changed = now;
    self.loop->has_changed = true;
    *out = qn_jv_bool(!same);
    return true;
}

const qn_jrow qn_jmethods_loop[] = {
    { "changed", m_changed, NULL, 0 }, { "cycle", m_cycle, NULL, 0 }, { NULL, NULL, NULL, 0 } };
