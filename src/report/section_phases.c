/* section_phases.c - the wall time, once: phases that add up to it, with what nothing explains; tokens and their pace. */
#include <stdio.h>

#include "report/sections.h"

static const qn_column columns[] = {
    { "phase", "phase", UNIT_text, 0, 0, false },        { "ns", "ms", UNIT_ms, 3, 0, false },
    { "share", "share", UNIT_share, 1, 0, false },       { "tokens", "tokens", UNIT_count, 0, 0, false },
    { "tok_s", "tok/s", UNIT_real, 2, 0, false },        { "token_avg_ns", "ms/token", UNIT_ms, 3, 3, false },
    { "token_p50_ns", "p50", UNIT_ms, 3, 2, false },     { "token_p95_ns", "p95", UNIT_ms, 3, 4, false },
    { "token_p99_ns", "p99", UNIT_ms, 3, 4, false },     { "steps_ns", "in steps", UNIT_ms, 3, 5, false },
    { "between_ns", "between", UNIT_ms, 3, 5, false },   { "wait_share", "waiting", UNIT_share, 1, 5, false },
    { "of_ceiling", "ceiling", UNIT_share, 1, 4, false }, { "passes", "passes", UNIT_count, 0, 6, false },
};

static void put_phase(const char *name, const qn_phase_sum *p, qn_doc *d)
{
    qn_doc_text(d, name);
    qn_doc_value(d, (double)p->ns);
    qn_doc_value(d, p->share);
    qn_doc_known(d, (double)p->tokens, p->tokens);
    qn_doc_known(d, p->tok_s, p->tok_s > 0);
    qn_doc_known(d, p->tok_s > 0 ? 1e9 / p->tok_s : 0, p->tok_s > 0);
    qn_doc_known(d, p->token_ns.p50, p->has_spread);
    qn_doc_known(d, p->token_ns.p95, p->has_spread);
    qn_doc_known(d, p->token_ns.p99, p->has_spread);
    qn_doc_known(d, (double)p->steps_ns, p->steps_ns && p->passes);
    qn_doc_known(d, (double)p->between_ns, p->between_ns);
    qn_doc_known(d, p->steps_ns ? (double)p->wait_ns / (double)p->steps_ns : 0, p->wait_ns);
    qn_doc_known(d, p->steps_ns ? p->ideal_ns / (double)p->steps_ns : 0, p->ideal_ns > 0 && p->steps_ns);
    qn_doc_known(d, (double)p->passes, p->passes);
}

static void put_latency(const qn_analysis *a, qn_doc *d)
{
    const qn_stats *g = &a->gaps;
    if (a->first_ns) {
        qn_doc_number(d, "first_token_ns", (double)a->first_ns);
        qn_doc_line(d, "first token after %.3f ms%s", (double)a->first_ns / 1e6, a->run->requests.n > 1
                    ? " (median of the requests)" : "");
    }
    if (!a->has_gaps) return;
    qn_doc_number(d, "gap_p50_ns", g->p50);
    qn_doc_number(d, "gap_p95_ns", g->p95);
    qn_doc_number(d, "gap_p99_ns", g->p99);
    qn_doc_line(d, "between tokens p50 %.3f, p95 %.3f, p99 %.3f ms (%zu)", g->p50 / 1e6, g->p95 / 1e6, g->p99 / 1e6, g->n);
}

/* What is left over is explained by nothing, except for steps of no phase (those that a log without phases saw in several). */
static void put_other(const qn_analysis *a, qn_doc *d)
{
    const qn_phase_sum *p = &a->phases[PHASE_other];
    const u64 steps = p->steps_ns < p->ns ? p->steps_ns : p->ns;
    const double wall = (double)a->wall_ns;
    const qn_phase_sum several = { .ns = steps, .share = (double)steps / wall, .tokens = p->tokens };
    const qn_phase_sum rest = { .ns = p->ns - steps, .share = (double)(p->ns - steps) / wall };
    if (steps) put_phase("in several phases", &several, d);
    if (rest.ns) put_phase("other: nothing explains it", &rest, d);
}

void qn_section_phases(const qn_analysis *a, const qn_report_options *o, qn_doc *d)
{
    char load[160] = "";
    size_t n = 0;
    (void)o;
    if (!a->wall_ns) return;
    qn_doc_number(d, "wall_ns", (double)a->wall_ns);
    put_latency(a, d);
    for (size_t i = 0; i < a->run->loads.n && n + 40 < sizeof load; i++)
        n += (size_t)snprintf(load + n, sizeof load - n, "%s%.20s %.1f ms", n ? ", " : "", a->run->loads.p[i].phase,
                              (double)a->run->loads.p[i].ns / 1e6);
    if (n) qn_doc_line(d, "load: %s", load);
    qn_doc_table_begin(d, "phases", "", columns, QN_COUNT(columns));
    for (int i = 0; i < PHASE_other; i++)
        if (a->phases[i].ns) put_phase(qn_phase_names[i], &a->phases[i], d);
    put_other(a, d);
    const qn_phase_sum all = { .ns = a->wall_ns, .share = 1 };
    put_phase("all", &all, d);
}
