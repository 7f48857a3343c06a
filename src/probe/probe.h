/* probe.h - checks kernels against their reference. For every row of kernels.def that the options allow: make the op's cases
 * from a seed, poison outputs, surround buffers with guards, run, compare. A kernel runs in a process of its own, so one that
 * crashes or hangs fails by its name and nothing else does. Prints nothing: what was found goes to a callback. */
#ifndef QN_PROBE_H
#define QN_PROBE_H

#include "kernel/kernel.h"

typedef struct qn_probe_opts {
    int op;             /* qn_op; -1: every op */
    int type;           /* qn_dtype of the weight, table or cache; -1: every type */
    int isa;            /* qn_isa: this level alone; 0: every level that this machine runs */
    u64 seed;           /* 0: a seed from the clock; results say which */
    int timeout_s;      /* a case that takes longer hangs; 0: 60 s */
    const qn_args *sizes; /* instead of the op's own cases, ended by n = 0; NULL: those */
    const struct qn_references *known; /* of the one size there is, made from seed; NULL: each check works them out */
} qn_probe_opts;
#define QN_PROBE_DEFAULT { .op = -1, .type = -1 }

/* Errors against a double-precision evaluation; the first three over plain data (values of -1..1), worst over all */
typedef struct qn_errors {
    double max_abs;     /* largest |y - y64| */
    double max_rel;     /* largest |y - y64| / |y64|, where y64 is at least a thousandth of the largest */
    double nmse;        /* worst case's sum (y - y64)^2 / sum y64^2 */
    double worst;       /* largest |y - y64| / bound: above 1 fails */
} qn_errors;

typedef struct qn_probe_result {
    const qn_kernel *kernel;
    u64 seed;
    bool passed;
    int cases;          /* combinations of sizes, operand type and kind of data that were run */
    qn_errors off;
    char at[224];       /* the case that was run last, or that failed: "n=7 rows=19 cols=768 q4_k huge" */
    char why[160];      /* empty when passed: "y[12] is 3.5, not 3.25 (bound 1e-05)", "SIGSEGV", "writes behind y" */
} qn_probe_result;

/* Called after each kernel; false stops the walk. */
typedef bool (*qn_probe_fn)(void *user, const qn_probe_result *r);

/* Walks the registry. *failed counts the kernels that did not pass. False: the walk itself could not be done (e says why), or
 * each stopped it (QN_ECANCELLED). A filter that no kernel meets is QN_EUSAGE. */
bool qn_probe_check(const qn_probe_opts *o, qn_probe_fn each, void *user, int *failed, qn_err *e);

/* One kernel, of the registry or not. */
bool qn_probe_kernel(const qn_kernel *k, const qn_probe_opts *o, qn_probe_result *r, qn_err *e);

#endif
