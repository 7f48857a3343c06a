/* f32.h - F32: the plain float, a block of one. */
#ifndef QN_F32_H
#define QN_F32_H

#include "base/half.h"

typedef struct qn_f32 { float v; } qn_f32;
static_assert(sizeof(qn_f32) == 4, "f32 block");

static inline void qn_f32_decode(const qn_f32 *b, float *restrict y) { *y = b->v; }
static inline void qn_f32_encode(const float *restrict x, qn_f32 *b) { b->v = *x; }

static inline void qn_f32_decode_run(const qn_f32 *b, float *restrict y, size_t n)
{
    memcpy(y, b, n * sizeof *y);
}

#endif
