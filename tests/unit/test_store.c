/* test_store.c - runs on the shelf: what comes back is what was put there, names find it, and neither a damaged file, a second
 * program nor a lack of memory loses anything. */
#include "unit/files.h"

#include <sqlite3.h>

#include "report/compare.h"
#include "report/store.h"

#define SAMPLE "tests/data/trace/sample.jsonl"

static qn_run *sample(void)
{
    qn_err e = { 0 };
    qn_run **runs;
    size_t n;
    assert_true(qn_runs_open(SAMPLE, false, NULL, NULL, &runs, &n, &e));
    assert_int_equal(n, 1);
    qn_run *r = runs[0];
    qn_free(runs);
    return r;
}

static qn_store *open_store(const char *name)
{
    char note[240];
    qn_err e = { 0 };
    qn_store *s = qn_store_open(at(name), note, &e);
    if (!s) fail_msg("%s", e.msg);
    return s;
}

static void same_series(const qn_series *a, const qn_series *b)
{
    assert_string_equal(a->kernel, b->kernel);
    assert_string_equal(a->op, b->op);
    assert_string_equal(a->role, b->role);
    assert_string_equal(a->type, b->type);
    assert_true(a->layer == b->layer && a->phase == b->phase && a->expected == b->expected && a->n == b->n);
    assert_true(a->total_ns == b->total_ns && a->min_ns == b->min_ns && a->max_ns == b->max_ns && a->wait_ns == b->wait_ns);
    assert_true(a->bytes == b->bytes && a->flops == b->flops && a->n_samples == b->n_samples);
    assert_memory_equal(&a->fit, &b->fit, sizeof a->fit);
    assert_memory_equal(a->ns, b->ns, a->n_samples * sizeof *a->ns);
}

static void comes_back(void **state)
{
    (void)state;
    qn_run *r = sample();
    qn_store *s = open_store("back.sqlite");
    qn_err e = { 0 };
    i64 id = 0, again = 0;
    assert_true(qn_store_add(s, r, "base", &id, &e));
    assert_true(qn_store_add(s, r, "base2", &again, &e)); /* the same run: it only gets the other label */
    assert_int_equal(id, again);
    qn_run *b = qn_store_get(s, id, &e);
    assert_non_null(b);
    assert_string_equal(b->model, r->model);
    assert_string_equal(b->settings, r->settings);
    assert_string_equal(b->source, r->source);
    assert_true(b->wall_ns == r->wall_ns && b->params == r->params && b->read_gbs == r->read_gbs && b->ended == r->ended);
    assert_int_equal(b->series.n, r->series.n);
    for (size_t i = 0; i < r->series.n; i++) same_series(&b->series.p[i], &r->series.p[i]);
    assert_int_equal(b->passes.n, r->passes.n);
    for (qn_phase f = 0; f < N_PHASES; f++)
        assert_true(b->phase_ns[f] == r->phase_ns[f] && b->phase_tokens[f] == r->phase_tokens[f]);
    assert_true(b->requests.n == r->requests.n && b->requests.p[0].first_ns == r->requests.p[0].first_ns);
    assert_true(b->memory.n == r->memory.n && b->memory.p[1].peak == r->memory.p[1].peak);
    qn_compare c = { 0 }; /* what came back is compared pass by pass, and nothing differs */
    assert_true(qn_compare_open(&c, (const qn_run *const[]){ r, b }, 2, &(qn_compare_options){ .by = BY_role }, &e));
    for (size_t i = 0; i < c.others.p[0].steps.n; i++) assert_true(c.others.p[0].steps.p[i].diff_ns == 0);
    qn_compare_close(&c);
    qn_run_close(b);
    qn_run_close(r);
    qn_store_close(s);
}

static void names(void **state)
{
    (void)state;
    qn_run *r = sample();
    qn_store *s = open_store("names.sqlite"), *other = open_store("names.sqlite");
    qn_err e = { 0 };
    i64 id = 0;
    assert_false(qn_store_find(s, "@last", NULL, &id, &e));
    check_refusal(&e, "no such run");
    for (u64 i = 1; i <= 3; i++) {
        r->wall_ns += i; /* another run */
        r->threads = i == 2 ? 4 : 2;
        assert_true(qn_store_add(i % 2 ? s : other, r, i == 1 ? "base" : NULL, &id, &e)); /* two programs, one file */
        assert_int_equal(id, i);
    }
    const struct { const char *name; i64 id; } good[] = { { "@last", 3 }, { "@-1", 2 }, { "@-2", 1 }, { "@2", 2 }, { "@base", 1 } };
    for (size_t i = 0; i < QN_COUNT(good); i++) {
        if (!qn_store_find(s, good[i].name, NULL, &id, &e)) fail_msg("%s: %s", good[i].name, e.msg);
        assert_int_equal(id, good[i].id);
    }
    const char *const bad[] = { "@-3", "@4", "@nobody", "@", "@1w", "@99999999999999999999" };
    for (size_t i = 0; i < QN_COUNT(bad); i++) {
        e = (qn_err){ 0 };
        if (qn_store_find(s, bad[i], NULL, &id, &e) || !e.code) fail_msg("%s was found", bad[i]);
    }
    assert_true(qn_store_before(s, 3, &id, &e)); /* number 2 had other threads */
    assert_int_equal(id, 1);
    qn_store_list l;
    assert_true(qn_store_list_open(s, 2, &l, &e));
    assert_true(l.n == 2 && l.at[0].id == 3 && l.at[1].id == 2 && l.at[0].decode_tok_s > 0 && l.at[0].tokens > 0);
    qn_store_list_close(&l);
    assert_true(qn_store_remove(s, 2, &e));
    assert_false(qn_store_remove(s, 2, &e));
    assert_null(qn_store_get(s, 2, &e));
    check_refusal(&e, "no run of that number");
    qn_run_close(r);
    qn_store_close(other);
    qn_store_close(s);
}

/* A bit flipped in packed samples passes SQLite's own check; it must not pass ours. */
static void damaged_samples(void **state)
{
    (void)state;
    qn_run *r = sample();
    qn_store *s = open_store("flip.sqlite");
    qn_err e = { 0 };
    i64 id = 0;
    sqlite3 *db;
    assert_true(qn_store_add(s, r, NULL, &id, &e));
    assert_int_equal(sqlite3_open(at("flip.sqlite"), &db), SQLITE_OK);
    static const char *const harm[] = { "UPDATE series SET samples = x'28b52ffd2000' WHERE rowid = 1",
        "UPDATE series SET samples = x'00'", "UPDATE series SET phase = 77", "UPDATE phases SET passes = samples FROM series" };
    for (size_t i = 0; i < QN_COUNT(harm); i++) {
        assert_int_equal(sqlite3_exec(db, harm[i], NULL, NULL, NULL), SQLITE_OK);
        qn_run *b = qn_store_get(s, id, &e);
        if (b) qn_run_close(b); /* what unpacks is a run, whatever it says */
        else check_refusal(&e, "damaged");
    }
    sqlite3_close(db);
    qn_run_close(r);
    qn_store_close(s);
}

static void set_aside(void **state)
{
    (void)state;
    char note[240];
    qn_err e = { 0 };
    put_file("bad.sqlite", "this is no database, whatever its name says; it is long enough to have a header of 100 bytes, though", 100);
    qn_store *s = qn_store_open(at("bad.sqlite"), note, &e);
    assert_non_null(s);
    assert_non_null(strstr(note, "set aside"));
    qn_store_list l;
    assert_true(qn_store_list_open(s, 0, &l, &e) && l.n == 0);
    qn_store_list_close(&l);
    qn_store_close(s);
    assert_null(qn_store_open(at("no/such/../\n/"), note, &e));
}

static void no_memory(void **state)
{
    (void)state;
    qn_run *r = sample();
    qn_store *s = open_store("memory.sqlite");
    bool done = false;
    for (u64 n = 1; !done; n++) {
        qn_err e = { 0 };
        i64 id = 0;
        qn_run *b = NULL;
        qn_mem_fail_at(n, true);
        done = qn_store_add(s, r, NULL, &id, &e) && (b = qn_store_get(s, id, &e));
        qn_mem_fail_at(0, false);
        if (!done) assert_true(e.code == QN_ENOMEM);
        qn_run_close(b);
        n += n > 64 ? n / 8 : 0; /* far in, the same places come again and again */
        assert_true(n < 1000000);
    }
    qn_run_close(r);
    qn_store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back), cmocka_unit_test(names), cmocka_unit_test(damaged_samples), cmocka_unit_test(set_aside),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
