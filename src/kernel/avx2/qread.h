/* qread.h - the parts of generic/qlinear.h that AVX2 and AVX-VNNI share: how bits and halves become vectors of 32 bytes. */
#ifndef QN_AVX2_QREAD_H
#define QN_AVX2_QREAD_H

#include <immintrin.h>

#include "kernel/generic/qlinear.h"

/* Each of 4 bytes is repeated eight times and another bit of each copy kept. */
INLINE vb fifths(u64 mask, int v)
{
    const __m256i own = _mm256_set1_epi64x((i64)0x8040201008040201u);
    const __m256i copy = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bits = _mm256_shuffle_epi8(_mm256_set1_epi32((i32)(mask >> (32 * v))), copy);
    return (vb)_mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(bits, own), own), _mm256_set1_epi8(16));
}

INLINE vf unsigned_at(const u8 *p)
{
    return (vf)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}
INLINE vf signed_at(const i8 *p)
{
    return (vf)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}

INLINE __m256i quad_at(const i8 *q) /* 4 columns of x, in every lane */
{
    i32 v;
    memcpy(&v, q, 4);
    return _mm256_set1_epi32(v);
}

#endif
