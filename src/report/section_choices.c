/* section_choices.c - kernels chosen and why, one line for all steps that made the same choice for the same reason. */
#include <string.h>

#include "report/sections.h"

static const qn_column columns[] = {
    { "op", "op", UNIT_text, 0, 0, false },          { "rows", "rows", UNIT_text, 0, 0, false },
    { "steps", "steps", UNIT_count, 0, 2, false },   { "kernel", "kernel", UNIT_text, 0, 0, false },
    { "reason", "why", UNIT_text, 0, 0, false },     { "rejected", "not", UNIT_text, 0, 3, false },
    { "role", "first", UNIT_text, 0, 0, true },
};

void qn_section_choices(const qn_analysis *a, const qn_report_options *o, qn_doc *d)
{
    (void)o;
    if (!a->choices.n) return;
    qn_doc_table_begin(d, "choices", "", columns, QN_COUNT(columns));
    for (size_t i = 0; i < a->choices.n; i++) {
        const qn_choice_group *g = &a->choices.p[i];
        qn_doc_text(d, g->op);
        qn_doc_text(d, g->rows);
        qn_doc_value(d, g->steps);
        qn_doc_text(d, g->kernel);
        qn_doc_text(d, g->reason);
        qn_doc_text(d, g->rejected);
        qn_doc_text(d, g->role);
    }
}
