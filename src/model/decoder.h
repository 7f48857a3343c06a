/* decoder.h - writes the plan of a model over the buffers of an engine. */
#ifndef QN_DECODER_H
#define QN_DECODER_H

#include "kernel/plan.h"
#include "model/model.h"

/* Where a pass works. Sized by the engine for its largest pass of n rows, n_logits of which may ask for logits. */
typedef struct qn_buffers {
    float *x, *h;             /* [n, d_model]  the residual stream; what a block computes */
    float *q, *a;             /* [n, n_head * d_head] */
    float *k, *v;             /* [n, n_kv * d_head] */
    float *gate, *up;         /* [n, d_ff] */
    float *last, *normed;     /* [n_logits, d_model] */
    float *logits;            /* [n_logits, n_vocab] */
    qn_bytes bytes;           /* [n, widest input of a matrix] activations as bytes */
    u16 *narrow;              /* the same as bf16 */
    i32 *tokens, *pos;        /* [n] */
    i32 *asking;              /* [n_logits] rows that ask */
    qn_rows rows[2];          /* where the rows' KV lies: global layers, sliding layers */
    qn_dtype kv_type;
    qn_parts parts;           /* sums of attention on their way, by chunks of positions */
    u8 **cache;               /* [n_layer] this layer's part of page 0 */
    size_t page_stride[2];    /* by group, as rows */
} qn_buffers;

bool qn_decoder_plan(const qn_model *m, const qn_buffers *b, qn_plan *p, qn_err *e);

#endif
