/* analysis_growth.c - how the time of a token depends on its position, and which tokens took longer than that
 * explains. Growth is a straight line by least squares, from sums that the readers kept, so it costs nothing however
 * long a run was. Disturbances are what lies far above a line that disturbed tokens had no say in: begun with medians,
 * trimmed by the median absolute deviation, fitted again. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/analysis_parts.h"

/* A Doppler log of 64 batches decided both: its seven disturbed ones stand 4.9 to 48 deviations and 2.2 to 21 % above
 * the line, the next one 3.5 and 1.9 %. */
#define DEVIATIONS 4.5
#define LEAST_SHARE 0.02
enum { ROUNDS = 6, FEWEST = 8, MOST_KERNELS = 200 };

/* ---- lines --------------------------------------------------------------------------------------------------------- */

void qn_fit_merge(qn_fit *into, const qn_fit *from)
{
    into->n += from->n;
    into->sx += from->sx, into->sy += from->sy;
    into->sxx += from->sxx, into->sxy += from->sxy, into->syy += from->syy;
}

bool qn_fit_line(const qn_fit *f, qn_trend *out)
{
    const double n = (double)f->n;
    *out = (qn_trend){ 0 };
    if (f->n < 3) return false;
    const double vx = f->sxx - f->sx * f->sx / n, vy = f->syy - f->sy * f->sy / n, cov = f->sxy - f->sx * f->sy / n;
    if (!isfinite(vx) || !isfinite(cov) || !isfinite(vy) || vx <= 1e-9 * f->sxx) return false; /* one position only */
    out->b = cov / vx;
    out->a = (f->sy - out->b * f->sx) / n;
    const double left = vy - out->b * cov > 0 ? vy - out->b * cov : 0;
    out->b_error = sqrt(left / (n - 2) / vx);
    out->r2 = vy > 0 ? 1 - left / vy : 0;
    const double half = sqrt(3 * vx / n), mean = f->sx / n; /* of positions that are evenly spread */
    out->x_lo = mean > half ? mean - half : 0;
    out->x_hi = mean + half;
    return true;
}

static bool is_like(const qn_analysis *a, const qn_run_pass *p)
{
    return p->phase == PHASE_decode && qn_mini(1024, p->seqs) == a->decode_seqs;
}

/* ---- growth -------------------------------------------------------------------------------------------------------- */

/* Of the decode passes that were not disturbed. */
static void positions(const qn_analysis *a, double *lo, double *hi)
{
    bool any = false;
    for (size_t i = 0, skip = 0; i < a->run->passes.n; i++) {
        const qn_run_pass *p = &a->run->passes.p[i];
        if (skip < a->disturbed.n && a->disturbed.p[skip].pass == i) {
            skip++;
            continue;
        }
        if (!is_like(a, p)) continue;
        const double x = (double)p->pos;
        if (!any || x < *lo) *lo = x;
        if (!any || x > *hi) *hi = x;
        any = true;
    }
}

static const char *time_text(double ns, char out[32])
{
    const double size = fabs(ns);
    if (size >= 1e5) snprintf(out, 32, "%.2f ms", ns / 1e6);
    else if (size >= 10) snprintf(out, 32, "%.2f us", ns / 1e3);
    else snprintf(out, 32, "%.2f ns", ns);
    return out;
}

/* Words for a slope: it must be three times its own error, and change the time by a twentieth over the positions seen. And it
 * must explain half of what the times differ by, or else matter to the whole token (of: at its middle): what wanders with the
 * machine wanders slowly, so that a kernel of a microsecond often has a slope that is no chance and means nothing. */
static void judge(qn_growth *g, double of)
{
    const double change = g->slope_ns * (g->x_hi - g->x_lo), mid = (g->first_ns + g->last_ns) / 2;
    char text[32];
    if (g->n < FEWEST) {
        snprintf(g->verdict, sizeof g->verdict, "too few positions");
        return;
    }
    const bool matters = g->r2 >= 0.5 || fabs(change) >= 0.005 * fabs(of);
    if (fabs(g->slope_ns) <= 3 * g->error_ns || fabs(change) < 0.05 * fabs(mid) || !matters) {
        g->kind = GROWTH_flat;
        snprintf(g->verdict, sizeof g->verdict, "flat");
    } else if (g->slope_ns > 0) {
        g->kind = GROWTH_grows;
        snprintf(g->verdict, sizeof g->verdict, "grows %s per position", time_text(g->slope_ns, text));
    } else {
        g->kind = GROWTH_shrinks;
        snprintf(g->verdict, sizeof g->verdict, "shrinks %s per position", time_text(-g->slope_ns, text));
    }
}

/* f: ns a token against position. */
static bool add_growth(qn_analysis *a, const char *name, const qn_fit *f, qn_err *e)
{
    qn_trend line;
    if (!qn_fit_line(f, &line)) return true;
    qn_growth *g = QN_RUN_PUSH(&a->growth, e);
    if (!g) return false;
    *g = (qn_growth){ .name = name, .n = f->n, .x_lo = line.x_lo, .x_hi = line.x_hi, .r2 = line.r2, .at_zero_ns = line.a,
                      .slope_ns = line.b, .error_ns = line.b_error };
    positions(a, &g->x_lo, &g->x_hi);
    g->first_ns = g->at_zero_ns + g->slope_ns * g->x_lo;
    g->last_ns = g->at_zero_ns + g->slope_ns * g->x_hi;
    judge(g, (a->growth.p[0].first_ns + a->growth.p[0].last_ns) / 2); /* the first is the whole token */
    return true;
}

static int by_slope(const void *x, const void *y)
{
    const qn_growth *a = x, *b = y;
    if (a->slope_ns != b->slope_ns) return a->slope_ns > b->slope_ns ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* One value a decode pass (room), the disturbed ones left out. */
static void fit_passes(const qn_analysis *a, const double *ns_token, qn_fit *f)
{
    size_t skip = 0, k = 0;
    for (size_t i = 0; i < a->run->passes.n; i++) {
        const qn_run_pass *p = &a->run->passes.p[i];
        if (p->phase != PHASE_decode) continue;
        if (skip < a->disturbed.n && a->disturbed.p[skip].pass == i) skip++;
        else if (is_like(a, p)) qn_fit_add(f, (double)p->pos, ns_token[k]);
        k++;
    }
}

/* What a kernel took in each decode pass, a token: where each of its series has one sample a pass, sample k is pass k's. */
static bool by_pass(const qn_analysis *a, const char *name, double *out, size_t n)
{
    const qn_run *r = a->run;
    memset(out, 0, n * sizeof *out);
    for (size_t i = 0; i < r->series.n; i++) {
        const qn_series *s = &r->series.p[i];
        if (s->phase != PHASE_decode || strcmp(*s->kernel ? s->kernel : *s->op ? s->op : s->role, name)) continue;
        if (s->n_samples != n) return false;
        for (size_t k = 0; k < n; k++) out[k] += (double)s->ns[k];
    }
    for (size_t i = 0, k = 0; i < r->passes.n; i++) {
        const qn_run_pass *p = &r->passes.p[i];
        if (p->phase != PHASE_decode) continue;
        if (p->rows > 0 && p->seqs > 0) out[k] *= (double)p->seqs / p->rows;
        k++;
    }
    return true;
}

/* Otherwise the reader's sums serve, disturbed launches and all, brought from a launch to a token. */
static bool from_sums(const qn_analysis *a, const qn_row *r, qn_fit *f)
{
    const double tokens = (double)a->phases[PHASE_decode].tokens;
    if (r->fit.sy <= 0 || tokens <= 0) return false;
    const double scale = (double)r->total_ns / tokens / (r->fit.sy / (double)r->fit.n);
    *f = r->fit;
    f->sy *= scale, f->sxy *= scale, f->syy *= scale * scale;
    return true;
}

static bool steps_apart(const qn_run *r);

bool qn_analyse_growth(qn_analysis *a, qn_err *e)
{
    const size_t n = (size_t)a->phases[PHASE_decode].passes;
    const bool steps = steps_apart(a->run);
    qn_rows rows = { 0 };
    qn_fit all = { 0 };
    double *room = qn_new_array(n + 1, sizeof *room, e);
    bool ok = room != NULL;
    for (size_t i = 0, k = 0; ok && i < a->run->passes.n; i++)
        if (a->run->passes.p[i].phase == PHASE_decode) room[k++] = qn_pass_token_ns(&a->run->passes.p[i], steps);
    if (ok) fit_passes(a, room, &all);
    ok = ok && add_growth(a, "all steps", &all, e) && qn_rows_of(a, BY_kernel, false, &a->arena, &rows, e);
    const size_t whole = a->growth.n;
    for (size_t i = 0; ok && i < rows.n && a->growth.n < whole + MOST_KERNELS; i++) {
        const qn_row *r = &rows.p[i];
        qn_fit f = { 0 };
        if (r->phase != PHASE_decode) continue;
        if (n && by_pass(a, r->name, room, n)) fit_passes(a, room, &f);
        else if (!from_sums(a, r, &f)) continue;
        ok = add_growth(a, r->name, &f, e);
    }
    if (ok && a->growth.n > whole) qsort(a->growth.p + whole, a->growth.n - whole, sizeof *a->growth.p, by_slope);
    qn_free(rows.p);
    qn_free(room);
    return ok;
}

/* ---- disturbances -------------------------------------------------------------------------------------------------- */

typedef struct points { double *x, *y, *left, *room; u32 *pass, *ordinal; size_t n; double a, b, scale; } points;

/* Where much of a pass lies between its steps (a GPU that is fed and read back), its steps are the steadier measure. */
static bool steps_apart(const qn_run *r)
{
    double all = 0, steps = 0;
    for (size_t i = 0; i < r->passes.n; i++) {
        if (r->passes.p[i].phase != PHASE_decode) continue;
        all += (double)r->passes.p[i].ns;
        steps += (double)r->passes.p[i].steps_ns;
        if (!r->passes.p[i].steps_ns) return false;
    }
    return steps < 0.95 * all || all == 0;
}

/* The middle of those on one side of x; false: there are none. */
static bool middle_of(points *p, double at, bool right, double *x, double *y)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        if ((p->x[i] > at) == right) p->room[n++] = p->x[i];
    *x = qn_median_of(p->room, n);
    n = 0;
    for (size_t i = 0; i < p->n; i++)
        if ((p->x[i] > at) == right) p->room[n++] = p->y[i];
    *y = qn_median_of(p->room, n);
    return n > 0;
}

/* A line to begin with: through the medians of the nearer and the farther half. One pass far off to the side (a warm-up at
 * position 0 before many at 2,048) would pull a line by least squares onto itself and never be seen as out of it. */
static void fit_halves(points *p)
{
    double x[2], y[2];
    memcpy(p->room, p->x, p->n * sizeof *p->room);
    const double at = qn_median_of(p->room, p->n);
    const bool both = middle_of(p, at, false, &x[0], &y[0]) && middle_of(p, at, true, &x[1], &y[1]);
    p->b = both ? (y[1] - y[0]) / (x[1] - x[0]) : 0;
    p->a = 0; /* the median of what is left comes to it */
}

static void fit_trimmed(points *p)
{
    double limit = 0;
    for (int round = 0; round < ROUNDS; round++) {
        qn_fit f = { 0 };
        qn_trend line;
        for (size_t i = 0; round && i < p->n; i++)
            if (fabs(p->left[i]) <= limit) qn_fit_add(&f, p->x[i], p->y[i]);
        if (round == 0) fit_halves(p);
        else if (qn_fit_line(&f, &line)) p->a = line.a, p->b = line.b;
        for (size_t i = 0; i < p->n; i++) p->room[i] = p->y[i] - p->a - p->b * p->x[i];
        memcpy(p->left, p->room, p->n * sizeof *p->left);
        const double middle = qn_median_of(p->room, p->n);
        p->a += middle; /* the line through the middle: what trimming cannot reach, the median can */
        for (size_t i = 0; i < p->n; i++) p->left[i] -= middle, p->room[i] = fabs(p->left[i]);
        p->scale = 1.4826 * qn_median_of(p->room, p->n);
        limit = 4 * p->scale;
    }
}

static bool note_disturbed(qn_analysis *a, const points *p, bool steps, qn_err *e)
{
    for (size_t i = 0; i < p->n; i++) {
        const qn_run_pass *pass = &a->run->passes.p[p->pass[i]];
        const double expected = p->y[i] - p->left[i], tokens = p->y[i] > 0 ? 1 / p->y[i] : 0;
        if (p->left[i] <= DEVIATIONS * p->scale || p->left[i] <= LEAST_SHARE * fabs(expected)) continue;
        const double whole = (double)(steps && pass->steps_ns ? pass->steps_ns : pass->ns) * tokens; /* tokens in the pass */
        qn_disturbed *d = QN_RUN_PUSH(&a->disturbed, e);
        if (!d) return false;
        *d = (qn_disturbed){ .pass = p->pass[i], .ordinal = p->ordinal[i], .ns = pass->ns, .expected_ns = expected * whole,
                             .extra_ns = p->left[i] * whole };
        a->disturbed_ns += d->extra_ns;
    }
    return true;
}

bool qn_analyse_disturbed(qn_analysis *a, qn_err *e)
{
    const qn_run *r = a->run;
    const size_t n = r->passes.n;
    const bool steps = steps_apart(r);
    if (a->phases[PHASE_decode].passes < FEWEST) return true;
    points p = { .x = qn_new_array(4 * n, sizeof(double), e), .pass = qn_new_array(2 * n, sizeof(u32), e) };
    bool ok = p.x && p.pass;
    if (ok) p.y = p.x + n, p.left = p.y + n, p.room = p.left + n, p.ordinal = p.pass + n;
    for (size_t i = 0, ordinal = 0; ok && i < n; i++) {
        ordinal += r->passes.p[i].phase == PHASE_decode;
        if (!is_like(a, &r->passes.p[i])) continue;
        p.ordinal[p.n] = (u32)ordinal;
        p.x[p.n] = (double)r->passes.p[i].pos;
        p.y[p.n] = qn_pass_token_ns(&r->passes.p[i], steps);
        p.pass[p.n++] = (u32)i;
    }
    if (ok) {
        fit_trimmed(&p);
        ok = note_disturbed(a, &p, steps, e);
    }
    qn_free(p.x);
    qn_free(p.pass);
    return ok;
}
