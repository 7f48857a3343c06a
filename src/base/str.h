/* str.h - strict parsing of numbers from outside, UTF-8, and text made safe to print. No locale anywhere. */
#ifndef QN_STR_H
#define QN_STR_H

#include "base/err.h"

typedef struct qn_str { const char *p; size_t n; } qn_str; /* not NUL-terminated */
qn_str qn_str_of(const char *s);

/* The whole text must be the number: no space, no sign where none fits, no empty text. False leaves *out. */
bool qn_parse_i64(const char *s, i64 lo, i64 hi, i64 *out);
bool qn_parse_u64(const char *s, u64 *out);
bool qn_parse_double(const char *s, double lo, double hi, double *out); /* finite; '.' whatever the locale */

/* One character. Returns its length, 0 if s[0..n) does not begin with a whole valid one (surrogates, overlong: invalid). */
int qn_utf8_get(const char *s, size_t n, u32 *cp);
int qn_utf8_put(u32 cp, char out[4]);
/* Length of the longest prefix that ends on a character border. Broken bytes count as characters of their own: only a last
 * character that more bytes could complete is held back. */
size_t qn_utf8_whole(const char *s, size_t n);
bool qn_utf8_valid(const char *s, size_t n);

/* For messages: at most `most` bytes of s, control bytes and broken UTF-8 as \xNN, "..." if cut. out has cap bytes. */
const char *qn_printable(const char *s, size_t n, size_t most, char *out, size_t cap);

/* "1.5 GiB", "640 KiB"; "12.3 M" */
const char *qn_human_bytes(u64 bytes, char out[32]);
const char *qn_human_count(u64 n, char out[32]);

bool qn_ends_with(const char *s, const char *tail);

#endif
