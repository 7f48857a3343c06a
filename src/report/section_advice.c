/* section_advice.c - what costs most, and what to try. */
#include "report/sections.h"

static const qn_column columns[] = {
    { "what", "finding", UNIT_text, 0, 0, true }, { "cost_ns", "costs", UNIT_ms, 1, 0, true },
        { "try", "try", UNIT_text, 0, 0, true },
};

void qn_section_advice(const qn_analysis *a, const qn_report_options *o, qn_doc *d)
{
    const bool people = o->format == FORMAT_text || o->format == FORMAT_markdown;
    if (people) {
        for (size_t i = 0; i < a->advice.n; i++)
            qn_doc_line(d, "%zu. %s Up to %.1f ms. Try: %s.", i + 1, a->advice.p[i].what, a->advice.p[i].cost_ns / 1e6,
                        a->advice.p[i].try_this);
        if (!a->advice.n && a->wall_ns) qn_doc_line(d, "Nothing stands out.");
        return;
    }
    if (!a->advice.n) return;
    qn_doc_table_begin(d, "advice", "", columns, QN_COUNT(columns));
    for (size_t i = 0; i < a->advice.n; i++) {
        qn_doc_text(d, a->advice.p[i].what);
        qn_doc_value(d, a->advice.p[i].cost_ns);
        qn_doc_text(d, a->advice.p[i].try_this);
    }
}
