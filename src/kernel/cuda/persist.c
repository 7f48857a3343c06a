/* persist.c - the host's side of the persistent kernel: its lists on the device, one launch for some tokens, and its stamps as
 * the times of the plan's steps. */
#include <string.h>

#include "kernel/cuda/list.h"

typedef struct qn_persist {
    qn_lists l;
    qn_crun run;            /* what every launch has in common */
    i32 *chosen;            /* [QN_CUDA_DECODE_MOST] pinned; the device writes it */
    u64 *stamps;            /* [n_blocks, n_ins, QN_STAMPS] of the newest timed token; NULL until then */
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
        { &p->run.lists, l->ins, (u64)l->n_blocks * (u64)l->n_ins * sizeof *l->ins },
        { &p->run.fetches, l->fetches, (u64)l->n_fetches * sizeof *l->fetches },
        { &p->run.fetch_at, l->fetch_at, ((u64)l->n_blocks * QN_P_WARPS + 1) * sizeof *l->fetch_at },
        { &p->run.atts, l->atts, (u64)l->n_atts * sizeof *l->atts },
        { &p->run.tables, l->tables, (u64)l->n_tables * sizeof *l->tables },
        { &p->run.counters, NULL, (u64)l->n_counters * 4 },
        { &p->run.heads, NULL, (u64)l->n_heads * 4 },
        { &p->run.best, NULL, 16 },
        { &p->run.parts, NULL, (u64)l->part_floats * 4 },
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

static bool fits(qn_cuda *c, const qn_persist *p)
{
    const qn_driver *d = &c->gpu.d;
    int blocks = 0;
    return d->function_set(c->gpu.fn[FN_persist], CU_FUNC_DYNAMIC_SMEM, (int)p->l.smem) == 0 &&
           d->occupancy(&blocks, c->gpu.fn[FN_persist], 32 * QN_P_WARPS, p->l.smem) == 0 && blocks > 0;
}

static bool make_run(qn_cuda *c, qn_persist *p, qn_err *e)
{
    const qn_driver *d = &c->gpu.d;
    void *pinned = NULL;
    if (!send_lists(c, p, e) ||
        !qn_driver_ok(d, d->host_alloc(&pinned, QN_CUDA_DECODE_MOST * sizeof(i32), 0), "taking pinned memory", e)) return false;
    p->chosen = pinned;
    p->run.chosen = (u64)(uintptr_t)pinned; /* host and device share one space of addresses */
    p->run.n_ins = (u32)p->l.n_ins;
    p->run.input_bytes = p->l.input_bytes;
    p->run.stage_bytes = p->l.stage_bytes;
    p->run.n_stages = p->l.n_stages;
    return true;
}

bool qn_persist_make(qn_cuda *c, qn_err *e)
{
    const qn_step *first = &c->plan->steps[0];
    qn_list_setup s = { .plan = c->plan, .steps = c->steps, .n_blocks = c->gpu.n_sm, .smem = (size_t)c->gpu.smem };
    if (!c->gpu.cooperative) return c->why_not = "the device cannot run all blocks at once", true;
    if (first->op != OP_embed) return c->why_not = "no embedding at its beginning", true;
    if (!qn_gpu_take(&c->gpu, "a residual stream", 4 * (u64)first->args.embed.d, &s.spare, e)) return false;
    qn_persist *p = qn_new(sizeof *p, e);
    if (!p) return false;
    c->persist = p;
    const bool made = qn_lists_make(&p->l, &s, &c->why_not, e);
    if (made && !fits(c, p)) c->why_not = "the kernel does not fit onto a multiprocessor";
    if (made && !c->why_not) return make_run(c, p, e);
    qn_persist_close(c);
    return c->why_not != NULL;
}

void qn_persist_close(qn_cuda *c)
{
    qn_persist *p = c->persist;
    if (!p) return;
    if (p->chosen) c->gpu.d.host_free(p->chosen);
    qn_free(p->stamps);
    qn_lists_close(&p->l);
    qn_free(p);
    c->persist = NULL;
}

const i32 *qn_persist_chosen(const qn_cuda *c) { return c->persist->chosen; }

/* ---- stamps: an instruction lasts from its first block's start to its last block's end; a step gets the time by which its
 * instruction ends later than the one before, so that all steps together are the token. */

static bool make_stamps(qn_cuda *c, qn_persist *p, qn_err *e)
{
    const size_t n = QN_STAMPS * (size_t)p->l.n_blocks * (size_t)p->l.n_ins;
    if (p->stamps) return true;
    if (!qn_gpu_take(&c->gpu, "stamps", n * sizeof *p->stamps, &p->stamps_at, e)) return false;
    p->stamps = qn_new_array(n, sizeof *p->stamps, e);
    return p->stamps != NULL;
}

static void read_stamps(qn_cuda *c, const qn_persist *p)
{
    u64 before = UINT64_MAX;
    for (int b = 0; b < p->l.n_blocks; b++) {
        const u64 begin = p->stamps[QN_STAMPS * (size_t)b * (size_t)p->l.n_ins];
        before = begin < before ? begin : before;
    }
    for (int k = 0; k < p->l.n_ins; k++) {
        u64 end = before;
        for (int b = 0; b < p->l.n_blocks; b++) {
            const u64 t = p->stamps[QN_STAMPS * ((size_t)b * (size_t)p->l.n_ins + (size_t)k) + QN_STAMP_end];
            end = t > end ? t : end;
        }
        qn_step *s = &c->plan->steps[p->l.ins[k].step];
        s->ns += end - before;
        s->calls++;
        before = end;
    }
}

bool qn_persist_run(qn_cuda *c, int n, bool timed, qn_err *e)
{
    qn_persist *p = c->persist;
    const qn_driver *d = &c->gpu.d;
    if (timed && !make_stamps(c, p, e)) return false;
    qn_crun r = p->run;
    r.n_tokens = (u32)n;
    r.epoch = p->epoch;
    r.token = c->need.tokens[0];
    r.pos = c->need.pos[0];
    r.first = c->need.first[0];
    r.stamps = timed ? p->stamps_at : 0;
    p->epoch += (u32)n;
    const qn_grid g = { (unsigned)p->l.n_blocks, 1, 32 * QN_P_WARPS, (unsigned)p->l.smem };
    if (!qn_gpu_launch_together(&c->gpu, FN_persist, g, &r, e)) return false;
    if (!timed) return true;
    const size_t bytes = QN_STAMPS * (size_t)p->l.n_blocks * (size_t)p->l.n_ins * sizeof *p->stamps;
    if (!qn_driver_ok(d, d->copy_down(p->stamps, p->stamps_at, bytes, c->gpu.stream), "fetching stamps", e) ||
        !qn_gpu_wait(&c->gpu, e)) return false;
    read_stamps(c, p);
    return true;
}
