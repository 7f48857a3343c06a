/* test_places.c - which folder each setting of the environment means, and that asking without any fails in one sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "hub/hub.h"

static void wipe(void)
{
    static const char *const vars[] = { "HOME", "QUERN_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME",
                                        "HF_HUB_CACHE", "HF_HOME" };
    for (size_t i = 0; i < QN_COUNT(vars); i++) unsetenv(vars[i]);
}

static void expect(qn_place place, const char *want)
{
    qn_err e = { 0 };
    char *path = qn_place_path(place, &e);
    assert_non_null(path);
    assert_string_equal(path, want);
    qn_free(path);
}

static void expect_none(qn_place place, const char *hint)
{
    qn_err e = { 0 };
    assert_null(qn_place_path(place, &e));
    assert_int_equal(e.code, QN_EIO);
    assert_non_null(strstr(e.msg, "HOME is not set"));
    assert_non_null(strstr(e.msg, hint));
}

static void from_home(void **state)
{
    (void)state;
    wipe();
    setenv("HOME", "/h", 1);
    expect(QN_PLACE_MODELS, "/h/.local/share/quern/models");
    expect(QN_PLACE_CACHE, "/h/.cache/quern");
    expect(QN_PLACE_STATE, "/h/.local/state/quern");
    expect(QN_PLACE_HF, "/h/.cache/huggingface/hub");
}

static void from_xdg(void **state)
{
    (void)state;
    wipe();
    setenv("HOME", "/h", 1);
    setenv("XDG_DATA_HOME", "/d", 1);
    setenv("XDG_CACHE_HOME", "/c", 1);
    setenv("XDG_STATE_HOME", "relative", 1); /* the standard says: ignore it */
    expect(QN_PLACE_MODELS, "/d/quern/models");
    expect(QN_PLACE_CACHE, "/c/quern");
    expect(QN_PLACE_STATE, "/h/.local/state/quern");
    expect(QN_PLACE_HF, "/c/huggingface/hub");
    setenv("XDG_DATA_HOME", "", 1);
    expect(QN_PLACE_MODELS, "/h/.local/share/quern/models");
}

static void from_own(void **state)
{
    (void)state;
    wipe();
    setenv("XDG_DATA_HOME", "/d", 1);
    setenv("QUERN_HOME", "/q", 1);
    expect(QN_PLACE_MODELS, "/q/models");
    expect(QN_PLACE_CACHE, "/q/cache");
    expect(QN_PLACE_STATE, "/q/state");
    setenv("HF_HOME", "/f", 1);
    expect(QN_PLACE_HF, "/f/hub");
    setenv("HF_HUB_CACHE", "/f2", 1);
    expect(QN_PLACE_HF, "/f2");
}

static void from_nothing(void **state)
{
    (void)state;
    wipe();
    expect_none(QN_PLACE_MODELS, "QUERN_HOME");
    expect_none(QN_PLACE_CACHE, "XDG_CACHE_HOME");
    expect_none(QN_PLACE_STATE, "XDG_STATE_HOME");
    expect_none(QN_PLACE_HF, "HF_HOME");
}

static void without_memory(void **state)
{
    (void)state;
    wipe();
    setenv("HOME", "/h", 1);
    for (int place = QN_PLACE_MODELS; place <= QN_PLACE_HF; place++) {
        qn_err e = { 0 };
        qn_mem_fail_at(1, true);
        assert_null(qn_place_path((qn_place)place, &e));
        qn_mem_fail_at(0, false);
        assert_int_equal(e.code, QN_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_home), cmocka_unit_test(from_xdg), cmocka_unit_test(from_own),
        cmocka_unit_test(from_nothing), cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
