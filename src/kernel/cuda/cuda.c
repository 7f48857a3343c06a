/* cuda.c - the door to the device: opening it, its memory, the way of a pass (books up, steps, logits down when asked for). */
#include "kernel/cuda/cuda.h"

#include <string.h>

#include "kernel/cuda/fatbin.h"
#include "kernel/cuda/program.h"
#include "kernel/cuda/weights.h"

#define LIBRARY "libcuda.so.1"
#define SLACK ((u64)64 << 20) /* what the driver itself takes on top: its context grows with kernels and graphs */

static void fill_info(const qn_gpu *g, qn_cuda_info *out)
{
    *out = (qn_cuda_info){ .ordinal = g->ordinal, .major = g->major, .minor = g->minor, .n_sm = g->n_sm, .driver = g->version,
                           .memory = g->memory };
    memcpy(out->name, g->name, sizeof out->name);
}

bool qn_cuda_look(int ordinal, qn_cuda_info *out, qn_err *e)
{
    qn_gpu g = { 0 };
    bool good = qn_driver_open(&g.d, LIBRARY, e) && qn_gpu_open(&g, ordinal, false, e);
    if (good) {
        fill_info(&g, out);
        good = qn_gpu_free_bytes(&g, &out->free, e);
    }
    qn_gpu_close(&g);
    return good;
}

qn_cuda *qn_cuda_open(int ordinal, qn_err *e)
{
    if (qn_n_fatbins == 0) {
        qn_fail(e, QN_EUNSUPPORTED, "this build holds no CUDA kernels; `make CUDA=1` makes one that does");
        return NULL;
    }
    qn_cuda *c = qn_new(sizeof *c, e);
    if (c && qn_driver_open(&c->gpu.d, LIBRARY, e) && qn_gpu_open(&c->gpu, ordinal, true, e)) return c;
    qn_cuda_close(c);
    return NULL;
}

void qn_cuda_close(qn_cuda *c)
{
    if (!c) return;
    qn_err ignored;
    if (c->gpu.retained && qn_gpu_enter(&c->gpu, &ignored)) {
        qn_persist_close(c);
        qn_program_close(c);
        qn_shortlist_close(c);
        if (c->pinned) c->gpu.d.host_unpin((void *)(uintptr_t)c->need.logits);
    }
    qn_free(c->shadow);
    qn_gpu_close(&c->gpu);
    qn_free(c);
}

u64 qn_cuda_weight_bytes(qn_dtype type, u64 rows, u64 cols)
{
    const qn_wmat w = qn_wmat_of(type, 1, (int)cols);
    return rows * w.row_bytes + 256;
}

static bool check_memory(qn_cuda *c, qn_err *e)
{
    const qn_cuda_need *n = &c->need;
    const u64 kv = (u64)n->kv_bytes[0] + n->kv_bytes[1], all = n->weights + kv + n->scratch_bytes + SLACK;
    u64 have = 0;
    if (!qn_gpu_free_bytes(&c->gpu, &have, e)) return false;
    if (all <= have) return true;
    return qn_fail(e, QN_ENOMEM, "not enough memory on cuda:%d: need %llu bytes (weights %llu, KV %llu, scratch %llu), %llu are "
                   "free; lower -c or use --device cpu", c->gpu.ordinal, (unsigned long long)all, (unsigned long long)n->weights,
                   (unsigned long long)kv, (unsigned long long)n->scratch_bytes, (unsigned long long)have);
}

bool qn_cuda_reserve(qn_cuda *c, const qn_cuda_need *need, u8 *kv[2], qn_err *e)
{
    const qn_driver *d = &c->gpu.d;
    c->need = *need;
    if (!check_memory(c, e) || !qn_gpu_take(&c->gpu, "scratch", need->scratch_bytes, &c->scratch, e)) return false;
    for (int g = 0; g < 2; g++) {
        if (need->kv_bytes[g] && !qn_gpu_take(&c->gpu, "the KV cache", need->kv_bytes[g], &c->kv[g], e)) return false;
        kv[g] = (u8 *)(uintptr_t)c->kv[g];
    }
    const u8 *end = need->scratch + need->scratch_bytes;
    c->shadow = qn_new((size_t)(end - need->tables), e);
    if (!c->shadow) return false;
    /* without it copies take a detour through the driver's own pinned memory: slower, not wrong */
    c->pinned = d->host_pin((void *)(uintptr_t)need->logits, (size_t)(end - need->logits), 0) == 0;
    return qn_driver_ok(d, d->fill(c->scratch, 0, need->scratch_bytes, c->gpu.stream), "clearing memory", e) &&
           qn_gpu_wait(&c->gpu, e);
}

bool qn_cuda_load_plan(qn_cuda *c, const qn_cuda_load *l, qn_err *e)
{
    c->plan = l->plan;
    return qn_gpu_enter(&c->gpu, e) && qn_upload(c, l, e) && qn_program_make(c, e) && qn_shortlist_make(c, e) &&
           qn_persist_make(c, e);
}

/* ---- a pass */

static u64 twin(const qn_cuda *c, const u8 *host) { return c->scratch + (u64)(host - c->need.scratch); }

static bool copy_rows(qn_cuda *c, qn_err *e)
{
    const qn_driver *d = &c->gpu.d;
    const qn_cuda_need *n = &c->need;
    const size_t bytes = (size_t)(n->tables - n->rows);
    return qn_driver_ok(d, d->copy_up(twin(c, n->rows), n->rows, bytes, c->gpu.stream), "copying rows", e);
}

static bool copy_tables(qn_cuda *c, qn_err *e)
{
    const qn_driver *d = &c->gpu.d;
    const qn_cuda_need *n = &c->need;
    const size_t bytes = (size_t)(n->scratch + n->scratch_bytes - n->tables);
    if (!memcmp(c->shadow, n->tables, bytes)) return true;
    memcpy(c->shadow, n->tables, bytes);
    return qn_driver_ok(d, d->copy_up(twin(c, n->tables), n->tables, bytes, c->gpu.stream), "copying page tables", e);
}

/* n tokens of one sequence are on their way: their times with them, and all of it awaited. */
static bool finish_tokens(qn_cuda *c, int n, u64 *ns, qn_err *e)
{
    if (ns && !qn_persist_stamps(c, n, e)) return false;
    if (!qn_gpu_wait(&c->gpu, e)) return false;
    if (ns) qn_persist_times(c, n, ns);
    c->n_fresh = 1;
    return true;
}

bool qn_cuda_run(qn_cuda *c, int n, int n_logits, u64 *ns, qn_err *e)
{
    c->n_fresh = 0;
    if (!qn_gpu_enter(&c->gpu, e) || !copy_tables(c, e)) return false;
    if (n == 1 && n_logits == 1 && c->persist) /* its row comes with the launch */
        return qn_persist_run(c, &(qn_persist_part){ .n = 1 }, ns, e) && qn_shortlist_launch(c, 1, e) &&
               finish_tokens(c, 1, ns, e);
    if (!copy_rows(c, e) || !qn_program_run(c, n, n_logits, ns, e) || !qn_shortlist_launch(c, n_logits, e) ||
        !qn_gpu_wait(&c->gpu, e)) return false;
    if (ns) qn_program_times(c, n, n_logits, ns);
    c->n_fresh = n_logits;
    return true;
}

bool qn_cuda_can_decode(const qn_cuda *c) { return c->persist != NULL; }
const char *qn_cuda_why_not(const qn_cuda *c) { return c->why_not; }

bool qn_cuda_decode(qn_cuda *c, int n, i32 *out, u64 *ns, qn_err *e)
{
    c->n_fresh = 0;
    if (!qn_gpu_enter(&c->gpu, e) || !copy_tables(c, e) || !qn_persist_run(c, &(qn_persist_part){ .n = n }, ns, e) ||
        !qn_shortlist_launch(c, 0, e) || !finish_tokens(c, n, ns, e)) return false;
    memcpy(out, qn_persist_chosen(c), (size_t)n * sizeof *out);
    return true;
}

bool qn_cuda_draw(qn_cuda *c, int n, const qn_cuda_rules *r, const double *u, i32 *out, u64 *ns, qn_err *e)
{
    c->n_fresh = 0;
    if (!qn_gpu_enter(&c->gpu, e) || !copy_tables(c, e)) return false;
    for (int i = 0; i < n; i++) {
        const qn_persist_part part = { .at = i, .n = 1, .next = i ? qn_shortlist_next(c) : 0 };
        if (!qn_persist_run(c, &part, ns, e) || !qn_shortlist_draw(c, r, u[i], i, e)) return false;
    }
    if (!qn_shortlist_launch(c, 0, e) || !finish_tokens(c, n, ns, e)) return false;
    memcpy(out, qn_shortlist_drawn(c), (size_t)n * sizeof *out);
    return true;
}

bool qn_cuda_fetch(qn_cuda *c, qn_err *e)
{
    const qn_driver *d = &c->gpu.d;
    const size_t bytes = (size_t)c->n_fresh * (size_t)c->need.n_vocab * sizeof(float);
    if (c->n_fresh == 0) return true;
    c->n_fresh = 0;
    void *to = (void *)(uintptr_t)c->need.logits; /* the engine's own buffer: const for everybody else here */
    return qn_gpu_enter(&c->gpu, e) &&
           qn_driver_ok(d, d->copy_down(to, twin(c, c->need.logits), bytes, c->gpu.stream), "fetching logits", e) &&
           qn_gpu_wait(&c->gpu, e);
}

bool qn_cuda_copy(qn_cuda *c, u8 *to, const u8 *from, size_t bytes, qn_err *e)
{
    return qn_gpu_enter(&c->gpu, e) &&
           qn_driver_ok(&c->gpu.d, c->gpu.d.copy_within((u64)(uintptr_t)to, (u64)(uintptr_t)from, bytes, c->gpu.stream),
                        "copying a page", e);
}

/* ---- what it is */

void qn_cuda_get_info(const qn_cuda *c, qn_cuda_info *out) { fill_info(&c->gpu, out); }
u64 qn_cuda_taken(const qn_cuda *c) { return c->gpu.taken; }
int qn_cuda_decoded(const qn_cuda *c) { return c->n_decoded; }

static bool merged(const qn_cuda *c, int bucket) { return c->persist && bucket == BUCKET_one; }

const char *qn_cuda_kernel(const qn_cuda *c, int step, int bucket)
{
    const char *wide = qn_wide_name(c, step, bucket);
    return merged(c, bucket) ? "persist_cuda" : wide ? wide : c->steps[step].kernel[bucket];
}

const char *qn_cuda_reason(const qn_cuda *c, int step, int bucket)
{
    if (merged(c, bucket)) return "the whole token is one kernel";
    return bucket != BUCKET_one && qn_wide_merged(c, step) ? "a launch before it does its work" : c->steps[step].reason;
}
