/* stats.c - order statistics. The interval of the median is the distribution-free one: ranks of a binomial, so that it needs
 * no assumption about how a disturbed machine spreads its times. */
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double qn_quantile(const double *sorted, size_t n, double q)
{
    if (n == 0) return 0;
    const double at = q * (double)(n - 1);
    const size_t i = (size_t)at;
    if (i + 1 >= n) return sorted[n - 1];
    return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

void qn_stats_of(double *x, size_t n, qn_stats *out)
{
    *out = (qn_stats){ .n = n };
    if (n == 0) return;
    qsort(x, n, sizeof *x, ascending);
    double sum = 0, ss = 0;
    for (size_t i = 0; i < n; i++) sum += x[i];
    out->mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) ss += (x[i] - out->mean) * (x[i] - out->mean);
    out->sd = n > 1 ? sqrt(ss / (double)(n - 1)) : 0;
    out->min = x[0];
    out->max = x[n - 1];
    out->p50 = qn_quantile(x, n, 0.50);
    out->p95 = qn_quantile(x, n, 0.95);
    out->p99 = qn_quantile(x, n, 0.99);
    const double half = 0.98 * sqrt((double)n), mid = (double)n / 2; /* 1.96 standard deviations of Binomial(n, 1/2) */
    const double lo = floor(mid - half), hi = ceil(mid + half);
    out->lo = x[lo < 0 ? 0 : (size_t)lo];
    out->hi = x[hi > (double)(n - 1) ? n - 1 : (size_t)hi];
}

void qn_stats_ratio(const double *a, const double *b, size_t n, double *room, qn_stats *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (b[i] > 0) room[kept++] = a[i] / b[i];
    qn_stats_of(room, kept, out);
}
