/* ref/pick.c - gathers the rows that ask for logits, so that the last norm and the output matrix see no others. */
#include "kernel/ref/ref.h"

#include <string.h>

void qn_pick_ref(const void *args, qn_lane lane)
{
    const qn_pick *a = args;
    const size_t d = (size_t)a->d;
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++)
        memcpy(a->y + (size_t)t * d, a->x + (size_t)a->rows[t] * d, d * sizeof *a->y);
}

qn_cost qn_pick_cost(const qn_args *args, int ctx)
{
    (void)ctx;
    return (qn_cost){ .bytes = 8 * (u64)args->pick.n * (u64)args->pick.d, .flops = 0 };
}

const qn_args qn_pick_cases[] = {
    { .pick = { .n = 1, .d = 896 } }, { .pick = { .n = 5, .d = 113 } }, { 0 },
};
