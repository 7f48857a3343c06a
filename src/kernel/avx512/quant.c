/* avx512/quant.c - activations to bytes, one row at a time. The largest magnitude is found on the
 * bits, where NaN and infinity are larger than every number and cannot hide. */
#include <immintrin.h>
#include <math.h>

#include "base/half.h"
#include "kernel/op.h"

static void quant_block(const float *x, i8 *q, float *scale, i32 *sum, i32 *sum16)
{
    const __m512 a = _mm512_loadu_ps(x), b = _mm512_loadu_ps(x + 16);
    const __m512i sign = _mm512_set1_epi32((int)0x80000000u);
    const __m512i bits = _mm512_max_epu32(_mm512_andnot_si512(sign, _mm512_castps_si512(a)),
                                          _mm512_andnot_si512(sign, _mm512_castps_si512(b)));
    const u32 top = (u32)_mm512_reduce_max_epu32(bits);
    const float most = qn_bits_f32(top);
    const bool finite = top < 0x7F800000u;
    *scale = finite ? most / 127 : NAN;
    const __m512 inverse = _mm512_set1_ps(finite && top ? 127 / most : 0), hi = _mm512_set1_ps(127),
                 lo = _mm512_set1_ps(-127);
    const __mmask16 ka = finite ? _mm512_cmpneq_ps_mask(a, _mm512_setzero_ps()) : 0,
                    kb = finite ? _mm512_cmpneq_ps_mask(b, _mm512_setzero_ps()) : 0;
    const __m512i qa = _mm512_cvtps_epi32(
        _mm512_min_ps(_mm512_max_ps(_mm512_maskz_mul_ps(ka, a, inverse), lo), hi));
    const __m512i qb = _mm512_cvtps_epi32(
        _mm512_min_ps(_mm512_max_ps(_mm512_maskz_mul_ps(kb, b, inverse), lo), hi));
    _mm_storeu_si128((__m128i *)(void *)q, _mm512_cvtepi32_epi8(qa));
    _mm_storeu_si128((__m128i *)(void *)(q + 16), _mm512_cvtepi32_epi8(qb));
    sum16[0] = _mm512_reduce_add_epi32(qa);
    sum16[1] = _mm512_reduce_add_epi32(qb);
    *sum = sum16[0] + sum16[1];
}

void qn_quant_f32_avx512_r1(const void *args, qn_lane lane);
void qn_quant_f32_avx512_r1(const void *args, qn_lane lane)
{
    const qn_quant *a = args;
    const size_t d = (size_t)a->d;
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++) {
        for (size_t at = (size_t)t * d; at < (size_t)(t + 1) * d; at += 32)
            quant_block(a->x + at, a->y.q + at, a->y.scale + at / 32, a->y.sum + at / 32,
                        a->y.sum16 + at / 16);
    }
}
