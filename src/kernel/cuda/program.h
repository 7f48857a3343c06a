/* program.h - the inside of a plan on the device. upload.c fills the table of what lies where; program.c makes the launches and
 * runs them; cuda.c is the door. */
#ifndef QN_CUDA_PROGRAM_H
#define QN_CUDA_PROGRAM_H

#include "kernel/cuda/abi.h"
#include "kernel/cuda/cuda.h"
#include "kernel/cuda/gpu.h"

/* Something of the model that lies on the device: a matrix, or floats (norm, bias, angles: rows 0). */
typedef struct qn_placed {
    const void *host;
    qn_dtype type;
    qn_wmat w;              /* for floats only w.at and w.cols */
} qn_placed;

typedef union qn_cargs {
    qn_cembed embed; qn_cnorm norm; qn_clinear linear; qn_crope rope; qn_cstore store; qn_cattend attend; qn_cadd add;
    qn_cglu glu; qn_cpick pick;
} qn_cargs;

typedef struct qn_cstep { qn_cargs args; const char *kernel[N_BUCKETS], *reason; } qn_cstep;

#define QN_GRAPHS 64 /* passes of up to so many rows are kept as graphs, if all rows ask or none */

struct qn_cuda {
    qn_gpu gpu;
    qn_cuda_need need;
    u64 scratch, kv[2];     /* device addresses */
    u8 *shadow;             /* [tables] as they are on the device */
    bool pinned;            /* logits, rows and tables of the host can be copied without a detour */
    qn_plan *plan;
    qn_cstep *steps;        /* [plan->n] */
    qn_placed *placed;
    int n_placed, n_decoded;
    const float *angle_freq[4]; /* whose angles lie at angle_at */
    u64 angle_at[4];
    int n_angles;
    void *graphs[QN_GRAPHS + 1]; /* by rows */
    u64 stamps_at, *stamps; /* [plan->n + 1] on the device; pinned: when each step of the newest pass began, and when all ended */
    qn_arena arena;         /* names */
    u64 narrowed;           /* the buffer whose f16 twin is up to date in this pass; 0: none */
    int n_single;           /* this pass: so many rows are tokens of their own, those behind them runs of a sequence */
    struct qn_wide *wide;   /* how passes of several rows run on Hopper; NULL: not there */
    int n_fresh;            /* rows of logits that are on the device only */
    struct qn_shortlist *shortlist;
    struct qn_persist *persist; /* NULL: it cannot run here; why_not says why */
    const char *why_not;
};

/* Of the tokens that are made without asking back: from the at-th on n of them, in one launch; next: where the first of these is,
 * on the device; 0: it is row 0 of the pass. */
typedef struct qn_persist_part { int at, n; u64 next; } qn_persist_part;

/* persist.c: tokens of one sequence, by the persistent kernel. make: true without one where the plan or the device has no place
 * for it. */
bool qn_persist_make(qn_cuda *c, qn_err *e);
bool qn_persist_run(qn_cuda *c, const qn_persist_part *p, bool timed, qn_err *e);
bool qn_persist_stamps(qn_cuda *c, int n, qn_err *e); /* of n timed tokens, on their way down */
void qn_persist_times(const qn_cuda *c, int n, u64 *ns); /* once they are there */
const i32 *qn_persist_chosen(const qn_cuda *c);
void qn_persist_close(qn_cuda *c);

/* shortlist.c: the best logits of each row of a pass, enqueued behind it where somebody wants them. */
bool qn_shortlist_make(qn_cuda *c, qn_err *e);
bool qn_shortlist_launch(qn_cuda *c, int rows, qn_err *e);
void qn_shortlist_close(qn_cuda *c);
/* The i-th draw of a round from row 0: into `next` on the device, which is where the next token begins, and `drawn` here. */
bool qn_shortlist_draw(qn_cuda *c, const qn_cuda_rules *r, double u, int i, qn_err *e);
u64 qn_shortlist_next(const qn_cuda *c);
const i32 *qn_shortlist_drawn(const qn_cuda *c);

/* upload.c: places everything the plan's steps point to. find: where a host pointer's twin is; NULL: nowhere. */
bool qn_upload(qn_cuda *c, const qn_cuda_load *l, qn_err *e);
const qn_placed *qn_placed_find(const qn_cuda *c, const void *host);

/* wide.c: passes of several rows on Hopper's tensor cores. make: true without one where the device is another. launch: step i
 * over n rows; *done false: it runs as everywhere else. merged: a launch in front does its work. name: NULL: as elsewhere. */
bool qn_wide_make(qn_cuda *c, qn_err *e);
bool qn_wide_launch(qn_cuda *c, int i, int n, bool *done, qn_err *e);
const char *qn_wide_name(const qn_cuda *c, int i, int bucket);
bool qn_wide_merged(const qn_cuda *c, int i);
void qn_wide_close(qn_cuda *c);

/* attention.c: rows over the pages of their sequences, in the way that suits each. */
bool qn_attention_make(qn_cuda *c, qn_err *e);
const char *qn_attention_name(const qn_cattend *a, int bucket);
bool qn_attention_can_half(const qn_cattend *a);  /* y can be f16 */
bool qn_attention_launch(qn_cuda *c, const qn_cattend *a, int n, qn_err *e);
int qn_attention_singles(const qn_cuda *c, int n); /* how many rows of this pass come before the first run of a sequence */

/* program.c */
u64 qn_program_buffer(const qn_cuda *c, const void *host); /* a buffer's twin */
bool qn_program_make(qn_cuda *c, qn_err *e);
bool qn_program_run(qn_cuda *c, int n, int n_logits, bool timed, qn_err *e);
void qn_program_times(const qn_cuda *c, int n, int n_logits, u64 *ns); /* [plan->n], of a timed pass that has ended */
void qn_program_close(qn_cuda *c);

#endif
