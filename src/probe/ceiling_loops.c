/* ceiling_loops.c - the loops that ceilings.c times. They do one thing each and keep everything in registers, so that what they
 * reach is the machine's limit and not a kernel's. The wider ones are compiled for their instruction set by attribute: they run
 * only where qn_cpu_isa allows them. */
#include "probe/ceilings.h"

#include <string.h>

/* 12 chains: two multiply-adds a cycle of 4 cycles latency need 8, and there must be a few to spare. */
#define CHAINS 12

typedef float quad __attribute__((vector_size(16)));

static u64 fma_base(u64 n, float *sink)
{
    quad x[CHAINS];
    const quad a = { 0.999f, 0.999f, 0.999f, 0.999f }, b = { 0.001f, 0.001f, 0.001f, 0.001f };
    for (int k = 0; k < CHAINS; k++) x[k] = a + (float)k;
    for (u64 i = 0; i < n; i++)
        for (int k = 0; k < CHAINS; k++) x[k] = x[k] * a + b;
    for (int k = 0; k < CHAINS; k++) *sink += x[k][0];
    return n * CHAINS * 4 * 2;
}

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx2,fma"))) static u64 fma_avx2(u64 n, float *sink)
{
    __m256 x[CHAINS];
    const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
    for (int k = 0; k < CHAINS; k++) x[k] = _mm256_set1_ps((float)k);
    for (u64 i = 0; i < n; i++)
        for (int k = 0; k < CHAINS; k++) x[k] = _mm256_fmadd_ps(x[k], a, b);
    for (int k = 0; k < CHAINS; k++) *sink += _mm256_cvtss_f32(x[k]);
    return n * CHAINS * 8 * 2;
}

__attribute__((target("avx512f"))) static u64 fma_avx512(u64 n, float *sink)
{
    __m512 x[CHAINS];
    const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
    for (int k = 0; k < CHAINS; k++) x[k] = _mm512_set1_ps((float)k);
    for (u64 i = 0; i < n; i++)
        for (int k = 0; k < CHAINS; k++) x[k] = _mm512_fmadd_ps(x[k], a, b);
    for (int k = 0; k < CHAINS; k++) *sink += _mm512_cvtss_f32(x[k]);
    return n * CHAINS * 16 * 2;
}
#else
static u64 fma_avx2(u64 n, float *sink) { return fma_base(n, sink); }
static u64 fma_avx512(u64 n, float *sink) { return fma_base(n, sink); }
#endif

u64 qn_loop_fma(qn_isa isa, u64 n, float *sink)
{
    return isa >= ISA_avx512 ? fma_avx512(n, sink) : isa >= ISA_avx2 ? fma_avx2(n, sink) : fma_base(n, sink);
}
