/* q8_0.h - Q8_0: 32 weights, one f16 scale and a signed byte each: y = d * q. */
#ifndef QN_Q8_0_H
#define QN_Q8_0_H

#include "format/lanes.h"

typedef struct qn_q8_0 {
    u16 d;
    i8 q[32];
} qn_q8_0;
static_assert(sizeof(qn_q8_0) == 34, "q8_0 block");

static inline void qn_q8_0_decode(const qn_q8_0 *b, float *restrict y)
{
    const float d = qn_f16_f32(b->d);
    qn_put16(y, (qn_i8x16)qn_load16(b->q), d);
    qn_put16(y + 16, (qn_i8x16)qn_load16(b->q + 16), d);
}

static inline void qn_q8_0_decode_run(const qn_q8_0 *b, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n / 32; i++) qn_q8_0_decode(b + i, y + 32 * i);
}

void qn_q8_0_encode(const float *restrict x, qn_q8_0 *b);

#endif
