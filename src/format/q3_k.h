/* q3_k.h - Q3_K: 256 weights of 3 bits in 16 groups of 16: y = d * (scale - 32) * (q - 4), with a 6-bit scale per
 * group. Two bits of a weight lie as in Q2_K; bit r of high[i] is the third bit of weight i of the r-th run of 32. Read only. */
#ifndef QN_Q3_K_H
#define QN_Q3_K_H

#include "format/lanes.h"

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
    for (int h = 0; h < 2; h++, y += 128)
        for (int i = 0; i < 2; i++) {
            const qn_u8x16 q = qn_load16(b->q + 32 * h + 16 * i), high = qn_load16(b->high + 16 * i) >> 4 * h;
            const i8 *sc = scale + 8 * h + i; /* of every other group */
            qn_put16(y + 16 * i, (qn_i8x16)((q & 3) | (high << 2 & 4)) - 4, d * (float)sc[0]);
            qn_put16(y + 16 * i + 32, (qn_i8x16)((q >> 2 & 3) | (high << 1 & 4)) - 4, d * (float)sc[2]);
            qn_put16(y + 16 * i + 64, (qn_i8x16)((q >> 4 & 3) | (high & 4)) - 4, d * (float)sc[4]);
            qn_put16(y + 16 * i + 96, (qn_i8x16)(q >> 6 | (high >> 1 & 4)) - 4, d * (float)sc[6]);
        }
}

static inline void qn_q3_k_decode_run(const qn_q3_k *b, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n / 256; i++) qn_q3_k_decode(b + i, y + 256 * i);
}

#endif
