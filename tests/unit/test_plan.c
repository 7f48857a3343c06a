/* test_plan.c - what qn_plan_finish says of steps that stream: which weights come next, by the unit in which lanes share them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernel/bpanel.h"
#include "kernel/fpanel.h"
#include "kernel/plan.h"

enum { D = 256, BIG = 4096, SMALL = 64, N_KINDS = 4 };
static float x[D], y[BIG], norm_w[D];
static u8 weights[N_KINDS][64]; /* nobody reads them here: places to tell apart */

/* A product of one of four kinds; rows are not a multiple of a panel. */
static qn_args product(int kind, int rows, qn_op *op, size_t *unit_bytes)
{
    static const qn_op ops[N_KINDS] = { OP_linear, OP_qlinear, OP_blinear, OP_plinear };
    const size_t units[N_KINDS] = { qn_dtype_bytes(DT_q4_k, D), qn_panel_bytes(DT_q8_0, QN_PANEL, D), qn_twin_bytes(D),
                                    qn_fpanel_bytes(DT_f16, QN_PANEL, D) };
    *op = ops[kind];
    *unit_bytes = units[kind];
    const u8 *at = weights[kind];
    i8 *bytes = (i8 *)x;
    u16 *halves = (u16 *)x;
    switch (kind) {
    case 0: return (qn_args){ .linear = { .rows = rows, .cols = D, .y = y, .x = x, .w = at, .type = DT_q4_k } };
    case 1: return (qn_args){ .qlinear = { .rows = rows, .cols = D, .y = y, .x.q = bytes, .panels = at, .type = DT_q8_0 } };
    case 2: return (qn_args){ .blinear = { .rows = rows, .cols = D, .y = y, .x = halves, .panels = at, .type = DT_f16 } };
    default: return (qn_args){ .plinear = { .rows = rows, .cols = D, .y = y, .x = x, .panels = at, .type = DT_f16 } };
    }
}

static void add_product(qn_plan *p, int kind, int rows, const char *role)
{
    qn_err e = { 0 };
    qn_op op;
    size_t unit;
    const qn_args a = product(kind, rows, &op, &unit);
    assert_non_null(qn_plan_add(p, op, 0, role, &a, &e));
}

static void add_norm(qn_plan *p)
{
    qn_err e = { 0 };
    const qn_args norm = { .rmsnorm = { .d = D, .y = y, .x = x, .w = norm_w, .eps = 1e-5f } };
    assert_non_null(qn_plan_add(p, OP_rmsnorm, 0, "norm", &norm, &e));
}

/* Behind each step comes the next product that is large enough, whatever lies between; behind the last one the first. */
static void the_next_product_comes_next(void **state)
{
    (void)state;
    qn_plan p = { .isa = ISA_base };
    qn_err e = { 0 };
    for (int kind = 0; kind < N_KINDS; kind++) {
        add_norm(&p);
        add_product(&p, kind, SMALL, "small");
        add_product(&p, kind, BIG - 7, "big");
    }
    add_norm(&p);
    assert_true(qn_plan_finish(&p, 2, &e));
    for (int i = 0; i < p.n; i++) {
        const int kind = (i + 1) / 3 % N_KINDS; /* big ones are steps 2, 5, 8, 11 */
        qn_op op;
        size_t unit;
        product(kind, BIG - 7, &op, &unit);
        assert_int_equal(p.steps[i].streams, i % 3 == 2);
        assert_ptr_equal(p.steps[i].soon.at, weights[kind]);
        assert_int_equal(p.steps[i].soon.units, op == OP_linear ? BIG - 7 : op == OP_blinear ? BIG / 32 : BIG / QN_PANEL);
        assert_int_equal(p.steps[i].soon.unit_bytes, unit);
    }
    qn_plan_close(&p);
}

static void without_products_nothing_comes(void **state)
{
    (void)state;
    qn_plan p = { .isa = ISA_base };
    qn_err e = { 0 };
    add_norm(&p);
    add_product(&p, 1, SMALL, "small");
    assert_true(qn_plan_finish(&p, 2, &e));
    for (int i = 0; i < p.n; i++) assert_int_equal(p.steps[i].soon.units, 0);
    qn_plan_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_product_comes_next), cmocka_unit_test(without_products_nothing_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
