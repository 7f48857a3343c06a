/* glu.h - gates of the feed-forward, and the residual add: value by value, so lanes share the values and not the rows (one row
 * of d_ff is work for all of them). */
#ifndef QN_GENERIC_GLU_H
#define QN_GENERIC_GLU_H

#include "kernel/generic/vexp.h"
#include "kernel/op.h"

typedef struct span { size_t begin, end; } span;

/* this lane's share of n * d values */
INLINE span share(int n, int d, qn_lane lane)
{
    const size_t values = (size_t)n * (size_t)d, i = (size_t)lane.i, lanes = (size_t)lane.n;
    return (span){ values * i / lanes, values * (i + 1) / lanes };
}

INLINE vf silu(vf g) { return g / (splat(1) + vexp(-g)); }

/* 0.5 g (1 + tanh t) = g / (1 + e^-2t) */
INLINE vf gelu(vf g)
{
    const vf t = g * vfma(g * g, splat(0.044715f), splat(1));
    return g / (splat(1) + vexp(t * splat(-1.5957691216f))); /* 2 sqrt(2 / pi) */
}

INLINE void glu(float *gate, const float *up, span s, vf (*act)(vf))
{
    size_t i = s.begin;
    for (; i + LANES <= s.end; i += LANES) store(gate + i, act(load(gate + i)) * load(up + i));
    const int rest = (int)(s.end - i);
    if (rest) store_first(gate + i, act(load_first(gate + i, rest)) * load_first(up + i, rest), rest);
}

static void swiglu(const qn_swiglu *a, qn_lane lane) { glu(a->gate, a->up, share(a->n, a->d, lane), silu); }
static void geglu(const qn_geglu *a, qn_lane lane) { glu(a->gate, a->up, share(a->n, a->d, lane), gelu); }

static void add(const qn_add_args *a, qn_lane lane)
{
    const span s = share(a->n, a->d, lane);
    float *restrict x = a->x;
    const float *restrict y = a->y;
    for (size_t i = s.begin; i < s.end; i++) x[i] += y[i];
}

#endif
