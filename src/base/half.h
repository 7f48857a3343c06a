/* half.h - f16 and bf16 to f32 and back, round to nearest even, exact for denormals, infinities and NaN. */
#ifndef QN_HALF_H
#define QN_HALF_H

#include <string.h>

#include "base/types.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

static inline u32 qn_f32_bits(float f) { u32 u; memcpy(&u, &f, 4); return u; }
static inline float qn_bits_f32(u32 u) { float f; memcpy(&f, &u, 4); return f; }

static inline float qn_bf16_f32(u16 h) { return qn_bits_f32((u32)h << 16); }

static inline u16 qn_f32_bf16(float f)
{
    const u32 u = qn_f32_bits(f);
    if ((u & 0x7FFFFFFFu) > 0x7F800000u) return (u16)((u >> 16) | 64); /* NaN stays NaN: made quiet */
    return (u16)((u + 0x7FFFu + ((u >> 16) & 1)) >> 16);
}

/* Kernel folders for processors that convert by themselves use that: a block's scale is one instruction instead of eight. (A
 * signalling NaN comes out quiet; everything else is the same.) */
#if defined(__F16C__)
static inline float qn_f16_f32(u16 h) { return _cvtsh_ss(h); }
#else
/* Shifting the 15 bits up to a float's place leaves an exponent that is 112 too small; the multiply mends it and, since
 * float denormals are exact, f16 denormals with it. Written without branches so that loops over it vectorise. */
static inline float qn_f16_f32(u16 h)
{
    const u32 special = (h & 0x7C00u) == 0x7C00u ? 0x7F800000u : 0; /* infinities and NaN keep a full exponent */
    const u32 mag = qn_f32_bits(qn_bits_f32((u32)(h & 0x7FFFu) << 13) * 0x1.0p+112f) | special;
    return qn_bits_f32(mag | (u32)(h & 0x8000u) << 16);
}
#endif

static inline u16 qn_f32_f16(float f)
{
    const u32 u = qn_f32_bits(f), mag = u & 0x7FFFFFFFu;
    /* 0.5 has the unit in the last place that f16 denormals have: the add rounds to it */
    const u32 tiny = qn_f32_bits(qn_bits_f32(mag) + 0.5f) - 0x3F000000u;
    const u32 normal = (mag + 0xFFFu + ((mag >> 13) & 1) - (112u << 23)) >> 13;
    const u32 big = mag > 0x7F800000u ? 0x7E00u : 0x7C00u; /* NaN, else infinity */
    const u32 r = mag >= 0x477FF000u ? big : mag < 0x38800000u ? tiny : normal; /* 65520 rounds up to infinity; 2^-14 */
    return (u16)(r | (u >> 16 & 0x8000u));
}

#endif
