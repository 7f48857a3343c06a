/* iq4_nl.h - IQ4_NL: 32 weights of 4 bits that choose among 16 unevenly spaced levels: y = d * level[q]. Nibbles lie as
 * in Q4_0. Read only. */
#ifndef QN_IQ4_NL_H
#define QN_IQ4_NL_H

#include "format/lanes.h"

/* denser near zero, where weights are */
static const i8 qn_iq4_levels[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };

typedef struct qn_iq4_nl {
    u16 d;
    u8 q[16];
} qn_iq4_nl;
static_assert(sizeof(qn_iq4_nl) == 18, "iq4_nl block");

static inline void qn_iq4_nl_decode(const qn_iq4_nl *b, float *restrict y)
{
    const float d = qn_f16_f32(b->d);
    const qn_u8x16 q = qn_load16(b->q);
    qn_put16(y, qn_lookup16(qn_iq4_levels, q & 15), d);
    qn_put16(y + 16, qn_lookup16(qn_iq4_levels, q >> 4), d);
}

static inline void qn_iq4_nl_decode_run(const qn_iq4_nl *b, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n / 32; i++) qn_iq4_nl_decode(b + i, y + 32 * i);
}

#endif
