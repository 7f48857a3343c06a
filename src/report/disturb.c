/* disturb.c - outliers against their neighbours. */
#include "report/disturb.h"

#include <math.h>
#include <string.h>

#include "base/stats.h"

#define REACH 8 /* neighbours on each side */

bool qn_stands_out(double y, double *around, size_t n)
{
    qn_stats s;
    if (n < 5) return false;
    double least = around[0];
    for (size_t i = 1; i < n; i++) least = fmin(least, around[i]);
    if (y <= 1.25 * least) return false; /* nearly always: no need to sort */
    qn_stats_of(around, n, &s);
    const double median = s.p50;
    for (size_t i = 0; i < n; i++) around[i] = fabs(around[i] - median);
    qn_stats_of(around, n, &s);
    const double spread = 5 * 1.4826 * s.p50; /* 1.4826: from median deviation to standard deviation */
    return y > median + fmax(0.25 * median, spread);
}

static bool pass_counts(const qn_run_pass *p, const qn_run_pass *like)
{
    return p->phase == PHASE_decode && p->rows == like->rows;
}

static void mark_pass(qn_run *r, size_t at)
{
    double around[2 * REACH];
    size_t n = 0;
    qn_run_pass *p = r->passes.p, *self = &p[at];
    size_t left = 0;
    for (size_t i = at; i-- > 0 && left < REACH && at - i <= 4 * REACH;)
        if (pass_counts(&p[i], self)) around[left++] = (double)p[i].ns;
    n = left;
    for (size_t i = at + 1; i < r->passes.n && n < left + REACH && i - at <= 4 * REACH; i++)
        if (pass_counts(&p[i], self)) around[n++] = (double)p[i].ns;
    self->disturbed = self->phase == PHASE_decode && qn_stands_out((double)self->ns, around, n);
}

static void mark_token(qn_run *r, size_t at)
{
    double around[2 * REACH];
    qn_run_token *t = r->tokens.p, *self = &t[at];
    size_t left = 0;
    for (size_t i = at; i-- > 0 && left < REACH && at - i <= 4 * REACH;)
        if (t[i].request == self->request && t[i].index > 0) around[left++] = (double)t[i].ns;
    size_t n = left;
    for (size_t i = at + 1; i < r->tokens.n && n < left + REACH && i - at <= 4 * REACH; i++)
        if (t[i].request == self->request && t[i].index > 0) around[n++] = (double)t[i].ns;
    self->disturbed = self->index > 0 && qn_stands_out((double)self->ns, around, n);
}

void qn_run_mark_disturbed(qn_run *r)
{
    for (size_t i = 0; i < r->passes.n; i++) mark_pass(r, i);
    for (size_t i = 0; i < r->tokens.n; i++) mark_token(r, i);
}

/* ---- by kernel */

#define COSTS 0.0075

/* [kernel][pass] ns a token, over all layers. */
typedef struct grid { double *y; size_t n_passes; size_t *pass; qn_table kernels; } grid;

static bool fill_grid(grid *g, const qn_run *r, qn_err *e)
{
    for (size_t i = 0; i < r->series.n; i++) {
        const qn_series *s = &r->series.p[i];
        if (s->phase != PHASE_decode || s->n_samples != g->n_passes) continue;
        const u32 kernel = qn_table_put(&g->kernels, s->kernel, strlen(s->kernel), (u32)g->kernels.n, e);
        if (kernel == QN_NONE) return false;
        double *y = g->y + kernel * g->n_passes;
        for (size_t k = 0; k < g->n_passes; k++)
            y[k] += (double)s->ns[k] / (double)qn_maxi(1, r->passes.p[g->pass[k]].rows);
    }
    return true;
}

/* What the kernels that stand out in pass k cost there, ns a token. */
static double excess(const grid *g, size_t k)
{
    double sum = 0, around[2 * REACH], sorted[2 * REACH];
    for (size_t i = 0; i < g->kernels.n; i++) {
        const double *y = g->y + i * g->n_passes;
        size_t n = 0;
        for (size_t j = k > REACH ? k - REACH : 0; j < g->n_passes && j <= k + REACH; j++)
            if (j != k) around[n++] = y[j];
        if (!n) continue;
        memcpy(sorted, around, n * sizeof *sorted);
        qn_stats s;
        qn_stats_of(sorted, n, &s);
        if (qn_stands_out(y[k], around, n)) sum += y[k] - s.p50;
    }
    return sum;
}

bool qn_run_mark_disturbed_by_kernel(qn_run *r, qn_err *e)
{
    grid g = { .pass = qn_new_array(r->passes.n, sizeof *g.pass, e) };
    size_t most = 0, cells = 0;
    if (!g.pass) return false;
    for (size_t i = 0; i < r->passes.n; i++)
        if (r->passes.p[i].phase == PHASE_decode) g.pass[g.n_passes++] = i;
    for (size_t i = 0; i < r->series.n; i++) /* those that the grid will hold */
        most += r->series.p[i].phase == PHASE_decode && r->series.p[i].n_samples == g.n_passes;
    bool ok = qn_mul(most, g.n_passes, &cells) && (g.y = qn_new_array(cells, sizeof *g.y, e)) && fill_grid(&g, r, e);
    for (size_t k = 0; ok && k < g.n_passes; k++) {
        qn_run_pass *p = &r->passes.p[g.pass[k]];
        p->disturbed = excess(&g, k) * qn_maxi(1, p->rows) > COSTS * (double)p->steps_ns;
    }
    qn_table_close(&g.kernels);
    qn_free(g.y);
    qn_free(g.pass);
    return ok;
}
