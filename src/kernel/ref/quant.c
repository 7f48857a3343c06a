/* ref/quant.c - activations to bytes, a scale for every row and a power of two of it for every 32: reference, cost, cases. */
#include "kernel/ref/ref.h"

/* The largest magnitude of n values; infinity: one is not finite. */
static float most_of(const float *x, int n)
{
    float most = 0;
    for (int i = 0; i < n; i++) most = isfinite(x[i]) ? fmaxf(most, fabsf(x[i])) : INFINITY;
    return most;
}

/* Block `at` of y. A scale is top / 127 times 2^-j, with the largest j that leaves the block's values within 127. */
static void quant_block(const float *x, float top, int span, const qn_bytes *y, size_t at)
{
    const float most = most_of(x, 32);
    int j = 0;
    while (j < span && ldexpf(top, -(j + 1)) >= most) j++;
    const float inverse = top > 0 && isfinite(top) ? 127 / top * ldexpf(1, j) : 0;
    i32 sums[2] = { 0 };
    for (int i = 0; i < 32; i++) {
        /* 127 / top overflows for the tiniest top: infinity times x is clamped, times zero is zero */
        const float v = x[i] == 0 || !isfinite(top) ? 0 : fminf(fmaxf(x[i] * inverse, -127), 127);
        y->q[32 * at + (size_t)i] = (i8)lrintf(v); /* to even, as the vector instruction rounds */
        sums[i / 16] += y->q[32 * at + (size_t)i];
    }
    y->shift[at] = span - j;
    for (size_t h = 0; h < 2; h++) y->start16[2 * at + h] = -128 * sums[h];
    y->start[at] = -128 * (sums[0] + sums[1]);
}

void qn_quant_ref(const void *args, qn_lane lane)
{
    const qn_quant *a = args;
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++) {
        const float *x = a->x + (size_t)t * (size_t)a->d, top = most_of(x, a->d);
        const int span = top >= QN_BYTES_LEAST && isfinite(top) ? QN_SHIFTS : 0; /* units stay normal numbers */
        const qn_strand at = qn_bytes_row(a->n, t, a->d / 32);
        a->y.unit[t] = isfinite(top) ? ldexpf(top / 127, -span) : NAN;
        for (size_t b = 0; b < (size_t)a->d / 32; b++) quant_block(x + 32 * b, top, span, &a->y, at.first + b * at.step);
    }
}

qn_cost qn_quant_cost(const qn_args *args, int ctx)
{
    (void)ctx;
    const u64 values = (u64)args->quant.n * (u64)args->quant.d;
    return (qn_cost){ .bytes = 5 * values + values / 2, .flops = 3 * values };
}

const qn_args qn_quant_cases[] = {
    { .quant = { .n = 1, .d = 896 } }, { .quant = { .n = 7, .d = 32 } }, { .quant = { .n = 33, .d = 1536 } },
    { .quant = { .n = 12, .d = 608 } }, { 0 },
};
