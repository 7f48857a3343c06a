/* ref/blinear.c - bf16 times a matrix in panels: reference, cost, cases. */
#include "base/half.h"
#include "kernel/panel.h"
#include "kernel/ref/ref.h"

#define PIECE 8192

void qn_blinear_ref(const void *args, qn_lane lane)
{
    const qn_blinear *a = args;
    float w[PIECE];
    for (int r = lane_begin(a->rows, lane), end = lane_end(a->rows, lane); r < end; r++) {
        for (int t = 0; t < a->n; t++) {
            const u16 *x = a->x + (size_t)t * (size_t)a->cols;
            double s = a->bias ? (double)a->bias[r] : 0;
            for (int c = 0; c < a->cols; c += PIECE) {
                const int len = qn_mini(PIECE, a->cols - c);
                qn_panel_part(a->type, a->panels, a->cols, r, c, len, w);
                for (int i = 0; i < len; i++) s += (double)w[i] * (double)qn_bf16_f32(x[c + i]);
            }
            a->y[(size_t)t * (size_t)a->rows + (size_t)r] = (float)s;
        }
    }
}

qn_cost qn_blinear_cost(const qn_args *args, int ctx)
{
    (void)ctx;
    const qn_blinear *a = &args->blinear;
    const u64 n = (u64)a->n, rows = (u64)a->rows, cols = (u64)a->cols;
    const u64 weights = qn_panel_bytes(a->type, a->rows, a->cols), bias = a->bias ? 4 * rows : 0;
    return (qn_cost){ .bytes = weights + n * (4 * rows + 2 * cols) + bias, .flops = 2 * n * rows * cols };
}

const qn_args qn_blinear_cases[] = {
    { .blinear = { .n = 1, .rows = 37, .cols = 256 } },  { .blinear = { .n = 3, .rows = 5, .cols = 512 } },
    { .blinear = { .n = 7, .rows = 19, .cols = 768 } },  { .blinear = { .n = 8, .rows = 64, .cols = 96 } },
    { .blinear = { .n = 12, .rows = 32, .cols = 256 } }, { .blinear = { .n = 35, .rows = 33, .cols = 1024 } },
    { .blinear = { .n = 149, .rows = 3, .cols = 1280 } }, { .blinear = { .n = 13, .rows = 105, .cols = 1280 } }, { 0 },
};
