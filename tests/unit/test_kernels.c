/* test_kernels.c - every kernel of the registry that this machine runs meets its reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "probe/probe.h"

static bool show_failure(void *user, const qn_probe_result *r)
{
    (*(int *)user)++;
    if (!r->passed)
        fprintf(stderr, "%s: %s (%s; seed %llu)\n", r->kernel->name, r->why, r->at, (unsigned long long)r->seed);
    return true;
}

static void test_registry(void **state)
{
    (void)state;
    const qn_probe_opts fixed = { .op = -1, .type = -1, .seed = 20 };
    int failed = 0, n = 0;
    qn_err e;
    assert_true(qn_probe_check(&fixed, show_failure, &n, &failed, &e));
    assert_int_equal(failed, 0);
    assert_true(n > N_OPS);
}

/* Every level has a linear of its own for every type: a type added to dtypes.def gets them from its row. */
static void test_every_type(void **state)
{
    (void)state;
    for (int level = ISA_base; level <= qn_mini(ISA_avx512, (int)qn_cpu_isa()); level++) { /* above: dot products only */
        int n = 0;
        if (level == ISA_avxvnni) continue;
        for (int i = 0; i < qn_n_kernels; i++) n += (int)qn_kernels[i].isa == level && qn_kernels[i].op == OP_linear;
        assert_true(n >= N_DTYPES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_registry), cmocka_unit_test(test_every_type) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
