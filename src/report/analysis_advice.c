/* analysis_advice.c - the few things that cost most, and what to try. Every sentence has its figures from the run,
 * every entry its cost in ns, and the order is by that cost; what costs less than a hundredth of the wall time is not
 * said. A rule is a function below and a call at the end. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/analysis_parts.h"

enum { MOST = 8 };

typedef struct adviser { qn_analysis *a; qn_rows ops, roles, kernels; bool ours; qn_err *e; bool ok; } adviser;

static void advise(adviser *v, double cost_ns, const char *try_this, const char *fmt, ...) QN_PRINTF(4, 5);
static void advise(adviser *v, double cost_ns, const char *try_this, const char *fmt, ...)
{
    va_list ap;
    if (!v->ok || !(cost_ns >= 0.01 * (double)v->a->wall_ns)) return;
    qn_advice *x = QN_RUN_PUSH(&v->a->advice, v->e);
    if (!x) {
        v->ok = false;
        return;
    }
    x->cost_ns = cost_ns;
    snprintf(x->try_this, sizeof x->try_this, "%s", try_this);
    va_start(ap, fmt);
    vsnprintf(x->what, sizeof x->what, fmt, ap);
    va_end(ap);
}

/* ---- steps below their ceiling ------------------------------------------------------------------------------------- */

static const char *cure(const adviser *v, const qn_row *r)
{
    if (!v->ours) return "compare this kernel's variants at this shape";
    if (strstr(r->op, "attend") && r->bound == BOUND_memory)
        return "--kv q8_0 halves what attention reads; a shorter context (-c) bounds it";
    if (r->bound == BOUND_memory && qn_op_is_matmul(r->op))
        return "fewer bytes: a smaller type (quern quantize); or `quern doctor` to see what keeps memory slow here";
    if (qn_op_is_matmul(r->op)) return "`quern plan` says why this kernel was chosen; `quern probe` times the others";
    return "`quern probe` times the kernels of this op";
}

static void look_at_ceilings(adviser *v)
{
    for (size_t i = 0; i < v->ops.n; i++) {
        const qn_row *r = &v->ops.p[i];
        if (r->share < 0.1 || r->of_ceiling <= 0 || r->of_ceiling > 0.6) continue;
        advise(v, (double)r->total_ns - r->ideal_ns, cure(v, r),
               "%s takes %.0f %% of %s and runs at %.0f %% of its ceiling (%s).", r->name, 100 * r->share,
               qn_phase_names[r->phase], 100 * r->of_ceiling, r->bound == BOUND_memory ? "memory" : "arithmetic");
    }
}

/* Logs without bytes: the kernels that take more than a third of a phase are named, with how they grow. */
static void look_at_shares(adviser *v)
{
    for (size_t i = 0; i < v->kernels.n; i++) {
        const qn_row *r = &v->kernels.p[i];
        if (r->share < 0.33 || r->bytes > 0 || r->phase == PHASE_other) continue;
        const qn_growth *g = NULL;
        for (size_t k = 0; k < v->a->growth.n && r->phase == PHASE_decode; k++)
            if (!strcmp(v->a->growth.p[k].name, r->name) && v->a->growth.p[k].kind == GROWTH_grows) g = &v->a->growth.p[k];
        const bool add_role = *r->role && !strstr(r->name, r->role);
        advise(v, (double)r->total_ns, cure(v, r), "%s%s%s%s takes %.1f %% of %s%s%s.", r->name, add_role ? " (" : "",
               add_role ? r->role : "", add_role ? ")" : "", 100 * r->share, qn_phase_names[r->phase], g ? " and " : "",
               g ? g->verdict : "");
    }
}

/* A gated feed-forward has twice as many weights in gate and up as in down, whatever its size: time must follow. */
static void look_at_feed_forward(adviser *v)
{
    double down = 0, gate_up = 0;
    const char *name = "";
    for (size_t i = 0; i < v->roles.n; i++) {
        const qn_row *r = &v->roles.p[i];
        if (r->phase != PHASE_decode) continue;
        if (!strcmp(r->role, "ffn_down")) down = (double)r->total_ns, name = *r->op ? r->op : r->name;
        if (strstr("ffn_gate ffn_up ffn_gate_up", r->role) && *r->role) gate_up += (double)r->total_ns;
        else if (!strcmp(r->name, "fused_ffn")) gate_up += (double)r->total_ns;
    }
    if (gate_up <= 0 || down < gate_up) return;
    advise(v, down - gate_up / 2, "use the plain matrix product for ffn_down, as gate and up do",
           "ffn_down (%s) reads half of what gate and up read, yet takes %.1f times as long: %.0f times slower a byte.",
           name, down / gate_up, 2 * down / gate_up);
}

static void look_at_pages(adviser *v)
{
    const qn_run *r = v->a->run;
    double ns = 0, bytes = 0;
    for (size_t i = 0; i < v->ops.n; i++) {
        const qn_row *op = &v->ops.p[i];
        if (op->phase != PHASE_decode || !qn_op_is_matmul(op->op)) continue;
        ns += (double)op->total_ns;
        bytes += op->bytes;
    }
    const double gbs = ns > 0 ? bytes / ns : 0;
    if (r->read_small_gbs <= 0 || r->read_gbs < 1.15 * r->read_small_gbs || gbs < 0.85 * r->read_small_gbs) return;
    if (gbs > 1.05 * r->read_small_gbs) return;
    advise(v, ns * (1 - gbs / r->read_gbs),
           "let quern repack the weights (no --no-repack), and give it huge pages (`quern doctor`)",
           "Matrices are read at %.1f GB/s, as fast as pages of 4 KiB allow (%.1f); huge pages would give %.1f.", gbs,
           r->read_small_gbs, r->read_gbs);
}

/* ---- time that is no work ------------------------------------------------------------------------------------------ */

static void look_at_waiting(adviser *v)
{
    const i64 threads = v->a->run->threads;
    char text[120];
    for (int i = 0; i < N_PHASES; i++) {
        const qn_phase_sum *p = &v->a->phases[i];
        const double share = p->ns ? (double)p->wait_ns / (double)p->ns : 0;
        if (share < 0.05 || (i != PHASE_decode && i != PHASE_prefill)) continue;
        if (threads > 1 && share * (double)threads > 1) /* all their work on one thread less would take less time */
            snprintf(text, sizeof text, "-t %lld: the work of %lld threads waits longer than one of them works",
                     (long long)(threads - 1), (long long)threads);
        else snprintf(text, sizeof text, "look for other programs on %s: who is late makes all others wait",
                      threads > 1 ? "these cores" : "this core");
        advise(v, (double)p->wait_ns, text, "%.0f %% of %s is waiting at barriers (%lld threads).", 100 * share,
               qn_phase_names[i], (long long)threads);
    }
}

static void look_between(adviser *v)
{
    for (int i = 0; i < N_PHASES; i++) {
        const qn_phase_sum *p = &v->a->phases[i];
        const double share = p->ns ? (double)p->between_ns / (double)p->ns : 0;
        if (share < 0.03) continue;
        advise(v, (double)p->between_ns, v->ours ? "a larger batch or fewer, fused steps"
               : "more tokens a submission, or recording while the device works",
               "%.1f %% of %s lies between its steps.", 100 * share, qn_phase_names[i]);
    }
}

/* "27-29, 39, 53-55" */
static void list_disturbed(const qn_analysis *a, char *out, size_t cap)
{
    size_t used = 0;
    out[0] = 0;
    for (size_t i = 0; i < a->disturbed.n;) {
        size_t k = i;
        while (k + 1 < a->disturbed.n && a->disturbed.p[k + 1].ordinal == a->disturbed.p[k].ordinal + 1) k++;
        if (used + 40 > cap) {
            snprintf(out + used, cap - used, ", ...");
            return;
        }
        used += (size_t)snprintf(out + used, cap - used, "%s%u", used ? ", " : "", a->disturbed.p[i].ordinal);
        if (k > i) used += (size_t)snprintf(out + used, cap - used, "-%u", a->disturbed.p[k].ordinal);
        i = k + 1;
    }
}

static void look_at_disturbed(adviser *v)
{
    char list[120];
    const bool one = v->a->disturbed.n == 1;
    if (!v->a->disturbed.n) return;
    list_disturbed(v->a, list, sizeof list);
    advise(v, v->a->disturbed_ns, "run again on a quiet machine; compare medians, not means",
           "Decode pass%s %s %s disturbed, +%.0f ms.", one ? "" : "es", list, one ? "was" : "were",
           v->a->disturbed_ns / 1e6);
}

static void look_at_growth(adviser *v)
{
    if (!v->a->growth.n || v->a->growth.p[0].kind != GROWTH_grows) return;
    const qn_growth *all = &v->a->growth.p[0], *g = all;
    double slope = 0; /* of the kernels that grow: a machine that slows down on its own makes the whole grow too */
    for (size_t i = 1; i < v->a->growth.n; i++) {
        if (v->a->growth.p[i].kind != GROWTH_grows) continue;
        if (g == all) g = &v->a->growth.p[i]; /* the steepest is the one to name */
        slope += v->a->growth.p[i].slope_ns;
    }
    if (g == all) slope = all->slope_ns;
    const double passes = (double)v->a->phases[PHASE_decode].passes, far = all->x_hi > 2048 ? 2 * all->x_hi : 4096;
    const char *cures = v->ours ? "--kv q8_0, or a shorter context (-c)"
                                : "an attention kernel that splits the positions over more of the device";
    advise(v, slope * (all->x_hi - all->x_lo) / 2 * passes, cures,
           "%s %s: at position %.0f a token would take %.1f ms instead of %.1f at position %.0f.", g->name, g->verdict,
           far, (all->first_ns + (far - all->x_lo) * slope) / 1e6, all->first_ns / 1e6, all->x_lo);
}

/* ---- parts of the model, of the run -------------------------------------------------------------------------------- */

static void look_at_head(adviser *v)
{
    for (size_t i = 0; i < v->roles.n; i++) {
        const qn_row *r = &v->roles.p[i];
        if (r->phase != PHASE_decode || r->share < 0.15) continue;
        if (strcmp(r->role, "output") && strcmp(r->role, "lm_head")) continue;
        advise(v, (double)r->total_ns / 2,
               "a smaller type for the head alone: it reads the whole vocabulary for every token",
               "The LM head is %.0f %% of decode.", 100 * r->share);
    }
}

static void look_at_load(adviser *v)
{
    const qn_phase_sum *p = &v->a->phases[PHASE_load];
    if (p->share < 0.4) return;
    advise(v, (double)p->ns, "keep the model open for several prompts", "Loading takes %.0f %% of the run.",
           100 * p->share);
}

static void look_at_implied(adviser *v)
{
    const qn_implied *m = &v->a->implied;
    if (!m->known || m->of_roof <= 0 || m->of_roof > 0.7) return;
    advise(v, (double)m->steps * (m->step_ns - m->roof_ns),
           "its matrix-vector kernels are not held by memory: look at what decodes the weights",
           "A decode step takes %.2f ms; reading %.0f MB at %.0f GB/s would take %.2f: %.0f %% of the bandwidth is used.",
           m->step_ns / 1e6, m->weight_bytes / 1e6, m->bandwidth_gbs, m->roof_ns / 1e6, 100 * m->of_roof);
}

static void look_at_losses(adviser *v)
{
    const qn_implied *m = &v->a->implied;
    u64 expected = 0, captured = 0;
    for (int i = 0; i < N_PHASES; i++)
        if (v->a->phases[i].expected) expected += v->a->phases[i].expected, captured += v->a->phases[i].captured;
    if (m->known) expected = m->expected, captured = m->captured;
    if (captured >= expected || !expected) return;
    const double lost = (double)(expected - captured), share = lost / (double)expected;
    advise(v, share * (double)v->a->wall_ns, "do not trust totals further than that; averages hold",
           "%.0f of %llu launches (%.1f %%) are missing from the trace.", lost, (unsigned long long)expected, 100 * share);
}

static int by_cost(const void *x, const void *y)
{
    const qn_advice *a = x, *b = y;
    return a->cost_ns < b->cost_ns ? 1 : a->cost_ns > b->cost_ns ? -1 : strcmp(a->what, b->what);
}

bool qn_analyse_advice(qn_analysis *a, qn_err *e)
{
    adviser v = { .a = a, .ours = !strcmp(a->run->source, "quern"), .e = e };
    v.ok = qn_rows_of(a, BY_op, false, &a->arena, &v.ops, e) && qn_rows_of(a, BY_role, false, &a->arena, &v.roles, e) &&
           qn_rows_of(a, BY_kernel, false, &a->arena, &v.kernels, e);
    if (v.ok) {
        look_at_ceilings(&v);
        look_at_shares(&v);
        look_at_feed_forward(&v);
        look_at_pages(&v);
        look_at_waiting(&v);
        look_between(&v);
        look_at_disturbed(&v);
        look_at_growth(&v);
        look_at_head(&v);
        look_at_load(&v);
        look_at_implied(&v);
        look_at_losses(&v);
    }
    if (v.ok && a->advice.n) qsort(a->advice.p, a->advice.n, sizeof *a->advice.p, by_cost);
    if (a->advice.n > MOST) a->advice.n = MOST;
    qn_free(v.ops.p);
    qn_free(v.roles.p);
    qn_free(v.kernels.p);
    return v.ok;
}
