/* matmul.h - plain matrix products by two routes. `pack`: tiles of gemm.h over chunks of k, both sides brought into its order as
 * they come by. So many rows of a and 4 panels of b at a time: `pack` has 96 rows and 128 of k, `tall` 264 rows and 256 of
 * k: b passes less often and sums travel to y and back half as often, which is worth it for large matrices (1024 x 1024 x 1024
 * with AVX-512: 97 and 102 GFLOP/s of one core that could do 116).
 * `few`: at most 8 rows, b streams past once as it lies; packing it would cost as much as the product. */
#ifndef QN_GENERIC_MATMUL_H
#define QN_GENERIC_MATMUL_H

#include "kernel/generic/gemm.h"
#include "kernel/op.h"

#define MM_ROWS 264     /* the most of a variant */
#define MM_CHUNK 256
#define MM_FEW 8
#define MM_SHORT 256    /* k up to which LANES dots are made together */
#define MM_WIDE 12      /* vectors of neighbouring columns that lanes share */
#define MM_STRIP 5      /* so many times as many columns are added up together, in L1 */
#define MM_DEEP 4       /* rows of b that are added to a strip at once */
#define MM_OUTLINE static __attribute__((noinline))

/* Elements of a and b as floats, wherever they lie. */
typedef float (*mm_one)(const void *p, size_t i);
INLINE float mm_f32(const void *p, size_t i) { return ((const float *)p)[i]; }
INLINE float mm_f16(const void *p, size_t i) { return qn_f16_f32(((const u16 *)p)[i]); }
INLINE float mm_bf16(const void *p, size_t i) { return qn_bf16_f32(((const u16 *)p)[i]); }

typedef struct mm {
    const qn_matmul *m;
    const u8 *a, *b;        /* of this batch */
    float *y;
    size_t size;            /* of an element */
} mm;

INLINE mm mm_batch(const qn_matmul *m, size_t i, size_t size)
{
    const size_t n = (size_t)m->n, cols = (size_t)m->cols, k = (size_t)m->k;
    return (mm){ m, (const u8 *)m->a + i * n * k * size, (const u8 *)m->b + i * k * cols * size, m->y + i * n * cols, size };
}

/* What y holds before the sums, in columns begin .. end. */
static void mm_scale_y(const mm *t, int begin, int end)
{
    for (int i = 0; t->m->beta != 0 && t->m->beta != 1 && i < t->m->n; i++)
        for (int j = begin; j < end; j++) t->y[(size_t)i * (size_t)t->m->cols + (size_t)j] *= t->m->beta;
}

/* ---- pack */

MM_OUTLINE void mm_tile_many(const gemm *t) { gemm_tile(t, gemm_f32, GEMM_R, GEMM_P); }
MM_OUTLINE void mm_tile_one(const gemm *t) { gemm_tile(t, gemm_f32, 1, GEMM_P); }

typedef struct mm_cut { int rows, chunk; } mm_cut; /* of a variant */

INLINE void mm_pack_a(const mm *t, const gemm_at at, const mm_one one, int row, int n, int p, int k, int chunk, float *out)
{
    const float alpha = t->m->alpha;
    for (int i = 0; i < n; i++) {
        const size_t r = (size_t)(row + i), from = r * (size_t)t->m->k + (size_t)p;
        float *to = out + (size_t)i * (size_t)chunk;
        int c = 0;
        if (t->m->ta)
            for (; c < k; c++) to[c] = alpha * one(t->a, (size_t)(p + c) * (size_t)t->m->n + r);
        for (; c + LANES <= k; c += LANES) store(to + c, at(t->a, from + (size_t)c) * splat(alpha));
        for (; c < k; c++) to[c] = alpha * one(t->a, from + (size_t)c);
    }
}

/* Columns j .. j+15 of b, rows p .. p+k: [k][16], zeros where the matrix ends. */
INLINE void mm_pack_b(const mm *t, const gemm_at at, const mm_one one, int j, int p, int k, float *out)
{
    const size_t cols = (size_t)t->m->cols, depth = (size_t)t->m->k;
    const int left = qn_mini(QN_PANEL, t->m->cols - j);
    if (!t->m->tb && left == QN_PANEL) {
        for (int c = 0; c < k; c++)
            UNROLL for (int v = 0; v < NV; v++)
                store(out + c * QN_PANEL + v * LANES, at(t->b, (size_t)(p + c) * cols + (size_t)(j + v * LANES)));
        return;
    }
    if (left < QN_PANEL) memset(out, 0, (size_t)k * QN_PANEL * sizeof *out);
    for (int i = 0; i < left; i++) {
        const size_t at_b = t->m->tb ? (size_t)(j + i) * depth + (size_t)p : (size_t)p * cols + (size_t)(j + i);
        const size_t step = t->m->tb ? 1 : cols;
        for (int c = 0; c < k; c++) out[c * QN_PANEL + i] = one(t->b, at_b + (size_t)c * step);
    }
}

/* The panels begin .. end of all rows, for k from p on; a: packed rows. */
INLINE void mm_panels(const mm *t, const gemm_at at, const mm_one one, const mm_cut cut, int row, int p, int begin, int end,
                      const float *a)
{
    _Alignas(64) float b[GEMM_P][MM_CHUNK * QN_PANEL];
    const qn_matmul *m = t->m;
    const int n = qn_mini(cut.rows, m->n - row), k = qn_mini(cut.chunk, m->k - p);
    const size_t step = (size_t)cut.chunk;
    for (int i = begin; i < end; i += GEMM_P) {
        const int panels = qn_mini(GEMM_P, end - i), j = i * QN_PANEL;
        for (int q = 0; q < panels; q++) mm_pack_b(t, at, one, j + q * QN_PANEL, p, k, b[q]);
        /* panels behind a lane's last one are another lane's: their sums are not written */
        for (int q = panels; q < GEMM_P; q++) memset(b[q], 0, (size_t)k * QN_PANEL * sizeof **b);
        gemm g = { .x = a, .x_stride = step, .w = b, .w_stride = MM_CHUNK * QN_PANEL, .k = k,
                   .y = t->y + (size_t)row * (size_t)m->cols + (size_t)j, .y_stride = (size_t)m->cols,
                   .left = qn_mini(m->cols - j, panels * QN_PANEL), .begin = p == 0 && m->beta == 0,
                   .bias = m->bias && p + k == m->k ? m->bias + j : NULL };
        int r = 0;
        for (; r + GEMM_R <= n; r += GEMM_R, g.x += GEMM_R * step, g.y += GEMM_R * g.y_stride) mm_tile_many(&g);
        for (; r < n; r++, g.x += step, g.y += g.y_stride) mm_tile_one(&g);
    }
}

INLINE void mm_pack(const qn_matmul *m, qn_lane lane, const gemm_at at, const mm_one one, size_t size, const mm_cut cut)
{
    _Alignas(64) float a[MM_ROWS * MM_CHUNK];
    const int n_panels = (m->cols + QN_PANEL - 1) / QN_PANEL, begin = lane_begin(n_panels, lane), end = lane_end(n_panels, lane);
    for (size_t batch = 0; begin < end && batch < (size_t)m->batch; batch++) {
        const mm t = mm_batch(m, batch, size);
        mm_scale_y(&t, begin * QN_PANEL, qn_mini(end * QN_PANEL, m->cols));
        for (int row = 0; row < m->n; row += cut.rows)
            for (int p = 0; p < m->k; p += cut.chunk) {
                mm_pack_a(&t, at, one, row, qn_mini(cut.rows, m->n - row), p, qn_mini(cut.chunk, m->k - p), cut.chunk, a);
                mm_panels(&t, at, one, cut, row, p, begin, end, a);
            }
    }
}

/* ---- few rows */

INLINE void mm_finish(const mm *t, size_t i, int j, float sum)
{
    float *y = t->y + i * (size_t)t->m->cols + (size_t)j;
    const float was = t->m->beta != 0 ? t->m->beta * *y : 0;
    *y = t->m->alpha * sum + was + (t->m->bias ? t->m->bias[j] : 0);
}

/* The same for the first n of a vector of columns. */
INLINE void mm_finish_all(const mm *t, size_t i, int j, vf sums, const int n)
{
    float *y = t->y + i * (size_t)t->m->cols + (size_t)j;
    vf v = splat(t->m->alpha) * sums;
    if (t->m->beta != 0) v += splat(t->m->beta) * (n == LANES ? load(y) : load_first(y, n));
    if (t->m->bias) v += n == LANES ? load(t->m->bias + j) : load_first(t->m->bias + j, n);
    if (n == LANES) store(y, v);
    else store_first(y, v, n);
}

/* Dots of one row of a with 4 rows of b, all contiguous and long. */
INLINE void mm_dots(const mm *t, const gemm_at at, const mm_one one, size_t i, int j, const int across)
{
    const size_t k = (size_t)t->m->k;
    vf acc[4][2];
    float sums[4];
    size_t c = 0;
    UNROLL for (int q = 0; q < across; q++) acc[q][0] = acc[q][1] = splat(0);
    for (; c + 2 * LANES <= k; c += 2 * LANES) {
        const vf x0 = at(t->a, i * k + c), x1 = at(t->a, i * k + c + LANES);
        UNROLL for (int q = 0; q < across; q++) {
            const size_t from = (size_t)(j + q) * k + c;
            acc[q][0] = vfma(x0, at(t->b, from), acc[q][0]);
            acc[q][1] = vfma(x1, at(t->b, from + LANES), acc[q][1]);
        }
    }
    UNROLL for (int q = 0; q < across; q++) sums[q] = sum(acc[q][0] + acc[q][1]);
    for (; c < k; c++)
        UNROLL for (int q = 0; q < across; q++) sums[q] += one(t->a, i * k + c) * one(t->b, (size_t)(j + q) * k + c);
    UNROLL for (int q = 0; q < across; q++) mm_finish(t, i, j + q, sums[q]);
}

/* n rows of b times `across` vectors of a row of a, which stay in registers. */
INLINE void mm_short_part(const mm *t, const gemm_at at, size_t a, size_t b, vf *acc, const int n, const int across)
{
    vf x[4];
    UNROLL for (int h = 0; h < across; h++) x[h] = at(t->a, a + (size_t)(h * LANES));
    UNROLL for (int q = 0; q < n; q++)
        UNROLL for (int h = 0; h < across; h++)
            acc[q] = vfma(x[h], at(t->b, b + (size_t)q * (size_t)t->m->k + (size_t)(h * LANES)), acc[q]);
}

/* Dots with n (at most LANES) short rows of b, which lie one behind the other; they are added up across lanes all at once. Only
 * from the skip-th on they are results. */
INLINE void mm_short_dots(const mm *t, const gemm_at at, const mm_one one, size_t i, int j, const int n, int skip)
{
    const size_t k = (size_t)t->m->k, from = (size_t)j * k;
    vf acc[LANES];
    size_t c = 0;
    UNROLL for (int q = 0; q < LANES; q++) acc[q] = splat(0);
    for (; c + 4 * LANES <= k; c += 4 * LANES) mm_short_part(t, at, i * k + c, from + c, acc, n, 4);
    for (; c + LANES <= k; c += LANES) mm_short_part(t, at, i * k + c, from + c, acc, n, 1);
    vf all = sums(acc);
    for (; c < k; c++)
        for (int q = 0; q < n; q++) all[q] += one(t->a, i * k + c) * one(t->b, from + (size_t)q * k + c);
    if (n == LANES && skip)
        for (int q = skip; q < LANES; q++) mm_finish(t, i, j + q, all[q]);
    else mm_finish_all(t, i, j, all, n);
}

/* One row of a times `across` vectors of neighbouring columns: b is read row by row, CHAINS of them at once. */
INLINE void mm_columns(const mm *t, const gemm_at at, const mm_one one, size_t i, int j, const int across, const int chains)
{
    const size_t k = (size_t)t->m->k, cols = (size_t)t->m->cols;
    vf acc[4][4];
    size_t c = 0;
    UNROLL for (int q = 0; q < across; q++)
        UNROLL for (int h = 0; h < chains; h++) acc[q][h] = splat(0);
    for (; c + (size_t)chains <= k; c += (size_t)chains)
        UNROLL for (int h = 0; h < chains; h++) {
            const vf x = splat(one(t->a, i * k + c + (size_t)h));
            UNROLL for (int q = 0; q < across; q++)
                acc[q][h] = vfma(x, at(t->b, (c + (size_t)h) * cols + (size_t)(j + q * LANES)), acc[q][h]);
        }
    for (; c < k; c++) {
        const vf x = splat(one(t->a, i * k + c));
        UNROLL for (int q = 0; q < across; q++) acc[q][0] = vfma(x, at(t->b, c * cols + (size_t)(j + q * LANES)), acc[q][0]);
    }
    UNROLL for (int q = 0; q < across; q++) {
        UNROLL for (int h = 1; h < chains; h++) acc[q][0] += acc[q][h];
        mm_finish_all(t, i, j + q * LANES, acc[q][0], LANES);
    }
}

/* depth rows of b from c on, times their elements of a, to the sums of n columns. */
INLINE void mm_add_rows(const mm *t, const gemm_at at, const mm_one one, size_t i, int j, size_t c, float *acc, int n,
                        const int depth)
{
    const size_t k = (size_t)t->m->k, cols = (size_t)t->m->cols, from = c * cols + (size_t)j;
    vf x[MM_DEEP];
    UNROLL for (int h = 0; h < depth; h++) x[h] = splat(one(t->a, i * k + c + (size_t)h));
    for (int q = 0; q < n; q += LANES) {
        vf v = load(acc + q);
        UNROLL for (int h = 0; h < depth; h++) v = vfma(x[h], at(t->b, from + (size_t)h * cols + (size_t)q), v);
        store(acc + q, v);
    }
}

/* One row of a times many columns: b is read along its rows, as it lies in memory, and the sums stay in L1. (In registers there
 * is room for 12 vectors of them, and b was read with a jump every 768 bytes. 1 x 1152 x 896, two threads: 57 us, so 27; with 8
 * or 16 rows of b at once 28 and 27, fetching ahead changes nothing.) */
INLINE void mm_strip(const mm *t, const gemm_at at, const mm_one one, size_t i, int j, int n)
{
    _Alignas(64) float acc[MM_STRIP * MM_WIDE * LANES];
    const size_t k = (size_t)t->m->k;
    size_t c = 0;
    memset(acc, 0, (size_t)n * sizeof *acc);
    for (; c + MM_DEEP <= k; c += MM_DEEP) mm_add_rows(t, at, one, i, j, c, acc, n, MM_DEEP);
    for (; c < k; c++) mm_add_rows(t, at, one, i, j, c, acc, n, 1);
    for (int q = 0; q < n; q += LANES) mm_finish_all(t, i, j + q, load(acc + q), LANES);
}

INLINE void mm_column(const mm *t, const mm_one one, size_t i, int j)
{
    const size_t k = (size_t)t->m->k, cols = (size_t)t->m->cols;
    float s = 0;
    for (size_t c = 0; c < k; c++) s += one(t->a, i * k + c) * one(t->b, c * cols + (size_t)j);
    mm_finish(t, i, j, s);
}

/* Columns j .. end of one batch; where a kind of step begins depends on the sizes alone. */
INLINE void mm_few_block(const mm *t, const gemm_at at, const mm_one one, size_t i, int j, int end)
{
    const qn_matmul *m = t->m;
    while (j < end) {
        const int left = end - j;
        int across = 1;
        if (m->tb && m->k <= MM_SHORT && left >= LANES) across = LANES, mm_short_dots(t, at, one, i, j, LANES, 0);
        else if (m->tb && m->k <= MM_SHORT && end >= LANES)
            across = left, mm_short_dots(t, at, one, i, end - LANES, LANES, LANES - left); /* some of them once more */
        else if (m->tb && m->k <= MM_SHORT) across = left, mm_short_dots(t, at, one, i, j, left, 0);
        else if (m->tb && left >= 4) across = 4, mm_dots(t, at, one, i, j, 4);
        else if (m->tb) mm_dots(t, at, one, i, j, 1);
        else if (left >= MM_WIDE * LANES) across = left / (MM_WIDE * LANES) * MM_WIDE * LANES, mm_strip(t, at, one, i, j, across);
        else if (left >= 4 * LANES) across = 4 * LANES, mm_columns(t, at, one, i, j, 4, 4);
        else if (left >= LANES) across = LANES, mm_columns(t, at, one, i, j, 1, 4);
        else mm_column(t, one, i, j);
        j += across;
    }
}

INLINE void mm_few(const qn_matmul *m, qn_lane lane, const gemm_at at, const mm_one one, size_t size)
{
    const int wide = MM_WIDE * LANES, blocks = (m->cols + wide - 1) / wide; /* of columns, in every batch */
    const int begin = lane_begin(m->batch * blocks, lane), end = lane_end(m->batch * blocks, lane);
    for (int u = begin, n; u < end; u += n) {
        n = qn_mini(qn_mini(end - u, blocks - u % blocks), MM_STRIP);
        const mm t = mm_batch(m, (size_t)(u / blocks), size);
        const int j = u % blocks * wide, last = qn_mini(j + n * wide, m->cols);
        for (size_t i = 0; i < (size_t)m->n; i++) mm_few_block(&t, at, one, i, j, last);
    }
}

static const char *mm_few_needs(const qn_args *a)
{
    return a->matmul.n > MM_FEW ? "more than 8 rows" : a->matmul.ta ? "a is transposed" : NULL;
}

/* A file makes all kernels of its level with MATMULS(level). */
#define MATMUL(type, isa, bytes) \
    void qn_matmul_##type##_##isa##_pack(const void *args, qn_lane lane); \
    void qn_matmul_##type##_##isa##_pack(const void *args, qn_lane lane) \
    { \
        mm_pack(args, lane, gemm_##type, mm_##type, bytes, (mm_cut){ 96, 128 }); \
    } \
    void qn_matmul_##type##_##isa##_tall(const void *args, qn_lane lane); \
    void qn_matmul_##type##_##isa##_tall(const void *args, qn_lane lane) \
    { \
        mm_pack(args, lane, gemm_##type, mm_##type, bytes, (mm_cut){ 264, 256 }); \
    } \
    void qn_matmul_##type##_##isa##_few(const void *args, qn_lane lane); \
    void qn_matmul_##type##_##isa##_few(const void *args, qn_lane lane) { mm_few(args, lane, gemm_##type, mm_##type, bytes); } \
    const char *qn_matmul_##type##_##isa##_few_needs(const qn_args *a); \
    const char *qn_matmul_##type##_##isa##_few_needs(const qn_args *a) { return mm_few_needs(a); }
#define MATMULS(isa) MATMUL(f32, isa, 4) MATMUL(f16, isa, 2) MATMUL(bf16, isa, 2)

#endif
