/* test_mem.c - arenas, pages, sizes that overflow, and the allocation that is told to fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"

static void overflow(void **state)
{
    qn_err e = { 0 };
    (void)state;
    assert_null(qn_new_array(SIZE_MAX / 2, 3, &e));
    assert_int_equal(e.code, QN_ENOMEM);
    assert_null(qn_alloc((size_t)1 << 62, &e));
    assert_null(qn_pages_new((size_t)1 << 62, &e));
    assert_null(qn_alloc((size_t)1 << 62, NULL)); /* e may be NULL */
}

static void fails_when_told(void **state)
{
    qn_err e = { 0 };
    (void)state;
    qn_mem_fail_at(2, false);
    void *a = qn_alloc(1, &e), *b = qn_alloc(1, &e), *c = qn_alloc(1, &e);
    assert_non_null(a);
    assert_null(b);
    assert_non_null(c);
    qn_mem_fail_at(1, true);
    assert_null(qn_alloc(1, &e));
    assert_null(qn_new(1, &e));
    qn_mem_fail_at(0, false);
    qn_free(a);
    qn_free(c);
}

static void arena(void **state)
{
    qn_arena a = { 0 };
    qn_err e = { 0 };
    u8 *all[500];
    (void)state;
    for (size_t i = 0; i < QN_COUNT(all); i++) {
        const size_t bytes = i * i % 5000 + 1;
        all[i] = qn_arena_new(&a, bytes, &e);
        assert_non_null(all[i]);
        for (size_t k = 0; k < bytes; k++) assert_int_equal(all[i][k], 0);
        if (bytes >= 64) assert_int_equal((uintptr_t)all[i] % 64, 0);
        memset(all[i], (int)i, bytes);
    }
    for (size_t i = 0; i < QN_COUNT(all); i++) /* nobody wrote into another's bytes */
        for (size_t k = 0; k < i * i % 5000 + 1; k++) assert_int_equal(all[i][k], (u8)i);
    assert_string_equal(qn_arena_strndup(&a, "hello there", 5, &e), "hello");
    qn_arena_close(&a);
    qn_arena_close(&a);
}

static void pages(void **state)
{
    qn_err e = { 0 };
    (void)state;
    u8 *p = qn_pages_new(3 << 20, &e);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 4096, 0);
    assert_int_equal(p[0] | p[(3 << 20) - 1], 0);
    qn_pages_free(p, 3 << 20);
    qn_pages_free(NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(overflow), cmocka_unit_test(fails_when_told), cmocka_unit_test(arena),
                                        cmocka_unit_test(pages) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
