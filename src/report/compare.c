/* compare.c - the figures of a comparison. A group of steps has one sample a pass when every one of its series ran
 * in every pass: their sum. Two runs with the same passes (phase, rows, position) are compared pair by pair, and
 * the median of the differences has an interval that assumes nothing. Otherwise medians are held against medians,
 * with both intervals; and logs without samples by their means, with none. Leaves out to others: who may be
 * compared (compare_like.c), how it looks (compare_print.c). */
#include "report/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"

#define NOTHING 0.005 /* a change of half a percent, however sure, is nothing */

const char *const qn_verdict_names[N_VERDICTS] = { "", "same", "faster", "slower", "gone", "new" };

/* What one thing costs in one run: samples a pass, or a middle with half an interval, or only a middle. */
typedef struct cost {
    bool there, has_spread;
    double *x;              /* [n] in the order of passes; NULL: none */
    size_t n;
    double mid, half;       /* ns a token; half the 95 % interval */
} cost;

/* The passes of one phase of one run. */
typedef struct passes { const qn_run_pass **at; size_t n; } passes;

typedef struct pairing { passes a, b; size_t n; } pairing; /* the first n passes of both are of the same work; 0: unlike */

static bool find_passes(const qn_run *r, qn_phase phase, passes *p, qn_err *e)
{
    *p = (passes){ 0 };
    if (!r->passes.n) return true;
    p->at = qn_new_array(r->passes.n, sizeof *p->at, e);
    if (!p->at) return false;
    for (size_t i = 0; i < r->passes.n; i++)
        if (r->passes.p[i].phase == phase) p->at[p->n++] = &r->passes.p[i];
    return true;
}

static void pair(pairing *p)
{
    const size_t n = qn_minz(p->a.n, p->b.n);
    p->n = 0;
    for (size_t i = 0; i < n; i++) {
        if (p->a.at[i]->rows != p->b.at[i]->rows || p->a.at[i]->pos != p->b.at[i]->pos) break;
        p->n = i + 1;
    }
    if (p->n < 5 || 2 * p->n < n) p->n = 0; /* too few to stand for the rest */
}

static void middle_of(cost *c, double *room)
{
    qn_stats s;
    memcpy(room, c->x, c->n * sizeof *room);
    qn_stats_of(room, c->n, &s);
    c->mid = s.p50;
    c->half = (s.hi - s.lo) / 2;
    c->has_spread = c->n > 1;
}

/* ---- a group of steps in one run */

static const char *group_of(const qn_series *s, qn_by by)
{
    switch (by) {
    case BY_kernel: return s->kernel[0] ? s->kernel : s->op;
    case BY_op: return s->op[0] ? s->op : s->kernel;
    case BY_phase: return qn_phase_names[s->phase];
    case BY_layer:
    case BY_role:
    case N_BY: break;
    }
    return s->role[0] ? qn_role_part(s->role) : s->op[0] ? s->op : s->kernel;
}

/* Series of one phase by their group, as chains through both runs: a log may have a hundred thousand names. */
typedef struct group { const char *name; u32 first[2]; } group; /* index + 1 of a series in run a and in run b */
typedef struct groups { QN_RUN_LIST(group) list; qn_table index; u32 *next[2]; } groups;

static bool collect(qn_compare *c, groups *g, const qn_run *r, int which, qn_phase phase, qn_err *e)
{
    g->next[which] = qn_new_array(r->series.n + 1, sizeof *g->next[which], e);
    if (!g->next[which]) return false;
    for (size_t i = 0; i < r->series.n; i++) {
        const qn_series *s = &r->series.p[i];
        char layer[24];
        if (s->phase != phase || (!s->n && !s->total_ns)) continue;
        snprintf(layer, sizeof layer, "layer %d", s->layer);
        const char *name = c->by == BY_layer && s->layer >= 0 ? layer : group_of(s, c->by);
        u32 at = qn_table_get(&g->index, name, strlen(name));
        if (at == QN_NONE) {
            group *made = QN_RUN_PUSH(&g->list, e);
            at = (u32)(g->list.n - 1);
            if (!made || !(made->name = qn_arena_strndup(&c->arena, name, strlen(name), e))
                || qn_table_put(&g->index, made->name, strlen(name), at, e) == QN_NONE) return false;
        }
        g->next[which][i] = g->list.p[at].first[which];
        g->list.p[at].first[which] = (u32)(i + 1);
    }
    return true;
}

static void close_groups(groups *g)
{
    qn_free(g->list.p);
    qn_table_close(&g->index);
    qn_free(g->next[0]);
    qn_free(g->next[1]);
}

/* The median of each series times its launches: for runs whose series do not go with their passes. */
static void add_median(cost *c, const qn_series *s, double tokens, double *room)
{
    const double launches = (double)(s->expected > s->n ? s->expected : s->n);
    qn_stats st;
    if (s->n_samples < 2) {
        c->mid += (double)s->total_ns / (double)(s->n ? s->n : 1) * launches / tokens;
        c->has_spread = false;
        return;
    }
    for (u64 i = 0; i < s->n_samples; i++) room[i] = (double)s->ns[i];
    qn_stats_of(room, s->n_samples, &st);
    c->mid += st.p50 * launches / tokens;
    c->half += (st.hi - st.lo) / 2 * launches / tokens;
}

static double tokens_of(const qn_run *r, qn_phase phase)
{
    return r->phase_tokens[phase] ? (double)r->phase_tokens[phase] : 1;
}

static bool group_cost(const qn_run *r, const passes *p, u32 first, const u32 *next, cost *c, qn_err *e)
{
    u64 most = p->n;
    bool aligned = p->n > 1;
    *c = (cost){ .there = first != 0, .has_spread = true };
    if (!first) return true;
    for (u32 i = first; i; i = next[i - 1]) {
        const qn_series *s = &r->series.p[i - 1];
        if (s->n_samples > most) most = s->n_samples;
        if (s->n_samples != p->n) aligned = false;
    }
    double *room = qn_new_array(most + 1, sizeof *room, e);
    c->x = room && aligned ? qn_new_array(p->n, sizeof *c->x, e) : NULL;
    if (!room || (aligned && !c->x)) return qn_free(room), false;
    for (u32 i = first; i; i = next[i - 1]) {
        const qn_series *s = &r->series.p[i - 1];
        if (!aligned) add_median(c, s, tokens_of(r, s->phase), room);
        else for (size_t k = 0; k < p->n; k++) c->x[k] += (double)s->ns[k] / (p->at[k]->rows > 0 ? p->at[k]->rows : 1);
    }
    c->n = aligned ? p->n : 0;
    if (aligned) middle_of(c, room);
    qn_free(room);
    return true;
}

/* ---- the difference */

static void judge(qn_delta *d)
{
    if (!d->in_a || !d->in_b) d->verdict = d->in_a ? VERDICT_gone : VERDICT_new;
    else if (!d->has_interval) d->verdict = VERDICT_unknown;
    else if ((d->lo_ns <= 0 && d->hi_ns >= 0) || fabs(d->change) < NOTHING) d->verdict = VERDICT_same;
    else d->verdict = d->diff_ns > 0 ? VERDICT_slower : VERDICT_faster;
}

static bool subtract(const cost *a, const cost *b, size_t pairs, double tokens, qn_delta *d, qn_err *e)
{
    qn_stats s;
    d->in_a = a->there;
    d->in_b = b->there;
    d->a_ns = a->mid;
    d->b_ns = b->mid;
    d->diff_ns = b->mid - a->mid;
    d->has_interval = a->there && b->there && a->has_spread && b->has_spread;
    d->n = qn_minz(a->n, b->n);
    const double half = sqrt(a->half * a->half + b->half * b->half);
    if (a->x && b->x && pairs) {
        double *diff = qn_new_array(pairs, sizeof *diff, e);
        if (!diff) return false;
        for (size_t i = 0; i < pairs; i++) diff[i] = b->x[i] - a->x[i];
        qn_stats_of(diff, pairs, &s);
        qn_free(diff);
        d->paired = true;
        d->n = pairs;
        d->diff_ns = s.p50;
        d->lo_ns = s.lo;
        d->hi_ns = s.hi;
    } else {
        d->lo_ns = d->diff_ns - half;
        d->hi_ns = d->diff_ns + half;
    }
    if (!d->has_interval) d->lo_ns = d->hi_ns = d->diff_ns;
    d->change = d->in_a && d->in_b && d->a_ns > 0 ? d->diff_ns / d->a_ns : 0;
    d->cost_ns = d->diff_ns * tokens;
    judge(d);
    return true;
}

/* ---- phases, first token, tests */

static bool add_delta(qn_versus *v, const char *name, qn_phase phase, bool gates, const cost *a, const cost *b, size_t pairs,
                      double tokens, qn_err *e)
{
    if (!a->there && !b->there) return true;
    qn_delta *d = QN_RUN_PUSH(&v->phases, e);
    if (!d) return false;
    *d = (qn_delta){ .name = name, .phase = phase, .gates = gates };
    return subtract(a, b, pairs, tokens, d, e);
}

static bool pass_cost(const passes *p, cost *c, qn_err *e)
{
    *c = (cost){ .there = p->n > 0, .n = p->n };
    if (!p->n) return true;
    c->x = qn_new_array(p->n, sizeof *c->x, e);
    double *room = qn_new_array(p->n, sizeof *room, e);
    for (size_t i = 0; c->x && i < p->n; i++) c->x[i] = (double)p->at[i]->ns / (p->at[i]->rows > 0 ? p->at[i]->rows : 1);
    if (c->x && room) middle_of(c, room);
    qn_free(room);
    return c->x && room;
}

/* Phases with passes are compared by them; others by their time: once, or a token of logs that have only steps. */
static bool compare_phase(const qn_run *a, qn_versus *v, qn_phase phase, const pairing *p, qn_err *e)
{
    cost ca = { 0 }, cb = { 0 };
    const bool makes_tokens = phase == PHASE_prefill || phase == PHASE_decode;
    bool ok = true;
    if (p->a.n && p->b.n) {
        ok = pass_cost(&p->a, &ca, e) && pass_cost(&p->b, &cb, e);
    } else if (phase != PHASE_other && a->phase_ns[phase] && v->b->phase_ns[phase]) {
        const bool once = phase == PHASE_load || phase == PHASE_tokenize;
        const bool by_token = !once && a->phase_tokens[phase] && v->b->phase_tokens[phase];
        ca = (cost){ .there = true, .mid = (double)a->phase_ns[phase] / (by_token ? tokens_of(a, phase) : 1) };
        cb = (cost){ .there = true, .mid = (double)v->b->phase_ns[phase] / (by_token ? tokens_of(v->b, phase) : 1) };
    }
    const double tokens = makes_tokens ? tokens_of(a, phase) : 1;
    ok = ok && add_delta(v, qn_phase_names[phase], phase, makes_tokens, &ca, &cb, p->n, tokens, e);
    qn_free(ca.x);
    qn_free(cb.x);
    return ok;
}

static bool first_token(const qn_run *r, cost *c, qn_err *e)
{
    double *room = qn_new_array(r->requests.n + 1, sizeof *room, e);
    *c = (cost){ 0 };
    if (!room) return false;
    c->x = qn_new_array(r->requests.n + 1, sizeof *c->x, e);
    for (size_t i = 0; c->x && i < r->requests.n; i++)
        if (r->requests.p[i].first_ns) c->x[c->n++] = (double)r->requests.p[i].first_ns;
    c->there = c->n > 0;
    if (c->there) middle_of(c, room);
    qn_free(room);
    return c->x != NULL;
}

static bool test_cost(const qn_run *r, const char *name, cost *c, qn_err *e)
{
    double *room = qn_new_array(r->tests.n + 1, sizeof *room, e);
    *c = (cost){ .x = qn_new_array(r->tests.n + 1, sizeof *c->x, e) };
    for (size_t i = 0; c->x && i < r->tests.n; i++) {
        const qn_run_test *t = &r->tests.p[i];
        if (t->rep >= 0 && t->tokens && !strcmp(t->name, name)) c->x[c->n++] = (double)t->ns / (double)t->tokens;
    }
    c->there = c->n > 0;
    if (room && c->x && c->there) middle_of(c, room);
    qn_free(room);
    return room && c->x;
}

static bool compare_tests(const qn_run *a, qn_versus *v, qn_err *e)
{
    bool ok = true;
    for (size_t i = 0; ok && i < a->tests.n; i++) {
        cost ca = { 0 }, cb = { 0 };
        bool seen = a->tests.p[i].rep < 0;
        for (size_t k = 0; k < v->phases.n && !seen; k++) seen = v->phases.p[k].name == a->tests.p[i].name
                                                              || !strcmp(v->phases.p[k].name, a->tests.p[i].name);
        if (seen) continue;
        ok = test_cost(a, a->tests.p[i].name, &ca, e) && test_cost(v->b, a->tests.p[i].name, &cb, e)
            && add_delta(v, a->tests.p[i].name, PHASE_other, true, &ca, &cb, 0, (double)a->tests.p[i].tokens, e);
        qn_free(ca.x);
        qn_free(cb.x);
    }
    return ok;
}

/* ---- steps */

static bool compare_groups(qn_compare *c, qn_versus *v, qn_phase phase, const pairing *p, qn_err *e)
{
    groups g = { 0 };
    bool ok = collect(c, &g, c->a, 0, phase, e) && collect(c, &g, v->b, 1, phase, e);
    for (size_t i = 0; ok && i < g.list.n; i++) {
        const group *it = &g.list.p[i];
        cost a = { 0 }, b = { 0 };
        ok = group_cost(c->a, &p->a, it->first[0], g.next[0], &a, e) && group_cost(v->b, &p->b, it->first[1], g.next[1], &b, e);
        qn_delta *d = ok ? QN_RUN_PUSH(&v->steps, e) : NULL;
        if (d) *d = (qn_delta){ .name = it->name, .phase = phase };
        ok = d && subtract(&a, &b, p->n, tokens_of(c->a, phase), d, e);
        qn_free(a.x);
        qn_free(b.x);
    }
    close_groups(&g);
    return ok;
}

static int by_cost(const void *x, const void *y)
{
    const double a = fabs(((const qn_delta *)x)->cost_ns), b = fabs(((const qn_delta *)y)->cost_ns);
    return (a < b) - (a > b);
}

/* When nearly all steps move the same way, a single change of the program is an unlikely cause. */
static bool note_whole(qn_compare *c, qn_versus *v, qn_err *e)
{
    double all = 0, moved[N_VERDICTS] = { 0 };
    size_t n = 0;
    for (size_t i = 0; i < v->steps.n; i++) {
        const qn_delta *d = &v->steps.p[i];
        if (!d->has_interval || !d->in_a || !d->in_b) continue;
        const double ns = d->a_ns * tokens_of(c->a, d->phase);
        all += ns;
        moved[d->verdict] += ns;
        n++;
    }
    const bool slower = moved[VERDICT_slower] > 0.9 * all, faster = moved[VERDICT_faster] > 0.9 * all;
    if (n < 5 || (!slower && !faster)) return true;
    char text[160];
    snprintf(text, sizeof text, "nearly every step became %s (%.0f %% of their time): look at the machine, its load and its "
             "clocks, before the program", slower ? "slower" : "faster",
             100 * moved[slower ? VERDICT_slower : VERDICT_faster] / all);
    const char **slot = QN_RUN_PUSH(&v->notes, e);
    return slot && (*slot = qn_arena_strndup(&c->arena, text, strlen(text), e));
}

/* ---- all of it */

static bool versus(qn_compare *c, qn_versus *v, qn_err *e)
{
    bool ok = true;
    for (qn_phase f = 0; ok && f < N_PHASES; f++) {
        pairing p = { 0 };
        ok = find_passes(c->a, f, &p.a, e) && find_passes(v->b, f, &p.b, e);
        pair(&p);
        ok = ok && compare_phase(c->a, v, f, &p, e) && compare_groups(c, v, f, &p, e);
        qn_free(p.a.at);
        qn_free(p.b.at);
    }
    cost a = { 0 }, b = { 0 };
    ok = ok && first_token(c->a, &a, e) && first_token(v->b, &b, e)
      && add_delta(v, "first token", PHASE_other, false, &a, &b, 0, 1, e) && compare_tests(c->a, v, e);
    qn_free(a.x);
    qn_free(b.x);
    if (v->steps.n) qsort(v->steps.p, v->steps.n, sizeof *v->steps.p, by_cost);
    ok = ok && note_whole(c, v, e);
    for (size_t i = 0; i < v->phases.n; i++) {
        qn_delta *d = &v->phases.p[i];
        /* without samples nobody knows the noise: then it takes three times the threshold */
        const bool beyond = d->has_interval ? d->change > c->threshold && d->lo_ns > 0 : d->change > 3 * c->threshold;
        d->regressed = d->gates && d->in_a && d->in_b && beyond;
        v->regressed = v->regressed || d->regressed;
    }
    return ok;
}

static bool keep_notes(qn_compare *c, qn_versus *v, const qn_buf *text, qn_err *e)
{
    for (const char *p = text->p; p && *p;) {
        const char *end = strchr(p, '\n');
        const size_t n = end ? (size_t)(end - p) : strlen(p);
        const char **slot = QN_RUN_PUSH(&v->notes, e);
        if (!slot || !(*slot = qn_arena_strndup(&c->arena, p, n, e))) return false;
        p += n + (end != NULL);
    }
    return true;
}

bool qn_compare_open(qn_compare *c, const qn_run *const *runs, size_t n, const qn_compare_options *o, qn_err *e)
{
    assert(n >= 2);
    c->a = runs[0];
    c->by = o->by;
    c->threshold = o->threshold;
    for (size_t i = 1; i < n; i++) {
        char why[160];
        qn_buf notes = { 0 };
        qn_versus *v = QN_RUN_PUSH(&c->others, e);
        if (!v) return false;
        v->b = runs[i];
        const bool like = qn_run_is_like(runs[0], runs[i], why, &notes);
        if (!like && !o->force) {
            qn_buf_close(&notes);
            return qn_fail(e, QN_EUSAGE, "runs 1 and %zu are unlike: %s; --force compares them all the same", i + 1, why);
        }
        if (!like) qn_buf_printf(&notes, "unlike runs, %s\n", why);
        const bool ok = !notes.failed && keep_notes(c, v, &notes, e) && versus(c, v, e);
        qn_buf_close(&notes);
        if (!ok) return e->code ? false : qn_fail(e, QN_ENOMEM, "not enough memory to compare the runs");
        c->regressed = c->regressed || v->regressed;
    }
    return true;
}

void qn_compare_close(qn_compare *c)
{
    for (size_t i = 0; i < c->others.n; i++) {
        qn_free(c->others.p[i].phases.p);
        qn_free(c->others.p[i].steps.p);
        qn_free(c->others.p[i].notes.p);
    }
    qn_free(c->others.p);
    qn_arena_close(&c->arena);
    *c = (qn_compare){ 0 };
}
