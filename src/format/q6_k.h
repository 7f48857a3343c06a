/* q6_k.h - Q6_K: 256 weights of 6 bits in 16 groups of 16: y = d * scale * (q - 32), with a signed byte of scale per
 * group. Each half of 128 weights is four runs of 32: low nibbles of low[0..31], of low[32..63], then the high nibbles of
 * both; two bits of high[0..31] per run, lowest first. */
#ifndef QN_Q6_K_H
#define QN_Q6_K_H

#include "format/lanes.h"

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
    for (int h = 0; h < 2; h++, y += 128)
        for (int i = 0; i < 2; i++) {
            const u8 *low = b->low + 64 * h + 16 * i;
            const qn_u8x16 l0 = qn_load16(low), l1 = qn_load16(low + 32), high = qn_load16(b->high + 32 * h + 16 * i);
            const i8 *sc = b->scale + 8 * h + i; /* of every other group */
            qn_put16(y + 16 * i, (qn_i8x16)((l0 & 15) | (high << 4 & 48)) - 32, d * (float)sc[0]);
            qn_put16(y + 16 * i + 32, (qn_i8x16)((l1 & 15) | (high << 2 & 48)) - 32, d * (float)sc[2]);
            qn_put16(y + 16 * i + 64, (qn_i8x16)(l0 >> 4 | (high & 48)) - 32, d * (float)sc[4]);
            qn_put16(y + 16 * i + 96, (qn_i8x16)(l1 >> 4 | (high >> 2 & 48)) - 32, d * (float)sc[6]);
        }
}

static inline void qn_q6_k_decode_run(const qn_q6_k *b, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n / 256; i++) qn_q6_k_decode(b + i, y + 256 * i);
}

void qn_q6_k_encode(const float *restrict x, qn_q6_k *b);

#endif
