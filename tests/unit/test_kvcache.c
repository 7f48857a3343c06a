/* test_kvcache.c - pages: taking, sharing, publishing, eviction order, copy before write. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* cmocka wants the three above first */
#include <cmocka.h>

#include "engine/kvcache.h"

static const i32 *page_of(int first)
{
    static i32 t[QN_PAGE];
    for (int i = 0; i < QN_PAGE; i++) t[i] = first + i;
    return t;
}

static int open_cache(void **state)
{
    static qn_cache kv;
    qn_err e;
    assert_true(qn_cache_open(&kv, 2, 4, 64, NULL, &e));
    *state = &kv;
    return 0;
}

static int close_cache(void **state)
{
    qn_cache_close(*state);
    return 0;
}

static void sizes(void **state)
{
    const qn_cache *kv = *state;
    assert_int_equal(kv->layer_bytes, 2 * QN_PAGE * 64);
    assert_int_equal(kv->page_bytes, 2 * kv->layer_bytes);
    assert_int_equal(kv->bytes, 4 * kv->page_bytes);
}

static void takes_every_page_once(void **state)
{
    qn_cache *kv = *state;
    bool seen[4] = { 0 };
    for (int i = 0; i < 4; i++) {
        const int p = qn_cache_take(kv);
        assert_in_range(p, 0, 3);
        assert_false(seen[p]);
        seen[p] = true;
    }
    assert_int_equal(kv->oldest, -1);
}

static void finds_what_was_published(void **state)
{
    qn_cache *kv = *state;
    const int p = qn_cache_take(kv);
    qn_cache_publish(kv, p, 0, page_of(10));
    assert_int_equal(qn_cache_find(kv, 0, page_of(10)), p);
    assert_int_equal(qn_cache_find(kv, 0, page_of(11)), -1); /* other tokens */
    assert_int_equal(qn_cache_find(kv, 7, page_of(10)), -1); /* same tokens behind another beginning */
    qn_cache_drop(kv, p);
    assert_int_equal(qn_cache_find(kv, 0, page_of(10)), p);  /* nobody holds it, its content stays */
}

static void unpublished_goes_first_then_oldest(void **state)
{
    qn_cache *kv = *state;
    int p[4];
    for (int i = 0; i < 4; i++) p[i] = qn_cache_take(kv);
    for (int i = 0; i < 3; i++) qn_cache_publish(kv, p[i], 0, page_of(100 * i));
    qn_cache_drop(kv, p[1]);
    qn_cache_drop(kv, p[0]);
    qn_cache_drop(kv, p[3]); /* never published: of no use to anybody */
    assert_int_equal(qn_cache_take(kv), p[3]);
    assert_int_equal(qn_cache_take(kv), p[1]); /* dropped before p[0] */
    assert_int_equal(qn_cache_find(kv, 0, page_of(100)), -1);
    assert_int_equal(qn_cache_find(kv, 0, page_of(0)), p[0]);
}

static void a_held_page_is_not_taken(void **state)
{
    qn_cache *kv = *state;
    const int p = qn_cache_take(kv);
    qn_cache_publish(kv, p, 0, page_of(5));
    qn_cache_drop(kv, p);
    qn_cache_hold(kv, p);
    for (int i = 0; i < 3; i++) assert_int_not_equal(qn_cache_take(kv), p);
    assert_int_equal(kv->oldest, -1);
}

static void own_copies_only_when_shared(void **state)
{
    qn_cache *kv = *state;
    const int p = qn_cache_take(kv);
    memset(kv->memory + (size_t)p * kv->page_bytes, 0x5A, kv->page_bytes);
    qn_cache_publish(kv, p, 0, page_of(5));
    qn_cache_hold(kv, p);
    const int mine = qn_cache_own(kv, p);
    assert_int_not_equal(mine, p);
    assert_memory_equal(kv->memory + (size_t)mine * kv->page_bytes, kv->memory + (size_t)p * kv->page_bytes, kv->page_bytes);
    assert_int_equal(qn_cache_find(kv, 0, page_of(5)), p);
    assert_int_equal(qn_cache_own(kv, p), p); /* alone now: no copy, but nobody may find it any more */
    assert_int_equal(qn_cache_find(kv, 0, page_of(5)), -1);
}

static void a_twin_takes_the_place_of_the_second(void **state)
{
    qn_cache *kv = *state;
    const int a = qn_cache_take(kv), b = qn_cache_take(kv);
    assert_int_equal(qn_cache_publish(kv, a, 0, page_of(5)), a);
    assert_int_equal(qn_cache_publish(kv, b, 0, page_of(5)), a);
    assert_int_equal(kv->pages[a].refs, 2);
    assert_int_equal(kv->pages[b].refs, 0);
    int used = 0;
    for (int i = 0; i < kv->n_pages; i++) used += kv->pages[i].refs > 0;
    assert_int_equal(kv->n_used, used);
    assert_int_equal(qn_cache_find(kv, 0, page_of(5)), a);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, open_cache, close_cache)
    const struct CMUnitTest tests[] = {
        T(sizes), T(takes_every_page_once), T(finds_what_was_published), T(unpublished_goes_first_then_oldest),
        T(a_held_page_is_not_taken), T(own_copies_only_when_shared), T(a_twin_takes_the_place_of_the_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
