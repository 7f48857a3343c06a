/* section_steps.c - the steps of each phase in groups, what lies between them, and their sum: the phase. */
#include <stdio.h>

#include "report/sections.h"

enum { TOP = 15 };

static const qn_column columns[] = {
    { "phase", "phase", UNIT_text, 0, 0, true },          { "name", "step", UNIT_text, 0, 0, false },
    { "captured", "calls", UNIT_count, 0, 6, false },     { "expected", "expected", UNIT_count, 0, 8, false },
    { "total_ns", "ms", UNIT_ms, 3, 0, false },           { "share", "share", UNIT_share, 1, 0, false },
    { "cumulative", "cum.", UNIT_share, 1, 7, false },    { "avg_ns", "avg us", UNIT_us, 1, 4, false },
    { "min_ns", "min", UNIT_us, 1, 9, false },            { "p50_ns", "p50", UNIT_us, 1, 5, false },
    { "p95_ns", "p95", UNIT_us, 1, 7, false },            { "p99_ns", "p99", UNIT_us, 1, 8, false },
    { "max_ns", "max", UNIT_us, 1, 8, false },            { "gbs", "GB/s", UNIT_real, 2, 2, false },
    { "gflops", "GFLOP/s", UNIT_real, 2, 3, false },      { "of_ceiling", "ceiling", UNIT_share, 1, 1, false },
    { "bound", "by", UNIT_text, 0, 3, false },            { "wait_share", "waiting", UNIT_share, 1, 5, false },
    { "op", "op", UNIT_text, 0, 0, true },                { "role", "role", UNIT_text, 0, 0, true },
    { "kernel", "kernel", UNIT_text, 0, 0, true },        { "bytes", "bytes", UNIT_count, 0, 0, true },
    { "flops", "flops", UNIT_count, 0, 0, true },         { "wait_ns", "wait", UNIT_us, 1, 0, true },
};

static void put_row(const qn_row *r, qn_doc *d)
{
    qn_doc_text(d, qn_phase_names[r->phase]);
    qn_doc_text(d, r->name);
    qn_doc_value(d, (double)r->n);
    qn_doc_known(d, (double)r->expected, r->expected);
    qn_doc_value(d, (double)r->total_ns);
    qn_doc_value(d, r->share);
    qn_doc_value(d, r->cumulative);
    qn_doc_known(d, r->avg_ns, r->n);
    qn_doc_known(d, (double)r->min_ns, r->has_spread);
    qn_doc_known(d, r->p50_ns, r->has_spread);
    qn_doc_known(d, r->p95_ns, r->has_spread);
    qn_doc_known(d, r->p99_ns, r->has_spread);
    qn_doc_known(d, (double)r->max_ns, r->max_ns);
    qn_doc_known(d, r->gbs, r->bytes > 0);
    qn_doc_known(d, r->gflops, r->flops > 0);
    qn_doc_known(d, r->of_ceiling, r->ideal_ns > 0);
    qn_doc_text(d, qn_bound_names[r->bound]);
    qn_doc_known(d, r->total_ns ? (double)r->wait_ns / (double)r->total_ns : 0, r->wait_ns && r->total_ns);
    qn_doc_text(d, r->op);
    qn_doc_text(d, r->role);
    qn_doc_text(d, r->kernel);
    qn_doc_known(d, r->bytes, r->bytes > 0);
    qn_doc_known(d, r->flops, r->flops > 0);
    qn_doc_known(d, (double)r->wait_ns, r->wait_ns);
}

static void put_sum(const char *phase, const char *name, double ns, double share, double cumulative, qn_doc *d)
{
    qn_doc_text(d, phase);
    qn_doc_text(d, name);
    for (size_t k = 2; k < QN_COUNT(columns); k++) {
        if (k == 4) qn_doc_value(d, ns);
        else if (k == 5) qn_doc_value(d, share);
        else if (k == 6) qn_doc_known(d, cumulative, cumulative > 0);
        else if (columns[k].unit == UNIT_text) qn_doc_text(d, "");
        else qn_doc_known(d, 0, false);
    }
}

static void put_phase(const qn_analysis *a, qn_phase phase, const qn_report_options *o, qn_doc *d)
{
    size_t n;
    const qn_row *rows = qn_analysis_rows(a, phase, &n);
    const char *name = qn_phase_names[phase];
    const qn_phase_sum *p = &a->phases[phase];
    const bool people = o->format == FORMAT_text || o->format == FORMAT_markdown;
    const size_t top = o->top > 0 ? (size_t)o->top : o->top < 0 || !people ? n : TOP;
    char title[64];
    double rest = 0;
    if (!n || (people && n < 2 && phase != PHASE_prefill && phase != PHASE_decode)) return; /* the phase itself says it */
    snprintf(title, sizeof title, "%s, by %s", name, qn_by_names[a->by]);
    qn_doc_table_begin(d, name, title, columns, QN_COUNT(columns));
    for (size_t i = 0; i < n; i++) {
        if (i < top) put_row(&rows[i], d);
        else rest += (double)rows[i].total_ns;
    }
    if (!people) return;
    const double whole = p->ns ? (double)p->ns : 1;
    if (n > top) {
        snprintf(title, sizeof title, "%zu more", n - top);
        put_sum(name, title, rest, rest / whole, rows[n - 1].cumulative, d);
    }
    if (p->between_ns) put_sum(name, "between the steps", (double)p->between_ns, (double)p->between_ns / whole, 1, d);
    put_sum(name, "all", (double)p->ns, 1, 0, d);
}

void qn_section_steps(const qn_analysis *a, const qn_report_options *o, qn_doc *d)
{
    for (int i = 0; i < N_PHASES; i++)
        if (o->phase < 0 || o->phase == i) put_phase(a, (qn_phase)i, o, d);
}
