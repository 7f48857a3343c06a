/* q3_k.h - Q3_K: 256 weights of 3 bits in 16 groups of 16: y = d * (scale - 32) * (q - 4), with a 6-bit scale per
 * group. Two bits of a weight lie as in Q2_K; bit r of high[i] is the third bit of weight i of the r-th run of 32. Read only. */
#ifndef QN_Q3_K_H
#define QN_Q3_K_H

#include "base/half.h"

typedef struct qn_q3_k {
    u8 high[32];
    u8 q[64];
    u8 scale[12];
    u16 d;
} qn_q3_k;
static_assert(sizeof(qn_q3_k) == 110, "q3_k block");

/* Four low bits of scale i are a nibble of byte i % 8, two high bits a pair of byte 8 + i % 4: all of it bytewise. */
static inline void qn_q3_k_scales(const qn_q3_k *b, i8 scale[16])
{
    for (int i = 0; i < 16; i++) {
        const int low = b->scale[i % 8] >> 4 * (i / 8) & 15, high = b->scale[8 + i % 4] >> 2 * (i / 4) & 3;
        scale[i] = (i8)((low | high << 4) - 32);
    }
}

static inline void qn_q3_k_decode(const qn_q3_k *b, float *restrict y)
{
    const float d = qn_f16_f32(b->d);
    i8 scale[16];
    qn_q3_k_scales(b, scale);
    for (int g = 0; g < 16; g++) {
        const u8 *q = b->q + 32 * (g / 8) + 16 * (g % 2), *high = b->high + 16 * (g % 2);
        const int shift = 2 * (g / 2 % 4), run = g / 2;
        const float s = d * (float)scale[g];
        for (int i = 0; i < 16; i++) y[16 * g + i] = s * (float)((q[i] >> shift & 3) + (high[i] >> run << 2 & 4) - 4);
    }
}

static inline void qn_q3_k_decode_run(const qn_q3_k *b, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n / 256; i++) qn_q3_k_decode(b + i, y + 256 * i);
}

#endif
