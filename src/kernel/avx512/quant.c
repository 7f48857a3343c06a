/* avx512/quant.c - activations to bytes, one row at a time: the row's largest magnitude first, then its blocks. Magnitudes are
 * compared on the bits, where NaN and infinity are larger than every number and cannot hide, and where the difference of two
 * of them has the number of halvings between them in its exponent. */
#include <immintrin.h>
#include <math.h>

#include "base/half.h"
#include "kernel/op.h"

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

static __m512i level(const float *x, __m512 inverse)
{
    /* 127 / top overflows for the tiniest top: infinity times x is clamped, times zero must be zero */
    const __m512 v = _mm512_loadu_ps(x), most = _mm512_set1_ps(127);
    const __mmask16 some = _mm512_cmpneq_ps_mask(v, _mm512_setzero_ps());
    return _mm512_cvtps_epi32(
        _mm512_min_ps(_mm512_max_ps(_mm512_maskz_mul_ps(some, v, inverse), _mm512_set1_ps(-127)), most));
}

/* top: of the row, bits of a finite number; span: most halvings; inverse: 127 / top. */
static void quant_block(const float *x, u32 top, u32 span, float inverse, const qn_bytes *y, size_t at)
{
    const u32 most = _mm512_reduce_max_epu32(_mm512_max_epu32(bits_of(x), bits_of(x + 16)));
    const u32 far = (top - most) >> 23, j = far < span ? far : span;
    const __m512 times = _mm512_set1_ps(inverse * qn_bits_f32((127 + j) << 23));
    const __m256i q = _mm256_setr_m128i(_mm512_cvtepi32_epi8(level(x, times)), _mm512_cvtepi32_epi8(level(x + 16, times)));
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

static void zero_block(const qn_bytes *y, size_t at)
{
    _mm256_storeu_si256((__m256i *)(void *)(y->q + 32 * at), _mm256_setzero_si256());
    y->shift[at] = y->start[at] = y->start16[2 * at] = y->start16[2 * at + 1] = 0;
}

static void quant_row(const float *x, size_t d, const qn_bytes *y, qn_strand at, float *unit)
{
    const u32 top = top_of_row(x, d);
    const float most = qn_bits_f32(top);
    const bool finite = top < 0x7F800000u;
    const u32 span = finite && most >= QN_BYTES_LEAST ? QN_SHIFTS : 0;
    *unit = finite ? most / 127 * qn_bits_f32((127 - span) << 23) : NAN;
    for (size_t b = 0; b < d; b += 32, at.first += at.step) {
        if (finite && top) quant_block(x + b, top, span, 127 / most, y, at.first);
        else zero_block(y, at.first);
    }
}

void qn_quant_f32_avx512_r1(const void *args, qn_lane lane);
void qn_quant_f32_avx512_r1(const void *args, qn_lane lane)
{
    const qn_quant *a = args;
    const size_t d = (size_t)a->d;
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++)
        quant_row(a->x + (size_t)t * d, d, &a->y, qn_bytes_row(a->n, t, a->d / 32), &a->y.unit[t]);
}
