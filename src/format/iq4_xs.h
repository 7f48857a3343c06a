/* iq4_xs.h - IQ4_XS: 256 weights in 8 groups of 32: y = d * (scale - 32) * level[q], levels and nibbles as in IQ4_NL, a
 * 6-bit scale per group: 4 bits in scale_low, 2 in scale_high. Read only. */
#ifndef QN_IQ4_XS_H
#define QN_IQ4_XS_H

#include "format/iq4_nl.h"

typedef struct qn_iq4_xs {
    u16 d, scale_high;
    u8 scale_low[4];
    u8 q[128];
} qn_iq4_xs;
static_assert(sizeof(qn_iq4_xs) == 136, "iq4_xs block");

static inline void qn_iq4_xs_decode(const qn_iq4_xs *b, float *restrict y)
{
    const float d = qn_f16_f32(b->d);
    for (int g = 0; g < 8; g++) {
        const int low = b->scale_low[g / 2] >> 4 * (g % 2) & 15, high = b->scale_high >> 2 * g & 3;
        const float s = d * (float)((low | high << 4) - 32);
        const qn_u8x16 q = qn_load16(b->q + 16 * g);
        qn_put16(y + 32 * g, qn_lookup16(qn_iq4_levels, q & 15), s);
        qn_put16(y + 32 * g + 16, qn_lookup16(qn_iq4_levels, q >> 4), s);
    }
}

static inline void qn_iq4_xs_decode_run(const qn_iq4_xs *b, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n / 256; i++) qn_iq4_xs_decode(b + i, y + 256 * i);
}

#endif
