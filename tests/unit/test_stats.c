/* test_stats.c - order statistics against values worked out by hand, and the interval of ratios of paired samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include <math.h>

#include "base/rng.h"
#include "base/stats.h"

static void near(double got, double want) { assert_true(fabs(got - want) <= 1e-12 * (1 + fabs(want))); }

static void by_hand(void **state)
{
    double x[] = { 4, 1, 3, 2, 10 };
    qn_stats s;
    (void)state;
    qn_stats_of(x, 5, &s);
    assert_int_equal(s.n, 5);
    near(s.min, 1);
    near(s.max, 10);
    near(s.mean, 4);
    near(s.sd, sqrt(50.0 / 4));
    near(s.p50, 3);
    near(s.lo, 1); /* five samples: the interval is all of them, 93.75 % */
    near(s.hi, 10);
    qn_stats_of(x, 0, &s);
    assert_true(s.n == 0 && s.p50 == 0 && s.sd == 0);
    qn_stats_of(x, 1, &s);
    assert_true(s.p50 == 1 && s.lo == 1 && s.hi == 1 && s.sd == 0);
}

static void interval_covers(void **state) /* the median of uniform numbers is 0.5: about 95 of 100 intervals must hold it */
{
    int held = 0;
    (void)state;
    for (u64 round = 0; round < 400; round++) {
        double x[25];
        qn_stats s;
        for (u64 i = 0; i < 25; i++) x[i] = qn_rng_unit(7, round * 25 + i);
        qn_stats_of(x, 25, &s);
        held += s.lo <= 0.5 && 0.5 <= s.hi;
    }
    assert_true(held >= 372 && held < 400);
}

static void paired_ratios(void **state)
{
    const double ours[] = { 20, 2, 30, 8, 10 }, theirs[] = { 10, 1, 10, 4, 5 }; /* a machine that changes tenfold */
    double room[5];
    qn_stats r;
    (void)state;
    qn_stats_ratio(ours, theirs, 5, room, &r);
    near(r.p50, 2);
    near(r.lo, 2);
    near(r.hi, 3);
    near(ours[1], 2); /* left as they were */
    const double dead[] = { 10, 0, -1, 4, 5 };
    qn_stats_ratio(ours, dead, 5, room, &r);
    assert_int_equal(r.n, 3);
    near(r.p50, 2);
    qn_stats_ratio(ours, theirs, 0, room, &r);
    assert_int_equal(r.n, 0);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Ranks without sorting are those of sorting, whatever the order of the values: random, few different ones, rising, falling, a
 * saw, and one made against pivots from the middle. */
static void like_sorting(void **state)
{
    enum { MOST = 5000 };
    static double x[MOST], sorted[MOST];
    (void)state;
    for (u64 round = 0; round < 600; round++) {
        const size_t n = round < 60 ? (size_t)round + 1 : 100 + (size_t)(qn_rng_at(3, round) % (MOST - 100));
        for (u64 i = 0; i < n; i++)
            switch (round % 6) {
            case 0: x[i] = qn_rng_unit(5, round * MOST + i) - 0.5; break;
            case 1: x[i] = (double)(qn_rng_at(5, round * MOST + i) % 4); break;
            case 2: x[i] = (double)i; break;
            case 3: x[i] = -(double)i; break;
            case 4: x[i] = (double)(i % 37); break;
            default: x[i] = (double)(i < n / 2 ? 2 * i : 2 * (n - i) - 1); break;
            }
        for (size_t i = 0; i < n; i++) sorted[i] = x[i];
        qsort(sorted, n, sizeof *sorted, ascending);
        qn_stats s;
        qn_stats_of(x, n, &s);
        const double at = 0.95 * (double)(n - 1), part = at - floor(at), a = sorted[(size_t)at];
        near(s.p95, part > 0 ? a + part * (sorted[(size_t)at + 1] - a) : a);
        near(s.p50, (sorted[(n - 1) / 2] + sorted[n / 2]) / 2);
        near(qn_median_of(x, n), s.p50);
        assert_true(s.min == sorted[0] && s.max == sorted[n - 1] && s.lo <= s.p50 && s.p50 <= s.hi);
        qsort(x, n, sizeof *x, ascending); /* nothing lost, nothing twice */
        for (size_t i = 0; i < n; i++) assert_true(x[i] == sorted[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(by_hand), cmocka_unit_test(interval_covers), cmocka_unit_test(like_sorting),
                                        cmocka_unit_test(paired_ratios) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
