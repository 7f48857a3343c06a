/* analysis_parts.h - what the files of the analysis have of each other. Nobody else includes it. */
#ifndef QN_ANALYSIS_PARTS_H
#define QN_ANALYSIS_PARTS_H

#include "report/analysis.h"

typedef struct qn_rows { qn_row *p; size_t n, cap; } qn_rows;

/* analysis_rows.c: the series in groups, by phase and then by time; with percentiles (which sort every sample) or without.
 * Names live in the arena. */
bool qn_rows_of(const qn_analysis *a, qn_by by, bool percentiles, qn_arena *arena, qn_rows *out, qn_err *e);
/* analysis_growth.c */
bool qn_analyse_growth(qn_analysis *a, qn_err *e);
bool qn_analyse_disturbed(qn_analysis *a, qn_err *e);
/* analysis_implied.c */
bool qn_analyse_implied(qn_analysis *a, const qn_analysis_options *o, qn_err *e);
/* analysis_advice.c: the last */
bool qn_analyse_advice(qn_analysis *a, qn_err *e);

/* ns a token that a pass took, one sequence seen: in its steps where they are known (see analysis_growth.c), else in all. */
double qn_pass_token_ns(const qn_run_pass *p, bool steps);

#endif
