/* avx512/quant.c - activations to bytes: blocks 16 at a time, so that their scales are found side by side. */
#include <immintrin.h>

#include "kernel/generic/quant.h"

static __m512i bits_of(const float *x)
{
    return _mm512_and_si512(_mm512_castps_si512(_mm512_loadu_ps(x)), _mm512_set1_epi32(0x7FFFFFFF));
}

static u32 top_of_row(const float *x, size_t d)
{
    __m512i most[2] = { _mm512_setzero_si512(), _mm512_setzero_si512() };
    for (size_t i = 0; i < d; i += 32)
        for (size_t h = 0; h < 2; h++) most[h] = _mm512_max_epu32(most[h], bits_of(x + i + 16 * h));
    return _mm512_reduce_max_epu32(_mm512_max_epu32(most[0], most[1]));
}

#define GROUP 16 /* blocks */

static __m512i max2(__m512i a, __m512i b) { return _mm512_max_epu32(a, b); }

/* Lane i: the largest of v[i]. Halves of pairs change places until each vector has 16 of them. */
static __m512i tops(const __m512i v[GROUP])
{
    __m512i t[8], u[4], w[2];
    for (int i = 0; i < 8; i++)
        t[i] = max2(_mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]), _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
    for (int i = 0; i < 4; i++)
        u[i] = max2(_mm512_unpacklo_epi64(t[2 * i], t[2 * i + 1]), _mm512_unpackhi_epi64(t[2 * i], t[2 * i + 1]));
    for (int i = 0; i < 2; i++)
        w[i] = max2(_mm512_shuffle_i32x4(u[2 * i], u[2 * i + 1], 0x88), _mm512_shuffle_i32x4(u[2 * i], u[2 * i + 1], 0xDD));
    return max2(_mm512_shuffle_i32x4(w[0], w[1], 0x88), _mm512_shuffle_i32x4(w[0], w[1], 0xDD));
}

static __m128i level(const float *x, __m512 times, bool tiny)
{
    const __m512 v = _mm512_loadu_ps(x);
    if (!tiny) return _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(v, times))); /* within 127 by the choice of times */
    /* 127 / top overflows for the tiniest top: infinity times x is clamped, times zero must be zero */
    const __m512 at = _mm512_maskz_mul_ps(_mm512_cmpneq_ps_mask(v, _mm512_setzero_ps()), v, times);
    return _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(at, _mm512_set1_ps(-127)), _mm512_set1_ps(127))));
}

static void put_block(const float *x, float times, bool tiny, i32 shift, const qn_bytes *y, size_t at)
{
    const __m512 by = _mm512_set1_ps(times);
    const __m256i q = _mm256_setr_m128i(level(x, by, tiny), level(x + 16, by, tiny));
    _mm256_storeu_si256((__m256i *)(void *)(y->q + 32 * at), q);
    /* sums of 8 unsigned bytes each, 128 above what they stand for */
    const __m256i sums = _mm256_sad_epu8(_mm256_xor_si256(q, _mm256_set1_epi8(-128)), _mm256_setzero_si256());
    const __m256i both = _mm256_add_epi64(sums, _mm256_unpackhi_epi64(sums, sums));
    const i32 lo = 128 * 16 - _mm256_extract_epi32(both, 0), hi = 128 * 16 - _mm256_extract_epi32(both, 4);
    y->shift[at] = shift;
    y->start[at] = 128 * (lo + hi);
    y->start16[2 * at] = 128 * lo;
    y->start16[2 * at + 1] = 128 * hi;
}

/* n blocks, at most GROUP. */
static void quant_group(const float *x, size_t n, u32 top, u32 span, float inverse, const qn_bytes *y, qn_strand at)
{
    __m512i most[GROUP];
    _Alignas(64) float times[GROUP];
    _Alignas(64) i32 shift[GROUP];
    for (size_t i = 0; i < GROUP; i++)
        most[i] = i < n ? max2(bits_of(x + 32 * i), bits_of(x + 32 * i + 16)) : _mm512_setzero_si512();
    const __m512i far = _mm512_srli_epi32(_mm512_sub_epi32(_mm512_set1_epi32((i32)top), tops(most)), 23);
    const __m512i all = _mm512_set1_epi32((i32)span), j = _mm512_min_epu32(far, all);
    const __m512i power = _mm512_slli_epi32(_mm512_add_epi32(j, _mm512_set1_epi32(127)), 23);
    _mm512_store_ps(times, _mm512_mul_ps(_mm512_castsi512_ps(power), _mm512_set1_ps(inverse)));
    _mm512_store_si512(shift, _mm512_sub_epi32(all, j));
    for (size_t i = 0; i < n; i++)
        put_block(x + 32 * i, times[i], span == 0, shift[i], y, at.first + i * at.step);
}

static void quant_blocks(const float *x, size_t n, u32 top, u32 span, float inverse, const qn_bytes *y, qn_strand at)
{
    for (size_t b = 0; b < n; b += GROUP, at.first += GROUP * at.step)
        quant_group(x + 32 * b, n - b < GROUP ? n - b : GROUP, top, span, inverse, y, at);
}

void qn_quant_f32_avx512_r1(const void *args, qn_lane lane);
void qn_quant_f32_avx512_r1(const void *args, qn_lane lane) { quant_rows(args, lane); }
