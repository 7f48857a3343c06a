/* q2_k.h - Q2_K: 256 weights of 2 bits in 16 groups of 16: y = d * scale * q - dmin * min, with a 4-bit scale (low
 * nibble) and a 4-bit min (high nibble) per group. Each 32 bytes of q hold 4 runs of 32 weights, two bits apiece. Read only. */
#ifndef QN_Q2_K_H
#define QN_Q2_K_H

#include "base/half.h"

typedef struct qn_q2_k {
    u8 scale[16];
    u8 q[64];
    u16 d, dmin;
} qn_q2_k;
static_assert(sizeof(qn_q2_k) == 84, "q2_k block");

static inline void qn_q2_k_decode(const qn_q2_k *b, float *restrict y)
{
    const float d = qn_f16_f32(b->d), dmin = qn_f16_f32(b->dmin);
    for (int g = 0; g < 16; g++) {
        const u8 *q = b->q + 32 * (g / 8) + 16 * (g % 2);
        const int shift = 2 * (g / 2 % 4);
        const float s = d * (float)(b->scale[g] & 15), m = dmin * (float)(b->scale[g] >> 4);
        for (int i = 0; i < 16; i++) y[16 * g + i] = s * (float)(q[i] >> shift & 3) - m;
    }
}

static inline void qn_q2_k_decode_run(const qn_q2_k *b, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n / 256; i++) qn_q2_k_decode(b + i, y + 256 * i);
}

#endif
