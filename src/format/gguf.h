/* gguf.h - GGUF v2 and v3 in and out. */
#ifndef QN_GGUF_H
#define QN_GGUF_H

#include "format/source.h"

/* Opens a file, or all files of a split model when path is one of -0000K-of-0000N.gguf. Every length is checked against the
 * bytes that are there before anything is allocated for it. */
qn_source *qn_gguf_open(const char *path, qn_err *e);

/* Writing. open makes the header for s (tensor types as in `types`, or their own where types is NULL; keys split.* and quern.*
 * are left out) and places every tensor; the caller then writes each tensor's bytes, from any thread, and commits. */
typedef struct qn_gguf_writer {
    qn_out out;
    u64 *offsets;   /* [n_tensors] from the start of the file */
    u64 *bytes;     /* [n_tensors] */
    u64 total;
} qn_gguf_writer;
bool qn_gguf_write_open(qn_gguf_writer *w, const char *path, const qn_source *s, const qn_dtype *types, qn_err *e);
bool qn_gguf_write_tensor(qn_gguf_writer *w, size_t i, u64 at, const void *p, size_t n,
                          qn_err *e); /* bytes at..at+n of tensor i */
bool qn_gguf_write_commit(qn_gguf_writer *w, qn_err *e);
void qn_gguf_write_close(qn_gguf_writer *w);

#endif
