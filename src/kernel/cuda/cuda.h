/* cuda.h - a plan on a CUDA device: what an engine needs to know of it. The engine keeps its books (tokens, positions, page
 * tables) in host memory as always; buffers and pages live on the device at the same offsets, and a pass copies the books up,
 * runs the plan's steps and leaves the logits there until somebody asks for them. */
#ifndef QN_CUDA_H
#define QN_CUDA_H

#include "kernel/plan.h"

typedef struct qn_cuda qn_cuda;

typedef struct qn_cuda_info {
    char name[96];
    int ordinal, major, minor, n_sm, driver; /* driver: 13000 is CUDA 13.0 */
    u64 memory, free;                        /* bytes */
} qn_cuda_info;

/* Looks at a device and loads nothing: for `quern doctor`. */
bool qn_cuda_look(int ordinal, qn_cuda_info *out, qn_err *e);

/* Opens a device with this build's kernels; says in one sentence why not: no kernels in the build, no driver, no device. */
qn_cuda *qn_cuda_open(int ordinal, qn_err *e);
void qn_cuda_close(qn_cuda *c);

/* Bytes that a matrix of a stored type takes on the device. */
u64 qn_cuda_weight_bytes(qn_dtype type, u64 rows, u64 cols);

typedef struct qn_cuda_need {
    const u8 *scratch;        /* host scratch; the device has a twin of it */
    size_t scratch_bytes;
    const u8 *logits, *rows, *tables; /* inside it, in this order up to its end: results; filled for each pass; changed seldom */
    const i32 *tokens, *pos, *first; /* inside rows, [n] */
    const void *narrow;       /* inside scratch, [n, widest input] of 2 bytes: activations as f16 */
    int n_vocab, n_ctx, n_rows, n_logits; /* rows of a pass at most, and of those that ask */
    u64 weights;              /* bytes on the device, at most */
    size_t kv_bytes[2];       /* by layer group */
} qn_cuda_need;

/* Takes all memory but that of the weights, once all of it was seen to fit. `need` is copied. kv[g]: device addresses. */
bool qn_cuda_reserve(qn_cuda *c, const qn_cuda_need *need, u8 *kv[2], qn_err *e);

typedef struct qn_cuda_load {
    qn_plan *plan;            /* borrowed until close */
    qn_pool *pool;
    const char *path;         /* of the model, for messages */
    qn_progress_fn progress;  /* may be NULL */
    void *user;
} qn_cuda_load;

/* Brings the weights up and turns the plan into launches. */
bool qn_cuda_load_plan(qn_cuda *c, const qn_cuda_load *l, qn_err *e);

/* Runs the plan on n rows, n_logits of which ask for logits. ns [steps]: what each took; NULL: nobody wants to know. */
bool qn_cuda_run(qn_cuda *c, int n, int n_logits, u64 *ns, qn_err *e);
/* Makes n tokens of one sequence on the device, each the likeliest behind the one before; row 0 of the pass is the first. Pages
 * for all of them are in the tables. out [n]: what comes behind each; ns [n, steps] as above. The logits are those of the last.
 * Only if can_decode. */
bool qn_cuda_can_decode(const qn_cuda *c);
bool qn_cuda_decode(qn_cuda *c, int n, i32 *out, u64 *ns, qn_err *e);
#define QN_CUDA_DECODE_MOST 32

/* The same, each drawn from the top_k best (at most QN_CUDA_BEST), cut by top_p and min_p; u [n]: where in [0, 1) they fall. */
typedef struct qn_cuda_rules { int top_k; float temp, top_p, min_p; } qn_cuda_rules;
bool qn_cuda_draw(qn_cuda *c, int n, const qn_cuda_rules *r, const double *u, i32 *out, u64 *ns, qn_err *e);

/* From now on, or no longer, a pass also finds the best logits of each row (if they are few rows) and brings these down. best:
 * those of a row of the newest pass into ids and values, [QN_CUDA_BEST], best first, a tie to the lower id; returns how many, all
 * where the vocabulary is smaller; 0: that pass has none. */
void qn_cuda_list_best(qn_cuda *c, bool on);
int qn_cuda_best(const qn_cuda *c, int row, i32 *ids, float *values);
#define QN_CUDA_BEST 64

/* Brings the logits of the newest pass into the host's buffer, once. */
bool qn_cuda_fetch(qn_cuda *c, qn_err *e);
/* Copies bytes from one page to another. */
bool qn_cuda_copy(qn_cuda *c, u8 *to, const u8 *from, size_t bytes, qn_err *e);

void qn_cuda_get_info(const qn_cuda *c, qn_cuda_info *out);
u64 qn_cuda_taken(const qn_cuda *c);                          /* device bytes in use by this engine */
int qn_cuda_decoded(const qn_cuda *c);                        /* matrices that had to become f16 */
const char *qn_cuda_kernel(const qn_cuda *c, int step, int bucket); /* "linear_q4_cuda_r8" */
const char *qn_cuda_reason(const qn_cuda *c, int step, int bucket);
const char *qn_cuda_why_not(const qn_cuda *c);                /* why tokens are made by ordinary kernels; NULL: they are not */

#endif
