/* q2_k.h - Q2_K: 256 weights of 2 bits in 16 groups of 16: y = d * scale * q - dmin * min, with a 4-bit scale (low
 * nibble) and a 4-bit min (high nibble) per group. Each 32 bytes of q hold 4 runs of 32 weights, two bits apiece. Read only. */
#ifndef QN_Q2_K_H
#define QN_Q2_K_H

#include "format/lanes.h"

typedef struct qn_q2_k {
    u8 scale[16];
    u8 q[64];
    u16 d, dmin;
} qn_q2_k;
static_assert(sizeof(qn_q2_k) == 84, "q2_k block");

static inline void qn_q2_k_decode(const qn_q2_k *b, float *restrict y)
{
    const float d = qn_f16_f32(b->d), dmin = qn_f16_f32(b->dmin);
    for (int h = 0; h < 2; h++, y += 128)
        for (int i = 0; i < 2; i++) {
            const qn_u8x16 q = qn_load16(b->q + 32 * h + 16 * i);
            const u8 *sc = b->scale + 8 * h + i; /* of every other group */
            qn_put16_min(y + 16 * i, (qn_i8x16)(q & 3), d * (float)(sc[0] & 15), dmin * (float)(sc[0] >> 4));
            qn_put16_min(y + 16 * i + 32, (qn_i8x16)(q >> 2 & 3), d * (float)(sc[2] & 15), dmin * (float)(sc[2] >> 4));
            qn_put16_min(y + 16 * i + 64, (qn_i8x16)(q >> 4 & 3), d * (float)(sc[4] & 15), dmin * (float)(sc[4] >> 4));
            qn_put16_min(y + 16 * i + 96, (qn_i8x16)(q >> 6), d * (float)(sc[6] & 15), dmin * (float)(sc[6] >> 4));
        }
}

static inline void qn_q2_k_decode_run(const qn_q2_k *b, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n / 256; i++) qn_q2_k_decode(b + i, y + 256 * i);
}

#endif
