/* unicode.c - characters out of any bytes, byte-level spelling, normal forms. The property tables are utf8proc's; sorting the
 * marks of one character is done here, because utf8proc does it by insertion, which a long run of marks makes quadratic. */
#include "text/unicode.h"

#include <string.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "base/str.h"

size_t qn_char_next(const char *s, size_t n, u32 *cp)
{
    const int len = qn_utf8_get(s, n, cp);
    if (len > 0) return (size_t)len;
    *cp = QN_BAD_BYTE;
    return 1;
}

size_t qn_char_prev(const char *s, size_t n, u32 *cp)
{
    for (size_t len = 1; len <= 4 && len <= n; len++) {
        if (qn_utf8_get(s + n - len, len, cp) == (int)len) return len;
    }
    *cp = QN_BAD_BYTE;
    return 1;
}

size_t qn_char_count(const char *s, size_t n)
{
    size_t count = 0;
    u32 cp;
    for (size_t i = 0; i < n; count++) i += qn_char_next(s + i, n - i, &cp);
    return count;
}

bool qn_is_space(u32 cp)
{
    if (cp < 0x80) return cp == ' ' || (cp >= 9 && cp <= 13);
    return cp == 0x85 || cp == 0xA0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 || cp == 0x2029 ||
           cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

static int category(u32 cp) { return cp > 0x10FFFF ? UTF8PROC_CATEGORY_CN : (int)utf8proc_category((i32)cp); }

bool qn_is_word(u32 cp)
{
    const int c = category(cp);
    const bool joiner = cp == 0x200C || cp == 0x200D;
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NL) || c == UTF8PROC_CATEGORY_PC || joiner;
}

bool qn_is_mark(u32 cp)
{
    const int c = category(cp);
    return c >= UTF8PROC_CATEGORY_MN && c <= UTF8PROC_CATEGORY_ME;
}

/* ---- byte-level spelling: bytes that are visible in Latin-1 spell themselves, the other 68 follow from U+0100 */

static bool is_visible(u32 b) { return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE; }

u32 qn_byte_to_char(u8 byte)
{
    if (is_visible(byte)) return byte;
    if (byte <= 0x20) return 0x100u + byte;
    if (byte <= 0xA0) return 0x121u + (byte - 0x7Fu);
    return 0x143u; /* 0xAD */
}

int qn_char_to_byte(u32 cp)
{
    if (cp < 0x100) return is_visible(cp) ? (int)cp : -1;
    if (cp <= 0x120) return (int)(cp - 0x100);
    if (cp <= 0x142) return (int)(cp - 0x121 + 0x7F);
    return cp == 0x143 ? 0xAD : -1;
}

void qn_bytes_spell(qn_buf *out, const char *s, size_t n)
{
    size_t most;
    char *at = qn_mul(n, 2, &most) ? qn_buf_room(out, most) : NULL;
    if (!at) {
        out->failed = true;
        return;
    }
    char *p = at;
    for (size_t i = 0; i < n; i++) p += qn_utf8_put(qn_byte_to_char((u8)s[i]), p);
    out->n += (size_t)(p - at);
    *p = 0;
}

bool qn_bytes_unspell(qn_buf *out, const char *s, size_t n)
{
    const size_t before = out->n;
    for (size_t i = 0; i < n;) {
        u32 cp;
        i += qn_char_next(s + i, n - i, &cp);
        const int byte = qn_char_to_byte(cp);
        if (byte < 0) {
            out->n = before;
            if (out->p) out->p[before] = 0;
            return false;
        }
        qn_buf_putc(out, (char)(u8)byte);
    }
    return true;
}

/* ---- normal forms */

typedef struct points { i32 *v; size_t n, cap; } points;

static bool grow(points *p, size_t more, qn_err *e)
{
    if (p->cap - p->n >= more) return true;
    size_t cap, bytes;
    if (!qn_add(p->n, more, &cap) || !qn_mul(cap, 2 * sizeof *p->v, &bytes)) {
        return qn_fail(e, QN_ENOMEM, "out of memory: %zu characters to normalise", p->n);
    }
    i32 *v = qn_resize(p->v, bytes, e);
    if (!v) return false;
    *p = (points){ .v = v, .n = p->n, .cap = cap * 2 };
    return true;
}

static u8 class_of(i32 cp) { return (u8)utf8proc_get_property(cp)->combining_class; }

/* Stable sort of v[0..n) by combining class; tmp has n. Short runs by insertion, long ones by counting. */
static void sort_marks(i32 *v, size_t n, i32 *tmp)
{
    if (n <= 16) {
        for (size_t i = 1; i < n; i++) {
            const i32 cp = v[i];
            size_t j = i;
            for (; j > 0 && class_of(v[j - 1]) > class_of(cp); j--) v[j] = v[j - 1];
            v[j] = cp;
        }
        return;
    }
    size_t start[257] = { 0 };
    for (size_t i = 0; i < n; i++) start[class_of(v[i]) + 1]++;
    for (int c = 0; c < 256; c++) start[c + 1] += start[c];
    for (size_t i = 0; i < n; i++) tmp[start[class_of(v[i])]++] = v[i];
    memcpy(v, tmp, n * sizeof *v);
}

static void order_marks(points *p, i32 *tmp)
{
    for (size_t i = 0; i < p->n;) {
        size_t j = i;
        while (j < p->n && class_of(p->v[j]) != 0) j++;
        if (j - i > 1) sort_marks(p->v + i, j - i, tmp);
        i = j + 1;
    }
}

static bool decompose(points *p, const char *s, size_t n, bool compat, qn_err *e)
{
    const int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compat ? UTF8PROC_COMPAT : 0);
    for (size_t i = 0; i < n;) {
        u32 cp;
        i += qn_char_next(s + i, n - i, &cp);
        if (!grow(p, 32, e)) return false; /* the longest decomposition has 18 */
        int bound = 0;
        const utf8proc_ssize_t k = utf8proc_decompose_char((i32)cp, p->v + p->n, 32, (utf8proc_option_t)options, &bound);
        if (k < 0 || k > 32) return qn_fail(e, QN_EFAIL, "cannot decompose U+%04X", cp);
        p->n += (size_t)k;
    }
    return true;
}

/* s is valid UTF-8. p is scratch. */
static bool normalise(qn_buf *out, const char *s, size_t n, qn_form form, points *p, qn_err *e)
{
    p->n = 0;
    if (!decompose(p, s, n, form == QN_NFKC || form == QN_NFKD, e) || !grow(p, p->n, e)) return false;
    order_marks(p, p->v + p->n);
    if (form == QN_NFC || form == QN_NFKC) {
        const utf8proc_ssize_t k = utf8proc_normalize_utf32(p->v, (utf8proc_ssize_t)p->n, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
        if (k < 0) return qn_fail(e, QN_EFAIL, "cannot compose a text of %zu characters", p->n);
        p->n = (size_t)k;
    }
    for (size_t i = 0; i < p->n; i++) {
        char utf8[4];
        qn_buf_put(out, utf8, (size_t)qn_utf8_put((u32)p->v[i], utf8));
    }
    return true;
}

bool qn_normal_form(qn_buf *out, const char *s, size_t n, qn_form form, qn_err *e)
{
    const u8 plain = form == QN_NFC ? 0xCC : 0x80; /* below U+0300 nothing composes or decomposes under NFC */
    points p = { 0 };
    bool ok = true;
    for (size_t i = 0; i < n && ok;) {
        size_t j = i, bad = 0;
        bool simple = true;
        while (j < n && !bad) { /* up to the next byte that is no character */
            u32 cp;
            const size_t len = qn_char_next(s + j, n - j, &cp);
            if (cp == QN_BAD_BYTE) bad = 1;
            else {
                if ((u8)s[j] >= plain) simple = false;
                j += len;
            }
        }
        if (simple) qn_buf_put(out, s + i, j - i);
        else ok = normalise(out, s + i, j - i, form, &p, e);
        qn_buf_put(out, s + j, bad);
        i = j + bad;
    }
    qn_free(p.v);
    return ok;
}

void qn_lowercase(qn_buf *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        u32 cp;
        const size_t len = qn_char_next(s + i, n - i, &cp);
        char utf8[4];
        if (cp == QN_BAD_BYTE) qn_buf_put(out, s + i, 1);
        else if (cp == 0x130) qn_buf_puts(out, "i\xCC\x87"); /* the one character that becomes two */
        else qn_buf_put(out, utf8, (size_t)qn_utf8_put((u32)utf8proc_tolower((i32)cp), utf8));
        i += len;
    }
}

/* How many bytes at s begin one broken character: as many as a valid one could have begun with. */
static size_t broken_part(const u8 *s, size_t n)
{
    const u8 c = s[0];
    const size_t want = c >= 0xF0 && c <= 0xF4 ? 4 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xC2 && c < 0xE0 ? 2 : 1;
    u8 lo = 0x80, hi = 0xBF;
    if (c == 0xE0) lo = 0xA0;
    if (c == 0xED) hi = 0x9F;
    if (c == 0xF0) lo = 0x90;
    if (c == 0xF4) hi = 0x8F;
    size_t len = 1;
    for (; len < want && len < n && s[len] >= lo && s[len] <= hi; len++) {
        lo = 0x80;
        hi = 0xBF;
    }
    return len;
}

void qn_utf8_lossy(qn_buf *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        u32 cp;
        const int len = qn_utf8_get(s + i, n - i, &cp);
        if (len > 0) qn_buf_put(out, s + i, (size_t)len);
        else qn_buf_puts(out, "\xEF\xBF\xBD");
        i += len > 0 ? (size_t)len : broken_part((const u8 *)s + i, n - i);
    }
}
