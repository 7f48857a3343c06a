/* tiles.c - how a linear is cut into tiles and launched: by the matrix's sizes, the rows of x and the multiprocessors. */
#include "kernel/cuda/tiles.h"

#include <math.h>

enum { MMA_STAGES = 4, MMA_PITCH = 40, CLUSTER = 8 }; /* the first two: of gemm.cu */

static const int sizes[QN_TILES] = { 16, 32, 64, 128,
                                     256 }; /* rows of x in a tile of wgmma.cu */
static const int kinds[] = { QN_W_f16, QN_W_bf16, QN_W_q8, QN_W_q4, QN_W_q4m, QN_W_q6 }; /* their functions follow each other */

static u32 per(u64 n, u64 each) { return (u32)((n + each - 1) / each); }

/* ---- floats */

bool qn_gemv_launch(qn_gpu *g, const qn_clinear *a, qn_err *e)
{
    const qn_grid grid = { per(a->w.rows, 8), per((u64)a->n, a->n == 1 ? 1 : 8), 256, 0 };
    return qn_gpu_launch(g, a->n == 1 ? FN_linear_r1 : FN_linear_r8, grid, a, e);
}

bool qn_narrow_launch(qn_gpu *g, u64 to, u64 from, u64 n, qn_err *e)
{
    const qn_cadd a = { .x = to, .y = from, .n = (u32)n };
    return qn_gpu_launch(g, FN_narrow, (qn_grid){ per(n, 1024), 1, 256, 0 }, &a, e);
}

/* ---- mma: every device's tensor cores */

bool qn_tiles_take(const qn_wmat *w) { return w->kind != QN_W_f32 && w->cols % 8 == 0; }

/* The largest tiles that keep every multiprocessor busy. */
bool qn_mma_launch(qn_gpu *g, const qn_clinear *a, qn_err *e)
{
    static const int first[QN_W_KINDS] = { [QN_W_f16] = FN_gemm_f16_4_4, [QN_W_bf16] = FN_gemm_bf16_4_4,
                                           [QN_W_q8] = FN_gemm_q8_4_4, [QN_W_q4] = FN_gemm_q4_4_4, [QN_W_q4m] = FN_gemm_q4m_4_4,
                                           [QN_W_q6] = FN_gemm_q6_4_4 };
    static const struct { unsigned t, r; } tile[] = { { 128, 128 }, { 128, 64 }, { 64, 64 } }; /* rows of x, rows of w */
    for (int i = a->n <= 64 ? 2 : 0;; i++) {
        const qn_grid grid = { per(a->w.rows, tile[i].r), per((u64)a->n, tile[i].t), 256,
                               MMA_STAGES * (tile[i].t + tile[i].r) * MMA_PITCH * 2 };
        if (i == 2 || grid.x * grid.y >= (unsigned)g->n_sm) return qn_gpu_launch(g, first[a->w.kind] + i, grid, a, e);
    }
}

/* ---- wgmma: Hopper's */

bool qn_wgmma_has(const qn_gpu *g) { return g->major == 9 && g->fn[FN_wg_f16_16]; }

typedef struct rows_at { u64 at, rows, row_bytes; } rows_at;

/* f16 values, put as the tensor cores like them, or bytes as they lie; in boxes. */
static bool make_map(qn_gpu *g, qn_tmap *map, rows_at m, bool halves, u32 wide, u32 high, qn_err *e)
{
    const u64 dims[2] = { halves ? m.row_bytes / 2 : m.row_bytes, m.rows };
    const u32 box[2] = { wide, high }, steps[2] = { 1, 1 };
    const int error = g->d.tensor_map(map, halves ? CU_MAP_F16 : CU_MAP_BYTES, 2, (void *)(uintptr_t)m.at, dims,
                                      &m.row_bytes, box,
                                      steps, 0, halves ? CU_MAP_SWIZZLE_128 : 0, CU_MAP_PROMOTE_256, 0);
    return qn_driver_ok(&g->d, error, "describing a matrix", e);
}

bool qn_wgmma_input(qn_gpu *g, u64 at, u32 cols, u64 rows, qn_tmap map[QN_TILES], qn_err *e)
{
    for (int k = 0; k < QN_TILES; k++)
        if (!make_map(g, &map[k], (rows_at){ at, rows, 2 * (u64)cols }, true, QN_GEMM_COLS, (u32)sizes[k], e)) return false;
    return true;
}

bool qn_wgmma_matrix(qn_gpu *g, qn_cgemm *a, int i, qn_err *e)
{
    const qn_wmat *w = &a->m[i].w;
    const rows_at m = { w->at, w->rows, w->row_bytes };
    if (w->kind == QN_W_f16) return make_map(g, &a->map[i], m, true, QN_GEMM_COLS, QN_GEMM_HALF, e);
    return make_map(g, &a->map[i], m, false, QN_GEMM_VALUES(w->kind), QN_GEMM_HALF, e) &&
           make_map(g, &a->fine[i], m, false, 16, QN_GEMM_HALF, e);
}

/* How the work is cut: rows of x in a tile, and blocks of a cluster that share the columns of one. */
typedef struct cut { int size, split; } cut;

/* Sums of 256 rows take longer to join than sharing saves, and not every multiprocessor finds a place in a cluster of 8 (H200,
 * F16 2048 x 2048, 512 and 128 rows: 17.6 -> 25.1 and 12.7 -> 15.2 us instead of 12.3 and 9.9; prompt of 512, Llama-1B Q4_0:
 * 129,200 tok/s without them, 104,900 with). */
static bool can_share(const qn_gpu *g, cut c, u64 blocks)
{
    return c.split == 1 || (sizes[c.size] <= 128 && (c.split <= 4 || blocks <= (u64)(g->n_sm - g->n_sm / 7)));
}

/* What a pass costs, in units of a tile of 128 rows of x, of weights that are decoded first: such a tile costs nearly the same
 * with 64 rows of x as with 128, so that sharing its columns pays (H200, prompt of 512: Q8_0 94,300 -> 105,400 tok/s, Q4_K_M
 * 89,700 -> 102,200). */
static double cost_decoded(const qn_gpu *g, cut c, u64 tiles)
{
    static const double each[QN_TILES] = { 0, 0, 0.95, 1.05, 2 };
    return (double)per(tiles * (u64)c.split, (u64)g->n_sm) * (each[c.size] / c.split + (c.split > 1 ? 0.1 : 0));
}

/* The same of f16 weights, in microseconds (H200). 64 columns take a block as long with 64 rows of x as with 128: it waits for
 * them. So columns are shared where multiprocessors would have nothing to do, and nowhere else (2048 x 8192, 512 rows: 59 -> 34
 * us; prompt of 512, Llama-1B: 142,600 -> 172,700 tok/s). */
static double cost_f16(const qn_gpu *g, cut c, u64 tiles, u32 columns)
{
    static const double each[QN_TILES] = { 0, 0, 0.35, 0.36, 0.70 };
    const u32 steps = per(columns, (u64)c.split);
    const u64 blocks = tiles * (u64)c.split;
    if (c.split > 1 && (blocks > (u64)g->n_sm || steps < 4)) return INFINITY;
    return (double)per(blocks, (u64)g->n_sm) * steps * each[c.size] + (c.split > 1 ? 1 : 0);
}

static double cost_of(const qn_gpu *g, const qn_wmat *w, cut c, int n, u32 row_tiles)
{
    const u64 tiles = (u64)row_tiles * per((u64)n, (u64)sizes[c.size]);
    if (!can_share(g, c, tiles * (u64)c.split)) return INFINITY;
    return w->kind == QN_W_f16 ? cost_f16(g, c, tiles, per(w->cols, QN_GEMM_COLS)) : cost_decoded(g, c, tiles);
}

/* Up to 64 rows the weights are all there is to read: one tile of x, and two blocks a multiprocessor, by the matrix alone. */
static cut cut_of(const qn_gpu *g, const qn_wmat *w, int n, u32 row_tiles)
{
    const int most = qn_maxi(1, qn_mini(CLUSTER, (int)per(w->cols, QN_GEMM_COLS) / 2));
    if (n <= 64)
        return (cut){ n <= 16 ? 0 : n <= 32 ? 1 : 2, qn_maxi(1, qn_mini(most, 2 * g->n_sm / (int)row_tiles)) };
    cut best = { 2, 1 };
    for (int k = 2; k < QN_TILES; k++)
        for (int split = 1; split <= most; split *= 2) {
            const cut c = { k, split };
            if (cost_of(g, w, c, n, row_tiles) <= cost_of(g, w, best, n, row_tiles)) best = c;
        }
    return best;
}

static int function_of(u32 kind, int size)
{
    int k = 0;
    while (kinds[k] != (int)kind) k++;
    return FN_wg_f16_16 + k * QN_TILES + size;
}

bool qn_wgmma_launch(qn_gpu *g, const qn_cgemm *args, const qn_tmap map[QN_TILES], int n, qn_err *e)
{
    qn_cgemm a = *args;
    const u32 kind = a.m[0].w.kind;
    const u32 row_tiles = a.out >= QN_GEMM_silu ? per(a.m[0].w.rows, QN_GEMM_HALF) : a.m[QN_GEMM_MATS - 1].end;
    const cut c = cut_of(g, &a.m[0].w, n, row_tiles);
    a.n = n;
    a.x = map[c.size];
    a.split = c.split;
    const qn_grid grid = { (u32)c.split * per((u64)n, (u64)sizes[c.size]), row_tiles, 384,
                           (u32)QN_GEMM_SMEM((int)kind, sizes[c.size]) };
    return qn_gpu_launch_early(g, function_of(kind, c.size), grid, a.split, &a, e);
}

/* ---- once */

bool qn_tiles_make(qn_gpu *g, qn_err *e)
{
    const int mma_bytes = MMA_STAGES * 256 * MMA_PITCH * 2;
    for (int f = FN_gemm_f16_4_4; f < FN_narrow && g->fn[f]; f++) /* a test's driver has no kernels */
        if (!qn_driver_ok(&g->d, g->d.function_set(g->fn[f], CU_FUNC_DYNAMIC_SMEM, mma_bytes), "sizing shared memory",
                          e)) return false;
    for (int k = 0; qn_wgmma_has(g) && k < (int)QN_COUNT(kinds); k++)
        for (int s = 0; s < QN_TILES; s++) {
            const int error = g->d.function_set(g->fn[function_of((u32)kinds[k], s)], CU_FUNC_DYNAMIC_SMEM,
                                                QN_GEMM_SMEM(kinds[k], sizes[s]));
            if (!qn_driver_ok(&g->d, error, "sizing shared memory", e)) return false;
        }
    return true;
}
