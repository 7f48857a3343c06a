/* ref.h - what every reference file needs, and nothing else. References are obvious, not clever: double sums, plain loops. */
#ifndef QN_REF_H
#define QN_REF_H

#include <math.h>

#include "kernel/kernel.h"

#define OP(name, doc) \
    void qn_##name##_ref(const void *args, qn_lane lane); \
    qn_cost qn_##name##_cost(const qn_args *args, int ctx); \
    extern const qn_args qn_##name##_cases[];
#include "kernel/ops.def"
#undef OP

#endif
