/* str.c - numbers, UTF-8 and printable text, the same in every locale. */
#include "base/str.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool qn_parse_u64(const char *s, u64 *out)
{
    u64 v = 0;
    if (!*s) return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9') return false;
        if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (u64)(*s - '0'), &v)) return false;
    }
    *out = v;
    return true;
}

bool qn_parse_i64(const char *s, i64 lo, i64 hi, i64 *out)
{
    const bool minus = *s == '-';
    u64 mag;
    if (!qn_parse_u64(s + minus, &mag) || mag > (u64)INT64_MAX + minus) return false;
    const i64 v = minus ? (i64)(0 - mag) : (i64)mag;
    if (v < lo || v > hi) return false;
    *out = v;
    return true;
}

bool qn_parse_double(const char *s, double lo, double hi, double *out)
{
    /* only what a decimal number is made of: strtod alone would take spaces, hex, inf and nan */
    if (!*s || strspn(s, "0123456789+-.eE") != strlen(s)) return false;
    char *end;
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c) return false;
    const double v = strtod_l(s, &end, c);
    freelocale(c);
    if (*end || !isfinite(v) || v < lo || v > hi) return false;
    *out = v;
    return true;
}

int qn_utf8_get(const char *s, size_t n, u32 *cp)
{
    if (n == 0) return 0;
    const u8 *p = (const u8 *)s;
    if (p[0] < 0x80) {
        *cp = p[0];
        return 1;
    }
    const int len = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    if (p[0] < 0xC2 || p[0] > 0xF4 || n < (size_t)len) return 0;
    u32 v = p[0] & (0x7Fu >> len);
    for (int i = 1; i < len; i++) {
        if ((p[i] & 0xC0) != 0x80) return 0;
        v = v << 6 | (p[i] & 0x3Fu);
    }
    static const u32 least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    if (v < least[len] || v > 0x10FFFF || (v >= 0xD800 && v < 0xE000)) return 0;
    *cp = v;
    return len;
}

int qn_utf8_put(u32 cp, char out[4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    const int len = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (int i = len - 1; i > 0; i--, cp >>= 6) out[i] = (char)(0x80 | (cp & 0x3F));
    out[0] = (char)(u8)(0xF00u >> len | cp);
    return len;
}

/* Could s[0..n), n > 0, be the beginning of a character that more bytes complete? */
static bool is_beginning(const u8 *p, size_t n)
{
    const size_t len = p[0] >= 0xF0 && p[0] <= 0xF4 ? 4 : p[0] >= 0xE0 && p[0] < 0xF0 ? 3 : p[0] >= 0xC2 && p[0] < 0xE0 ? 2 : 0;
    if (n >= len) return false;
    if (n >= 2) {
        const u8 lo = p[0] == 0xE0 ? 0xA0 : p[0] == 0xF0 ? 0x90 : 0x80; /* overlong */
        const u8 hi = p[0] == 0xED ? 0x9F : p[0] == 0xF4 ? 0x8F : 0xBF; /* surrogates, beyond U+10FFFF */
        if (p[1] < lo || p[1] > hi) return false;
    }
    return n < 3 || (p[2] & 0xC0) == 0x80;
}

size_t qn_utf8_whole(const char *s, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++)
        if (is_beginning((const u8 *)s + n - back, back)) return n - back;
    return n;
}

bool qn_utf8_valid(const char *s, size_t n)
{
    u32 cp;
    for (size_t i = 0; i < n;) {
        const int len = qn_utf8_get(s + i, n - i, &cp);
        if (len == 0) return false;
        i += (size_t)len;
    }
    return true;
}

const char *qn_printable(const char *s, size_t n, size_t most, char *out, size_t cap)
{
    size_t at = 0;
    const size_t room = qn_minz(most, cap - 1);
    for (size_t i = 0; i < n;) {
        u32 cp = 0;
        const int len = qn_utf8_get(s + i, n - i, &cp);
        const bool plain = len > 0 && cp >= 0x20 && cp != 0x7F && !(cp >= 0x80 && cp < 0xA0) && cp != 0x2028 && cp != 0x2029;
        const size_t need = plain ? (size_t)len : 4;
        const size_t step = len > 0 ? (size_t)len : 1;
        if (at + need > room || (i + step < n && at + need + 3 > room)) {
            if (at + 3 <= room) {
                memcpy(out + at, "...", 3);
                at += 3;
            }
            break;
        }
        if (plain) memcpy(out + at, s + i, need);
        else snprintf(out + at, 5, "\\x%02x", (u8)s[i]);
        at += need;
        i += plain ? step : 1;
    }
    out[at] = 0;
    return out;
}

/* Three digits and the largest unit that leaves a number of 1 or more. */
static const char *put_human(double v, double step, const char *const unit[7], char out[32])
{
    int i = 0;
    while (v >= step && i < 6) v /= step, i++;
    snprintf(out, 32, i == 0 ? "%.0f%s" : v < 10 ? "%.2f%s" : v < 100 ? "%.1f%s" : "%.0f%s", v, unit[i]);
    return out;
}

const char *qn_human_bytes(u64 bytes, char out[32])
{
    static const char *const unit[] = { " B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB" };
    return put_human((double)bytes, 1024, unit, out);
}

const char *qn_human_count(u64 n, char out[32])
{
    static const char *const unit[] = { "", " K", " M", " G", " T", " P", " E" };
    return put_human((double)n, 1000, unit, out);
}

qn_str qn_str_of(const char *s) { return (qn_str){ s, strlen(s) }; }

bool qn_ends_with(const char *s, const char *tail)
{
    const size_t n = strlen(s), m = strlen(tail);
    return n >= m && memcmp(s + n - m, tail, m) == 0;
}
