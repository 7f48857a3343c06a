/* stats.h - order statistics and spread of samples. */
#ifndef QN_STATS_H
#define QN_STATS_H

#include "base/types.h"

/* lo..hi: 95 % interval of the median */
typedef struct qn_stats { size_t n; double min, max, mean, sd, p50, p95, p99, lo, hi; } qn_stats;

void qn_stats_of(double *x, size_t n, qn_stats *out); /* sorts x; n = 0 gives zeros */
double qn_quantile(const double *sorted, size_t n, double q);

#endif
