/* compare.c - one case of one kernel: against the oracle, with several lanes, through a real pool, row by row. */
#include "probe/compare.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "kernel/shape.h"

typedef struct trial {
    const qn_kernel *kernel;
    qn_case *c;
    const qn_references *known;
    qn_pool *pool;
    qn_probe_result *r;
    qn_err *e;
    u8 *first[QN_OPERANDS]; /* what the first run left in each output: all others must leave the same bits */
} trial;

static bool wrong(trial *t, const char *fmt, ...) QN_PRINTF(2, 3);
static bool wrong(trial *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(t->r->why, sizeof t->r->why, fmt, ap);
    va_end(ap);
    return false;
}

static qn_kernel_fn reference(qn_op op)
{
    for (int i = 0; i < qn_n_kernels; i++)
        if (qn_kernels[i].op == op && qn_kernels[i].isa == ISA_ref) return qn_kernels[i].fn;
    return NULL;
}

/* ---- running: with lanes one after the other, the last first */

static void run_lanes(qn_kernel_fn fn, const qn_args *a, int lanes)
{
    for (int i = lanes - 1; i >= 0; i--) fn(a, lane_of(i, lanes));
}

static void note(trial *t, const char *how)
{
    char text[QN_SHAPE_TEXT + 16];
    qn_case_print(t->c, text, sizeof text);
    snprintf(t->r->at, sizeof t->r->at, "%s, %s", text, how);
}

static bool unharmed(trial *t)
{
    const char *name = qn_case_damage(t->c);
    return !name || wrong(t, "writes into or around %s", name);
}

/* ---- comparing */

static void keep_worst(double *most, double x)
{
    if (x > *most) *most = x;
}

static bool same_kind(float y, double want)
{
    if (isnan(want)) return isnan(y);
    if (isinf(want)) return (double)y == want;
    return isfinite(y) || fabs(want) > (double)FLT_MAX;
}

static bool within(trial *t, const qn_operand *o, const double *want, const double *bound)
{
    const float *y = (const float *)(const void *)o->p;
    const size_t n = o->bytes / sizeof *y;
    double top = 0, err2 = 0, ref2 = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(want[i])) keep_worst(&top, fabs(want[i]));
    for (size_t i = 0; i < n; i++) {
        if (!same_kind(y[i], want[i])) return wrong(t, "%s[%zu] is %g, not %g", o->name, i, (double)y[i], want[i]);
        if (!isfinite(want[i]) || !isfinite(y[i])) continue;
        const double err = fabs((double)y[i] - want[i]), most = bound[i] * (t->kernel ? t->kernel->slack : 1);
        if (err > most)
            return wrong(t, "%s[%zu] is %.9g, not %.9g (off by %.3g, bound %.3g)", o->name, i, (double)y[i], want[i], err,
                         most);
        if (most > 0) keep_worst(&t->r->off.worst, err / most);
        if (t->c->mood != MOOD_plain) continue;
        keep_worst(&t->r->off.max_abs, err);
        if (fabs(want[i]) > top / 1000) keep_worst(&t->r->off.max_rel, err / fabs(want[i]));
        err2 += err * err;
        ref2 += want[i] * want[i];
    }
    if (ref2 > 0) keep_worst(&t->r->off.nmse, err2 / ref2);
    return true;
}

static bool same_bits(trial *t, const u8 *const want[QN_OPERANDS], const char *whose)
{
    for (int i = 0; i < t->c->n_operands; i++) {
        const qn_operand *o = &t->c->operand[i];
        if (o->use == USE_in || o->use == USE_scratch || !memcmp(o->p, want[i], o->bytes)) continue;
        size_t at = 0;
        while (o->p[at] == want[i][at]) at++;
        return wrong(t, "%s differs from %s at byte %zu", o->name, whose, at);
    }
    return true;
}

static void keep_outputs(trial *t)
{
    for (int i = 0; i < t->c->n_operands; i++) memcpy(t->first[i], t->c->operand[i].p, t->c->operand[i].bytes);
}

/* ---- the steps of a trial; the first run's outputs are in place for the first of them */

/* For ops without rounding of their own: the bits of the reference. */
static bool meets_reference(trial *t)
{
    qn_case_reset(t->c);
    run_lanes(reference(t->c->op), &t->c->args, 1);
    return same_bits(t, (const u8 *const *)t->first, "the reference");
}

static bool meets_oracle(trial *t)
{
    for (int i = 0; i < t->c->n_operands; i++) {
        const qn_operand *o = &t->c->operand[i];
        if (o->use == USE_in || o->use == USE_scratch) continue;
        const qn_reference *ref = t->known ? &t->known->of[t->c->mood][i] : NULL;
        const size_t n = o->bytes / sizeof(float);
        if (ref && ref->y && ref->n == n) {
            if (!within(t, o, ref->y, ref->y + n)) return false;
            continue;
        }
        double *want = qn_new_array(2 * n + 1, sizeof *want, t->e);
        if (!want) return false;
        const bool known = qn_oracle(t->c, i, want, want + n), ok = known && within(t, o, want, want + n);
        qn_free(want);
        if (!known) return meets_reference(t);
        if (!ok) return false;
    }
    return true;
}

static bool same_with_lanes(trial *t)
{
    static const int lanes[] = { 2, 3, 7 };
    for (size_t i = 0; i < QN_COUNT(lanes); i++) {
        char how[32];
        snprintf(how, sizeof how, "%d lanes", lanes[i]);
        note(t, how);
        qn_case_reset(t->c);
        run_lanes(t->kernel->fn, &t->c->args, lanes[i]);
        if (!unharmed(t) || !same_bits(t, (const u8 *const *)t->first, "the result of one lane")) return false;
    }
    note(t, "thread pool");
    qn_case_reset(t->c);
    qn_pool_run(t->pool, t->kernel->fn, &t->c->args);
    return unharmed(t) && same_bits(t, (const u8 *const *)t->first, "the result of one lane");
}

static bool same_row_by_row(trial *t)
{
    if (!qn_case_has_rows(t->c)) return true;
    note(t, "row by row");
    qn_case_reset(t->c);
    for (int r = 0; r < t->c->args.n; r++) {
        qn_rows rows;
        const qn_args a = qn_case_row(t->c, r, &rows);
        run_lanes(t->kernel->fn, &a, 1);
        qn_case_row_end(t->c, r);
    }
    return unharmed(t) && same_bits(t, (const u8 *const *)t->first, "the result of all rows at once");
}

static bool run_trial(trial *t)
{
    note(t, "1 lane");
    qn_case_reset(t->c);
    run_lanes(t->kernel->fn, &t->c->args, 1);
    if (!unharmed(t)) return false;
    keep_outputs(t);
    return meets_oracle(t) && same_with_lanes(t) && same_row_by_row(t);
}

bool qn_compare(const qn_kernel *k, qn_case *c, const qn_references *known, qn_pool *pool, qn_probe_result *r, qn_err *e)
{
    trial t = { .kernel = k, .c = c, .known = known, .pool = pool, .r = r, .e = e };
    bool ok = true;
    for (int i = 0; i < c->n_operands && ok; i++) {
        t.first[i] = qn_new(c->operand[i].bytes + 1, e);
        ok = t.first[i] != NULL;
    }
    ok = ok && run_trial(&t);
    for (int i = 0; i < c->n_operands; i++) qn_free(t.first[i]);
    return ok;
}

bool qn_compare_outputs(qn_case *c, const qn_references *known, qn_probe_result *r, qn_err *e)
{
    trial t = { .c = c, .known = known, .r = r, .e = e };
    return unharmed(&t) && meets_oracle(&t);
}
