/* ref/quant.c - activations to bytes, a scale for every 32: reference, cost, cases. */
#include "kernel/ref/ref.h"

static void quant_block(const float *x, i8 *q, float *scale, i32 *sum, i32 *sum16)
{
    float most = 0;
    bool finite = true;
    for (int i = 0; i < 32; i++) {
        finite = finite && isfinite(x[i]);
        most = fmaxf(most, fabsf(x[i]));
    }
    *scale = finite ? most / 127 : NAN;
    const float inverse = finite && most > 0 ? 127 / most : 0;
    sum16[0] = sum16[1] = 0;
    for (int i = 0; i < 32; i++) {
        /* 127 / most overflows for the tiniest most: infinity times x is clamped, times zero is zero */
        const float v = x[i] == 0 || !finite ? 0 : fminf(fmaxf(x[i] * inverse, -127), 127);
        q[i] = (i8)lrintf(v); /* to even, as the vector instruction rounds */
        sum16[i / 16] += q[i];
    }
    *sum = sum16[0] + sum16[1];
}

void qn_quant_ref(const void *args, qn_lane lane)
{
    const qn_quant *a = args;
    const size_t d = (size_t)a->d;
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++) {
        for (size_t i = 0; i < d; i += 32) {
            const size_t at = (size_t)t * d + i;
            quant_block(a->x + at, a->y.q + at, a->y.scale + at / 32, a->y.sum + at / 32, a->y.sum16 + at / 16);
        }
    }
}

qn_cost qn_quant_cost(const qn_args *args, int ctx)
{
    (void)ctx;
    const u64 values = (u64)args->quant.n * (u64)args->quant.d;
    return (qn_cost){ .bytes = 5 * values + values / 2, .flops = 3 * values };
}

const qn_args qn_quant_cases[] = {
    { .quant = { .n = 1, .d = 896 } }, { .quant = { .n = 7, .d = 32 } }, { .quant = { .n = 33, .d = 1536 } }, { 0 },
};
