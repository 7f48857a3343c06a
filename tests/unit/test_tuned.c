/* test_tuned.c - winners go out and come back for this machine alone; overrides come first; plans obey and say why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/plan.h"
#include "kernel/tuned.h"

static const qn_args matrix = { .linear = { .n = 1, .rows = 96, .cols = 256, .type = DT_q8_0 } };

static const qn_kernel *kernel(const char *name)
{
    for (int i = 0; i < qn_n_kernels; i++)
        if (!strcmp(qn_kernels[i].name, name)) return &qn_kernels[i];
    fail_msg("no kernel %s", name);
    return NULL;
}

static void write_text(char path[32], const char *text, size_t n)
{
    snprintf(path, 32, "/tmp/quern-tuned-XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, n) == (ssize_t)n);
    close(fd);
}

static void add_line(qn_buf *b, int bucket, const char *name, int threads)
{
    const qn_tuned_row row = { .op = OP_linear, .shape = "type=q8_0 rows=96 cols=256", .bucket = bucket, .kernel = kernel(name),
                               .gain = 1.14, .error = 0.02, .date = "2026-11-20" };
    qn_tuned_print(b, &row, threads);
}

static void winners_are_read(void **state)
{
    (void)state;
    qn_buf b = { 0 };
    qn_tuned t = { 0 };
    qn_err e = { 0 };
    char path[32];
    add_line(&b, BUCKET_one, "linear_q8_0_base_gen", 2);
    add_line(&b, BUCKET_many, "linear_q8_0_base_gen", 3);
    qn_buf_puts(&b, "{\"cpu\": \"abacus\", \"threads\": 2, \"kernel\": \"linear_q8_0_base_gen\", \"rows\": \"1\"}\n");
    qn_buf_puts(&b, "no JSON at all\n\n{\"cpu\": 7}\n{\"kernel\": \"linear_q8_0_gone\", \"rows\": \"1\"}");
    write_text(path, b.p, b.n);
    assert_true(qn_tuned_read(&t, path, 2, &e));
    assert_int_equal(t.n, 1);
    assert_int_equal(t.passed_over, 5);
    const qn_tuned_row *row = qn_tuned_find(&t, OP_linear, &matrix, BUCKET_one);
    assert_non_null(row);
    assert_ptr_equal(row->kernel, kernel("linear_q8_0_base_gen"));
    assert_null(qn_tuned_find(&t, OP_linear, &matrix, BUCKET_many));
    qn_args wider = matrix;
    wider.linear.rows = 97;
    assert_null(qn_tuned_find(&t, OP_linear, &wider, BUCKET_one));
    qn_tuned_close(&t);
    unlink(path);
    assert_true(qn_tuned_read(&t, path, 2, &e)); /* it is gone: nothing was tuned */
    assert_int_equal(t.n, 0);
    qn_buf_close(&b);
}

static void plans_obey(void **state)
{
    (void)state;
    qn_buf b = { 0 };
    qn_tuned t = { 0 };
    qn_err e = { 0 };
    char path[32];
    add_line(&b, BUCKET_one, "linear_q8_0_base_gen", 2);
    write_text(path, b.p, b.n);
    assert_true(qn_tuned_read(&t, path, 2, &e));
    qn_plan plan = { .isa = qn_cpu_isa(), .tuned = &t };
    const qn_step *s = qn_plan_add(&plan, OP_linear, 0, "blk.0.x", &matrix, &e);
    assert_non_null(s);
    assert_string_equal(s->choice[BUCKET_one].kernel->name, "linear_q8_0_base_gen");
    assert_string_equal(s->choice[BUCKET_one].reason, "tuned: linear_q8_0_base_gen, 1.14x the default (+- 2 %), 2026-11-20");
    if (qn_cpu_isa() > ISA_base) assert_string_not_equal(s->choice[BUCKET_many].kernel->name, "linear_q8_0_base_gen");
    assert_true(qn_tuned_override(&t, "linear=linear_ref,add=add_ref", &e));
    s = qn_plan_add(&plan, OP_linear, 0, "blk.1.x", &matrix, &e);
    assert_string_equal(s->choice[BUCKET_one].kernel->name, "linear_ref");
    assert_string_equal(s->choice[BUCKET_many].reason, "asked for by --kernel");
    plan.isa = ISA_ref; /* what is not allowed is not taken, whoever won */
    t.n = 1;
    s = qn_plan_add(&plan, OP_linear, 0, "blk.2.x", &matrix, &e);
    assert_string_equal(s->choice[BUCKET_one].kernel->name, "linear_ref");
    qn_plan_close(&plan);
    qn_tuned_close(&t);
    qn_buf_close(&b);
    unlink(path);
}

static void overrides_are_checked(void **state)
{
    (void)state;
    static const char *const bad[][2] = { { "linear", "say OP=KERNEL" }, { "linear=hammer", "no kernel hammer" },
                                          { "add=linear_ref", "a kernel of linear, not of add" }, { "", "say OP=KERNEL" },
                                          { "linear=linear_ref,", "say OP=KERNEL" } };
    for (size_t i = 0; i < QN_COUNT(bad); i++) {
        qn_tuned t = { 0 };
        qn_err e = { 0 };
        assert_false(qn_tuned_override(&t, bad[i][0], &e));
        if (!strstr(e.msg, bad[i][1])) fail_msg("%s: %s", bad[i][0], e.msg);
        qn_tuned_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(winners_are_read),
        cmocka_unit_test(plans_obey),
        cmocka_unit_test(overrides_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
