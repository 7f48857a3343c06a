/* jinja_literal.c - strings and numbers of a template's source as constant nodes: Python's escapes, adjacent strings joined,
 * digits with underscores. A number that does not fit is refused, not rounded. */
#include "text/jinja.h"

#include <float.h>
#include <string.h>

#include "base/str.h"

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    const char k = (char)(c | 32);
    return k >= 'a' && k <= 'f' ? k - 'a' + 10 : -1;
}

/* The character of an escape whose letter stands at s[0]; *used: bytes it took. False: no escape, the backslash stays. */
static bool read_escape(const char *s, size_t n, u32 *cp, size_t *used)
{
    static const char letters[] = "\\'\"abfnrtv", values[] = "\\'\"\a\b\f\n\r\t\v";
    const char *hit = s[0] ? strchr(letters, s[0]) : NULL;
    *used = 1;
    if (hit) {
        *cp = (u32)values[hit - letters];
        return true;
    }
    *cp = 0;
    if (s[0] >= '0' && s[0] <= '7') {
        size_t k = 0;
        for (; k < 3 && k < n && s[k] >= '0' && s[k] <= '7'; k++) *cp = *cp * 8 + (u32)(s[k] - '0');
        *used = k;
        return true;
    }
    const size_t want = s[0] == 'x' ? 2 : s[0] == 'u' ? 4 : s[0] == 'U' ? 8 : 0;
    if (!want || want >= n) return false;
    for (size_t i = 1; i <= want; i++) {
        if (hex(s[i]) < 0) return false;
        *cp = *cp << 4 | (u32)hex(s[i]);
    }
    *used = want + 1;
    return true;
}

/* Two escapes \ud83d\ude00 are one character. */
static void join_surrogates(const char *s, size_t n, u32 *cp, size_t *used)
{
    u32 low;
    size_t k;
    if (*cp < 0xD800 || *cp > 0xDBFF || *used + 1 >= n || s[*used] != '\\') return;
    if (!read_escape(s + *used + 1, n - *used - 1, &low, &k) || low < 0xDC00 || low > 0xDFFF) return;
    *cp = 0x10000 + ((*cp - 0xD800) << 10) + (low - 0xDC00);
    *used += 1 + k;
}

static size_t decode(const char *s, size_t n, char *out)
{
    size_t k = 0;
    for (size_t i = 0; i < n;) {
        u32 cp;
        size_t used;
        if (s[i] != '\\' || i + 1 >= n) {
            out[k++] = s[i++];
        } else if (s[i + 1] == '\n') {
            i += 2;
        } else if (read_escape(s + i + 1, n - i - 1, &cp, &used)) {
            join_surrogates(s + i + 1, n - i - 1, &cp, &used);
            char utf8[4];
            int len = qn_utf8_put(cp, utf8);
            if (len <= 0) len = qn_utf8_put(0xFFFD, utf8);
            memcpy(out + k, utf8, (size_t)len); /* never longer than the escape: \U takes 10 bytes, \x80 makes 2 of 4 */
            k += (size_t)len;
            i += 1 + used;
        } else {
            out[k++] = s[i++];
        }
    }
    return k;
}

/* One string, or several in a row, which are one. */
qn_jnode *qn_jparse_string(qn_jparse *p)
{
    qn_jnode *n = qn_jparse_node(p, JN_const, p->cur.pos);
    qn_jstr *s = n ? qn_arena_new(&p->t->mem, sizeof *s, p->e) : NULL;
    if (!s) return NULL;
    size_t have = 0;
    char *text = NULL;
    while (p->cur.type == JK_string) {
        char *more = qn_arena_new(&p->t->mem, have + p->cur.n + 1, p->e);
        if (!more) return NULL;
        if (have) memcpy(more, text, have);
        have += decode(p->cur.p, p->cur.n, more + have);
        text = more;
        if (have > QN_TEMPLATE_SOURCE / 4 && p->ahead.type == JK_string) {
            qn_jparse_fail(p, p->cur.pos, "a string of too many parts");
            return NULL;
        }
        if (!qn_jparse_advance(p)) return NULL;
    }
    *s = (qn_jstr){ text, NULL, have };
    n->value = (qn_jv){ .type = JT_str, .s = s };
    return n;
}

static bool read_int(const char *s, i64 *out)
{
    const int base = s[0] != '0' || !s[1] ? 10
                     : (s[1] | 32) == 'x' ? 16
                     : (s[1] | 32) == 'o' ? 8
                     : (s[1] | 32) == 'b' ? 2
                                          : 10;
    *out = 0;
    for (s += base == 10 ? 0 : 2; *s; s++) {
        const int d = hex(*s);
        if (d < 0 || d >= base) return false;
        if (__builtin_mul_overflow(*out, (i64)base, out) || __builtin_add_overflow(*out, (i64)d, out)) return false;
    }
    return true;
}

qn_jnode *qn_jparse_number(qn_jparse *p)
{
    qn_jnode *n = qn_jparse_node(p, JN_const, p->cur.pos);
    if (!n) return NULL;
    char text[400];
    size_t k = 0;
    for (size_t i = 0; i < p->cur.n && k < sizeof text - 1; i++)
        if (p->cur.p[i] != '_') text[k++] = p->cur.p[i];
    text[k] = 0;
    i64 i;
    double f;
    bool ok;
    if (p->cur.type == JK_float) {
        ok = qn_parse_double(text, 0, DBL_MAX, &f);
        n->value = qn_jv_float(ok ? f : 0);
    } else {
        ok = read_int(text, &i);
        n->value = qn_jv_int(ok ? i : 0);
    }
    if (!ok) {
        qn_jparse_fail(p, p->cur.pos, "the number %.40s is out of range", text);
        return NULL;
    }
    return qn_jparse_advance(p) ? n : NULL;
}
