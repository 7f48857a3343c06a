/* store.c - the tables of the run store, and what is asked of them in one query: lists and names. Every change is
 * one transaction. Leaves the file itself (damaged, foreign, shared) to base/db.c and a run's own figures to
 * store_run.c. */
#include "report/store.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "report/compare.h"
#include "report/store_parts.h"

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY AUTOINCREMENT, added INTEGER NOT NULL, label TEXT NOT "
    "NULL DEFAULT '',"
    " source TEXT, path TEXT, program TEXT, commit_id TEXT, command TEXT, started TEXT, level TEXT, host TEXT, os "
    "TEXT, cpu TEXT,"
    " device TEXT, isa TEXT, model TEXT, model_path TEXT, arch TEXT, type TEXT, hash TEXT, plan_hash TEXT, settings "
    "TEXT,"
    " status TEXT, seed INTEGER, cores INTEGER, threads INTEGER, layers INTEGER, model_bytes INTEGER, params INTEGER,"
    " read_gbs REAL, read_small_gbs REAL, f32_gflops REAL, bf16_gflops REAL, int8_gops REAL, barrier_us REAL, "
    "wall_ns INTEGER,"
    " lost INTEGER, ended INTEGER, prefill_tok_s REAL, decode_tok_s REAL);"
    "CREATE TABLE IF NOT EXISTS phases (run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE, phase INTEGER, "
    "ns INTEGER,"
    " tokens INTEGER, passes BLOB);"
    "CREATE TABLE IF NOT EXISTS series (run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE, phase INTEGER, "
    "kernel TEXT,"
    " op TEXT, role TEXT, type TEXT, layer INTEGER, expected INTEGER, n INTEGER, total_ns INTEGER, min_ns INTEGER, "
    "max_ns INTEGER,"
    " wait_ns INTEGER, bytes REAL, flops REAL, fit BLOB, samples BLOB);"
    "CREATE TABLE IF NOT EXISTS requests (run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE, id INTEGER, "
    "prompt INTEGER,"
    " cached INTEGER, tokens INTEGER, stop TEXT, first_ns INTEGER, prompt_ns INTEGER, decode_ns INTEGER, ns INTEGER);"
    "CREATE TABLE IF NOT EXISTS tests (run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE, name TEXT, rep "
    "INTEGER,"
    " tokens INTEGER, ns INTEGER);"
    "CREATE TABLE IF NOT EXISTS memory (run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE, moment TEXT, "
    "parts TEXT,"
    " weights INTEGER, kv INTEGER, kv_used INTEGER, scratch INTEGER, resident INTEGER, peak INTEGER);"
    "CREATE INDEX IF NOT EXISTS phases_of ON phases(run); CREATE INDEX IF NOT EXISTS series_of ON series(run);"
    "CREATE INDEX IF NOT EXISTS requests_of ON requests(run); CREATE INDEX IF NOT EXISTS tests_of ON tests(run);"
    "CREATE INDEX IF NOT EXISTS memory_of ON memory(run);";

/* ---- the file */

sqlite3_stmt *qn_store_ask(qn_store *s, qn_err *e, const char *sql, const char *types, ...)
{
    va_list ap;
    sqlite3_stmt *q = qn_db_prepare(s->db, sql, e);
    int rc = SQLITE_OK;
    va_start(ap, types);
    for (int i = 1; q && rc == SQLITE_OK && *types; types++, i++) {
        if (*types == 'i') rc = sqlite3_bind_int64(q, i, va_arg(ap, i64));
        else if (*types == 'd') rc = sqlite3_bind_double(q, i, va_arg(ap, double));
        else if (*types == 't') rc = sqlite3_bind_text(q, i, va_arg(ap, const char *), -1, SQLITE_TRANSIENT);
        else {
            const qn_str blob = va_arg(ap, qn_str);
            rc = sqlite3_bind_blob64(q, i, blob.p ? blob.p : "", blob.n, SQLITE_TRANSIENT);
        }
    }
    va_end(ap);
    if (rc == SQLITE_OK) return q;
    qn_fail(e, QN_EIO, "the run store cannot be asked: %s", sqlite3_errmsg(s->db));
    sqlite3_finalize(q);
    return NULL;
}

qn_store *qn_store_open(const char *path, char note[240], qn_err *e)
{
    qn_store *s = qn_new(sizeof *s, e);
    if (!s) return NULL;
    s->db = qn_db_open(path, QN_STORE_ID, QN_STORE_VERSION, schema, note, e);
    if (s->db && qn_db_exec(s->db, "PRAGMA foreign_keys = ON", e)) return s;
    qn_store_close(s);
    return NULL;
}

void qn_store_close(qn_store *s)
{
    if (!s) return;
    qn_db_close(s->db);
    qn_free(s);
}

/* ---- lists and names */

static char *column_text(sqlite3_stmt *q, int i, qn_err *e)
{
    const char *text = (const char *)sqlite3_column_text(q, i);
    return qn_strdup(text ? text : "", e);
}

static bool take_entry(sqlite3_stmt *q, qn_store_entry *x, qn_err *e)
{
    char **const texts[] = { &x->label, &x->started, &x->model, &x->type, &x->device, &x->program, &x->path, &x->status };
    x->id = sqlite3_column_int64(q, 0);
    x->added = sqlite3_column_int64(q, 1);
    for (int i = 0; i < (int)QN_COUNT(texts); i++)
        if (!(*texts[i] = column_text(q, 2 + i, e))) return false;
    x->threads = sqlite3_column_int64(q, 10);
    x->wall_ns = (u64)sqlite3_column_int64(q, 11);
    x->prefill_tok_s = sqlite3_column_double(q, 12);
    x->decode_tok_s = sqlite3_column_double(q, 13);
    x->prompt_tokens = (u64)sqlite3_column_int64(q, 14);
    x->tokens = (u64)sqlite3_column_int64(q, 15);
    return true;
}

bool qn_store_list_open(qn_store *s, size_t most, qn_store_list *l, qn_err *e)
{
    static const char sql[] =
        "SELECT id, added, label, started, model, type, device, program, path, status, threads, wall_ns, "
        "prefill_tok_s, decode_tok_s,"
        " (SELECT tokens FROM phases WHERE run = runs.id AND phase = ?1), (SELECT tokens FROM phases WHERE run = "
        "runs.id AND phase = ?2)"
        " FROM runs ORDER BY id DESC LIMIT ?3";
    size_t cap = 0;
    int got = -1;
    *l = (qn_store_list){ 0 };
    sqlite3_stmt *q = qn_store_ask(s, e, sql, "iii", (i64)PHASE_prefill, (i64)PHASE_decode, most ? (i64)most : (i64)-1);
    while (q && (got = qn_db_step(q, e)) == 1) {
        qn_store_entry *x = qn_run_push(&l->at, &l->n, &cap, sizeof *l->at, e);
        if (!x || !take_entry(q, x, e)) {
            got = -1;
            break;
        }
    }
    sqlite3_finalize(q);
    if (got == 0) return true;
    qn_store_list_close(l);
    return false;
}

void qn_store_list_close(qn_store_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        qn_store_entry *x = &l->at[i];
        char *const texts[] = { x->label, x->started, x->model, x->type, x->device, x->program, x->path, x->status };
        for (size_t k = 0; k < QN_COUNT(texts); k++) qn_free(texts[k]);
    }
    qn_free(l->at);
    *l = (qn_store_list){ 0 };
}

/* Walks from the newest run with added <= before and id < below; the n-th (from 0) that is like `like` is it. */
static bool walk(qn_store *s, i64 below, i64 before, i64 n, const qn_run *like, i64 *id, qn_err *e)
{
    i64 at = below;
    for (;;) {
        sqlite3_stmt *q = qn_store_ask(s, e, "SELECT id FROM runs WHERE id < ? AND added <= ? ORDER BY id DESC LIMIT 1",
                                       "ii", at, before);
        const int got = q ? qn_db_step(q, e) : -1;
        if (got == 1) at = sqlite3_column_int64(q, 0);
        sqlite3_finalize(q);
        if (got < 0) return false;
        if (got == 0) return qn_fail(e, QN_EFORMAT, "the store has no such run%s", like ? " that is like the other one" : "");
        char why[160];
        qn_run *r = like ? qn_store_get(s, at, e) : NULL;
        if (like && !r) return false;
        const bool fits = !like || qn_run_is_like(like, r, why, NULL);
        qn_run_close(r);
        if (fits && n-- == 0) return *id = at, true;
    }
}

/* "1w", "3d", "12h", "30m" to seconds; 0: it is no age */
static i64 age_of(const char *s)
{
    const size_t n = strlen(s);
    char digits[16] = "";
    i64 v;
    if (n < 2 || n > 8) return 0;
    memcpy(digits, s, n - 1);
    if (!qn_parse_i64(digits, 1, 9999, &v)) return 0;
    switch (s[n - 1]) {
    case 'w': return v * 7 * 86400;
    case 'd': return v * 86400;
    case 'h': return v * 3600;
    case 'm': return v * 60;
    default: return 0;
    }
}

static bool find_label(qn_store *s, const char *name, i64 *id, qn_err *e)
{
    sqlite3_stmt *q = qn_store_ask(s, e, "SELECT id FROM runs WHERE label = ? ORDER BY id DESC LIMIT 1", "t", name);
    const int got = q ? qn_db_step(q, e) : -1;
    if (got == 1) *id = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    if (got == 0) qn_fail(e, QN_EUSAGE, "@%.60s: no run of the store has that name; `quern runs` lists them", name);
    return got == 1;
}

bool qn_store_find(qn_store *s, const char *name, const qn_run *like, i64 *id, qn_err *e)
{
    i64 v;
    const i64 now = (i64)time(NULL);
    if (*name == '@') name++;
    if (!strcmp(name, "last")) return walk(s, INT64_MAX, INT64_MAX, 0, NULL, id, e);
    if (name[0] == '-' && qn_parse_i64(name + 1, 1, 1000000, &v)) return walk(s, INT64_MAX, INT64_MAX, v, NULL, id, e);
    if (age_of(name)) return walk(s, INT64_MAX, now - age_of(name), 0, like, id, e);
    if (!name[0]) return qn_fail(e, QN_EUSAGE, "@: a name is missing; @last is the newest run");
    if (!qn_parse_i64(name, 1, INT64_MAX, &v)) return find_label(s, name, id, e);
    sqlite3_stmt *q = qn_store_ask(s, e, "SELECT id FROM runs WHERE id = ?", "i", v);
    const int got = q ? qn_db_step(q, e) : -1;
    sqlite3_finalize(q);
    if (got == 0) qn_fail(e, QN_EUSAGE, "@%lld: the store has no run of that number; `quern runs` lists them", (long long)v);
    return got == 1 ? *id = v, true : false;
}

bool qn_store_before(qn_store *s, i64 id, i64 *before, qn_err *e)
{
    qn_run *r = qn_store_get(s, id, e);
    const bool ok = r && walk(s, id, INT64_MAX, 0, r, before, e);
    qn_run_close(r);
    return ok;
}

bool qn_store_remove(qn_store *s, i64 id, qn_err *e)
{
    sqlite3_stmt *q = qn_store_ask(s, e, "DELETE FROM runs WHERE id = ?", "i", id);
    const bool ok = q && qn_db_step(q, e) == 0;
    sqlite3_finalize(q);
    if (!ok) return false;
    return sqlite3_changes(s->db) > 0 || qn_fail(e, QN_EUSAGE, "@%lld: the store has no run of that number", (long long)id);
}
