/* plan.h - a model as a list of steps. The decoder appends them once, when an engine opens; exec runs them. */
#ifndef QN_PLAN_H
#define QN_PLAN_H

#include <stdatomic.h>

#include "base/mem.h"
#include "kernel/kernel.h"
#include "trace/trace.h"

enum { BUCKET_one, BUCKET_few, BUCKET_many, N_BUCKETS }; /* 1 row; 2..8; more */
static inline int qn_bucket(int n) { return n <= 1 ? BUCKET_one : n <= 8 ? BUCKET_few : BUCKET_many; }

typedef struct qn_choice {
    const qn_kernel *kernel;
    int lanes;              /* 1: on the caller alone; more: shared by all; 0: as the work of the step says (alone) */
    const char *reason, *rejected;
} qn_choice;

typedef struct qn_step {
    qn_op op;
    int layer;              /* -1: outside the layers */
    const char *role;       /* "blk.3.ffn_down" */
    bool logits;            /* runs over the rows that ask for logits instead of all rows */
    qn_args args;
    qn_choice choice[N_BUCKETS];
    int alone;              /* passes of at most this many rows run on the caller: too little work to wake the others for */
    int pieces[N_BUCKETS];  /* that lanes share: one that is late takes fewer */
    bool streams;           /* with few rows it mostly reads weights, enough of them to be cut unevenly: exec.c */
    qn_soon soon;           /* the weights of the next step that streams; behind the last one it is the first */
    bool with_next;         /* the next step does not need this one: exec runs them together */
} qn_step;

#define QN_TOGETHER 4       /* most steps that run together */

typedef struct qn_plan {
    qn_step *steps;
    int n, cap;
    qn_isa isa;             /* highest level that choices may use */
    const struct qn_tuned *tuned; /* winners and overrides that choices obey; NULL: none */
    qn_arena arena;         /* roles and reasons */
    qn_lane_time *times;    /* [QN_TOGETHER, lanes] what each lane spent in the steps that run: exec's */
} qn_plan;

/* Appends a step and chooses its kernels. role is copied. NULL: no memory. */
qn_step *qn_plan_add(qn_plan *p, qn_op op, int layer, const char *role, const qn_args *args, qn_err *e);
/* Passes of at most so many rows have too little work to wake other lanes for. */
int qn_rows_alone(qn_op op, const qn_args *args);
/* Into how many pieces such a step is cut where it is shared. */
int qn_pieces(qn_op op, const qn_args *args, int bucket, int lanes);
/* When all steps are there: says which run together, cuts them for that many lanes, and makes room for their times. */
bool qn_plan_finish(qn_plan *p, int lanes, qn_err *e);
void qn_plan_close(qn_plan *p);
const char *qn_step_type(const qn_step *s); /* of its weights, table or cache: "Q8_0" */

/* choose.c: the kernel alone, for what is in no plan. */
const qn_kernel *qn_choose_kernel(qn_op op, const qn_args *args, qn_isa most, int bucket, const struct qn_tuned *tuned);
/* What the tuning says for these sizes and rows; else the highest allowed ISA level that has a kernel for this op and
 * type. Says why, and what else there was. tuned may be NULL. */
bool qn_choose(qn_op op, const qn_args *args, qn_isa most, int bucket, const struct qn_tuned *tuned, qn_arena *a, qn_choice *out,
               qn_err *e);

/* Where exec writes what each step took; the pass's number, phase, first position and how many tokens are before its rows. */
typedef struct qn_exec_trace {
    qn_tracer *tracer;
    u32 pass;
    int phase, pos, ctx;
} qn_exec_trace;

/* exec.c: runs the plan on n rows, n_logits of which ask for logits. Between two steps it looks at *cancel. False: cancelled.
 * trace may be NULL. */
bool qn_plan_run(const qn_plan *p, qn_pool *pool, int n, int n_logits, const qn_exec_trace *trace, const atomic_int *cancel);

#endif
