/* fuse.h - steps of a plan that become one: what a fused step computes is what its parts would, bit for bit. */
#ifndef QN_FUSE_H
#define QN_FUSE_H

#include "kernel/plan.h"

/* Rewrites the plan where a rule fits, unless its tuning says that the parts are faster apart. Before qn_plan_finish. */
bool qn_fuse_run(qn_plan *p, qn_err *e);

#endif
