/* test_analysis.c - what an analysis finds in runs that were made for it: phases that add up, lines whose slope is known, passes that
 * were disturbed on purpose, a decode step from a table of totals. Nothing is divided by nothing, and no failing allocation leaks
 * or goes unsaid. Figures of whole traces are checked by tests/e2e/test_analyze.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "report/plan_names.h"
#include "report/report.h"

#define SAMPLE "tests/data/trace/sample.jsonl"
#define assert_near(x, y, most) assert_true(fabs((x) - (y)) <= (most))

static qn_run *new_run(const char *source)
{
    qn_err e = { 0 };
    qn_run *r = qn_run_new(source, "made", &e);
    if (!r) fail_msg("%s", e.msg);
    return r;
}

static qn_series *add_series(qn_run *r, qn_phase phase, const char *kernel, const char *op, const char *role, int layer)
{
    qn_err e = { 0 };
    qn_series *s = qn_run_series(r, phase, kernel, op, role, "q8_0", layer, &e);
    assert_non_null(s);
    return s;
}

static void add_sample(qn_series *s, u64 ns)
{
    qn_err e = { 0 };
    assert_true(qn_series_add(s, ns, &e));
}

static void add_pass(qn_run *r, qn_phase phase, u64 ns, int rows, i64 pos)
{
    qn_err e = { 0 };
    qn_run_pass *p = QN_RUN_PUSH(&r->passes, &e);
    assert_non_null(p);
    *p = (qn_run_pass){ .number = (i64)r->passes.n, .ns = ns, .steps_ns = ns, .phase = phase, .rows = rows, .seqs = 1, .pos = pos };
    r->phase_ns[phase] += ns;
    r->phase_tokens[phase] += (u64)rows;
}

static void open_analysis(qn_analysis *a, const qn_run *r, const qn_analysis_options *o)
{
    qn_err e = { 0 };
    *a = (qn_analysis){ 0 };
    if (!qn_analysis_open(a, r, o, &e)) fail_msg("%s", e.msg);
}

/* ---- nothing ------------------------------------------------------------------------------------------------------- */

static void check_text(const qn_buf *b)
{
    assert_null(strstr(b->p ? b->p : "", "nan"));
    assert_null(strstr(b->p ? b->p : "", "inf"));
}

static void write_all(const qn_run *const *runs, size_t n)
{
    for (int f = 0; f < N_FORMATS; f++) {
        qn_report_options o = QN_REPORT_DEFAULT;
        qn_buf b = { 0 };
        qn_err e = { 0 };
        o.format = (qn_format)f;
        if (!qn_report_write(runs, n, &o, &b, &e)) fail_msg("%s: %s", qn_format_names[f], e.msg);
        assert_false(b.failed);
        if (f != FORMAT_html) check_text(&b); /* the page has a program in it, and words */
        qn_buf_close(&b);
    }
}

static void empty(void **state)
{
    (void)state;
    qn_run *nothing = new_run("mlc"); /* not read again for any format */
    write_all((const qn_run *const[]){ nothing }, 1);
    write_all((const qn_run *const[]){ nothing, nothing }, 2);
    add_series(nothing, PHASE_decode, "k", "op", "role", 0); /* a series without a launch */
    add_pass(nothing, PHASE_decode, 0, 0, 0);
    write_all((const qn_run *const[]){ nothing }, 1);
    for (int i = 0; i < 20; i++) add_pass(nothing, PHASE_decode, 0, 1, 5); /* all at one place, all without time */
    write_all((const qn_run *const[]){ nothing }, 1);
    qn_run_close(nothing);
    qn_err e = { 0 };
    qn_buf b = { 0 };
    const qn_report_options o = QN_REPORT_DEFAULT;
    assert_false(qn_report_write(NULL, 0, &o, &b, &e));
}

static void huge(void **state)
{
    (void)state;
    qn_run *r = new_run("chrome");
    qn_series *s = add_series(r, PHASE_decode, "k", "matmul", "", -1);
    for (int i = 0; i < 12; i++) {
        add_sample(s, UINT64_MAX / 32);
        add_pass(r, PHASE_decode, UINT64_MAX / 32, 1, i);
    }
    s->bytes = 1e300;
    s->flops = 1e300;
    r->read_gbs = 1e-300;
    write_all((const qn_run *const[]){ r }, 1);
    qn_run_close(r);
}

/* ---- phases, rows -------------------------------------------------------------------------------------------------- */

static void adds_up(void **state)
{
    qn_analysis a;
    (void)state;
    qn_run *r = new_run("quern");
    qn_series *s = add_series(r, PHASE_decode, "k0", "qlinear", "blk.0.ffn_down", 0);
    qn_series *t = add_series(r, PHASE_decode, "k0", "qlinear", "blk.1.ffn_down", 1);
    qn_series *u = add_series(r, PHASE_decode, "k1", "attend", "blk.1.attend", 1);
    for (u64 i = 1; i <= 10; i++) add_sample(s, 100 * i), add_sample(t, 1000 * i), add_sample(u, 50);
    s->bytes = 11000, t->bytes = 110000, u->flops = 2500;
    s->expected = t->expected = u->expected = 10;
    r->read_gbs = 4, r->f32_gflops = 10; /* 11000 bytes take 2750 ns, 110000 take 27500; 2500 flops take 250 */
    r->phase_ns[PHASE_load] = 5000;
    r->phase_ns[PHASE_decode] = 70000;
    r->phase_tokens[PHASE_decode] = 10;
    r->wall_ns = 80000;
    open_analysis(&a, r, &(qn_analysis_options){ .by = BY_kernel });
    u64 sum = 0;
    for (int i = 0; i < N_PHASES; i++) sum += a.phases[i].ns;
    assert_int_equal(sum, a.wall_ns);
    assert_int_equal(a.phases[PHASE_other].ns, 5000);
    assert_int_equal(a.phases[PHASE_decode].between_ns, 70000 - 5500 - 55000 - 500);
    size_t n;
    const qn_row *rows = qn_analysis_rows(&a, PHASE_decode, &n);
    assert_int_equal(n, 2);
    assert_string_equal(rows[0].name, "k0");
    assert_string_equal(rows[0].role, "ffn_down"); /* the same in both layers */
    assert_int_equal(rows[0].layer, -1);
    assert_int_equal(rows[0].total_ns, 60500);
    assert_int_equal(rows[0].n, 20);
    assert_int_equal(rows[0].expected, 20);
    assert_int_equal(rows[0].min_ns, 100);
    assert_int_equal(rows[0].max_ns, 10000);
    assert_near(rows[0].p50_ns, 1000, 1e-9); /* 100 ... 1000, 1000 ... 10000: the middle two are both 1000 */
    assert_near(rows[0].of_ceiling, 30250 / 60500.0, 1e-12);
    assert_int_equal(rows[0].bound, BOUND_memory);
    assert_int_equal(rows[1].bound, BOUND_f32);
    assert_near(rows[1].of_ceiling, 0.5, 1e-12);
    assert_near(rows[1].cumulative, 61000 / 70000.0, 1e-12);
    qn_analysis_close(&a);
    open_analysis(&a, r, &(qn_analysis_options){ .by = BY_layer, .bandwidth_gbs = 8 });
    rows = qn_analysis_rows(&a, PHASE_decode, &n);
    assert_string_equal(rows[0].name, "layer 1");
    assert_int_equal(rows[0].total_ns, 55500);
    assert_near(a.ceilings.read_gbs, 8, 0); /* what the user gives goes before what the trace says */
    qn_analysis_close(&a);
    qn_run_close(r);
}

static void parts(void **state)
{
    (void)state;
    assert_string_equal(qn_role_part("blk.3.ffn_down"), "ffn_down");
    assert_string_equal(qn_role_part("blk.3."), "blk.3.");
    assert_string_equal(qn_role_part("blk.x.ffn"), "blk.x.ffn");
    assert_string_equal(qn_role_part("output"), "output");
    assert_string_equal(qn_role_part(""), "");
}

/* Which kernel a number of rows has; ranges that cannot be are passed over. */
static void names(void **state)
{
    static const char *const rows[] = { "1", "0", "2-8", "8-2", "", "-", "x", "9+", "12" };
    qn_plan_names n = { 0 };
    qn_err e = { 0 };
    (void)state;
    for (size_t i = 0; i < QN_COUNT(rows); i++) {
        const qn_str s = { rows[i], strlen(rows[i]) };
        assert_true(qn_plan_names_add(&n, &(qn_event){ .kind = QN_EV_choice, .choice = { .step = 2, .rows = s, .kernel = s } }, &e));
    }
    const qn_plan_step *step = qn_plan_names_get(&n, 2);
    assert_int_equal(step->n_choices, 4);
    assert_string_equal(qn_plan_kernel(step, 1), "1");
    assert_string_equal(qn_plan_kernel(step, 8), "2-8");
    assert_string_equal(qn_plan_kernel(step, INT64_MAX), "9+");
    assert_string_equal(qn_plan_kernel(step, 0), "");
    assert_int_equal(qn_plan_names_get(&n, 1)->layer, -1);
    assert_string_equal(qn_plan_names_get(&n, -5)->op, "");
    assert_true(qn_plan_names_add(&n, &(qn_event){ .kind = QN_EV_plan, .plan = { .step = INT64_MAX } }, &e));
    assert_int_equal(n.steps.n, 3);
    qn_plan_names_close(&n);
}

/* ---- growth, disturbances ------------------------------------------------------------------------------------------ */

static void lines(void **state)
{
    qn_analysis a;
    (void)state;
    qn_run *r = new_run("doppler");
    qn_series *grows = add_series(r, PHASE_decode, "attention", "attention", "", -1);
    qn_series *flat = add_series(r, PHASE_decode, "norm", "norm", "", -1);
    for (int i = 0; i < 40; i++) { /* four tokens a pass; each takes 1 ms + 2 us a position */
        const i64 pos = 10 + 4 * i;
        const u64 noise = (u64)(i * 7919 % 13) * 100, wild = i == 20 || i == 21 ? 4000000 : 0;
        const u64 own = 4 * (1000000 + 2000 * (u64)pos), other = 400000 + noise + wild;
        add_sample(grows, own);
        add_sample(flat, other);
        add_pass(r, PHASE_decode, own + other, 4, pos);
    }
    open_analysis(&a, r, &(qn_analysis_options){ .by = BY_kernel });
    assert_int_equal(a.disturbed.n, 2);
    assert_int_equal(a.disturbed.p[0].ordinal, 21);
    assert_int_equal(a.disturbed.p[1].ordinal, 22);
    assert_near(a.disturbed_ns, 8e6, 2e4);
    assert_string_equal(a.growth.p[0].name, "all steps");
    assert_string_equal(a.growth.p[1].name, "attention");
    assert_near(a.growth.p[1].slope_ns, 2000, 1e-6);
    assert_near(a.growth.p[1].at_zero_ns, 1e6, 1e-3);
    assert_string_equal(a.growth.p[1].verdict, "grows 2.00 us per position");
    assert_string_equal(a.growth.p[2].verdict, "flat"); /* the wild passes have no say */
    assert_near(a.growth.p[0].slope_ns, 2000, 1);
    qn_analysis_close(&a);
    qn_run_close(r);
}

/* One pass far off to the side, as a warm-up at position 0 is: it has no say in the line, and is out of it. */
static void far_off(void **state)
{
    qn_analysis a;
    (void)state;
    qn_run *r = new_run("quern");
    add_pass(r, PHASE_decode, 33000000, 1, 0);
    for (int i = 0; i < 64; i++) add_pass(r, PHASE_decode, 9000000 + 2000 * (u64)i + (u64)(i * 7919 % 13) * 1000, 1, 2048 + i);
    for (int i = 0; i < 9; i++) { /* of eight sequences: another kind of pass, neither growth nor disturbance */
        add_pass(r, PHASE_decode, 20000000 + 500000 * (u64)i, 8, 3000 + 10 * i);
        r->passes.p[r->passes.n - 1].seqs = 8;
    }
    open_analysis(&a, r, &(qn_analysis_options){ .by = BY_kernel });
    assert_int_equal(a.disturbed.n, 1);
    assert_int_equal(a.disturbed.p[0].ordinal, 1);
    assert_near(a.growth.p[0].slope_ns, 2000, 100);
    assert_near(a.growth.p[0].x_lo, 2048, 0);
    qn_analysis_close(&a);
    qn_run_close(r);
}

static void fits(void **state)
{
    qn_fit f = { 0 };
    qn_trend t;
    (void)state;
    assert_false(qn_fit_line(&f, &t));
    for (int i = 0; i < 5; i++) qn_fit_add(&f, 7, i);
    assert_false(qn_fit_line(&f, &t)); /* one position */
    for (int i = 0; i < 5; i++) qn_fit_add(&f, 8, i);
    assert_true(qn_fit_line(&f, &t));
    assert_near(t.b, 0, 1e-12);
    qn_fit_add(&f, INFINITY, 1);
    assert_false(qn_fit_line(&f, &t));
}

/* ---- looks --------------------------------------------------------------------------------------------------------- */

static qn_run **open_log(const char *path, size_t *n)
{
    qn_run **runs;
    qn_err e = { 0 };
    if (!qn_runs_open(path, false, NULL, NULL, &runs, n, &e)) fail_msg("%s", e.msg);
    return runs;
}

static void close_all(qn_run **runs, size_t n)
{
    for (size_t i = 0; i < n; i++) qn_run_close(runs[i]);
    qn_free(runs);
}

/* However narrow the window, no line is wider, and the names and times are still there. */
static void narrow(void **state)
{
    size_t n;
    qn_run **runs = open_log(SAMPLE, &n);
    (void)state;
    for (int width = 60; width <= 200; width += 20) {
        qn_report_options o = QN_REPORT_DEFAULT;
        qn_buf b = { 0 };
        qn_err e = { 0 };
        o.width = width;
        o.sections = "phases,steps,growth,memory,advice";
        assert_true(qn_report_write((const qn_run *const *)runs, n, &o, &b, &e));
        for (const char *p = b.p; *p;) {
            const size_t len = strcspn(p, "\n");
            if (len > (size_t)width) fail_msg("%d columns: '%.*s'", width, (int)len, p);
            p += len + (p[len] == '\n');
        }
        assert_non_null(strstr(b.p, "qlinear"));
        assert_non_null(strstr(b.p, "43.03"));
        qn_buf_close(&b);
    }
    close_all(runs, n);
}

static void colour(void **state)
{
    size_t n;
    qn_run **runs = open_log(SAMPLE, &n);
    (void)state;
    for (int on = 0; on < 2; on++) {
        qn_report_options o = QN_REPORT_DEFAULT;
        qn_buf b = { 0 };
        qn_err e = { 0 };
        o.color = on;
        assert_true(qn_report_write((const qn_run *const *)runs, n, &o, &b, &e));
        assert_int_equal(strchr(b.p, '\033') != NULL, on);
        qn_buf_close(&b);
    }
    close_all(runs, n);
}

/* Names from a log may hold anything. */
static void strange_names(void **state)
{
    (void)state;
    qn_run *r = new_run("chrome");
    add_sample(add_series(r, PHASE_decode, "a|b*`_\n\033[31m\"x\",\\ \xff<script>", "matmul", "r", 0), 5);
    add_sample(add_series(r, PHASE_decode, "plain", "matmul", "r", 0), 5);
    r->model = "m\"\\\n";
    for (int f = FORMAT_text; f <= FORMAT_csv; f++) {
        qn_report_options o = QN_REPORT_DEFAULT;
        qn_buf b = { 0 };
        qn_err e = { 0 };
        o.format = (qn_format)f;
        assert_true(qn_report_write((const qn_run *const[]){ r }, 1, &o, &b, &e));
        if (f != FORMAT_csv) assert_null(strchr(b.p, '\033'));
        if (f == FORMAT_csv) assert_non_null(strstr(b.p, "\"\"x\"\""));
        if (f == FORMAT_markdown) assert_non_null(strstr(b.p, "a\\|b"));
        qn_buf_close(&b);
    }
    qn_run_close(r);
}

/* ---- no memory ----------------------------------------------------------------------------------------------------- */

/* Every allocation of a report in turn (about `most` of them where there are more) fails, once or for good. */
static void fail_each(const char *path, qn_format format, u64 most)
{
    size_t n;
    qn_run **runs = open_log(path, &n);
    qn_report_options o = QN_REPORT_DEFAULT;
    qn_buf whole = { 0 };
    qn_err e = { 0 };
    o.format = format;
    o.width = 100;
    const u64 before = qn_mem_count();
    assert_true(qn_report_write((const qn_run *const *)runs, n, &o, &whole, &e));
    qn_buf_close(&whole);
    const u64 count = qn_mem_count() - before, step = count > most ? count / most : 1;
    for (u64 k = 1; k <= count; k += step) {
        for (int forever = 0; forever < 2; forever++) {
            qn_buf b = { 0 };
            qn_err why = { 0 };
            qn_mem_fail_at(k, forever);
            const bool ok = qn_report_write((const qn_run *const *)runs, n, &o, &b, &why);
            qn_mem_fail_at(0, false);
            if (ok) fail_msg("%s, %s: allocation %llu failed and nobody noticed", path, qn_format_names[format], (unsigned long long)k);
            assert_int_equal(why.code, QN_ENOMEM);
            qn_buf_close(&b);
        }
    }
    close_all(runs, n);
}

static void no_memory(void **state)
{
    static const char *const others[] = { "tests/data/logs/metallic.jsonl", "tests/data/logs/mlc.md", "tests/data/logs/doppler.log.zst" };
    (void)state;
    for (int f = 0; f < N_FORMATS; f++) {
        fail_each(SAMPLE, (qn_format)f, 500);
        for (size_t i = 0; i < QN_COUNT(others); i++) fail_each(others[i], (qn_format)f, 40);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty),   cmocka_unit_test(huge),    cmocka_unit_test(adds_up), cmocka_unit_test(parts), cmocka_unit_test(names),
        cmocka_unit_test(lines),   cmocka_unit_test(far_off), cmocka_unit_test(fits),    cmocka_unit_test(narrow),  cmocka_unit_test(colour),
        cmocka_unit_test(strange_names), cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
