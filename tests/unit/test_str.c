/* test_str.c - numbers are whole or refused, UTF-8 is what the standard says, printed text is safe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <locale.h>

#include "base/str.h"

static void whole_numbers(void **state)
{
    static const char *const bad[] = { "", " 1", "1 ", "+-1", "1x", "0x10", "1e3", "1.0", "--1", "9223372036854775808", "\n1" };
    i64 v = 77;
    (void)state;
    for (size_t i = 0; i < QN_COUNT(bad); i++) assert_false(qn_parse_i64(bad[i], INT64_MIN, INT64_MAX, &v));
    assert_int_equal(v, 77);
    assert_true(qn_parse_i64("-9223372036854775808", INT64_MIN, INT64_MAX, &v));
    assert_true(v == INT64_MIN);
    assert_true(qn_parse_i64("5", 5, 5, &v) && v == 5);
    assert_false(qn_parse_i64("6", 5, 5, &v));
    assert_false(qn_parse_i64("4", 5, 5, &v));
}

static void unsigned_numbers(void **state)
{
    u64 v = 77;
    (void)state;
    assert_true(qn_parse_u64("18446744073709551615", &v) && v == UINT64_MAX);
    assert_false(qn_parse_u64("18446744073709551616", &v));
    assert_false(qn_parse_u64("-1", &v));
    assert_false(qn_parse_u64("-0", &v));
    assert_false(qn_parse_u64("", &v));
}

static void real_numbers(void **state)
{
    static const char *const bad[] = { "", " 1", "1 ", "nan", "inf", "-inf", "1e400", "1,5", "1.5x", "0x" };
    double v = 77;
    (void)state;
    for (size_t i = 0; i < QN_COUNT(bad); i++) assert_false(qn_parse_double(bad[i], -1e300, 1e300, &v));
    assert_true(v == 77);
    setlocale(LC_ALL, "de_DE.UTF-8"); /* where it exists, its decimal comma must not matter */
    assert_true(qn_parse_double("1.5", 0, 2, &v) && v == 1.5);
    setlocale(LC_ALL, "C");
    assert_true(qn_parse_double("-2.5e-3", -1, 1, &v) && v == -2.5e-3);
    assert_false(qn_parse_double("2.0001", 0, 2, &v));
}

static void utf8_every_code_point(void **state)
{
    (void)state;
    for (u32 cp = 0; cp <= 0x10FFFF; cp++) {
        char s[4];
        u32 back = 1;
        if (cp >= 0xD800 && cp < 0xE000) continue;
        const int n = qn_utf8_put(cp, s);
        assert_int_equal(qn_utf8_get(s, (size_t)n, &back), n);
        assert_int_equal(back, cp);
        for (int cut = 1; cut < n; cut++) {
            assert_int_equal(qn_utf8_get(s, (size_t)cut, &back), 0);
            assert_int_equal(qn_utf8_whole(s, (size_t)cut), 0); /* more bytes could complete it */
        }
        assert_int_equal(qn_utf8_whole(s, (size_t)n), n);
    }
}

static void utf8_broken(void **state)
{
    static const char *const bad[] = { "\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xED\xBF\xBF",
                                       "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3(" };
    u32 cp;
    (void)state;
    for (size_t i = 0; i < QN_COUNT(bad); i++) {
        assert_int_equal(qn_utf8_get(bad[i], strlen(bad[i]), &cp), 0);
        assert_false(qn_utf8_valid(bad[i], strlen(bad[i])));
        assert_int_equal(qn_utf8_whole(bad[i], strlen(bad[i])), strlen(bad[i])); /* no byte more would mend it */
    }
    assert_int_equal(qn_utf8_whole("ab\xE4\xB8", 4), 2);
    assert_true(qn_utf8_valid("", 0));
}

static void printable(void **state)
{
    char out[64];
    (void)state;
    const char *s = qn_printable("a\x1b[31m\n\xFF" "b", 9, 60, out, sizeof out);
    assert_null(strchr(s, '\x1b'));
    assert_null(strchr(s, '\n'));
    assert_non_null(strstr(s, "\\xff"));
    for (size_t cap = 1; cap < 20; cap++) {
        memset(out, 'z', sizeof out);
        qn_printable("\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD", 12, 64, out, cap);
        assert_true(strlen(out) < cap);
        assert_int_equal(out[cap], 'z');
    }
}

static void human(void **state)
{
    char out[32];
    (void)state;
    assert_string_equal(qn_human_bytes(0, out), "0 B");
    assert_string_equal(qn_human_bytes((u64)3 << 29, out), "1.50 GiB");
    assert_true(strlen(qn_human_bytes(UINT64_MAX, out)) < 32);
    assert_true(strlen(qn_human_count(UINT64_MAX, out)) < 32);
    assert_true(qn_ends_with("model.gguf", ".gguf"));
    assert_false(qn_ends_with("gguf", ".gguf"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers), cmocka_unit_test(unsigned_numbers), cmocka_unit_test(real_numbers),
        cmocka_unit_test(utf8_every_code_point), cmocka_unit_test(utf8_broken), cmocka_unit_test(printable),
        cmocka_unit_test(human),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
