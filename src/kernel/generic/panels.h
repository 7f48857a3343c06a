/* panels.h - the 16 outputs of a panel as vectors of LANES floats: read, written, cut off where the matrix ends. */
#ifndef QN_GENERIC_PANELS_H
#define QN_GENERIC_PANELS_H

#include "base/half.h"
#include "kernel/generic/vec.h"
#include "kernel/panel.h"

#define NV (QN_PANEL / LANES)

typedef struct floats { vf v[NV]; } floats; /* one for each row of a panel */

/* The first `left` of 16, at most all; what is not there is zero, and is not written. */
INLINE floats get(const float *p, int left)
{
    floats f;
    UNROLL for (int v = 0; v < NV; v++) {
        const int n = left - v * LANES;
        f.v[v] = n >= LANES ? load(p + v * LANES) : n > 0 ? load_first(p + v * LANES, n) : splat(0);
    }
    return f;
}

INLINE void put(float *p, floats f, int left)
{
    UNROLL for (int v = 0; v < NV; v++) {
        const int n = left - v * LANES;
        if (n >= LANES) store(p + v * LANES, f.v[v]);
        else if (n > 0) store_first(p + v * LANES, f.v[v], n);
    }
}

/* LANES f16, bf16 */
#if LANES == 16
INLINE vf halves_at(const u16 *p) { return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p)); }
INLINE vf brains_at(const u16 *p)
{
    return (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p)), 16);
}
#elif LANES == 8
INLINE vf halves_at(const u16 *p) { return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p)); }
INLINE vf brains_at(const u16 *p)
{
    return (vf)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)), 16);
}
#else
#if defined(__aarch64__)
INLINE vf halves_at(const u16 *p) { return (vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
#else
INLINE vf halves_at(const u16 *p) { return (vf){ qn_f16_f32(p[0]), qn_f16_f32(p[1]), qn_f16_f32(p[2]), qn_f16_f32(p[3]) }; }
#endif
INLINE vf brains_at(const u16 *p) { return (vf){ qn_bf16_f32(p[0]), qn_bf16_f32(p[1]), qn_bf16_f32(p[2]), qn_bf16_f32(p[3]) }; }
#endif

#endif
