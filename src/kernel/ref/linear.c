/* ref/linear.c - matrix times rows, for any stored type: reference, cost, cases. Every other linear answers to this file.
 * Decodes a piece of a weight row, multiplies, adds in double; the piece bounds the stack, not the sum. */
#include "kernel/ref/ref.h"

#define PIECE 256 /* a multiple of every block */

static double dot_piece(const float *w, const float *x, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++) s += (double)w[i] * (double)x[i];
    return s;
}

void qn_linear_ref(const void *args, qn_lane lane)
{
    const qn_linear *a = args;
    const qn_dtype_info *t = &qn_dtypes[a->type];
    const size_t row_bytes = qn_dtype_bytes(a->type, (size_t)a->cols);
    float w[PIECE];
    for (int r = lane_begin(a->rows, lane), end = lane_end(a->rows, lane); r < end; r++) {
        const u8 *row = (const u8 *)a->w + (size_t)r * row_bytes;
        for (int i = 0; i < a->n; i++) {
            const float *x = a->x + (size_t)i * (size_t)a->cols;
            double s = a->bias ? (double)a->bias[r] : 0;
            for (int c = 0; c < a->cols; c += PIECE) {
                const int len = qn_mini(PIECE, a->cols - c);
                t->decode(row + qn_dtype_bytes(a->type, (size_t)c), w, (size_t)len);
                s += dot_piece(w, x + c, len);
            }
            a->y[(size_t)i * (size_t)a->rows + (size_t)r] = (float)s;
        }
    }
}

qn_cost qn_linear_cost(const qn_args *args, int ctx)
{
    (void)ctx;
    const qn_linear *a = &args->linear;
    const u64 n = (u64)a->n, rows = (u64)a->rows, cols = (u64)a->cols;
    return (qn_cost){ .bytes = rows * qn_dtype_bytes(a->type, (size_t)a->cols) + 4 * (n * (rows + cols) + (a->bias ? rows : 0)),
                      .flops = 2 * n * rows * cols };
}

/* cols that are no multiple of a type's block are left out for that type; more cols and rows than a kernel takes at a time */
const qn_args qn_linear_cases[] = {
    { .linear = { .n = 1, .rows = 37, .cols = 256 } },   { .linear = { .n = 3, .rows = 5, .cols = 512 } },
    { .linear = { .n = 7, .rows = 19, .cols = 768 } },   { .linear = { .n = 8, .rows = 64, .cols = 96 } },
    { .linear = { .n = 35, .rows = 33, .cols = 1024 } }, { .linear = { .n = 2, .rows = 9, .cols = 172 } },
    { .linear = { .n = 65, .rows = 6, .cols = 73 } },    { .linear = { .n = 5, .rows = 7, .cols = 2304 } },
    { .linear = { .n = 70, .rows = 3, .cols = 1280 } },  { .linear = { .n = 4, .rows = 3, .cols = 1124 } },
    { 0 },
};
