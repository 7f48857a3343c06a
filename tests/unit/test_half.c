/* test_half.c - f16 and bf16: every value there and back, and rounding to nearest even on every border between two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "base/half.h"

static double f16_slowly(u16 h)
{
    const int exponent = h >> 10 & 31, mantissa = h & 1023;
    const double sign = h >> 15 ? -1 : 1;
    if (exponent == 31) return mantissa ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24));
}

static void f16_every_value(void **state)
{
    (void)state;
    for (u32 h = 0; h < 65536; h++) {
        const float f = qn_f16_f32((u16)h);
        const double want = f16_slowly((u16)h);
        if (isnan(want)) {
            assert_true(isnan(f) && isnan(qn_f16_f32(qn_f32_f16(f))));
            continue;
        }
        assert_true((double)f == want && !signbit(f) == !signbit(want));
        assert_int_equal(qn_f32_f16(f), h);
    }
}

static void f16_borders(void **state)
{
    (void)state;
    for (u16 h = 0; h < 0x7BFF; h++) { /* between h and its neighbour: the middle goes to the even one, the rest to the nearer */
        const float a = qn_f16_f32(h), b = qn_f16_f32((u16)(h + 1)), mid = (float)(((double)a + (double)b) / 2);
        const u16 even = h & 1 ? (u16)(h + 1) : h;
        assert_int_equal(qn_f32_f16(mid), even);
        assert_int_equal(qn_f32_f16(-mid), even | 0x8000);
        assert_int_equal(qn_f32_f16(nextafterf(mid, 0)), h);
        assert_int_equal(qn_f32_f16(nextafterf(mid, INFINITY)), h + 1);
    }
    assert_int_equal(qn_f32_f16(65519.996f), 0x7BFF);
    assert_int_equal(qn_f32_f16(65520.0f), 0x7C00);
    assert_int_equal(qn_f32_f16(1e30f), 0x7C00);
}

static void bf16(void **state)
{
    (void)state;
    for (u32 h = 0; h < 65536; h++) {
        const float f = qn_bf16_f32((u16)h);
        if (isnan(f)) assert_true(isnan(qn_bf16_f32(qn_f32_bf16(f))));
        else assert_int_equal(qn_f32_bf16(f), h);
    }
    assert_int_equal(qn_f32_bf16(qn_bits_f32(0x3F808000)), 0x3F80); /* ties to even */
    assert_int_equal(qn_f32_bf16(qn_bits_f32(0x3F818000)), 0x3F82);
    assert_int_equal(qn_f32_bf16(qn_bits_f32(0x3F808001)), 0x3F81);
    assert_int_equal(qn_f32_bf16(3.4e38f), 0x7F80); /* above the largest: infinity */
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(f16_every_value), cmocka_unit_test(f16_borders), cmocka_unit_test(bf16) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
