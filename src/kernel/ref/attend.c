/* ref/attend.c - attention over the pages of each row's sequence: reference, cost, cases.
 * Two passes in double: scores (with their maximum) are made again for the second, so that no memory grows with the context. */
#include "kernel/kvpage.h"
#include "kernel/ref/ref.h"

#define D_MOST QN_KV_HEAD_MOST

typedef struct head { const qn_attend *a; const float *q; int row, kv; } head;

/* The K of this head in the page with token t; its V is one part further */
static const u8 *page_of(const head *h, int t)
{
    const qn_attend *a = h->a;
    const int page = a->at->pages[a->at->first[h->row] + t / QN_PAGE];
    return a->cache + (size_t)page * a->page_stride + qn_kv_head_at(a->type, a->d_head, h->kv);
}

static double score(const head *h, int t)
{
    float k[D_MOST];
    qn_kv_get_k(h->a->type, page_of(h, t), t % QN_PAGE, k, h->a->d_head);
    double s = 0;
    for (int i = 0; i < h->a->d_head; i++) s += (double)h->q[i] * (double)k[i];
    return s * (double)h->a->scale;
}

static void one_head(const head *h, float *y)
{
    const qn_attend *a = h->a;
    const int last = a->at->pos[h->row], first = a->window ? qn_maxi(0, last - a->window + 1) : 0;
    double top = -INFINITY, sum = 0, acc[D_MOST] = { 0 };
    float v[D_MOST];
    for (int t = first; t <= last; t++) top = fmax(top, score(h, t));
    for (int t = first; t <= last; t++) {
        const double p = exp(score(h, t) - top);
        const u8 *values = page_of(h, t) + qn_kv_part_bytes(a->type, a->d_head);
        qn_dtypes[a->type].decode(values + (size_t)(t % QN_PAGE) * qn_dtype_bytes(a->type, (size_t)a->d_head), v,
                                  (size_t)a->d_head);
        for (int i = 0; i < a->d_head; i++) acc[i] += p * (double)v[i];
        sum += p;
    }
    for (int i = 0; i < a->d_head; i++) y[i] = (float)(acc[i] / sum);
}

void qn_attend_ref(const void *args, qn_lane lane)
{
    const qn_attend *a = args;
    const int heads = a->n * a->n_head;
    for (int i = lane_begin(heads, lane), end = lane_end(heads, lane); i < end; i++) {
        const size_t at = (size_t)i * (size_t)a->d_head;
        const head h = { .a = a, .q = a->q + at, .row = i / a->n_head, .kv = i % a->n_head / (a->n_head / a->n_kv) };
        one_head(&h, a->y + at);
    }
}

qn_cost qn_attend_cost(const qn_args *args, int ctx)
{
    const qn_attend *a = &args->attend;
    u64 seen = 0; /* tokens, summed over rows; bytes count the cache once for all rows */
    for (int t = 0; t < a->n; t++) seen += (u64)(a->window ? qn_mini(a->window, ctx + t + 1) : ctx + t + 1);
    const u64 held = (u64)(a->window ? qn_mini(a->window + a->n - 1, ctx + a->n) : ctx + a->n);
    return (qn_cost){ .bytes = 2 * held * qn_kv_row_bytes(a->type, a->n_kv, a->d_head) +
                               8 * (u64)a->n * (u64)a->n_head * (u64)a->d_head,
                      .flops = 4 * seen * (u64)a->n_head * (u64)a->d_head };
}

const qn_args qn_attend_cases[] = {
    { .attend = { .n = 1, .n_head = 4, .n_kv = 2, .d_head = 64 } },
    { .attend = { .n = 7, .n_head = 6, .n_kv = 2, .d_head = 32 } },
    { .attend = { .n = 5, .n_head = 3, .n_kv = 3, .d_head = 96, .window = 20 } },
    { .attend = { .n = 19, .n_head = 8, .n_kv = 1, .d_head = 128 } },
    { .attend = { .n = 3, .n_head = 4, .n_kv = 1, .d_head = 256, .window = 7 } },
    { .attend = { .n = 4, .n_head = 2, .n_kv = 2, .d_head = 18 } },
    { .attend = { .n = 80, .n_head = 7, .n_kv = 1, .d_head = 80 } },
    { .attend = { .n = 2, .n_head = 14, .n_kv = 2, .d_head = 64, .window = 300 } },
    { 0 },
};
