/* test_stop.c - stop strings in every way of cutting the stream: what comes out never holds a byte of the one that was met,
 * and nothing is lost when none is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "engine/stop.h"

/* Feeds text in pieces of `step` bytes and compares all that comes out. */
static void expect(const char *const *strings, int n, const char *text, const char *out, bool hit)
{
    for (size_t step = 1; step <= strlen(text) + 1; step++) {
        qn_stop s = { .strings = strings, .n = n };
        qn_buf got = { 0 };
        const char *p;
        size_t len;
        for (size_t i = 0; i < strlen(text) && !s.hit; i += step) {
            qn_stop_push(&s, text + i, qn_minz(step, strlen(text) - i), &p, &len);
            qn_buf_put(&got, p, len);
        }
        qn_stop_flush(&s, &p, &len);
        qn_buf_put(&got, p, len);
        assert_string_equal(got.p ? got.p : "", out);
        assert_int_equal(s.hit, hit);
        qn_buf_close(&got);
        qn_stop_close(&s);
    }
}

static void met_and_never_met(void **state)
{
    (void)state;
    const char *const user[] = { "\nUser:" };
    expect(user, 1, "Hello.\nUser: hi", "Hello.", true);
    expect(user, 1, "Hello.\nUse", "Hello.\nUse", false); /* held back, then given out at the end */
    expect(user, 1, "\n\nUser:\nUser:", "\n", true);
    expect(user, 1, "", "", false);
    expect(user, 0, "Hello.\nUser: hi", "Hello.\nUser: hi", false);
}

static void the_first_of_several(void **state)
{
    (void)state;
    const char *const many[] = { "abcd", "bc", "zzz" };
    expect(many, 3, "xxabcdyy", "xxa", true); /* bc is complete before abcd is, however the stream is cut */
    const char *const ends[] = { "c", "abc" };
    expect(ends, 2, "xxabcdyy", "xx", true);  /* both are complete at the same byte: the longer one */
    const char *const self[] = { "aab" };
    expect(self, 1, "aaaab", "aa", true);     /* an end that is a beginning twice over */
    const char *const utf8[] = { "\xC3\xA9t\xC3\xA9" };
    expect(utf8, 1, "un \xC3\xA9t\xC3\xA9 doux", "un ", true);
}

static void limits(void **state)
{
    (void)state;
    qn_err e;
    const char *const empty[] = { "a", "" };
    assert_false(qn_stop_check(empty, 2, &e));
    assert_non_null(strstr(e.msg, "stop string 2"));
    const char *many[17];
    for (int i = 0; i < 17; i++) many[i] = "x";
    assert_false(qn_stop_check(many, 17, &e));
    assert_true(qn_stop_check(many, 16, &e));
    static char big[2000];
    memset(big, 'x', sizeof big - 1);
    const char *const large[] = { big };
    assert_false(qn_stop_check(large, 1, &e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(met_and_never_met), cmocka_unit_test(the_first_of_several), cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
