/* analysis.c - from a run to its phases, latencies and choices; the rest of the analysis is in analysis_*.c. The
 * phases are made to add up: what no phase explains is `other`, so that nobody has to wonder where the rest of the
 * wall time went. */
#include "report/analysis.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/table.h"
#include "report/analysis_parts.h"

const char *const qn_by_names[N_BY] = { "kernel", "op", "role", "layer", "phase" };
const char *const qn_bound_names[N_BOUNDS] = { "", "memory", "f32", "bf16", "int8" };

const char *qn_role_part(const char *role)
{
    const char *dot;
    if (strncmp(role, "blk.", 4) || !(dot = strchr(role + 4, '.'))) return role;
    for (const char *c = role + 4; c < dot; c++)
        if (*c < '0' || *c > '9') return role;
    return dot[1] ? dot + 1 : role;
}

/* Multiplications by weights, in any engine's words. */
bool qn_op_is_matmul(const char *op)
{
    static const char *const parts[] = { "linear", "matmul", "gemv", "gemm", "ffn" };
    for (size_t i = 0; i < QN_COUNT(parts); i++)
        if (strstr(op, parts[i])) return true;
    return false;
}

/* ---- phases -------------------------------------------------------------------------------------------------------- */

static void take_ceilings(qn_analysis *a, const qn_analysis_options *o)
{
    const qn_run *r = a->run;
    a->ceilings = (qn_ceilings_of){ .read_gbs = r->read_gbs > 0 ? r->read_gbs : 0, .f32 = r->f32_gflops > 0
                                    ? r->f32_gflops : 0,
                                    .bf16 = r->bf16_gflops > 0 ? r->bf16_gflops : 0, .int8 = r->int8_gops > 0
                                        ? r->int8_gops : 0 };
    if (o->bandwidth_gbs > 0) a->ceilings.read_gbs = o->bandwidth_gbs;
}

static void sum_series(qn_analysis *a)
{
    bool unknown[N_PHASES] = { false };
    for (size_t i = 0; i < a->run->series.n; i++) {
        const qn_series *s = &a->run->series.p[i];
        qn_phase_sum *p = &a->phases[s->phase];
        p->steps_ns += s->total_ns;
        p->wait_ns += s->wait_ns;
        p->captured += s->n;
        p->expected += s->expected;
        p->bytes += s->bytes;
        p->flops += s->flops;
        unknown[s->phase] = unknown[s->phase] || !s->expected;
    }
    for (int i = 0; i < N_PHASES; i++)
        if (unknown[i]) a->phases[i].expected = 0;
}

static void sum_phases(qn_analysis *a)
{
    const qn_run *r = a->run;
    u64 sum = 0;
    for (int i = 0; i < N_PHASES; i++) sum += i == PHASE_other ? 0 : r->phase_ns[i];
    const bool none = sum == 0; /* a log of totals only: the steps are all there is */
    for (int i = 0; i < N_PHASES; i++) a->phases[i].ns = none ? a->phases[i].steps_ns : i == PHASE_other ? 0
        : r->phase_ns[i];
    if (none)
        for (int i = 0; i < N_PHASES; i++) sum += a->phases[i].ns;
    a->wall_ns = r->wall_ns > sum ? r->wall_ns : sum;
    if (!none || a->wall_ns > sum) a->phases[PHASE_other].ns += a->wall_ns - sum;
    for (int i = 0; i < N_PHASES; i++) {
        qn_phase_sum *p = &a->phases[i];
        p->share = a->wall_ns ? (double)p->ns / (double)a->wall_ns : 0;
        p->tokens = r->phase_tokens[i];
        p->tok_s = p->ns && p->tokens ? (double)p->tokens * 1e9 / (double)p->ns : 0;
        p->between_ns = i != PHASE_other && p->ns > p->steps_ns && p->steps_ns ? p->ns - p->steps_ns : 0;
    }
}

double qn_pass_token_ns(const qn_run_pass *p, bool steps)
{
    const double ns = (double)(steps && p->steps_ns ? p->steps_ns : p->ns);
    if (p->rows <= 0) return ns;
    return p->phase == PHASE_decode && p->seqs > 0 ? ns * p->seqs / p->rows : ns / p->rows;
}

/* A pass of 64 sequences at position 130 and one of a single sequence at position 30 are no growth. */
static int most_common_seqs(const qn_run *r)
{
    enum { MOST = 1024 };
    u32 n[MOST + 1] = { 0 };
    int best = 0;
    for (size_t i = 0; i < r->passes.n; i++)
        if (r->passes.p[i].phase == PHASE_decode) n[qn_mini(MOST, qn_maxi(0, r->passes.p[i].seqs))]++;
    for (int i = 1; i <= MOST; i++)
        if (n[i] > n[best]) best = i;
    return best;
}

static bool spread_passes(qn_analysis *a, double *room)
{
    const qn_run *r = a->run;
    for (int phase = 0; phase < N_PHASES; phase++) {
        qn_phase_sum *s = &a->phases[phase];
        size_t n = 0;
        for (size_t i = 0; i < r->passes.n; i++)
            if ((int)r->passes.p[i].phase == phase) room[n++] = qn_pass_token_ns(&r->passes.p[i], false);
        s->passes = n;
        s->has_spread = n > 0;
        qn_stats_of(room, n, &s->token_ns);
    }
    return true;
}

static void spread_tokens(qn_analysis *a, double *room)
{
    const qn_run *r = a->run;
    qn_stats firsts;
    size_t n = 0;
    for (size_t i = 0; i < r->tokens.n; i++)
        if (r->tokens.p[i].index > 0) room[n++] = (double)r->tokens.p[i].ns;
    a->has_gaps = n > 0;
    qn_stats_of(room, n, &a->gaps);
    n = 0;
    for (size_t i = 0; i < r->requests.n; i++)
        if (r->requests.p[i].first_ns) room[n++] = (double)r->requests.p[i].first_ns;
    for (size_t i = 0; i < r->tokens.n && !r->requests.n; i++)
        if (r->tokens.p[i].index == 0) room[n++] = (double)r->tokens.p[i].ns;
    qn_stats_of(room, n, &firsts);
    a->first_ns = (u64)(firsts.p50 + 0.5);
}

static bool analyse_phases(qn_analysis *a, qn_err *e)
{
    const qn_run *r = a->run;
    size_t most = r->passes.n > r->tokens.n ? r->passes.n : r->tokens.n;
    if (r->requests.n > most) most = r->requests.n;
    double *room = qn_new_array(most + 1, sizeof *room, e);
    if (!room) return false;
    sum_series(a);
    sum_phases(a);
    spread_passes(a, room);
    a->decode_seqs = most_common_seqs(r);
    spread_tokens(a, room);
    qn_free(room);
    return true;
}

/* ---- choices ------------------------------------------------------------------------------------------------------- */

static char *choice_key(qn_arena *arena, const qn_run_choice *c, size_t *n, qn_err *e)
{
    const char *const parts[] = { c->op, c->kernel, c->reason, c->rejected };
    size_t bytes = 0, at = 0;
    for (size_t i = 0; i < QN_COUNT(parts); i++) bytes += strlen(parts[i]) + 1;
    char *key = qn_arena_new(arena, bytes, e);
    for (size_t i = 0; key && i < QN_COUNT(parts); i++) {
        memcpy(key + at, parts[i], strlen(parts[i]) + 1);
        at += strlen(parts[i]) + 1;
    }
    *n = bytes;
    return key;
}

/* The ranges of rows that a choice was made for, each once. */
static void note_rows(qn_choice_group *g, const char *rows)
{
    const size_t used = strlen(g->rows), n = strlen(rows);
    for (const char *p = g->rows; *p;) {
        const size_t len = strcspn(p, ",");
        if (len == n && !memcmp(p, rows, n)) return;
        p += len + (p[len] ? 2 : 0);
    }
    if (used + n + 3 < sizeof g->rows) snprintf(g->rows + used, sizeof g->rows - used, "%s%s", used ? ", " : "", rows);
}

static bool add_choice(qn_analysis *a, qn_table *seen, qn_arena *keys, const qn_run_choice *c, qn_err *e)
{
    size_t n;
    const char *key = choice_key(keys, c, &n, e);
    if (!key) return false;
    const u32 at = qn_table_put(seen, key, n, (u32)a->choices.n, e);
    if (at == QN_NONE) return false;
    if (at == a->choices.n) {
        qn_choice_group *g = QN_RUN_PUSH(&a->choices, e);
        if (!g) return false;
        *g = (qn_choice_group){ .op = c->op, .kernel = c->kernel, .reason = c->reason, .rejected = c->rejected, .role =
                                c->role,
                                .first_rows = c->rows };
    }
    qn_choice_group *g = &a->choices.p[at];
    note_rows(g, c->rows);
    g->steps += !strcmp(g->first_rows, c->rows); /* a step has one choice a range */
    return true;
}

/* A thousand steps choose a dozen kernels for a dozen reasons: each choice once, with the number of steps that made it. */
static bool analyse_choices(qn_analysis *a, qn_err *e)
{
    qn_table seen = { 0 };
    qn_arena keys = { 0 };
    bool ok = true;
    for (size_t i = 0; ok && i < a->run->choices.n; i++) ok = add_choice(a, &seen, &keys, &a->run->choices.p[i], e);
    for (size_t i = 0; i < a->choices.n; i++)
        if (!strcmp(a->choices.p[i].rows, "1, 2-8, 9+")) snprintf(a->choices.p[i].rows, sizeof a->choices.p[i].rows, "all");
    qn_table_close(&seen);
    qn_arena_close(&keys);
    return ok;
}

/* ---- remarks -------------------------------------------------------------------------------------------------------- */

static bool remark(qn_analysis *a, qn_err *e, const char *fmt, ...) QN_PRINTF(3, 4);
static bool remark(qn_analysis *a, qn_err *e, const char *fmt, ...)
{
    va_list ap;
    qn_remark *r = QN_RUN_PUSH(&a->remarks, e);
    if (!r) return false;
    va_start(ap, fmt);
    vsnprintf(r->text, sizeof r->text, fmt, ap);
    va_end(ap);
    return true;
}

/* What recording cost: the writer's own time is measured; what stamps took of the threads that compute is reckoned, two
 * readings of the clock around each step and two around each piece of it (one for each thread is the least). */
static bool remark_recording(qn_analysis *a, qn_err *e)
{
    const qn_run *r = a->run;
    const double wall = (double)r->wall_ns;
    double stamps = 0;
    for (size_t i = 0; i < r->series.n; i++) stamps += (double)r->series.p[i].n * (r->series.p[i].wait_ns ? 4 : 2);
    return !r->writer_ns || wall <= 0 ||
           remark(a, e, "recording: %llu events; writing them took %.1f %% of the run on one core, reading the clock %.1f %%",
                  (unsigned long long)r->events, 100 * (double)r->writer_ns / wall, 100 * stamps * r->clock_ns / wall);
}

/* Nothing that reads far more than a cache holds can be faster than memory: then the ceiling is wrong, and all shares of it. */
static bool remark_ceilings(qn_analysis *a, qn_err *e)
{
    for (int i = PHASE_prefill; i <= PHASE_decode; i++) {
        const qn_phase_sum *p = &a->phases[i];
        const double share = p->steps_ns ? p->ideal_ns / (double)p->steps_ns : 0;
        if (share > 1.1 && !remark(a, e, "these ceilings are too low: %s runs at %.0f %% of them; `quern doctor` on a quiet "
                                   "machine measures again", qn_phase_names[i], 100 * share)) return false;
    }
    return true;
}

/* ---- all ----------------------------------------------------------------------------------------------------------- */

static void sum_ideal(qn_analysis *a)
{
    for (size_t i = 0; i < a->rows.n; i++) a->phases[a->rows.p[i].phase].ideal_ns += a->rows.p[i].ideal_ns;
}

bool qn_analysis_open(qn_analysis *a, const qn_run *r, const qn_analysis_options *o, qn_err *e)
{
    qn_rows rows = { 0 };
    a->run = r;
    a->by = o->by;
    take_ceilings(a, o);
    bool ok = analyse_phases(a, e) && qn_rows_of(a, o->by, true, &a->arena, &rows, e);
    a->rows.p = rows.p;
    a->rows.n = rows.n;
    a->rows.cap = rows.cap;
    if (ok) sum_ideal(a);
    return ok && remark_ceilings(a, e) && remark_recording(a, e) && analyse_choices(a, e) && qn_analyse_disturbed(a, e) &&
           qn_analyse_growth(a, e) && qn_analyse_implied(a, o, e) && qn_analyse_advice(a, e);
}

void qn_analysis_close(qn_analysis *a)
{
    qn_free(a->rows.p);
    qn_free(a->growth.p);
    qn_free(a->disturbed.p);
    qn_free(a->choices.p);
    qn_free(a->remarks.p);
    qn_free(a->advice.p);
    qn_arena_close(&a->arena);
    *a = (qn_analysis){ 0 };
}

const qn_row *qn_analysis_rows(const qn_analysis *a, qn_phase phase, size_t *n)
{
    size_t from = 0;
    while (from < a->rows.n && a->rows.p[from].phase != phase) from++;
    *n = 0;
    while (from + *n < a->rows.n && a->rows.p[from + *n].phase == phase) ++*n;
    return a->rows.p ? a->rows.p + from : NULL;
}
