/* contest.h - one shape, everything that can compute it: our kernels and the libraries' (rival.h). Who is right is found out
 * first, who is fast second, and what was known before is not asked again (memo.h). Prints nothing. */
#ifndef QN_CONTEST_H
#define QN_CONTEST_H

#include "base/stats.h"
#include "kernel/shape.h"
#include "probe/probe.h"
#include "probe/rival.h"

typedef struct qn_contender {
    const char *name;           /* the kernel's, or "openblas sgemm"; "...@1": on one thread of several */
    const qn_kernel *kernel;    /* one of these two */
    const qn_rival *rival;
    int lanes;                  /* 1: on the caller alone; 0: on all threads */
    char label[80];
    const char *misses;         /* why it cannot take the shape; NULL: it can */
    bool checked, right;        /* checked against double precision at this shape (or smaller: see cut) */
    qn_errors off;
    char why[160];              /* it is wrong: how */
    qn_stats warm, cold;        /* ns a call, with everything in the caches and with nothing in them; n = 0: not timed */
    bool cached;                /* all of this was known before */
} qn_contender;

typedef struct qn_contest {
    qn_shape shape;
    char text[QN_SHAPE_TEXT];
    qn_cost cost;
    bool by_cold;               /* ranked by the cold time: ops that stream weights or cache find them cold in an engine, unless
                                 * all of its model fits the caches */
    qn_contender *at;
    int n;
    int best, next;             /* right and fastest; -1: none */
    int chosen;                 /* the one an untuned plan takes; -1: none */
    bool noise;                 /* best and next are closer than their intervals */
    double parts_ns;            /* of a fused op: the best times of its parts, added up; 0: it is none, or they are not known */
    bool deepest;               /* attention: no context of its model is longer */
    double engine_ns;           /* what the engine itself took for this shape, from a trace; 0: not known */
} qn_contest;

typedef struct qn_contest_opts {
    int isa;                    /* qn_isa: kernels of this level alone; 0: all that run here */
    int threads;                /* that the pool will have; 0: 1. With more, kernels are also timed on one of them */
    double seconds;             /* to time one shape; 0: 1 */
    double interval;            /* stop when every interval is narrower than this share of its median; 0: 0.02 */
    u64 seed;
    int timeout_s;
    bool resident;              /* the shapes are those of a model that fits the caches whole: rank by the warm time */
    struct qn_memo *memo;       /* keeps references; may be NULL */
    qn_progress_fn progress;    /* may be NULL */
    void *user;
} qn_contest_opts;

/* Lists who could take part, with the reasons of those who cannot. */
bool qn_contest_open(qn_contest *c, const qn_shape *shape, const qn_rivals *rivals, const qn_contest_opts *o, qn_err *e);
void qn_contest_close(qn_contest *c);

/* The contender of a kernel on so many lanes; NULL: there is none. */
const qn_contender *qn_contest_find(const qn_contest *c, const qn_kernel *k, int lanes);

/* Checks and times whoever is not cached, on this pool. A contender that is wrong is not timed. */
bool qn_contest_run(qn_contest *c, qn_pool *pool, const qn_contest_opts *o, qn_err *e);

/* Fills in parts_ns from the contests of the parts among n others. */
void qn_contest_add_up(qn_contest *c, const qn_contest *others, int n);

/* Fills best, next, noise from what is there. */
void qn_contest_rank(qn_contest *c);
/* The time that ranks, ns; 0: not timed. */
double qn_contender_ns(const qn_contest *c, const qn_contender *k);

/* The shape cut down to what double precision can follow in a moment; what checks use. */
qn_shape qn_shape_cut(const qn_shape *s);

#define QN_CHECK_PART 0.3 /* of a contest's progress; then as much again for warm caches, the rest for cold ones */

/* contest_time.c */
bool qn_contest_time(qn_contest *c, qn_pool *pool, const qn_contest_opts *o, qn_err *e);

#endif
