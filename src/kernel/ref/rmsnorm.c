/* ref/rmsnorm.c - root mean square norm: reference, cost, cases. Every other rmsnorm answers to this file. */
#include "kernel/ref/ref.h"

void qn_rmsnorm_ref(const void *args, qn_lane lane)
{
    const qn_rmsnorm *a = args;
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++) {
        const float *x = a->x + (size_t)t * (size_t)a->d;
        float *y = a->y + (size_t)t * (size_t)a->d;
        double ss = 0;
        for (int i = 0; i < a->d; i++) ss += (double)x[i] * (double)x[i];
        const float s = (float)(1 / sqrt(ss / a->d + (double)a->eps));
        for (int i = 0; i < a->d; i++) y[i] = x[i] * s * a->w[i];
    }
}

qn_cost qn_rmsnorm_cost(const qn_args *args, int ctx)
{
    (void)ctx;
    const u64 n = (u64)args->rmsnorm.n, d = (u64)args->rmsnorm.d;
    return (qn_cost){ .bytes = 4 * (2 * n + 1) * d, .flops = 4 * n * d };
}

const qn_args qn_rmsnorm_cases[] = {
    { .rmsnorm = { .n = 1, .d = 896 } }, { .rmsnorm = { .n = 7, .d = 1153 } }, { .rmsnorm = { .n = 65, .d = 2048 } }, { 0 },
};
