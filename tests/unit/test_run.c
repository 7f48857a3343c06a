/* test_run.c - a run from our own trace: what is expected, what was captured, whose the time was. */
#include "unit/files.h"

#include "report/cover.h"
#include "report/run.h"
#include "trace/reader.h"

static qn_run *open_one(const char *path)
{
    qn_err e = { 0 };
    qn_run **runs;
    size_t n;
    if (!qn_runs_open(path, false, NULL, NULL, &runs, &n, &e)) fail_msg("%s", e.msg);
    assert_int_equal(n, 1);
    qn_run *r = runs[0];
    qn_free(runs);
    return r;
}

static const qn_series *series(const qn_run *r, qn_phase phase, const char *role)
{
    for (size_t i = 0; i < r->series.n; i++)
        if (r->series.p[i].phase == phase && !strcmp(r->series.p[i].role, role)) return &r->series.p[i];
    fail_msg("no series of %s in %s", role, qn_phase_names[phase]);
    return NULL;
}

static bool has_note(const qn_run *r, const char *word)
{
    for (size_t i = 0; i < r->notes.n; i++)
        if (strstr(r->notes.p[i], word)) return true;
    return false;
}

static void test_sample(void **state)
{
    (void)state;
    qn_run *r = open_one("tests/data/trace/sample.jsonl");
    assert_string_equal(r->source, "quern");
    assert_string_equal(r->model, "sample");
    assert_string_equal(r->level, "step");
    assert_true(r->ended);
    assert_string_equal(r->status, "ok");
    assert_int_equal(r->wall_ns, 144314144);
    u64 sum = 0;
    for (int i = 0; i < N_PHASES; i++) sum += r->phase_ns[i];
    assert_int_equal(sum, r->wall_ns);
    assert_int_equal(r->bad + r->unknown + r->ignored, 0);
    u64 passes = 0, steps_ns = 0;
    for (size_t i = 0; i < r->passes.n; i++) passes += r->passes.p[i].ns, steps_ns += r->passes.p[i].steps_ns;
    assert_int_equal(passes, r->phase_ns[PHASE_prefill] + r->phase_ns[PHASE_decode]);
    assert_true(steps_ns > 0 && steps_ns <= passes);
    u64 launched = 0, total = 0;
    for (size_t i = 0; i < r->series.n; i++) {
        const qn_series *s = &r->series.p[i];
        if (s->phase != PHASE_prefill && s->phase != PHASE_decode) continue;
        assert_int_equal(s->n, s->expected); /* nothing is missing */
        assert_int_equal(s->n, s->n_samples);
        assert_true(s->kernel[0] && s->op[0] && s->role[0]);
        launched += s->n;
        total += s->total_ns;
    }
    assert_int_equal(total, steps_ns);
    assert_true(launched > 400);
    assert_int_equal(r->requests.n, 1);
    assert_int_equal(r->requests.p[0].tokens, 14);
    assert_string_equal(r->requests.p[0].stop, "length");
    assert_int_equal(r->tokens.n, 14);
    assert_true(r->spans.n > 0);
    qn_run_close(r);
}

#define HEADER "{\"ev\":\"trace\",\"t\":0,\"schema\":1,\"program\":\"quern\",\"level\":\"step\"}\n"
#define PLAN \
    "{\"ev\":\"plan\",\"t\":0,\"step\":0,\"layer\":0,\"op\":\"linear\",\"role\":\"blk.0.up\",\"type\":\"q8_0\",\"logits\":0}\n" \
    "{\"ev\":\"choice\",\"t\":0,\"step\":0,\"rows\":\"1\",\"kernel\":\"gemv\"}\n" \
    "{\"ev\":\"choice\",\"t\":0,\"step\":0,\"rows\":\"2-8\",\"kernel\":\"few\"}\n" \
    "{\"ev\":\"choice\",\"t\":0,\"step\":0,\"rows\":\"9+\",\"kernel\":\"gemm\"}\n" \
    "{\"ev\":\"plan\",\"t\":0,\"step\":1,\"layer\":-1,\"op\":\"linear\",\"role\":\"output\",\"type\":\"q8_0\",\"logits\":1}\n" \
    "{\"ev\":\"choice\",\"t\":0,\"step\":1,\"rows\":\"1\",\"kernel\":\"head\"}\n"

/* A prefill of 20 rows that asks for no logits, one decode pass whose first step's record is lost, a load that began before. */
static void test_small(void **state)
{
    (void)state;
    const char text[] = HEADER PLAN
        "{\"ev\":\"load\",\"t\":10,\"phase\":\"open\",\"ns\":40,\"bytes\":5}\n"
        "{\"ev\":\"tokenize\",\"t\":45,\"request\":0,\"bytes\":3,\"tokens\":20,\"ns\":15}\n"
        "{\"ev\":\"step\",\"t\":100,\"pass\":1,\"step\":0,\"phase\":\"prefill\",\"rows\":20,\"pos\":0,\"ns\":60,\"busy\":[60,40],\"bytes\":7,\"flops\":9}\n"
        "{\"ev\":\"pass\",\"t\":100,\"pass\":1,\"phase\":\"prefill\",\"rows\":20,\"seqs\":1,\"pos\":0,\"logits\":0,\"ns\":70}\n"
        "{\"ev\":\"step\",\"t\":230,\"pass\":2,\"step\":1,\"phase\":\"decode\",\"rows\":1,\"pos\":20,\"ns\":20}\n"
        "{\"ev\":\"pass\",\"t\":200,\"pass\":2,\"phase\":\"decode\",\"rows\":1,\"seqs\":1,\"pos\":20,\"logits\":1,\"ns\":50}\n"
        "{\"ev\":\"sample\",\"t\":250,\"request\":1,\"pass\":2,\"ns\":5}\n"
        "{\"ev\":\"done\",\"t\":260,\"request\":9,\"tokens\":3,\"ns\":5}\n"
        "{\"ev\":\"end\",\"t\":300,\"status\":\"ok\",\"events\":9,\"lost\":1,\"ns\":300}\n";
    qn_run *r = open_one(put_file("s.jsonl", text, sizeof text - 1));
    assert_int_equal(r->wall_ns, 300);
    assert_int_equal(r->phase_ns[PHASE_load], 40);
    assert_int_equal(r->phase_ns[PHASE_tokenize], 10); /* 5 of its 15 lie in the load */
    assert_int_equal(r->phase_ns[PHASE_prefill], 70);
    assert_int_equal(r->phase_ns[PHASE_decode], 50);
    assert_int_equal(r->phase_ns[PHASE_sample], 5);
    assert_int_equal(r->phase_ns[PHASE_other], 125);
    assert_int_equal(r->phase_tokens[PHASE_prefill], 20);
    const qn_series *up = series(r, PHASE_prefill, "blk.0.up");
    assert_string_equal(up->kernel, "gemm");
    assert_int_equal(up->expected, 1);
    assert_int_equal(up->wait_ns, 10);
    const qn_series *lost = series(r, PHASE_decode, "blk.0.up");
    assert_string_equal(lost->kernel, "gemv");
    assert_int_equal(lost->expected, 1);
    assert_int_equal(lost->n, 0);
    const qn_series *head = series(r, PHASE_decode, "output");
    assert_int_equal(head->expected, 1);
    assert_int_equal(head->n, 1);
    assert_int_equal(r->lost, 1);
    assert_int_equal(r->ignored, 1); /* the end of a request that never began */
    assert_true(has_note(r, "never began"));
    assert_true(has_note(r, "1 events were lost"));
    assert_int_equal(r->spans.n, 2);
    assert_int_equal(r->spans.p[1].pass, 2);
    qn_run_close(r);
}

static void test_notes(void **state)
{
    (void)state;
    const char text[] = "{\"ev\":\"trace\",\"t\":0,\"schema\":9,\"level\":\"step\"}\n{\"ev\":\"wind\"}\nrubbish\n{\"ev\":\"note\",\"t\":1,\"tex";
    qn_run *r = open_one(put_file("s.jsonl", text, sizeof text - 1));
    assert_true(has_note(r, "schema 9"));
    assert_true(has_note(r, "1 cut record at byte 69"));
    assert_true(has_note(r, "first at byte 61"));
    assert_true(has_note(r, "(wind)"));
    assert_true(has_note(r, "no end record"));
    assert_int_equal(r->wall_ns, 1 * 0);
    qn_run_close(r);
}

static void refused(const void *p, size_t n, const char *word)
{
    qn_err e = { 0 };
    qn_run **runs;
    size_t k;
    assert_false(qn_runs_open(put_file("x.log", p, n), false, NULL, NULL, &runs, &k, &e));
    check_refusal(&e, word);
}

static void test_refusals(void **state)
{
    (void)state;
    refused("", 0, "empty");
    refused("\n \r\n\n", 5, "blank lines");
    refused("\037\213\010\0\0", 5, "gzip");
    refused("GGUF\3\0\0\0\1", 9, "binary");
    refused("Hello, world\n", 13, "no log that is known");
}

/* Spans that overlap, lie inside others or come late never make the sum larger than the time. */
static void test_cover(void **state)
{
    (void)state;
    qn_cover *c = calloc(1, sizeof *c);
    u64 ns[N_PHASES];
    assert_non_null(c);
    qn_cover_add(c, PHASE_load, 0, 100);
    qn_cover_add(c, PHASE_prefill, 20, 30);   /* inside the load */
    qn_cover_add(c, PHASE_decode, 150, 50);
    qn_cover_add(c, PHASE_sample, 90, 30);    /* out of order, 10 of it in the load */
    qn_cover_sum(c, ns);
    assert_int_equal(ns[PHASE_load], 100);
    assert_int_equal(ns[PHASE_prefill], 0);
    assert_int_equal(ns[PHASE_sample], 20);
    assert_int_equal(ns[PHASE_decode], 50);
    for (int i = 0; i < 5000; i++) qn_cover_add(c, i % 2 ? PHASE_decode : PHASE_sample, 1000 + 10 * i, i % 2 ? 10 : 4);
    qn_cover_sum(c, ns);
    assert_int_equal(ns[PHASE_decode], 50 + 25000);
    assert_int_equal(ns[PHASE_sample], 20 + 10000);
    qn_cover_add(c, PHASE_load, 5, 10);       /* time goes back */
    assert_int_equal(c->late, 1);
    free(c);
}

static bool stop(void *user, double share)
{
    *(double *)user = share;
    return false;
}

static void test_progress(void **state)
{
    (void)state;
    qn_buf b = { 0 };
    qn_err e = { 0 };
    qn_run **runs;
    size_t n;
    double share = -2;
    qn_buf_puts(&b, HEADER);
    for (int i = 0; i < 40000; i++) qn_buf_printf(&b, "{\"ev\":\"note\",\"t\":%d,\"text\":\"\"}\n", i);
    assert_false(qn_runs_open(put_file("p.jsonl", b.p, b.n), false, stop, &share, &runs, &n, &e));
    assert_int_equal(e.code, QN_ECANCELLED);
    assert_true(share > 0.3 && share < 0.5);
    qn_buf_close(&b);
}

static void test_no_memory(void **state)
{
    (void)state;
    bool done = false;
    for (u64 n = 1; !done; n++) {
        qn_err e = { 0 };
        qn_run **runs;
        size_t k;
        qn_mem_fail_at(n, true);
        done = qn_runs_open("tests/data/trace/sample.jsonl", false, NULL, NULL, &runs, &k, &e);
        qn_mem_fail_at(0, false);
        if (!done) assert_int_equal(e.code, QN_ENOMEM);
        else qn_run_close(runs[0]), qn_free(runs);
        assert_true(n < 20000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sample), cmocka_unit_test(test_small), cmocka_unit_test(test_notes), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_cover), cmocka_unit_test(test_progress),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
