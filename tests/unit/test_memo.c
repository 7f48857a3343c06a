/* test_memo.c - what is remembered under the hash of a kernel's code: a kernel that was touched is measured again, the rest is not.
 * The table of hashes is this file's own: it stands in for the one that the build makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe/memo.h"

typedef struct code_row { const char *symbol, *hash; } code_row;
extern const code_row qn_kernel_code_rows[];
extern const int qn_n_kernel_code_rows;

static char touched[] = "0123456789abcdef";
const code_row qn_kernel_code_rows[] = { { "qn_add_ref", "1111" }, { "qn_add_f32_base_gen", touched } };
const int qn_n_kernel_code_rows = 2;

/* Runs the contest; how many contenders were known before, and whether the one was. */
static int hold(qn_memo *memo, qn_pool *pool, bool *knew_it, double *ns)
{
    qn_shape shape;
    qn_contest c;
    qn_err e = { 0 };
    int known = 0, damaged = 0, ran = 0;
    const qn_contest_opts o = { .threads = 1, .seconds = 0.002, .seed = 1, .timeout_s = 30 };
    assert_true(qn_shape_parse("op=add n=1 d=64", &shape, &e));
    assert_true(qn_contest_open(&c, &shape, NULL, &o, &e));
    assert_true(qn_memo_get(memo, &c, 1, &damaged, &e));
    assert_int_equal(damaged, 0);
    for (int i = 0; i < c.n; i++) known += c.at[i].cached;
    if (!qn_contest_run(&c, pool, &o, &e)) fail_msg("%s", e.msg);
    assert_true(qn_memo_put(memo, &c, 1, &e));
    for (int i = 0; i < c.n; i++) {
        ran += !c.at[i].misses;
        if (strcmp(c.at[i].name, "add_f32_base_gen")) continue;
        *knew_it = c.at[i].cached;
        *ns = c.at[i].warm.p50;
    }
    qn_contest_close(&c);
    return ran - known;
}

static void a_touched_kernel_is_measured_again(void **state)
{
    (void)state;
    char path[] = "/tmp/quern-memo-XXXXXX", note[240] = "";
    qn_err e = { 0 };
    bool knew_it;
    double first, second, third;
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    qn_pool *pool = qn_pool_open(1, &e);
    qn_memo *memo = qn_memo_open(path, note, &e);
    assert_non_null(memo);
    assert_true(hold(memo, pool, &knew_it, &first) > 1); /* nothing was known */
    assert_int_equal(hold(memo, pool, &knew_it, &second), 0);
    assert_true(knew_it && first == second);
    touched[0]++;
    assert_int_equal(hold(memo, pool, &knew_it, &third), 1); /* the one alone */
    assert_false(knew_it);
    assert_int_equal(hold(memo, pool, &knew_it, &second), 0);
    assert_true(knew_it && second == third);
    touched[0]--; /* as it was: that is remembered too */
    assert_int_equal(hold(memo, pool, &knew_it, &second), 0);
    assert_true(knew_it && second == first);
    qn_memo_close(memo);
    qn_pool_close(pool);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_touched_kernel_is_measured_again) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
