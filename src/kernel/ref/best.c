/* ref/best.c - the k largest of a row and where they are, largest first: what a sampler draws from. A tie goes to the lower
 * index; what is no number counts as the least there is. Reference, cost, cases. */
#include "kernel/ref/ref.h"

/* Puts v where it belongs among the n that are there, at most k; later ones stand behind their equals. */
static int insert(float *v, i32 *id, int n, int k, float x, i32 at)
{
    int i = n;
    while (i > 0 && x > v[i - 1]) i--;
    if (i == k) return n;
    for (int j = n < k ? n : k - 1; j > i; j--) v[j] = v[j - 1], id[j] = id[j - 1];
    v[i] = x;
    id[i] = at;
    return n < k ? n + 1 : k;
}

void qn_best_ref(const void *args, qn_lane lane)
{
    const qn_best *a = args;
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++) {
        const float *x = a->x + (size_t)t * (size_t)a->d;
        const size_t to = (size_t)t * (size_t)a->k;
        int n = 0;
        for (int i = 0; i < a->d; i++) n = insert(a->v + to, a->id + to, n, a->k, isnan(x[i]) ? -INFINITY : x[i], i);
    }
}

qn_cost qn_best_cost(const qn_args *args, int ctx)
{
    (void)ctx;
    const u64 n = (u64)args->best.n;
    return (qn_cost){ .bytes = 4 * n * (u64)args->best.d + 8 * n * (u64)args->best.k, .flops = n * (u64)args->best.d };
}

const qn_args qn_best_cases[] = {
    { .best = { .n = 1, .d = 5000, .k = 40 } }, { .best = { .n = 5, .d = 173, .k = 1 } },
    { .best = { .n = 2, .d = 64, .k = 64 } },   { .best = { .n = 3, .d = 1153, .k = 7 } },
    { .best = { .n = 2, .d = 3, .k = 5 } },     { 0 },
};
