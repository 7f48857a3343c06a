/* ref/softmax.c - probabilities of scores: reference, cost, cases. */
#include "kernel/ref/ref.h"

void qn_softmax_ref(const void *args, qn_lane lane)
{
    const qn_softmax *a = args;
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++) {
        const float *x = a->x + (size_t)t * (size_t)a->d;
        float *y = a->y + (size_t)t * (size_t)a->d;
        const double scale = (double)a->scale;
        double top = -INFINITY, sum = 0;
        for (int i = 0; i < a->d; i++) top = fmax(top, (double)x[i]);
        for (int i = 0; i < a->d; i++) sum += exp(scale * ((double)x[i] - top));
        for (int i = 0; i < a->d; i++) y[i] = (float)(exp(scale * ((double)x[i] - top)) / sum);
        if (a->log_sum) a->log_sum[t] = (float)(scale * top + log(sum));
    }
}

qn_cost qn_softmax_cost(const qn_args *args, int ctx)
{
    (void)ctx;
    const u64 values = (u64)args->softmax.n * (u64)args->softmax.d;
    return (qn_cost){ .bytes = 8 * values, .flops = 5 * values };
}

const qn_args qn_softmax_cases[] = {
    { .softmax = { .n = 1, .d = 5000 } }, { .softmax = { .n = 7, .d = 173 } }, { .softmax = { .n = 3, .d = 1024 } },
    { .softmax = { .n = 2, .d = 5 } },    { 0 },
};
