/* test_buf.c - the growing run of bytes: content, the NUL behind it, JSON, and what happens when memory ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"

static void grows(void **state)
{
    qn_buf b = { 0 };
    (void)state;
    for (int i = 0; i < 10000; i++) {
        qn_buf_printf(&b, "%d,", i);
        assert_int_equal(b.p[b.n], 0);
    }
    assert_false(b.failed);
    assert_int_equal(b.n, strlen(b.p));
    assert_memory_equal(b.p, "0,1,2,3,", 8);
    assert_string_equal(b.p + b.n - 10, "9998,9999,");
    qn_buf_close(&b);
    qn_buf_close(&b); /* twice is fine */
}

static void json(void **state)
{
    qn_buf b = { 0 };
    (void)state;
    qn_buf_json(&b, "a\"\\\n\x01\xFF\xE4\xB8\xAD", 9);
    assert_string_equal(b.p, "\"a\\\"\\\\\\n\\u0001\xEF\xBF\xBD\xE4\xB8\xAD\"");
    qn_buf_close(&b);
}

static void take(void **state)
{
    qn_buf b = { 0 };
    qn_err e = { 0 };
    char *p = NULL;
    size_t n = 0;
    (void)state;
    qn_buf_puts(&b, "hello");
    assert_true(qn_buf_take(&b, &p, &n, &e));
    assert_string_equal(p, "hello");
    assert_int_equal(n, 5);
    assert_null(b.p);
    qn_free(p);
}

static void no_memory(void **state)
{
    (void)state;
    for (u64 k = 1; k <= 8; k++) {
        qn_buf b = { 0 };
        qn_err e = { 0 };
        char *p = NULL;
        size_t n = 0;
        qn_mem_fail_at(k, true);
        for (int i = 0; i < 1000; i++) qn_buf_puts(&b, "0123456789");
        const bool ok = qn_buf_take(&b, &p, &n, &e);
        qn_mem_fail_at(0, false);
        if (!ok) assert_int_equal(e.code, QN_ENOMEM);
        assert_true(ok == (n == 10000));
        qn_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(grows), cmocka_unit_test(json), cmocka_unit_test(take),
                                        cmocka_unit_test(no_memory) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
