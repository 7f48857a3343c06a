/* trace_cost.c - what recording costs: two engines on one model in one process, one with a step trace, decode in turn, a few tokens
 * each. The ratio is taken pair by pair, so that a disturbance that lasts cancels out; who goes first changes. Prints the median of
 * the ratios with its 95 % interval; exit status 1 when it is above 2 %.
 *   make trace-cost M=model.gguf */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/rng.h"
#include "base/stats.h"
#include "base/str.h"
#include "trace/trace.h"

enum { PAIRS = 60, TOKENS = 8, MOST_PERCENT = 2 };

typedef struct side { qn_engine *en; qn_session *s; double ns[PAIRS]; } side;

static void die(const qn_err *e)
{
    fprintf(stderr, "trace_cost: %s\n", e->msg);
    exit(2);
}

static void open_side(side *x, const qn_model *m, qn_trace *t, int threads)
{
    qn_err e = { 0 };
    qn_options o = QN_OPTIONS_DEFAULT;
    o.threads = threads;
    o.n_ctx = 1024;
    o.device = "cpu";
    o.trace = t;
    x->en = qn_engine_open(m, &o, &e);
    x->s = x->en ? qn_session_open(x->en, &e) : NULL;
    if (!x->s) die(&e);
}

static void decode(side *x, int n_vocab, int pair)
{
    const struct timespec rest = { .tv_nsec = 30000000 }; /* the other's lines are written, its threads asleep */
    qn_err e = { 0 };
    nanosleep(&rest, NULL);
    const u64 begin = qn_now_ns();
    for (int i = 0; i < TOKENS; i++) {
        const int32_t id = (int32_t)(qn_rng_at(1, (u64)(pair * TOKENS + i)) % (u64)n_vocab);
        if (!qn_session_push(x->s, id, &e) || !qn_engine_step(x->en, NULL, &e)) die(&e);
    }
    if (pair >= 0) x->ns[pair] = (double)(qn_now_ns() - begin);
}

static void close_side(side *x)
{
    qn_session_close(x->s);
    qn_engine_close(x->en);
}

int main(int argc, char **argv)
{
    qn_err e = { 0 };
    i64 threads = 0;
    if (argc < 3 || (argc > 3 && !qn_parse_i64(argv[3], 0, 1024, &threads))) {
        fputs("usage: trace_cost MODEL TRACE [THREADS]\n", stderr);
        return 2;
    }
    qn_model *m = qn_model_open(argv[1], &e);
    qn_trace *t = m ? qn_trace_open(argv[2], QN_TRACE_STEP, &e) : NULL;
    if (!t) die(&e);
    side on = { 0 }, off = { 0 };
    qn_model_info info;
    qn_model_get_info(m, &info);
    open_side(&on, m, t, (int)threads);
    open_side(&off, m, NULL, (int)threads);
    for (int i = -1; i < PAIRS; i++) { /* -1: warms both up */
        decode(i & 1 ? &on : &off, info.n_vocab, i);
        decode(i & 1 ? &off : &on, info.n_vocab, i);
    }
    double room[PAIRS];
    qn_stats ratio, plain;
    qn_trace_sum sum;
    qn_stats_ratio(on.ns, off.ns, PAIRS, room, &ratio);
    qn_stats_of(off.ns, PAIRS, &plain);
    close_side(&on);
    close_side(&off);
    qn_trace_close(t, "ok", &sum);
    qn_model_close(m);
    const double cost = 100 * (ratio.p50 - 1);
    printf("step trace: decode takes %+.2f %% (95 %%: %+.2f to %+.2f), %d pairs of %d tokens, %.2f ms a token without; %.0f events and "
           "%.0f KiB a token, %llu lost\n", cost, 100 * (ratio.lo - 1), 100 * (ratio.hi - 1), PAIRS, TOKENS,
           plain.p50 / TOKENS * 1e-6, (double)sum.events / (PAIRS * TOKENS), (double)sum.bytes / 1024 / (PAIRS * TOKENS),
           (unsigned long long)sum.lost);
    return cost > MOST_PERCENT;
}
