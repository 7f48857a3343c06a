/* q6_k.h - Q6_K: 256 weights of 6 bits in 16 groups of 16: y = d * scale * (q - 32), with a signed byte of scale per
 * group. Each half of 128 weights is four runs of 32: low nibbles of low[0..31], of low[32..63], then the high nibbles of
 * both; two bits of high[0..31] per run, lowest first. */
#ifndef QN_Q6_K_H
#define QN_Q6_K_H

#include "base/half.h"

typedef struct qn_q6_k {
    u8 low[128];
    u8 high[64];
    i8 scale[16];
    u16 d;
} qn_q6_k;
static_assert(sizeof(qn_q6_k) == 210, "q6_k block");

static inline void qn_q6_k_decode(const qn_q6_k *b, float *restrict y)
{
    const float d = qn_f16_f32(b->d);
    for (int g = 0; g < 16; g++) {
        const int half = g / 8, run = g / 2 % 4, at = 16 * (g % 2);
        const u8 *low = b->low + 64 * half + 32 * (run % 2) + at, *high = b->high + 32 * half + at;
        const int nibble = run / 2 * 4, pair = 2 * run;
        const float s = d * (float)b->scale[g];
        for (int i = 0; i < 16; i++) y[16 * g + i] = s * (float)((low[i] >> nibble & 15) + (high[i] >> pair << 4 & 48) - 32);
    }
}

static inline void qn_q6_k_decode_run(const qn_q6_k *b, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n / 256; i++) qn_q6_k_decode(b + i, y + 256 * i);
}

void qn_q6_k_encode(const float *restrict x, qn_q6_k *b);

#endif
