/* persist.c - the host's side of the persistent kernel: its lists on the device, one launch for some tokens, and its stamps as
 * the times of the plan's steps. */
#include <string.h>

#include "kernel/cuda/list.h"

typedef struct qn_persist {
    qn_lists l;
    qn_crun run;            /* what every launch has in common */
    i32 *chosen;            /* [QN_CUDA_DECODE_MOST] pinned; the device writes it */
    u64 *stamps;            /* [1 + QN_CUDA_DECODE_MOST * n_phases] pinned: of the newest timed tokens; NULL until then */
    u64 stamps_at;
    u32 epoch;
} qn_persist;

static u64 align256(u64 n) { return (n + 255) & ~(u64)255; }

/* One block of device memory for everything; the order of `parts` is that of the fields. */
static bool send_lists(qn_cuda *c, qn_persist *p, qn_err *e)
{
    const qn_driver *d = &c->gpu.d;
    const qn_lists *l = &p->l;
    const struct { u64 *at; const void *from; u64 bytes; } parts[] = {
        { &p->run.phases, l->phases, (u64)l->n_phases * sizeof *l->phases },
        { &p->run.stages, l->stages, (u64)l->n_stages * sizeof *l->stages },
        { &p->run.stage_at, l->stage_at, ((u64)l->n_blocks + 1) * sizeof *l->stage_at },
        { &p->run.tasks, l->tasks, (u64)l->n_tasks * sizeof *l->tasks },
        { &p->run.task_at, l->task_at, ((u64)l->n_blocks * QN_P_WARPS + 1) * sizeof *l->task_at },
        { &p->run.atts, l->atts, (u64)l->n_atts * sizeof *l->atts },
        { &p->run.tables, l->tables, (u64)l->n_tables * sizeof *l->tables },
        { &p->run.best, NULL, (u64)l->n_blocks * 16 },
        { &p->run.parts, NULL, (u64)l->part_units * 8 },
    };
    u64 bytes = 0, base = 0;
    for (size_t i = 0; i < QN_COUNT(parts); i++) bytes += align256(parts[i].bytes);
    if (!qn_gpu_take(&c->gpu, "the instruction lists", bytes, &base, e) ||
        !qn_driver_ok(d, d->fill(base, 0, bytes, c->gpu.stream), "clearing memory", e)) return false;
    for (size_t i = 0; i < QN_COUNT(parts); base += align256(parts[i++].bytes)) {
        *parts[i].at = base;
        if (!parts[i].from || parts[i].bytes == 0) continue;
        if (!qn_driver_ok(d, d->copy_up(base, parts[i].from, parts[i].bytes, c->gpu.stream), "copying lists", e)) return false;
    }
    return qn_gpu_wait(&c->gpu, e);
}

/* The kernel for this model's heads. */
static int kernel_of(const qn_lists *l)
{
    int d = 0;
    for (int i = 0; i < l->n_atts; i++) {
        if (l->atts[i].type == QN_KVT_f32) return FN_persist_wide;
        d = qn_maxi(d, l->atts[i].d_head);
    }
    return d <= 64 ? FN_persist_64 : d <= 128 ? FN_persist_128 : FN_persist_256;
}

static bool fits(qn_cuda *c, const qn_persist *p)
{
    const qn_driver *d = &c->gpu.d;
    int blocks = 0;
    return d->function_set(c->gpu.fn[kernel_of(&p->l)], CU_FUNC_DYNAMIC_SMEM, (int)p->l.smem) == 0 &&
           d->occupancy(&blocks, c->gpu.fn[kernel_of(&p->l)], QN_P_THREADS, p->l.smem) == 0 && blocks > 0;
}

static bool make_run(qn_cuda *c, qn_persist *p, qn_err *e)
{
    const qn_driver *d = &c->gpu.d;
    void *pinned = NULL;
    if (!send_lists(c, p, e)) return false;
    qn_lists_forget(&p->l);
    if (!qn_driver_ok(d, d->host_alloc(&pinned, QN_CUDA_DECODE_MOST * sizeof(i32), 0), "taking pinned memory", e)) return false;
    p->chosen = pinned;
    p->run.chosen = (u64)(uintptr_t)pinned; /* host and device share one space of addresses */
    p->run.n_phases = (u32)p->l.n_phases;
    p->run.x_bytes = p->l.x_bytes;
    p->run.form_bytes = p->l.form_bytes;
    return true;
}

/* Everything is there already but what the lists need; without room for that, a graph of ordinary kernels runs the plan. */
static bool make_here(qn_cuda *c, qn_persist *p, qn_err *e)
{
    qn_list_setup s = { .plan = c->plan, .steps = c->steps, .n_blocks = c->gpu.n_sm, .smem = (size_t)c->gpu.smem };
    const u64 bytes = qn_lists_sent_bytes(c->plan);
    if (!qn_gpu_take(&c->gpu, "what blocks send each other", bytes, &s.sent, e) ||
        !qn_driver_ok(&c->gpu.d, c->gpu.d.fill(s.sent, 0, bytes, c->gpu.stream), "clearing memory", e)) return false;
    if (!qn_lists_make(&p->l, &s, &c->why_not, e)) return false;
    if (!fits(c, p)) return c->why_not = "the kernel does not fit onto a multiprocessor", false;
    return make_run(c, p, e);
}

bool qn_persist_make(qn_cuda *c, qn_err *e)
{
    if (!c->gpu.cooperative) return c->why_not = "the device cannot run all blocks at once", true;
    qn_persist *p = qn_new(sizeof *p, e);
    if (!p) return false;
    c->persist = p;
    if (make_here(c, p, e)) return true;
    qn_persist_close(c);
    if (e->code == QN_ENOMEM) {
        c->why_not = "too little memory for its lists";
        *e = (qn_err){ 0 };
    }
    return e->code == 0 && c->why_not != NULL;
}

void qn_persist_close(qn_cuda *c)
{
    qn_persist *p = c->persist;
    if (!p) return;
    if (p->chosen) c->gpu.d.host_free(p->chosen);
    if (p->stamps) c->gpu.d.host_free(p->stamps);
    qn_lists_close(&p->l);
    qn_free(p);
    c->persist = NULL;
}

const i32 *qn_persist_chosen(const qn_cuda *c) { return c->persist->chosen; }

/* ---- stamps: when the last block was done with a phase. A step gets the time by which its phase ends later than the one before,
 * so that all steps together are the token. */

static bool make_stamps(qn_cuda *c, qn_persist *p, qn_err *e)
{
    const size_t n = QN_CUDA_DECODE_MOST * (size_t)p->l.n_phases;
    const u64 bytes = (n + 1) * sizeof *p->stamps;
    if (p->stamps) return true;
    if (!qn_gpu_take(&c->gpu, "stamps", bytes, &p->stamps_at, e)) return false;
    void *pinned = NULL;
    if (!qn_driver_ok(&c->gpu.d, c->gpu.d.host_alloc(&pinned, bytes, 0), "taking pinned memory", e)) return false;
    p->stamps = pinned;
    return qn_driver_ok(&c->gpu.d, c->gpu.d.fill(p->stamps_at, 0, bytes, c->gpu.stream), "clearing memory", e);
}

void qn_persist_times(const qn_cuda *c, int n, u64 *ns)
{
    const qn_persist *p = c->persist;
    u64 before = p->stamps[0];
    memset(ns, 0, (size_t)n * (size_t)c->plan->n * sizeof *ns);
    for (int t = 0; t < n; t++, ns += c->plan->n)
        for (int k = 0; k < p->l.n_phases; k++) {
            const u64 end = p->stamps[1 + (size_t)t * (size_t)p->l.n_phases + (size_t)k];
            ns[p->l.phases[k].step] += end > before ? end - before : 0;
            before = end > before ? end : before;
        }
}

bool qn_persist_run(qn_cuda *c, const qn_persist_part *part, bool timed, qn_err *e)
{
    qn_persist *p = c->persist;
    if (timed && !make_stamps(c, p, e)) return false;
    qn_crun r = p->run;
    r.n_tokens = (u32)part->n;
    r.epoch = p->epoch;
    r.token = c->need.tokens[0];
    r.next = part->next;
    r.pos = c->need.pos[0] + part->at;
    r.first = c->need.first[0];
    /* it begins where the last phase of the token before ended: what was done between the two counts for that phase */
    r.stamps = timed ? p->stamps_at + 8 * (u64)part->at * (u64)p->l.n_phases : 0;
    p->epoch += (u32)part->n;
    const qn_grid g = { (unsigned)p->l.n_blocks, 1, QN_P_THREADS, (unsigned)p->l.smem };
    return qn_gpu_launch_together(&c->gpu, kernel_of(&p->l), g, &r, e);
}

bool qn_persist_stamps(qn_cuda *c, int n, qn_err *e)
{
    const qn_persist *p = c->persist;
    const size_t bytes = (1 + (size_t)n * (size_t)p->l.n_phases) * sizeof *p->stamps;
    return qn_driver_ok(&c->gpu.d, c->gpu.d.copy_down(p->stamps, p->stamps_at, bytes, c->gpu.stream), "fetching stamps", e);
}
