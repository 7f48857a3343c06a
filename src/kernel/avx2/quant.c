/* avx2/quant.c - activations to bytes, block by block. */
#include <immintrin.h>

#include "kernel/generic/quant.h"

static __m256i top4(const float *x)
{
    const __m256i keep = _mm256_set1_epi32(0x7FFFFFFF);
    __m256i most = _mm256_setzero_si256();
    for (int i = 0; i < 32; i += 8)
        most = _mm256_max_epu32(most, _mm256_and_si256(keep, _mm256_castps_si256(_mm256_loadu_ps(x + i))));
    return most;
}

static u32 top_lane(__m256i v)
{
    __m128i four = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    four = _mm_max_epu32(four, _mm_unpackhi_epi64(four, four));
    return (u32)_mm_cvtsi128_si32(_mm_max_epu32(four, _mm_srli_epi64(four, 32)));
}

static u32 top_of_row(const float *x, size_t d)
{
    __m256i most = _mm256_setzero_si256();
    for (size_t i = 0; i < d; i += 32) most = _mm256_max_epu32(most, top4(x + i));
    return top_lane(most);
}

static __m256i level(const float *x, __m256 inverse)
{
    /* 127 / top overflows for the tiniest top: infinity times x is clamped, times zero must be zero */
    const __m256 v = _mm256_loadu_ps(x), some = _mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_NEQ_UQ);
    const __m256 at = _mm256_max_ps(_mm256_and_ps(some, _mm256_mul_ps(v, inverse)), _mm256_set1_ps(-127));
    return _mm256_cvtps_epi32(_mm256_min_ps(at, _mm256_set1_ps(127)));
}

static void quant_block(const float *x, u32 top, u32 span, float inverse, const qn_bytes *y, size_t at)
{
    const u32 far = (top - top_lane(top4(x))) >> 23, j = far < span ? far : span;
    const __m256 times = _mm256_set1_ps(inverse * qn_bits_f32((127 + j) << 23));
    /* the packs go half by half: 32 bits of each vector in turn, put right at the end */
    const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(level(x, times), level(x + 8, times)),
                                             _mm256_packs_epi32(level(x + 16, times), level(x + 24, times)));
    const __m256i q = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256((__m256i *)(void *)(y->q + 32 * at), q);
    /* sums of 8 unsigned bytes each, 128 above what they stand for */
    const __m256i sums = _mm256_sad_epu8(_mm256_xor_si256(q, _mm256_set1_epi8(-128)), _mm256_setzero_si256());
    const __m256i both = _mm256_add_epi64(sums, _mm256_unpackhi_epi64(sums, sums));
    const i32 lo = 128 * 16 - _mm256_extract_epi32(both, 0), hi = 128 * 16 - _mm256_extract_epi32(both, 4);
    y->shift[at] = (i32)(span - j);
    y->start[at] = 128 * (lo + hi);
    y->start16[2 * at] = 128 * lo;
    y->start16[2 * at + 1] = 128 * hi;
}

static void quant_blocks(const float *x, size_t n, u32 top, u32 span, float inverse, const qn_bytes *y, qn_strand at)
{
    for (size_t b = 0; b < n; b++, at.first += at.step) quant_block(x + 32 * b, top, span, inverse, y, at.first);
}

void qn_quant_f32_avx2_r1(const void *args, qn_lane lane);
void qn_quant_f32_avx2_r1(const void *args, qn_lane lane) { quant_rows(args, lane); }
