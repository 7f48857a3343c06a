/* ref/add.c - the residual: reference, cost, cases. */
#include "kernel/ref/ref.h"

void qn_add_ref(const void *args, qn_lane lane)
{
    const qn_add_args *a = args;
    const size_t begin = (size_t)lane_begin(a->n, lane) * (size_t)a->d, end = (size_t)lane_end(a->n, lane) * (size_t)a->d;
    for (size_t i = begin; i < end; i++) a->x[i] += a->y[i];
}

qn_cost qn_add_cost(const qn_args *args, int ctx)
{
    (void)ctx;
    const u64 values = (u64)args->add.n * (u64)args->add.d;
    return (qn_cost){ .bytes = 12 * values, .flops = values };
}

const qn_args qn_add_cases[] = {
    { .add = { .n = 1, .d = 896 } }, { .add = { .n = 7, .d = 113 } }, { .add = { .n = 65, .d = 576 } }, { 0 },
};
