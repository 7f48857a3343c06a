/* norm.h - root mean square norms. The squares are added in double: no x overflows, and the sum is as good as exact. */
#ifndef QN_GENERIC_NORM_H
#define QN_GENERIC_NORM_H

#include <math.h>

#include "kernel/generic/vec.h"
#include "kernel/op.h"

#define HALF (LANES / 2)

static float inverse_rms(const float *x, int d, float eps)
{
    vd s[4] = { 0 }; /* four: an addition takes as long as four of them */
    int i = 0;
    for (; i + 4 * HALF <= d; i += 4 * HALF) {
        UNROLL for (int j = 0; j < 4; j++) {
            const vd v = load_d(x + i + j * HALF);
            s[j] += v * v;
        }
    }
    double ss = sum_d((s[0] + s[1]) + (s[2] + s[3]));
    for (; i < d; i++) ss += (double)x[i] * (double)x[i];
    return (float)(1 / sqrt(ss / d + (double)eps));
}

/* y may be x */
static void norm(float *y, const float *x, const float *w, int d, float eps)
{
    const float s = inverse_rms(x, d, eps);
    int i = 0;
    for (; i + LANES <= d; i += LANES) store(y + i, load(x + i) * splat(s) * load(w + i));
    for (; i < d; i++) y[i] = x[i] * s * w[i];
}

static void rmsnorm(const qn_rmsnorm *a, qn_lane lane)
{
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++) {
        const size_t at = (size_t)t * (size_t)a->d;
        norm(a->y + at, a->x + at, a->w, a->d, a->eps);
    }
}

/* A row stays in the first cache from the addition to the norm. y may be add. */
static void addnorm(const qn_addnorm *a, qn_lane lane)
{
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++) {
        const size_t at = (size_t)t * (size_t)a->d;
        float *x = a->x + at;
        const float *add = a->add + at;
        int i = 0;
        for (; i + LANES <= a->d; i += LANES) store(x + i, load(x + i) + load(add + i));
        for (; i < a->d; i++) x[i] += add[i];
        norm(a->y + at, x, a->w, a->d, a->eps);
    }
}

static void headnorm(const qn_headnorm *a, qn_lane lane)
{
    const int heads = a->n * a->n_head;
    for (int h = lane_begin(heads, lane), end = lane_end(heads, lane); h < end; h++) {
        float *x = a->x + (size_t)h * (size_t)a->d;
        norm(x, x, a->w, a->d, a->eps);
    }
}

#endif
