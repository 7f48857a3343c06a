/* parts.h - what a fused op is made of: the shapes of the ops that would do the same one after the other, so that the probe
 * can hold the one against the sum of the others. */
#ifndef QN_PARTS_H
#define QN_PARTS_H

#include "kernel/shape.h"

#define QN_PARTS 4

/* In the order they would run; returns how many, 0: the op is not fused. */
int qn_shape_parts(const qn_shape *s, qn_shape out[QN_PARTS]);

/* Is it an op that plans make of their steps where that is faster (model/fuse.h)? Attention is fused, but no plan takes it
 * apart. */
bool qn_fused_by_plans(qn_op op);

#endif
