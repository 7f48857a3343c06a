/* exec.c - runs a plan on the CPU. The only place where a kernel is called, so the only place where it is timed. Knows no
 * model: a step's operands were fixed when the plan was made, only the number of rows is new in each pass. */
#include "base/clock.h"
#include "kernel/plan.h"

bool qn_plan_run(qn_plan *p, qn_pool *pool, int n, int n_logits, bool timed, const atomic_int *cancel)
{
    for (int i = 0; i < p->n; i++) {
        if (atomic_load_explicit(cancel, memory_order_relaxed)) return false;
        qn_step *s = &p->steps[i];
        const int rows = s->logits ? n_logits : n;
        if (rows == 0) continue;
        qn_args args = s->args;
        args.n = rows;
        const u64 begin = timed ? qn_now_ns() : 0;
        const qn_kernel_fn fn = s->choice[qn_bucket(rows)].kernel->fn;
        if (rows <= s->alone) fn(&args, (qn_lane){ 0, 1 });
        else qn_pool_run(pool, fn, &args);
        if (!timed) continue;
        s->ns += qn_now_ns() - begin;
        s->calls++;
    }
    return true;
}
