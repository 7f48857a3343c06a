/* test_panel.c - packing loses nothing: every weight of every type comes out of its panel as the type's own decoder gives it,
 * and rows that fill up the last panel are zeros. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "base/rng.h"
#include "kernel/panel.h"

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
    qn_panel_pack(t, w, ROWS, COLS, 0, 2, panels);
    qn_panel_pack(t, w, ROWS, COLS, 2, PANELS, panels); /* in two parts, as two lanes would */
    for (int r = 0; r < ROWS; r++) {
        qn_dtypes[t].decode(w + (size_t)r * row_bytes, plain, COLS);
        qn_panel_part(t, panels, COLS, r, 0, COLS, packed);
        for (int i = 0; i < COLS; i++) {
            /* bf16 has 8 bits; a minimum may be added in another order */
            const float want = t == DT_f16 ? qn_bf16_f32(qn_f32_bf16(plain[i])) : plain[i];
            if (fabsf(packed[i] - want) > 1e-6f) fail_msg("%s row %d column %d: %g, not %g", qn_dtypes[t].name, r, i, (double)packed[i], (double)want);
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

static void sizes(void **state)
{
    (void)state;
    assert_int_equal(qn_panel_bytes(DT_f32, 16, 64), 0);
    assert_int_equal(qn_panel_bytes(DT_q4_k, 16, 96), 0); /* no whole block */
    assert_int_equal(qn_panel_bytes(DT_f16, 16, 48), 0);
    assert_int_equal(qn_panel_bytes(DT_q8_0, 17, 64), 2 * 2 * 16 * 34);
    assert_int_equal(qn_panel_bytes(DT_bf16, 16, 64), 16 * 64 * 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_type), cmocka_unit_test(sizes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
