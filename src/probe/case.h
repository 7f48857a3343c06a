/* case.h - one case of an op: its arguments with operands filled from a seed, each in memory of its own between guards.
 * cases.c makes them, oracle.c says what the outputs must be, check.c runs and compares. Internal to probe/. */
#ifndef QN_CASE_H
#define QN_CASE_H

#include "kernel/shape.h"

/* What the data looks like. Every case is run with each. */
typedef enum qn_mood { MOOD_plain, MOOD_zero, MOOD_huge, MOOD_special, N_MOODS } qn_mood;

typedef enum qn_use { USE_in, USE_out, USE_inout, USE_scratch } qn_use; /* scratch: begins as made, what is left in it is free */

/* Memory between guards: canaries before p, and behind it an unmapped page (flush) or canaries. */
typedef struct qn_operand {
    const char *name;
    u8 *p;
    size_t bytes;
    qn_use use;
    u8 *saved;          /* [bytes] what p holds before a run */
    u8 *map;
    size_t map_bytes, usable;
} qn_operand;

#define QN_OPERANDS 16

typedef struct qn_case {
    qn_op op;
    qn_args args;
    qn_rows rows;       /* what args.store.at / args.attend.at point to */
    qn_bytes line;      /* scratch for one row of bytes, where rows of a case lie woven into each other */
    qn_mood mood;
    u64 seed;
    u64 draws;
    bool flush;         /* operands end at an unmapped page; else they begin one element behind a 64-byte line */
    bool timed;         /* made for the clock: aligned, on huge pages, no guards, weights that repeat, one sequence */
    int depth;          /* tokens before its rows */
    bool failed;        /* an operand could not be made */
    qn_operand operand[QN_OPERANDS];
    int n_operands;
} qn_case;

/* c is zeroed by this. False: this op has no such case for the type (sizes that are no multiple of its block), or no memory:
 * then e->code is set. */
bool qn_case_open(qn_case *c, qn_op op, const qn_args *sizes, int type, qn_mood mood, u64 seed, qn_err *e);
/* False: sizes that are no multiple of the type's block, or a type that the op does not take. */
bool qn_case_fits(const qn_shape *s);
#define QN_CASE_MISFIT "the sizes are no multiple of the type's block, or the op does not take the type"
bool qn_case_open_timed(qn_case *c, const qn_shape *shape, u64 seed, qn_err *e);
void qn_case_close(qn_case *c);
void qn_case_reset(qn_case *c);                     /* inputs as made, outputs poisoned */
const char *qn_case_damage(const qn_case *c);       /* the operand that a run wrote into or around wrongly; NULL: none */
/* The arguments for row r alone; rows is where its own qn_rows lives. */
qn_args qn_case_row(const qn_case *c, int r, qn_rows *rows);
void qn_case_row_end(const qn_case *c, int r); /* puts what a kernel has made of row r where it belongs */
bool qn_case_has_rows(const qn_case *c); /* false: rows are woven into each other, the law of rows says nothing here */
void qn_case_print(const qn_case *c, char *out, size_t n);

/* A guarded operand of n * size bytes. NULL and c->failed: no memory. */
void *qn_case_operand(qn_case *c, const char *name, size_t n, size_t size, qn_use use);

/* What every float of the output operands must be, and how far it may be off. False: the op is exact, and its reference
 * kernel says the bits. */
bool qn_oracle(const qn_case *c, int operand, double *y, double *bound);

#endif
