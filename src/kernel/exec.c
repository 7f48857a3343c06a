/* exec.c - runs a plan on the CPU. The only place where a kernel is called, so the only place where it is timed. Knows no
 * model: a step's operands were fixed when the plan was made, only the number of rows is new in each pass.
 * Steps that do not need each other (the three projections of attention, gate and up) run together: their pieces are one list,
 * which lanes go through without meeting in between. Each still has times of its own: what the lanes spent in its pieces. */
#include <string.h>

#include "base/clock.h"
#include "kernel/plan.h"

/* A step of a band: a long piece for each lane and a short one behind each, or (longs 0) pieces of one size. */
typedef struct member { qn_kernel_fn fn; qn_args args; int longs, shorts; } member;

typedef struct band {
    const qn_plan *plan;    /* has the times; NULL: nobody asks for them */
    int n, lanes;
    int longs, pieces;      /* of all members; the long ones are taken first */
    bool shared;            /* by the lanes; else the caller runs all of it: each member has too little work to wake others for */
    member m[QN_TOGETHER];
} band;

/* Weights stream fastest in one go: where a piece ends, the processor has to find out anew what comes next. So with few rows a
 * lane gets 7/8 of its share as one piece, and the eighths are left for who is free. A token took 6 to 8 % less than with four
 * equal pieces a lane (Qwen2.5-0.5B Q8_0 and Q4_0, 2 lanes, quiet moments), and no more where the machine was not quiet. */
#define EIGHTHS 8
/* So it goes up to this many rows: 16 sequences of Qwen2.5-0.5B Q4_0 made 582 tok/s in equal pieces and 617 so, 48 sequences 673
 * and 694 (AVX-512, whose kernels fetch the next weights meanwhile; others were not timed). */
#define STREAMED 48

static void run_piece(const void *args, qn_lane lane)
{
    const band *b = args;
    const bool is_long = lane.i < b->longs;
    int k = 0, i = is_long ? lane.i : lane.i - b->longs;
    for (int n; i >= (n = is_long ? b->m[k].longs : b->m[k].shorts); k++) i -= n;
    const member *m = &b->m[k];
    const qn_lane part = is_long    ? (qn_lane){ EIGHTHS * i, EIGHTHS * m->longs, EIGHTHS - 2 }
                         : m->longs ? lane_of(EIGHTHS * i + EIGHTHS - 1, EIGHTHS * m->longs)
                                    : lane_of(i, m->shorts);
    const bool timed = b->plan && b->pieces > 1; /* one piece takes as long as its band */
    const u64 begin = timed ? qn_now_ns() : 0;
    m->fn(&m->args, part);
    if (!timed) return;
    qn_lane_time *t = &b->plan->times[k * b->lanes + qn_pool_self()];
    t->end += qn_now_ns() - begin; /* times are summed here: a lane's pieces of a step need not follow each other */
}

static void join_band(band *b, const qn_step *s, int rows)
{
    member *m = &b->m[b->n++];
    const qn_choice *c = &s->choice[qn_bucket(rows)];
    const bool alone = c->lanes ? c->lanes == 1 : rows <= s->alone;
    *m = (member){ .fn = c->kernel->fn, .args = s->args };
    m->args.n = rows;
    const int cut = s->streams && rows > 1 && rows <= STREAMED ? BUCKET_few : qn_bucket(rows);
    m->shorts = alone || b->lanes == 1 ? 1 : s->pieces[cut];
    b->shared = b->shared || m->shorts > 1;
    if (m->shorts == b->lanes && s->streams && cut != BUCKET_many) m->longs = b->lanes;
    b->longs += m->longs;
    b->pieces += m->longs + m->shorts;
}

/* What a step took of the time of its band: its share of what the lanes worked. */
static u64 share_of(const band *b, int k, u64 ns)
{
    u64 mine = 0, all = 0;
    for (int i = 0; i < b->n * b->lanes; i++) {
        const u64 t = b->plan->times[i].end;
        all += t;
        if (i / b->lanes == k) mine += t;
    }
    return all ? (u64)((double)ns * (double)mine / (double)all) : ns / (u64)b->n;
}

/* Lanes of a band work on one step while others work on the next: each lane's work is spread over the steps as the time is. Sums
 * over the lanes and over the steps stay what they were, and no lane works longer than a step lasts. */
static void spread(const band *b, const u64 ns[QN_TOGETHER], u64 all)
{
    qn_lane_time *t = b->plan->times;
    for (int i = 0; i < b->lanes; i++) {
        u64 worked = 0;
        for (int k = 0; k < b->n; k++) worked += t[k * b->lanes + i].end;
        const double share = all ? (double)(worked < all ? worked : all) / (double)all : 0;
        for (int k = 0; k < b->n; k++) t[k * b->lanes + i].end = (u64)((double)ns[k] * share);
    }
}

static void keep_times(const band *b, int first, const qn_exec_trace *t, u64 begin)
{
    const u64 end = qn_now_ns(), all = end - begin;
    u64 ns[QN_TOGETHER] = { all }, left = all;
    for (int k = 0; k + 1 < b->n; k++) left -= ns[k] = share_of(b, k, all);
    ns[b->n - 1] = left;
    if (b->n > 1) spread(b, ns, all);
    if (b->pieces == 1) b->plan->times[0].end = all;
    for (int k = 0; k < b->n; k++) {
        const qn_cost c = qn_ops[b->plan->steps[first + k].op].cost(&b->m[k].args, t->ctx);
        const qn_step_mark m = { .pass = t->pass, .step = (u32)(first + k), .phase = t->phase, .rows = b->m[k].args.n,
                                 .pos = t->pos, .lanes = b->shared ? b->lanes : 1, .begin = begin, .end = begin + ns[k],
                                 .bytes = c.bytes, .flops = c.flops, .times = b->plan->times + k * b->lanes };
        qn_tracer_step(t->tracer, &m);
        begin += ns[k];
    }
}

bool qn_plan_run(const qn_plan *p, qn_pool *pool, int n, int n_logits, const qn_exec_trace *trace, const atomic_int *cancel)
{
    band b = { .plan = trace ? p : NULL, .lanes = qn_pool_n(pool) };
    for (int i = 0; i < p->n; i += b.n) {
        const int rows = p->steps[i].logits ? n_logits : n;
        if (atomic_load_explicit(cancel, memory_order_relaxed)) return false;
        b.n = b.longs = b.pieces = 0;
        b.shared = false;
        do join_band(&b, &p->steps[i + b.n], rows);
        while (p->steps[i + b.n - 1].with_next);
        if (rows == 0) continue;
        if (b.plan && b.pieces > 1) memset(p->times, 0, (size_t)(b.n * b.lanes) * sizeof *p->times);
        const u64 begin = b.plan ? qn_now_ns() : 0;
        /* with more rows weights are no stream, and what is asked for would only push x out of the caches */
        qn_pool_soon(pool, rows <= STREAMED ? p->steps[i + b.n - 1].soon : (qn_soon){ 0 });
        if (b.shared) qn_pool_share(pool, run_piece, &b, b.pieces);
        else for (int k = 0; k < b.pieces; k++) run_piece(&b, lane_of(k, b.pieces));
        if (b.plan) keep_times(&b, i, trace, begin);
    }
    return true;
}
