/* test_ranking.c - places in an order against those that sorting finds. */
#include "engine/ranking.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"

enum { N = 3000 };
static float key[N], logits[N], weight[N];

static int by_key(const void *x, const void *y)
{
    const i32 a = *(const i32 *)x, b = *(const i32 *)y;
    return key[a] < key[b] ? -1 : key[a] > key[b] ? 1 : logits[a] > logits[b] ? -1 : logits[a] < logits[b] ? 1 : a - b;
}

static void make(u64 seed, double spread)
{
    for (int i = 0; i < N; i++) {
        logits[i] = (float)floor(qn_rng_unit(seed, (u64)i) * spread * 64) / 64; /* with ties */
        key[i] = (float)(spread - (double)logits[i]);
        weight[i] = i % 7 ? (float)exp(-(double)key[i]) : 0;
    }
}

static void as_sorting_finds_them(void **state)
{
    (void)state;
    qn_err e;
    qn_ranking r;
    i32 order[N];
    assert_true(qn_ranking_open(&r, N, &e));
    for (u64 seed = 0; seed < 20; seed++) {
        make(seed, seed % 2 ? 3 : 60);
        for (int i = 0; i < N; i++) order[i] = i;
        qsort(order, N, sizeof *order, by_key);
        qn_ranking_order(&r, key, logits);
        const double sum = qn_ranking_weigh(&r, weight, NULL), target = sum * qn_rng_unit(seed, N);
        double at = 0;
        int k = 0;
        for (; k < N && at < target; k++) at += (double)weight[order[k]];
        const qn_rank end = qn_ranking_reach(&r, weight, target, false, NULL);
        assert_int_equal(end.last, order[k - 1]);
        const double part = qn_ranking_weigh(&r, weight, &end);
        assert_true(fabs(part - at) < 1e-9 * sum);
        assert_int_equal(qn_ranking_reach(&r, weight, part * 2, true, &end).last, order[k - 1]); /* cannot be reached: the last */
        const qn_rank first = qn_ranking_reach(&r, weight, 0, true, &end);
        for (k = 0; !(weight[order[k]] > 0); k++) {}
        assert_int_equal(first.last, order[k]);
    }
    qn_ranking_close(&r);
}

static void nothing_to_rank(void **state)
{
    (void)state;
    qn_err e;
    qn_ranking r;
    assert_true(qn_ranking_open(&r, N, &e));
    for (int i = 0; i < N; i++) key[i] = logits[i] = weight[i] = NAN;
    qn_ranking_order(&r, key, logits);
    const double sum = qn_ranking_weigh(&r, weight, NULL);
    const qn_rank at = qn_ranking_reach(&r, weight, sum, true, NULL);
    assert_in_range(at.last, 0, N - 1);
    qn_ranking_close(&r);
    qn_ranking_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_sorting_finds_them), cmocka_unit_test(nothing_to_rank) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
