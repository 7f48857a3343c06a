/* test_shape.c - shapes go to text and back, and wrong texts are refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "kernel/shape.h"

static void round_trip(void **state)
{
    (void)state;
    for (int op = 0; op < N_OPS; op++)
        for (const qn_args *a = qn_ops[op].cases; a->n; a++) {
            char text[QN_SHAPE_TEXT], again[QN_SHAPE_TEXT];
            qn_err e = { 0 };
            qn_shape back;
            const qn_shape s = qn_shape_of((qn_op)op, a, a->n, op == OP_attend ? 77 : 0);
            qn_shape_print(&s, true, text);
            assert_non_null(strchr(text, ' ')); /* every op has sizes */
            assert_true(qn_shape_parse(text, &back, &e));
            qn_shape_print(&back, true, again);
            assert_string_equal(text, again);
            assert_memory_equal(&s, &back, sizeof s);
        }
}

static void reads_others(void **state)
{
    (void)state;
    qn_err e = { 0 };
    qn_shape s;
    assert_true(qn_shape_parse("op=matmul | batch=14 | m=1 | n=64 | k=95 | tA=0 | tB=1:", &s, &e));
    assert_int_equal(s.args.matmul.batch, 14);
    assert_int_equal(s.args.matmul.n, 1);
    assert_int_equal(s.args.matmul.cols, 64);
    assert_int_equal(s.args.matmul.k, 95);
    assert_true(s.args.matmul.tb && !s.args.matmul.ta && !s.args.matmul.biased);
    assert_true(s.args.matmul.alpha == 1 && s.args.matmul.beta == 0);
    assert_true(qn_shape_parse("m=2 op=matmul_bias_add type=bf16 alpha=0.5", &s, &e));
    assert_true(s.args.matmul.biased && s.args.matmul.type == DT_bf16 && s.args.matmul.n == 2);
    assert_true(s.args.matmul.alpha == 0.5f);
    assert_true(qn_shape_parse("op=attend type=f16 n=1 heads=14 kv=2 d=64 depth=8192", &s, &e));
    assert_int_equal(s.depth, 8192);
}

static void refuses(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        { "", "has no op=NAME" },          { "m=1 n=2", "has no op=NAME" },       { "op=hammer", "no such op" },
        { "op=add n=0", "n=0" },           { "op=add n=1.5", "n=1.5" },           { "op=add rows=3", "no size called rows" },
        { "op=linear type=q9", "type=q9" }, { "op=matmul tA=2", "tA=2" },         { "op=matmul beta=x", "beta=x" },
        { "op=add n=99999999999", "n=99999999999" }, { "op=add n=1 and", "\"and\"" },
        { "op=add nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn=1", "is no NAME=VALUE" },
    };
    for (size_t i = 0; i < QN_COUNT(bad); i++) {
        qn_err e = { 0 };
        qn_shape s;
        assert_false(qn_shape_parse(bad[i][0], &s, &e));
        assert_int_equal(e.code, QN_EUSAGE);
        if (!strstr(e.msg, bad[i][1])) fail_msg("%s: %s", bad[i][0], e.msg);
    }
}

static void same_in_every_pass(void **state)
{
    (void)state;
    char one[QN_SHAPE_TEXT], many[QN_SHAPE_TEXT];
    const qn_args a = { .attend = { .n = 1, .n_head = 14, .n_kv = 2, .d_head = 64, .type = DT_f16 } };
    const qn_shape s = qn_shape_of(OP_attend, &a, 1, 5), t = qn_shape_of(OP_attend, &a, 512, 4096);
    qn_shape_print(&s, false, one);
    qn_shape_print(&t, false, many);
    assert_string_equal(one, "type=f16 heads=14 kv=2 d=64 window=0");
    assert_string_equal(one, many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(reads_others),
        cmocka_unit_test(refuses),
        cmocka_unit_test(same_in_every_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
