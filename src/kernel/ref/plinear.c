/* ref/plinear.c - floats times a matrix of floats in panels: reference, cost, cases. */
#include "kernel/fpanel.h"
#include "kernel/ref/ref.h"

void qn_plinear_ref(const void *args, qn_lane lane)
{
    const qn_plinear *a = args;
    const qn_dtype_info *t = &qn_dtypes[a->type];
    for (int r = lane_begin(a->rows, lane), end = lane_end(a->rows, lane); r < end; r++) {
        for (int i = 0; i < a->n; i++) {
            const float *x = a->x + (size_t)i * (size_t)a->cols;
            double s = a->bias ? (double)a->bias[r] : 0;
            for (int c = 0; c < a->cols; c++) {
                float w;
                t->decode(a->panels + qn_fpanel_at(a->cols, r, c) * t->block_bytes, &w, 1);
                s += (double)w * (double)x[c];
            }
            a->y[(size_t)i * (size_t)a->rows + (size_t)r] = (float)s;
        }
    }
}

qn_cost qn_plinear_cost(const qn_args *args, int ctx)
{
    (void)ctx;
    const qn_plinear *a = &args->plinear;
    const u64 n = (u64)a->n, rows = (u64)a->rows, cols = (u64)a->cols;
    return (qn_cost){ .bytes = qn_fpanel_bytes(a->type, a->rows, a->cols) + 4 * (n * (rows + cols) + (a->bias ? rows : 0)),
                      .flops = 2 * n * rows * cols };
}

const qn_args qn_plinear_cases[] = {
    { .plinear = { .n = 1, .rows = 137, .cols = 256 } },  { .plinear = { .n = 3, .rows = 5, .cols = 511 } },
    { .plinear = { .n = 7, .rows = 19, .cols = 73 } },    { .plinear = { .n = 8, .rows = 64, .cols = 96 } },
    { .plinear = { .n = 13, .rows = 32, .cols = 257 } },  { .plinear = { .n = 35, .rows = 49, .cols = 1024 } },
    { .plinear = { .n = 395, .rows = 3, .cols = 300 } },  { 0 },
};
