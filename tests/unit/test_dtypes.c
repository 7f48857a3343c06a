/* test_dtypes.c - every tensor type against blocks decoded by another implementation, bit for bit; half floats over all their
 * values; encoders against their error bounds and against hostile input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "format/blocks.h"
#include "format/dtype.h"

static u8 *slurp(const char *name, const char *ext, size_t *n)
{
    char path[128];
    snprintf(path, sizeof path, "tests/data/quants/%s.%s", name, ext);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    u8 *p = malloc(1 << 20);
    assert_non_null(p);
    *n = fread(p, 1, 1 << 20, f);
    fclose(f);
    return p;
}

static void test_table(void **state)
{
    (void)state;
    const struct { const char *name; u32 id; int block; size_t bytes; bool encodes; } want[] = {
        { "F32", 0, 1, 4, 1 },       { "F16", 1, 1, 2, 1 },       { "BF16", 30, 1, 2, 1 },     { "Q8_0", 8, 32, 34, 1 },
        { "Q4_0", 2, 32, 18, 1 },    { "Q4_1", 3, 32, 20, 1 },    { "Q5_0", 6, 32, 22, 1 },    { "Q5_1", 7, 32, 24, 1 },
        { "Q2_K", 10, 256, 84, 0 },  { "Q3_K", 11, 256, 110, 0 }, { "Q4_K", 12, 256, 144, 0 }, { "Q5_K", 13, 256, 176, 0 },
        { "Q6_K", 14, 256, 210, 0 }, { "IQ4_NL", 20, 32, 18, 0 }, { "IQ4_XS", 23, 256, 136, 0 }, { "MXFP4", 39, 32, 17, 0 },
    };
    assert_int_equal(QN_COUNT(want), N_DTYPES);
    for (size_t i = 0; i < QN_COUNT(want); i++) {
        qn_dtype t, u;
        assert_true(qn_dtype_from_name(want[i].name, &t));
        assert_true(qn_dtype_from_name(qn_dtypes[t].token, &u));
        assert_int_equal(t, u);
        assert_true(qn_dtype_from_gguf(want[i].id, &u));
        assert_int_equal(t, u);
        assert_int_equal(qn_dtypes[t].block, want[i].block);
        assert_int_equal(qn_dtypes[t].block_bytes, want[i].bytes);
        assert_int_equal(qn_dtypes[t].encode != NULL, want[i].encodes);
        assert_int_equal(qn_dtype_bytes(t, 512), 512 / want[i].block * (int)want[i].bytes);
    }
    qn_dtype t = DT_f32;
    for (u32 id = 0; id < 64; id++) {
        if (!qn_dtype_from_gguf(id, &t)) continue;
        assert_int_equal(qn_dtypes[t].gguf_id, id);
    }
    assert_false(qn_dtype_from_gguf(4, &t));
    assert_false(qn_dtype_from_gguf(5, &t));
    assert_false(qn_dtype_from_gguf(UINT32_MAX, &t));
    assert_false(qn_dtype_from_name("", &t));
    assert_false(qn_dtype_from_name("Q4_K_M", &t));
    assert_false(qn_dtype_from_name("Q4", &t));
}

static void test_decode_equals_reference(void **state)
{
    (void)state;
    int n_seen = 0;
    for (int t = 0; t < N_DTYPES; t++) {
        const qn_dtype_info *d = &qn_dtypes[t];
        if (d->block == 1) continue;
        size_t n_blocks, n_want;
        u8 *blocks = slurp(d->name, "blocks", &n_blocks), *want = slurp(d->name, "f32", &n_want);
        const size_t n = n_want / 4;
        assert_int_equal(n_blocks, qn_dtype_bytes((qn_dtype)t, n));
        assert_true(n >= 96 * 32);
        float *y = malloc(n_want);
        assert_non_null(y);
        d->decode(blocks, y, n);
        for (size_t i = 0; i < n; i++) {
            u32 a, b;
            memcpy(&a, y + i, 4);
            memcpy(&b, want + 4 * i, 4);
            if (a != b) fail_msg("%s: weight %zu is %g (%08x), not %g (%08x)", d->name, i, (double)y[i], a, (double)qn_bits_f32(b), b);
        }
        free(blocks), free(want), free(y);
        n_seen++;
    }
    assert_int_equal(n_seen, 13);
}

/* ---- half floats -------------------------------------------------------------------------------------------------- */

/* The value of a half, by its definition. */
static double half_value(u16 h)
{
    const int e = h >> 10 & 31, m = h & 1023;
    const double v = e == 0 ? ldexp(m, -24) : e == 31 ? (m ? (double)NAN : (double)INFINITY) : ldexp(1024 + m, e - 25);
    return h & 0x8000 ? -v : v;
}

static void test_f16_all_values(void **state)
{
    (void)state;
    for (u32 h = 0; h < 65536; h++) {
        const double want = half_value((u16)h);
        const float got = qn_f16_f32((u16)h);
        if (isnan(want)) {
            assert_true(isnan(got));
            assert_true(isnan(qn_f16_f32(qn_f32_f16(got))));
            continue;
        }
        if ((double)got != want || !signbit(got) != !signbit(want)) fail_msg("f16 %04x is %g, not %g", h, (double)got, want);
        if (qn_f32_f16(got) != h) fail_msg("%g goes to %04x, not %04x", (double)got, qn_f32_f16(got), h);
    }
}

/* Just below, at and just above the middle of each two neighbours: nearest, and the even one of equals. */
static void test_f16_rounding(void **state)
{
    (void)state;
    for (u32 h = 0; h < 0x7C00; h++) {
        const double lo = half_value((u16)h), hi = h == 0x7BFF ? 65536 : half_value((u16)(h + 1));
        const float mid = (float)((lo + hi) / 2);
        assert_true((double)mid == (lo + hi) / 2);
        for (u32 sign = 0; sign < 2; sign++) {
            const float s = sign ? -1 : 1;
            const u32 top = sign << 15;
            assert_int_equal(qn_f32_f16(s * nextafterf(mid, 0)), h | top);
            assert_int_equal(qn_f32_f16(s * nextafterf(mid, INFINITY)), (h + 1) | top);
            assert_int_equal(qn_f32_f16(s * mid), (h + (h & 1)) | top);
        }
    }
    assert_int_equal(qn_f32_f16(INFINITY), 0x7C00);
    assert_int_equal(qn_f32_f16(-FLT_MAX), 0xFC00);
    assert_int_equal(qn_f32_f16(1e-45f), 0);
    assert_int_equal(qn_f32_f16(-0.0f), 0x8000);
    for (u32 u = 0x7F800001u; u < 0x7FFFFFFFu; u += 0x10001u) /* signalling and quiet NaN with many payloads */
        assert_int_equal(qn_f32_f16(qn_bits_f32(u)) & 0x7E00, 0x7E00);
}

static void test_bf16_all_values(void **state)
{
    (void)state;
    for (u32 h = 0; h < 65536; h++) {
        const float v = qn_bf16_f32((u16)h);
        assert_int_equal(qn_f32_bits(v), h << 16);
        if (isnan(v)) {
            assert_true(isnan(qn_bf16_f32(qn_f32_bf16(v))));
            continue;
        }
        assert_int_equal(qn_f32_bf16(v), h);
        if ((h & 0x7F80) == 0x7F80) continue;
        assert_int_equal(qn_f32_bf16(qn_bits_f32(h << 16 | 0x7FFF)), h);
        assert_int_equal(qn_f32_bf16(qn_bits_f32(h << 16 | 0x8001)), h + 1);
        assert_int_equal(qn_f32_bf16(qn_bits_f32(h << 16 | 0x8000)), h + (h & 1));
    }
    assert_true(isnan(qn_bf16_f32(qn_f32_bf16(qn_bits_f32(0x7F800001u)))));
    assert_true(isnan(qn_bf16_f32(qn_f32_bf16(qn_bits_f32(0xFFFFFFFFu)))));
}

/* Runs of the one-weight types have loops of their own: all lengths around the vector widths, from odd places. */
static void test_float_runs(void **state)
{
    (void)state;
    const qn_dtype types[] = { DT_f32, DT_f16, DT_bf16 };
    u8 raw[4 * 300];
    for (size_t i = 0; i < sizeof raw; i++) raw[i] = (u8)(qn_rng_at(7, i) & 0x3F);
    for (size_t k = 0; k < QN_COUNT(types); k++) {
        const qn_dtype_info *d = &qn_dtypes[types[k]];
        for (size_t n = 0; n < 70; n++) {
            float y[80];
            for (int i = 0; i < 80; i++) y[i] = -7;
            const u8 *p = raw + n % 5 * d->block_bytes;
            d->decode(p, y, n);
            for (size_t i = 0; i < n; i++) {
                float one;
                d->decode(p + i * d->block_bytes, &one, 1);
                assert_true(qn_f32_bits(y[i]) == qn_f32_bits(one));
            }
            assert_true(y[n] == -7);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),           cmocka_unit_test(test_decode_equals_reference),
        cmocka_unit_test(test_f16_all_values),  cmocka_unit_test(test_f16_rounding),
        cmocka_unit_test(test_bf16_all_values), cmocka_unit_test(test_float_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
