/* test_compare.c - comparisons of runs whose differences are known: paired and not, with and without samples, alike and unlike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "report/compare.h"

typedef struct shape { int passes, first_pos; double matrix, attend, jitter; u64 seed; } shape;

static void add_step(qn_run *r, const char *kernel, const char *op, const char *role, u64 ns)
{
    qn_err e = { 0 };
    qn_series *s = qn_run_series(r, PHASE_decode, kernel, op, role, "Q8_0", 0, &e);
    assert_non_null(s);
    assert_true(qn_series_add(s, ns, &e));
}

/* Decode passes of two steps; attention grows with the position, so that a median of few positions says little. */
static qn_run *make(const shape *h)
{
    qn_err e = { 0 };
    qn_run *r = qn_run_new("quern", "a.jsonl", &e);
    assert_non_null(r);
    r->model = "m", r->arch = "llama", r->type = "Q8_0", r->cpu = "cpu", r->device = "cpu", r->hash = "11";
    r->threads = 2, r->layers = 1, r->params = 1000;
    for (int i = 0; i < h->passes; i++) {
        const double noise = 1 + h->jitter * qn_rng_unit(h->seed, (u64)i);
        const u64 m = (u64)(1e6 * h->matrix * noise), a = (u64)(1e4 * (h->first_pos + i) * h->attend * noise);
        add_step(r, "linear_q8", "linear", "blk.0.ffn_down", m);
        add_step(r, "attend_f16", "attend", "blk.0.attend", a);
        qn_run_pass *p = QN_RUN_PUSH(&r->passes, &e);
        assert_non_null(p);
        *p = (qn_run_pass){ .ns = m + a, .steps_ns = m + a, .phase = PHASE_decode, .rows = 1, .pos = h->first_pos + i };
        r->phase_ns[PHASE_decode] += p->ns;
        r->phase_tokens[PHASE_decode]++;
    }
    return r;
}

static const qn_delta *find(const qn_delta *d, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(d[i].name, name)) return &d[i];
    return NULL;
}

static const qn_compare_options plain = { .by = BY_role, .threshold = 0.05 };

static void paired(void **state)
{
    (void)state;
    const shape x = { 60, 100, 1, 1, 0.02, 1 }, y = { 60, 100, 1.1, 1, 0.02, 1 };
    qn_run *a = make(&x), *b = make(&y);
    qn_compare c = { 0 };
    qn_err e = { 0 };
    assert_true(qn_compare_open(&c, (const qn_run *const[]){ a, b }, 2, &plain, &e));
    const qn_versus *v = &c.others.p[0];
    assert_true(c.regressed == (0.1 / 2.3 > 0.05)); /* a tenth of the matrix is less than a twentieth of the token */
    assert_string_equal(v->steps.p[0].name, "ffn_down"); /* what costs most first */
    const qn_delta *m = find(v->steps.p, v->steps.n, "ffn_down"), *t = find(v->steps.p, v->steps.n, "attend");
    assert_true(m->paired && m->has_interval && m->n == 60 && m->verdict == VERDICT_slower);
    assert_true(fabs(m->change - 0.1) < 0.002 && m->lo_ns > 0 && m->lo_ns <= m->diff_ns && m->diff_ns <= m->hi_ns);
    assert_true(fabs(m->cost_ns - 60 * m->diff_ns) < 1);
    assert_true(t->verdict == VERDICT_same && t->diff_ns == 0 && t->lo_ns == 0 && t->hi_ns == 0);
    qn_compare_close(&c);
    qn_compare_options strict = plain;
    strict.threshold = 0.03;
    assert_true(qn_compare_open(&c, (const qn_run *const[]){ a, b }, 2, &strict, &e));
    const qn_delta *d = find(c.others.p[0].phases.p, c.others.p[0].phases.n, "decode");
    assert_true(c.regressed && d->regressed && d->gates && d->paired && d->verdict == VERDICT_slower);
    qn_compare_close(&c);
    assert_true(qn_compare_open(&c, (const qn_run *const[]){ b, a, b }, 3, &strict, &e)); /* faster is no regression */
    assert_true(!c.regressed && c.others.n == 2 && c.others.p[0].steps.p[0].verdict == VERDICT_faster);
    qn_compare_close(&c);
    qn_run_close(a);
    qn_run_close(b);
}

/* Noise of 20 % hides a difference of 1 %, whatever the threshold. */
static void noise(void **state)
{
    (void)state;
    const shape x = { 40, 100, 1, 1, 0.2, 1 }, y = { 40, 300, 1.01, 0.336, 0.2, 2 }; /* other positions: no pairs */
    qn_run *a = make(&x), *b = make(&y);
    qn_compare c = { 0 };
    qn_err e = { 0 };
    qn_compare_options none = plain;
    none.threshold = 0;
    assert_true(qn_compare_open(&c, (const qn_run *const[]){ a, b }, 2, &none, &e));
    const qn_delta *m = find(c.others.p[0].steps.p, c.others.p[0].steps.n, "ffn_down");
    assert_true(!m->paired && m->has_interval && m->lo_ns < 0 && m->hi_ns > 0 && m->verdict == VERDICT_same);
    qn_compare_close(&c);
    qn_run_close(a);
    qn_run_close(b);
}

static void only_totals(void **state)
{
    (void)state;
    qn_err e = { 0 };
    qn_run *r[2];
    for (int i = 0; i < 2; i++) {
        r[i] = qn_run_new("mlc", "t.md", &e);
        qn_series *s = qn_run_series(r[i], PHASE_decode, "k", "matmul", i ? "other" : "gate_up", "", -1, &e);
        qn_series *both = qn_run_series(r[i], PHASE_decode, "k2", "matmul", "down", "", -1, &e);
        s->n = 10, s->total_ns = 1000;
        both->n = i ? 8 : 10, both->expected = 10, both->total_ns = i ? 1600 : 1000; /* launches were lost: means count */
    }
    qn_compare c = { 0 };
    qn_compare_options force = plain;
    force.force = true;
    assert_true(qn_compare_open(&c, (const qn_run *const *)r, 2, &force, &e));
    const qn_versus *v = &c.others.p[0];
    const qn_delta *d = find(v->steps.p, v->steps.n, "down");
    assert_true(d->a_ns == 1000 && d->b_ns == 2000 && !d->has_interval && d->verdict == VERDICT_unknown && d->change == 1);
    assert_true(find(v->steps.p, v->steps.n, "gate_up")->verdict == VERDICT_gone);
    assert_true(find(v->steps.p, v->steps.n, "other")->verdict == VERDICT_new);
    qn_compare_close(&c);
    qn_run_close(r[0]);
    qn_run_close(r[1]);
}

static void refused(const qn_run *a, const qn_run *b, const char *word)
{
    qn_compare c = { 0 };
    qn_err e = { 0 };
    qn_compare_options force = plain;
    assert_false(qn_compare_open(&c, (const qn_run *const[]){ a, b }, 2, &plain, &e));
    if (e.code != QN_EUSAGE || !strstr(e.msg, word) || !strstr(e.msg, "--force")) fail_msg("%s: %s", word, e.msg);
    qn_compare_close(&c);
    force.force = true;
    assert_true(qn_compare_open(&c, (const qn_run *const[]){ a, b }, 2, &force, &e));
    assert_non_null(strstr(c.others.p[0].notes.p[c.others.p[0].notes.n - 1], word));
    qn_compare_close(&c);
}

static void unlike(void **state)
{
    (void)state;
    const shape x = { 10, 0, 1, 1, 0, 1 };
    qn_run *a = make(&x), *b = make(&x);
    qn_err e = { 0 };
#define OTHER(field, value, word) do { const qn_run was = *b; b->field = value; refused(a, b, word); *b = was; } while (0)
    OTHER(arch, "qwen2", "architectures");
    OTHER(layers, 3, "layers");
    OTHER(params, 2000, "weights");
    OTHER(hash, "22", "model files");
    OTHER(device, "cuda:0", "devices");
    OTHER(cpu, "other", "processors");
    OTHER(threads, 4, "threads");
    OTHER(source, "mlc", "logs");
#undef OTHER
    qn_run_request *q = QN_RUN_PUSH(&a->requests, &e), *p = QN_RUN_PUSH(&b->requests, &e);
    q->prompt = 100, p->prompt = 50, q->stop = p->stop = "";
    refused(a, b, "prompts");
    p->prompt = 100;
    for (size_t i = 0; i < b->series.n; i++) b->series.p[i].role = "elsewhere";
    refused(a, b, "plans");
    qn_run_close(b);
    /* another precision of the same model is what comparisons are for */
    b = make(&x);
    b->type = "Q4_0", b->hash = "22";
    qn_compare c = { 0 };
    assert_true(qn_compare_open(&c, (const qn_run *const[]){ a, b }, 2, &plain, &e));
    assert_non_null(strstr(c.others.p[0].notes.p[0], "Q8_0, then Q4_0"));
    qn_compare_close(&c);
    qn_run_close(a);
    qn_run_close(b);
}

static void every_look(void **state)
{
    (void)state;
    const shape x = { 20, 10, 1, 1, 0.1, 1 }, y = { 25, 10, 1.2, 1, 0.1, 2 };
    qn_run *a = make(&x), *b = make(&y);
    for (qn_by by = BY_kernel; by <= BY_layer; by++) {
        qn_compare c = { 0 };
        qn_err e = { 0 };
        const qn_compare_options o = { .by = by, .threshold = 0.05 };
        assert_true(qn_compare_open(&c, (const qn_run *const[]){ a, b }, 2, &o, &e));
        for (qn_compare_format f = COMPARE_text; f <= COMPARE_html; f++) {
            qn_buf out = { 0 };
            assert_true(qn_compare_write(&c, f, -1, 0, false, &out, &e));
            assert_true(out.n > 100 && !strstr(out.p, "nan") && strstr(out.p, "slower"));
            qn_buf_close(&out);
        }
        qn_compare_close(&c);
    }
    bool done = false;
    for (u64 n = 1; !done; n++) {
        qn_compare c = { 0 };
        qn_err e = { 0 };
        qn_buf out = { 0 };
        qn_mem_fail_at(n, true);
        done = qn_compare_open(&c, (const qn_run *const[]){ a, b }, 2, &plain, &e)
            && qn_compare_write(&c, COMPARE_text, -1, 0, false, &out, &e);
        qn_mem_fail_at(0, false);
        if (!done) assert_int_equal(e.code, QN_ENOMEM);
        qn_buf_close(&out);
        qn_compare_close(&c);
        assert_true(n < 5000);
    }
    qn_run_close(a);
    qn_run_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paired), cmocka_unit_test(noise), cmocka_unit_test(only_totals), cmocka_unit_test(unlike),
        cmocka_unit_test(every_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
