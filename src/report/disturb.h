/* disturb.h - which passes and tokens something outside held up: much longer than their neighbours of the same kind. */
#ifndef QN_DISTURB_H
#define QN_DISTURB_H

#include "report/run.h"

/* True if y stands out above its neighbours: a quarter over their median, and five times their usual spread. Fewer than five
 * neighbours say nothing. Sorts around [n]. */
bool qn_stands_out(double y, double *around, size_t n);
/* Sets `disturbed` of decode passes (among the 8 before and the 8 after with as many rows) and of tokens but the first of each
 * request (among their neighbours in that request). Time grows with the position, so the neighbourhood is small. */
void qn_run_mark_disturbed(qn_run *r);
/* For logs with one sample of every series a pass: a decode pass is disturbed if the kernels (over all layers) that stand out in
 * it cost more than 0.75 % of its time. That finds a batch whose small kernels took five times as long, which its total hides. */
bool qn_run_mark_disturbed_by_kernel(qn_run *r, qn_err *e);

#endif
