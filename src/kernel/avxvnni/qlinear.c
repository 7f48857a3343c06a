/* avxvnni/qlinear.c - bytes times panels with vpdpbusd on vectors of 32 bytes, for processors that have it without AVX-512. It
 * adds 4 products of unsigned weights and signed activations to 32 bits and cannot saturate, so all types go the same way. */
#define LANES 8
#define MOST 6 /* rows of a tile: 12 sums, 2 weights, x and what the compiler needs in 16 registers */
#define FEW 8  /* rows of x up to which tiles unpack for themselves; no processor here to find out whether more would do */
#define SIGNED_BYTES false
#include "kernel/avx2/qread.h"

INLINE void dots(const form f, const u8 *p, int sub, int first, int last, const i8 *q, ints *dot, const int R)
{
    UNROLL for (int i = first; i < last; i++) {
        const group w = f.group(p, sub, i);
        UNROLL for (int r = 0; r < R; r++) {
            const __m256i x = quad_at(q + 32 * r + 4 * i);
            UNROLL for (int v = 0; v < NV; v++)
                dot[r].v[v] = (vi)_mm256_dpbusd_avx_epi32((__m256i)dot[r].v[v], (__m256i)w.v[v], x);
        }
    }
}

QLINEARS(avxvnni_r6)
