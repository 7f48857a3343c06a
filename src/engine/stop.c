/* stop.c - holds back the longest end of the text that is a beginning of a stop string. */
#include "engine/stop.h"

#include <string.h>

#define MOST_STRINGS 16
#define MOST_BYTES 1024

bool qn_stop_check(const char *const *strings, int n, qn_err *e)
{
    if (n < 0 || n > MOST_STRINGS) return qn_fail(e, QN_EUSAGE, "%d stop strings; at most %d", n, MOST_STRINGS);
    for (int i = 0; i < n; i++) {
        const size_t len = strlen(strings[i]);
        if (len == 0) return qn_fail(e, QN_EUSAGE, "stop string %d is empty", i + 1);
        if (len > MOST_BYTES) return qn_fail(e, QN_EUSAGE, "stop string %d has %zu bytes; at most %d", i + 1, len, MOST_BYTES);
    }
    return true;
}

/* What the last call handed out leaves the buffer. */
static void drop_ready(qn_stop *s)
{
    if (s->n_ready == 0) return;
    memmove(s->held.p, s->held.p + s->n_ready, s->held.n - s->n_ready);
    s->held.n -= s->n_ready;
    s->n_ready = 0;
}

/* Where the stop string that is complete first begins (of two that end together, the longer); SIZE_MAX: none is there. By
 * its end, not its beginning: so the result is the same however the stream was cut. */
static size_t first_hit(const qn_stop *s)
{
    size_t begin = SIZE_MAX, end = SIZE_MAX;
    for (int i = 0; i < s->n; i++) {
        const size_t len = strlen(s->strings[i]);
        const char *at = s->held.n ? memmem(s->held.p, s->held.n, s->strings[i], len) : NULL;
        if (!at) continue;
        const size_t b = (size_t)(at - s->held.p);
        if (b + len < end || (b + len == end && b < begin)) begin = b, end = b + len;
    }
    return begin;
}

/* Bytes at the end of held that are a proper beginning of a stop string. */
static size_t held_back(const qn_stop *s)
{
    size_t most = 0;
    for (int i = 0; i < s->n; i++) {
        const size_t len = strlen(s->strings[i]);
        for (size_t k = qn_minz(len - 1, s->held.n); k > most; k--)
            if (!memcmp(s->held.p + s->held.n - k, s->strings[i], k)) most = k;
    }
    return most;
}

void qn_stop_push(qn_stop *s, const char *p, size_t n, const char **text, size_t *n_text)
{
    drop_ready(s);
    if (!s->hit) qn_buf_put(&s->held, p, n);
    const size_t at = s->hit ? SIZE_MAX : first_hit(s);
    if (at != SIZE_MAX) {
        s->hit = true;
        s->held.n = at;
        s->n_ready = at;
    } else {
        s->n_ready = s->hit ? 0 : s->held.n - held_back(s);
    }
    *text = s->held.p ? s->held.p : "";
    *n_text = s->n_ready;
}

void qn_stop_flush(qn_stop *s, const char **text, size_t *n_text)
{
    drop_ready(s);
    s->n_ready = s->hit ? 0 : s->held.n;
    *text = s->held.p ? s->held.p : "";
    *n_text = s->n_ready;
}

void qn_stop_close(qn_stop *s) { qn_buf_close(&s->held); }
