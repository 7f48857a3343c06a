/* reference.h - what the outputs of one shape must be, in double, for each kind of data: made once for all variants of a contest,
 * and kept beside its results (memo.h). A kept one is known by the bytes of the inputs it was made from. */
#ifndef QN_REFERENCE_H
#define QN_REFERENCE_H

#include "probe/case.h"

typedef struct qn_reference {
    double *y;              /* [n] values, then [n] bounds; NULL: not made, or the op is exact */
    size_t n;
} qn_reference;

typedef struct qn_references { qn_reference of[N_MOODS][QN_OPERANDS]; } qn_references;

struct qn_memo;

/* Those of this shape and seed, kept ones where memo (may be NULL) has them. seed: of the first mood, as a check counts them. */
bool qn_references_make(qn_references *r, const qn_shape *s, u64 seed, struct qn_memo *memo, qn_err *e);
void qn_references_close(qn_references *r);

#endif
