/* exec.c - runs a plan on the CPU. The only place where a kernel is called, so the only place where it is timed. Knows no
 * model: a step's operands were fixed when the plan was made, only the number of rows is new in each pass. */
#include "base/clock.h"
#include "kernel/plan.h"

/* A kernel with a stamp of each lane before and behind it: 50 ns. */
typedef struct stamped { qn_kernel_fn fn; const qn_args *args; qn_lane_time *times; } stamped;

static void run_stamped(const void *args, qn_lane lane)
{
    const stamped *j = args;
    j->times[lane.i].begin = qn_now_ns();
    j->fn(j->args, lane);
    j->times[lane.i].end = qn_now_ns();
}

/* One step on the lanes it wants; returns how many those were. */
static int run_step(const qn_step *s, qn_pool *pool, const qn_args *args, qn_lane_time *times)
{
    const qn_kernel_fn fn = s->choice[qn_bucket(args->n)].kernel->fn;
    const bool alone = args->n <= s->alone;
    if (!times) {
        if (alone) fn(args, (qn_lane){ 0, 1 });
        else qn_pool_run(pool, fn, args);
    } else {
        const stamped j = { fn, args, times };
        if (alone) run_stamped(&j, (qn_lane){ 0, 1 });
        else qn_pool_run(pool, run_stamped, &j);
    }
    return alone ? 1 : qn_pool_n(pool);
}

static void record(const qn_exec_trace *t, const qn_step *s, int i, const qn_args *args, int lanes, u64 begin)
{
    const qn_cost c = qn_ops[s->op].cost(args, t->ctx);
    const u64 end = lanes == 1 ? t->times[0].end : qn_now_ns(); /* alone: the lane's own stamps are the step's */
    const qn_step_mark m = { .pass = t->pass, .step = (u32)i, .phase = t->phase, .rows = args->n, .pos = t->pos, .lanes = lanes,
                             .begin = lanes == 1 ? t->times[0].begin : begin, .end = end, .bytes = c.bytes, .flops = c.flops,
                             .times = t->times };
    qn_tracer_step(t->tracer, &m);
}

bool qn_plan_run(qn_plan *p, qn_pool *pool, int n, int n_logits, bool timed, const qn_exec_trace *trace, const atomic_int *cancel)
{
    for (int i = 0; i < p->n; i++) {
        if (atomic_load_explicit(cancel, memory_order_relaxed)) return false;
        qn_step *s = &p->steps[i];
        const int rows = s->logits ? n_logits : n;
        if (rows == 0) continue;
        qn_args args = s->args;
        args.n = rows;
        const u64 begin = timed || trace ? qn_now_ns() : 0;
        const int lanes = run_step(s, pool, &args, trace ? trace->times : NULL);
        if (trace) record(trace, s, i, &args, lanes, begin);
        if (!timed) continue;
        s->ns += qn_now_ns() - begin;
        s->calls++;
    }
    return true;
}
