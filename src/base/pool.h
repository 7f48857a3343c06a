/* pool.h - one pool of pinned threads. A job runs once on every lane; the caller is lane 0. Waiting lanes spin for a short
 * while (decode steps follow each other within microseconds), then sleep. */
#ifndef QN_POOL_H
#define QN_POOL_H

#include "base/err.h"

typedef struct qn_lane { int i, n; } qn_lane; /* lane i of n */
typedef void (*qn_job)(const void *args, qn_lane lane);
typedef struct qn_pool qn_pool;

qn_pool *qn_pool_open(int threads, qn_err *e); /* 0: qn_cpu_threads() */
void qn_pool_close(qn_pool *p);
int qn_pool_n(const qn_pool *p);
void qn_pool_run(qn_pool *p, qn_job job, const void *args); /* returns when every lane is done */

/* The share of 0..n that lane owns: contiguous, sizes differ by at most one. */
static inline int lane_begin(int n, qn_lane l) { return (int)((i64)n * l.i / l.n); }
static inline int lane_end(int n, qn_lane l) { return (int)((i64)n * (l.i + 1) / l.n); }

#endif
