/* gemm.h - the microkernel of float matrices: R rows of x times P panels of 16 outputs, sums in registers, weights of a panel
 * side by side for each column ([k][16], fpanel.h), x broadcast from where it lies. Whoever multiplies floats cuts the work into
 * such tiles and chunks of columns; between chunks the sums wait in y.
 *
 * An output is one chain of multiply-adds from its first column to its last, whatever R and P and the chunks are: the law of
 * rows. R * P * NV chains have to cover the latency of the multiply-add units: 8 or more. */
#ifndef QN_GENERIC_GEMM_H
#define QN_GENERIC_GEMM_H

#include "kernel/generic/panels.h"

/* The largest tile, for many rows of x: sums fill the registers but for the weights of a step and one x. No more than 6 rows: 8
 * lines of one set are all that L1 keeps, and rows of x are often 4 KiB apart (12 x 2 panels of AVX-512: 86 GFLOP/s). */
#if LANES == 16
#define GEMM_R 6
#define GEMM_P 4
#elif LANES == 8 || defined(__aarch64__)
#define GEMM_R 6
#define GEMM_P 1
#else
#define GEMM_R 2
#define GEMM_P 1
#endif

typedef struct gemm {
    const float *x;         /* [R] rows, x_stride floats apart */
    size_t x_stride;
    const void *w;          /* [k][16] of what `at` reads; the next panel is w_stride elements behind */
    size_t w_stride;
    int k;
    float *y;               /* [R] rows of 16 * P outputs, y_stride floats apart */
    size_t y_stride;
    int left;               /* outputs that exist, from the first panel's first; at least 1 */
    bool begin;             /* sums start from zero instead of y */
    const float *bias;      /* [left] added at the end; or NULL */
} gemm;

typedef vf (*gemm_at)(const void *w, size_t i); /* LANES weights from element i on: a constant to the compiler */
INLINE vf gemm_f32(const void *w, size_t i) { return load((const float *)w + i); }
INLINE vf gemm_f16(const void *w, size_t i) { return halves_at((const u16 *)w + i); }
INLINE vf gemm_bf16(const void *w, size_t i) { return brains_at((const u16 *)w + i); }

INLINE void gemm_tile(const gemm *t, const gemm_at at, const int R, const int P)
{
    floats acc[GEMM_R > 4 ? GEMM_R : 4][4];
    UNROLL for (int r = 0; r < R; r++)
        UNROLL for (int p = 0; p < P; p++)
            acc[r][p] = t->begin ? (floats){ 0 } : get(t->y + (size_t)r * t->y_stride + QN_PANEL * p, t->left - QN_PANEL * p);
    const float *x = t->x;
    const size_t end = (size_t)t->k * QN_PANEL;
    for (size_t i = 0; i < end; i += QN_PANEL, x++) {
        vf w[4][NV];
        UNROLL for (int p = 0; p < P; p++)
            UNROLL for (int v = 0; v < NV; v++) w[p][v] = at(t->w, (size_t)p * t->w_stride + i + (size_t)(LANES * v));
        UNROLL for (int r = 0; r < R; r++) {
            const vf one = splat(x[(size_t)r * t->x_stride]);
            UNROLL for (int p = 0; p < P; p++)
                UNROLL for (int v = 0; v < NV; v++) acc[r][p].v[v] = vfma(w[p][v], one, acc[r][p].v[v]);
        }
    }
    UNROLL for (int p = 0; p < P; p++) {
        const floats bias = t->bias ? get(t->bias + QN_PANEL * p, t->left - QN_PANEL * p) : (floats){ 0 };
        UNROLL for (int r = 0; r < R; r++) {
            if (t->bias) UNROLL for (int v = 0; v < NV; v++) acc[r][p].v[v] += bias.v[v];
            put(t->y + (size_t)r * t->y_stride + QN_PANEL * p, acc[r][p], t->left - QN_PANEL * p);
        }
    }
}

#endif
