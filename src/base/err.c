/* err.c - makes the one sentence of an error. Text from outside is made printable here, so that no caller has to think of
 * terminal escapes in a file name or a tensor name. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static void put(qn_err *e, int code, const char *text, size_t n)
{
    e->code = code;
    qn_printable(text, n, sizeof e->msg - 1, e->msg, sizeof e->msg);
}

bool qn_fail(qn_err *e, int code, const char *fmt, ...)
{
    if (!e) return false;
    char text[1024]; /* longer than msg: the cut is made on printable text */
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    put(e, code, text, n < 0 ? 0 : qn_minz((size_t)n, sizeof text - 1));
    return false;
}

bool qn_fail_errno(qn_err *e, const char *fmt, ...)
{
    if (!e) return false;
    const int err = errno;
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const char *why = strerrordesc_np(err); /* not strerror: no locale, no shared buffer */
    const size_t tail = strlen(why ? why : "unknown error") + 2;
    size_t at = n < 0 ? 0 : qn_minz((size_t)n, sizeof text - 1);
    at = qn_minz(at, sizeof e->msg - 1 - tail); /* a long path must not push the reason out */
    const int m = snprintf(text + at, sizeof text - at, ": %s", why ? why : "unknown error");
    put(e, err == ENOMEM ? QN_ENOMEM : QN_EIO, text, at + (m < 0 ? 0 : (size_t)m));
    return false;
}

bool qn_fail_within(qn_err *e, const char *what)
{
    if (!e) return false;
    char text[sizeof e->msg + 512];
    const int n = snprintf(text, sizeof text, "%s: %s", what, e->msg);
    put(e, e->code, text, n < 0 ? 0 : qn_minz((size_t)n, sizeof text - 1));
    return false;
}
