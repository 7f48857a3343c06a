/* ref/store.c - new rows of k and v into the cache pages, in the cache's type: reference, cost, cases. */
#include "kernel/kvpage.h"
#include "kernel/ref/ref.h"

void qn_store_ref(const void *args, qn_lane lane)
{
    const qn_store *a = args;
    const size_t d = (size_t)a->d_head, row_bytes = qn_dtype_bytes(a->type, d), part = qn_kv_part_bytes(a->type, a->d_head);
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++) {
        const int pos = a->at->pos[t], page = a->at->pages[a->at->first[t] + pos / QN_PAGE], at = pos % QN_PAGE;
        for (int h = 0; h < a->n_kv; h++) {
            const size_t from = ((size_t)t * (size_t)a->n_kv + (size_t)h) * d;
            u8 *k = a->cache + (size_t)page * a->page_stride + qn_kv_head_at(a->type, a->d_head, h);
            qn_kv_put_k(a->type, k, at, a->k + from, a->d_head);
            qn_dtypes[a->type].encode(a->v + from, k + part + (size_t)at * row_bytes, d);
        }
    }
}

qn_cost qn_store_cost(const qn_args *args, int ctx)
{
    (void)ctx;
    const qn_store *a = &args->store;
    const u64 n = (u64)a->n, values = (u64)a->n_kv * (u64)a->d_head;
    return (qn_cost){ .bytes = 2 * n * (4 * values + qn_kv_row_bytes(a->type, a->n_kv, a->d_head)), .flops = 0 };
}

const qn_args qn_store_cases[] = {
    { .store = { .n = 1, .n_kv = 2, .d_head = 64 } },
    { .store = { .n = 7, .n_kv = 1, .d_head = 96 } },
    { .store = { .n = 37, .n_kv = 3, .d_head = 32 } },
    { 0 },
};
