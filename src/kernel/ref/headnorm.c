/* ref/headnorm.c - root mean square norm of each head, in place: reference, cost, cases. */
#include "kernel/ref/ref.h"

void qn_headnorm_ref(const void *args, qn_lane lane)
{
    const qn_headnorm *a = args;
    const int heads = a->n * a->n_head;
    for (int h = lane_begin(heads, lane), end = lane_end(heads, lane); h < end; h++) {
        float *x = a->x + (size_t)h * (size_t)a->d;
        double ss = 0;
        for (int i = 0; i < a->d; i++) ss += (double)x[i] * (double)x[i];
        const float s = (float)(1 / sqrt(ss / a->d + (double)a->eps));
        for (int i = 0; i < a->d; i++) x[i] = x[i] * s * a->w[i];
    }
}

qn_cost qn_headnorm_cost(const qn_args *args, int ctx)
{
    (void)ctx;
    const qn_headnorm *a = &args->headnorm;
    const u64 values = (u64)a->n * (u64)a->n_head * (u64)a->d;
    return (qn_cost){ .bytes = 4 * (2 * values + (u64)a->d), .flops = 4 * values };
}

const qn_args qn_headnorm_cases[] = {
    { .headnorm = { .n = 1, .n_head = 4, .d = 256 } },
    { .headnorm = { .n = 7, .n_head = 3, .d = 80 } },
    { .headnorm = { .n = 33, .n_head = 8, .d = 128 } },
    { 0 },
};
