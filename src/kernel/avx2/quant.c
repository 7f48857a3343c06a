/* avx2/quant.c - activations to bytes, one row at a time. The largest magnitude is found on the bits, where NaN and infinity are
 * larger than every number and cannot hide. */
#include <immintrin.h>
#include <math.h>

#include "base/half.h"
#include "kernel/op.h"

static i32 add_lanes(__m256i v)
{
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    return _mm_cvtsi128_si32(two) + _mm_extract_epi32(two, 1);
}

static u32 top_bits(const __m256 x[4])
{
    const __m256i keep = _mm256_set1_epi32(0x7FFFFFFF);
    __m256i most = _mm256_setzero_si256();
    for (int i = 0; i < 4; i++) most = _mm256_max_epu32(most, _mm256_and_si256(keep, _mm256_castps_si256(x[i])));
    __m128i four = _mm_max_epu32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    four = _mm_max_epu32(four, _mm_unpackhi_epi64(four, four));
    return (u32)_mm_cvtsi128_si32(_mm_max_epu32(four, _mm_srli_epi64(four, 32)));
}

static void quant_block(const float *x, i8 *q, float *scale, i32 *sum, i32 *sum16)
{
    __m256 v[4];
    __m256i n[4];
    for (int i = 0; i < 4; i++) v[i] = _mm256_loadu_ps(x + 8 * i);
    const u32 top = top_bits(v);
    const float most = qn_bits_f32(top);
    const bool finite = top < 0x7F800000u;
    *scale = finite ? most / 127 : NAN;
    /* 127 / most overflows for the tiniest most: infinity times x is clamped, times zero must be zero */
    const __m256 inverse = _mm256_set1_ps(finite && top ? 127 / most : 0), hi = _mm256_set1_ps(127), lo = _mm256_set1_ps(-127);
    const __m256 all = finite ? _mm256_castsi256_ps(_mm256_set1_epi32(-1)) : _mm256_setzero_ps();
    for (int i = 0; i < 4; i++) {
        const __m256 keep = _mm256_and_ps(all, _mm256_cmp_ps(v[i], _mm256_setzero_ps(), _CMP_NEQ_UQ));
        const __m256 level = _mm256_and_ps(keep, _mm256_mul_ps(v[i], inverse));
        n[i] = _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(level, lo), hi));
    }
    sum16[0] = add_lanes(_mm256_add_epi32(n[0], n[1]));
    sum16[1] = add_lanes(_mm256_add_epi32(n[2], n[3]));
    *sum = sum16[0] + sum16[1];
    /* the packs go half by half: 32 bits of each vector in turn, put right at the end */
    const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(n[0], n[1]), _mm256_packs_epi32(n[2], n[3]));
    _mm256_storeu_si256((__m256i *)(void *)q, _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
}

void qn_quant_f32_avx2_r1(const void *args, qn_lane lane);
void qn_quant_f32_avx2_r1(const void *args, qn_lane lane)
{
    const qn_quant *a = args;
    const size_t d = (size_t)a->d;
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++) {
        for (size_t at = (size_t)t * d; at < (size_t)(t + 1) * d; at += 32)
            quant_block(a->x + at, a->y.q + at, a->y.scale + at / 32, a->y.sum + at / 32, a->y.sum16 + at / 16);
    }
}
