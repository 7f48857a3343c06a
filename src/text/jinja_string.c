/* jinja_string.c - operations on text that never lose a mark: a part of a string is a view of its bytes and their marks, and
 * whatever is built anew copies both. Positions are bytes here; characters (as Python counts) are found by walking. */
#include "text/jinja.h"

#include <string.h>
#include <utf8proc.h>

#include "base/str.h"

/* ---- building */

static bool grow(qn_jx *x, qn_jbuild *b, size_t n)
{
    if (n > QN_TEMPLATE_OUTPUT - b->n) return qn_jx_fail(x, "a text of more than %u MiB", QN_TEMPLATE_OUTPUT >> 20);
    if (b->cap - b->n >= n) return true;
    size_t cap = b->cap ? b->cap : 48;
    while (cap < b->n + n) cap *= 2;
    char *p = qn_jx_new(x, cap);
    u8 *marks = p ? qn_jx_new(x, cap) : NULL;
    if (!marks) return false;
    if (b->n) {
        memcpy(p, b->p, b->n);
        memcpy(marks, b->marks, b->n);
    }
    b->p = p;
    b->marks = marks;
    b->cap = cap;
    return true;
}

bool qn_jbuild_put(qn_jx *x, qn_jbuild *b, qn_jstr s)
{
    if (!s.n) return true;
    if (!qn_jx_step(x, s.n / 256) || !grow(x, b, s.n)) return false;
    memcpy(b->p + b->n, s.p, s.n);
    if (s.marks) {
        memcpy(b->marks + b->n, s.marks, s.n);
        b->any = b->any || memchr(s.marks, 1, s.n);
    }
    b->n += s.n;
    return true;
}

bool qn_jbuild_bytes(qn_jx *x, qn_jbuild *b, const char *p, size_t n, bool marked)
{
    if (!n) return true;
    if (!qn_jx_step(x, n / 256) || !grow(x, b, n)) return false;
    memcpy(b->p + b->n, p, n);
    if (marked) memset(b->marks + b->n, 1, n);
    b->any |= marked;
    b->n += n;
    return true;
}

qn_jstr qn_jbuild_str(const qn_jbuild *b) { return (qn_jstr){ b->n ? b->p : "", b->any ? b->marks : NULL, b->n }; }

bool qn_jbuild_value(qn_jx *x, const qn_jbuild *b, qn_jv *out) { return qn_jv_str(x, qn_jbuild_str(b), out); }

/* ---- looking */

qn_jstr qn_jstr_part(qn_jstr s, size_t from, size_t to)
{
    return (qn_jstr){ s.p + from, s.marks ? s.marks + from : NULL, to - from };
}

bool qn_jstr_marked(qn_jstr s) { return s.marks && s.n && memchr(s.marks, 1, s.n); }
bool qn_jstr_is(qn_jstr s, const char *lit) { return strlen(lit) == s.n && memcmp(s.p, lit, s.n) == 0; }

size_t qn_jstr_find(qn_jstr s, qn_jstr what, size_t from)
{
    if (from > s.n) return (size_t)-1;
    if (!what.n) return from;
    const char *hit = memmem(s.p + from, s.n - from, what.p, what.n);
    return hit ? (size_t)(hit - s.p) : (size_t)-1;
}

/* The last occurrence that ends at or before `end`. Long needles pay for each comparison: this is not a linear search. */
bool qn_jstr_rfind(qn_jx *x, qn_jstr s, qn_jstr what, size_t end, size_t *out)
{
    *out = (size_t)-1;
    if (what.n > end) return true;
    for (size_t at = end - what.n + 1; at-- > 0 && *out == (size_t)-1;) {
        if (what.n && s.p[at] != what.p[0]) continue;
        if (!qn_jx_step(x, what.n / 64)) return false;
        if (memcmp(s.p + at, what.p, what.n) == 0) *out = at;
    }
    return true;
}

size_t qn_jchar(const char *p, size_t n, u32 *cp)
{
    if ((unsigned char)p[0] < 0x80) {
        *cp = (unsigned char)p[0];
        return 1;
    }
    const int len = qn_utf8_get(p, n, cp);
    if (len > 0) return (size_t)len;
    *cp = 0xFFFD;
    return 1;
}

size_t qn_jchar_before(const char *p, size_t n, u32 *cp)
{
    for (size_t k = 1; k <= 4 && k <= n; k++) {
        if (((unsigned char)p[n - k] & 0xC0) == 0x80) continue;
        if (qn_jchar(p + n - k, k, cp) == k) return k;
        break;
    }
    *cp = 0xFFFD;
    return 1;
}

/* Bytes of the leading run of ASCII, at most `most`: eight at a time, since nearly all text is that. */
static size_t ascii_run(const char *p, size_t n, size_t most)
{
    size_t at = 0;
    u64 eight;
    if (n > most) n = most;
    for (; n - at >= 8; at += 8) {
        memcpy(&eight, p + at, 8);
        if (eight & 0x8080808080808080u) return at;
    }
    return at;
}

size_t qn_jstr_offset(qn_jstr s, size_t chars)
{
    size_t at = 0;
    u32 cp;
    while (chars && at < s.n) {
        const size_t run = ascii_run(s.p + at, s.n - at, chars);
        at += run;
        chars -= run;
        if (chars && at < s.n) at += qn_jchar(s.p + at, s.n - at, &cp), chars--;
    }
    return at;
}

size_t qn_jstr_chars(qn_jstr s)
{
    size_t n = 0, run;
    u32 cp;
    for (size_t at = 0; at < s.n; n++) {
        run = ascii_run(s.p + at, s.n - at, s.n);
        at += run;
        n += run;
        if (at == s.n) break;
        at += qn_jchar(s.p + at, s.n - at, &cp);
    }
    return n;
}

bool qn_jchar_space(u32 cp)
{
    if (cp < 0x80) return cp == ' ' || (cp >= 9 && cp <= 13) || (cp >= 0x1c && cp <= 0x1f);
    return cp == 0x85 || cp == 0xA0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 || cp == 0x2029 ||
           cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

bool qn_jchar_line(u32 cp)
{
    return (cp >= 10 && cp <= 13) || (cp >= 0x1c && cp <= 0x1e) || cp == 0x85 || cp == 0x2028 || cp == 0x2029;
}

/* ---- parts */

static bool to_strip(u32 cp, const qn_jstr *chars)
{
    if (!chars) return qn_jchar_space(cp);
    u32 other;
    for (size_t at = 0; at < chars->n;) {
        at += qn_jchar(chars->p + at, chars->n - at, &other);
        if (other == cp) return true;
    }
    return false;
}

/* chars NULL: whitespace. */
qn_jstr qn_jstr_strip(qn_jstr s, const qn_jstr *chars, int sides)
{
    size_t from = 0, to = s.n, len;
    u32 cp;
    while ((sides & QN_JSTRIP_LEFT) && from < to && (len = qn_jchar(s.p + from, to - from, &cp), to_strip(cp, chars)))
        from += len;
    while ((sides & QN_JSTRIP_RIGHT) && to > from &&
           (len = qn_jchar_before(s.p + from, to - from, &cp), to_strip(cp, chars)))
        to -= len;
    return qn_jstr_part(s, from, to);
}

/* A list that grows while its length is not known. */
static bool push_part(qn_jx *x, qn_jv *list, size_t *cap, qn_jstr part)
{
    qn_jlist *l = list->l;
    if (!qn_jx_step(x, 1)) return false;
    if (l->n == *cap) {
        const size_t more = *cap ? *cap * 2 : 4;
        qn_jv *at = qn_jx_new(x, more * sizeof *at);
        if (!at) return false;
        if (l->n) memcpy(at, l->at, l->n * sizeof *at);
        l->at = at;
        *cap = more;
    }
    return qn_jv_str(x, part, &l->at[l->n++]);
}

static void reverse(qn_jlist *l)
{
    for (size_t i = 0, k = l->n; i + 1 < k; i++) {
        const qn_jv v = l->at[i];
        l->at[i] = l->at[--k];
        l->at[k] = v;
    }
}

static bool split_space(qn_jx *x, qn_jstr s, i64 most, qn_jv *list, size_t *cap)
{
    s = qn_jstr_strip(s, NULL, QN_JSTRIP_LEFT);
    while (s.n) {
        size_t end = 0, len;
        u32 cp;
        if (most-- == 0) return push_part(x, list, cap, s);
        while (end < s.n && (len = qn_jchar(s.p + end, s.n - end, &cp), !qn_jchar_space(cp))) end += len;
        if (!push_part(x, list, cap, qn_jstr_part(s, 0, end))) return false;
        s = qn_jstr_strip(qn_jstr_part(s, end, s.n), NULL, QN_JSTRIP_LEFT);
    }
    return true;
}

static bool rsplit_space(qn_jx *x, qn_jstr s, i64 most, qn_jv *list, size_t *cap)
{
    s = qn_jstr_strip(s, NULL, QN_JSTRIP_RIGHT);
    while (s.n) {
        size_t from = s.n, len;
        u32 cp;
        if (most-- == 0) {
            if (!push_part(x, list, cap, s)) return false;
            break;
        }
        while (from > 0 && (len = qn_jchar_before(s.p, from, &cp), !qn_jchar_space(cp))) from -= len;
        if (!push_part(x, list, cap, qn_jstr_part(s, from, s.n))) return false;
        s = qn_jstr_strip(qn_jstr_part(s, 0, from), NULL, QN_JSTRIP_RIGHT);
    }
    reverse(list->l);
    return true;
}

/* sep NULL: runs of whitespace. most < 0: no limit. */
bool qn_jstr_split(qn_jx *x, qn_jstr s, const qn_jstr *sep, i64 most, bool from_right, qn_jv *out)
{
    size_t cap = 0, at = 0, end = s.n, hit;
    if (!qn_jx_step(x, s.n / 256) || !qn_jv_list(x, JT_list, 0, out)) return false;
    if (!sep) return from_right ? rsplit_space(x, s, most, out, &cap) : split_space(x, s, most, out, &cap);
    if (!sep->n) return qn_jx_fail(x, "split: an empty separator");
    if (!from_right) {
        for (; most != 0 && (hit = qn_jstr_find(s, *sep, at)) != (size_t)-1; most--, at = hit + sep->n)
            if (!push_part(x, out, &cap, qn_jstr_part(s, at, hit))) return false;
        return push_part(x, out, &cap, qn_jstr_part(s, at, s.n));
    }
    for (; most != 0; most--, end = hit) {
        if (!qn_jstr_rfind(x, s, *sep, end, &hit)) return false;
        if (hit == (size_t)-1) break;
        if (!push_part(x, out, &cap, qn_jstr_part(s, hit + sep->n, end))) return false;
    }
    if (!push_part(x, out, &cap, qn_jstr_part(s, 0, end))) return false;
    reverse(out->l);
    return true;
}

bool qn_jstr_lines(qn_jx *x, qn_jstr s, bool keep_ends, qn_jv *out)
{
    size_t cap = 0, from = 0;
    if (!qn_jx_step(x, s.n / 256) || !qn_jv_list(x, JT_list, 0, out)) return false;
    for (size_t at = 0, len; at < s.n; at += len) {
        u32 cp;
        len = qn_jchar(s.p + at, s.n - at, &cp);
        if (!qn_jchar_line(cp)) continue;
        if (cp == '\r' && at + 1 < s.n && s.p[at + 1] == '\n') len = 2;
        if (!push_part(x, out, &cap, qn_jstr_part(s, from, keep_ends ? at + len : at))) return false;
        from = at + len;
    }
    return from == s.n || push_part(x, out, &cap, qn_jstr_part(s, from, s.n));
}

/* ---- making anew */

/* most < 0: all. An empty `old` stands between any two characters, as in Python. */
bool qn_jstr_replace(qn_jx *x, qn_jstr s, qn_jstr old, qn_jstr with, i64 most, qn_jv *out)
{
    qn_jbuild b = { 0 };
    size_t at = 0, hit;
    if (!qn_jx_step(x, s.n / 256)) return false;
    if (old.n) {
        for (; most != 0 && (hit = qn_jstr_find(s, old, at)) != (size_t)-1; most--, at = hit + old.n)
            if (!qn_jx_step(x, 1) || !qn_jbuild_put(x, &b, qn_jstr_part(s, at, hit)) || !qn_jbuild_put(x, &b, with))
                return false;
        if (!at) return qn_jv_str(x, s, out);
    } else {
        for (; most != 0; most--) {
            u32 cp;
            if (!qn_jx_step(x, 1) || !qn_jbuild_put(x, &b, with)) return false;
            if (at == s.n) break;
            const size_t len = qn_jchar(s.p + at, s.n - at, &cp);
            if (!qn_jbuild_put(x, &b, qn_jstr_part(s, at, at + len))) return false;
            at += len;
        }
    }
    return qn_jbuild_put(x, &b, qn_jstr_part(s, at, s.n)) && qn_jbuild_value(x, &b, out);
}

static bool put_char(qn_jx *x, qn_jbuild *b, u32 cp, bool marked)
{
    char utf8[4];
    const int n = qn_utf8_put(cp, utf8);
    return qn_jbuild_bytes(x, b, utf8, n > 0 ? (size_t)n : 0, marked);
}

static bool is_cased(u32 cp)
{
    const utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LL || c == UTF8PROC_CATEGORY_LT;
}

/* Whether this character is to be upper case: +1, lower: -1. before: the character before it, 0 at the start. */
static int direction(qn_jcase how, u32 cp, u32 before, bool first)
{
    switch (how) {
    case JC_upper: return 1;
    case JC_lower: return -1;
    case JC_capitalize: return first ? 1 : -1;
    case JC_swap: return utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_LU ? -1 : 1;
    case JC_title: return is_cased(before) ? -1 : 1;
    default: break; /* the title filter */
    }
    return first || qn_jchar_space(before) || strchr("-({[<", before < 128 ? (int)before : 'x') ? 1 : -1;
}

bool qn_jstr_case(qn_jx *x, qn_jstr s, qn_jcase how, qn_jv *out)
{
    qn_jbuild b = { 0 };
    u32 before = 0;
    if (!qn_jx_step(x, s.n / 16)) return false;
    for (size_t at = 0, len; at < s.n; at += len) {
        u32 cp;
        len = qn_jchar(s.p + at, s.n - at, &cp);
        const bool marked = qn_jstr_marked(qn_jstr_part(s, at, at + len));
        const int up = direction(how, cp, before, at == 0);
        const utf8proc_int32_t c = (utf8proc_int32_t)cp;
        const u32 to = (u32)(up < 0                              ? utf8proc_tolower(c)
                             : how == JC_upper || how == JC_swap ? utf8proc_toupper(c)
                                                                 : utf8proc_totitle(c));
        bool ok;
        if (up > 0 && cp == 0xDF)
            ok = qn_jbuild_bytes(x, &b, how == JC_upper || how == JC_swap ? "SS" : "Ss", 2, marked); /* sharp s */
        else if (to == cp) ok = qn_jbuild_put(x, &b, qn_jstr_part(s, at, at + len)); /* broken bytes stay as they are */
        else ok = put_char(x, &b, to, marked);
        if (!ok) return false;
        before = cp;
    }
    return qn_jbuild_value(x, &b, out);
}
