/* metallic_print.c - Metallic's analyser, the half that prints, digit for digit: sums in microseconds, divided last;
 * percentiles by linear interpolation between ranks, in the same order of operations. Also the format itself: which
 * events a run has. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "report/metallic_parts.h"

static int ascending(const void *x, const void *y)
{
    const qn_mcount *a = x, *b = y;
    return (a->us > b->us) - (a->us < b->us);
}

/* Counts by value in order, the empty places behind them: no longer a table to add to. */
static void sort_counts(qn_mcounts *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->cap; i++) {
        if (!c->p[i].n) continue;
        const qn_mcount one = c->p[i];
        c->p[i] = (qn_mcount){ 0 };
        c->p[n++] = one;
    }
    qsort(c->p, n, sizeof *c->p, ascending);
}

static double at_rank(const qn_mcounts *c, u64 rank)
{
    size_t i = 0;
    for (u64 below = c->p[0].n; below <= rank; below += c->p[i].n) i++;
    return c->p[i].us;
}

static double percentile(const qn_mgroup *g, double pct)
{
    const double rank = pct / 100.0 * (double)(g->n - 1), lower = floor(rank), upper = ceil(rank), weight = rank - lower;
    if (lower >= upper) return at_rank(&g->us, (u64)lower);
    return at_rank(&g->us, (u64)lower) * (1 - weight) + at_rank(&g->us, (u64)upper) * weight;
}

static void put_row(qn_buf *out, int pad, const char *prefix, const char *title, qn_mgroup *g)
{
    qn_buf_printf(out, "%*s%s", pad, "", prefix);
    qn_buf_puts(out, title);
    if (!g || !g->n) {
        qn_buf_puts(out, ": no samples\n");
        return;
    }
    sort_counts(&g->us);
    const double total = (double)g->total_us / 1000.0;
    qn_buf_printf(out, ": count=%llu | total=%.2fms | avg=%.3fms | min=%.3fms | max=%.3fms | ", (unsigned long long)g->n,
                  total,
                  total / (double)g->n, (double)g->min_us / 1000.0, (double)g->max_us / 1000.0);
    qn_buf_printf(out, "p95_ms=%.3fms, p99_ms=%.3fms\n", percentile(g, 95) / 1000.0, percentile(g, 99) / 1000.0);
}

/* ---- order --------------------------------------------------------------------------------------------------------- */

static int by_total(const void *x, const void *y)
{
    const qn_mgroup *a = x, *b = y;
    if (a->total_us != b->total_us) return a->total_us < b->total_us ? 1 : -1;
    return a->order < b->order ? -1 : 1;
}

static int by_total_then_name(const void *x, const void *y)
{
    const qn_mgroup *a = x, *b = y;
    if (a->total_us != b->total_us) return a->total_us < b->total_us ? 1 : -1;
    return strcmp(a->title, b->title);
}

static int by_count(const void *x, const void *y)
{
    const qn_mgroup *a = x, *b = y;
    if (a->count != b->count) return a->count < b->count ? 1 : -1;
    return a->order < b->order ? -1 : 1;
}

static void sort(qn_metallic *m, qn_msum sum, int (*order)(const void *, const void *))
{
    if (m->groups[sum].n) qsort(m->groups[sum].p, m->groups[sum].n, sizeof *m->groups[sum].p, order);
}

/* ---- filters ------------------------------------------------------------------------------------------------------- */

static bool ends(const char *s, const char *with) { return qn_ends_with(s, with); }

static bool is_total(const char *kernel) { return ends(kernel, "_total") || ends(kernel, "cb_wait"); }

static bool passes(const qn_report_options *o, const char *title)
{
    return !o->kernel_filter || !*o->kernel_filter || strcasestr(title, o->kernel_filter);
}

/* ---- sections ------------------------------------------------------------------------------------------------------ */

typedef struct view { qn_metallic *m; const qn_report_options *o; qn_buf *out; u64 top, kernel_top; } view;

static void put_counts(const view *v, qn_msum sum, const char *head, const char *prefix, const char *between)
{
    if (!v->m->groups[sum].n) return;
    sort(v->m, sum, by_count);
    qn_buf_printf(v->out, "\n%s:\n", head);
    if (sum == SUM_foundry && v->m->dispatches)
        qn_buf_printf(v->out, "  total dispatches (reported): %llu\n", (unsigned long long)v->m->dispatches);
    for (size_t i = 0; i < v->m->groups[sum].n && i < v->top; i++) {
        const qn_mgroup *g = &v->m->groups[sum].p[i];
        qn_buf_printf(v->out, "  %s", prefix);
        qn_buf_puts(v->out, g->title);
        qn_buf_printf(v->out, "%s%llu\n", between, (unsigned long long)g->count);
    }
}

/* filtered: the kernel filter applies; says_none: an empty section says so. */
static void put_sums(const view *v, qn_msum sum, const char *head, const char *prefix, bool filtered, bool says_none)
{
    u64 shown = 0;
    const u64 top = sum == SUM_kernel ? v->kernel_top : v->top;
    if (!v->m->groups[sum].n) return;
    sort(v->m, sum, sum == SUM_parent ? by_total_then_name : by_total);
    qn_buf_printf(v->out, "\n%s:\n", head);
    bool any = false;
    for (size_t i = 0; i < v->m->groups[sum].n; i++) {
        qn_mgroup *g = &v->m->groups[sum].p[i];
        if (sum == SUM_kernel && !v->o->include_kernel_totals && is_total(g->title)) continue;
        if (filtered && !passes(v->o, g->title)) continue;
        any = true;
        if (shown++ < top) put_row(v->out, 2, prefix, g->title, g);
    }
    if (!any && says_none) qn_buf_puts(v->out, "  (no kernels matched)\n");
}

static void put_types(const view *v)
{
    sort(v->m, SUM_type, by_count);
    qn_buf_puts(v->out, "\nEvent type summary:\n");
    for (size_t i = 0; i < v->m->groups[SUM_type].n; i++) {
        qn_mgroup *g = &v->m->groups[SUM_type].p[i];
        qn_buf title = { 0 };
        qn_buf_printf(&title, "%s (count=%llu)", g->title, (unsigned long long)g->count);
        put_row(v->out, 2, "", title.p ? title.p : "", g);
        v->out->failed = v->out->failed || title.failed;
        qn_buf_close(&title);
    }
}

static bool shape_passes(const view *v, const qn_mgroup *shape)
{
    if (passes(v->o, shape->title)) return true;
    for (size_t i = 0; i < v->m->groups[SUM_shape_backend].n; i++) {
        const qn_mgroup *b = &v->m->groups[SUM_shape_backend].p[i];
        if (b->parent == shape->order && passes(v->o, b->title)) return true;
    }
    return false;
}

static void put_shapes(const view *v)
{
    u64 shown = 0;
    if (!v->m->groups[SUM_shape].n) return;
    sort(v->m, SUM_shape, by_total);
    sort(v->m, SUM_shape_backend, by_total);
    qn_buf_puts(v->out, "\nMatmul shape backend summary:\n");
    for (size_t i = 0; i < v->m->groups[SUM_shape].n && shown < v->top; i++) {
        const qn_mgroup *shape = &v->m->groups[SUM_shape].p[i];
        if (!shape_passes(v, shape)) continue;
        shown++;
        qn_buf_puts(v->out, "  ");
        qn_buf_puts(v->out, shape->title);
        qn_buf_puts(v->out, ":\n");
        for (size_t k = 0; k < v->m->groups[SUM_shape_backend].n; k++) {
            qn_mgroup *b = &v->m->groups[SUM_shape_backend].p[k];
            if (b->parent == shape->order) put_row(v->out, 4, "backend=", b->title, b);
        }
    }
}

void qn_metallic_print(qn_metallic *m, const qn_report_options *o, qn_buf *out)
{
    const view v = { .m = m, .o = o, .out = out, .top = o->top > 0 ? (u64)o->top : o->top < 0 ? UINT64_MAX : 20,
                     .kernel_top = o->kernel_top > 0 ? (u64)o->kernel_top : 50 };
    qn_buf_printf(out, "Total events: %llu\n", (unsigned long long)m->events);
    put_types(&v);
    put_counts(&v, SUM_backend, "Backend selection summary", "backend=", ": count=");
    put_counts(&v, SUM_reason, "Backend selection reasons", "reason=", ": count=");
    put_counts(&v, SUM_op_backend, "Backend selection by op/backend", "op=", ": count=");
    put_sums(&v, SUM_parent, "Internal kernel by parent", "", false, false);
    put_sums(&v, SUM_parent_op, "Internal kernel by parent/op", "", false, false);
    put_sums(&v, SUM_kernel, "Kernel aggregate (all parents)", "", true, true);
    put_sums(&v, SUM_gpu, "GPU kernel durations (excluding waits)", "", true, true);
    put_sums(&v, SUM_gpu_kind, "GPU kernel aggregate (by kernel type)", "", true, true);
    put_counts(&v, SUM_foundry, "Foundry capture kernel counts", "", ": ");
    put_sums(&v, SUM_mm_backend, "Matmul backend summary", "backend=", true, false);
    put_sums(&v, SUM_mm_op, "Matmul op/backend summary", "", true, false);
    put_shapes(&v);
    put_sums(&v, SUM_wait, "GPU wait breakdown", "", false, false);
    put_sums(&v, SUM_cb_gpu, "Command buffer GPU timing", "", false, false);
    qn_buf_puts(out, "\nSync operations:\n");
    put_row(out, 2, "", "sync kernels", m->groups[SUM_sync].n ? &m->groups[SUM_sync].p[0] : NULL);
}

/* ---- the format ---------------------------------------------------------------------------------------------------- */

static bool take(void *user, const qn_metallic_event *ev, qn_err *e) { return qn_metallic_add(user, ev, e); }

bool qn_format_metallic(const qn_run *const *runs, size_t n, const qn_report_options *o, qn_buf *out, qn_err *e)
{
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        const qn_run *r = runs[i];
        qn_metallic *m = qn_metallic_open(e);
        qn_buf_printf(out, "\n=== Analyzing ");
        qn_buf_puts(out, r->path);
        qn_buf_puts(out, " ===\n");
        ok = m != NULL;
        const bool again = qn_is_file(r->path); /* a pipe cannot be read twice, and a stored run's trace may be gone */
        if (ok && again && !strcmp(r->source, "metallic")) ok = qn_metallic_read(r->path, take, m, out, e);
        else if (ok && again && !strcmp(r->source, "quern")) ok = qn_metallic_tell_trace(r->path, take, m, e);
        else if (ok) ok = qn_metallic_tell_run(r, take, m, e);
        if (ok) qn_metallic_print(m, o, out);
        qn_metallic_close(m);
    }
    return ok;
}
