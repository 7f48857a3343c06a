/* test_source.c - keys and tensors by name: typed look-ups that name what is wrong, replacing, growth, failing memory. */
#include "files.h"

#include <math.h>

#include "format/source.h"

static qn_source *make(void)
{
    qn_err e = { 0 };
    qn_source *s = qn_new(sizeof *s, &e);
    assert_non_null(s);
    s->path = qn_strdup("some/model.gguf", &e);
    return s;
}

static void test_typed(void **state)
{
    (void)state;
    qn_err e = { 0 };
    qn_source *s = make();
    u32 u = 7;
    float f;
    bool b;
    qn_str str;
    assert_false(qn_source_u32(s, "x.n", 1, 9, &u, &e));
    assert_string_equal(e.msg, "some/model.gguf: missing key x.n");
    assert_false(qn_source_f32(s, "x.n", &f, &e) || qn_source_bool(s, "x.n", &b, &e) || qn_source_str(s, "x.n", &str, &e));
    assert_true(qn_source_put_str(s, "x.s", "text", 4, &e) && qn_source_put_u32(s, "x.n", 10, &e)
                && qn_source_put_f32(s, "x.f", 0.5f, &e) && qn_source_put_bool(s, "x.b", true, &e));
    assert_true(qn_source_put(s, "x.minus", &(qn_value){ .kind = KIND_i64, .as.i = -3 }, &e));
    assert_true(qn_source_put(s, "x.huge", &(qn_value){ .kind = KIND_u64, .as.u = 1ull << 40 }, &e));
    assert_true(qn_source_put(s, "x.inf", &(qn_value){ .kind = KIND_f64, .as.f = INFINITY }, &e));
    assert_true(qn_source_put(s, "x.big", &(qn_value){ .kind = KIND_f64, .as.f = 1e300 }, &e));
    assert_false(qn_source_u32(s, "x.n", 1, 9, &u, &e));
    check_refusal(&e, "key x.n is 10, must be within 1..9");
    assert_false(qn_source_u32(s, "x.minus", 0, 9, &u, &e));
    check_refusal(&e, "key x.minus is -3");
    assert_false(qn_source_u32(s, "x.huge", 0, UINT32_MAX, &u, &e));
    check_refusal(&e, "1099511627776");
    static const char *const not_int[] = { "x.s", "x.f", "x.b" };
    for (size_t i = 0; i < 3; i++) assert_false(qn_source_u32(s, not_int[i], 0, 9, &u, &e));
    check_refusal(&e, "key x.b is of type bool, must be an integer");
    assert_int_equal(u, 7);
    assert_false(qn_source_f32(s, "x.n", &f, &e));
    check_refusal(&e, "of type uint32, must be a float");
    assert_false(qn_source_f32(s, "x.inf", &f, &e) || qn_source_f32(s, "x.big", &f, &e));
    check_refusal(&e, "not a finite number");
    assert_false(qn_source_bool(s, "x.n", &b, &e) || qn_source_str(s, "x.n", &str, &e));
    assert_true(qn_source_u32(s, "x.n", 10, 10, &u, &e) && u == 10);
    assert_true(qn_source_str(s, "x.s", &str, &e) && str.n == 4);
    assert_true(qn_source_put_u32(s, "x.s", 3, &e)); /* replaced, with another type */
    assert_true(qn_source_u32(s, "x.s", 0, 9, &u, &e) && u == 3);
    assert_int_equal(s->n_kvs, 8);
    qn_source_close(s);
    qn_source_close(NULL);
}

static void test_arrays(void **state)
{
    (void)state;
    static const u8 bytes[] = { 0xFF, 0x01, 0x80, 0x7F, 0, 0, 0x80, 0xBF, 0xFF }; /* read unaligned, too */
    const qn_value i16s = { .kind = KIND_array, .item = KIND_i16, .n = 2, .data = bytes + 1 };
    assert_true(qn_value_int_at(&i16s, 0) == (i16)0x8001 && qn_value_int_at(&i16s, 1) == 0x7F);
    assert_true(qn_value_int_at(&i16s, 2) == 0 && qn_value_at(&i16s, SIZE_MAX) == 0);
    const qn_value f32s = { .kind = KIND_array, .item = KIND_f32, .n = 1, .data = bytes + 4 };
    assert_true(qn_value_at(&f32s, 0) == -1 && qn_value_int_at(&f32s, 0) == -1);
    const qn_value u64s = { .kind = KIND_array, .item = KIND_u64, .n = 1, .data = bytes };
    assert_true(qn_value_at(&u64s, 0) > 1.3e19);
    const qn_value i8s = { .kind = KIND_array, .item = KIND_i8, .n = 9, .data = bytes };
    assert_true(qn_value_at(&i8s, 0) == -1 && qn_value_int_at(&i8s, 8) == -1);
    const qn_value bools = { .kind = KIND_array, .item = KIND_bool, .n = 2, .data = bytes };
    assert_true(qn_value_int_at(&bools, 1) == 1);
    const qn_value nans = { .kind = KIND_array, .item = KIND_f64, .n = 1, .data = &(double){ NAN } };
    assert_true(qn_value_int_at(&nans, 0) == 0);
    for (int k = 0; k < N_KINDS; k++) assert_string_not_equal(qn_kind_name((qn_kind)k), "unknown");
    assert_string_equal(qn_kind_name((qn_kind)99), "unknown");
}

static bool fill(qn_source *s, int n, qn_err *e)
{
    char name[32];
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "key.%d", i);
        const qn_tensor t = { .name = name, .n_dims = 1, .dims = { 1, 1, 1, 1 }, .data = (const u8 *)"1234", .bytes = 4 };
        if (!qn_source_put_u32(s, name, (u32)i, e) || !qn_source_put_tensor(s, &t, e)) return false;
    }
    return true;
}

static void test_growth(void **state)
{
    (void)state;
    qn_err e = { 0 };
    qn_source *s = make();
    u32 u;
    assert_true(fill(s, 1000, &e));
    assert_true(qn_source_u32(s, "key.777", 0, 1000, &u, &e) && u == 777);
    assert_string_equal(qn_source_tensor(s, "key.999")->name, "key.999");
    const qn_tensor t = { .name = "key.5", .n_dims = 1 };
    assert_false(qn_source_put_tensor(s, &t, &e));
    check_refusal(&e, "tensor key.5 is there twice");
    qn_source_close(s);
    for (u64 n = 1;; n++) {
        s = make();
        qn_mem_fail_at(n, false);
        e = (qn_err){ 0 };
        const bool ok = fill(s, 40, &e);
        qn_mem_fail_at(0, false);
        qn_source_close(s);
        if (ok) break;
        assert_int_equal(e.code, QN_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_typed), cmocka_unit_test(test_arrays), cmocka_unit_test(test_growth),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
