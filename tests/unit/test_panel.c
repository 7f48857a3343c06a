/* test_panel.c - packing loses nothing: every weight of every type comes out of its panel as the type's own decoder gives it,
 * and rows that fill up the last panel are zeros. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "base/half.h"
#include "base/mem.h"
#include "base/rng.h"
#include "kernel/bpanel.h"

enum { ROWS = 37, COLS = 512, PANELS = 3 };

static void same_weights(qn_dtype t)
{
    const size_t row_bytes = qn_dtype_bytes(t, COLS), bytes = qn_panel_bytes(t, ROWS, COLS);
    qn_err e;
    u8 *w = qn_new(ROWS * row_bytes, &e), *panels = qn_alloc(bytes, &e);
    float x[COLS], plain[COLS], packed[COLS];
    assert_non_null(w);
    assert_non_null(panels);
    for (int r = 0; r < ROWS; r++) {
        for (int i = 0; i < COLS; i++) x[i] = (float)(qn_rng_unit((u64)t, (u64)(r * COLS + i)) - 0.3);
        qn_dtypes[t].encode(x, w + (size_t)r * row_bytes, COLS);
    }
    memset(panels, 0xEE, bytes);
    qn_panel_pack(t, w, ROWS, COLS, 1, PANELS, panels);
    qn_panel_pack(t, w, ROWS, COLS, 0, 1, panels); /* in two parts, as two lanes would; through the middle of a twin */
    for (int r = 0; r < ROWS; r++) {
        qn_dtypes[t].decode(w + (size_t)r * row_bytes, plain, COLS);
        qn_panel_part(t, panels, COLS, r, 0, COLS, packed);
        float most = 0;
        for (int i = 0; i < COLS; i++) most = fmaxf(most, fabsf(plain[i]));
        for (int i = 0; i < COLS; i++) {
            /* bf16 has 8 bits; a minimum may be added in another order */
            const float want = t == DT_f16 ? qn_bf16_f32(qn_f32_bf16(plain[i])) : plain[i];
            const float off = qn_panel_of(t) != PANEL_bf16 ? 1e-6f : fabsf(want) > 0x1p-14f * most ? 0 : 0x1p-15f * most;
            if (fabsf(packed[i] - want) > off) fail_msg("%s row %d column %d: %g, not %g", qn_dtypes[t].name, r, i, (double)packed[i], (double)want);
        }
    }
    for (int r = ROWS; r < PANELS * QN_PANEL; r++) {
        qn_panel_part(t, panels, COLS, r, 0, COLS, packed);
        for (int i = 0; i < COLS; i++) assert_true(packed[i] == 0);
    }
    qn_free(w);
    qn_free(panels);
}

static void every_type(void **state)
{
    (void)state;
    int n = 0;
    for (int t = 0; t < (int)N_DTYPES; t++) {
        if (qn_panel_of((qn_dtype)t) == PANEL_none) continue;
        same_weights((qn_dtype)t);
        n++;
    }
    assert_int_equal(n, 10);
}

/* The window of exponents of bf16 in 12 bits: its ends, what lies below, and what no trained row has. */
static void window(void **state)
{
    (void)state;
    static const struct { float most, in, out; } cases[] = {
        { 1, 0, 0 }, { 1, -0.0f, 0 }, { 1, 0x1.02p-15f, 0x1.02p-15f }, { -1.5f, -0x1.fep-15f, -0x1.fep-15f },
        { 1, 0x1p-15f, 0x1.02p-15f },   /* the code of the least exponent without a fraction is zero's */
        { 1, 0x1.8p-16f, 0x1.02p-15f }, { 1, 0x1p-17f, 0 }, { 1, -0x1p-17f, 0 }, { 0x1p127f, 0x1.4p112f, 0x1.4p112f },
        { 0x1.fep-112f, 0x1.02p-126f, 0x1.02p-126f }, { 0, 0, 0 }, { 0x1p-125f, 0x1p-126f, 0x1p-126f },
        { INFINITY, 0x1.02p113f, 0x1.02p113f }, { -INFINITY, -INFINITY, -INFINITY },
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        u16 w[32] = { [30] = qn_f32_bf16(cases[k].most) };
        for (int at = 0; at < 8; at++) { /* every place of a quad */
            _Alignas(64) u8 panel[2 * (64 + 4 * 3 * 64)];
            float out[32];
            w[at] = qn_f32_bf16(cases[k].in);
            assert_int_equal(qn_panel_bytes(DT_bf16, 1, 32), sizeof panel);
            qn_panel_pack(DT_bf16, w, 1, 32, 0, 1, panel);
            qn_panel_part(DT_bf16, panel, 32, 0, 0, 32, out);
            if (out[at] != cases[k].out) fail_msg("case %zu at %d: %a, not %a", k, at, (double)out[at], (double)cases[k].out);
            assert_true(out[30] == cases[k].most && out[31] == 0);
            w[at] = 0;
        }
    }
}

/* The fast way to pack floats gives the bytes of the plain one: every number there is, next to every kind of neighbour. */
static void fast_packing(void **state)
{
    (void)state;
    if (qn_cpu_isa() != ISA_avx512bf16) skip();
    enum { W = 256, H = 19 }; /* a panel and three rows */
    static u16 w[H * W];
    _Alignas(64) static u8 plain[2 * (64 + W / 8 * 192)], fast[sizeof plain];
    for (int type = 0; type < 2; type++)
        for (u32 from = 0; from < 0x10000; from += 61) {
            const qn_dtype t = type ? DT_f16 : DT_bf16;
            for (u32 i = 0; i < H * W; i++) w[i] = (u16)(from + (i % W < 64 ? i : i / W % 3 ? i % 61 * 37 : i % 2 ? 0 : 0x8000));
            for (int panel = 0; panel < 2; panel++) {
                qn_bpanel_plain(t, w, H, W, panel, (qn_twin *)(void *)plain);
                qn_bpanel_pack(t, w, H, W, panel, (qn_twin *)(void *)fast);
            }
            assert_memory_equal(plain, fast, sizeof plain); /* one twin */
        }
}

static void sizes(void **state)
{
    (void)state;
    assert_int_equal(qn_panel_bytes(DT_f32, 16, 64), 0);
    assert_int_equal(qn_panel_bytes(DT_q4_k, 16, 96), 0); /* no whole block */
    assert_int_equal(qn_panel_bytes(DT_f16, 16, 48), 0);
    assert_int_equal(qn_panel_bytes(DT_q8_0, 17, 64), 2 * 2 * 16 * 34);
    assert_int_equal(qn_panel_bytes(DT_bf16, 16, 64), 2 * (64 + 16 * 64 * 3 / 2)); /* whole twins */
    assert_int_equal(qn_panel_bytes(DT_bf16, 33, 64), 2 * qn_panel_bytes(DT_bf16, 32, 64));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_type), cmocka_unit_test(window), cmocka_unit_test(fast_packing), cmocka_unit_test(sizes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
