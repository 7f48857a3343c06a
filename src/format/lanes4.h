/* lanes4.h - four groups of weights searched side by side. Encoders fit every group of a block on its own, with the same
 * arithmetic: so a group is a lane, x[i] holds weight i of four groups, and sums over a group are sums of whole vectors. */
#ifndef QN_LANES4_H
#define QN_LANES4_H

#include <float.h>

#include "base/types.h"

typedef float qn_f32x4 __attribute__((vector_size(16)));
typedef i32 qn_i32x4 __attribute__((vector_size(16)));

static inline qn_f32x4 qn_all4(float v) { return (qn_f32x4){ v, v, v, v }; }

static inline qn_f32x4 qn_pick4(qn_i32x4 mask, qn_f32x4 yes, qn_f32x4 no)
{
    return (qn_f32x4)((mask & (qn_i32x4)yes) | (~mask & (qn_i32x4)no));
}

static inline qn_f32x4 qn_min4(qn_f32x4 a, qn_f32x4 b) { return qn_pick4(a < b, a, b); }
static inline qn_f32x4 qn_max4(qn_f32x4 a, qn_f32x4 b) { return qn_pick4(a > b, a, b); }
static inline qn_f32x4 qn_abs4(qn_f32x4 v) { return qn_max4(v, -v); }

/* Nearest integer within lo..hi, |lo| and |hi| below 2^21. Adding 3 * 2^22 leaves a float no room for a fraction. */
static inline qn_f32x4 qn_level4(qn_f32x4 v, float lo, float hi)
{
    const qn_f32x4 cut = qn_min4(qn_max4(v, qn_all4(lo)), qn_all4(hi));
    return (cut + 12582912.0f) - 12582912.0f;
}

/* 1/v; 0 where that would not be finite */
static inline qn_f32x4 qn_inverse4(qn_f32x4 v) { return qn_pick4(qn_abs4(v) < FLT_MIN, qn_all4(0), 1 / v); }

/* Groups first, first + 1, ... of n weights each, turned so that each is a lane. */
static inline void qn_turn4(const float *restrict from, int n, qn_f32x4 *restrict x)
{
    for (int i = 0; i < n; i++) x[i] = (qn_f32x4){ from[i], from[n + i], from[2 * n + i], from[3 * n + i] };
}

#endif
