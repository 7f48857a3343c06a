/* tuned.h - the probe's winners, as plans read them: for an op with its sizes and a number of rows, which kernel. One JSON
 * object a line, written by `quern probe --tune`; lines of other processors, other thread counts or kernels that are gone are
 * passed over. Behind them comes a table that is a part of the program. Overrides (--kernel OP=NAME) come before all others. */
#ifndef QN_TUNED_H
#define QN_TUNED_H

#include "base/buf.h"
#include "base/mem.h"
#include "kernel/shape.h"

typedef struct qn_tuned_row {
    qn_op op;
    const char *shape;          /* qn_shape_print without op; NULL: every shape */
    int bucket;                 /* BUCKET_*; -1: every number of rows */
    const qn_kernel *kernel;    /* NULL: this fused op is not worth it, its parts are faster apart */
    double over_parts;          /* of a fused op: times as fast as its parts; 0: not known */
    int lanes;                  /* 1: on one thread; more: on all; 0: as an untuned plan has it */
    double gain, error;         /* times as fast as the default (apart: as fused), and how sure that is (0.02: 2 %) */
    const char *date;           /* "2026-11-20"; NULL: an override */
    const char *cpu;            /* of a row of the built-in table: where it was measured; NULL: here */
} qn_tuned_row;

typedef struct qn_tuned {
    qn_arena arena;
    qn_tuned_row *at;
    size_t n, cap;
    u64 passed_over;            /* lines for other machines, or no lines of ours */
} qn_tuned;                     /* zeroed is empty */

/* Adds the winners of a file for this processor and so many threads. A file that is not there adds nothing. */
bool qn_tuned_read(qn_tuned *t, const char *path, int threads, qn_err *e);
/* Adds the rows of the built-in table (winners.def) that were measured on a processor of the same level with so many threads. */
bool qn_tuned_add_table(qn_tuned *t, int threads, qn_err *e);
/* Adds a row; its texts are copied. */
bool qn_tuned_add(qn_tuned *t, const qn_tuned_row *row, qn_err *e);
/* Adds an override, "OP=KERNEL" or, for a fused op, "OP=apart"; several, with commas between them. */
bool qn_tuned_override(qn_tuned *t, const char *text, qn_err *e);
void qn_tuned_close(qn_tuned *t);

/* The row that fits; NULL: none. */
const qn_tuned_row *qn_tuned_find(const qn_tuned *t, qn_op op, const qn_args *args, int bucket);

/* The row that says that a fused op is to be left apart; NULL: it is not. */
const qn_tuned_row *qn_tuned_apart(const qn_tuned *t, qn_op fused, const qn_args *args);
/* Was a kernel asked for by name for this op? */
bool qn_tuned_asked(const qn_tuned *t, qn_op op);

/* winners.def anew: the rows of all other processors and thread counts that this program has, then these winners. */
void qn_tuned_print_table(qn_buf *b, const qn_tuned *winners, int threads);
/* A line of the file. */
void qn_tuned_print(qn_buf *b, const qn_tuned_row *row, int threads);

#endif
