/* lookup16.h - 16 bytes of nibbles through a table of 16 bytes: low nibbles give out[0..15], high ones out[16..31]. Compilers
 * do not find the byte shuffle that most processors have for this, so it is spelled out where there is one. */
#ifndef QN_LOOKUP16_H
#define QN_LOOKUP16_H

#include "base/types.h"

#if defined(__SSSE3__)
#include <immintrin.h>

static inline void qn_lookup_nibbles(const i8 table[16], const u8 q[16], i8 out[32])
{
    const __m128i t = _mm_loadu_si128((const __m128i *)(const void *)table);
    const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)q), mask = _mm_set1_epi8(15);
    _mm_storeu_si128((__m128i *)(void *)out, _mm_shuffle_epi8(t, _mm_and_si128(v, mask)));
    _mm_storeu_si128((__m128i *)(void *)(out + 16), _mm_shuffle_epi8(t, _mm_and_si128(_mm_srli_epi16(v, 4), mask)));
}
#elif defined(__aarch64__)
#include <arm_neon.h>

static inline void qn_lookup_nibbles(const i8 table[16], const u8 q[16], i8 out[32])
{
    const int8x16_t t = vld1q_s8(table);
    const uint8x16_t v = vld1q_u8(q);
    vst1q_s8(out, vqtbl1q_s8(t, vandq_u8(v, vdupq_n_u8(15))));
    vst1q_s8(out + 16, vqtbl1q_s8(t, vshrq_n_u8(v, 4)));
}
#else
static inline void qn_lookup_nibbles(const i8 table[16], const u8 q[16], i8 out[32])
{
    for (int i = 0; i < 16; i++) out[i] = table[q[i] & 15];
    for (int i = 0; i < 16; i++) out[i + 16] = table[q[i] >> 4];
}
#endif

#endif
