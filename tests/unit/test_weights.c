/* test_weights.c - device rows hold what stored rows hold: every type packed, read back by the description in abi.h, compared with
 * the type's own decoder. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* cmocka wants these first */
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "kernel/cuda/weights.h"
#include "device_row.h"

#define COLS 768

static void rows_survive(void **state)
{
    (void)state;
    float x[COLS], want[COLS];
    for (int i = 0; i < COLS; i++) x[i] = (float)(qn_rng_unit(7, (u64)i) - 0.5) * (i % 96 < 32 ? 4.f : 0.5f);
    for (int t = 0; t < (int)N_DTYPES; t++) {
        const qn_dtype type = (qn_dtype)t;
        u8 stored[COLS * 4] = { 0 };
        if (qn_dtypes[t].encode) qn_dtypes[t].encode(x, stored, COLS);
        const qn_wmat w = qn_wmat_of(type, 3, COLS);
        u8 *row = qn_new(w.row_bytes, NULL);
        assert_non_null(row);
        assert_int_equal(w.row_bytes % 16, 0);
        qn_wmat_pack_row(&w, type, stored, row);
        qn_dtypes[t].decode(stored, want, COLS);
        for (u32 c = 0; c < COLS; c++) {
            const float got = row_weight(w.kind, w.high, w.scale, row, c), most = fabsf(want[c]) + (w.kind == QN_W_q4m ? 4 : 0);
            if (fabsf(got - want[c]) > most / 1024)
                fail_msg("%s, column %u: %g, wanted %g", qn_dtypes[t].name, c, (double)got, (double)want[c]);
        }
        qn_free(row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(rows_survive) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
