/* stats.h - order statistics and spread of samples. */
#ifndef QN_STATS_H
#define QN_STATS_H

#include "base/types.h"

/* lo..hi: 95 % interval of the median */
typedef struct qn_stats { size_t n; double min, max, mean, sd, p50, p95, p99, lo, hi; } qn_stats;

void qn_stats_of(double *x, size_t n, qn_stats *out); /* x ends in another order; n = 0 gives zeros */
double qn_median_of(double *x, size_t n);             /* likewise */
/* Of the ratios a[i] / b[i] of samples taken in turn: the pair shares its moment, so a disturbance that lasts cancels out.
 * room [n] is overwritten; pairs with b[i] <= 0 are left out. */
void qn_stats_ratio(const double *a, const double *b, size_t n, double *room, qn_stats *out);

#endif
