/* test_advice.c - machines that were made up: each fault is named in plain words, and a machine without one hears nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "probe/advice.h"

static qn_machine good(void)
{
    qn_machine m = { .isa = ISA_avx2, .threads = 8, .available = (u64)32 << 30, .load = 0.1, .huge_pages = "madvise",
                     .clock_source = "tsc" };
    m.topo = (qn_topology){ .packages = 1, .cores = 8, .pus = 8, .allowed_pus = 8, .numa_nodes = 1, .memory = (u64)64 << 30 };
    return m;
}

static qn_stats narrow(double p50) { return (qn_stats){ .n = 20, .p50 = p50, .lo = p50 * 0.99, .hi = p50 * 1.01, .min = p50 * 0.9 }; }

static qn_ceilings quiet(void)
{
    return (qn_ceilings){ .threads = 8, .read_small = narrow(30e9), .read_huge = narrow(31e9), .flops = narrow(5e11),
                          .huge_share = 1, .barrier_ns = narrow(900), .clock_ns = narrow(25) };
}

static void says(const qn_machine *m, const qn_ceilings *c, const char *text)
{
    qn_advice a;
    qn_advise(m, c, &a);
    for (int i = 0; i < a.n; i++)
        if (strstr(a.at[i], text)) return;
    fail_msg("nobody says '%s': %d sentences, the first '%s'", text, a.n, a.n ? a.at[0] : "");
}

static void nothing_is_wrong(void **state)
{
    (void)state;
    const qn_machine m = good();
    const qn_ceilings c = quiet();
    qn_advice a;
    qn_advise(&m, &c, &a);
    assert_int_equal(a.n, 0);
    qn_advise(&m, NULL, &a);
    assert_int_equal(a.n, 0);
}

static void cores(void **state)
{
    (void)state;
    qn_machine m = good();
    m.topo.pus = m.topo.allowed_pus = 16;
    says(&m, NULL, "Each core has 2 hardware threads (SMT siblings)");
    m = good();
    m.topo.quota_cpus = 1.5;
    says(&m, NULL, "The cgroup grants 1.5 CPUs of 8 cores");
    m = good();
    m.topo.allowed_pus = 4;
    says(&m, NULL, "allows 4 of 8 hardware threads");
    m = good();
    m.load = 7;
    says(&m, NULL, "load average is 7.0 on 8 cores");
}

static void memory(void **state)
{
    (void)state;
    qn_machine m = good();
    qn_ceilings c = quiet();
    memcpy(m.huge_pages, "never", sizeof "never");
    says(&m, NULL, "Huge pages are off");
    m = good();
    c.huge_share = 0.25;
    says(&m, &c, "25 % came");
    m.limit = (u64)1 << 30;
    says(&m, NULL, "The cgroup limits memory to 1.00 GiB");
    says(&m, NULL, "Only 1.00 GiB of memory is free");
}

static void figures(void **state)
{
    (void)state;
    const qn_machine m = good();
    qn_ceilings c = quiet();
    c.read_huge.hi = 1.4 * c.read_huge.p50;
    says(&m, &c, "The machine is disturbed: the medians may be off by 41 %");
    c = quiet();
    c.read_huge.min = c.read_huge.p50 / 4;
    says(&m, &c, "single reads took up to 4.0 times as long");
    c = quiet();
    c.barrier_ns = narrow(50000);
    says(&m, &c, "A barrier takes 50 us");
    c = quiet();
    c.clock_ns = narrow(900);
    says(&m, &c, "Reading the clock takes 900 ns (source 'tsc')");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(nothing_is_wrong), cmocka_unit_test(cores), cmocka_unit_test(memory),
                                        cmocka_unit_test(figures) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
