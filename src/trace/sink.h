/* sink.h - where lines go: a file, a pipe or a device, plain or zstd. Its one promise: what a file holds ends on a full line,
 * whatever happened. Used by one thread. Inside trace/. */
#ifndef QN_SINK_H
#define QN_SINK_H

#include <stdatomic.h>

#include "base/buf.h"

#define QN_LINE_MOST ((size_t)1 << 20)   /* bytes of one line: the limit that readers have */
#define QN_SINK_PIECE ((size_t)256 << 10) /* text is written when there is so much of it */

typedef struct qn_sink {
    int fd;                  /* -1: closed */
    bool regular;            /* a plain file: can be cut back to its last full line */
    qn_buf text;             /* lines that wait; taken at open, so that appending cannot fail */
    u64 waiting;             /* number of them */
    struct ZSTD_CCtx_s *z;   /* NULL: plain */
    char *packed;
    size_t packed_cap;
    u64 lines, lost, bytes;  /* written; not written; bytes of the file */
    int error;               /* errno of the write that failed; nothing is written after it */
    const atomic_ullong *give_up_ns; /* a reader that takes nothing is waited for until then; 0: for ever */
} qn_sink;

bool qn_sink_open(qn_sink *s, const char *path, const atomic_ullong *give_up_ns, qn_err *e);
void qn_sink_flush(qn_sink *s);
void qn_sink_close(qn_sink *s); /* writes nothing */

#endif
