/* stop.h - stop strings in a stream: text goes in as it is made, comes out as soon as no stop string can begin in it. */
#ifndef QN_STOP_H
#define QN_STOP_H

#include "base/buf.h"

typedef struct qn_stop {
    const char *const *strings; /* borrowed */
    int n;
    qn_buf held;                /* text that may be the beginning of a stop string */
    size_t n_ready;             /* of held: bytes handed out at the next take */
    bool hit;
} qn_stop;

/* Refuses empty strings, more than 16 and longer than 1,024 bytes. */
bool qn_stop_check(const char *const *strings, int n, qn_err *e);

/* Takes n bytes; afterwards *text .. is what may be shown now (valid until the next call), s->hit whether a stop string was
 * met: nothing of it, nor of what came behind it, is ever handed out. */
void qn_stop_push(qn_stop *s, const char *p, size_t n, const char **text, size_t *n_text);
/* The end of the text: what was held back for nothing. */
void qn_stop_flush(qn_stop *s, const char **text, size_t *n_text);
void qn_stop_close(qn_stop *s);

#endif
