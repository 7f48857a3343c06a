/* ahead.h - weights that come next, asked for while those at hand are multiplied by several rows. A product of a few rows reads
 * for some microseconds and then computes for some; asked for piece by piece on the way, the next weights are in the second cache
 * when their turn comes, and memory never rests. Asking for what is not there does no harm. */
#ifndef QN_AHEAD_H
#define QN_AHEAD_H

#include "base/types.h"

typedef struct qn_ahead {
    const u8 *at;       /* NULL: nothing comes next */
    int n;              /* panels (of bf16: twins) side by side, of each as much */
    size_t stride;      /* from one to the next */
    size_t done, due;   /* asked for and to be asked for by now, in 1/256 of a byte */
    size_t each;        /* for each unit of work, likewise */
} qn_ahead;

/* bytes of each of n panels or twins from `at` on, while `work` units of work are done. */
static inline qn_ahead qn_ahead_of(const u8 *at, size_t bytes, int n, size_t stride, size_t work)
{
    return (qn_ahead){ .at = at, .n = n, .stride = stride, .each = at ? (bytes << 8) / work : 0 };
}

static inline __attribute__((always_inline)) void qn_ahead_fetch(qn_ahead *f, int work)
{
    for (f->due += (size_t)work * f->each; f->done < f->due; f->done += 64 << 8)
        for (int i = 0; i < f->n; i++) __builtin_prefetch(f->at + (size_t)i * f->stride + (f->done >> 8), 0, 2);
}

#endif
