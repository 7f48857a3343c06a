/* test_json.c - JSON from outside: depth, broken text, numbers that fit nothing, failing memory. */
#include "files.h"

#include "base/json.h"

static void refuse(const char *text, size_t n, int depth, const char *word)
{
    qn_err e = { 0 };
    assert_null(qn_json_parse(text, n, depth, "what.json", &e));
    check_refusal(&e, word);
    check_refusal(&e, "what.json");
}

static void test_depth(void **state)
{
    (void)state;
    enum { N = 100000 };
    char *deep = malloc(6 * N);
    memset(deep, '[', N);
    refuse(deep, N, 0, "nested deeper than 64");
    for (int i = 0; i < N; i++) memcpy(deep + 5 * i, "{\"a\":", 5);
    refuse(deep, 5 * N, 0, "nested deeper than 64");
    qn_err e = { 0 };
    memset(deep, '[', 64), memset(deep + 64, ']', 64);
    yyjson_doc *doc = qn_json_parse(deep, 128, 0, "x", &e);
    assert_non_null(doc);
    yyjson_doc_free(doc);
    refuse(deep, 128, 63, "nested deeper than 63");
    free(deep);
    doc = qn_json_parse("[\"[[[[\\\"[[[[\"]", 14, 1, "x", &e); /* brackets in a string do not count */
    assert_non_null(doc);
    yyjson_doc_free(doc);
}

static void test_broken(void **state)
{
    (void)state;
    static const char *const bad[] = { "", " ", "{", "[1,]", "{\"a\":}", "{'a':1}", "nul", "[1] x",
                                       "\"\xFF\"", "\"\xED\xA0\x80\"", "[01]", "\"a", "[\"\\" };
    for (size_t i = 0; i < QN_COUNT(bad); i++) refuse(bad[i], strlen(bad[i]), 0, "JSON");
    refuse("[1\0]", 4, 0, "JSON");
}

static void test_numbers(void **state)
{
    (void)state;
    qn_err e = { 0 };
    static const char text[] = "[1e400, 123456789012345678901234567890, 18446744073709551615, -1, 1.5]";
    yyjson_doc *doc = qn_json_parse(text, sizeof text - 1, 0, "x", &e);
    assert_non_null(doc);
    yyjson_val *v = yyjson_doc_get_root(doc);
    assert_true(yyjson_is_raw(yyjson_arr_get(v, 0)) && yyjson_is_raw(yyjson_arr_get(v, 1)));
    assert_false(yyjson_is_num(yyjson_arr_get(v, 0)));
    assert_true(yyjson_get_uint(yyjson_arr_get(v, 2)) == UINT64_MAX);
    assert_true(yyjson_is_sint(yyjson_arr_get(v, 3)) && yyjson_is_real(yyjson_arr_get(v, 4)));
    yyjson_doc_free(doc);
}

static void test_read(void **state)
{
    (void)state;
    qn_err e = { 0 };
    put_file("good.json", "{\"a\": 1}", 8);
    yyjson_doc *doc = qn_json_read(at("good.json"), 8, &e);
    assert_int_equal(yyjson_get_int(yyjson_obj_get(yyjson_doc_get_root(doc), "a")), 1);
    yyjson_doc_free(doc);
    assert_null(qn_json_read(at("good.json"), 7, &e));
    check_refusal(&e, "larger than the 7 bytes");
    assert_null(qn_json_read(at("none.json"), 7, &e));
    check_refusal(&e, "No such file");
    assert_null(qn_json_read(test_dir, 7, &e));
    check_refusal(&e, "is a folder");
    for (u64 n = 1;; n++) {
        e = (qn_err){ 0 };
        qn_mem_fail_at(n, false);
        doc = qn_json_read(at("good.json"), 100, &e);
        qn_mem_fail_at(0, false);
        yyjson_doc_free(doc);
        if (doc) break;
        assert_int_equal(e.code, QN_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_depth), cmocka_unit_test(test_broken), cmocka_unit_test(test_numbers), cmocka_unit_test(test_read),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
