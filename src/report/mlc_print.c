/* mlc_print.c - `--format mlc`: the two tables that MLC's users make of a profile, to the letter of the first one:
 * every kernel with its total, launches, average, peak, share and running share; and before it the ten that take
 * most, with their peaks. (Those are ordered by total while showing peaks, as there; the default report has better.) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/analysis_parts.h"
#include "report/report.h"

enum { TEN = 10 };

static void put_dashes(qn_buf *out, int n)
{
    qn_buf_putc(out, '|');
    for (int i = 0; i < n; i++) qn_buf_putc(out, '-');
}

static int longest(const qn_rows *rows, size_t n)
{
    size_t most = strlen("Kernel Name");
    for (size_t i = 0; i < n; i++)
        if (strlen(rows->p[i].name) > most) most = strlen(rows->p[i].name);
    return (int)qn_minz(most, 200) + 2;
}

static void put_top(const qn_rows *rows, size_t top, qn_buf *out)
{
    const size_t n = qn_minz(rows->n, top);
    const int width = longest(rows, n);
    qn_buf_printf(out, "### Top %zu Most Time-Consuming Kernels\n\n| %-*s | Peak Time (ms) |\n", top, width, "Kernel Name");
    put_dashes(out, width + 2);
    put_dashes(out, 15);
    qn_buf_puts(out, "|\n");
    for (size_t i = 0; i < n; i++) qn_buf_printf(out, "| %-*s | %-13.2f |\n", width, rows->p[i].name,
                                                 (double)rows->p[i].max_ns / 1e6);
}

static void put_statistics(const qn_rows *rows, qn_buf *out)
{
    const int width = longest(rows, rows->n);
    static const int dashes[] = { 16, 12, 14, 15, 12, 14 };
    double all = 0, sum = 0;
    for (size_t i = 0; i < rows->n; i++) all += (double)rows->p[i].total_ns;
    qn_buf_puts(out, "### Kernel Execution Statistics (Sorted by Total Time)\n\n");
    qn_buf_printf(out, "| %-*s | Total Time (ms) | Iterations | Avg Time (ms) | Peak Time (ms) | %% of Total | "
                  "Cumulative %% |\n", width, "Kernel Name");
    put_dashes(out, width + 2);
    for (size_t i = 0; i < QN_COUNT(dashes); i++) put_dashes(out, dashes[i]);
    qn_buf_puts(out, "|\n");
    for (size_t i = 0; i < rows->n; i++) {
        const qn_row *r = &rows->p[i];
        char share[24], running[24];
        sum += (double)r->total_ns;
        snprintf(share, sizeof share, "%.2f%%", all > 0 ? 100 * (double)r->total_ns / all : 0);
        snprintf(running, sizeof running, "%.2f%%", all > 0 ? 100 * sum / all : 0);
        qn_buf_printf(out, "| %-*s | %-14.2f | %-10llu | %-12.2f | %-13.2f | %-10s | %-12s |\n", width, r->name,
                      (double)r->total_ns / 1e6,
                      (unsigned long long)r->n, r->avg_ns / 1e6, (double)r->max_ns / 1e6, share, running);
    }
}

/* One row for a kernel, whatever the phase: such a table knows none. */
static void merge_phases(qn_rows *rows)
{
    size_t kept = 0;
    for (size_t i = 0; i < rows->n; i++) {
        size_t k = 0;
        while (k < kept && strcmp(rows->p[k].name, rows->p[i].name)) k++;
        if (k == kept) {
            rows->p[kept++] = rows->p[i];
            continue;
        }
        qn_row *r = &rows->p[k];
        r->n += rows->p[i].n;
        r->total_ns += rows->p[i].total_ns;
        r->max_ns = rows->p[i].max_ns > r->max_ns ? rows->p[i].max_ns : r->max_ns;
        r->avg_ns = r->n ? (double)r->total_ns / (double)r->n : 0;
    }
    rows->n = kept;
}

static int by_total(const void *x, const void *y)
{
    const qn_row *a = x, *b = y;
    return a->total_ns < b->total_ns ? 1 : a->total_ns > b->total_ns ? -1 : strcmp(a->name, b->name);
}

static bool put_run(const qn_run *r, const qn_report_options *o, qn_buf *out, qn_err *e)
{
    qn_analysis a = { .run = r };
    qn_rows rows = { 0 };
    const size_t top = o->top > 0 ? (size_t)o->top : TEN;
    if (!qn_rows_of(&a, BY_kernel, false, &a.arena, &rows, e)) {
        qn_free(rows.p);
        qn_arena_close(&a.arena);
        return false;
    }
    merge_phases(&rows);
    if (rows.n) qsort(rows.p, rows.n, sizeof *rows.p, by_total);
    qn_buf_printf(out, "## Profiling Analysis: %s%s%s on %s\n\n<small>\n\n", *r->model ? r->model : r->path, *r->type
                  ? " " : "", r->type,
                  *r->device && strcmp(r->device, "cpu") ? r->device : *r->cpu ? r->cpu : "an unknown device");
    put_top(&rows, top, out);
    qn_buf_puts(out, "\n---\n\n");
    put_statistics(&rows, out);
    qn_buf_puts(out, "\n</small>\n\n---\n");
    qn_free(rows.p);
    qn_arena_close(&a.arena);
    return true;
}

bool qn_format_mlc(const qn_run *const *runs, size_t n, const qn_report_options *o, qn_buf *out, qn_err *e)
{
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        if (i) qn_buf_putc(out, '\n');
        ok = put_run(runs[i], o, out, e);
    }
    return ok;
}
