/* rival.h - kernels of other libraries, found at run time, to be timed beside ours: OpenBLAS and oneDNN. Internal to probe/.
 * A rival is prepared for one case (so that what it builds once is not timed), run many times, closed. It has its own threads. */
#ifndef QN_RIVAL_H
#define QN_RIVAL_H

#include "probe/case.h"

typedef struct qn_rival {
    const char *name;           /* "openblas sgemm" */
    char version[96];           /* what the library says of itself */
    /* What it misses in this shape, in few words; NULL: it takes it. */
    const char *(*needs)(const struct qn_rival *r, qn_op op, const qn_args *a);
    void *(*prepare)(const struct qn_rival *r, qn_op op, const qn_args *a, qn_err *e); /* NULL: refused */
    void (*run)(void *job);
    void (*close)(void *job);
    const void *library;
    int linger_ms;              /* its threads go on spinning so long after a call */
    int type;                   /* of its operands: DT_f32, DT_bf16, or DT_q8_0 for bytes */
} qn_rival;

#define QN_RIVALS 4

typedef struct qn_rivals {
    qn_rival at[QN_RIVALS];
    int n;
    char absent[2][96];         /* one sentence for each library that is not there; else "" */
    struct qn_rival_library *blas;
    struct qn_rival_dnn *dnn;
} qn_rivals;

/* Loads what there is; never fails. threads: how many each may use. */
void qn_rivals_open(qn_rivals *r, int threads);
void qn_rivals_close(qn_rivals *r);
/* Lets the libraries' threads, as far as they were started, run on any core but this one: the caller's. */
void qn_rivals_leave(int cpu);

/* rival_blas.c, rival_dnn.c: append what their library has; version: machine.h's words. False: it is not here. */
bool qn_rival_blas(qn_rivals *r, int threads, const char *version);
bool qn_rival_dnn(qn_rivals *r, int threads, const char *version);
void qn_rival_blas_close(qn_rivals *r);
void qn_rival_dnn_close(qn_rivals *r);

#endif
