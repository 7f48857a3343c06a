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

/* x is in order where it is looked at. */
static double quantile(const double *x, size_t n, double q)
{
    const double at = q * (double)(n - 1);
    const size_t i = (size_t)at;
    if (i + 1 >= n) return x[n - 1];
    return x[i] + (at - (double)i) * (x[i + 1] - x[i]);
}

/* Puts the values of these ranks (ascending) where sorting all of x would put them, and no other: a median of ten million takes
 * 0.1 s, sorting them 1 s. Three parts, so that equal values cost one round; turns: rounds left before a file that was made
 * to be slow is simply sorted. */
static void arrange(double *x, size_t n, size_t first, const size_t *rank, size_t n_rank, int turns)
{
    while (n_rank && n > 1) {
        if (n < 24 || turns-- == 0) {
            qsort(x, n, sizeof *x, ascending);
            return;
        }
        const double a = x[n / 4], b = x[n / 2], c = x[n / 4 * 3];
        const double pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
        size_t less = 0, more = n, i = 0, below = 0, above = n_rank;
        while (i < more) {
            const double v = x[i];
            if (v < pivot) x[i++] = x[less], x[less++] = v;
            else if (v > pivot) x[i] = x[--more], x[more] = v;
            else i++;
        }
        while (below < n_rank && rank[below] < first + less) below++;
        while (above > below && rank[above - 1] >= first + more) above--;
        arrange(x, less, first, rank, below, turns);
        x += more, n -= more, first += more;
        rank += above, n_rank -= above;
    }
}

static size_t clamp_rank(double at, size_t n) { return at < 0 ? 0 : at > (double)(n - 1) ? n - 1 : (size_t)at; }

static int by_rank(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static int turns_for(size_t n) { return 2 * (64 - __builtin_clzll((unsigned long long)n | 1)); }

double qn_median_of(double *x, size_t n)
{
    if (n == 0) return 0;
    const size_t rank[] = { (n - 1) / 2, n / 2 };
    arrange(x, n, 0, rank, QN_COUNT(rank), turns_for(n));
    return quantile(x, n, 0.5);
}

void qn_stats_of(double *x, size_t n, qn_stats *out)
{
    static const double q[] = { 0.50, 0.95, 0.99 };
    size_t rank[2 * QN_COUNT(q) + 2], k = 0;
    *out = (qn_stats){ .n = n };
    if (n == 0) return;
    const double half = 0.98 * sqrt((double)n), mid = (double)n / 2; /* 1.96 standard deviations of Binomial(n, 1/2) */
    const size_t lo = clamp_rank(floor(mid - half), n), hi = clamp_rank(ceil(mid + half), n);
    for (size_t i = 0; i < QN_COUNT(q); i++) {
        rank[k++] = clamp_rank(q[i] * (double)(n - 1), n);
        rank[k] = clamp_rank((double)rank[k - 1] + 1, n), k++;
    }
    rank[k++] = lo, rank[k++] = hi;
    qsort(rank, k, sizeof *rank, by_rank);
    double sum = 0, ss = 0;
    out->min = out->max = x[0];
    for (size_t i = 0; i < n; i++) {
        sum += x[i];
        out->min = x[i] < out->min ? x[i] : out->min;
        out->max = x[i] > out->max ? x[i] : out->max;
    }
    out->mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) ss += (x[i] - out->mean) * (x[i] - out->mean);
    out->sd = n > 1 ? sqrt(ss / (double)(n - 1)) : 0;
    arrange(x, n, 0, rank, k, turns_for(n));
    out->p50 = quantile(x, n, 0.50);
    out->p95 = quantile(x, n, 0.95);
    out->p99 = quantile(x, n, 0.99);
    out->lo = x[lo];
    out->hi = x[hi];
}

void qn_stats_ratio(const double *a, const double *b, size_t n, double *room, qn_stats *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (b[i] > 0) room[kept++] = a[i] / b[i];
    qn_stats_of(room, kept, out);
}
