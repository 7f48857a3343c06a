/* f16.h - F16: IEEE half precision, a block of one. Runs use the conversion of the processor where the file is built for
 * one that has it: gcc 12 does not find it, and plain arithmetic is slow on denormals on some processors. */
#ifndef QN_F16_H
#define QN_F16_H

#include "base/half.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

typedef struct qn_f16 { u16 v; } qn_f16;
static_assert(sizeof(qn_f16) == 2, "f16 block");

static inline void qn_f16_decode(const qn_f16 *b, float *restrict y) { *y = qn_f16_f32(b->v); }
static inline void qn_f16_encode(const float *restrict x, qn_f16 *b) { b->v = qn_f32_f16(*x); }

#if defined(__AVX512F__)
static inline void qn_f16_decode_run(const qn_f16 *b, float *restrict y, size_t n)
{
    const size_t whole = n - n % 16;
    for (size_t i = 0; i < whole; i += 16)
        _mm512_storeu_ps(y + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(b + i))));
    for (size_t i = whole; i < n; i++) y[i] = qn_f16_f32(b[i].v);
}
#elif defined(__F16C__)
static inline void qn_f16_decode_run(const qn_f16 *b, float *restrict y, size_t n)
{
    const size_t whole = n - n % 8;
    for (size_t i = 0; i < whole; i += 8)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(b + i))));
    for (size_t i = whole; i < n; i++) y[i] = qn_f16_f32(b[i].v);
}
#else
static inline void qn_f16_decode_run(const qn_f16 *b, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = qn_f16_f32(b[i].v);
}
#endif

#endif
