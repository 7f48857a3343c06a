/* sdot.h - what generic/qlinear.h wants of NEON: how bits and bytes become vectors of 16 bytes. Weights are signed here: the
 * dot-product instructions take two signed sides, and below 8 bits signed and unsigned are the same. */
#ifndef QN_SDOT_H
#define QN_SDOT_H

#define LANES 4
#define MOST 6 /* rows of a tile: 24 sums of 32 registers, 4 weights, x */
#define FEW 8  /* rows of x up to which tiles unpack for themselves; not timed */
#define SIGNED_BYTES true
#include "kernel/generic/qlinear.h"

INLINE vb fifths(u64 mask, int v)
{
    const u16 bits = (u16)(mask >> (16 * v));
    const uint8x16_t copies = vcombine_u8(vdup_n_u8((u8)bits), vdup_n_u8((u8)(bits >> 8)));
    const uint8x16_t own = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    return (vb)vandq_u8(vtstq_u8(copies, own), vdupq_n_u8(16));
}

INLINE u32 four_bytes(const void *p)
{
    u32 v;
    memcpy(&v, p, 4);
    return v;
}

INLINE vf unsigned_at(const u8 *p)
{
    return (vf)vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(four_bytes(p))))));
}
INLINE vf signed_at(const i8 *p)
{
    return (vf)vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(four_bytes(p))))));
}

/* 4 columns of 16 rows at a time: x's 4 bytes stand in every lane. */
INLINE void sdots(const form f, const u8 *p, int sub, int first, int last, const i8 *q, ints *dot, const int R)
{
    UNROLL for (int i = first; i < last; i++) {
        const group w = f.group(p, sub, i);
        UNROLL for (int r = 0; r < R; r++) {
            const int8x16_t x = vreinterpretq_s8_u32(vdupq_n_u32(four_bytes(q + 32 * r + 4 * i)));
            UNROLL for (int v = 0; v < NV; v++)
                dot[r].v[v] = (vi)vdotq_s32((int32x4_t)dot[r].v[v], (int8x16_t)w.v[v], x);
        }
    }
}

#endif
