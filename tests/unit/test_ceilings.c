/* test_ceilings.c - the timed loops do what they say, whatever the speed; the measurement fills every figure, stops when told to,
 * and fails cleanly without memory. No figure is compared with a wish: the machine may be busy. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/sweep.h"
#include "probe/ceilings.h"
#include "probe/machine.h"

static void read_sees_every_line(void **state)
{
    (void)state;
    enum { N = 1024 };
    u8 *p = aligned_alloc(64, N);
    assert_non_null(p);
    memset(p, 0, N);
    assert_int_equal(qn_sweep_bytes(p, N), 0);
    for (size_t i = 0; i < N; i += 64) {
        p[i] = 1;
        if (qn_sweep_bytes(p, N) == 0) fail_msg("the line at %zu was not read", i);
        p[i] = 0;
    }
    free(p);
}

static void lanes_read_everything(void **state)
{
    (void)state;
    enum { N = 5 * 4096 + 256, WHOLE = 5 * 4096 };
    qn_err e = { 0 };
    qn_pool *pool = qn_pool_open(2, &e);
    u8 *p = qn_pages_new(N, &e);
    assert_true(pool && p);
    for (size_t i = 0; i < WHOLE; i += 64) {
        u64 sink = 0;
        p[i] = 1;
        assert_true(qn_sweep(pool, p, N, &sink) > 0);
        if (sink == 0) fail_msg("byte %zu was not read", i);
        p[i] = 0;
    }
    qn_pages_free(p, N);
    qn_pool_close(pool);
}

static void arithmetic_counts(void **state)
{
    (void)state;
    for (int isa = ISA_ref; isa <= (int)qn_cpu_isa(); isa++) {
        float sum = 0;
        const u64 width = isa >= ISA_avx512 ? 16 : isa >= ISA_avx2 ? 8 : 4;
        assert_int_equal(qn_loop_fma((qn_isa)isa, 1000, &sum), 1000 * 12 * width * 2);
        assert_true(isfinite(sum) && sum > 12); /* x -> 0.999 x + 0.001 pulls towards 1 from where it began */
    }
}

static void dots_count(void **state)
{
    (void)state;
    for (int isa = ISA_ref; isa <= (int)qn_cpu_isa(); isa++) {
        float sum = 0;
        if (!qn_cpu_runs((qn_isa)isa)) continue;
        const u64 width = isa >= ISA_avx512 ? 64 : isa >= ISA_avx2 ? 32 : 8;
        assert_int_equal(qn_loop_dot8((qn_isa)isa, 1000, &sum), 1000 * 12 * width * 2);
        if (isa >= ISA_avx2) assert_true(sum == 12 * (1000 * 4 * 3) + 66); /* every round adds 4 products of 3; 66 = 0 + 1 + ... + 11 */
        sum = 0;
        const u64 flops = qn_loop_bf16((qn_isa)isa, 1000, &sum);
        assert_int_equal(flops, isa >= ISA_avx512bf16 ? 1000 * 12 * 32 * 2 : 0);
        assert_true(flops == 0 ? sum == 0 : fabsf(sum - (66 + 12 * 2)) < 0.5f); /* 1000 rounds of two products of 0.001 */
    }
}

static bool count(void *user, const char *what, double share)
{
    int *calls = user;
    assert_non_null(what);
    assert_true(share >= 0 && share <= 1);
    return --*calls > 0;
}

static void check(const qn_stats *s)
{
    assert_true(s->n >= 5 && s->min > 0 && isfinite(s->max));
    assert_true(s->min <= s->lo && s->lo <= s->p50 && s->p50 <= s->hi && s->hi <= s->max);
}

static void measures_all(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        qn_ceilings c;
        qn_err e = { 0 };
        int calls = 100;
        const qn_ceilings_opts o = { .threads = threads, .seconds = 0.01, .bytes = (4 << 20) + 4096 + 5, .progress = count,
                                     .user = &calls };
        if (!qn_ceilings_measure(&c, &o, &e)) fail_msg("%s", e.msg);
        assert_int_equal(c.threads, threads);
        assert_int_equal(c.bytes, (4 << 20) + 4096);
        check(&c.read_small);
        check(&c.read_huge);
        check(&c.flops);
        check(&c.int8);
        if (c.bf16.n) check(&c.bf16);
        check(&c.barrier_ns);
        check(&c.clock_ns);
        assert_true(c.huge_share >= 0 && c.huge_share <= 1);
    }
}

static void stops_and_fails(void **state)
{
    (void)state;
    qn_ceilings c;
    qn_err e = { 0 };
    for (int calls = 1; calls <= 5; calls++) {
        int left = calls;
        const qn_ceilings_opts o = { .threads = 1, .seconds = 0.001, .bytes = 1 << 20, .progress = count, .user = &left };
        if (!qn_ceilings_measure(&c, &o, &e)) assert_int_equal(e.code, QN_ECANCELLED);
    }
    const qn_ceilings_opts o = { .threads = 2, .seconds = 0.001, .bytes = 1 << 20 };
    for (u64 n = 1; n < 20; n++) {
        e = (qn_err){ 0 };
        qn_mem_fail_at(n, true);
        const bool ok = qn_ceilings_measure(&c, &o, &e);
        qn_mem_fail_at(0, false);
        assert_true(ok || e.code == QN_ENOMEM);
    }
    const qn_ceilings_opts none = { .threads = 1, .bytes = 100 };
    assert_false(qn_ceilings_measure(&c, &none, &e));
}

static void machine_is_known(void **state)
{
    (void)state;
    qn_machine m;
    qn_machine_look(&m);
    assert_true(m.cpu[0] && m.threads >= 1 && m.topo.allowed_pus >= 1 && m.available > 0);
    qn_machine_look_libraries(&m);
    for (size_t i = 0; i < QN_COUNT(m.libraries); i++) assert_true(m.libraries[i].name && m.libraries[i].what);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_sees_every_line),
        cmocka_unit_test(lanes_read_everything), cmocka_unit_test(arithmetic_counts), cmocka_unit_test(dots_count),
        cmocka_unit_test(measures_all), cmocka_unit_test(stops_and_fails), cmocka_unit_test(machine_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
