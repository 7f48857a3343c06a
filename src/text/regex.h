/* regex.h - PCRE2 as the tokenizers need it: patterns written for Oniguruma, subjects of any bytes, matches one after the
 * other in linear time, a limit on backtracking, no use of the caller's stack. */
#ifndef QN_REGEX_H
#define QN_REGEX_H

#include "base/buf.h"

typedef struct qn_regex qn_regex;

/* what: names the pattern's place in messages. */
qn_regex *qn_regex_open(const char *pattern, size_t n, const char *what, qn_err *e);
void qn_regex_close(qn_regex *r);

/* What one thread needs to match; one for all patterns. Zeroed = closed. */
typedef struct qn_matcher { void *data, *context; } qn_matcher;
bool qn_matcher_open(qn_matcher *m, qn_err *e);
void qn_matcher_close(qn_matcher *m);

/* Makes a subject: valid UTF-8 of the same length, with U+001A for each byte that is no character. */
void qn_regex_subject(char *s, size_t n);

/* The next match in s[0..n) that begins at or behind `from`. *found false: none. s must be a subject. */
bool qn_regex_next(const qn_regex *r, qn_matcher *m, const char *s, size_t n, size_t from, bool *found, size_t *begin,
                   size_t *end, qn_err *e);

#endif
