/* abi.h - what host and device code agree on: how a weight lies in device memory, the arguments of every kernel, and the
 * instructions of the persistent one. Read by C and by CUDA C++, so it holds nothing but plain structs. Addresses are 64-bit
 * numbers: the host never follows one. */
#ifndef QN_CUDA_ABI_H
#define QN_CUDA_ABI_H

#include <stdint.h>

/* A row of a weight lies in planes, each padded: values, then (6-bit types) two high bits, then scales. 16 bytes at a time are
 * then always values of one kind, and a row or a part of it can be copied as it is.
 *   f32 f16 bf16  the values
 *   q8            bytes; an f16 scale for each 32
 *   q4, q4m       32 weights in 16 bytes: low nibbles are 0..15, high ones 16..31; f16 scale, or scale and min: y = s*q + m
 *   q6            nibbles as q4; 8 bytes of high bits for each 32; an f16 scale for each 16: y = s*(q - 32) */
enum { QN_W_f32, QN_W_f16, QN_W_bf16, QN_W_q8, QN_W_q4, QN_W_q4m, QN_W_q6, QN_W_KINDS };

typedef struct qn_wmat {
    uint64_t at;            /* row 0 */
    uint32_t rows, cols;
    uint32_t row_bytes;     /* from row to row, all planes; a multiple of 16 */
    uint32_t high, scale;   /* where these planes begin in a row; 0: none */
    uint32_t kind;          /* QN_W_* */
} qn_wmat;

enum { QN_KVT_f16, QN_KVT_f32, QN_KVT_q8 };
enum { QN_CPAGE = 16 };     /* tokens of a page: QN_PAGE */

/* Where the rows of a pass are, in device memory; the same for every pass. */
typedef struct qn_crows { uint64_t pos, first, pages; } qn_crows;

typedef struct qn_cembed { uint64_t y, tokens; qn_wmat table; float scale; int n; } qn_cembed;
typedef struct qn_cnorm { uint64_t y, x, w; int n, d; float eps; } qn_cnorm; /* heads: n rows of d each */
typedef struct qn_clinear { uint64_t y, x, bias; qn_wmat w; int n; } qn_clinear;
typedef struct qn_crope { uint64_t q, k, pos, table; int n, n_head, n_kv, d_head, d_rot, neox; } qn_crope;
typedef struct qn_cstore { uint64_t k, v, cache, stride; qn_crows at; int n, n_kv, d_head, type; } qn_cstore;
typedef struct qn_cattend {
    uint64_t y, q, cache, stride;
    qn_crows at;
    int n, n_head, n_kv, d_head, type, window, half; /* half: y as f16, from the start of its buffer */
    float scale;
} qn_cattend;
typedef struct qn_cadd { uint64_t x, y; uint32_t n; } qn_cadd;              /* values */
typedef struct qn_cglu { uint64_t gate, up; uint32_t n; int gelu; } qn_cglu; /* values */
typedef struct qn_cpick { uint64_t y, x, rows; int n, d; } qn_cpick;
typedef struct qn_cmeasure { uint64_t at, bytes, sink; uint32_t rounds; } qn_cmeasure; /* ceiling.cu */
typedef struct qn_cangles { uint64_t table, freq; int n_pos, n_pair; float mscale; } qn_cangles;

/* Rotation of q and k, and k and v into the cache, in one launch. */
typedef struct qn_crotate { qn_crope rope; qn_cstore store; } qn_crotate;

/* ---- linears on Hopper's tensor cores (wgmma.cu): up to three matrices of one kind and width with the same input. A tile is two
 * halves of 64 rows: of one matrix, or (gated) one half of each of two. */
typedef struct qn_tmap { uint64_t words[16]; } __attribute__((aligned(64))) qn_tmap; /* as the driver makes it */
enum { QN_GEMM_MATS = 3, QN_GEMM_HALF = 64, QN_GEMM_COLS = 64 };
enum { QN_GEMM_store, QN_GEMM_add, QN_GEMM_silu, QN_GEMM_gelu }; /* y = p; y += p; y = act(p of m[0]) * p of m[1] */
typedef struct qn_cmat { uint64_t y, bias; qn_wmat w; uint32_t end; } qn_cmat; /* end: of its tiles among all */
typedef struct qn_cgemm {
    qn_tmap x, map[QN_GEMM_MATS], fine[QN_GEMM_MATS]; /* f16 activations; the matrices' values; 16 bytes of their planes */
    qn_cmat m[QN_GEMM_MATS];
    int n, out, split;            /* rows of x; QN_GEMM_*; blocks of a cluster that share the columns */
} qn_cgemm;

/* Shared memory of a tile with bn rows of x: f16 stages of 64 columns; before they are decoded, stages of stored values (and high
 * bits), and slots of scales for 256 columns. */
#define QN_GEMM_STAGES(kind, bn) ((kind) == QN_W_f16 ? ((bn) == 128 ? 5 : 4) : (bn) == 128 ? 4 : 3)
#define QN_GEMM_RAWS(kind, bn) ((kind) == QN_W_bf16 ? 3 : (bn) >= 128 ? 6 : 4)
#define QN_GEMM_SLOTS(kind, bn) (QN_GEMM_RAWS(kind, bn) > 5 ? 3 : 2) /* a slot comes again when no stage in use needs it */
#define QN_GEMM_VALUES(kind) ((kind) == QN_W_bf16 || (kind) == QN_W_f16 ? 128 : (kind) == QN_W_q8 ? 64 : 32) /* bytes of a row */
#define QN_GEMM_HIGHS(kind) ((kind) == QN_W_q6 ? 16 : 0)
#define QN_GEMM_SCALES(kind) ((kind) == QN_W_q8 || (kind) == QN_W_q4 ? 16 : (kind) == QN_W_q4m || (kind) == QN_W_q6 ? 32 : 0)
#define QN_GEMM_RAW(kind) (2 * QN_GEMM_HALF * (QN_GEMM_VALUES(kind) + QN_GEMM_HIGHS(kind)))
#define QN_GEMM_STAGE(bn) ((2 * QN_GEMM_HALF + (bn)) * QN_GEMM_COLS * 2)
#define QN_GEMM_SMEM(kind, bn) (QN_GEMM_STAGES(kind, bn) * QN_GEMM_STAGE(bn) + 1024 + ((kind) == QN_W_f16 ? 0 : \
    QN_GEMM_RAWS(kind, bn) * QN_GEMM_RAW(kind) + QN_GEMM_SLOTS(kind, bn) * 2 * QN_GEMM_HALF * QN_GEMM_SCALES(kind)))

/* ---- the persistent kernel (persist.cu): one token is a list of instructions for each block, made by list.c.
 *
 * A phase is what can run between two waits: some linears with the same input, or an attention. Every block that takes part adds
 * one to the phase's counter when it is done; the next phase waits for all of them. Counters only grow: token t of all that ever
 * ran waits for (t + 1) times the arrivals of one. */
enum { QN_I_linear, QN_I_attend };
enum { QN_IN_keep, QN_IN_embed, QN_IN_norm, QN_IN_post, QN_IN_copy };  /* what a phase's first linear brings into shared memory:
    nothing new; norm(table[token]); norm(src); norm(src + norm(add)), kept in keep; src */
enum { QN_OUT_store, QN_OUT_add, QN_OUT_silu, QN_OUT_gelu, QN_OUT_logits };
enum { QN_FORM_float = 1, QN_FORM_int = 2 };  /* how the input is kept: floats, or 16-bit integers with a scale for each 32 */

/* A linear's rows come in pairs, one pair (unit) to a warp at a time: rows 2u and 2u + 1 of a matrix, or row u of two; one by one
 * where there are fewer pairs than warps. A unit is cut into spans of columns that fit into a stage of the warp's ring. */
typedef struct qn_ins {
    uint8_t op, in, out, kind, forms, each; /* each: rows of a unit, 1 or 2 */
    uint16_t warp0;           /* the warp that takes this block's first unit */
    uint16_t wait, signal;    /* counter + 1; 0: none */
    uint32_t wait_for;        /* arrivals of one token */
    uint32_t unit, n_units;   /* of this block; for attend: unit is the index of its qn_att */
    uint32_t rows, cols;
    uint32_t span, stride;    /* columns of a piece; bytes from unit to unit */
    uint32_t high, scale;     /* planes in a row */
    uint32_t s_high, s_scale; /* planes in a stage */
    float eps, factor;        /* factor: of the embedding */
    uint64_t wa, wb;          /* first and second row of unit 0 */
    uint64_t src, norm, add, post, keep; /* see QN_IN_* */
    uint64_t dst, bias, bias2;
    uint32_t table;           /* QN_IN_embed: index of its qn_wmat */
    uint32_t step;            /* of the plan */
    uint32_t row, second;     /* bytes of a whole row, 0: it comes in spans; where a unit's second row lies in a stage */
} qn_ins;                     /* 10 times 16 bytes: a few lanes of a warp copy it at once */

/* What a warp fetches for one instruction: n units, step bytes apart. A warp's fetches lie one behind the other. */
typedef struct qn_fetch {
    uint64_t a, b;
    uint32_t n, step, cols, span, kind, high, scale, s_high, s_scale, each, row, second;
} qn_fetch;                   /* 4 times 16 bytes */

typedef struct qn_att {
    uint64_t q, k, v, y, q_norm, k_norm, angles, cache, stride, pages;
    int n_head, n_kv, d_head, d_rot, neox, type, window, chunks; /* chunks: most parts that a context is cut into */
    float scale, eps;
    uint64_t pad;
} qn_att;                     /* 8 times 16 bytes */

/* One launch: n_tokens tokens of one sequence, each the likeliest behind the one before. */
typedef struct qn_crun {
    uint64_t lists;           /* [blocks, n_ins] qn_ins */
    uint64_t fetches, fetch_at; /* [] qn_fetch; [blocks * warps + 1] u32: where each warp's begin */
    uint64_t atts, tables;    /* [] qn_att, [] qn_wmat */
    uint64_t counters, heads; /* [] u32; [n_kv] u32, 0 between attentions */
    uint64_t parts;           /* [n_kv, chunks, heads of a group, d_head + 2] */
    uint64_t best;            /* [2] u64: the largest logit so far and its token, of even and odd tokens */
    uint64_t chosen;          /* [n_tokens] i32, for the host */
    uint64_t stamps;          /* [blocks, n_ins, QN_STAMPS] ns, of the last token; 0: none wanted */
    uint32_t n_ins, n_tokens, epoch; /* epoch: tokens that ran before */
    int32_t token, pos, first;/* the first token, its position, where its page table begins */
    uint32_t input_bytes, stage_bytes, n_stages; /* shared memory: the input, then a ring for each warp */
} qn_crun;

/* stamps of an instruction: it begins, its wait is over, its input is there, its products are made, it has told the others */
enum { QN_STAMP_begin, QN_STAMP_waited, QN_STAMP_ready, QN_STAMP_done, QN_STAMP_end, QN_STAMPS };

/* instructions in shared memory, of which so many lie ahead */
enum { QN_P_WARPS = 16, QN_P_WINDOW = 8, QN_P_AHEAD = 4 };

#endif
