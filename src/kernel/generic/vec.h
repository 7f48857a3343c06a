/* vec.h - vectors of LANES floats, by the vector extensions of gcc and clang. The file that includes this says LANES, and the
 * Makefile gives its folder the flags for it: the same bodies become SSE2, NEON, AVX2 or AVX-512.
 * A multiply and an add are one rounding where vfma stands and nowhere else (the build has contraction off): so a sum has the
 * same bits wherever the compiler puts it. Everything is forced inline: nothing built for AVX may be called from elsewhere. */
#ifndef QN_VEC_H
#define QN_VEC_H

#include <string.h>

#include "base/types.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef i32 vi __attribute__((vector_size(4 * LANES)));
typedef float vf_any __attribute__((vector_size(4 * LANES), aligned(4), may_alias)); /* as it lies in memory */
typedef double vd __attribute__((vector_size(4 * LANES)));                             /* half as many */
typedef float vf_half __attribute__((vector_size(2 * LANES), aligned(4), may_alias));

INLINE vf load(const float *p) { return *(const vf_any *)p; }
INLINE void store(float *p, vf v) { *(vf_any *)p = v; }
INLINE vf splat(float x) { return x - (vf){ 0 }; } /* x - 0 keeps -0 */
INLINE vd load_d(const float *p) { return __builtin_convertvector(*(const vf_half *)p, vd); }

/* The first n values of p, zeros behind them. */
INLINE vf load_first(const float *p, int n)
{
    float pad[LANES] = { 0 };
    memcpy(pad, p, (size_t)n * sizeof *pad);
    return load(pad);
}

INLINE void store_first(float *p, vf v, int n)
{
    float pad[LANES];
    store(pad, v);
    memcpy(p, pad, (size_t)n * sizeof *pad);
}

/* mask is -1 or 0 in each lane, as comparisons give it */
INLINE vf choose(vi mask, vf yes, vf no) { return (vf)((mask & (vi)yes) | (~mask & (vi)no)); }

INLINE double sum_d(vd v)
{
    double s = 0;
    UNROLL for (int i = 0; i < LANES / 2; i++) s += v[i];
    return s;
}

/* ---- what differs with the width: a * b + c, and sums and maxima of lanes by halves, always in the same order */

/* a where it is larger, else b, also where one of them is NaN: what the instruction does, which the compiler does not find */
#if LANES == 16
#include <immintrin.h>
INLINE vf vmax(vf a, vf b) { return (vf)_mm512_max_ps((__m512)a, (__m512)b); }
#elif LANES == 8
#include <immintrin.h>
INLINE vf vmax(vf a, vf b) { return (vf)_mm256_max_ps((__m256)a, (__m256)b); }
#else
INLINE vf vmax(vf a, vf b) { return choose(a > b, a, b); }
#endif

#define SHUFFLE __builtin_shufflevector
typedef float vf4 __attribute__((vector_size(16)));

INLINE float sum_4(vf4 v)
{
    const vf4 h = v + SHUFFLE(v, v, 2, 3, 0, 1);
    return h[0] + h[1];
}

INLINE float top_4(vf4 v)
{
    const float a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
    return a > b ? a : b;
}

/* join(a, b, w): sums of the halves of every group of w lanes, those of a below those of b. Applied to W vectors pairwise,
 * with w = W, W/2, .. 2, it leaves lane i with the whole sum of vector i. */
#if LANES == 16
#include <immintrin.h>

INLINE vf vfma(vf a, vf b, vf c) { return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }

INLINE float sum(vf v)
{
    const vf h = v + SHUFFLE(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    return sum_4(SHUFFLE(h, h, 0, 1, 2, 3) + SHUFFLE(h, h, 4, 5, 6, 7));
}

INLINE float top(vf v)
{
    const vf h = vmax(v, SHUFFLE(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
    const vf q = vmax(h, SHUFFLE(h, h, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3));
    return top_4(SHUFFLE(q, q, 0, 1, 2, 3));
}

INLINE vf join(vf a, vf b, int w)
{
    switch (w) {
    case 16: return SHUFFLE(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
                    SHUFFLE(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    case 8: return SHUFFLE(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27) +
                   SHUFFLE(a, b, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
    case 4: return SHUFFLE(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
                   SHUFFLE(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    default: return SHUFFLE(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30) +
                    SHUFFLE(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
    }
}

INLINE vf swap_pairs(vf v) { return SHUFFLE(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14); }

#elif LANES == 8
#include <immintrin.h>

INLINE vf vfma(vf a, vf b, vf c) { return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
INLINE float sum(vf v) { return sum_4(SHUFFLE(v, v, 0, 1, 2, 3) + SHUFFLE(v, v, 4, 5, 6, 7)); }

INLINE float top(vf v)
{
    const vf h = vmax(v, SHUFFLE(v, v, 4, 5, 6, 7, 0, 1, 2, 3));
    return top_4(SHUFFLE(h, h, 0, 1, 2, 3));
}

INLINE vf join(vf a, vf b, int w)
{
    switch (w) {
    case 8: return SHUFFLE(a, b, 0, 1, 2, 3, 8, 9, 10, 11) + SHUFFLE(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    case 4: return SHUFFLE(a, b, 0, 1, 8, 9, 4, 5, 12, 13) + SHUFFLE(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
    default: return SHUFFLE(a, b, 0, 8, 2, 10, 4, 12, 6, 14) + SHUFFLE(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
    }
}

INLINE vf swap_pairs(vf v) { return SHUFFLE(v, v, 1, 0, 3, 2, 5, 4, 7, 6); }

#else
#if defined(__aarch64__)
#include <arm_neon.h>
INLINE vf vfma(vf a, vf b, vf c) { return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
#else
INLINE vf vfma(vf a, vf b, vf c) { return a * b + c; }
#endif
INLINE float sum(vf v) { return sum_4(v); }
INLINE float top(vf v) { return top_4(v); }

INLINE vf join(vf a, vf b, int w)
{
    if (w == 4) return SHUFFLE(a, b, 0, 1, 4, 5) + SHUFFLE(a, b, 2, 3, 6, 7);
    return SHUFFLE(a, b, 0, 4, 2, 6) + SHUFFLE(a, b, 1, 5, 3, 7);
}

INLINE vf swap_pairs(vf v) { return SHUFFLE(v, v, 1, 0, 3, 2); }
#endif

/* The sums of LANES vectors, one in each lane; s is used up. */
INLINE vf sums(vf s[LANES])
{
    UNROLL for (int w = LANES; w > 1; w /= 2)
        UNROLL for (int i = 0; i < w / 2; i++) s[i] = join(s[i], s[i + w / 2], w);
    return s[0];
}

#endif
