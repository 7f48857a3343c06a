/* section_notes.c - what a reader of the figures should know about the log they came from. */
#include "report/sections.h"

void qn_section_notes(const qn_analysis *a, const qn_report_options *o, qn_doc *d)
{
    const qn_run *r = a->run;
    (void)o;
    if (r->lost) qn_doc_line(d, "%llu events were lost while recording: totals are that much too small.",
                             (unsigned long long)r->lost);
    for (size_t i = 0; i < r->notes.n; i++) qn_doc_line(d, "%s", r->notes.p[i]);
    if (!a->wall_ns) qn_doc_line(d, "The trace has no time in it.");
}
