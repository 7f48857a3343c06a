/* op.h - the operands of every op. A kernel gets one of these structs and its lane; it writes only its share of the output,
 * split so that no result depends on the number of lanes. All arrays are row-major, float unless said otherwise.
 *
 * The law of rows: what a kernel computes for a row depends on that row alone, never on how many rows came with it. The same
 * order of additions for 1 row and for 512 is what makes tokens independent of batching and chunking. */
#ifndef QN_OP_H
#define QN_OP_H

#include "base/pool.h"
#include "format/dtype.h"

typedef enum qn_op {
#define OP(name, doc) OP_##name,
#include "kernel/ops.def"
#undef OP
    N_OPS
} qn_op;

/* Every args struct begins with n, the rows of this pass: exec sets it on a copy, the rest of a step never changes. */

typedef struct qn_embed {
    int n, d;
    float *y;               /* [n, d] */
    const void *table;      /* [n_vocab, d] of type */
    const i32 *tokens;      /* [n] */
    qn_dtype type;
    bool packed;            /* the table is in panels (panel.h): the output's matrix, which the model has but once */
    float scale;            /* 1 for most, sqrt(d_model) for gemma */
} qn_embed;

typedef struct qn_rmsnorm {
    int n, d;
    float *y;               /* [n, d] */
    const float *x, *w;     /* [n, d], [d] */
    float eps;
} qn_rmsnorm;

typedef struct qn_headnorm {
    int n, n_head, d;
    float *x;               /* [n, n_head, d] */
    const float *w;         /* [d] */
    float eps;
} qn_headnorm;

typedef struct qn_linear {
    int n, rows, cols;
    float *y;               /* [n, rows] */
    const float *x;         /* [n, cols] */
    const void *w;          /* [rows, cols] of type; a row is cols / block blocks */
    const float *bias;      /* [rows] or NULL */
    qn_dtype type;
} qn_linear;

typedef struct qn_rope {
    int n, n_head, n_kv, d_head;
    int d_rot;              /* the first d_rot values of a head rotate, the rest stay */
    bool neox;              /* pairs are (i, i + d_rot/2) instead of (2i, 2i+1) */
    float *q, *k;           /* [n, n_head, d_head], [n, n_kv, d_head] */
    const i32 *pos;         /* [n] */
    const float *freq;      /* [d_rot/2] angle per position */
    float mscale;           /* length of the rotation: 1 but for yarn */
} qn_rope;

/* Where the KV rows of a pass lie. One per engine and layer group; filled for each pass before the plan runs. A page holds K and
 * V of QN_PAGE tokens of one layer, in the cache's type, as kvpage.h says. pages[first[r] + t / QN_PAGE] is the page with token t
 * of row r's sequence. */
#define QN_PAGE 16
typedef struct qn_rows {
    const i32 *pos;         /* [n] position of each row in its sequence: it sees tokens 0..pos, fewer with a window */
    const i32 *first;       /* [n] index of its sequence's block table in pages */
    const i32 *pages;       /* all block tables; -1: a page that no window can see any more */
} qn_rows;

typedef struct qn_store {
    int n, n_kv, d_head;
    const float *k, *v;     /* [n, n_kv, d_head] */
    u8 *cache;              /* this layer's part of page p is at cache + p * page_stride */
    size_t page_stride;
    const qn_rows *at;
    qn_dtype type;          /* f16, f32 or q8_0 */
} qn_store;

/* Positions are cut into chunks of QN_CHUNK tokens of the sequence, whose softmax sums are made apart and then joined, oldest
 * first: always, so that it does not matter whether one lane went through all of them or many lanes had one each. A pass of
 * at most n_split rows is shared among lanes by chunks; the sums wait in parts until the lane that ends the last one joins
 * them. A pass of more rows is shared by rows. */
#define QN_CHUNK 256
typedef struct qn_parts {
    float *sums;            /* [n_split, n_head, n_chunks, d_head + 2]: weighted values, largest score, sum of weights */
    i32 *ended;             /* [n_split, n_head] chunks that are done, by group of queries; 0 between passes */
    int n_split, n_chunks;  /* n_split 0: never by chunks. n_chunks: of the longest context */
} qn_parts;

typedef struct qn_attend {
    int n, n_head, n_kv, d_head;
    float *y;               /* [n, n_head, d_head] */
    const float *q;         /* [n, n_head, d_head] */
    const u8 *cache;
    size_t page_stride;
    const qn_rows *at;
    qn_dtype type;
    int window;             /* a row sees its last `window` tokens, itself included; 0: all */
    float scale;
    qn_parts parts;
} qn_attend;

typedef struct qn_add { int n, d; float *x; const float *y; } qn_add_args;
/* Bit for bit add and then rmsnorm, at the same level; y may be add. */
typedef struct qn_addnorm {
    int n, d;
    float *y, *x;           /* [n, d] */
    const float *add, *w;   /* [n, d], [d] */
    float eps;
} qn_addnorm;

typedef struct qn_swiglu { int n, d; float *gate; const float *up; } qn_swiglu;
typedef struct qn_geglu { int n, d; float *gate; const float *up; } qn_geglu;

typedef struct qn_pick {
    int n, d;               /* n: here the rows that ask, not the rows of the pass */
    float *y;               /* [n, d] */
    const float *x;
    const i32 *rows;        /* [n] which ones */
} qn_pick;

/* Activations as bytes, in blocks of 32 columns: x = q * unit * 2^shift. A block's scale is its row's times a power of two, so
 * that a product needs no multiplication for it: integers are shifted before they become floats (SPEED.md: 12 % of a product).
 * Rows lie in tiles of QN_TILE: for each block the bytes of all rows of the tile, then the next block. A product of many rows
 * reads them as one stream. The last tile has the rows that are left; a single row lies as it is. */
#define QN_TILE 6
#define QN_BYTES_LEAST 0x1p-100f /* rows below it have shift 0 in all blocks: their units would not be normal */
#define QN_SHIFTS 12        /* 128 * 127 * 32 * 2^12 is the largest sum, and just below 2^31 */
typedef struct qn_bytes {
    i8 *q;                  /* [blocks, 32] -127..127 */
    i32 *shift;             /* [blocks] 0..QN_SHIFTS */
    i32 *start;             /* [blocks] -128 times the sum of q: what makes up for weights that are stored + 128 */
    i32 *start16;           /* [blocks, 2] the same of each half */
    float *unit;            /* [n] NaN: something in the row is not finite, and its bytes are 0 */
} qn_bytes;

/* Block b of a row is block first + b * step of all arrays but the last. */
typedef struct qn_strand { size_t first, step; } qn_strand;
static inline qn_strand qn_bytes_row(int n, int row, int blocks)
{
    const int in = row % QN_TILE, left = n - (row - in);
    return (qn_strand){ (size_t)(row - in) * (size_t)blocks + (size_t)in, (size_t)(left < QN_TILE ? left : QN_TILE) };
}

typedef struct qn_quant {
    int n, d;               /* d: a multiple of 32 */
    qn_bytes y;
    const float *x;         /* [n, d] */
} qn_quant;

typedef struct qn_qlinear {
    int n, rows, cols;
    float *y;               /* [n, rows] */
    qn_bytes x;             /* [n, cols] */
    const u8 *panels;       /* [rows, cols] packed from type: panel.h */
    const float *bias;      /* [rows] or NULL */
    qn_dtype type;
} qn_qlinear;

typedef struct qn_narrow {
    int n, d;
    u16 *y;                 /* [n, d] bf16 */
    const float *x;         /* [n, d] */
} qn_narrow;

typedef struct qn_blinear {
    int n, rows, cols;      /* cols: a multiple of 32 */
    float *y;               /* [n, rows] */
    const u16 *x;           /* [n, cols] bf16 */
    const u8 *panels;       /* [rows, cols] packed from type, f16 or bf16: panel.h */
    const float *bias;      /* [rows] or NULL */
    qn_dtype type;
} qn_blinear;

typedef struct qn_plinear {
    int n, rows, cols;
    float *y;               /* [n, rows] */
    const float *x;         /* [n, cols] */
    const u8 *panels;       /* [rows, cols] of type, f32, f16 or bf16: fpanel.h */
    const float *bias;      /* [rows] or NULL */
    qn_dtype type;
} qn_plinear;

/* In no plan: the sampler runs these two over the logits of a row. */
typedef struct qn_softmax {
    int n, d;
    float *y;               /* [n, d]; may be x */
    const float *x;         /* [n, d] */
    float scale;            /* above 0 */
    float *log_sum;         /* [n] log of the sum of e^(scale x), or NULL */
} qn_softmax;

typedef struct qn_best {
    int n, d, k;
    i32 *id;                /* [n, k]; where k > d the rest stays as it is */
    float *v;               /* [n, k] */
    const float *x;         /* [n, d]; NaN counts as the least */
} qn_best;

/* Plain matrices, as BLAS has them: y = alpha * a * b + beta * y + bias. In no plan: by it the probe compares with others. */
typedef struct qn_matmul {
    int n, cols, k;         /* m, n, k of BLAS: rows of y, columns of y, length of the sums */
    int batch;              /* so many products, operands one behind the other */
    bool ta, tb;            /* a is [k, n], b is [cols, k] in memory; else [n, k] and [k, cols] */
    bool biased;
    float alpha, beta;
    float *y;               /* [batch, n, cols] */
    const void *a, *b;      /* of type: f32, f16 or bf16 */
    const float *bias;      /* [cols]; NULL unless biased */
    qn_dtype type;
} qn_matmul;

typedef union qn_args {
    int n;
    qn_embed embed; qn_rmsnorm rmsnorm; qn_headnorm headnorm; qn_linear linear; qn_rope rope; qn_store store;
    qn_attend attend; qn_add_args add; qn_addnorm addnorm; qn_swiglu swiglu; qn_geglu geglu; qn_pick pick;
    qn_quant quant; qn_qlinear qlinear; qn_narrow narrow; qn_blinear blinear; qn_plinear plinear;
    qn_softmax softmax; qn_best best;
    qn_matmul matmul;
} qn_args;

/* What a step moves and computes at least: every operand once, weights in their stored type. */
typedef struct qn_cost { u64 bytes, flops; } qn_cost;

/* bytes of one K or V row in a page */
static inline size_t qn_kv_row_bytes(qn_dtype type, int n_kv, int d_head)
{
    return qn_dtype_bytes(type, (size_t)n_kv * (size_t)d_head);
}

#endif
