/* test_engine.c - what must not change a token: threads, the cutting of the prompt, the company in the batch, the reuse of
 * cached pages. And what must: another seed. Runs on the tiny reference models in tests/data/models. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
/* cmocka wants these first */
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "quern.h"
#include "trace/trace.h"

#define VOCAB 4096 /* the most of them */
#define LONG 150

/* gemma3: window of 16, so that pages are given back; quern-tiny: Q8_0, so that its weights are repacked */
static const char *const models[] = { "llama", "gemma3", "qwen2", "quern-tiny" };
static int n_vocab; /* of the model that was opened last */

static qn_model *open_model(const char *name)
{
    char path[256];
    qn_err e = { 0 };
    snprintf(path, sizeof path, strcmp(name, "quern-tiny") ? "tests/data/models/%s/model.gguf" : "models/%s.gguf", name);
    qn_model *m = qn_model_open(path, &e);
    if (!m) fail_msg("%s", e.msg);
    qn_model_info info;
    qn_model_get_info(m, &info);
    n_vocab = info.n_vocab;
    assert_in_range(n_vocab, 1, VOCAB);
    return m;
}

static qn_engine *open_engine(const qn_model *m, qn_options o)
{
    qn_err e = { 0 };
    qn_engine *en = qn_engine_open(m, &o, &e);
    if (!en) fail_msg("%s", e.msg);
    return en;
}

static qn_session *open_session(qn_engine *en)
{
    qn_err e = { 0 };
    qn_session *s = qn_session_open(en, &e);
    if (!s) fail_msg("%s", e.msg);
    return s;
}

static void make_ids(int32_t *ids, int n, u64 seed)
{
    for (int i = 0; i < n; i++) ids[i] = (int32_t)(qn_rng_at(seed, (u64)i) % 512);
}

typedef struct rows { float *at; int n; } rows; /* logits of every position */

static bool keep(void *user, int pos, const float *logits)
{
    rows *r = user;
    memcpy(r->at + (size_t)pos * (size_t)n_vocab, logits, (size_t)n_vocab * sizeof *logits);
    r->n++;
    return true;
}

static void eval(qn_session *s, const int32_t *ids, int n, float *out)
{
    qn_err e = { 0 };
    rows r = { out, 0 };
    qn_session_rewind(s, 0);
    if (!qn_session_eval(s, ids, (size_t)n, keep, &r, &e)) fail_msg("%s", e.msg);
    assert_int_equal(r.n, n);
    assert_int_equal(qn_session_pos(s), n);
}

static float plain_rows[LONG * VOCAB], other_rows[LONG * VOCAB];

/* Bit for bit, not nearly: a token that hangs on the last bit of a sum must not depend on the weather. */
static void same_whatever_the_threads_and_chunks(void **state)
{
    (void)state;
    int32_t ids[LONG];
    make_ids(ids, LONG, 1);
    for (size_t k = 0; k < QN_COUNT(models); k++) {
        qn_model *m = open_model(models[k]);
        qn_options o = QN_OPTIONS_DEFAULT;
        o.threads = 1;
        qn_engine *en = open_engine(m, o);
        qn_session *s = open_session(en);
        eval(s, ids, LONG, plain_rows);
        qn_session_close(s);
        qn_engine_close(en);
        const int threads[] = { 1, 2, 3 }, batches[] = { 1, 7, 64 };
        for (size_t i = 0; i < QN_COUNT(threads); i++) {
            o.threads = threads[i];
            o.n_batch = batches[i];
            en = open_engine(m, o);
            s = open_session(en);
            eval(s, ids, LONG, other_rows);
            assert_memory_equal(plain_rows, other_rows, (size_t)(LONG * n_vocab) * sizeof *plain_rows);
            qn_session_close(s);
            qn_engine_close(en);
        }
        qn_model_close(m);
    }
}

static void step_until_done(qn_engine *en)
{
    qn_err e = { 0 };
    for (size_t left = 1; left;)
        if (!qn_engine_step(en, &left, &e)) fail_msg("%s", e.msg);
}

static void same_in_company(void **state)
{
    (void)state;
    enum { N = 5 };
    int32_t ids[N][LONG];
    static float alone[N][VOCAB];
    for (size_t k = 0; k < QN_COUNT(models); k++) {
        qn_model *m = open_model(models[k]);
        qn_options o = QN_OPTIONS_DEFAULT;
        o.n_seq = N;
        o.n_batch = 48;
        qn_engine *en = open_engine(m, o);
        qn_session *s[N];
        qn_err e = { 0 };
        for (int i = 0; i < N; i++) {
            make_ids(ids[i], LONG, 10 + (u64)i);
            s[i] = open_session(en);
            assert_true(qn_session_set(s[i], ids[i], (size_t)(LONG - 13 * i), NULL, &e));
            step_until_done(en);
            memcpy(alone[i], qn_session_logits(s[i]), (size_t)n_vocab * sizeof(float));
            qn_session_close(s[i]);
        }
        qn_engine_close(en); /* a new engine: nothing is cached */
        en = open_engine(m, o);
        for (int i = 0; i < N; i++) {
            s[i] = open_session(en);
            assert_true(qn_session_set(s[i], ids[i], (size_t)(LONG - 13 * i), NULL, &e));
        }
        bool seen[N] = { 0 };
        for (size_t left = 1; left;) {
            assert_true(qn_engine_step(en, &left, &e));
            for (int i = 0; i < N; i++) {
                if (!qn_session_logits(s[i]) || seen[i]) continue;
                assert_memory_equal(qn_session_logits(s[i]), alone[i], (size_t)n_vocab * sizeof(float));
                seen[i] = true;
            }
        }
        for (int i = 0; i < N; i++) {
            assert_true(seen[i]);
            qn_session_close(s[i]);
        }
        qn_engine_close(en);
        qn_model_close(m);
    }
}

static const float *logits_of(qn_engine *en, qn_session *s, const int32_t *ids, int n, size_t *cached)
{
    qn_err e = { 0 };
    if (!qn_session_set(s, ids, (size_t)n, cached, &e)) fail_msg("%s", e.msg);
    while (!qn_session_logits(s))
        if (!qn_engine_step(en, NULL, &e)) fail_msg("%s", e.msg);
    return qn_session_logits(s);
}

static void reuse_changes_nothing(void **state)
{
    (void)state;
    int32_t ids[LONG];
    make_ids(ids, LONG, 3);
    for (size_t k = 0; k < QN_COUNT(models); k++) {
        qn_model *m = open_model(models[k]);
        qn_options o = QN_OPTIONS_DEFAULT;
        o.n_seq = 2;
        qn_engine *en = open_engine(m, o);
        qn_session *a = open_session(en);
        static float fresh[4][VOCAB];
        const size_t row = (size_t)n_vocab * sizeof(float);
        const int lengths[4] = { 100, 150, 37, 117 };
        size_t cached;
        for (int i = 0; i < 4; i++) { /* each from nothing: another engine each time */
            qn_engine *alone = open_engine(m, o);
            qn_session *s = open_session(alone);
            memcpy(fresh[i], logits_of(alone, s, ids, lengths[i], &cached), row);
            assert_int_equal(cached, 0);
            qn_session_close(s);
            qn_engine_close(alone);
        }
        for (int i = 0; i < 4; i++) { /* growing, shrinking into the middle of a page, growing again */
            assert_memory_equal(logits_of(en, a, ids, lengths[i], &cached), fresh[i], row);
            if (i == 1) assert_int_equal(cached, 100);
        }
        qn_session *b = open_session(en); /* another timeline with the same beginning takes the pages of the first */
        assert_memory_equal(logits_of(en, b, ids, 117, &cached), fresh[3], row);
        assert_int_equal(cached, 112);
        int32_t fork[LONG];
        memcpy(fork, ids, sizeof fork);
        fork[60] = (fork[60] + 1) % 512; /* parts from it in the middle of a page, and must not write into it */
        logits_of(en, b, fork, 117, &cached);
        assert_memory_equal(logits_of(en, a, ids, 117, &cached), fresh[3], row);
        qn_session_close(a);
        qn_session_close(b);
        qn_session *c = open_session(en); /* closed sessions leave their pages to whoever begins alike */
        assert_memory_equal(logits_of(en, c, ids, 117, &cached), fresh[3], row);
        if (cached != 112) fail_msg("%s: %zu tokens cached", models[k], cached);
        qn_session_close(c);
        qn_engine_close(en);
        qn_model_close(m);
    }
}

static qn_result generate(qn_session *s, const int32_t *ids, int n, u64 seed, float temp)
{
    qn_err e = { 0 };
    qn_result out;
    qn_request r = { .ids = ids, .n_ids = (size_t)n, .n_predict = 40, .sampling = QN_SAMPLING_DEFAULT };
    r.sampling.temp = temp;
    r.sampling.seed = seed;
    if (!qn_generate(s, &r, &out, &e)) fail_msg("%s", e.msg);
    assert_int_equal(out.n_new, 40);
    return out;
}

static void a_seed_decides(void **state)
{
    (void)state;
    int32_t ids[20];
    make_ids(ids, 20, 4);
    qn_model *m = open_model("llama");
    qn_options o = QN_OPTIONS_DEFAULT;
    qn_engine *en = open_engine(m, o);
    qn_session *s = open_session(en);
    qn_result a = generate(s, ids, 20, 42, 1), b = generate(s, ids, 20, 42, 1), c = generate(s, ids, 20, 43, 1);
    assert_memory_equal(a.ids, b.ids, 40 * sizeof *a.ids);
    assert_true(memcmp(a.ids, c.ids, 40 * sizeof *a.ids) != 0);
    assert_int_equal(b.n_cached, 19);
    qn_free(a.ids);
    qn_free(b.ids);
    qn_free(c.ids);
    qn_session_close(s);
    qn_engine_close(en);
    qn_model_close(m);
}

static bool cancel_late(void *user, const qn_piece *p)
{
    (void)p;
    qn_engine_cancel(user);
    return true;
}

static void refuses(void **state)
{
    (void)state;
    qn_model *m = open_model("llama");
    qn_options o = QN_OPTIONS_DEFAULT;
    qn_err e = { 0 };
    o.n_ctx = 1000000000;
    assert_null(qn_engine_open(m, &o, &e));
    assert_int_equal(e.code, QN_ENOMEM);
    assert_non_null(strstr(e.msg, "need"));
    o.n_ctx = INT_MAX; /* its last page ends behind INT_MAX */
    assert_null(qn_engine_open(m, &o, &e));
    assert_int_equal(e.code, QN_ENOMEM);
    assert_non_null(strstr(e.msg, "(KV 8"));
    o.n_seq = 4096;    /* and all pages together cannot be counted */
    assert_null(qn_engine_open(m, &o, &e));
    assert_int_equal(e.code, QN_ENOMEM);
    assert_non_null(strstr(e.msg, "more than can be addressed"));
    o.n_seq = 0;
    o.n_ctx = 32;
    qn_engine *en = open_engine(m, o);
    qn_session *s = open_session(en);
    assert_null(qn_session_open(en, &e)); /* n_seq is 1 */
    int32_t ids[40] = { 0 };
    assert_false(qn_session_set(s, ids, 33, NULL, &e));
    assert_int_equal(e.code, QN_ECONTEXT);
    assert_non_null(strstr(e.msg, "33"));
    assert_non_null(strstr(e.msg, "32"));
    ids[3] = n_vocab;
    assert_false(qn_session_set(s, ids, 8, NULL, &e));
    assert_non_null(strstr(e.msg, "position 3"));
    ids[3] = -1;
    assert_false(qn_session_set(s, ids, 8, NULL, &e));
    ids[3] = 5;
    qn_request r = { .ids = ids, .n_ids = 30, .n_predict = -1, .sampling = QN_SAMPLING_DEFAULT };
    qn_result out;
    assert_true(qn_generate(s, &r, &out, &e)); /* the context ends the answer */
    assert_int_equal(out.stop, QN_STOP_CONTEXT);
    assert_int_equal(out.n_new, 3);
    qn_free(out.ids);
    qn_engine_cancel(en);
    assert_false(qn_generate(s, &r, &out, &e));
    assert_int_equal(e.code, QN_ECANCELLED);
    qn_free(out.ids);
    assert_true(qn_generate(s, &r, &out, &e)); /* and the next request runs */
    qn_free(out.ids);
    r.each = cancel_late;
    r.user = en;
    for (int i = 0; i < 2; i++) { /* a cancel behind the last pass is not kept for the answer after it */
        r.n_predict = 1;
        assert_true(qn_generate(s, &r, &out, &e));
        assert_int_equal(out.stop, QN_STOP_LENGTH);
        qn_free(out.ids);
    }
    qn_session_close(s);
    qn_engine_close(en);
    qn_model_close(m);
}

/* Open, generate, close, all of it recorded, with the Nth allocation failing, for every N: an error each time, never a crash or a leak. */
static bool whole_life(qn_err *e)
{
    bool ok = false;
    int32_t ids[20];
    make_ids(ids, 20, 5);
    qn_options o = QN_OPTIONS_DEFAULT;
    o.threads = 1;
    o.n_ctx = 64;
    o.trace = qn_trace_open("/dev/null", QN_TRACE_STEP, e);
    qn_model *m = o.trace ? qn_model_open("tests/data/models/gemma3/model.gguf", e) : NULL;
    qn_engine *en = m ? qn_engine_open(m, &o, e) : NULL;
    qn_session *s = en ? qn_session_open(en, e) : NULL;
    if (s) {
        qn_request r = { .ids = ids, .n_ids = 20, .n_predict = 4, .sampling = QN_SAMPLING_DEFAULT };
        qn_result out;
        ok = qn_generate(s, &r, &out, e);
        qn_free(out.ids);
    }
    qn_session_close(s);
    qn_engine_close(en);
    qn_model_close(m);
    qn_trace_close(o.trace, "ok", NULL);
    return ok;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    qn_err e = { 0 };
    const u64 before = qn_mem_count();
    assert_true(whole_life(&e));
    const u64 n = qn_mem_count() - before;
    assert_true(n > 50);
    for (int forever = 0; forever < 2; forever++) {
        for (u64 i = 1; i <= n; i += 1 + i / 40) { /* every one of the first 40, then ever larger steps */
            e = (qn_err){ 0 };
            qn_mem_fail_at(i, forever);
            const bool ok = whole_life(&e);
            qn_mem_fail_at(0, false);
            if (ok && !forever) continue; /* something optional went without */
            assert_false(ok);
            assert_int_equal(e.code, QN_ENOMEM);
        }
    }
    assert_true(whole_life(&e));
}

/* Between two tokens nothing is allocated, recorded or not. */
typedef struct counter { u64 last; int n, bad; } counter;

static bool count(void *user, const qn_piece *piece)
{
    counter *c = user;
    (void)piece;
    if (c->n++ > 4 && qn_mem_count() != c->last) c->bad++; /* buffers may grow with the first tokens */
    c->last = qn_mem_count();
    return true;
}

static void count_allocations(qn_trace *trace)
{
    int32_t ids[20];
    make_ids(ids, 20, 6);
    qn_model *m = open_model("qwen2");
    qn_options o = QN_OPTIONS_DEFAULT;
    o.trace = trace;
    qn_engine *en = open_engine(m, o);
    qn_session *s = open_session(en);
    qn_err e = { 0 };
    counter c = { 0 };
    qn_result out;
    qn_request r = { .ids = ids, .n_ids = 20, .n_predict = 60, .sampling = QN_SAMPLING_DEFAULT, .each = count, .user = &c };
    assert_true(qn_generate(s, &r, &out, &e));
    assert_int_equal(c.n, 60);
    assert_int_equal(c.bad, 0);
    qn_free(out.ids);
    qn_session_close(s);
    qn_engine_close(en);
    qn_model_close(m);
}

static void tokens_allocate_nothing(void **state)
{
    (void)state;
    qn_err e = { 0 };
    qn_trace_sum sum;
    count_allocations(NULL);
    qn_trace *t = qn_trace_open("/dev/null", QN_TRACE_STEP, &e);
    count_allocations(t);
    qn_trace_close(t, "ok", &sum);
    assert_int_equal(sum.lost, 0);
    assert_true(sum.events > 60 * 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_whatever_the_threads_and_chunks), cmocka_unit_test(same_in_company),
        cmocka_unit_test(reuse_changes_nothing), cmocka_unit_test(a_seed_decides), cmocka_unit_test(refuses),
        cmocka_unit_test(any_allocation_may_fail), cmocka_unit_test(tokens_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
