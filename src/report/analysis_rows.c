/* analysis_rows.c - series in groups: by kernel, op, role, layer or phase, always within a phase, because a share
 * that mixes prefill and decode says nothing about either. The ceiling of a row is the sum of its launches' own: a
 * step that must move more than it computes is held by memory, the others by the arithmetic that their op uses. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "report/analysis_parts.h"

static const char *first_of(const char *a, const char *b, const char *c)
{
    return *a ? a : *b ? b : c;
}

static const char *group_name(const qn_series *s, qn_by by, char room[32])
{
    switch (by) {
    case BY_kernel: return first_of(s->kernel, s->op, s->role);
    case BY_op: return first_of(s->op, s->kernel, s->role);
    case BY_role: return *s->role ? qn_role_part(s->role) : first_of(s->op, s->kernel, "");
    case BY_layer:
        if (s->layer < 0) return "outside layers";
        snprintf(room, 32, "layer %d", s->layer);
        return room;
    case BY_phase: case N_BY: break;
    }
    return qn_phase_names[s->phase];
}

/* Which arithmetic a launch's products use; sums and exponentials around them are f32 everywhere. */
static qn_bound arithmetic_of(const qn_series *s)
{
    if (!strcmp(s->op, "qlinear")) return BOUND_int8;
    return !strcmp(s->op, "blinear") || strstr(s->kernel, "_avx512bf16_") ? BOUND_bf16 : BOUND_f32;
}

static double rate_of(const qn_ceilings_of *c, qn_bound b)
{
    return b == BOUND_int8 ? c->int8 : b == BOUND_bf16 ? c->bf16 : b == BOUND_f32 ? c->f32 : b == BOUND_memory
           ? c->read_gbs : 0;
}

static double ideal_ns(const qn_ceilings_of *c, const qn_series *s, qn_bound *bound)
{
    const qn_bound sums = arithmetic_of(s);
    const double memory = c->read_gbs > 0 ? s->bytes / c->read_gbs : 0; /* bytes / (GB/s) is ns */
    const double rate = rate_of(c, sums), work = rate > 0 ? s->flops / rate : 0;
    const double most = memory >= work ? memory : work;
    *bound = most <= 0 || !isfinite(most) ? BOUND_none : memory >= work ? BOUND_memory : sums;
    return *bound == BOUND_none ? 0 : most;
}

static const char *shared(const char *a, const char *b) { return strcmp(a, b) ? "" : a; }

typedef struct grouping {
    const qn_analysis *a;
    qn_by by;
    qn_arena *names;
    qn_arena keys;
    qn_table seen;
    qn_rows *out;
    u32 *group;                 /* [series] its row */
    double (*bounds)[N_BOUNDS]; /* [series] ideal ns by what binds; indexed by row */
} grouping;

static u32 find_row(grouping *g, const qn_series *s, qn_err *e)
{
    char room[32];
    const char *name = group_name(s, g->by, room);
    const size_t n = strlen(name);
    char *key = qn_arena_new(&g->keys, n + 2, e);
    if (!key) return QN_NONE;
    key[0] = (char)('0' + s->phase);
    memcpy(key + 1, name, n);
    const u32 at = qn_table_put(&g->seen, key, n + 1, (u32)g->out->n, e);
    if (at != g->out->n || at == QN_NONE) return at;
    qn_row *r = QN_RUN_PUSH(g->out, e);
    if (!r) return QN_NONE;
    *r = (qn_row){ .name = qn_arena_strndup(g->names, name, n, e), .kernel = s->kernel, .op = s->op, .role =
                   qn_role_part(s->role),
                   .type = s->type, .layer = s->layer, .phase = s->phase, .has_spread = true };
    return r->name ? at : QN_NONE;
}

static bool add_series(grouping *g, size_t i, qn_err *e)
{
    const qn_series *s = &g->a->run->series.p[i];
    const u32 at = find_row(g, s, e);
    if (at == QN_NONE) return false;
    qn_row *r = &g->out->p[at];
    g->group[i] = at;
    r->kernel = shared(r->kernel, s->kernel);
    r->op = shared(r->op, s->op);
    r->role = shared(r->role, qn_role_part(s->role));
    r->type = shared(r->type, s->type);
    if (r->layer != s->layer) r->layer = -1;
    r->has_spread = r->has_spread && s->n_samples == s->n && s->n;
    r->min_ns = !r->n || s->min_ns < r->min_ns ? s->min_ns : r->min_ns;
    r->max_ns = s->max_ns > r->max_ns ? s->max_ns : r->max_ns;
    r->n += s->n;
    r->expected += s->expected;
    r->total_ns += s->total_ns;
    r->wait_ns += s->wait_ns;
    r->bytes += s->bytes;
    r->flops += s->flops;
    qn_bound bound;
    const double ideal = ideal_ns(&g->a->ceilings, s, &bound);
    r->ideal_ns += ideal;
    g->bounds[at][bound] += ideal;
    qn_fit_merge(&r->fit, &s->fit);
    return true;
}

static void derive(const grouping *g, u32 at)
{
    qn_row *r = &g->out->p[at];
    const double total = (double)r->total_ns;
    r->avg_ns = r->n ? total / (double)r->n : 0;
    r->gbs = total > 0 ? r->bytes / total : 0;
    r->gflops = total > 0 ? r->flops / total : 0;
    r->of_ceiling = total > 0 ? r->ideal_ns / total : 0;
    for (int b = 1; b < N_BOUNDS; b++)
        if (g->bounds[at][b] > g->bounds[at][r->bound]) r->bound = (qn_bound)b;
    if (!r->has_spread) r->min_ns = 0;
}

/* A launch that was expected and not known in one of the series is not known in the row. */
static void forget_expected(const grouping *g)
{
    for (size_t i = 0; i < g->a->run->series.n; i++)
        if (!g->a->run->series.p[i].expected) g->out->p[g->group[i]].expected = 0;
}

/* Percentiles of a row need its samples side by side: rows take turns in one piece of memory, as large as the largest needs. */
static bool spread(const grouping *g, qn_err *e)
{
    const qn_run *run = g->a->run;
    const size_t n_rows = g->out->n, n_series = run->series.n;
    u64 most = 0;
    size_t *order = qn_new_array(n_series + 1, sizeof *order, e), *from = qn_new_array(n_rows + 2, sizeof *from, e);
    u64 *need = qn_new_array(n_rows + 1, sizeof *need, e);
    double *room = NULL;
    bool ok = order && from && need;
    for (size_t i = 0; ok && i < n_series; i++) { /* series sorted by their row, by counting */
        from[g->group[i] + 1]++;
        need[g->group[i]] += run->series.p[i].n_samples;
    }
    for (size_t k = 0; ok && k < n_rows; k++) {
        from[k + 1] += from[k];
        most = need[k] > most ? need[k] : most;
        need[k] = from[k];
    }
    for (size_t i = 0; ok && i < n_series; i++) order[need[g->group[i]]++] = i;
    ok = ok && (room = qn_new_array((size_t)most + 1, sizeof *room, e));
    for (size_t k = 0; ok && k < n_rows; k++) {
        qn_row *r = &g->out->p[k];
        size_t n = 0;
        qn_stats s;
        if (!r->has_spread) continue;
        for (size_t i = from[k]; i < from[k + 1]; i++) {
            const qn_series *one = &run->series.p[order[i]];
            for (u64 j = 0; j < one->n_samples; j++) room[n++] = (double)one->ns[j];
        }
        qn_stats_of(room, n, &s);
        r->p50_ns = s.p50, r->p95_ns = s.p95, r->p99_ns = s.p99;
    }
    qn_free(room);
    qn_free(need);
    qn_free(from);
    qn_free(order);
    return ok;
}

static int by_phase_and_total(const void *a, const void *b)
{
    const qn_row *x = a, *y = b;
    if (x->phase != y->phase) return x->phase < y->phase ? -1 : 1;
    if (x->total_ns != y->total_ns) return x->total_ns > y->total_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void sort_and_share(const qn_analysis *a, qn_rows *out)
{
    double sum = 0;
    if (out->n) qsort(out->p, out->n, sizeof *out->p, by_phase_and_total);
    for (size_t i = 0; i < out->n; i++) {
        qn_row *r = &out->p[i];
        const double whole = (double)a->phases[r->phase].ns;
        if (i == 0 || r->phase != out->p[i - 1].phase) sum = 0;
        sum += (double)r->total_ns;
        r->share = whole > 0 ? (double)r->total_ns / whole : 0;
        r->cumulative = whole > 0 ? sum / whole : 0;
    }
}

bool qn_rows_of(const qn_analysis *a, qn_by by, bool percentiles, qn_arena *arena, qn_rows *out, qn_err *e)
{
    const size_t n = a->run->series.n;
    grouping g = { .a = a, .by = by, .names = arena, .out = out };
    g.group = qn_new_array(n + 1, sizeof *g.group, e);
    g.bounds = qn_new_array(n + 1, sizeof *g.bounds, e);
    bool ok = g.group && g.bounds;
    for (size_t i = 0; ok && i < n; i++) ok = add_series(&g, i, e);
    if (ok) forget_expected(&g);
    for (u32 k = 0; ok && k < out->n; k++) derive(&g, k);
    ok = ok && (!percentiles || spread(&g, e));
    if (ok) sort_and_share(a, out);
    qn_free(g.bounds);
    qn_free(g.group);
    qn_table_close(&g.seen);
    qn_arena_close(&g.keys);
    return ok;
}
