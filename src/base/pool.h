/* pool.h - one pool of pinned threads. A job is cut into pieces; lanes take them one by one, the caller among them. Waiting
 * lanes spin for a short while (decode steps follow each other within microseconds), then sleep. */
#ifndef QN_POOL_H
#define QN_POOL_H

#include "base/err.h"

typedef struct qn_lane { int i, n, more; } qn_lane; /* piece i of n, and as many behind it as more says */
static inline qn_lane lane_of(int i, int n) { return (qn_lane){ .i = i, .n = n }; }
typedef void (*qn_job)(const void *args, qn_lane lane);
typedef struct qn_pool qn_pool;

qn_pool *qn_pool_open(int threads, qn_err *e); /* 0: qn_cpu_threads() */
void qn_pool_close(qn_pool *p);
int qn_pool_n(const qn_pool *p);
int qn_pool_self(void);   /* which thread of a pool this is, 0..n-1; 0: the caller */
/* Runs the job once for each of the pieces; returns when all are done. Who runs which is not said: one may run several. */
void qn_pool_share(qn_pool *p, qn_job job, const void *args, int pieces);
void qn_pool_run(qn_pool *p, qn_job job, const void *args); /* a piece for each lane */

/* What jobs to come will read, so many units of so many bytes, of which each lane has a share: a lane that waits asks for the
 * beginning of its own, so that memory has something to do. A hint: nothing is read, the bytes need not be there. Of two lanes
 * each gets the piece that it asked for, nearly always; of more the caller does, and a worker may get another's. */
typedef struct qn_soon { const u8 *at; int units; size_t unit_bytes; } qn_soon;
void qn_pool_soon(qn_pool *p, qn_soon next);

/* The share of 0..n that lane owns: contiguous, sizes differ by at most one. */
static inline int lane_begin(int n, qn_lane l) { return (int)((i64)n * l.i / l.n); }
static inline int lane_end(int n, qn_lane l) { return (int)((i64)n * (l.i + 1 + l.more) / l.n); }

#endif
