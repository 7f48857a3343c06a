/* test_probe.c - the check catches what it is there for: each planted kernel is wrong in one way, and is told by its name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "kernel/ref/ref.h"
#include "probe/probe.h"

/* ---- kernels that are right but for one thing */

static bool last(qn_lane lane) { return lane.i == lane.n - 1; }

static void one_off(const void *args, qn_lane lane)
{
    const qn_linear *a = args;
    qn_linear_ref(args, lane);
    if (lane_end(a->rows, lane) == a->rows) a->y[a->rows - 1] *= 1.001f;
}

static void one_nan(const void *args, qn_lane lane)
{
    const qn_linear *a = args;
    qn_linear_ref(args, lane);
    if (last(lane)) a->y[0] = NAN;
}

static void forgets_one(const void *args, qn_lane lane)
{
    qn_linear a = *(const qn_linear *)args;
    a.rows--;
    qn_linear_ref(&a, lane);
}

static void writes_behind(const void *args, qn_lane lane)
{
    const qn_linear *a = args;
    qn_linear_ref(args, lane);
    if (last(lane)) a->y[(size_t)a->n * (size_t)a->rows] = 0;
}

static void writes_before(const void *args, qn_lane lane)
{
    const qn_linear *a = args;
    qn_linear_ref(args, lane);
    a->y[-1] = 0;
}

static void writes_input(const void *args, qn_lane lane)
{
    const qn_linear *a = args;
    qn_linear_ref(args, lane);
    if (last(lane)) memset((void *)(uintptr_t)a->x, 0, sizeof(float));
}

static void reads_behind(const void *args, qn_lane lane)
{
    const qn_linear *a = args;
    volatile float sink = a->x[(size_t)a->n * (size_t)a->cols];
    (void)sink;
    qn_linear_ref(args, lane);
}

/* One unit in the last place: no bound sees it, only the bits do. */
static void depends_on_lanes(const void *args, qn_lane lane)
{
    const qn_linear *a = args;
    qn_linear_ref(args, lane);
    if (last(lane) && lane.n == 3) a->y[a->rows - 1] = nextafterf(a->y[a->rows - 1], INFINITY);
}

static void depends_on_rows(const void *args, qn_lane lane)
{
    const qn_linear *a = args;
    qn_linear_ref(args, lane);
    if (last(lane) && a->n == 1 && isfinite(a->y[a->rows - 1])) a->y[a->rows - 1] = nextafterf(a->y[a->rows - 1], INFINITY);
}

static void lanes_overlap(const void *args, qn_lane lane)
{
    (void)lane;
    qn_add_ref(args, lane_of(0, 1));
}

/* Lanes write to one place without a word to each other: right as long as they come one after the other. */
static volatile int shared_scratch;

static void races(const void *args, qn_lane lane)
{
    const qn_linear *a = args;
    const int first = lane_begin(a->rows, lane);
    qn_linear_ref(args, lane);
    shared_scratch = lane.i;
    usleep(300);
    if (shared_scratch != lane.i && first < lane_end(a->rows, lane)) a->y[first] += 1;
}

static void hides_infinity(const void *args, qn_lane lane)
{
    const qn_swiglu *a = args;
    const size_t n = (size_t)a->n * (size_t)a->d;
    qn_swiglu_ref(args, lane);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(a->gate[i])) a->gate[i] = 0;
}

static void crashes(const void *args, qn_lane lane)
{
    qn_linear_ref(args, lane);
    raise(SIGSEGV);
}

static void illegal(const void *args, qn_lane lane)
{
    qn_linear_ref(args, lane);
    raise(SIGILL);
}

static void hangs(const void *args, qn_lane lane)
{
    (void)args, (void)lane;
    for (volatile int forever = 1; forever;) { }
}

static void wrong_page(const void *args, qn_lane lane)
{
    qn_attend a = *(const qn_attend *)args;
    i32 pages[256] = { 0 };
    qn_rows at = *a.at;
    memcpy(pages, at.pages, 21 * sizeof *pages); /* every case has at least seven pages for each of three sequences */
    pages[at.first[0]] = pages[at.first[0] + 1];
    at.pages = pages;
    a.at = &at;
    qn_attend_ref(&a, lane);
}

static void check(qn_op op, qn_kernel_fn fn, const char *why)
{
    const qn_kernel planted = { .name = "planted", .op = op, .type = DT_f32, .isa = ISA_base, .variant = "planted", .fn = fn,
                                .slack = 1 };
    const qn_probe_opts o = { .op = -1, .type = -1, .seed = 7, .timeout_s = fn == hangs ? 1 : 20 };
    qn_probe_result r;
    qn_err e;
    assert_true(qn_probe_kernel(&planted, &o, &r, &e));
    assert_string_equal(r.kernel->name, "planted");
    assert_int_equal(r.seed, 7);
    if (!why) {
        assert_string_equal(r.why, "");
        assert_true(r.passed && r.cases > 0);
        return;
    }
    assert_false(r.passed);
    if (!strstr(r.why, why)) fail_msg("expected '%s', found '%s' at %s", why, r.why, r.at);
    assert_true(strlen(r.at) > 0);
}

static void test_right_passes(void **state)
{
    (void)state;
    check(OP_linear, qn_linear_ref, NULL);
    check(OP_attend, qn_attend_ref, NULL);
    check(OP_add, qn_add_ref, NULL);
}

static void test_wrong_values(void **state)
{
    (void)state;
    check(OP_linear, one_off, "bound");
    check(OP_linear, one_nan, "y[0] is ");
    check(OP_linear, forgets_one, "y[");
    check(OP_swiglu, hides_infinity, "gate[");
    check(OP_attend, wrong_page, "y[");
}

static void test_wrong_memory(void **state)
{
    (void)state;
    check(OP_linear, writes_behind, "crashes");
    check(OP_linear, writes_before, "around y");
    check(OP_linear, writes_input, "into or around x");
    check(OP_linear, reads_behind, "crashes");
}

static void test_wrong_law(void **state)
{
    (void)state;
    check(OP_linear, depends_on_lanes, "one lane");
    check(OP_linear, depends_on_rows, "all rows at once");
    check(OP_add, lanes_overlap, "one lane");
    check(OP_linear, races, "one lane");
}

static void test_crash_and_hang(void **state)
{
    (void)state;
    check(OP_linear, crashes, "crashes: ");
    check(OP_linear, illegal, "crashes: ");
    check(OP_linear, hangs, "does not end");
}

static bool stop(void *user, const qn_probe_result *r)
{
    (void)r;
    return --*(int *)user > 0;
}

static void test_filters(void **state)
{
    (void)state;
    int left = 100, failed = 0;
    qn_err e;
    qn_probe_opts o = { .op = OP_add, .type = -1, .isa = ISA_ref, .seed = 1 };
    assert_true(qn_probe_check(&o, stop, &left, &failed, &e));
    assert_int_equal(left, 99);
    o = (qn_probe_opts){ .op = OP_add, .type = DT_q4_k, .seed = 1 };
    assert_false(qn_probe_check(&o, stop, &left, &failed, &e));
    assert_int_equal(e.code, QN_EUSAGE);
    o = (qn_probe_opts){ .op = OP_linear, .type = DT_f32, .seed = 1 };
    left = 2;
    assert_false(qn_probe_check(&o, stop, &left, &failed, &e));
    assert_int_equal(e.code, QN_ECANCELLED);
    assert_int_equal(failed, 0);
}

/* Without memory the check says so; it calls no kernel wrong. */
static void test_no_memory(void **state)
{
    (void)state;
    const qn_kernel k = { .name = "planted", .op = OP_add, .type = DT_f32, .isa = ISA_base, .variant = "planted",
                          .fn = qn_add_ref, .slack = 1 };
    const qn_probe_opts o = { .op = -1, .type = -1, .seed = 7 };
    int refused = 0;
    for (u64 n = 1; n < 64; n++) {
        qn_probe_result r;
        qn_err e;
        qn_mem_fail_at(n, n % 2);
        const bool ok = qn_probe_kernel(&k, &o, &r, &e);
        qn_mem_fail_at(0, false);
        assert_string_equal(r.why, "");
        assert_int_equal(r.passed, ok);
        if (ok) continue;
        assert_int_equal(e.code, QN_ENOMEM);
        refused++;
    }
    assert_true(refused > 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_passes), cmocka_unit_test(test_wrong_values),    cmocka_unit_test(test_wrong_memory),
        cmocka_unit_test(test_wrong_law),    cmocka_unit_test(test_crash_and_hang), cmocka_unit_test(test_filters),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
