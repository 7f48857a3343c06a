/* plinear.h - floats times panels of floats, for all row buckets.
 *
 * With few rows (decode) memory is the limit: whole columns of a few panels side by side, converted in registers as they stream
 * by. With many, the weights of a chunk of columns are made floats once and stay in L1 while all rows of x pass: x's part of the
 * chunk stays in L2 for the next panels, so a weight is read from memory once per ROWS rows. The variant `short` has chunks of
 * half the columns and a quarter of the rows, for smaller caches; the bits are the same. */
#ifndef QN_GENERIC_PLINEAR_H
#define QN_GENERIC_PLINEAR_H

#include "kernel/generic/gemm.h"
#include "kernel/op.h"

#define FEW 8
#define ROWS 384
#define CHUNK (GEMM_P == 1 ? 256 : 128) /* columns: 16 KiB of weights; 32 KiB of AVX-512, which reads 4 vectors for 24 steps */
#define OUTLINE static __attribute__((noinline))

INLINE gemm at_panel(const qn_plinear *a, int panel)
{
    return (gemm){ .x = a->x, .x_stride = (size_t)a->cols, .w_stride = (size_t)a->cols * QN_PANEL, .k = a->cols,
                   .y = a->y + (size_t)panel * QN_PANEL, .y_stride = (size_t)a->rows, .left = a->rows - panel * QN_PANEL,
                   .begin = true, .bias = a->bias ? a->bias + (size_t)panel * QN_PANEL : NULL };
}

INLINE void next_rows(gemm *t, int n)
{
    t->x += (size_t)n * t->x_stride;
    t->y += (size_t)n * t->y_stride;
}

/* ---- few rows */

/* panels of a tile of R rows: 8 sums, or 4 of the longest vectors */
INLINE int wide(const int R) { return R == 1 ? (NV == 4 ? 2 : 4) : R == 2 ? 4 / NV : NV == 1 ? 2 : 1; }

/* R rows times panels first .. end. */
INLINE void few_rows(const qn_plinear *a, const gemm_at at, size_t size, int row, int first, int end, const int R)
{
    for (int i = first; i < end;) {
        gemm t = at_panel(a, i);
        t.w = a->panels + (size_t)i * t.w_stride * size;
        next_rows(&t, row);
        const bool all = end - i >= wide(R);
        if (all) gemm_tile(&t, at, R, wide(R));
        else gemm_tile(&t, at, R, 1);
        i += all ? wide(R) : 1;
    }
}

INLINE void few(const qn_plinear *a, const gemm_at at, size_t size, int begin, int end)
{
    for (int i = begin; i < end; i += 4) { /* panels that stay in the cache for all rows */
        const int last = qn_mini(i + 4, end);
        int row = 0;
        for (; row + 4 <= a->n; row += 4) few_rows(a, at, size, row, i, last, 4);
        for (; row + 2 <= a->n; row += 2) few_rows(a, at, size, row, i, last, 2);
        if (row < a->n) few_rows(a, at, size, row, i, last, 1);
    }
}

/* ---- many rows */

OUTLINE void tile_many(const gemm *t) { gemm_tile(t, gemm_f32, GEMM_R, GEMM_P); }
OUTLINE void tile_some(const gemm *t) { gemm_tile(t, gemm_f32, 2, GEMM_P); }
OUTLINE void tile_one(const gemm *t) { gemm_tile(t, gemm_f32, 1, GEMM_P); }
OUTLINE void narrow_many(const gemm *t) { gemm_tile(t, gemm_f32, GEMM_R, 1); }
OUTLINE void narrow_one(const gemm *t) { gemm_tile(t, gemm_f32, 1, 1); }

static void all_rows(gemm t, int n)
{
    for (; n >= GEMM_R; n -= GEMM_R, next_rows(&t, GEMM_R)) tile_many(&t);
    for (; n >= 2; n -= 2, next_rows(&t, 2)) tile_some(&t);
    if (n) tile_one(&t);
}

/* One of the panels that are left over at a lane's end. */
static void all_rows_narrow(gemm t, int n, int p)
{
    t.w = (const float *)t.w + (size_t)p * t.w_stride;
    t.y += QN_PANEL * p;
    t.left -= QN_PANEL * p;
    if (t.bias) t.bias += QN_PANEL * p;
    for (; n >= GEMM_R; n -= GEMM_R, next_rows(&t, GEMM_R)) narrow_many(&t);
    for (; n > 0; n--, next_rows(&t, 1)) narrow_one(&t);
}

INLINE void to_floats(const void *w, const gemm_at at, size_t n, float *out)
{
    for (size_t i = 0; i < n; i += LANES) store(out + i, at(w, i));
}

/* Rows row .. row+n of x times panels begin .. end, chunk by chunk of the columns. */
INLINE void many(const qn_plinear *a, const gemm_at at, size_t size, int row, int n, int begin, int end, const int chunk)
{
    _Alignas(64) float buffer[GEMM_P][CHUNK * QN_PANEL];
    for (int c = 0; c < a->cols; c += chunk) {
        for (int i = begin; i < end; i += GEMM_P) {
            const int panels = qn_mini(GEMM_P, end - i);
            gemm t = at_panel(a, i);
            t.k = qn_mini(chunk, a->cols - c);
            const u8 *w = a->panels + ((size_t)i * t.w_stride + (size_t)c * QN_PANEL) * size;
            for (int p = 0; p < panels; p++) {
                const u8 *from = w + (size_t)p * t.w_stride * size;
                to_floats(from, at, (size_t)t.k * QN_PANEL, buffer[p]);
                const u8 *ahead = from + GEMM_P * t.w_stride * size; /* of the next panels */
                for (size_t f = 0; f < (size_t)t.k * QN_PANEL * size; f += 64) __builtin_prefetch(ahead + f);
            }
            t.w = buffer;
            t.w_stride = CHUNK * QN_PANEL;
            t.begin = c == 0;
            if (c + t.k < a->cols) t.bias = NULL;
            next_rows(&t, row);
            t.x += c;
            if (panels == GEMM_P) all_rows(t, n);
            else
                for (int p = 0; p < panels; p++) all_rows_narrow(t, n, p);
        }
    }
}

INLINE void plinear(const qn_plinear *a, qn_lane lane, const gemm_at at, size_t size, const int rows, const int chunk)
{
    const int n_panels = (a->rows + QN_PANEL - 1) / QN_PANEL;
    const int begin = lane_begin(n_panels, lane), end = lane_end(n_panels, lane);
    if (a->n <= FEW) few(a, at, size, begin, end);
    else
        for (int row = 0; row < a->n; row += rows) many(a, at, size, row, qn_mini(rows, a->n - row), begin, end, chunk);
}

/* A file makes all kernels of its level with PLINEARS(level). */
#define PLINEAR_AS(variant, type, isa, bytes, rows, chunk) \
    void qn_plinear_##type##_##isa##_##variant(const void *args, qn_lane lane); \
    void qn_plinear_##type##_##isa##_##variant(const void *args, qn_lane lane) \
    { \
        plinear(args, lane, gemm_##type, bytes, rows, chunk); \
    }
#define PLINEAR(type, isa, bytes) \
    PLINEAR_AS(gen, type, isa, bytes, ROWS, CHUNK) PLINEAR_AS(short, type, isa, bytes, ROWS / 4, CHUNK / 2)
#define PLINEARS(isa) PLINEAR(f32, isa, 4) PLINEAR(f16, isa, 2) PLINEAR(bf16, isa, 2)

#endif
