/* memo.c - results in and out of SQLite. A row is a contender at a shape; or what an output of a shape must be. */
#include "probe/memo.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/db.h"
#include "base/mem.h"
#include "base/table.h"

#define MEMO_ID 0x51505242u /* "QPRB" */
#define MEMO_VERSION 2
#define REFERENCE_MOST ((size_t)4 << 20) /* bytes: longer ones take less time to make than to read */

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS result(kernel TEXT NOT NULL, code TEXT NOT NULL, cpu TEXT NOT NULL, threads INTEGER NOT NULL,"
    " shape TEXT NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL, made TEXT NOT NULL DEFAULT (datetime('now')),"
    " PRIMARY KEY (kernel, code, cpu, threads, shape)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS reference(shape TEXT NOT NULL, inputs INTEGER NOT NULL, mood INTEGER NOT NULL,"
    " operand INTEGER NOT NULL, body BLOB NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (shape, inputs, mood, operand));";

struct qn_memo { sqlite3 *db; sqlite3_stmt *get, *put, *get_ref, *put_ref; };

/* tools/kernel_code.sh makes this table from the object files. */
typedef struct code_row { const char *symbol, *hash; } code_row;
extern const code_row qn_kernel_code_rows[];
extern const int qn_n_kernel_code_rows;

const char *qn_kernel_code(const char *kernel)
{
    for (int i = 0; i < qn_n_kernel_code_rows; i++)
        if (!strcmp(qn_kernel_code_rows[i].symbol + strlen("qn_"), kernel)) return qn_kernel_code_rows[i].hash;
    return "?";
}

qn_memo *qn_memo_open(const char *path, char note[240], qn_err *e)
{
    qn_memo *s = qn_new(sizeof *s, e);
    if (!s) return NULL;
    s->db = qn_db_open(path, MEMO_ID, MEMO_VERSION, schema, note, e);
    if (s->db)
        s->get = qn_db_prepare(s->db, "SELECT body, sum FROM result"
                                      " WHERE kernel=? AND code=? AND cpu=? AND threads=? AND shape=?", e);
    if (s->get)
        s->put = qn_db_prepare(s->db, "INSERT OR REPLACE INTO result(kernel, code, cpu, threads, shape, body, sum)"
                                      " VALUES (?,?,?,?,?,?,?)", e);
    if (s->put)
        s->get_ref = qn_db_prepare(s->db, "SELECT body, sum FROM reference"
                                          " WHERE shape=? AND inputs=? AND mood=? AND operand=?", e);
    if (s->get_ref)
        s->put_ref = qn_db_prepare(s->db, "INSERT OR REPLACE INTO reference(shape, inputs, mood, operand, body, sum)"
                                          " VALUES (?,?,?,?,?,?)", e);
    if (s->put_ref) return s;
    qn_memo_close(s);
    return NULL;
}

void qn_memo_close(qn_memo *s)
{
    if (!s) return;
    sqlite3_finalize(s->get);
    sqlite3_finalize(s->put);
    sqlite3_finalize(s->get_ref);
    sqlite3_finalize(s->put_ref);
    qn_db_close(s->db);
    qn_free(s);
}

/* ---- the body: numbers as text, exact to the bit */

static void put_stats(qn_buf *b, const qn_stats *s)
{
    qn_buf_printf(b, " %zu %a %a %a %a %a %a %a %a %a", s->n, s->min, s->max, s->mean, s->sd, s->p50, s->p95, s->p99, s->lo,
                  s->hi);
}

static int take_stats(const char *p, qn_stats *s)
{
    int used = 0;
    const int got = sscanf(p, " %zu %la %la %la %la %la %la %la %la %la%n", &s->n, &s->min, &s->max, &s->mean, &s->sd, &s->p50,
                           &s->p95, &s->p99, &s->lo, &s->hi, &used);
    return got == 10 ? used : 0;
}

static void put_body(qn_buf *b, const qn_contender *k)
{
    qn_buf_printf(b, "%d %a %a %a %a", k->right, k->off.max_abs, k->off.max_rel, k->off.nmse, k->off.worst);
    put_stats(b, &k->warm);
    put_stats(b, &k->cold);
    qn_buf_printf(b, " %s", k->why);
}

static bool take_body(const char *p, qn_contender *k)
{
    qn_contender got = *k;
    qn_errors *off = &got.off;
    int right = 0, used = 0;
    if (sscanf(p, "%d %la %la %la %la%n", &right, &off->max_abs, &off->max_rel, &off->nmse, &off->worst, &used) != 5)
        return false;
    p += used;
    used = take_stats(p, &got.warm);
    p += used;
    const int more = used ? take_stats(p, &got.cold) : 0;
    if (!more) return false;
    p += more;
    snprintf(got.why, sizeof got.why, "%s", *p == ' ' ? p + 1 : p);
    got.right = right == 1;
    got.checked = got.cached = true;
    *k = got;
    return true;
}

/* ---- the key, and the sum over key and body */

typedef struct key { const char *kernel, *code; char cpu[192]; const char *shape; int threads; } key;

static key key_of(const qn_contest *c, const qn_contender *k, int threads)
{
    key y = { .kernel = k->kernel ? k->kernel->name : k->name, .shape = c->text, .threads = k->lanes ? k->lanes : threads,
              .code = k->kernel ? qn_kernel_code(k->kernel->name) : k->rival->version };
    snprintf(y.cpu, sizeof y.cpu, "%.150s, %s", qn_cpu_name(), qn_isa_name(qn_cpu_isa()));
    return y;
}

static i64 sum_of(const key *y, const char *body)
{
    u64 h = qn_hash(y->kernel, strlen(y->kernel), (u64)y->threads);
    h = qn_hash(y->code, strlen(y->code), h);
    h = qn_hash(y->cpu, strlen(y->cpu), h);
    h = qn_hash(y->shape, strlen(y->shape), h);
    return (i64)qn_hash(body, strlen(body), h);
}

static void bind_key(sqlite3_stmt *s, const key *y)
{
    sqlite3_reset(s);
    sqlite3_bind_text(s, 1, y->kernel, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(s, 2, y->code, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(s, 3, y->cpu, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int(s, 4, y->threads);
    sqlite3_bind_text(s, 5, y->shape, -1, SQLITE_TRANSIENT);
}

bool qn_memo_get(qn_memo *s, qn_contest *c, int threads, int *damaged, qn_err *e)
{
    for (int i = 0; i < c->n; i++) {
        qn_contender *k = &c->at[i];
        if (k->misses) continue;
        const key y = key_of(c, k, threads);
        bind_key(s->get, &y);
        const int got = qn_db_step(s->get, e);
        if (got < 0) return false;
        if (got == 0) continue;
        const char *body = (const char *)sqlite3_column_text(s->get, 0);
        if (!body || sqlite3_column_int64(s->get, 1) != sum_of(&y, body) || !take_body(body, k)) ++*damaged;
    }
    sqlite3_reset(s->get);
    return true;
}

bool qn_memo_put(qn_memo *s, const qn_contest *c, int threads, qn_err *e)
{
    if (!qn_db_exec(s->db, "BEGIN IMMEDIATE", e)) return false;
    bool ok = true;
    for (int i = 0; ok && i < c->n; i++) {
        const qn_contender *k = &c->at[i];
        if (k->misses || k->cached || !k->checked) continue;
        qn_buf body = { 0 };
        put_body(&body, k);
        const key y = key_of(c, k, threads);
        ok = !body.failed || qn_fail(e, QN_ENOMEM, "no memory to keep a result");
        if (ok) {
            bind_key(s->put, &y);
            sqlite3_bind_text(s->put, 6, body.p, -1, SQLITE_TRANSIENT);
            sqlite3_bind_int64(s->put, 7, sum_of(&y, body.p));
            ok = qn_db_step(s->put, e) == 0;
            sqlite3_reset(s->put);
        }
        qn_buf_close(&body);
    }
    qn_err ignored = { 0 };
    return ok ? qn_db_exec(s->db, "COMMIT", e) : (qn_db_exec(s->db, "ROLLBACK", &ignored), false);
}

/* ---- references */

static void bind_reference(sqlite3_stmt *s, const qn_reference_key *k)
{
    sqlite3_reset(s);
    sqlite3_bind_text(s, 1, k->shape, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(s, 2, (i64)k->inputs);
    sqlite3_bind_int(s, 3, k->mood);
    sqlite3_bind_int(s, 4, k->operand);
}

bool qn_memo_get_reference(qn_memo *s, const qn_reference_key *k, double *out, size_t n, qn_err *e)
{
    bind_reference(s->get_ref, k);
    bool ok = qn_db_step(s->get_ref, e) == 1;
    const void *body = ok ? sqlite3_column_blob(s->get_ref, 0) : NULL;
    ok = body && (size_t)sqlite3_column_bytes(s->get_ref, 0) == n * sizeof *out &&
         sqlite3_column_int64(s->get_ref, 1) == (i64)qn_hash(body, n * sizeof *out, k->inputs);
    if (ok) memcpy(out, body, n * sizeof *out);
    sqlite3_reset(s->get_ref);
    return ok;
}

bool qn_memo_put_reference(qn_memo *s, const qn_reference_key *k, const double *p, size_t n, qn_err *e)
{
    if (n * sizeof *p > REFERENCE_MOST) return true;
    bind_reference(s->put_ref, k);
    sqlite3_bind_blob(s->put_ref, 5, p, (int)(n * sizeof *p), SQLITE_TRANSIENT);
    sqlite3_bind_int64(s->put_ref, 6, (i64)qn_hash(p, n * sizeof *p, k->inputs));
    const bool ok = qn_db_step(s->put_ref, e) == 0;
    sqlite3_reset(s->put_ref);
    return ok;
}
