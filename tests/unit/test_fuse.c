/* test_fuse.c - plans with fused steps: when, with the bits of their parts, and what keeps them apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "kernel/tuned.h"
#include "model/fuse.h"

enum { ROWS = 5, D = 77 };
static float x[ROWS * D], h[ROWS * D], w[D];

static void fill(void)
{
    for (int i = 0; i < ROWS * D; i++) x[i] = (float)(i % 13) - 6.25f, h[i] = (float)(i % 7) * 0.125f - 0.3f;
    for (int i = 0; i < D; i++) w[i] = 1 + (float)i / D;
}

/* x += h, h = norm(x), x += h: the first two become one */
static void make(qn_plan *p)
{
    qn_err e = { 0 };
    const qn_args add = { .add = { .d = D, .x = x, .y = h } };
    const qn_args norm = { .rmsnorm = { .d = D, .y = h, .x = x, .w = w, .eps = 1e-5f } };
    assert_non_null(qn_plan_add(p, OP_add, 3, "blk.3.attn_add", &add, &e));
    assert_non_null(qn_plan_add(p, OP_rmsnorm, 3, "blk.3.ffn_norm", &norm, &e));
    assert_non_null(qn_plan_add(p, OP_add, 3, "blk.3.ffn_add", &add, &e));
}

static void run(qn_plan *p, float out[2 * ROWS * D])
{
    qn_err e = { 0 };
    const atomic_int never = 0;
    qn_pool *pool = qn_pool_open(2, &e);
    assert_true(pool && qn_plan_finish(p, 2, &e));
    fill();
    assert_true(qn_plan_run(p, pool, ROWS, 0, NULL, &never));
    memcpy(out, x, sizeof x);
    memcpy(out + ROWS * D, h, sizeof h);
    qn_pool_close(pool);
}

static void the_bits_of_the_parts(void **state)
{
    (void)state;
    float apart[2 * ROWS * D], fused[2 * ROWS * D];
    for (int isa = ISA_base; isa <= (int)qn_cpu_isa(); isa++) {
        qn_plan p = { .isa = (qn_isa)isa }, q = { .isa = (qn_isa)isa };
        qn_err e = { 0 };
        make(&p);
        make(&q);
        assert_true(qn_fuse_run(&q, &e));
        assert_int_equal(q.n, 2);
        assert_true(q.steps[0].op == OP_addnorm && q.steps[1].op == OP_add);
        assert_string_equal(q.steps[0].role, "blk.3.ffn_norm");
        run(&p, apart);
        run(&q, fused);
        assert_memory_equal(apart, fused, sizeof fused);
        qn_plan_close(&p);
        qn_plan_close(&q);
    }
}

static void what_does_not_fit_stays(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) {
        qn_plan p = { .isa = how == 3 ? ISA_ref : ISA_base };
        qn_err e = { 0 };
        make(&p);
        if (how == 0) p.steps[1].logits = true;             /* other rows */
        if (how == 1) p.steps[1].args.rmsnorm.x = h;        /* of something else */
        if (how == 2) p.steps[1].args.rmsnorm.y = x;        /* the sums would be lost */
        assert_true(qn_fuse_run(&p, &e));                   /* 3: references are run one by one */
        assert_int_equal(p.n, 3);
        assert_int_equal(p.steps[1].logits, how == 0);
        qn_plan_close(&p);
    }
}

static void kept_apart(void **state)
{
    (void)state;
    static const char *const asked[] = { "addnorm=apart", "add=add_ref", "addnorm=addnorm_f32_base_gen" };
    for (int i = 0; i < 3; i++) {
        qn_tuned t = { 0 };
        qn_err e = { 0 };
        qn_plan p = { .isa = ISA_base, .tuned = &t };
        assert_true(qn_tuned_override(&t, asked[i], &e));
        make(&p);
        assert_true(qn_fuse_run(&p, &e));
        assert_int_equal(p.n, i == 2 ? 2 : 3);
        if (i == 0) assert_non_null(strstr(p.steps[0].choice[0].reason, "; apart from the next, asked for by --kernel"));
        qn_plan_close(&p);
        qn_tuned_close(&t);
    }
    const qn_tuned_row row = { .op = OP_addnorm, .shape = "d=77", .bucket = -1, .gain = 1.07, .error = 0.02, .date = "2026-11-20" };
    qn_tuned t = { 0 };
    qn_err e = { 0 };
    qn_plan p = { .isa = ISA_base, .tuned = &t };
    assert_true(qn_tuned_add(&t, &row, &e));
    make(&p);
    assert_true(qn_fuse_run(&p, &e));
    assert_int_equal(p.n, 3);
    assert_non_null(strstr(p.steps[0].choice[0].reason, "; tuned: apart from the next, 1.07x addnorm (+- 2 %), 2026-11-20"));
    assert_null(strstr(p.steps[1].choice[0].reason, "apart"));
    t.at[0].shape = "d=78"; /* another size's */
    assert_true(qn_fuse_run(&p, &e));
    assert_int_equal(p.n, 2);
    qn_plan_close(&p);
    qn_tuned_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_bits_of_the_parts), cmocka_unit_test(what_does_not_fit_stays),
                                        cmocka_unit_test(kept_apart) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
