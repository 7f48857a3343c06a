/* ranking.c - keys fall into ranges of equal width, whose weights are added up in one walk over the tokens; only the
 * tokens of the range in which the target lies are put in order. 151,936 tokens of a flat distribution make ranges of
 * a few hundred. */
#include "engine/ranking.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RANGES 4096
#define PER_UNIT 128 /* a unit is a factor of e: what is in the last range, 32 units away, has 1e-14 of the largest weight */

bool qn_ranking_open(qn_ranking *r, int n, qn_err *e)
{
    *r = (qn_ranking){ .n = n };
    r->range = qn_new_array((size_t)n, sizeof *r->range, e);
    r->mass = r->range ? qn_new_array(RANGES, sizeof *r->mass, e) : NULL;
    r->near = r->mass ? qn_new_array((size_t)n, sizeof *r->near, e) : NULL;
    return r->near != NULL;
}

void qn_ranking_close(qn_ranking *r)
{
    qn_free(r->range);
    qn_free(r->mass);
    qn_free(r->near);
    *r = (qn_ranking){ 0 };
}

void qn_ranking_order(qn_ranking *r, const float *key, const float *logits)
{
    r->key = key;
    r->logits = logits;
    for (int i = 0; i < r->n; i++) {
        const float at = key[i] * PER_UNIT;
        r->range[i] = (u16)(at < RANGES - 1 ? (i32)at : RANGES - 1); /* NaN is not less */
    }
}

static int in_order(const void *x, const void *y, void *ranking)
{
    const qn_ranking *r = ranking;
    const i32 a = *(const i32 *)x, b = *(const i32 *)y;
    if (r->key[a] != r->key[b]) return r->key[a] < r->key[b] ? -1 : 1;
    if (r->logits[a] != r->logits[b]) return r->logits[a] > r->logits[b] ? -1 : 1;
    return a < b ? -1 : a > b;
}

#define RUN 64 /* tokens that are passed over by one question */

static void look_at(qn_ranking *r, int range)
{
    r->n_near = 0;
    for (int i = 0; i < r->n; i += RUN) {
        const int end = qn_mini(r->n, i + RUN);
        int any = 0;
        for (int j = i; j < end; j++) any |= r->range[j] == range;
        for (int j = i; any && j < end; j++)
            if (r->range[j] == range) r->near[r->n_near++] = j;
    }
    qsort_r(r->near, (size_t)r->n_near, sizeof *r->near, in_order, r);
}

double qn_ranking_weigh(qn_ranking *r, const float *weight, const qn_rank *end)
{
    double sum = 0;
    memset(r->mass, 0, RANGES * sizeof *r->mass);
    for (int i = 0; i < r->n; i++) r->mass[r->range[i]] += (double)weight[i];
    if (end) {
        look_at(r, end->range);
        r->mass[end->range] = 0;
        for (int k = 0; k < end->tokens; k++) r->mass[end->range] += (double)weight[r->near[k]];
    }
    for (int b = 0; b < RANGES && (!end || b <= end->range); b++) sum += r->mass[b];
    return sum;
}

static bool reached(double sum, double target, bool beyond) { return beyond ? sum > target : sum >= target; }

qn_rank qn_ranking_reach(qn_ranking *r, const float *weight, double target, bool beyond, const qn_rank *end)
{
    const int n = end ? end->range + 1 : RANGES;
    double sum = 0;
    int range = 0, last = 0;
    for (; range < n && !(r->mass[range] > 0 && reached(sum + r->mass[range], target, beyond)); range++) {
        sum += r->mass[range];
        if (r->mass[range] > 0) last = range;
    }
    range = range < n ? range : last;
    look_at(r, range);
    qn_rank at = { .range = range };
    const int most = end && range == end->range ? end->tokens : r->n_near;
    for (int k = 0; k < most; k++) {
        const float w = weight[r->near[k]];
        if (!(w > 0) && at.tokens > 0) continue; /* it may be no place to stop at */
        at = (qn_rank){ range, k + 1, r->near[k] };
        sum += (double)w;
        if (reached(sum, target, beyond)) break;
    }
    return at;
}
