/* ref/rope.c - rotary position: reference, cost, cases. Angles are made in double: at position 100,000 a float angle is off
 * by 0.004. */
#include "kernel/ref/ref.h"

static void rotate(const qn_rope *a, float *head, int pos)
{
    const int half = a->d_rot / 2;
    for (int i = 0; i < half; i++) {
        const double angle = (double)pos * (double)a->freq[i];
        const double c = cos(angle) * (double)a->mscale, s = sin(angle) * (double)a->mscale;
        float *x = head + (a->neox ? i : 2 * i), *y = a->neox ? x + half : x + 1;
        const double x0 = (double)*x, y0 = (double)*y;
        *x = (float)(x0 * c - y0 * s);
        *y = (float)(x0 * s + y0 * c);
    }
}

void qn_rope_ref(const void *args, qn_lane lane)
{
    const qn_rope *a = args;
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++) {
        for (int h = 0; h < a->n_head; h++)
            rotate(a, a->q + ((size_t)t * (size_t)a->n_head + (size_t)h) * (size_t)a->d_head, a->pos[t]);
        for (int h = 0; h < a->n_kv; h++)
            rotate(a, a->k + ((size_t)t * (size_t)a->n_kv + (size_t)h) * (size_t)a->d_head, a->pos[t]);
    }
}

qn_cost qn_rope_cost(const qn_args *args, int ctx)
{
    (void)ctx;
    const qn_rope *a = &args->rope;
    const u64 values = (u64)a->n * (u64)(a->n_head + a->n_kv) * (u64)a->d_rot;
    return (qn_cost){ .bytes = 8 * values, .flops = 3 * values };
}

const qn_args qn_rope_cases[] = {
    { .rope = { .n = 1, .n_head = 4, .n_kv = 2, .d_head = 64, .d_rot = 64, .neox = true } },
    { .rope = { .n = 7, .n_head = 6, .n_kv = 2, .d_head = 80, .d_rot = 80, .neox = false } },
    { .rope = { .n = 33, .n_head = 3, .n_kv = 1, .d_head = 48, .d_rot = 20, .neox = true } },
    { .rope = { .n = 5, .n_head = 3, .n_kv = 3, .d_head = 18, .d_rot = 10, .neox = false } },
    { 0 },
};
