/* sections.h - what a section is: it looks at an analysis and fills the document, or adds nothing when it has nothing
 * to say. */
#ifndef QN_SECTIONS_H
#define QN_SECTIONS_H

#include "report/doc.h"
#include "report/report.h"

#define SECTION(name, title) void qn_section_##name(const qn_analysis *a, const qn_report_options *o, qn_doc *d);
#include "report/sections.def"
#undef SECTION

/* section_across.c: several runs side by side; the last part of a report on more than one. */
void qn_section_across(const qn_analysis *const *all, size_t n, qn_doc *d);

/* What a run is called where there are several: its model and type, or its path. */
const char *qn_run_label(const qn_run *r, char out[96]);

#endif
