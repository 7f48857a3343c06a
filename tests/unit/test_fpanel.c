/* test_fpanel.c - packing floats loses nothing: every weight lies where qn_fpanel_at says, with the file's bits; the rows that fill
 * up the last panel are zeros. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "kernel/fpanel.h"

enum { ROWS = 37, COLS = 131, PANELS = 3 };

static void same_bits(qn_dtype t)
{
    static const u8 zeros[4];
    const size_t size = qn_dtypes[t].block_bytes, bytes = qn_fpanel_bytes(t, ROWS, COLS);
    qn_err e;
    u8 *w = qn_new((size_t)ROWS * COLS * size, &e), *panels = qn_alloc(bytes, &e);
    assert_non_null(w);
    assert_non_null(panels);
    assert_int_equal(bytes, (size_t)PANELS * QN_PANEL * COLS * size);
    for (size_t i = 0; i < (size_t)ROWS * COLS * size; i++) w[i] = (u8)qn_rng_at((u64)t, i);
    memset(panels, 0xEE, bytes);
    qn_fpanel_pack(t, w, ROWS, COLS, 0, 1, panels);
    qn_fpanel_pack(t, w, ROWS, COLS, 1, PANELS, panels); /* in two parts, as two lanes would */
    for (int r = 0; r < PANELS * QN_PANEL; r++)
        for (int c = 0; c < COLS; c++) {
            const u8 *want = r < ROWS ? w + ((size_t)r * COLS + (size_t)c) * size : zeros;
            assert_memory_equal(panels + qn_fpanel_at(COLS, r, c) * size, want, size);
        }
    qn_free(w);
    qn_free(panels);
}

static void every_type(void **state)
{
    (void)state;
    int n = 0;
    for (int t = 0; t < (int)N_DTYPES; t++) {
        if (qn_fpanel_bytes((qn_dtype)t, 1, 1) == 0) continue;
        same_bits((qn_dtype)t);
        n++;
    }
    assert_int_equal(n, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_type) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
