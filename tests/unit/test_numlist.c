/* test_numlist.c - lists and ranges of numbers as llama-bench takes them, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/numlist.h"

static void check(const char *text, int n, const int *want)
{
    qn_ints list = { 0 };
    qn_err e = { 0 };
    assert_true(qn_ints_parse(&list, text, 0, 1000, "-p", &e));
    assert_int_equal(list.n, n);
    for (int i = 0; i < n; i++) assert_int_equal(list.at[i], want[i]);
    qn_ints_close(&list);
    assert_null(list.at);
}

static void reads_lists(void **state)
{
    (void)state;
    check("0", 1, (const int[]){ 0 });
    check("16,32", 2, (const int[]){ 16, 32 });
    check("32,16,32", 3, (const int[]){ 32, 16, 32 });
    check("1-4", 4, (const int[]){ 1, 2, 3, 4 });
    check("5-5", 1, (const int[]){ 5 });
    check("1-8+2", 4, (const int[]){ 1, 3, 5, 7 });
    check("0-8+4", 3, (const int[]){ 0, 4, 8 });
    check("1-64*2", 7, (const int[]){ 1, 2, 4, 8, 16, 32, 64 });
    check("3-20*3,7", 3, (const int[]){ 3, 9, 7 });
    check("1-3+1000000000,1000", 2, (const int[]){ 1, 1000 });
    check("900-1000*2147483647", 1, (const int[]){ 900 });
}

static void refuses_the_rest(void **state)
{
    static const char *const bad[] = { "", ",", "1,", ",1", "1,,2", "x", "1x", "-1", "1-", "-", "1--2", "4-1", "1-4+0", "1-4*1",
                                       "1-4*0", "0-4*2", "1-4+", "1-4*", "1-4+2+2", "1-4*2+1", "1001", "1-1001", " 1", "1 ",
                                       "1+2", "1*2", "1.5", "99999999999999999999999", "1-4+-1", "0x10" };
    (void)state;
    for (size_t i = 0; i < QN_COUNT(bad); i++) {
        qn_ints list = { 0 };
        qn_err e = { 0 };
        if (qn_ints_parse(&list, bad[i], 0, 1000, "--some-option", &e)) fail_msg("\"%s\" was taken", bad[i]);
        assert_int_equal(e.code, QN_EUSAGE);
        assert_non_null(strstr(e.msg, "--some-option"));
        qn_ints_close(&list);
    }
}

static void stays_small(void **state)
{
    qn_ints list = { 0 };
    qn_err e = { 0 };
    (void)state;
    assert_false(qn_ints_parse(&list, "0-2000000000", 0, 2147483647, "-p", &e));
    assert_int_equal(e.code, QN_EUSAGE);
    assert_true(list.n <= QN_INTS_MOST);
    qn_ints_close(&list);
}

static void limits_and_more(void **state)
{
    qn_ints list = { 0 };
    qn_err e = { 0 };
    (void)state;
    assert_int_equal(qn_ints_max(&list), 0);
    assert_true(qn_ints_parse(&list, "5", 5, 9, "-t", &e) && qn_ints_parse(&list, "9,7", 5, 9, "-t", &e));
    assert_int_equal(list.n, 3); /* a second text adds */
    assert_int_equal(qn_ints_max(&list), 9);
    assert_false(qn_ints_parse(&list, "4", 5, 9, "-t", &e));
    assert_non_null(strstr(e.msg, "5 to 9"));
    qn_ints_close(&list);
}

static void no_memory(void **state)
{
    (void)state;
    for (u64 n = 1; n <= 3; n++) {
        qn_ints list = { 0 };
        qn_err e = { 0 };
        qn_mem_fail_at(n, false);
        assert_false(qn_ints_parse(&list, "1,2,3", 0, 9, "-p", &e));
        qn_mem_fail_at(0, false);
        assert_int_equal(e.code, QN_ENOMEM);
        qn_ints_close(&list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_lists), cmocka_unit_test(refuses_the_rest), cmocka_unit_test(stays_small),
        cmocka_unit_test(limits_and_more), cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
