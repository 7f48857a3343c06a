/* test_sampler.c - every rule by itself on small distributions whose answer can be worked out by hand, and the selection
 * against a full sort. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "engine/sampler.h"

#define N 8

static const qn_sampling plain = { .temp = 1, .top_p = 1, .typical_p = 1, .repeat_penalty = 1 };

/* logits whose softmax is p */
static void logits_of(const float *p, float *out)
{
    for (int i = 0; i < N; i++) out[i] = logf(p[i]) + 3; /* softmax does not mind a constant */
}

static const float probs[N] = { 0.05f, 0.40f, 0.02f, 0.25f, 0.15f, 0.08f, 0.04f, 0.01f };

/* Which tokens come up in many draws, and how often. */
static void tally(const qn_sampling *p, const float *logits, const i32 *history, size_t n_history, int counts[N])
{
    qn_sampler s;
    qn_err e;
    assert_true(qn_sampler_open(&s, N, qn_cpu_isa(), NULL, &e));
    assert_true(qn_sampling_check(p, N, &e));
    memset(counts, 0, N * sizeof *counts);
    for (u64 i = 0; i < 20000; i++) counts[qn_sampler_draw(&s, logits, p, history, n_history, i, NULL)]++;
    qn_sampler_close(&s);
}

static void only(const int counts[N], const char *allowed)
{
    for (int i = 0; i < N; i++) {
        if (allowed[i] == '1') assert_true(counts[i] > 0);
        else assert_int_equal(counts[i], 0);
    }
}

static void plain_follows_the_distribution(void **state)
{
    (void)state;
    float l[N];
    int c[N];
    logits_of(probs, l);
    tally(&plain, l, NULL, 0, c);
    for (int i = 0; i < N; i++) assert_true(fabs(c[i] / 20000.0 - (double)probs[i]) < 0.012);
}

static void temperature(void **state)
{
    (void)state;
    float l[N];
    int c[N];
    logits_of(probs, l);
    qn_sampling p = plain;
    p.temp = 0.5f; /* squares the probabilities */
    tally(&p, l, NULL, 0, c);
    double sum = 0;
    for (int i = 0; i < N; i++) sum += (double)(probs[i] * probs[i]);
    for (int i = 0; i < N; i++) assert_true(fabs(c[i] / 20000.0 - (double)(probs[i] * probs[i]) / sum) < 0.012);
    p.temp = 0;
    tally(&p, l, NULL, 0, c);
    assert_int_equal(c[1], 20000);
}

static void truncation(void **state)
{
    (void)state;
    float l[N];
    int c[N];
    logits_of(probs, l);
    qn_sampling p = plain;
    p.top_k = 3;
    tally(&p, l, NULL, 0, c);
    only(c, "01011000");
    p = plain;
    p.top_p = 0.79f; /* 0.40 + 0.25 = 0.65; + 0.15 = 0.80 */
    tally(&p, l, NULL, 0, c);
    only(c, "01011000");
    p.top_p = 0;
    tally(&p, l, NULL, 0, c);
    only(c, "01000000");
    p = plain;
    p.min_p = 0.19f; /* of 0.40: 0.076 */
    tally(&p, l, NULL, 0, c);
    only(c, "01011100");
    p = plain;
    p.top_k = 3;     /* among the three: 0.5, 0.3125, 0.1875 */
    p.top_p = 0.8f;
    tally(&p, l, NULL, 0, c);
    only(c, "01010000");
}

static void typical(void **state)
{
    (void)state;
    /* entropy of these is 1.61 nats: 0.15 (1.90) and 0.25 (1.39) are nearest, then 0.40 (0.92) and 0.08 (2.53) */
    float l[N];
    int c[N];
    logits_of(probs, l);
    qn_sampling p = plain;
    p.typical_p = 0.39f;
    tally(&p, l, NULL, 0, c);
    only(c, "00011000");
    p.typical_p = 0.41f;
    tally(&p, l, NULL, 0, c);
    only(c, "01011000");
}

static void penalties_and_bias(void **state)
{
    (void)state;
    const float l[N] = { 2, 1.9f, -1, -1, -1, -1, -1, -1 };
    const i32 history[] = { 5, 0, 0, 0 };
    int c[N];
    qn_sampling p = plain;
    p.temp = 0;
    p.repeat_last_n = 64;
    tally(&p, l, history, 4, c);
    assert_int_equal(c[0], 20000);
    p.repeat_penalty = 1.2f; /* 2 / 1.2 < 1.9 */
    tally(&p, l, history, 4, c);
    assert_int_equal(c[1], 20000);
    p.repeat_penalty = 1;
    p.frequency_penalty = 0.04f; /* three times: 0.12 */
    tally(&p, l, history, 4, c);
    assert_int_equal(c[1], 20000);
    p.frequency_penalty = 0.03f; /* 0.09 */
    tally(&p, l, history, 4, c);
    assert_int_equal(c[0], 20000);
    p.presence_penalty = 0.02f;
    tally(&p, l, history, 4, c);
    assert_int_equal(c[1], 20000);
    p.repeat_last_n = 0;
    tally(&p, l, history, 4, c);
    assert_int_equal(c[0], 20000);
    const qn_bias bias[] = { { 7, 3.5f }, { 0, -INFINITY } };
    p.bias = bias;
    p.n_bias = 2;
    tally(&p, l, history, 4, c);
    assert_int_equal(c[7], 20000);
}

/* Without top-k the best few are looked at first; the result must be that of looking at all. */
static void few_or_all_make_no_difference(void **state)
{
    (void)state;
    enum { V = 5000 };
    static float l[V];
    qn_sampler s;
    qn_err e;
    assert_true(qn_sampler_open(&s, V, qn_cpu_isa(), NULL, &e));
    for (u64 k = 0; k < 30; k++) {
        for (int i = 0; i < V; i++) l[i] = (float)(qn_rng_unit(k, (u64)i) * (double)(k + 1)); /* flat ones need many */
        for (int rule = 1; rule < 8; rule++) {
            qn_sampling p = plain;
            if (rule & 1) p.top_p = 0.9f;
            if (rule & 2) p.min_p = 0.1f;
            if (rule & 4) p.typical_p = 0.8f;
            p.temp = 0.7f;
            const i32 a = qn_sampler_draw(&s, l, &p, NULL, 0, k, NULL);
            p.top_k = V;
            assert_int_equal(qn_sampler_draw(&s, l, &p, NULL, 0, k, NULL), a);
        }
    }
    qn_sampler_close(&s);
}

static int best_first(const void *x, const void *y, void *logits)
{
    const float *l = logits;
    const i32 a = *(const i32 *)x, b = *(const i32 *)y;
    return l[a] != l[b] ? (l[a] > l[b] ? -1 : 1) : a < b ? -1 : a > b;
}

/* Where the best are all that is known, as on a device, the same token is drawn as from all. */
static void the_best_are_enough(void **state)
{
    (void)state;
    enum { V = 3000, BEST = 64 };
    static const int tops[] = { 1, 2, 7, 40, BEST };
    static float l[V], values[BEST];
    static i32 ids[V];
    qn_sampler s;
    qn_err e;
    assert_true(qn_sampler_open(&s, V, qn_cpu_isa(), NULL, &e));
    for (u64 k = 0; k < 200; k++) {
        for (int i = 0; i < V; i++) { /* many ties */
            l[i] = (float)((int)(qn_rng_unit(k, (u64)i) * 40) - 20) * 0.25f;
            ids[i] = i;
        }
        qsort_r(ids, V, sizeof *ids, best_first, l);
        for (int i = 0; i < BEST; i++) values[i] = l[ids[i]];
        for (size_t t = 0; t < QN_COUNT(tops); t++) {
            qn_sampling p = plain;
            p.top_k = tops[t];
            p.top_p = k % 2 ? 0.9f : 1;
            p.min_p = k % 3 ? 0.1f : 0;
            p.typical_p = k % 5 ? 1 : 0.8f;
            p.temp = 0.7f;
            assert_true(qn_sampler_few(&p, BEST));
            assert_int_equal(qn_sampler_draw_few(&s, ids, values, BEST, &p, k), qn_sampler_draw(&s, l, &p, NULL, 0, k, NULL));
        }
    }
    qn_sampler_close(&s);
    qn_sampling p = plain; /* without top-k, or with more than there are, or where other tokens count, they are not */
    assert_false(qn_sampler_few(&p, BEST));
    p.top_k = BEST + 1;
    assert_false(qn_sampler_few(&p, BEST));
    p.top_k = BEST;
    p.repeat_penalty = 1.1f;
    p.repeat_last_n = 64;
    assert_false(qn_sampler_few(&p, BEST));
    p.repeat_last_n = 0;
    assert_true(qn_sampler_few(&p, BEST));
    p.n_probs = 1;
    assert_false(qn_sampler_few(&p, BEST));
}

static void logprobs(void **state)
{
    (void)state;
    float l[N], lp;
    logits_of(probs, l);
    qn_sampler s;
    qn_err e;
    assert_true(qn_sampler_open(&s, N, qn_cpu_isa(), NULL, &e));
    qn_sampling p = plain;
    p.temp = 0;
    p.n_probs = 3;
    assert_int_equal(qn_sampler_draw(&s, l, &p, NULL, 0, 0, &lp), 1);
    assert_true(fabsf(lp - logf(0.40f)) < 1e-5f);
    const i32 best[] = { 1, 3, 4 };
    for (int i = 0; i < 3; i++) {
        assert_int_equal(s.probs[i].id, best[i]);
        assert_true(fabsf(s.probs[i].logprob - logf(probs[best[i]])) < 1e-5f);
    }
    p.n_probs = 0;
    qn_sampler_draw(&s, l, &p, NULL, 0, 0, &lp);
    assert_true(isnan(lp));
    qn_sampler_close(&s);
}

static void senseless_values_are_refused(void **state)
{
    (void)state;
    qn_err e;
    const qn_bias far = { .id = N, .add = 1 }, nan = { .id = 0, .add = NAN };
    qn_sampling bad[12];
    for (size_t i = 0; i < QN_COUNT(bad); i++) bad[i] = plain;
    bad[0].temp = -1, bad[1].temp = NAN, bad[2].top_k = -5, bad[3].top_p = 1.5f, bad[4].min_p = 2, bad[5].typical_p = -1;
    bad[6].repeat_penalty = 0, bad[7].presence_penalty = 1e9f, bad[8].n_probs = 21, bad[9].repeat_last_n = -2;
    bad[10].bias = &far, bad[10].n_bias = 1, bad[11].bias = &nan, bad[11].n_bias = 1;
    for (size_t i = 0; i < QN_COUNT(bad); i++) {
        e = (qn_err){ 0 };
        assert_false(qn_sampling_check(&bad[i], N, &e));
        assert_int_equal(e.code, QN_EUSAGE);
        assert_true(strlen(e.msg) > 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_follows_the_distribution), cmocka_unit_test(temperature), cmocka_unit_test(truncation),
        cmocka_unit_test(typical), cmocka_unit_test(penalties_and_bias), cmocka_unit_test(few_or_all_make_no_difference),
        cmocka_unit_test(the_best_are_enough), cmocka_unit_test(logprobs), cmocka_unit_test(senseless_values_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
