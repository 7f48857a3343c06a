/* mxfp4.h - MXFP4: 32 weights in the 4-bit float e2m1 under one power of two: y = 2^(e - 127) * value(q). Nibbles lie
 * as in Q4_0. The levels here are twice the values, so the power is 2^(e - 128). Read only. */
#ifndef QN_MXFP4_H
#define QN_MXFP4_H

#include "format/lanes.h"

static const i8 qn_mxfp4_levels[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

typedef struct qn_mxfp4 {
    u8 e;
    u8 q[16];
} qn_mxfp4;
static_assert(sizeof(qn_mxfp4) == 17, "mxfp4 block");

static inline void qn_mxfp4_decode(const qn_mxfp4 *b, float *restrict y)
{
    /* the two lowest powers are float denormals: their bit moves through the mantissa */
    const float d = qn_bits_f32(b->e < 2 ? 0x00200000u << (b->e & 1) : (u32)(b->e - 1) << 23);
    const qn_u8x16 q = qn_load16(b->q);
    qn_put16(y, qn_lookup16(qn_mxfp4_levels, q & 15), d);
    qn_put16(y + 16, qn_lookup16(qn_mxfp4_levels, q >> 4), d);
}

static inline void qn_mxfp4_decode_run(const qn_mxfp4 *b, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n / 32; i++) qn_mxfp4_decode(b + i, y + 32 * i);
}

#endif
