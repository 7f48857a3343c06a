/* avx2/qlinear.c - bytes times panels without a dot-product instruction: vpmaddubsw multiplies unsigned by signed bytes and adds
 * neighbours, but saturates at 16 bits. So the number of bits decides what may be added before vpmaddwd widens it, and every
 * sum stays exact, activations being at most 127:
 *   4 bits: 15 * 127 * 2 * 8 groups = 30,480: a whole block in 16 bits, one vpmaddwd for it
 *   5 or 6: 63 * 127 * 2 * 2 = 32,004: pairs of groups
 *   8 bits: |w| times x with w's sign: 128 * 127 * 2 = 32,512: each group by itself */
#define LANES 8
#define MOST 3 /* rows of a tile: 6 sums, weights, ones and a product in 16 registers. 2 rows are 4 % slower, 6 are 9 % (Q4_0) */
#define FEW 24 /* rows of x up to which tiles unpack for themselves: 12 of q4_0 at 211 instead of 171 GOP/s (Zen 4) */
#define SIGNED_BYTES true
#include "kernel/avx2/qread.h"

/* Here the compiler must have v in a register. Left alone gcc saves up the additions of a whole block and spills what waits for
 * them: q8_0, 512 rows, one core: 107 GOP/s without. Costs no instruction. */
#define KEEP(v) __asm__("" : "+x"(v))

INLINE __m256i widen(__m256i pairs) { return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)); }

INLINE void dots_4(const form f, const u8 *p, int sub, const i8 *q, ints *dot, const int R)
{
    __m256i sum[MOST][NV];
    UNROLL for (int i = 0; i < 8; i++) {
        const group w = f.group(p, sub, i);
        UNROLL for (int r = 0; r < R; r++) {
            const __m256i x = quad_at(q + 32 * r + 4 * i);
            UNROLL for (int v = 0; v < NV; v++) {
                const __m256i one = _mm256_maddubs_epi16((__m256i)w.v[v], x);
                sum[r][v] = i ? _mm256_add_epi16(sum[r][v], one) : one;
                KEEP(sum[r][v]);
            }
        }
    }
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int v = 0; v < NV; v++) dot[r].v[v] += (vi)widen(sum[r][v]);
}

INLINE void dots_6(const form f, const u8 *p, int sub, int first, int last, const i8 *q, ints *dot, const int R)
{
    UNROLL for (int i = first; i < last; i += 2) {
        const group w = f.group(p, sub, i), u = f.group(p, sub, i + 1);
        UNROLL for (int r = 0; r < R; r++) {
            const __m256i x = quad_at(q + 32 * r + 4 * i), y = quad_at(q + 32 * r + 4 * i + 4);
            UNROLL for (int v = 0; v < NV; v++) {
                dot[r].v[v] += (vi)widen(_mm256_add_epi16(_mm256_maddubs_epi16((__m256i)w.v[v], x),
                                                          _mm256_maddubs_epi16((__m256i)u.v[v], y)));
                KEEP(dot[r].v[v]);
            }
        }
    }
}

INLINE void dots_8(const form f, const u8 *p, int sub, const i8 *q, ints *dot, const int R)
{
    UNROLL for (int i = 0; i < 8; i++) {
        const group w = f.group(p, sub, i);
        __m256i size[NV];
        UNROLL for (int v = 0; v < NV; v++) size[v] = _mm256_abs_epi8((__m256i)w.v[v]);
        UNROLL for (int r = 0; r < R; r++) {
            const __m256i x = quad_at(q + 32 * r + 4 * i);
            UNROLL for (int v = 0; v < NV; v++) {
                dot[r].v[v] += (vi)widen(_mm256_maddubs_epi16(size[v], _mm256_sign_epi8(x, (__m256i)w.v[v])));
                KEEP(dot[r].v[v]);
            }
        }
    }
}

INLINE void dots(const form f, const u8 *p, int sub, int first, int last, const i8 *q, ints *dot, const int R)
{
    if (f.bits == 4) dots_4(f, p, sub, q, dot, R);
    else if (f.bits == 8) dots_8(f, p, sub, q, dot, R);
    else dots_6(f, p, sub, first, last, q, dot, R);
}

QLINEARS(avx2_r4)
