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
        { "Q2_K", 10, 256, 84, 0 },  { "Q3_K", 11, 256, 110, 0 }, { "Q4_K", 12, 256, 144, 1 }, { "Q5_K", 13, 256, 176, 1 },
        { "Q6_K", 14, 256, 210, 1 }, { "IQ4_NL", 20, 32, 18, 0 }, { "IQ4_XS", 23, 256, 136, 0 }, { "MXFP4", 39, 32, 17, 0 },
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

/* ---- encoders ----------------------------------------------------------------------------------------------------- */

static void test_encode_equals_reference(void **state)
{
    (void)state;
    const qn_dtype types[] = { DT_q8_0, DT_q4_0, DT_q4_1, DT_q5_0, DT_q5_1 };
    size_t n_x;
    u8 *x = slurp("encode", "f32", &n_x);
    assert_true(n_x > 4096);
    for (size_t k = 0; k < QN_COUNT(types); k++) {
        const qn_dtype_info *d = &qn_dtypes[types[k]];
        size_t n_want;
        u8 *want = slurp(d->name, "encoded", &n_want), *got = calloc(1, n_want);
        assert_non_null(got);
        assert_int_equal(n_want, qn_dtype_bytes(types[k], n_x / 4));
        d->encode((const float *)(const void *)x, got, n_x / 4);
        for (size_t i = 0; i < n_want; i++)
            if (got[i] != want[i]) fail_msg("%s: block %zu differs at byte %zu", d->name, i / d->block_bytes, i % d->block_bytes);
        free(want), free(got);
    }
    free(x);
}

/* Sum of 12 uniform draws: close enough to a gaussian, and the same on every machine. */
static float gauss(u64 seed, u64 i)
{
    double v = -6;
    for (u64 k = 0; k < 12; k++) v += qn_rng_unit(seed, 12 * i + k);
    return (float)v;
}

static double error_of(qn_dtype t, const float *x, size_t n)
{
    const qn_dtype_info *d = &qn_dtypes[t];
    u8 *blocks = malloc(qn_dtype_bytes(t, n));
    float *y = malloc(n * sizeof *y);
    assert_true(blocks && y);
    d->encode(x, blocks, n);
    d->decode(blocks, y, n);
    double err = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        err += ((double)y[i] - (double)x[i]) * ((double)y[i] - (double)x[i]);
        all += (double)x[i] * (double)x[i];
    }
    free(blocks), free(y);
    return sqrt(err / all);
}

/* Relative RMS error on gaussian weights. llama.cpp's encoders leave .0714, .0362 and .0178 for the three K types. */
static void test_error_on_gaussian(void **state)
{
    (void)state;
    const struct { qn_dtype t; double most; } want[] = {
        { DT_f32, 0 },       { DT_f16, 0.00025 },  { DT_bf16, 0.0018 },  { DT_q8_0, 0.0056 }, { DT_q4_0, 0.0885 }, { DT_q4_1, 0.0800 },
        { DT_q5_0, 0.0440 }, { DT_q5_1, 0.0390 },  { DT_q4_k, 0.0706 },  { DT_q5_k, 0.0350 }, { DT_q6_k, 0.0172 },
    };
    enum { N = 256 * 128 };
    static float x[N];
    for (int scale = 0; scale < 3; scale++) {
        for (size_t i = 0; i < N; i++) x[i] = gauss(3, i) * (scale == 0 ? 0.02f : scale == 1 ? 1 : 100);
        for (size_t k = 0; k < QN_COUNT(want); k++) {
            const double err = error_of(want[k].t, x, N);
            if (scale == 0) printf("  %-5s %6.3f bits  rms error %.5f\n", qn_dtypes[want[k].t].name,
                                   8.0 * (double)qn_dtypes[want[k].t].block_bytes / qn_dtypes[want[k].t].block, err);
            if (!(err <= want[k].most)) fail_msg("%s: error %.5f, at most %.5f", qn_dtypes[want[k].t].name, err, want[k].most);
        }
    }
}

/* Blocks of one value, of zeros, all above or below zero, one outlier: what a search may trip over. */
static void test_encode_shapes(void **state)
{
    (void)state;
    const struct { float base, step, outlier; double most; } shapes[] = {
        { 0, 0, 0, 0 },             { 0.25f, 0, 0, 0.02 },   { -0.25f, 0, 0, 0.02 },  { 1, 0.001f, 0, 0.05 },
        { -1, 0.001f, 0, 0.05 },    { 0, 0.01f, 0, 0.065 },   { 0, 0, 3, 0.02 },       { 0, 0, -3, 0.02 },
        { 0, 1e-5f, 0, 0.065 },      { 300, 1, 0, 0.06 },     { -3e-3f, 1e-6f, 0, 0.05 },
    };
    for (size_t k = 0; k < QN_COUNT(shapes); k++) {
        float x[512];
        for (int i = 0; i < 512; i++) x[i] = shapes[k].base + shapes[k].step * (float)(i % 32);
        if (shapes[k].outlier != 0) x[77] = shapes[k].outlier;
        for (int t = 0; t < N_DTYPES; t++) {
            if (!qn_dtypes[t].encode) continue;
            if (k == 0) {
                u8 blocks[2048];
                float y[512];
                qn_dtypes[t].encode(x, blocks, 512);
                qn_dtypes[t].decode(blocks, y, 512);
                for (int i = 0; i < 512; i++) assert_true(y[i] == 0);
                continue;
            }
            const double err = error_of((qn_dtype)t, x, 512);
            if (!(err <= shapes[k].most)) fail_msg("%s: shape %zu has error %g", qn_dtypes[t].name, k, err);
        }
    }
}

/* NaN, infinities, huge and tiny values: no undefined step (the sanitizer watches), and what is decoded is finite, except
 * where the type itself can say NaN and infinity. */
static void test_encode_hostile(void **state)
{
    (void)state;
    const float odd[] = { NAN, -NAN, INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, 1e10f, -1e6f, FLT_MIN, -FLT_MIN, 1e-45f, -1e-45f,
                          1e-40f, 0, -0.0f, 65504, 65520, -70000, 1, 6e-8f, 5e-39f };
    for (u64 round = 0; round < 400; round++) {
        float x[256];
        const u64 kinds = 1 + round % QN_COUNT(odd), plain = round % 3;
        for (u64 i = 0; i < 256; i++) {
            const u64 r = qn_rng_at(round, i);
            x[i] = plain && r % 4 < plain ? gauss(round, i) : odd[(r >> 8) % kinds];
            if (round >= 300) x[i] = qn_bits_f32((u32)r);
            if (round < QN_COUNT(odd)) x[i] = odd[round];
        }
        for (int t = 0; t < N_DTYPES; t++) {
            if (!qn_dtypes[t].encode) continue;
            u8 blocks[1024 + 1];
            float y[256];
            blocks[qn_dtype_bytes((qn_dtype)t, 256)] = 0xA5;
            qn_dtypes[t].encode(x, blocks, 256);
            assert_int_equal(blocks[qn_dtype_bytes((qn_dtype)t, 256)], 0xA5);
            qn_dtypes[t].decode(blocks, y, 256);
            for (int i = 0; i < 256 && qn_dtypes[t].block > 1; i++) assert_true(isfinite(y[i]));
        }
    }
}

/* Bytes from a file are no promise: any of them decode to something, without an undefined step. */
static void test_decode_any_bytes(void **state)
{
    (void)state;
    for (int t = 0; t < N_DTYPES; t++)
        for (u64 round = 0; round < 200; round++) {
            u8 blocks[1024];
            float y[257];
            for (u64 i = 0; i < sizeof blocks; i += 8) memcpy(blocks + i, &(u64){ qn_rng_at(round, i) }, 8);
            y[256] = 42;
            qn_dtypes[t].decode(blocks, y, 256);
            assert_true(y[256] == 42);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),           cmocka_unit_test(test_decode_equals_reference),
        cmocka_unit_test(test_f16_all_values),  cmocka_unit_test(test_f16_rounding),
        cmocka_unit_test(test_bf16_all_values), cmocka_unit_test(test_float_runs),
        cmocka_unit_test(test_encode_equals_reference), cmocka_unit_test(test_error_on_gaussian),
        cmocka_unit_test(test_encode_shapes),   cmocka_unit_test(test_encode_hostile),
        cmocka_unit_test(test_decode_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
