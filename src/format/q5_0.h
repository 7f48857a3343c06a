/* q5_0.h - Q5_0: 32 weights of 5 bits around zero: y = d * (q - 16). Four bits as in Q4_0; bit i of `high` is the
 * fifth bit of weight i. */
#ifndef QN_Q5_0_H
#define QN_Q5_0_H

#include "base/half.h"

typedef struct qn_q5_0 {
    u16 d;
    u8 high[4];
    u8 q[16];
} qn_q5_0;
static_assert(sizeof(qn_q5_0) == 22, "q5_0 block");

static inline void qn_q5_0_decode(const qn_q5_0 *b, float *restrict y)
{
    const float d = qn_f16_f32(b->d);
    u32 high;
    memcpy(&high, b->high, 4);
    for (int i = 0; i < 16; i++) y[i] = d * (float)((b->q[i] & 15) + (int)(high >> i << 4 & 16) - 16);
    for (int i = 0; i < 16; i++) y[i + 16] = d * (float)((b->q[i] >> 4) + (int)(high >> i >> 12 & 16) - 16);
}

static inline void qn_q5_0_decode_run(const qn_q5_0 *b, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n / 32; i++) qn_q5_0_decode(b + i, y + 32 * i);
}

void qn_q5_0_encode(const float *restrict x, qn_q5_0 *b);

#endif
