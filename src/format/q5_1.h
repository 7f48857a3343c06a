/* q5_1.h - Q5_1: 32 weights of 5 bits above a minimum: y = d * q + m. Four bits as in Q4_1; bit i of `high` is the
 * fifth bit of weight i. */
#ifndef QN_Q5_1_H
#define QN_Q5_1_H

#include "format/lanes.h"

typedef struct qn_q5_1 {
    u16 d, m;
    u8 high[4];
    u8 q[16];
} qn_q5_1;
static_assert(sizeof(qn_q5_1) == 24, "q5_1 block");

static inline void qn_q5_1_decode(const qn_q5_1 *b, float *restrict y)
{
    const float d = qn_f16_f32(b->d), m = qn_f16_f32(b->m);
    const qn_u8x16 q = qn_load16(b->q);
    qn_put16_min(y, (qn_i8x16)((q & 15) | qn_fifth16(b->high)), d, -m);
    qn_put16_min(y + 16, (qn_i8x16)(q >> 4 | qn_fifth16(b->high + 2)), d, -m);
}

static inline void qn_q5_1_decode_run(const qn_q5_1 *b, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n / 32; i++) qn_q5_1_decode(b + i, y + 32 * i);
}

void qn_q5_1_encode(const float *restrict x, qn_q5_1 *b);

#endif
