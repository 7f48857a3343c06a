/* shape.h - an op with its sizes, as text and back: "op=linear type=q8_0 n=1 rows=896 cols=4864". The word for a thing to time:
 * the probe takes shapes from plans, traces and flags, keeps results under them, and plans look up winners by them. */
#ifndef QN_SHAPE_H
#define QN_SHAPE_H

#include "kernel/kernel.h"

typedef struct qn_shape {
    qn_op op;
    int depth;              /* tokens before the rows, for ops that look at the cache */
    qn_args args;           /* sizes and types; every pointer NULL */
} qn_shape;

#define QN_SHAPE_TEXT 160

/* The sizes of args alone; pointers are left out, so that equal shapes have equal bytes. */
qn_shape qn_shape_of(qn_op op, const qn_args *args, int n, int depth);

/* Every size by name, in one order: equal shapes, equal texts. with_op false: without "op=" and without the rows of the pass, for
 * what is the same in every pass. */
void qn_shape_print(const qn_shape *s, bool with_op, char out[QN_SHAPE_TEXT]);

/* Takes what print makes, in any order, words apart by spaces or " | "; sizes left out get the smallest sensible value. The
 * names matmul_alpha_beta and matmul_bias_add are matmul with those parts. */
bool qn_shape_parse(const char *text, qn_shape *out, qn_err *e);

#endif
