/* linear.h - matrix times rows, any stored type. Decode once, use many times: a chunk of PANEL weight rows is decoded to
 * floats (F32 is used where it lies), then multiplied with up to BLOCK rows of x before the next chunk.
 *
 * The law of rows: an output has one vector accumulator. It walks the columns from first to last and is summed across lanes
 * once, at the end, the same way for every n: tiles of 1 and of TILE rows of x differ in what shares a load, not in what is
 * added to what. The decoder comes as a function: it is called once per chunk, and the body is compiled once per ISA. */
#ifndef QN_GENERIC_LINEAR_H
#define QN_GENERIC_LINEAR_H

#include "kernel/generic/vec.h"
#include "kernel/op.h"

#define PANEL 4            /* weight rows that share each load of x */
#define CHUNK 1024         /* columns decoded at a time, a multiple of every block; at 256 the traffic of acc costs 8 % */
#define BLOCK 64           /* rows of x that share a decoded chunk: with 32, 5 % slower */
/* rows of x in registers: PANEL * TILE accumulators of the 32 or 16 there are; AVX2 with 2 is a quarter slower, SSE2 has no fma
 * and needs a register for the product */
#define TILE (LANES == 16 ? 4 : LANES == 8 ? 3 : 2)

typedef void (*decode_fn)(const void *blocks, float *y, size_t n);

typedef struct weights {
    const u8 *w;           /* the matrix */
    size_t row_bytes;
    decode_fn decode;      /* NULL: the rows are floats already */
    int block;
    size_t block_bytes;
} weights;

/* PANEL rows of one chunk, as floats */
typedef struct chunk {
    const float *row[PANEL];
    int whole, rest;       /* columns in whole vectors, and behind them */
    vf tail[PANEL];        /* the rest, zeros behind it */
} chunk;

INLINE void tile(const chunk *k, const float *x, size_t cols, vf (*acc)[PANEL], const int n)
{
    vf s[TILE][PANEL];
    UNROLL for (int j = 0; j < n; j++)
        UNROLL for (int r = 0; r < PANEL; r++) s[j][r] = acc[j][r];
    for (int i = 0; i < k->whole; i += LANES) {
        vf w[PANEL];
        UNROLL for (int r = 0; r < PANEL; r++) w[r] = load(k->row[r] + i);
        UNROLL for (int j = 0; j < n; j++) {
            const vf v = load(x + (size_t)j * cols + i);
            UNROLL for (int r = 0; r < PANEL; r++) s[j][r] = vfma(w[r], v, s[j][r]);
        }
    }
    if (k->rest) {
        UNROLL for (int j = 0; j < n; j++) {
            const vf v = load_first(x + (size_t)j * cols + k->whole, k->rest);
            UNROLL for (int r = 0; r < PANEL; r++) s[j][r] = vfma(k->tail[r], v, s[j][r]);
        }
    }
    UNROLL for (int j = 0; j < n; j++)
        UNROLL for (int r = 0; r < PANEL; r++) acc[j][r] = s[j][r];
}

static void tile_one(const chunk *k, const float *x, size_t cols, vf (*acc)[PANEL]) { tile(k, x, cols, acc, 1); }
static void tile_many(const chunk *k, const float *x, size_t cols, vf (*acc)[PANEL]) { tile(k, x, cols, acc, TILE); }

/* Columns c.. of the panel's rows; row r of the panel is row[r] of the matrix. */
static void get_chunk(const weights *m, const int row[PANEL], int c, int len, float (*buffer)[CHUNK], chunk *k)
{
    k->whole = len - len % LANES;
    k->rest = len % LANES;
    for (int r = 0; r < PANEL; r++) {
        const u8 *at = m->w + (size_t)row[r] * m->row_bytes + (size_t)(c / m->block) * m->block_bytes;
        if (m->decode) m->decode(at, buffer[r], (size_t)len);
        k->row[r] = m->decode ? buffer[r] : (const float *)(const void *)at;
        if (k->rest) k->tail[r] = load_first(k->row[r] + k->whole, k->rest);
    }
}

/* A panel of weight rows times n <= BLOCK rows of x, into acc. */
static void multiply(const weights *m, const int row[PANEL], const float *x, int cols, int n, vf (*acc)[PANEL])
{
    _Alignas(64) float buffer[PANEL][CHUNK];
    chunk k;
    memset(acc, 0, (size_t)n * sizeof *acc);
    for (int c = 0; c < cols; c += CHUNK) {
        get_chunk(m, row, c, qn_mini(CHUNK, cols - c), buffer, &k);
        const float *at = x + c;
        int j = 0;
        for (; j + TILE <= n; j += TILE) tile_many(&k, at + (size_t)j * (size_t)cols, (size_t)cols, acc + j);
        for (; j < n; j++) tile_one(&k, at + (size_t)j * (size_t)cols, (size_t)cols, acc + j);
    }
}

static void linear(const qn_linear *a, qn_lane lane, decode_fn decode)
{
    const weights m = { .w = a->w, .row_bytes = qn_dtype_bytes(a->type, (size_t)a->cols), .decode = decode,
                        .block = qn_dtypes[a->type].block, .block_bytes = qn_dtypes[a->type].block_bytes };
    const int end = lane_end(a->rows, lane);
    vf acc[BLOCK][PANEL];
    for (int r0 = lane_begin(a->rows, lane); r0 < end; r0 += PANEL) {
        int row[PANEL]; /* the last panel of a lane repeats its last row */
        for (int r = 0; r < PANEL; r++) row[r] = qn_mini(r0 + r, end - 1);
        const int n_row = qn_mini(PANEL, end - r0);
        for (int j0 = 0; j0 < a->n; j0 += BLOCK) {
            const int n = qn_mini(BLOCK, a->n - j0);
            multiply(&m, row, a->x + (size_t)j0 * (size_t)a->cols, a->cols, n, acc);
            for (int j = 0; j < n; j++) {
                float *y = a->y + (size_t)(j0 + j) * (size_t)a->rows + (size_t)r0;
                for (int r = 0; r < n_row; r++) y[r] = sum(acc[j][r]) + (a->bias ? a->bias[r0 + r] : 0);
            }
        }
    }
}

#endif
