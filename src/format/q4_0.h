/* q4_0.h - Q4_0: 32 weights of 4 bits around zero: y = d * (q - 8). Low nibbles are the first half of the
 * block, high nibbles the second. */
#ifndef QN_Q4_0_H
#define QN_Q4_0_H

#include "format/lanes.h"

typedef struct qn_q4_0 {
    u16 d;
    u8 q[16];
} qn_q4_0;
static_assert(sizeof(qn_q4_0) == 18, "q4_0 block");

static inline void qn_q4_0_decode(const qn_q4_0 *b, float *restrict y)
{
    const float d = qn_f16_f32(b->d);
    const qn_u8x16 q = qn_load16(b->q);
    qn_put16(y, (qn_i8x16)(q & 15) - 8, d);
    qn_put16(y + 16, (qn_i8x16)(q >> 4) - 8, d);
}

static inline void qn_q4_0_decode_run(const qn_q4_0 *b, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n / 32; i++) qn_q4_0_decode(b + i, y + 32 * i);
}

void qn_q4_0_encode(const float *restrict x, qn_q4_0 *b);

#endif
