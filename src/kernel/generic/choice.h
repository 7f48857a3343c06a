/* choice.h - what a sampler runs over a vocabulary: softmax and the k best. Rows are shared among lanes, never cut: one row of
 * 151,936 values is 25 us of reading.
 *
 * softmax `gen` goes over a row three times: the largest, the weights and their sum, the division. `part` takes PART values at a
 * time through the first two with the largest seen so far, and mends all parts in the last: x is read once.
 * best keeps a heap whose top is the worst of the k; a vector in which nothing beats it is passed over by one comparison (`gen`:
 * a vector at a time, `wide`: four). */
#ifndef QN_GENERIC_CHOICE_H
#define QN_GENERIC_CHOICE_H

#include <math.h>

#include "kernel/generic/vexp.h"
#include "kernel/op.h"

#define PART (64 * LANES)   /* values whose weights are added as floats: 16 to a sum, so that rounding stays below 4 eps */
#define PARTS_MOST 2048     /* of a row that `part` takes; longer ones go the other way */

/* ---- softmax */

static float top_of(const float *x, int n)
{
    vf m = splat(-INFINITY);
    int i = 0;
    for (; i + LANES <= n; i += LANES) m = vmax(m, load(x + i));
    float most = top(m);
    for (; i < n; i++) most = x[i] > most ? x[i] : most;
    return most;
}

/* y = e^(scale (x - most)) for up to PART values; their sum */
static double weigh(float *y, const float *x, int n, float most, float scale)
{
    vf s[4] = { 0 };
    int i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        UNROLL for (int j = 0; j < 4; j++) {
            const vf w = vexp_below((load(x + i + j * LANES) - splat(most)) * splat(scale));
            store(y + i + j * LANES, w);
            s[j] += w;
        }
    for (int j = 0; i < n; i += LANES, j++) {
        const int rest = qn_mini(LANES, n - i);
        store_first(y + i, vexp_below((load_first(x + i, rest) - splat(most)) * splat(scale)), rest);
        s[j] += load_first(y + i, rest);
    }
    return (double)sum((s[0] + s[1]) + (s[2] + s[3]));
}

static void times(float *y, int n, float by)
{
    int i = 0;
    for (; i + LANES <= n; i += LANES) store(y + i, load(y + i) * splat(by));
    for (; i < n; i++) y[i] *= by;
}

static double softmax_whole(float *y, const float *x, int d, float scale)
{
    const float most = top_of(x, d);
    double sum = 0;
    for (int i = 0; i < d; i += PART) sum += weigh(y + i, x + i, qn_mini(PART, d - i), most, scale);
    times(y, d, (float)(1 / sum));
    return (double)scale * (double)most + log(sum);
}

static double softmax_parts(float *y, const float *x, int d, float scale)
{
    float tops[PARTS_MOST], most = -INFINITY;
    double sum = 0;
    for (int i = 0, p = 0; i < d; i += PART, p++) {
        const int n = qn_mini(PART, d - i);
        const float here = top_of(x + i, n), was = most;
        most = here > most ? here : most;
        if (most > was && sum > 0) sum *= exp((double)scale * ((double)was - (double)most));
        tops[p] = most;
        sum += weigh(y + i, x + i, n, most, scale);
    }
    for (int i = 0, p = 0; i < d; i += PART, p++) {
        const double by = tops[p] == most ? 1 : exp((double)scale * ((double)tops[p] - (double)most));
        times(y + i, qn_mini(PART, d - i), (float)(by / sum));
    }
    return (double)scale * (double)most + log(sum);
}

static void softmax(const qn_softmax *a, qn_lane lane, const bool parts)
{
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++) {
        const size_t at = (size_t)t * (size_t)a->d;
        const bool in_parts = parts && a->d <= PART * PARTS_MOST;
        const double sum = (in_parts ? softmax_parts : softmax_whole)(a->y + at, a->x + at, a->d, a->scale);
        if (a->log_sum) a->log_sum[t] = (float)sum;
    }
}

/* ---- best */

#if LANES == 16
INLINE bool above(vf v, vf t) { return _mm512_cmp_ps_mask((__m512)v, (__m512)t, _CMP_GT_OQ) != 0; }
#elif LANES == 8
INLINE bool above(vf v, vf t) { return _mm256_movemask_ps(_mm256_cmp_ps((__m256)v, (__m256)t, _CMP_GT_OQ)) != 0; }
#else
INLINE bool above(vf v, vf t)
{
    const vi m = v > t;
    return (m[0] | m[1] | m[2] | m[3]) != 0;
}
#endif

typedef struct heap { float *v; i32 *id; int n; } heap; /* the worst is first */

INLINE bool worse(const heap *h, int a, int b) { return h->v[a] < h->v[b] || (h->v[a] == h->v[b] && h->id[a] > h->id[b]); }

static void sink(const heap *h, int n, int i)
{
    for (int child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && worse(h, child + 1, child)) child++;
        if (!worse(h, child, i)) return;
        const float v = h->v[i];
        const i32 id = h->id[i];
        h->v[i] = h->v[child], h->id[i] = h->id[child];
        h->v[child] = v, h->id[child] = id;
    }
}

static void offer(const heap *h, const float *x, int from, int n)
{
    for (int i = from; i < from + n; i++) {
        if (!(x[i] > h->v[0])) continue;
        h->v[0] = x[i];
        h->id[0] = i;
        sink(h, h->n, 0);
    }
}

static void best_of(const float *x, int d, const heap *h, const int across)
{
    int i = 0;
    for (; i < h->n; i++) h->v[i] = isnan(x[i]) ? -INFINITY : x[i], h->id[i] = i;
    for (int j = h->n / 2 - 1; j >= 0; j--) sink(h, h->n, j);
    for (; i + across * LANES <= d; i += across * LANES) {
        vf v = load(x + i);
        for (int k = 1; k < across; k++) v = vmax(load(x + i + k * LANES), v);
        if (!above(v, splat(h->v[0]))) continue;
        for (int k = 0; k < across; k++)
            if (across == 1 || above(load(x + i + k * LANES), splat(h->v[0]))) offer(h, x, i + k * LANES, LANES);
    }
    offer(h, x, i, d - i);
    for (int n = h->n - 1; n > 0; n--) { /* the worst goes to the end, again and again */
        const float v = h->v[0];
        const i32 id = h->id[0];
        h->v[0] = h->v[n], h->id[0] = h->id[n];
        h->v[n] = v, h->id[n] = id;
        sink(h, n, 0);
    }
}

static void best(const qn_best *a, qn_lane lane, const int across)
{
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++) {
        const size_t to = (size_t)t * (size_t)a->k;
        const heap h = { a->v + to, a->id + to, qn_mini(a->k, a->d) };
        best_of(a->x + (size_t)t * (size_t)a->d, a->d, &h, across);
    }
}

#endif
