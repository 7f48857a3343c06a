/* ref/addnorm.c - the residual and the norm behind it in one: reference, cost, cases. It is its two parts, row by row. */
#include "kernel/ref/ref.h"

void qn_addnorm_ref(const void *args, qn_lane lane)
{
    const qn_addnorm *a = args;
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++) {
        const size_t at = (size_t)t * (size_t)a->d;
        const qn_add_args add = { .n = 1, .d = a->d, .x = a->x + at, .y = a->add + at };
        const qn_rmsnorm norm = { .n = 1, .d = a->d, .y = a->y + at, .x = a->x + at, .w = a->w, .eps = a->eps };
        qn_add_ref(&add, lane_of(0, 1));
        qn_rmsnorm_ref(&norm, lane_of(0, 1));
    }
}

qn_cost qn_addnorm_cost(const qn_args *args, int ctx)
{
    (void)ctx;
    const u64 n = (u64)args->addnorm.n, d = (u64)args->addnorm.d;
    return (qn_cost){ .bytes = 4 * (4 * n + 1) * d, .flops = 5 * n * d };
}

const qn_args qn_addnorm_cases[] = {
    { .addnorm = { .n = 1, .d = 896 } }, { .addnorm = { .n = 7, .d = 1153 } }, { .addnorm = { .n = 65, .d = 576 } }, { 0 },
};
