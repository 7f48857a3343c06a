/* contest_time.c - the clock of a contest. Contenders take turns, so that a disturbance hits all of them; each goes on until its
 * interval is narrow or time is up. Kernels are called as engines call them: as the one step of a plan, by exec.c.
 * Warm samples repeat a call until the clock can see it. Cold ones of products do so too, each call with another copy of the
 * weights, so many that none is in a cache when its turn comes: as an engine goes from layer to layer. Before cold samples of
 * all else every cache is filled with something else. */
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/mem.h"
#include "base/sweep.h"
#include "kernel/plan.h"
#include "probe/contest.h"

#define SECONDS 1.0
#define INTERVAL 0.02
#define SAMPLES_LEAST 5
#define SAMPLES_MOST 2000
#define SAMPLE_NS 50000         /* a reading of the clock costs 20 to 60 ns: below a thousandth of this */
#define WAKE_NS 600000          /* of calls before a warm sample, untimed: lanes that slept through a library's pause come back */
#define SHORT_NS 2000000        /* calls that take longer need none */
#define BURST 4
#define HOPELESS 4              /* times as slow as the best: measured only so often */
#define HOPELESS_SAMPLES 3
#define FLUSH_LEAST ((u64)64 << 20)

typedef struct runner {
    qn_contender *k;
    void *job;                  /* of a rival */
    int reps;                   /* calls in a warm sample */
    double *x;                  /* samples of the kind that is being taken */
    size_t n;
    bool done, is_short;
} runner;

typedef struct race {
    qn_contest *c;
    qn_case *data;
    qn_pool *pool;
    runner *at;
    int n;
    qn_plan plan;               /* one step */
    u8 *flush;                  /* more than fits any cache: copies of the weights, where there are some */
    size_t flush_bytes, copy_bytes, copies, next;
    double *room;               /* sorted copy of samples */
    bool pinned;
    cpu_set_t allowed;          /* where the caller may run otherwise */
} race;

static void flush(race *r)
{
    u64 sink = 0;
    qn_sweep(r->pool, r->flush, r->flush_bytes, &sink);
}

/* The weights of a product; NULL: it is none. */
static const void *weights_of(qn_op op, const qn_args *a)
{
    switch (op) {
    case OP_linear: return a->linear.w;
    case OP_qlinear: return a->qlinear.panels;
    case OP_blinear: return a->blinear.panels;
    case OP_plinear: return a->plinear.panels;
    default: return NULL;
    }
}

static void give_weights(qn_op op, qn_args *a, const void *w)
{
    if (op == OP_linear) a->linear.w = w;
    if (op == OP_qlinear) a->qlinear.panels = w;
    if (op == OP_blinear) a->blinear.panels = w;
    if (op == OP_plinear) a->plinear.panels = w;
}

static void call(race *r, const runner *w, bool cold)
{
    static const atomic_int never;
    qn_step *s = r->plan.steps;
    if (w->k->rival) {
        w->k->rival->run(w->job);
        return;
    }
    if (cold && r->copies) give_weights(s->op, &s->args, r->flush + r->next++ % r->copies * r->copy_bytes);
    s->choice[qn_bucket(s->args.n)] = (qn_choice){ .kernel = w->k->kernel, .lanes = w->k->lanes ? 1 : qn_pool_n(r->pool) };
    qn_plan_run(&r->plan, r->pool, s->args.n, 0, NULL, &never);
}

/* A step of an engine finds its lanes awake, as flush leaves them: else a product of 2 us in two shares would be timed as 10 us
 * of waking up, and one thread would win whatever is small. */
static void wake(race *r, const runner *w)
{
    const u64 until = qn_now_ns() + WAKE_NS;
    do call(r, w, false);
    while (qn_now_ns() < until);
}

static double sample(race *r, const runner *w, bool cold)
{
    const bool flushed = cold && (!r->copies || w->k->rival);
    const int reps = flushed ? 1 : w->reps;
    if (flushed) flush(r);
    else if (w->is_short && w->k->lanes != 1) wake(r, w);
    const u64 begin = qn_now_ns();
    for (int i = 0; i < reps; i++) call(r, w, cold);
    return (double)(qn_now_ns() - begin) / reps;
}

static void summarise(race *r, const runner *w, qn_stats *out)
{
    memcpy(r->room, w->x, w->n * sizeof *w->x);
    qn_stats_of(r->room, w->n, out);
}

/* The calls that fill a sample, from the second call: the first one finds nothing in the caches. */
static void pace(race *r, runner *w)
{
    w->reps = 1;
    sample(r, w, false);
    const double ns = sample(r, w, false);
    w->reps = ns > 0 && ns < SAMPLE_NS ? (int)(SAMPLE_NS / ns) + 1 : 1;
    w->is_short = ns < SHORT_NS;
    if (w->k->rival) nanosleep(&(struct timespec){ .tv_nsec = w->k->rival->linger_ms * 1000000L }, NULL);
}

static bool settle(race *r, bool cold, const qn_contest_opts *o)
{
    const double interval = o->interval > 0 ? o->interval : INTERVAL;
    double best = 0;
    bool all = true;
    for (int i = 0; i < r->n; i++) {
        qn_stats *s = cold ? &r->at[i].k->cold : &r->at[i].k->warm;
        summarise(r, &r->at[i], s);
        if (best == 0 || s->p50 < best) best = s->p50;
    }
    for (int i = 0; i < r->n; i++) {
        const qn_stats *s = cold ? &r->at[i].k->cold : &r->at[i].k->warm;
        runner *w = &r->at[i];
        const bool narrow = s->hi - s->lo < interval * s->p50, hopeless = s->p50 > HOPELESS * best;
        w->done = w->n >= SAMPLES_MOST || (w->n >= SAMPLES_LEAST && narrow) || (w->n >= HOPELESS_SAMPLES && hopeless);
        all = all && w->done;
    }
    return all;
}

/* Whose threads linger takes several samples in a row, then everybody waits until they sleep: else they would run beside the
 * next contender (f32, 1024 x 1024 x 1024: 108 GFLOP/s of two threads beside oneDNN's, 180 after a pause). */
static void take_turn(race *r, runner *w, bool cold)
{
    const int linger = w->k->rival && qn_pool_n(r->pool) > 1 ? w->k->rival->linger_ms : 0;
    if (w->done) return;
    for (int i = 0; i < (linger ? BURST : 1) && w->n < SAMPLES_MOST; i++) w->x[w->n++] = sample(r, w, cold);
    if (linger) nanosleep(&(struct timespec){ .tv_nsec = linger * 1000000L }, NULL);
}

static bool take_turns(race *r, bool cold, const qn_contest_opts *o, qn_err *e)
{
    const double seconds = (o->seconds > 0 ? o->seconds : SECONDS) / 2;
    const u64 begin = qn_now_ns(), end = begin + (u64)(seconds * 1e9);
    const double done = cold ? 0.5 + QN_CHECK_PART / 2 : QN_CHECK_PART, part = (1 - QN_CHECK_PART) / 2;
    for (int i = 0; i < r->n; i++) r->at[i].n = 0, r->at[i].done = false;
    for (int round = 0;; round++) {
        for (int i = 0; i < r->n; i++) take_turn(r, &r->at[i], cold);
        const double share = fmin(1, (double)(qn_now_ns() - begin) / (seconds * 1e9));
        if (o->progress && !o->progress(o->user, r->c->text, done + part * share)) return qn_fail(e, QN_ECANCELLED, "stopped");
        if (settle(r, cold, o)) return true;
        if (round + 1 >= SAMPLES_LEAST && qn_now_ns() > end) return true;
    }
}

/* The caller stays on one core meanwhile, and the libraries' threads on others (ours are pinned anyway): the system sometimes put
 * one of them beside the caller, and a product of 3 us took 2 ms. Not for longer: threads that start later would be confined to
 * the caller's core. Best effort. */
static void stay_here(race *r)
{
    qn_places places;
    qn_cpu_places(&places);
    r->pinned = places.n > 1 && sched_getaffinity(0, sizeof r->allowed, &r->allowed) == 0;
    if (!r->pinned) return;
    qn_cpu_pin(pthread_self(), places.cpu[0]);
    qn_rivals_leave(places.cpu[0]);
}

static bool line_up(race *r, qn_err *e)
{
    for (int i = 0; i < r->c->n; i++) {
        qn_contender *k = &r->c->at[i];
        if (k->misses || k->cached || !k->right) continue;
        runner *w = &r->at[r->n];
        w->k = k;
        w->x = qn_new_array(SAMPLES_MOST + 1, sizeof *w->x, e);
        r->n++;
        if (!w->x) return false;
        if (!k->rival) continue;
        w->job = k->rival->prepare(k->rival, r->c->shape.op, &r->data->args, e);
        if (!w->job) return false;
    }
    return true;
}

static void go_home(race *r)
{
    for (int i = 0; i < r->n; i++) {
        if (r->at[i].job) r->at[i].k->rival->close(r->at[i].job);
        qn_free(r->at[i].x);
    }
    qn_free(r->at);
    qn_free(r->room);
    qn_pages_free(r->flush, r->flush_bytes);
    qn_plan_close(&r->plan);
}

/* The plan of one step, with the arguments of the case. */
static bool make_plan(race *r, qn_err *e)
{
    r->plan.isa = qn_cpu_isa();
    return qn_plan_add(&r->plan, r->c->shape.op, 0, "probe", &r->data->args, e) &&
           qn_plan_finish(&r->plan, qn_pool_n(r->pool), e);
}

static void copy_weights(race *r)
{
    const void *w = weights_of(r->c->shape.op, &r->data->args);
    for (int i = 0; w && i < r->data->n_operands; i++) {
        const qn_operand *o = &r->data->operand[i];
        if (o->p != w || !o->bytes) continue;
        r->copy_bytes = (o->bytes + 4095) / 4096 * 4096;
        r->copies = r->flush_bytes / r->copy_bytes; /* 0: one alone is more than fits any cache */
        for (size_t k = 0; k < r->copies; k++) memcpy(r->flush + k * r->copy_bytes, o->p, o->bytes);
    }
}

static bool make_room(race *r, qn_err *e)
{
    qn_topology t;
    qn_cpu_topology(&t);
    r->flush_bytes = (size_t)(2 * t.l3 > FLUSH_LEAST ? 2 * t.l3 : FLUSH_LEAST);
    r->at = qn_new_array((size_t)r->c->n + 1, sizeof *r->at, e);
    r->room = qn_new_array(SAMPLES_MOST + 1, sizeof *r->room, e);
    r->flush = qn_pages_new(r->flush_bytes, e);
    if (!r->at || !r->room || !r->flush) return false;
    memset(r->flush, 1, r->flush_bytes); /* pages that were never written are all one page of zeros */
    if (!make_plan(r, e)) return false;
    copy_weights(r);
    return true;
}

bool qn_contest_time(qn_contest *c, qn_pool *pool, const qn_contest_opts *o, qn_err *e)
{
    int waiting = 0;
    for (int i = 0; i < c->n; i++) waiting += !c->at[i].misses && !c->at[i].cached && c->at[i].right;
    if (!waiting) return true;
    qn_case data;
    if (!qn_case_open_timed(&data, &c->shape, o->seed ? o->seed : 1, e)) return false;
    race r = { .c = c, .data = &data, .pool = pool };
    bool ok = make_room(&r, e) && line_up(&r, e);
    for (int i = 0; ok && i < r.n; i++) pace(&r, &r.at[i]); /* libraries start their threads when they are called first */
    stay_here(&r);
    ok = ok && take_turns(&r, false, o, e) && take_turns(&r, true, o, e);
    if (r.pinned) sched_setaffinity(0, sizeof r.allowed, &r.allowed);
    go_home(&r);
    qn_case_close(&data);
    return ok;
}
