/* neoni8mm/qlinear.c - bytes times panels with smmla, which multiplies 2 rows of 8 columns by 2 rows of 8 columns: twice the work
 * of sdot in one instruction. Two groups zipped give 8 columns of row after row; two rows of x side by side are the other
 * operand. The four sums of a result belong to two rows of x and are sorted once per block. A single row of x takes sdot. */
#include "kernel/neondot/sdot.h"

INLINE int8x16_t two_rows(const i8 *q) { return vcombine_s8(vld1_s8(q), vld1_s8(q + 32)); }

INLINE void dots(const form f, const u8 *p, int sub, int first, int last, const i8 *q, ints *dot, const int R)
{
    if (R == 1) {
        sdots(f, p, sub, first, last, q, dot, R);
        return;
    }
    int32x4_t sum[MOST / 2][NV][2];
    UNROLL for (int r = 0; r < R / 2; r++)
        UNROLL for (int v = 0; v < NV; v++) sum[r][v][0] = sum[r][v][1] = vdupq_n_s32(0);
    UNROLL for (int i = first; i < last; i += 2) {
        const group a = f.group(p, sub, i), b = f.group(p, sub, i + 1);
        UNROLL for (int r = 0; r < R / 2; r++) {
            const int8x16_t x = two_rows(q + 64 * r + 4 * i);
            UNROLL for (int v = 0; v < NV; v++) {
                const int32x4_t lo = vzip1q_s32((int32x4_t)a.v[v], (int32x4_t)b.v[v]);
                const int32x4_t hi = vzip2q_s32((int32x4_t)a.v[v], (int32x4_t)b.v[v]);
                sum[r][v][0] = vmmlaq_s32(sum[r][v][0], vreinterpretq_s8_s32(lo), x);
                sum[r][v][1] = vmmlaq_s32(sum[r][v][1], vreinterpretq_s8_s32(hi), x);
            }
        }
    }
    UNROLL for (int r = 0; r < R / 2; r++)
        UNROLL for (int v = 0; v < NV; v++) {
            dot[2 * r].v[v] += (vi)vuzp1q_s32(sum[r][v][0], sum[r][v][1]);
            dot[2 * r + 1].v[v] += (vi)vuzp2q_s32(sum[r][v][0], sum[r][v][1]);
        }
}

QLINEARS(neoni8mm_r4)
