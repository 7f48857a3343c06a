/* ref/geglu.c - the gate of gemma's feed-forward, gelu by its tanh formula: reference, cost, cases. */
#include "kernel/ref/ref.h"

static double gelu(double x) { return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); } /* sqrt(2 / pi) */

void qn_geglu_ref(const void *args, qn_lane lane)
{
    const qn_geglu *a = args;
    const size_t begin = (size_t)lane_begin(a->n, lane) * (size_t)a->d, end = (size_t)lane_end(a->n, lane) * (size_t)a->d;
    for (size_t i = begin; i < end; i++) a->gate[i] = (float)(gelu((double)a->gate[i]) * (double)a->up[i]);
}

qn_cost qn_geglu_cost(const qn_args *args, int ctx)
{
    (void)ctx;
    const u64 values = (u64)args->geglu.n * (u64)args->geglu.d;
    return (qn_cost){ .bytes = 12 * values, .flops = 12 * values };
}

const qn_args qn_geglu_cases[] = {
    { .geglu = { .n = 1, .d = 4864 } }, { .geglu = { .n = 7, .d = 173 } }, { .geglu = { .n = 33, .d = 1536 } }, { 0 },
};
