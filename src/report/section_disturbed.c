/* section_disturbed.c - passes that took longer than their position explains, and what that cost. */
#include "report/sections.h"

enum { TOP = 12 };

static const qn_column columns[] = {
    { "pass", "pass", UNIT_count, 0, 0, false },            { "decode", "of decode", UNIT_count, 0, 1, false },
    { "pos", "position", UNIT_count, 0, 1, false },         { "ns", "ms", UNIT_ms, 3, 0, false },
    { "expected_ns", "expected", UNIT_ms, 3, 0, false },    { "extra_ns", "extra", UNIT_ms, 3, 0, false },
};

void qn_section_disturbed(const qn_analysis *a, const qn_report_options *o, qn_doc *d)
{
    const qn_run *r = a->run;
    const bool people = o->format == FORMAT_text || o->format == FORMAT_markdown;
    const size_t top = !people || o->top < 0 ? a->disturbed.n : o->top > 0 ? (size_t)o->top : TOP;
    if (!a->disturbed.n) return;
    qn_doc_number(d, "disturbed", (double)a->disturbed.n);
    qn_doc_number(d, "extra_ns", a->disturbed_ns);
    qn_doc_line(d, "%zu of %llu decode passes, +%.3f ms in all, %.1f %% of decode", a->disturbed.n,
                (unsigned long long)a->phases[PHASE_decode].passes, a->disturbed_ns / 1e6,
                a->phases[PHASE_decode].ns ? 100 * a->disturbed_ns / (double)a->phases[PHASE_decode].ns : 0);
    qn_doc_table_begin(d, "passes", "", columns, QN_COUNT(columns));
    for (size_t i = 0; i < a->disturbed.n && i < top; i++) {
        const qn_disturbed *x = &a->disturbed.p[i];
        const i64 number = r->passes.p[x->pass].number;
        qn_doc_value(d, number > 0 ? (double)number : x->pass + 1.0);
        qn_doc_value(d, (double)x->ordinal);
        qn_doc_value(d, (double)r->passes.p[x->pass].pos);
        qn_doc_value(d, x->expected_ns + x->extra_ns);
        qn_doc_value(d, x->expected_ns);
        qn_doc_value(d, x->extra_ns);
    }
    if (a->disturbed.n > top) qn_doc_line(d, "the first %zu of them:", top);
}
