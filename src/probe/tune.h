/* tune.h - from contests to winners. A winner must be right, beat what the plan would take anyway by more than noise, and leave
 * the law of rows whole: a row's result may not depend on how many rows came with it, so kernels for different numbers of rows
 * are mixed only where they give the same bits. */
#ifndef QN_TUNE_H
#define QN_TUNE_H

#include "kernel/tuned.h"
#include "probe/contest.h"

bool qn_tune(const qn_contest *all, int n, int threads, const char *date, qn_tuned *winners, qn_err *e);
/* Writes the file anew: the winners, then the lines of other machines and other shapes that were there. Whole or not at all. */
bool qn_tune_write(const qn_tuned *winners, const char *path, int threads, qn_err *e);

#endif
