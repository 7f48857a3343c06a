/* move.h - values from one place and type to another: embedding rows out of their table, K and V into their pages. */
#ifndef QN_GENERIC_MOVE_H
#define QN_GENERIC_MOVE_H

#include "format/f16.h"
#include "kernel/generic/vec.h"
#include "kernel/op.h"

static void embed(const qn_embed *a, qn_lane lane, void (*decode)(const void *blocks, float *y, size_t n))
{
    const size_t row_bytes = qn_dtype_bytes(a->type, (size_t)a->d);
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++) {
        float *y = a->y + (size_t)t * (size_t)a->d;
        decode((const u8 *)a->table + (size_t)a->tokens[t] * row_bytes, y, (size_t)a->d);
        for (int i = 0; i < a->d; i++) y[i] *= a->scale;
    }
}

static void to_f16(const float *restrict x, qn_f16 *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i].v = qn_f32_f16(x[i]);
}

static void store_f16(const qn_store *a, qn_lane lane)
{
    const size_t values = (size_t)a->n_kv * (size_t)a->d_head, row_bytes = values * sizeof(qn_f16);
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++) {
        const int pos = a->at->pos[t], page = a->at->pages[a->at->first[t] + pos / QN_PAGE];
        u8 *k = a->cache + (size_t)page * a->page_stride + (size_t)(pos % QN_PAGE) * row_bytes;
        to_f16(a->k + (size_t)t * values, (qn_f16 *)(void *)k, values);
        to_f16(a->v + (size_t)t * values, (qn_f16 *)(void *)(k + QN_PAGE * row_bytes), values);
    }
}

#endif
