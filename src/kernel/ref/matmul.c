/* ref/matmul.c - plain matrix products: reference, cost, cases. Split over the columns of y: lanes never meet in a sum. */
#include "kernel/ref/ref.h"

static double element(const void *p, size_t i, qn_dtype type)
{
    float v;
    const size_t size = type == DT_f32 ? sizeof(float) : sizeof(u16);
    qn_dtypes[type].decode((const u8 *)p + i * size, &v, 1);
    return (double)v;
}

static float one(const qn_matmul *m, size_t batch, size_t i, size_t j)
{
    const size_t n = (size_t)m->n, cols = (size_t)m->cols, k = (size_t)m->k;
    double s = 0;
    for (size_t p = 0; p < k; p++)
        s += element(m->a, batch * n * k + (m->ta ? p * n + i : i * k + p), m->type) *
             element(m->b, batch * k * cols + (m->tb ? j * k + p : p * cols + j), m->type);
    /* where beta is 0, y is not read: NaN in it does not matter, as in BLAS */
    const double was = m->beta != 0 ? (double)m->beta * (double)m->y[(batch * n + i) * cols + j] : 0;
    return (float)((double)m->alpha * s + was + (m->bias ? (double)m->bias[j] : 0));
}

void qn_matmul_ref(const void *args, qn_lane lane)
{
    const qn_matmul *m = args;
    const size_t n = (size_t)m->n, cols = (size_t)m->cols;
    for (size_t b = 0; b < (size_t)m->batch; b++)
        for (int j = lane_begin(m->cols, lane), end = lane_end(m->cols, lane); j < end; j++)
            for (size_t i = 0; i < n; i++) m->y[(b * n + i) * cols + (size_t)j] = one(m, b, i, (size_t)j);
}

qn_cost qn_matmul_cost(const qn_args *args, int ctx)
{
    (void)ctx;
    const qn_matmul *m = &args->matmul;
    const u64 n = (u64)m->n, cols = (u64)m->cols, k = (u64)m->k, size = m->type == DT_f32 ? 4 : 2, batch = (u64)m->batch;
    const u64 y = 4 * n * cols * (m->beta != 0 ? 2 : 1);
    return (qn_cost){ .bytes = batch * (size * k * (n + cols) + y) + (m->biased ? 4 * cols : 0),
                      .flops = 2 * batch * n * cols * k };
}

#define CASE(n_, cols_, k_, batch_, ta_, tb_, alpha_, beta_, biased_) \
    { .matmul = { .n = n_, .cols = cols_, .k = k_, .batch = batch_, .ta = ta_, .tb = tb_, .alpha = alpha_, .beta = beta_, \
                  .biased = biased_ } }

const qn_args qn_matmul_cases[] = {
    CASE(1, 37, 256, 1, 0, 1, 1, 0, 0),    CASE(1, 64, 95, 3, 0, 0, 1, 0, 0),  CASE(1, 51, 64, 2, 0, 1, 0.5f, 0, 0),
    CASE(1, 130, 70, 1, 0, 0, 1, 0, 1),    CASE(13, 33, 300, 1, 0, 1, 1, 0, 0), CASE(25, 70, 31, 2, 1, 0, 1, 1, 0),
    CASE(14, 17, 520, 1, 1, 1, -2, 0.5f, 1), CASE(9, 96, 40, 1, 0, 0, 1, 0.25f, 0), CASE(3, 5, 1, 1, 0, 0, 1, 0, 0),
    { 0 },
};
