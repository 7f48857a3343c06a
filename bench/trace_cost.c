/* trace_cost.c - what recording costs: two engines on one model in one process, one with a step trace, decode in turn, a few tokens
 * each. The ratio is taken pair by pair, so that a disturbance that lasts cancels out; who goes first changes. Prints the median of
 * the ratios with its 95 % interval; exit status 1 when it is above 2 %. A shared machine has few quiet minutes: with KEPT, a file, the
 * pairs of earlier calls count too and those of this one are added to it.
 *   make trace-cost M=model.gguf [PAIRS=60] [KEPT=pairs.txt] */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/rng.h"
#include "base/stats.h"
#include "base/str.h"
#include "trace/trace.h"

enum { PAIRS = 60, PAIRS_MOST = 10000, TOKENS = 8, MOST_PERCENT = 2 };

typedef struct side { qn_engine *en; qn_session *s; double ns[PAIRS_MOST]; } side;

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

/* A session has room for 1024 positions: it starts again before they are full. */
static void decode(side *x, int n_vocab, int pair)
{
    const struct timespec rest = { .tv_nsec = 30000000 }; /* the other's lines are written, its threads asleep */
    qn_err e = { 0 };
    if (qn_session_pos(x->s) + TOKENS > qn_session_n_ctx(x->s)) qn_session_rewind(x->s, 0);
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

/* The pairs that a file has; their number. */
static int take_kept(const char *path, side *on, side *off)
{
    int n = 0;
    FILE *f = path ? fopen(path, "r") : NULL;
    while (f && n < PAIRS_MOST && fscanf(f, "%lf %lf", &on->ns[n], &off->ns[n]) == 2) n++;
    if (f) fclose(f);
    return n;
}

static void keep(const char *path, const side *on, const side *off, int from, int to)
{
    FILE *f = path ? fopen(path, "a") : NULL;
    for (int i = from; f && i < to; i++) fprintf(f, "%.0f %.0f\n", on->ns[i], off->ns[i]);
    if (f) fclose(f);
}

int main(int argc, char **argv)
{
    static side on, off;
    static double room[PAIRS_MOST];
    qn_err e = { 0 };
    i64 threads = 0, pairs = PAIRS;
    if (argc < 3 || (argc > 3 && !qn_parse_i64(argv[3], 0, 1024, &threads)) ||
        (argc > 4 && !qn_parse_i64(argv[4], 1, PAIRS_MOST, &pairs))) {
        fputs("usage: trace_cost MODEL TRACE [THREADS [PAIRS [KEPT]]]\n", stderr);
        return 2;
    }
    const char *kept = argc > 5 ? argv[5] : NULL;
    qn_model *m = qn_model_open(argv[1], &e);
    qn_trace *t = m ? qn_trace_open(argv[2], QN_TRACE_STEP, &e) : NULL;
    if (!t) die(&e);
    qn_model_info info;
    qn_model_get_info(m, &info);
    open_side(&on, m, t, (int)threads);
    open_side(&off, m, NULL, (int)threads);
    const int before = take_kept(kept, &on, &off), all = qn_mini(PAIRS_MOST, before + (int)pairs);
    for (int i = before - 1; i < all; i++) { /* the first one warms both up */
        const int pair = i < before ? -1 : i;
        decode(i & 1 ? &on : &off, info.n_vocab, pair);
        decode(i & 1 ? &off : &on, info.n_vocab, pair);
    }
    qn_stats ratio, plain;
    qn_trace_sum sum;
    keep(kept, &on, &off, before, all);
    qn_stats_ratio(on.ns, off.ns, (size_t)all, room, &ratio);
    qn_stats_of(off.ns, (size_t)all, &plain);
    close_side(&on);
    close_side(&off);
    qn_trace_close(t, "ok", &sum);
    qn_model_close(m);
    const double cost = 100 * (ratio.p50 - 1), tokens = (double)((all - before) * TOKENS);
    printf("step trace: decode takes %+.2f %% (95 %%: %+.2f to %+.2f), %d pairs of %d tokens, %.2f ms a token without; %.0f events and "
           "%.0f KiB a token, %llu lost\n", cost, 100 * (ratio.lo - 1), 100 * (ratio.hi - 1), all, TOKENS,
           plain.p50 / TOKENS * 1e-6, (double)sum.events / tokens, (double)sum.bytes / 1024 / tokens,
           (unsigned long long)sum.lost);
    return cost > MOST_PERCENT;
}
