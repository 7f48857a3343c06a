/* repack.h - rewrites a plan for kernels that want weights in panels and activations as bytes or bf16: a visible rewrite, one
 * linear step becomes the step that prepares x (shared by neighbours with the same x) and the one that multiplies. */
#ifndef QN_REPACK_H
#define QN_REPACK_H

#include "model/decoder.h"

typedef struct qn_packed { u8 *memory; size_t bytes; } qn_packed; /* zeroed: none */

typedef struct qn_repack {
    qn_plan *plan;            /* rewritten in place */
    qn_pool *pool;
    const qn_buffers *b;
    const char *path;         /* of the model, for messages */
    qn_progress_fn progress;  /* may be NULL */
    void *user;
} qn_repack;

/* Does nothing (out->bytes 0) where no kernel wants it or memory has no room for a second copy. On failure the plan is as it was
 * or closed. */
bool qn_repack_run(const qn_repack *r, qn_packed *out, qn_err *e);
void qn_packed_close(qn_packed *p);

#endif
