/* store_run.c - a run into rows, and back. Samples are kept as 32-bit ns, packed by zstd: about 1.5 bytes each. A
 * long run keeps evenly spaced passes of all its series, the same ones of each, so that what comes back can still
 * be compared pass by pass; counts and totals are those of the whole run. */
#include <string.h>
#include <time.h>
#include <zstd.h>

#include "base/buf.h"
#include "report/store_parts.h"

enum { PASSES_MOST = 1024 };    /* samples kept of each series: an interval of the median is within 6 % of the ranks then */
#define BLOB_MOST ((size_t)64 << 20) /* unpacked: far above what PASSES_MOST makes */

typedef struct packed_pass { i64 pos; u64 ns, steps_ns; u32 rows, seqs; } packed_pass;
static_assert(sizeof(packed_pass) == 32 && sizeof(qn_fit) == 48, "as they lie in the file");

/* ---- bytes, packed */

static bool pack(const void *p, size_t n, qn_buf *out, qn_err *e)
{
    out->n = 0;
    char *room = qn_buf_room(out, ZSTD_compressBound(n));
    if (!room) return qn_fail(e, QN_ENOMEM, "not enough memory to pack the run");
    const size_t got = ZSTD_compress(room, ZSTD_compressBound(n), p, n, 3);
    if (ZSTD_isError(got)) return qn_fail(e, QN_ENOMEM, "the run cannot be packed: %s", ZSTD_getErrorName(got));
    out->n = got;
    return true;
}

/* A column's bytes, unpacked into *out (yours); its size must be a multiple of `unit`. */
static bool unpack(sqlite3_stmt *q, int column, size_t unit, void **out, size_t *n, qn_err *e)
{
    const void *p = sqlite3_column_blob(q, column);
    const size_t bytes = (size_t)sqlite3_column_bytes(q, column);
    *out = NULL;
    *n = 0;
    if (!bytes) return true;
    const unsigned long long size = ZSTD_getFrameContentSize(p, bytes);
    if (size == 0) return true;
    if (size > BLOB_MOST || size % unit) return qn_fail(e, QN_EFORMAT, "the run store is damaged: samples of %llu bytes", size);
    if (!(*out = qn_alloc((size_t)size, e))) return false;
    const size_t got = ZSTD_decompress(*out, (size_t)size, p, bytes);
    if (!ZSTD_isError(got) && got == size) return *n = (size_t)size / unit, true;
    qn_free(*out);
    *out = NULL;
    return qn_fail(e, QN_EFORMAT, "the run store is damaged: samples cannot be unpacked");
}

/* One in `step` is kept. */
static size_t step_of(u64 n) { return (size_t)((n + PASSES_MOST - 1) / PASSES_MOST) + (n == 0); }

/* ---- in */

static bool finish(sqlite3_stmt *q, qn_err *e)
{
    const bool ok = q && qn_db_step(q, e) == 0;
    sqlite3_finalize(q);
    return ok;
}

static double rate(const qn_run *r, qn_phase phase)
{
    double ns = 0, tokens = 0;
    for (size_t i = 0; i < r->passes.n; i++)
        if (r->passes.p[i].phase == phase) ns += (double)r->passes.p[i].ns, tokens += r->passes.p[i].rows;
    return ns > 0 ? tokens * 1e9 / ns : 0;
}

static bool add_facts(qn_store *s, const qn_run *r, const char *label, qn_err *e)
{
    static const char sql[] =
        "INSERT INTO runs (added, label, source, path, program, commit_id, command, started, level, host, os, cpu, "
        "device, isa, model,"
        " model_path, arch, type, hash, plan_hash, settings, status, seed, cores, threads, layers, model_bytes, "
        "params, read_gbs,"
        " read_small_gbs, f32_gflops, bf16_gflops, int8_gops, barrier_us, wall_ns, lost, ended, prefill_tok_s, "
        "decode_tok_s) VALUES"
        " (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
    return finish(qn_store_ask(s, e, sql, "ittttttttttttttttttttt" "iiiiii" "dddddd" "iii" "dd",
        (i64)time(NULL), label ? label : "", r->source, r->path, r->program, r->commit, r->command, r->started, r->level, r->host,
        r->os, r->cpu, r->device, r->isa, r->model, r->model_path, r->arch, r->type, r->hash, r->plan_hash, r->settings,
        r->status,
        r->seed, r->cores, r->threads, r->layers, (i64)r->model_bytes, (i64)r->params, r->read_gbs, r->read_small_gbs,
        r->f32_gflops, r->bf16_gflops, r->int8_gops, r->barrier_us, (i64)r->wall_ns, (i64)r->lost, (i64)r->ended,
        rate(r, PHASE_prefill), rate(r, PHASE_decode)), e);
}

static bool add_phase(qn_store *s, const qn_run *r, i64 id, qn_phase phase, qn_buf *bytes, qn_err *e)
{
    qn_buf raw = { 0 };
    u64 n = 0, k = 0;
    for (size_t i = 0; i < r->passes.n; i++) n += r->passes.p[i].phase == phase;
    const size_t every = step_of(n);
    for (size_t i = 0; i < r->passes.n; i++) {
        const qn_run_pass *p = &r->passes.p[i];
        if (p->phase != phase || k++ % every) continue;
        const packed_pass x = { .pos = p->pos, .ns = p->ns, .steps_ns = p->steps_ns, .rows = (u32)p->rows, .seqs = (u32)p->seqs };
        qn_buf_put(&raw, &x, sizeof x);
    }
    const bool ok = (!raw.failed || qn_fail(e, QN_ENOMEM, "not enough memory to pack the run"))
        && pack(raw.p ? raw.p : "", raw.n, bytes, e)
        && finish(qn_store_ask(s, e, "INSERT INTO phases VALUES (?,?,?,?,?)", "iiiib", id, (i64)phase, (i64)r->phase_ns[phase],
                               (i64)r->phase_tokens[phase], (qn_str){ bytes->p, bytes->n }), e);
    qn_buf_close(&raw);
    return ok;
}

static bool add_series(qn_store *s, const qn_series *x, i64 id, qn_buf *bytes, qn_err *e)
{
    const size_t every = step_of(x->n_samples);
    u32 kept[PASSES_MOST];
    size_t n = 0;
    for (u64 i = 0; i < x->n_samples && n < PASSES_MOST; i += every)
        kept[n++] = x->ns[i] > UINT32_MAX ? UINT32_MAX : (u32)x->ns[i];
    return pack(kept, n * sizeof *kept, bytes, e)
        && finish(qn_store_ask(s, e, "INSERT INTO series VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", "iittttiiiiiiiddbb",
                               id, (i64)x->phase,
                               x->kernel, x->op, x->role, x->type, (i64)x->layer, (i64)x->expected, (i64)x->n, (i64)x->total_ns,
                               (i64)x->min_ns, (i64)x->max_ns, (i64)x->wait_ns, x->bytes, x->flops,
                               (qn_str){ (const char *)&x->fit, sizeof x->fit }, (qn_str){ bytes->p, bytes->n }), e);
}

static bool add_lists(qn_store *s, const qn_run *r, i64 id, qn_err *e)
{
    bool ok = true;
    for (size_t i = 0; ok && i < r->requests.n && i < PASSES_MOST; i++) {
        const qn_run_request *x = &r->requests.p[i];
        ok = finish(qn_store_ask(s, e, "INSERT INTO requests VALUES (?,?,?,?,?,?,?,?,?,?)", "iiiiitiiii", id, x->id, x->prompt,
                                 x->cached, x->tokens, x->stop, (i64)x->first_ns, (i64)x->prompt_ns,
                                 (i64)x->decode_ns, (i64)x->ns), e);
    }
    for (size_t i = 0; ok && i < r->tests.n; i++) {
        const qn_run_test *x = &r->tests.p[i];
        ok = finish(qn_store_ask(s, e, "INSERT INTO tests VALUES (?,?,?,?,?)", "itiii", id, x->name, x->rep, (i64)x->tokens,
                                 (i64)x->ns), e);
    }
    for (size_t i = 0; ok && i < r->memory.n; i++) {
        const qn_run_memory *x = &r->memory.p[i];
        ok = finish(qn_store_ask(s, e, "INSERT INTO memory VALUES (?,?,?,?,?,?,?,?,?)", "ittiiiiii", id, x->when, x->parts,
                                 (i64)x->weights, (i64)x->kv, (i64)x->kv_used, (i64)x->scratch,
                                 (i64)x->resident, (i64)x->peak), e);
    }
    return ok;
}

/* The number of the same run, if it was added before; 0: it is new; -1: failed. */
static i64 known(qn_store *s, const qn_run *r, qn_err *e)
{
    static const char sql[] = "SELECT id FROM runs WHERE started = ? AND host = ? AND wall_ns = ? AND path = ? AND type = ?";
    sqlite3_stmt *q = qn_store_ask(s, e, sql, "ttitt", r->started, r->host, (i64)r->wall_ns, r->path, r->type);
    const int got = q ? qn_db_step(q, e) : -1;
    const i64 id = got == 1 ? sqlite3_column_int64(q, 0) : got;
    sqlite3_finalize(q);
    return id;
}

static bool add_new(qn_store *s, const qn_run *r, const char *label, i64 *id, qn_err *e)
{
    qn_buf bytes = { 0 };
    bool ok = add_facts(s, r, label, e);
    *id = sqlite3_last_insert_rowid(s->db);
    for (qn_phase f = 0; ok && f < N_PHASES; f++) ok = add_phase(s, r, *id, f, &bytes, e);
    for (size_t i = 0; ok && i < r->series.n; i++) ok = add_series(s, &r->series.p[i], *id, &bytes, e);
    qn_buf_close(&bytes);
    return ok && add_lists(s, r, *id, e);
}

bool qn_store_add(qn_store *s, const qn_run *r, const char *label, i64 *id, qn_err *e)
{
    if (!qn_db_exec(s->db, "BEGIN IMMEDIATE", e)) return false;
    *id = known(s, r, e);
    bool ok = *id >= 0;
    if (*id > 0 && label && label[0])
        ok = finish(qn_store_ask(s, e, "UPDATE runs SET label = ? WHERE id = ?", "ti", label, *id), e);
    else if (*id == 0) ok = add_new(s, r, label, id, e);
    if (ok && qn_db_exec(s->db, "COMMIT", e)) return true;
    sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL); /* the failure is said already */
    return false;
}

/* ---- out */

static bool take_text(qn_run *r, sqlite3_stmt *q, int column, const char **out, qn_err *e)
{
    const char *text = (const char *)sqlite3_column_text(q, column);
    *out = qn_run_text(r, (qn_str){ text ? text : "", text ? strlen(text) : 0 }, e);
    return *out != NULL;
}

static bool get_facts(qn_run *r, sqlite3_stmt *q, qn_err *e)
{
    const char **const texts[] = { &r->path, &r->program, &r->commit, &r->command, &r->started, &r->level, &r->host, &r->os,
                                   &r->cpu, &r->device, &r->isa, &r->model, &r->model_path, &r->arch, &r->type, &r->hash,
                                   &r->plan_hash, &r->settings, &r->status };
    for (int i = 0; i < (int)QN_COUNT(texts); i++)
        if (!take_text(r, q, i, texts[i], e)) return false;
    int at = (int)QN_COUNT(texts);
    if (!take_text(r, q, at++, &r->source, e)) return false;
    i64 *const numbers[] = { &r->seed, &r->cores, &r->threads, &r->layers };
    for (size_t i = 0; i < QN_COUNT(numbers); i++) *numbers[i] = sqlite3_column_int64(q, at++);
    r->model_bytes = (u64)sqlite3_column_int64(q, at++);
    r->params = (u64)sqlite3_column_int64(q, at++);
    double *const reals[] = { &r->read_gbs, &r->read_small_gbs, &r->f32_gflops, &r->bf16_gflops, &r->int8_gops, &r->barrier_us };
    for (size_t i = 0; i < QN_COUNT(reals); i++) *reals[i] = sqlite3_column_double(q, at++);
    r->wall_ns = (u64)sqlite3_column_int64(q, at++);
    r->lost = (u64)sqlite3_column_int64(q, at++);
    r->ended = sqlite3_column_int64(q, at) != 0;
    return true;
}

static bool get_phase(qn_run *r, sqlite3_stmt *q, qn_err *e)
{
    const i64 phase = sqlite3_column_int64(q, 0);
    void *raw;
    size_t n;
    if (phase < 0 || phase >= N_PHASES) return qn_fail(e, QN_EFORMAT, "the run store is damaged: phase %lld", (long long)phase);
    if (!unpack(q, 3, sizeof(packed_pass), &raw, &n, e)) return false;
    r->phase_ns[phase] = (u64)sqlite3_column_int64(q, 1);
    r->phase_tokens[phase] = (u64)sqlite3_column_int64(q, 2);
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        const packed_pass *x = &((const packed_pass *)raw)[i];
        qn_run_pass *p = QN_RUN_PUSH(&r->passes, e);
        if ((ok = p != NULL))
            *p = (qn_run_pass){ .pos = x->pos, .ns = x->ns, .steps_ns = x->steps_ns, .rows = (int)(x->rows & INT32_MAX),
                                .seqs = (int)(x->seqs & INT32_MAX), .phase = (qn_phase)phase };
    }
    qn_free(raw);
    return ok;
}

static bool get_series(qn_run *r, sqlite3_stmt *q, qn_err *e)
{
    const char *names[4];
    void *raw;
    size_t n;
    const i64 phase = sqlite3_column_int64(q, 0);
    for (int i = 0; i < 4; i++)
        if (!take_text(r, q, 1 + i, &names[i], e)) return false;
    if (phase < 0 || phase >= N_PHASES) return qn_fail(e, QN_EFORMAT, "the run store is damaged: phase %lld", (long long)phase);
    if (!unpack(q, 14, sizeof(u32), &raw, &n, e)) return false;
    qn_series *s = qn_run_series(r, (qn_phase)phase, names[0], names[1], names[2], names[3], sqlite3_column_int(q, 5), e);
    bool ok = s != NULL;
    for (size_t i = 0; ok && i < n; i++) ok = qn_series_add(s, ((const u32 *)raw)[i], e);
    qn_free(raw);
    if (!ok) return false;
    s->expected = (u64)sqlite3_column_int64(q, 6);
    s->n = (u64)sqlite3_column_int64(q, 7);
    s->total_ns = (u64)sqlite3_column_int64(q, 8);
    s->min_ns = (u64)sqlite3_column_int64(q, 9);
    s->max_ns = (u64)sqlite3_column_int64(q, 10);
    s->wait_ns = (u64)sqlite3_column_int64(q, 11);
    s->bytes = sqlite3_column_double(q, 12);
    s->flops = sqlite3_column_double(q, 13);
    if (sqlite3_column_bytes(q, 15) == sizeof s->fit) memcpy(&s->fit, sqlite3_column_blob(q, 15), sizeof s->fit);
    return true;
}

static bool get_request(qn_run *r, sqlite3_stmt *q, qn_err *e)
{
    qn_run_request *x = QN_RUN_PUSH(&r->requests, e);
    if (!x) return false;
    x->id = sqlite3_column_int64(q, 0);
    x->prompt = sqlite3_column_int64(q, 1);
    x->cached = sqlite3_column_int64(q, 2);
    x->tokens = sqlite3_column_int64(q, 3);
    x->first_ns = (u64)sqlite3_column_int64(q, 5);
    x->prompt_ns = (u64)sqlite3_column_int64(q, 6);
    x->decode_ns = (u64)sqlite3_column_int64(q, 7);
    x->ns = (u64)sqlite3_column_int64(q, 8);
    return take_text(r, q, 4, &x->stop, e);
}

static bool get_test(qn_run *r, sqlite3_stmt *q, qn_err *e)
{
    qn_run_test *x = QN_RUN_PUSH(&r->tests, e);
    if (!x) return false;
    x->rep = sqlite3_column_int64(q, 1);
    x->tokens = (u64)sqlite3_column_int64(q, 2);
    x->ns = (u64)sqlite3_column_int64(q, 3);
    return take_text(r, q, 0, &x->name, e);
}

static bool get_memory(qn_run *r, sqlite3_stmt *q, qn_err *e)
{
    qn_run_memory *x = QN_RUN_PUSH(&r->memory, e);
    if (!x) return false;
    u64 *const numbers[] = { &x->weights, &x->kv, &x->kv_used, &x->scratch, &x->resident, &x->peak };
    for (int i = 0; i < (int)QN_COUNT(numbers); i++) *numbers[i] = (u64)sqlite3_column_int64(q, 2 + i);
    return take_text(r, q, 0, &x->when, e) && take_text(r, q, 1, &x->parts, e);
}

/* Every row of a query about run id through one of the functions above; *n: how many there were. */
typedef bool (*take_fn)(qn_run *r, sqlite3_stmt *q, qn_err *e);

static bool get_rows(qn_store *s, qn_run *r, i64 id, const char *sql, take_fn take, size_t *n, qn_err *e)
{
    sqlite3_stmt *q = qn_store_ask(s, e, sql, "i", id);
    int got = -1;
    while (q && (got = qn_db_step(q, e)) == 1) {
        if (!take(r, q, e)) {
            got = -1;
            break;
        }
        *n += 1;
    }
    sqlite3_finalize(q);
    return got == 0;
}

qn_run *qn_store_get(qn_store *s, i64 id, qn_err *e)
{
    static const struct { const char *sql; take_fn take; } parts[] = {
        { "SELECT path, program, commit_id, command, started, level, host, os, cpu, device, isa, model, model_path, "
          "arch, type, hash,"
          " plan_hash, settings, status, source, seed, cores, threads, layers, model_bytes, params, read_gbs, "
          "read_small_gbs,"
          " f32_gflops, bf16_gflops, int8_gops, barrier_us, wall_ns, lost, ended FROM runs WHERE id = ?", get_facts },
        { "SELECT phase, ns, tokens, passes FROM phases WHERE run = ? ORDER BY phase", get_phase },
        { "SELECT phase, kernel, op, role, type, layer, expected, n, total_ns, min_ns, max_ns, wait_ns, bytes, "
          "flops, samples, fit"
          " FROM series WHERE run = ? ORDER BY rowid", get_series },
        { "SELECT id, prompt, cached, tokens, stop, first_ns, prompt_ns, decode_ns, ns FROM requests WHERE run = ? "
          "ORDER BY rowid",
          get_request },
        { "SELECT name, rep, tokens, ns FROM tests WHERE run = ? ORDER BY rowid", get_test },
        { "SELECT moment, parts, weights, kv, kv_used, scratch, resident, peak FROM memory WHERE run = ? ORDER BY "
          "rowid", get_memory },
    };
    qn_run *r = qn_run_new("quern", "", e);
    bool ok = r != NULL;
    for (size_t i = 0; ok && i < QN_COUNT(parts); i++) {
        size_t n = 0;
        ok = get_rows(s, r, id, parts[i].sql, parts[i].take, &n, e);
        if (ok && i == 0 && n == 0) ok = qn_fail(e, QN_EUSAGE, "@%lld: the store has no run of that number", (long long)id);
    }
    if (ok) return r;
    qn_run_close(r);
    return NULL;
}
