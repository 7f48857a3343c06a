/* lanes.h - sixteen small integers at a time. Decoders unpack their bits with plain operators on vectors of 16 bytes and end
 * in one of the two `put` calls. Those are spelled out per processor, since gcc unrolls loops of 16 into single steps before
 * it could make vectors of them (Q6_K with AVX2: 3 against 10 weights a nanosecond). Same results everywhere, bit for bit, as
 * long as the including file is not built to contract a * b - c. */
#ifndef QN_LANES_H
#define QN_LANES_H

#include <string.h>

#include "base/half.h"
#include "base/types.h"

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

typedef u8 qn_u8x16 __attribute__((vector_size(16)));
typedef i8 qn_i8x16 __attribute__((vector_size(16)));
typedef u64 qn_u64x2 __attribute__((vector_size(16)));

static inline qn_u8x16 qn_load16(const void *p)
{
    qn_u8x16 v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Bit i of two bytes gives lane i: 16 or 0. */
#if defined(__AVX512BW__) && defined(__AVX512VL__)
static inline qn_u8x16 qn_fifth16(const u8 high[2])
{
    return (qn_u8x16)_mm_maskz_set1_epi8((__mmask16)(high[0] | high[1] << 8), 16);
}
#else
/* Each byte is repeated eight times and another bit of each copy kept. */
static inline qn_u8x16 qn_fifth16(const u8 high[2])
{
    const qn_u64x2 copies = { high[0] * 0x0101010101010101u, high[1] * 0x0101010101010101u };
    const qn_u64x2 own = { 0x8040201008040201u, 0x8040201008040201u };
    return (qn_u8x16)((qn_u8x16)(copies & own) != 0) & 16;
}
#endif

/* table[q], q below 16 */
#if defined(__SSSE3__)
static inline qn_i8x16 qn_lookup16(const i8 table[16], qn_u8x16 q)
{
    return (qn_i8x16)_mm_shuffle_epi8((__m128i)qn_load16(table), (__m128i)q);
}
#elif defined(__aarch64__)
static inline qn_i8x16 qn_lookup16(const i8 table[16], qn_u8x16 q)
{
    return (qn_i8x16)vqtbl1q_s8(vld1q_s8(table), (uint8x16_t)q);
}
#else
/* No byte shuffle: a tournament, in which each bit of q decides between neighbours. */
static inline qn_i8x16 qn_lookup16(const i8 table[16], qn_u8x16 q)
{
    qn_i8x16 v[16];
    for (int i = 0; i < 16; i++) v[i] = table[i] - (qn_i8x16){ 0 };
    for (int bit = 0; bit < 4; bit++) {
        const qn_i8x16 odd = -(qn_i8x16)(q >> bit & 1);
        for (int i = 0; i < 8 >> bit; i++) v[i] = v[2 * i] ^ (odd & (v[2 * i] ^ v[2 * i + 1]));
    }
    return v[0];
}
#endif

/* put16: y[i] = s * q[i]; put16_min: y[i] = s * q[i] - m. */
#if defined(__AVX512F__)
static inline void qn_put16(float *restrict y, qn_i8x16 q, float s)
{
    _mm512_storeu_ps(y, _mm512_set1_ps(s) * _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32((__m128i)q)));
}

static inline void qn_put16_min(float *restrict y, qn_i8x16 q, float s, float m)
{
    const __m512 v = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32((__m128i)q));
    _mm512_storeu_ps(y, _mm512_set1_ps(s) * v - _mm512_set1_ps(m));
}
#elif defined(__AVX2__)
static inline void qn_put16(float *restrict y, qn_i8x16 q, float s)
{
    const __m256 d = _mm256_set1_ps(s);
    const __m128i hi = _mm_unpackhi_epi64((__m128i)q, (__m128i)q);
    _mm256_storeu_ps(y, d * _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32((__m128i)q)));
    _mm256_storeu_ps(y + 8, d * _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(hi)));
}

static inline void qn_put16_min(float *restrict y, qn_i8x16 q, float s, float m)
{
    const __m256 d = _mm256_set1_ps(s), min = _mm256_set1_ps(m);
    const __m128i hi = _mm_unpackhi_epi64((__m128i)q, (__m128i)q);
    _mm256_storeu_ps(y, d * _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32((__m128i)q)) - min);
    _mm256_storeu_ps(y + 8, d * _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(hi)) - min);
}
#elif defined(__SSE2__)
/* Four of the 16 lanes as floats: a byte doubled into a word, a word into a long, and shifted back with its sign. */
static inline __m128 qn_quarter(__m128i words, bool upper)
{
    const __m128i w = upper ? _mm_unpackhi_epi16(words, words) : _mm_unpacklo_epi16(words, words);
    return _mm_cvtepi32_ps(_mm_srai_epi32(w, 24));
}

static inline void qn_put16_min(float *restrict y, qn_i8x16 q, float s, float m)
{
    const __m128 d = _mm_set1_ps(s), min = _mm_set1_ps(m);
    const __m128i lo = _mm_unpacklo_epi8((__m128i)q, (__m128i)q), hi = _mm_unpackhi_epi8((__m128i)q, (__m128i)q);
    _mm_storeu_ps(y, d * qn_quarter(lo, false) - min);
    _mm_storeu_ps(y + 4, d * qn_quarter(lo, true) - min);
    _mm_storeu_ps(y + 8, d * qn_quarter(hi, false) - min);
    _mm_storeu_ps(y + 12, d * qn_quarter(hi, true) - min);
}

static inline void qn_put16(float *restrict y, qn_i8x16 q, float s)
{
    const __m128 d = _mm_set1_ps(s);
    const __m128i lo = _mm_unpacklo_epi8((__m128i)q, (__m128i)q), hi = _mm_unpackhi_epi8((__m128i)q, (__m128i)q);
    _mm_storeu_ps(y, d * qn_quarter(lo, false));
    _mm_storeu_ps(y + 4, d * qn_quarter(lo, true));
    _mm_storeu_ps(y + 8, d * qn_quarter(hi, false));
    _mm_storeu_ps(y + 12, d * qn_quarter(hi, true));
}
#else
static inline void qn_put16(float *restrict y, qn_i8x16 q, float s)
{
    for (int i = 0; i < 16; i++) y[i] = s * (float)q[i];
}

static inline void qn_put16_min(float *restrict y, qn_i8x16 q, float s, float m)
{
    for (int i = 0; i < 16; i++) y[i] = s * (float)q[i] - m;
}
#endif

#endif
