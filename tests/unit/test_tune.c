/* test_tune.c - winners out of contests that were made up: noise wins nothing, threads where one size says it all, fused or apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "kernel/plan.h"
#include "probe/tune.h"

enum { AT_MOST = 4 };
typedef struct made { qn_contest c; qn_contender at[AT_MOST]; } made;

static const qn_kernel *kernel(const char *name)
{
    for (int i = 0; i < qn_n_kernels; i++)
        if (!strcmp(qn_kernels[i].name, name)) return &qn_kernels[i];
    fail_msg("no kernel %s", name);
    return NULL;
}

/* A contest of this shape; the first contender is the default. */
static void open_made(made *m, const char *shape)
{
    qn_err e = { 0 };
    *m = (made){ .c = { .chosen = 0 } };
    if (!qn_shape_parse(shape, &m->c.shape, &e)) fail_msg("%s", e.msg);
    m->c.at = m->at;
}

static void enter(made *m, const char *name, int lanes, double ns, double error)
{
    const qn_stats s = { .n = 9, .min = ns, .p50 = ns, .lo = ns * (1 - error), .hi = ns * (1 + error) };
    m->at[m->c.n++] = (qn_contender){ .name = name, .kernel = kernel(name), .lanes = lanes, .checked = true, .right = true,
                                      .warm = s, .cold = s };
}

static const qn_tuned_row *only_row(const qn_contest *all, int n, qn_tuned *t)
{
    qn_err e = { 0 };
    *t = (qn_tuned){ 0 };
    assert_true(qn_tune(all, n, 2, "2026-11-20", t, &e));
    assert_int_equal(t->n, 1);
    return t->at;
}

static void noise_wins_nothing(void **state)
{
    (void)state;
    made m;
    qn_tuned t;
    open_made(&m, "op=add n=1 d=64");
    enter(&m, "add_f32_base_gen", 1, 100, 0.1);
    enter(&m, "add_ref", 1, 90, 0.1);
    const qn_tuned_row *r = only_row(&m.c, 1, &t);
    assert_string_equal(r->kernel->name, "add_f32_base_gen");
    assert_true(r->gain == 1); /* said all the same: a built-in table is not asked then */
    qn_tuned_close(&t);
    open_made(&m, "op=add n=1 d=64");
    enter(&m, "add_f32_base_gen", 1, 100, 0.01);
    enter(&m, "add_ref", 1, 90, 0.01);
    m.at[1].right = false; /* fast and wrong */
    assert_string_equal(only_row(&m.c, 1, &t)->kernel->name, "add_f32_base_gen");
    qn_tuned_close(&t);
    m.at[1].right = true;
    m.at[1].warm = (qn_stats){ .n = 9, .min = 20, .p50 = 20, .lo = 15, .hi = 25 };
    assert_string_equal(only_row(&m.c, 1, &t)->kernel->name, "add_f32_base_gen"); /* far ahead, but who knows by how much */
    qn_tuned_close(&t);
    m.at[1].warm = m.at[1].cold;
    r = only_row(&m.c, 1, &t);
    assert_string_equal(r->kernel->name, "add_ref");
    assert_true(r->gain > 1.11 && r->gain < 1.12);
    qn_tuned_close(&t);
}

static void threads_of_attention(void **state)
{
    (void)state;
    made m;
    qn_tuned t;
    open_made(&m, "op=attend type=f16 n=1 heads=4 kv=2 d=16 depth=127");
    enter(&m, "attend_f16_base_gen", 0, 100, 0.01);
    enter(&m, "attend_f16_base_gen", 1, 50, 0.01);
    assert_int_equal(only_row(&m.c, 1, &t)->lanes, 0); /* a longer context may want all of them */
    qn_tuned_close(&t);
    m.c.deepest = true;
    assert_int_equal(only_row(&m.c, 1, &t)->lanes, 1);
    qn_tuned_close(&t);
}

static void a_meeting_has_its_price(void **state)
{
    (void)state;
    made m;
    qn_tuned t;
    open_made(&m, "op=add n=1 d=64");
    enter(&m, "add_f32_base_gen", 1, 900, 0.01);
    enter(&m, "add_f32_base_gen", 0, 500, 0.01);
    assert_true(only_row(&m.c, 1, &t)->gain == 1); /* 0.4 us are not worth it */
    qn_tuned_close(&t);
    open_made(&m, "op=add n=1 d=64");
    enter(&m, "add_f32_base_gen", 1, 9000, 0.01);
    enter(&m, "add_f32_base_gen", 0, 5000, 0.01);
    assert_int_equal(only_row(&m.c, 1, &t)->lanes, 2);
    qn_tuned_close(&t);
}

static void fused_or_apart(void **state)
{
    (void)state;
    made m[2];
    qn_contest both[2];
    qn_tuned t;
    open_made(&m[0], "op=addnorm n=1 d=64");
    open_made(&m[1], "op=addnorm n=256 d=64");
    for (int i = 0; i < 2; i++) enter(&m[i], "addnorm_f32_base_gen", 0, 100, 0.01);
    m[0].c.parts_ns = 80;
    m[1].c.parts_ns = 99;
    for (int i = 0; i < 2; i++) both[i] = m[i].c;
    const qn_tuned_row *r = only_row(both, 2, &t);
    assert_null(r->kernel);
    assert_int_equal(r->bucket, -1);
    assert_true(r->gain == 1.25 && r->op == OP_addnorm);
    assert_non_null(qn_tuned_apart(&t, OP_addnorm, &both[1].shape.args));
    assert_null(qn_tuned_find(&t, OP_addnorm, &both[1].shape.args, BUCKET_one)); /* it is no kernel */
    qn_tuned_close(&t);
    both[1].parts_ns = 140; /* one is faster here, the other there: fused, as without tuning */
    qn_err e = { 0 };
    t = (qn_tuned){ 0 };
    assert_true(qn_tune(both, 2, 2, "2026-11-20", &t, &e));
    assert_int_equal(t.n, 2);
    assert_true(t.at[1].kernel && t.at[1].over_parts == 1.4);
    assert_null(qn_tuned_apart(&t, OP_addnorm, &both[1].shape.args));
    qn_tuned_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(noise_wins_nothing), cmocka_unit_test(threads_of_attention),
                                        cmocka_unit_test(a_meeting_has_its_price),
                                        cmocka_unit_test(fused_or_apart) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
