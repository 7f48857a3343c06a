/* ref/qlinear.c - bytes times a matrix in panels: reference, cost, cases. Every other qlinear answers to this file. */
#include "kernel/panel.h"
#include "kernel/ref/ref.h"

/* The packed row is decoded once and used for every row of x; the stack is bounded by pieces. */
#define PIECE 8192

static double dot(const qn_qlinear *a, int t, const float *w, int c, int len)
{
    const qn_strand row = qn_bytes_row(a->n, t, a->cols / 32);
    double s = 0;
    for (int i = 0; i < len; i++) {
        const size_t at = row.first + (size_t)((c + i) / 32) * row.step;
        s += (double)w[i] * ldexp((double)a->x.q[32 * at + (size_t)(c + i) % 32], a->x.shift[at]);
    }
    return s * (double)a->x.unit[t];
}

void qn_qlinear_ref(const void *args, qn_lane lane)
{
    const qn_qlinear *a = args;
    float w[PIECE];
    for (int r = lane_begin(a->rows, lane), end = lane_end(a->rows, lane); r < end; r++) {
        for (int t = 0; t < a->n; t++) {
            double s = a->bias ? (double)a->bias[r] : 0;
            for (int c = 0; c < a->cols; c += PIECE) {
                const int len = qn_mini(PIECE, a->cols - c);
                qn_panel_part(a->type, a->panels, a->cols, r, c, len, w);
                s += dot(a, t, w, c, len);
            }
            a->y[(size_t)t * (size_t)a->rows + (size_t)r] = (float)s;
        }
    }
}

qn_cost qn_qlinear_cost(const qn_args *args, int ctx)
{
    (void)ctx;
    const qn_qlinear *a = &args->qlinear;
    const u64 n = (u64)a->n, rows = (u64)a->rows, cols = (u64)a->cols;
    const u64 weights = qn_panel_bytes(a->type, a->rows, a->cols), bias = a->bias ? 4 * rows : 0;
    return (qn_cost){ .bytes = weights + n * (4 * rows + cols + cols / 2) + bias, .flops = 2 * n * rows * cols };
}

const qn_args qn_qlinear_cases[] = {
    { .qlinear = { .n = 1, .rows = 37, .cols = 256 } },  { .qlinear = { .n = 3, .rows = 5, .cols = 512 } },
    { .qlinear = { .n = 7, .rows = 19, .cols = 768 } },  { .qlinear = { .n = 8, .rows = 64, .cols = 96 } },
    { .qlinear = { .n = 12, .rows = 32, .cols = 256 } }, { .qlinear = { .n = 35, .rows = 33, .cols = 1024 } },
    { .qlinear = { .n = 149, .rows = 3, .cols = 1280 } }, { .qlinear = { .n = 13, .rows = 40, .cols = 2304 } },
    { .qlinear = { .n = 2, .rows = 48, .cols = 512 } },  { .qlinear = { .n = 5, .rows = 21, .cols = 768 } },
    { .qlinear = { .n = 10, .rows = 40, .cols = 512 } }, { 0 },
};
