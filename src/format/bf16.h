/* bf16.h - BF16: the upper half of a float, a block of one. */
#ifndef QN_BF16_H
#define QN_BF16_H

#include "base/half.h"

typedef struct qn_bf16 { u16 v; } qn_bf16;
static_assert(sizeof(qn_bf16) == 2, "bf16 block");

static inline void qn_bf16_decode(const qn_bf16 *b, float *restrict y) { *y = qn_bf16_f32(b->v); }
static inline void qn_bf16_encode(const float *restrict x, qn_bf16 *b) { b->v = qn_f32_bf16(*x); }

static inline void qn_bf16_decode_run(const qn_bf16 *b, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = qn_bf16_f32(b[i].v);
}

#endif
