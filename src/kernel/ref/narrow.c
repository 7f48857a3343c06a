/* ref/narrow.c - activations to bf16: reference, cost, cases. */
#include "base/half.h"
#include "kernel/ref/ref.h"

void qn_narrow_ref(const void *args, qn_lane lane)
{
    const qn_narrow *a = args;
    const size_t begin = (size_t)lane_begin(a->n, lane) * (size_t)a->d, end = (size_t)lane_end(a->n, lane) * (size_t)a->d;
    for (size_t i = begin; i < end; i++) a->y[i] = qn_f32_bf16(a->x[i]);
}

qn_cost qn_narrow_cost(const qn_args *args, int ctx)
{
    (void)ctx;
    const u64 values = (u64)args->narrow.n * (u64)args->narrow.d;
    return (qn_cost){ .bytes = 6 * values, .flops = 0 };
}

const qn_args qn_narrow_cases[] = {
    { .narrow = { .n = 1, .d = 896 } }, { .narrow = { .n = 7, .d = 96 } }, { .narrow = { .n = 33, .d = 1536 } }, { 0 },
};
