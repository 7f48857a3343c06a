/* test_table.c - ten thousand keys, duplicates, keys with NULs in them, and what happens when memory ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <stdio.h>

#include "base/mem.h"
#include "base/table.h"

enum { N = 10000 };

static void many(void **state)
{
    static char keys[N][12];
    qn_table t = { 0 };
    qn_err e = { 0 };
    (void)state;
    for (u32 i = 0; i < N; i++) {
        snprintf(keys[i], sizeof keys[i], "key%u", i);
        assert_int_equal(qn_table_put(&t, keys[i], strlen(keys[i]), i, &e), i);
    }
    for (u32 i = 0; i < N; i++) {
        assert_int_equal(qn_table_get(&t, keys[i], strlen(keys[i])), i);
        assert_int_equal(qn_table_put(&t, keys[i], strlen(keys[i]), i + 1, &e), i); /* the first stays */
    }
    assert_int_equal(t.n, N);
    assert_int_equal(qn_table_get(&t, "key", 3), QN_NONE);
    assert_int_equal(qn_table_get(&t, "", 0), QN_NONE);
    qn_table_close(&t);
}

static void bytes(void **state)
{
    qn_table t = { 0 };
    qn_err e = { 0 };
    (void)state;
    assert_int_equal(qn_table_put(&t, "a\0b", 3, 1, &e), 1);
    assert_int_equal(qn_table_put(&t, "a\0c", 3, 2, &e), 2);
    assert_int_equal(qn_table_put(&t, "", 0, 3, &e), 3);
    assert_int_equal(qn_table_get(&t, "a\0b", 3), 1);
    assert_int_equal(qn_table_get(&t, "a", 1), QN_NONE);
    assert_int_equal(qn_table_get(&t, "", 0), 3);
    qn_table_close(&t);
}

static void no_memory(void **state)
{
    qn_err e = { 0 };
    (void)state;
    for (u64 k = 1; k < 4; k++) {
        qn_table t = { 0 };
        static const char text[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        u32 held = 0;
        qn_mem_fail_at(k, true);
        for (u32 i = 0; i < 50; i++) held += qn_table_put(&t, text + i, 1, i, &e) == i;
        qn_mem_fail_at(0, false);
        assert_int_equal(t.n, held);
        for (u32 i = 0; i < 50; i++) {
            const u32 v = qn_table_get(&t, text + i, 1);
            assert_true(v == i || v == QN_NONE);
        }
        qn_table_close(&t);
    }
    qn_table t = { 0 };
    assert_false(qn_table_reserve(&t, SIZE_MAX / 2, &e));
    assert_int_equal(e.code, QN_ENOMEM);
    qn_table_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(many), cmocka_unit_test(bytes), cmocka_unit_test(no_memory) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
