/* buf.h - a growing run of bytes, always NUL-terminated behind its end. Zeroed struct = empty. A failed append sets `failed`
 * and leaves the content; later appends do nothing, so a long build checks once at its end. */
#ifndef QN_BUF_H
#define QN_BUF_H

#include "base/err.h"

typedef struct qn_buf { char *p; size_t n, cap; bool failed; } qn_buf;

void qn_buf_put(qn_buf *b, const void *p, size_t n);
void qn_buf_puts(qn_buf *b, const char *s);
void qn_buf_putc(qn_buf *b, char c);
void qn_buf_printf(qn_buf *b, const char *fmt, ...) QN_PRINTF(2, 3);
/* Room for n more bytes behind the end (n is not advanced); NULL when there is no memory. */
char *qn_buf_room(qn_buf *b, size_t n);
/* A JSON string literal with its quotes; broken UTF-8 becomes U+FFFD. */
void qn_buf_json(qn_buf *b, const char *s, size_t n);
void qn_buf_close(qn_buf *b);
/* Hands the bytes over (end with qn_free) and empties b. False with QN_ENOMEM if any append failed; b is closed then. */
bool qn_buf_take(qn_buf *b, char **out, size_t *n, qn_err *e);

#endif
