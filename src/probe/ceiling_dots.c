/* ceiling_dots.c - the loops that say how fast short numbers are multiplied: dot products of bytes, which quantised prompts are
 * made of, and of bfloat16. As in ceiling_loops.c everything stays in registers. */
#include "probe/ceilings.h"

#define CHAINS 12 /* as in ceiling_loops.c */

typedef i16 eight __attribute__((vector_size(16)));

static u64 dot8_base(u64 n, float *sink) /* 16-bit products and sums: what the least of machines has */
{
    eight x[CHAINS];
    eight a = { 1, 2, 3, 1, 2, 3, 1, 2 };
    for (int k = 0; k < CHAINS; k++) x[k] = (eight){ (i16)k };
    for (u64 i = 0; i < n; i++)
        for (int k = 0; k < CHAINS; k++) x[k] = x[k] * a + a;
    for (int k = 0; k < CHAINS; k++) *sink += (float)x[k][0];
    return n * CHAINS * 8 * 2;
}

#if defined(__x86_64__)
#include <immintrin.h>

/* The compiler may not know that a register stays the same: else it would multiply once for all rounds. Costs no instruction. */
#define RENEW(v) __asm__ volatile("" : "+v"(v))

__attribute__((target("avx2"))) static u64 dot8_avx2(u64 n, float *sink)
{
    __m256i x[CHAINS], b = _mm256_set1_epi8(3);
    const __m256i a = _mm256_set1_epi8(1), ones = _mm256_set1_epi16(1);
    for (int k = 0; k < CHAINS; k++) x[k] = _mm256_set1_epi32(k);
    for (u64 i = 0; i < n; i++)
        for (int k = 0; k < CHAINS; k++) {
            RENEW(b);
            x[k] = _mm256_add_epi32(x[k], _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), ones));
        }
    for (int k = 0; k < CHAINS; k++) *sink += (float)_mm256_extract_epi32(x[k], 0);
    return n * CHAINS * 32 * 2;
}

__attribute__((target("avxvnni"))) static u64 dot8_avxvnni(u64 n, float *sink)
{
    __m256i x[CHAINS];
    const __m256i a = _mm256_set1_epi8(1), b = _mm256_set1_epi8(3);
    for (int k = 0; k < CHAINS; k++) x[k] = _mm256_set1_epi32(k);
    for (u64 i = 0; i < n; i++)
        for (int k = 0; k < CHAINS; k++) x[k] = _mm256_dpbusd_avx_epi32(x[k], a, b);
    for (int k = 0; k < CHAINS; k++) *sink += (float)_mm256_extract_epi32(x[k], 0);
    return n * CHAINS * 32 * 2;
}

__attribute__((target("avx512f,avx512bw"))) static u64 dot8_avx512(u64 n, float *sink)
{
    __m512i x[CHAINS], b = _mm512_set1_epi8(3);
    const __m512i a = _mm512_set1_epi8(1), ones = _mm512_set1_epi16(1);
    for (int k = 0; k < CHAINS; k++) x[k] = _mm512_set1_epi32(k);
    for (u64 i = 0; i < n; i++)
        for (int k = 0; k < CHAINS; k++) {
            RENEW(b);
            x[k] = _mm512_add_epi32(x[k], _mm512_madd_epi16(_mm512_maddubs_epi16(a, b), ones));
        }
    for (int k = 0; k < CHAINS; k++) *sink += (float)_mm_cvtsi128_si32(_mm512_castsi512_si128(x[k]));
    return n * CHAINS * 64 * 2;
}

__attribute__((target("avx512f,avx512vnni"))) static u64 dot8_vnni(u64 n, float *sink)
{
    __m512i x[CHAINS];
    const __m512i a = _mm512_set1_epi8(1), b = _mm512_set1_epi8(3);
    for (int k = 0; k < CHAINS; k++) x[k] = _mm512_set1_epi32(k);
    for (u64 i = 0; i < n; i++)
        for (int k = 0; k < CHAINS; k++) x[k] = _mm512_dpbusd_epi32(x[k], a, b);
    for (int k = 0; k < CHAINS; k++) *sink += (float)_mm_cvtsi128_si32(_mm512_castsi512_si128(x[k]));
    return n * CHAINS * 64 * 2;
}

__attribute__((target("avx512f,avx512bf16"))) static u64 dot16_bf16(u64 n, float *sink)
{
    __m512 x[CHAINS];
    const __m512bh a = (__m512bh)_mm512_set1_epi16(0x3F80), b = (__m512bh)_mm512_set1_epi16(0x3A83); /* 1 and 0.001 */
    for (int k = 0; k < CHAINS; k++) x[k] = _mm512_set1_ps((float)k);
    for (u64 i = 0; i < n; i++)
        for (int k = 0; k < CHAINS; k++) x[k] = _mm512_dpbf16_ps(x[k], a, b);
    for (int k = 0; k < CHAINS; k++) *sink += _mm512_cvtss_f32(x[k]);
    return n * CHAINS * 32 * 2;
}

u64 qn_loop_dot8(qn_isa isa, u64 n, float *sink)
{
    if (isa >= ISA_avx512vnni) return dot8_vnni(n, sink);
    if (isa == ISA_avxvnni) return dot8_avxvnni(n, sink);
    return isa == ISA_avx512 ? dot8_avx512(n, sink) : isa == ISA_avx2 ? dot8_avx2(n, sink) : dot8_base(n, sink);
}

u64 qn_loop_bf16(qn_isa isa, u64 n, float *sink)
{
    return isa >= ISA_avx512bf16 ? dot16_bf16(n, sink) : 0;
}
#else
u64 qn_loop_dot8(qn_isa isa, u64 n, float *sink) { return (void)isa, dot8_base(n, sink); }
u64 qn_loop_bf16(qn_isa isa, u64 n, float *sink) { return (void)isa, (void)n, (void)sink, 0; }
#endif
