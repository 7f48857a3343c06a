/* q5_0.h - Q5_0: 32 weights of 5 bits around zero: y = d * (q - 16). Four bits as in Q4_0; bit i of `high` is the
 * fifth bit of weight i. */
#ifndef QN_Q5_0_H
#define QN_Q5_0_H

#include "format/lanes.h"

typedef struct qn_q5_0 {
    u16 d;
    u8 high[4];
    u8 q[16];
} qn_q5_0;
static_assert(sizeof(qn_q5_0) == 22, "q5_0 block");

static inline void qn_q5_0_decode(const qn_q5_0 *b, float *restrict y)
{
    const float d = qn_f16_f32(b->d);
    const qn_u8x16 q = qn_load16(b->q);
    qn_put16(y, (qn_i8x16)((q & 15) | qn_fifth16(b->high)) - 16, d);
    qn_put16(y + 16, (qn_i8x16)(q >> 4 | qn_fifth16(b->high + 2)) - 16, d);
}

static inline void qn_q5_0_decode_run(const qn_q5_0 *b, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n / 32; i++) qn_q5_0_decode(b + i, y + 32 * i);
}

void qn_q5_0_encode(const float *restrict x, qn_q5_0 *b);

#endif
