/* section_tests.c - repetitions of a benchmark's tests, warm-ups left out. */
#include <string.h>

#include "report/sections.h"

static const qn_column columns[] = {
    { "name", "test", UNIT_text, 0, 0, false },     { "n", "samples", UNIT_count, 0, 0, false },
    { "tok_s", "tok/s", UNIT_real, 2, 0, false },   { "lo", "low", UNIT_real, 2, 1, false },
    { "hi", "high", UNIT_real, 2, 1, false },       { "min", "slowest", UNIT_real, 2, 2, false },
    { "max", "fastest", UNIT_real, 2, 2, false },
};

static bool seen_before(const qn_run *r, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (!strcmp(r->tests.p[k].name, r->tests.p[i].name)) return true;
    return false;
}

void qn_section_tests(const qn_analysis *a, const qn_report_options *o, qn_doc *d)
{
    const qn_run *r = a->run;
    enum { MOST = 4096 }; /* samples of one test */
    (void)o;
    if (!r->tests.n) return;
    double *rates = qn_arena_new(&d->arena, MOST * sizeof *rates, NULL);
    if (!rates) {
        d->failed = true;
        return;
    }
    qn_doc_line(d, "medians with their 95 %% interval");
    qn_doc_table_begin(d, "tests", "", columns, QN_COUNT(columns));
    for (size_t i = 0; i < r->tests.n; i++) {
        size_t n = 0;
        qn_stats s;
        if (seen_before(r, i)) continue;
        for (size_t k = i; k < r->tests.n && n < MOST; k++)
            if (r->tests.p[k].rep >= 0 && r->tests.p[k].ns && !strcmp(r->tests.p[k].name, r->tests.p[i].name))
                rates[n++] = (double)r->tests.p[k].tokens * 1e9 / (double)r->tests.p[k].ns;
        if (!n) continue; /* warm-ups alone */
        qn_stats_of(rates, n, &s);
        qn_doc_text(d, r->tests.p[i].name);
        qn_doc_value(d, (double)n);
        qn_doc_known(d, s.p50, n);
        qn_doc_known(d, s.lo, n);
        qn_doc_known(d, s.hi, n);
        qn_doc_known(d, s.min, n);
        qn_doc_known(d, s.max, n);
    }
}
