/* q4_k.h - Q4_K: 256 weights of 4 bits in 8 groups of 32: y = d * scale * q - dmin * min, with 6-bit scales and mins.
 * Each 32 bytes of q hold two groups: low nibbles, then high nibbles. */
#ifndef QN_Q4_K_H
#define QN_Q4_K_H

#include "format/kscale.h"
#include "format/lanes.h"

typedef struct qn_q4_k {
    u16 d, dmin;
    u8 scale[12];              /* see kscale.h */
    u8 q[128];
} qn_q4_k;
static_assert(sizeof(qn_q4_k) == 144, "q4_k block");

static inline void qn_q4_k_decode(const qn_q4_k *b, float *restrict y)
{
    const float d = qn_f16_f32(b->d), dmin = qn_f16_f32(b->dmin);
    u8 scale[8], min[8];
    qn_kscale_get(b->scale, scale, min);
    for (int j = 0; j < 4; j++, y += 64) {
        const float s0 = d * (float)scale[2 * j], m0 = dmin * (float)min[2 * j];
        const float s1 = d * (float)scale[2 * j + 1], m1 = dmin * (float)min[2 * j + 1];
        for (int i = 0; i < 32; i += 16) {
            const qn_u8x16 q = qn_load16(b->q + 32 * j + i);
            qn_put16_min(y + i, (qn_i8x16)(q & 15), s0, m0);
            qn_put16_min(y + i + 32, (qn_i8x16)(q >> 4), s1, m1);
        }
    }
}

static inline void qn_q4_k_decode_run(const qn_q4_k *b, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n / 256; i++) qn_q4_k_decode(b + i, y + 256 * i);
}

void qn_q4_k_encode(const float *restrict x, qn_q4_k *b);

#endif
