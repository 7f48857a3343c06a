/* abi.h - what host and device code agree on: how a weight lies in device memory, the arguments of every kernel, and the
 * instructions of the persistent one. Read by C and by CUDA C++, so it holds nothing but plain structs. Addresses are 64-bit
 * numbers: the host never follows one. */
#ifndef QN_CUDA_ABI_H
#define QN_CUDA_ABI_H

#include <stdint.h>

/* A row of a weight lies in planes, each padded: values, then (6-bit types) a third of them, then scales. 16 bytes at a time are
 * then always values of one kind, and a row or a part of it can be copied as it is.
 *   f32 f16 bf16  the values
 *   q8            bytes; an f16 scale for each 32
 *   q4, q4m       32 weights in 16 bytes: low nibbles are 0..15, high ones 16..31; f16 scale, or scale and min: y = s*q + m
 *   q6            an f16 scale for each 16, y = s*(q - 32). Four values are 4*(q - 32) in the bytes of a word, whose last two
 *                 bits are free: of each 16, three words hold the first twelve, and in what is free, from the first word
 *                 to the third and from the top bits down, the last four. The first two words of each 16 lie in the first
 *                 plane, the third in the second: a mask gives twelve weights as signed bytes, three shifts the others */
enum { QN_W_f32, QN_W_f16, QN_W_bf16, QN_W_q8, QN_W_q4, QN_W_q4m, QN_W_q6, QN_W_KINDS };

typedef struct qn_wmat {
    uint64_t at;            /* row 0 */
    uint32_t rows, cols;
    uint32_t row_bytes;     /* from row to row, all planes; a multiple of 16 */
    uint32_t high, scale;   /* where the plane of third words and that of scales begin in a row; 0: none */
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

/* A turn of the shortlist (shortlist.cu): of n logits a row, or (logits 0) of keys that a turn before left over. */
enum { QN_LIST_KEYS = 1024, QN_LIST_BEST = 64 };
typedef struct qn_clist { uint64_t logits, keys, out; uint32_t n, pitch, out_pitch; } qn_clist; /* pitch: keys of a row */

/* A draw from a row's best, as engine/sampler.c does it: among the first n, cut by top_p, min_p. u: where in [0, 1) it falls. */
typedef struct qn_cdraw { uint64_t keys, next, out; double u; float temp, top_p, min_p; int n; } qn_cdraw; /* next, out: i32 */

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

/* ---- the persistent kernel (persist.cu): what each block does for one token, made by list.c.
 *
 * A phase is what runs between two exchanges: some linears with the same input, or an attention. Nobody waits for a phase to
 * end: what one block makes and others need is *sent*, two values with a tag in 8 bytes that are written and read at once, and
 * whoever needs it looks until the tag is that of this token's phase. The residual stream lies in every block's shared memory;
 * blocks add the same values to it in the same order.
 *
 * A unit of two sent values, from the low bits up: 8 bits of the second value, 24 of the first, 16 of the tag, 16 of the second.
 * Values are floats without their last 8 bits, rounded. */
enum { QN_I_linear, QN_I_attend };
enum { QN_IN_embed, QN_IN_add, QN_IN_post, QN_IN_copy };  /* what is multiplied: norm(x = table[token]); norm(x += src);
    norm(x += norm(src) * post); src */
enum { QN_OUT_send, QN_OUT_silu, QN_OUT_gelu, QN_OUT_logits };
/* How the input is kept: floats; 16-bit integers with a scale and sums of 32 of them. */
enum { QN_FORM_float = 1, QN_FORM_int = 2 };

typedef struct qn_phase {
    uint8_t op, in, out, forms;
    uint32_t cols;            /* of the input */
    uint64_t src, dst;        /* units; dst of logits: floats */
    uint64_t norm, post;
    float eps, factor;        /* factor: of the embedding */
    uint16_t back, room;      /* src was sent so many phases before; where the input lies, in bytes behind the residual stream */
    uint16_t index, step;     /* of its qn_att; of the embedding's qn_wmat. Of the plan */
    float inverse;            /* 1 / cols */
    uint8_t parts, rows;      /* logarithms: parts of a row's columns, a warp for each; rows of a task */
    uint16_t att;             /* 1 + index of the attention that follows; 0: none does */
} qn_phase;                   /* 4 times 16 bytes */

/* Weights come in stages: some rows of a matrix, or the same rows of gate and up, whole or some columns of them. What a warp does
 * with a stage is a task: 2, 4 or 8 rows (2 or 4 where the same of `up` are multiplied too), all columns or a part of them.
 * All is written down: a warp takes one task behind the other, in every token the same. */
enum { QN_S_kv = 1 };         /* keys and values are wanted soon */
typedef struct qn_stage {
    uint64_t a, b;            /* the first row, and that of `up`, from this stage's first column; b 0: not gated */
    uint32_t to, back;        /* place in the ring; the stage so many before, and all before that, must have been used */
    uint32_t bytes;           /* that come */
    uint32_t row_bytes, pitch;/* from row to row: in memory, in the ring */
    uint32_t high, scale;     /* other planes, from a and b */
    uint16_t n_value, n_high, n_scale; /* bytes of a row that come one by one; n_value 0: the rows of a matrix in one run */
    uint16_t high_at, scale_at;        /* planes of a row in the ring */
    uint8_t rows, flags;      /* rows: of each matrix */
    uint16_t att;             /* QN_S_kv: index of the qn_att */
    uint16_t after;           /* the stage so many before must have come before this one is asked for */
    uint16_t phase, spare;    /* phase: for tests/unit/test_list.c */
} qn_stage;                   /* 4 times 16 bytes */

/* The first, the last stage of its rows; the warp's last task of the phase; its rows have a bias. */
enum { QN_T_begins = 1, QN_T_ends = 2, QN_T_last = 4, QN_T_bias = 8 };
enum { QN_T_USES = 16, QN_NO_PHASE = 0xFFFF }; /* the weights of all tasks of a stage; the phase of no task */
typedef struct qn_task {
    uint32_t at, row;         /* the first row: place in the ring, place in the output */
    uint16_t pitch, up;       /* 16 bytes: from row to row; from a row to that of `up` */
    uint16_t high, scale;     /* bytes: other planes of a row */
    uint16_t begin, end;      /* pieces of the stage: 32 columns, or 16 bytes of floats */
    uint16_t piece, stage;    /* the stage's first piece in the row; which of the token's stages */
    uint16_t phase;
    uint8_t kind, rows;       /* rows: that there are */
    uint8_t part, weight, flags, spare; /* weight: of QN_T_USES, when it is done with the stage */
    uint64_t bias, bias2;     /* of the first row; 0: none */
} qn_task;                    /* 3 times 16 bytes */

typedef struct qn_att {
    uint64_t qkv, y, q_norm, k_norm, angles, cache, stride, pages; /* qkv, y: units */
    uint32_t q_at, k_at, v_at;/* in qkv, in values */
    int n_head, n_kv, d_head, d_rot, neox, type, window, chunks; /* chunks: most parts that a context is cut into */
    float scale, eps;
    int group;                /* n_head / n_kv */
    uint32_t pad[2];
} qn_att;                     /* 8 times 16 bytes */

/* One launch: n_tokens tokens of one sequence, each the likeliest behind the one before. */
typedef struct qn_crun {
    uint64_t phases;          /* [n_phases] */
    uint64_t stages, stage_at;/* [] qn_stage; [blocks + 1] u32: where each block's begin */
    uint64_t tasks, task_at;  /* [] qn_task; [blocks * QN_P_WARPS + 1] u32: where each warp's begin; it has one at least */
    uint64_t atts, tables;    /* [] qn_att, [] qn_wmat */
    uint64_t parts;           /* [n_head, chunks, d_head + 2] of float and tag: attention of parts of a context */
    uint64_t best;            /* [blocks, 2]: logit and tag, token and tag */
    uint64_t chosen;          /* [n_tokens] i32, for the host */
    uint64_t next;            /* i32: the first token, made by a kernel in front; 0: it is `token` */
    uint64_t stamps;          /* [1 + n_tokens * n_phases] ns: when the last block began, was done with each; 0: none wanted */
    uint32_t n_phases, n_tokens, epoch; /* epoch: tokens that ran before */
    int32_t token, pos, first;/* the first token, its position, where its page table begins */
    uint32_t x_bytes, form_bytes; /* shared memory: residual stream, rooms for inputs (or attention); the ring has the rest */
} qn_crun;

enum { QN_P_WARPS = 16, QN_P_SLOTS = 32, QN_P_THREADS = 32 * (QN_P_WARPS + 4) }; /* registers are given from four
    warps to four */

#endif
