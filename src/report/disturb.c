/* disturb.c - outliers against their neighbours. */
#include "report/disturb.h"

#include <math.h>

#include "base/stats.h"

#define REACH 8 /* neighbours on each side */

bool qn_stands_out(double y, double *around, size_t n)
{
    qn_stats s;
    if (n < 5) return false;
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
