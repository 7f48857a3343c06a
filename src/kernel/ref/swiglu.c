/* ref/swiglu.c - the gate of llama's feed-forward: reference, cost, cases. */
#include "kernel/ref/ref.h"

static double silu(double x) { return x / (1 + exp(-x)); }

void qn_swiglu_ref(const void *args, qn_lane lane)
{
    const qn_swiglu *a = args;
    const size_t begin = (size_t)lane_begin(a->n, lane) * (size_t)a->d, end = (size_t)lane_end(a->n, lane) * (size_t)a->d;
    for (size_t i = begin; i < end; i++) a->gate[i] = (float)(silu((double)a->gate[i]) * (double)a->up[i]);
}

qn_cost qn_swiglu_cost(const qn_args *args, int ctx)
{
    (void)ctx;
    const u64 values = (u64)args->swiglu.n * (u64)args->swiglu.d;
    return (qn_cost){ .bytes = 12 * values, .flops = 5 * values };
}

const qn_args qn_swiglu_cases[] = {
    { .swiglu = { .n = 1, .d = 4864 } }, { .swiglu = { .n = 7, .d = 173 } }, { .swiglu = { .n = 33, .d = 1536 } }, { 0 },
};
