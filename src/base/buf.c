/* buf.c - the growing run of bytes. Doubles, so appending is linear in all. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

char *qn_buf_room(qn_buf *b, size_t n)
{
    if (b->failed) return NULL;
    size_t need;
    if (!qn_add(b->n, n, &need) || !qn_add(need, 1, &need)) {
        b->failed = true;
        return NULL;
    }
    if (need > b->cap) {
        size_t cap = b->cap > SIZE_MAX / 2 ? need : b->cap * 2;
        if (cap < need) cap = need;
        if (cap < 64) cap = 64;
        char *p = qn_resize(b->p, cap, NULL);
        if (!p) {
            b->failed = true;
            return NULL;
        }
        b->p = p;
        b->cap = cap;
    }
    b->p[b->n] = 0;
    return b->p + b->n;
}

void qn_buf_put(qn_buf *b, const void *p, size_t n)
{
    char *at = qn_buf_room(b, n);
    if (!at) return;
    if (n) memcpy(at, p, n);
    b->n += n;
    b->p[b->n] = 0;
}

void qn_buf_puts(qn_buf *b, const char *s) { qn_buf_put(b, s, strlen(s)); }
void qn_buf_putc(qn_buf *b, char c) { qn_buf_put(b, &c, 1); }

void qn_buf_printf(qn_buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *at = n < 0 ? NULL : qn_buf_room(b, (size_t)n);
    if (at) {
        vsnprintf(at, (size_t)n + 1, fmt, again);
        b->n += (size_t)n;
    }
    va_end(again);
}

void qn_buf_json(qn_buf *b, const char *s, size_t n)
{
    qn_buf_putc(b, '"');
    for (size_t i = 0; i < n;) {
        u32 cp;
        const int len = qn_utf8_get(s + i, n - i, &cp);
        if (len == 0) qn_buf_puts(b, "\xEF\xBF\xBD");
        else if (cp == '"' || cp == '\\') qn_buf_printf(b, "\\%c", (char)cp);
        else if (cp == '\n') qn_buf_puts(b, "\\n");
        else if (cp < 0x20 || cp == 0x7F) qn_buf_printf(b, "\\u%04x", cp);
        else qn_buf_put(b, s + i, (size_t)len);
        i += len ? (size_t)len : 1;
    }
    qn_buf_putc(b, '"');
}

void qn_buf_close(qn_buf *b)
{
    qn_free(b->p);
    *b = (qn_buf){ 0 };
}

bool qn_buf_take(qn_buf *b, char **out, size_t *n, qn_err *e)
{
    qn_buf_room(b, 0); /* an empty buffer still hands over a NUL-terminated text */
    if (b->failed) {
        qn_fail(e, QN_ENOMEM, "out of memory after %zu bytes of text", b->n);
        qn_buf_close(b);
        return false;
    }
    *out = b->p;
    if (n) *n = b->n;
    *b = (qn_buf){ 0 };
    return true;
}
