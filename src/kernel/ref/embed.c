/* ref/embed.c - embedding look-up: reference, cost, cases. Every other embed answers to this file. */
#include "kernel/panel.h"
#include "kernel/ref/ref.h"

void qn_embed_ref(const void *args, qn_lane lane)
{
    const qn_embed *a = args;
    const size_t row_bytes = qn_dtype_bytes(a->type, (size_t)a->d);
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++) {
        float *y = a->y + (size_t)t * (size_t)a->d;
        if (a->packed) qn_panel_part(a->type, a->table, a->d, a->tokens[t], 0, a->d, y);
        else qn_dtypes[a->type].decode((const u8 *)a->table + (size_t)a->tokens[t] * row_bytes, y, (size_t)a->d);
        for (int i = 0; i < a->d; i++) y[i] *= a->scale;
    }
}

qn_cost qn_embed_cost(const qn_args *args, int ctx)
{
    (void)ctx;
    const qn_embed *a = &args->embed;
    const u64 n = (u64)a->n, d = (u64)a->d;
    return (qn_cost){ .bytes = n * (qn_dtype_bytes(a->type, (size_t)a->d) + 4 * d), .flops = n * d };
}

const qn_args qn_embed_cases[] = {
    { .embed = { .n = 1, .d = 256 } }, { .embed = { .n = 7, .d = 768 } }, { .embed = { .n = 33, .d = 1024 } },
    { .embed = { .n = 5, .d = 512, .packed = true } }, { 0 },
};
