/* program.c - a plan's steps as launches of ordinary kernels. Operands are found once, when the plan is loaded; a pass sets the
 * number of rows. Passes that come again and again (a token of one or some sequences) are captured as graphs. */
#include "kernel/cuda/program.h"

#include <stdio.h>
#include <string.h>

#include "kernel/cuda/tiles.h"
#include "kernel/cuda/weights.h"

/* ---- operands */

static u64 buffer(const qn_cuda *c, const void *host)
{
    return c->scratch + (u64)((const u8 *)host - c->need.scratch);
}

u64 qn_program_buffer(const qn_cuda *c, const void *host) { return buffer(c, host); }

static u64 floats(const qn_cuda *c, const void *host) { return host ? qn_placed_find(c, host)->w.at : 0; }

static qn_crows rows_of(const qn_cuda *c, const qn_rows *at)
{
    return (qn_crows){ .pos = buffer(c, at->pos), .first = buffer(c, at->first), .pages = buffer(c, at->pages) };
}

static int kv_type(qn_dtype t) { return t == DT_f16 ? QN_KVT_f16 : t == DT_f32 ? QN_KVT_f32 : QN_KVT_q8; }

/* The table of angles of these frequencies, made once. */
static bool angles(qn_cuda *c, const qn_rope *r, u64 *out, qn_err *e)
{
    for (int i = 0; i < c->n_angles; i++)
        if (c->angle_freq[i] == r->freq) return *out = c->angle_at[i], true;
    assert(c->n_angles < (int)QN_COUNT(c->angle_at)); /* global and sliding layers: two */
    const int pairs = r->d_rot / 2;
    if (!qn_gpu_take(&c->gpu, "the angles", 8 * (u64)c->need.n_ctx * (u64)pairs, out, e)) return false;
    const qn_cangles a = { .table = *out, .freq = floats(c, r->freq), .n_pos = c->need.n_ctx, .n_pair = pairs,
                           .mscale = r->mscale };
    const unsigned blocks = (unsigned)(((u64)c->need.n_ctx * (u64)pairs + 255) / 256);
    if (!qn_gpu_launch(&c->gpu, FN_angles, (qn_grid){ blocks, 1, 256, 0 }, &a, e)) return false;
    c->angle_freq[c->n_angles] = r->freq;
    c->angle_at[c->n_angles++] = *out;
    return true;
}

static bool place(qn_cuda *c, const qn_step *s, qn_cargs *out, qn_err *e)
{
    const qn_args *a = &s->args;
    switch (s->op) {
    case OP_embed:
        out->embed = (qn_cembed){ .y = buffer(c, a->embed.y), .tokens = buffer(c, a->embed.tokens), .scale = a->embed.scale,
                                  .table = qn_placed_find(c, a->embed.table)->w };
        return true;
    case OP_rmsnorm:
        out->norm = (qn_cnorm){ .y = buffer(c, a->rmsnorm.y), .x = buffer(c, a->rmsnorm.x), .w = floats(c, a->rmsnorm.w),
                                .d = a->rmsnorm.d, .eps = a->rmsnorm.eps };
        return true;
    case OP_headnorm:
        out->norm = (qn_cnorm){ .y = buffer(c, a->headnorm.x), .x = buffer(c, a->headnorm.x), .w = floats(c, a->headnorm.w),
                                .d = a->headnorm.d, .eps = a->headnorm.eps };
        return true;
    case OP_linear:
        out->linear = (qn_clinear){ .y = buffer(c, a->linear.y), .x = buffer(c, a->linear.x), .bias = floats(c, a->linear.bias),
                                    .w = qn_placed_find(c, a->linear.w)->w };
        return true;
    case OP_rope:
        out->rope = (qn_crope){ .q = buffer(c, a->rope.q), .k = buffer(c, a->rope.k), .pos = buffer(c, a->rope.pos),
                                .n_head = a->rope.n_head, .n_kv = a->rope.n_kv, .d_head = a->rope.d_head,
                                .d_rot = a->rope.d_rot, .neox = a->rope.neox };
        return angles(c, &a->rope, &out->rope.table, e);
    case OP_store:
        out->store = (qn_cstore){ .k = buffer(c, a->store.k), .v = buffer(c, a->store.v), .cache = (u64)(uintptr_t)a->store.cache,
                                  .stride = a->store.page_stride, .at = rows_of(c, a->store.at), .n_kv = a->store.n_kv,
                                  .d_head = a->store.d_head, .type = kv_type(a->store.type) };
        return true;
    case OP_attend:
        out->attend = (qn_cattend){ .y = buffer(c, a->attend.y), .q = buffer(c, a->attend.q),
                                    .cache = (u64)(uintptr_t)a->attend.cache, .stride = a->attend.page_stride,
                                    .at = rows_of(c, a->attend.at), .n_head = a->attend.n_head, .n_kv = a->attend.n_kv,
                                    .d_head = a->attend.d_head, .type = kv_type(a->attend.type), .window = a->attend.window,
                                    .scale = a->attend.scale };
        return true;
    case OP_add: out->add = (qn_cadd){ .x = buffer(c, a->add.x), .y = buffer(c, a->add.y) }; return true;
    case OP_swiglu: case OP_geglu: /* the two structs are alike */
        out->glu = (qn_cglu){ .gate = buffer(c, a->swiglu.gate), .up = buffer(c, a->swiglu.up), .gelu = s->op == OP_geglu };
        return true;
    case OP_pick:
        out->pick = (qn_cpick){ .y = buffer(c, a->pick.y), .x = buffer(c, a->pick.x), .rows = buffer(c, a->pick.rows),
                                .d = a->pick.d };
        return true;
    default: return qn_fail(e, QN_EUNSUPPORTED, "%s: the device has no kernel for %s", s->role, qn_ops[s->op].name);
    }
}

#define GEMV_MOST 8 /* rows up to which weights are read by one warp a row; more go to the tensor cores */

/* ---- names, for `quern plan` */

static const char *name_of(qn_cuda *c, const qn_step *s, const qn_cstep *t, int bucket, qn_err *e)
{
    char text[64];
    if (s->op == OP_linear)
        snprintf(text, sizeof text, "linear_%s_cuda_%s", qn_wmat_name((int)t->args.linear.w.kind),
                 bucket == BUCKET_one ? "r1" : bucket == BUCKET_few || !qn_tiles_take(&t->args.linear.w) ? "r8" : "mma");
    else
        snprintf(text, sizeof text, "%s_cuda_%s", qn_ops[s->op].name,
                 s->op == OP_attend ? qn_attention_name(&t->args.attend, bucket) : "plain");
    return qn_arena_strndup(&c->arena, text, strlen(text), e);
}

static const char *reason_of(qn_cuda *c, const qn_step *s, qn_err *e)
{
    char text[96];
    if (s->op == OP_linear && !qn_wmat_native(s->args.linear.type))
        snprintf(text, sizeof text, "on the device; %s became f16 at load", qn_dtypes[s->args.linear.type].name);
    else snprintf(text, sizeof text, "on the device");
    return qn_arena_strndup(&c->arena, text, strlen(text), e);
}

static bool make_stamps(qn_cuda *c, qn_err *e)
{
    const size_t bytes = 8 * ((size_t)c->plan->n + 1);
    void *pinned = NULL;
    if (!qn_gpu_take(&c->gpu, "stamps", bytes, &c->stamps_at, e) ||
        !qn_driver_ok(&c->gpu.d, c->gpu.d.host_alloc(&pinned, bytes, 0), "taking pinned memory", e)) return false;
    c->stamps = pinned;
    return true;
}

bool qn_program_make(qn_cuda *c, qn_err *e)
{
    c->steps = qn_new_array((size_t)c->plan->n, sizeof *c->steps, e);
    if (!c->steps) return false;
    for (int i = 0; i < c->plan->n; i++) {
        const qn_step *s = &c->plan->steps[i];
        qn_cstep *t = &c->steps[i];
        if (!place(c, s, &t->args, e) || !(t->reason = reason_of(c, s, e))) return false;
        for (int b = 0; b < N_BUCKETS; b++)
            if (!(t->kernel[b] = name_of(c, s, t, b, e))) return false;
    }
    return make_stamps(c, e) && qn_tiles_make(&c->gpu, e) && qn_attention_make(c, e) && qn_wide_make(c, e) &&
           qn_gpu_wait(&c->gpu, e);
}

/* ---- launching */

static unsigned per(u64 n, unsigned each) { return (unsigned)((n + each - 1) / each); }

/* The same x serves q, k and v, gate and up: made f16 once. */
static bool launch_linear(qn_cuda *c, qn_clinear *a, int n, qn_err *e)
{
    const u64 x = a->x;
    a->n = n;
    if (n <= GEMV_MOST || !qn_tiles_take(&a->w)) return qn_gemv_launch(&c->gpu, a, e);
    a->x = buffer(c, c->need.narrow);
    if (c->narrowed != x && !qn_narrow_launch(&c->gpu, a->x, x, (u64)n * a->w.cols, e)) return false;
    c->narrowed = x;
    return qn_mma_launch(&c->gpu, a, e);
}

static bool launch(qn_cuda *c, int i, int n, qn_err *e)
{
    qn_gpu *g = &c->gpu;
    const qn_step *s = &c->plan->steps[i];
    qn_cargs a = c->steps[i].args;
    const unsigned rows = (unsigned)n;
    bool done = false;
    if (n > 1 && c->wide && !qn_wide_launch(c, i, n, &done, e)) return false;
    if (done) return true;
    if (s->op != OP_linear) c->narrowed = 0; /* it may write what was made f16 */
    switch (s->op) {
    case OP_embed: return qn_gpu_launch(g, FN_embed, (qn_grid){ rows, 1, 256, 0 }, &a, e);
    case OP_rmsnorm: return qn_gpu_launch(g, FN_rmsnorm, (qn_grid){ rows, 1, 512, 0 }, &a, e);
    case OP_headnorm:
        return qn_gpu_launch(g, FN_rmsnorm, (qn_grid){ rows * (unsigned)s->args.headnorm.n_head, 1, 64, 0 }, &a, e);
    case OP_linear: return launch_linear(c, &a.linear, n, e);
    case OP_rope: return qn_gpu_launch(g, FN_rope, (qn_grid){ rows, 1, 256, 0 }, &a, e);
    case OP_store: return qn_gpu_launch(g, FN_store, (qn_grid){ rows, 1, 256, 0 }, &a, e);
    case OP_attend: return qn_attention_launch(c, &a.attend, n, e);
    case OP_add:
        a.add.n = rows * (unsigned)s->args.add.d;
        return qn_gpu_launch(g, FN_add, (qn_grid){ per(a.add.n, 256), 1, 256, 0 }, &a, e);
    case OP_swiglu: case OP_geglu:
        a.glu.n = rows * (unsigned)s->args.swiglu.d;
        return qn_gpu_launch(g, FN_glu, (qn_grid){ per(a.glu.n, 256), 1, 256, 0 }, &a, e);
    default: return qn_gpu_launch(g, FN_pick, (qn_grid){ rows, 1, 256, 0 }, &a, e);
    }
}

/* The step's own number of rows; 0: nothing of its own is launched. */
static int own_rows(const qn_cuda *c, int i, int n, int n_logits)
{
    const int rows = c->plan->steps[i].logits ? n_logits : n;
    return rows > 1 && qn_wide_merged(c, i) ? 0 : rows;
}

static bool launch_all(qn_cuda *c, int n, int n_logits, qn_err *e)
{
    for (int i = 0; i < c->plan->n; i++) {
        const int rows = own_rows(c, i, n, n_logits);
        c->gpu.stamp = c->stamps_at + 8 * (u64)i;
        if (rows && !launch(c, i, rows, e)) return false;
    }
    c->gpu.stamp = 0;
    return true;
}

/* ---- graphs */

static bool capture(qn_cuda *c, int n, int n_logits, void **out, qn_err *e)
{
    const qn_driver *d = &c->gpu.d;
    void *graph = NULL;
    if (!qn_driver_ok(d, d->capture_begin(c->gpu.stream, CU_CAPTURE_THREAD), "capturing a graph", e)) return false;
    bool good = launch_all(c, n, n_logits, e);
    const int error = d->capture_end(c->gpu.stream, &graph);
    good = good && qn_driver_ok(d, error, "capturing a graph", e) &&
           qn_driver_ok(d, d->graph_make(out, graph, 0), "making a graph", e);
    if (graph) d->graph_destroy(graph);
    return good;
}

static bool launch_pass(qn_cuda *c, int n, int n_logits, qn_err *e)
{
    const qn_driver *d = &c->gpu.d;
    const bool graph = n <= QN_GRAPHS && n_logits == n; /* it comes again with other rows */
    c->n_single = graph ? n : qn_attention_singles(c, n);
    c->narrowed = 0;
    if (!graph) return launch_all(c, n, n_logits, e);
    if (!c->graphs[n] && !capture(c, n, n_logits, &c->graphs[n], e)) return false;
    return qn_driver_ok(d, d->graph_launch(c->graphs[n], c->gpu.stream), "starting a graph", e);
}

/* ---- times: the first kernel of a step stamps when it begins, in every pass, so that a timed one is the same pass with one
 * small kernel behind it. What a step took lies between its stamp and that of the next. */

bool qn_program_run(qn_cuda *c, int n, int n_logits, bool timed, qn_err *e)
{
    const qn_driver *d = &c->gpu.d;
    const u64 end = c->stamps_at + 8 * (u64)c->plan->n;
    if (!launch_pass(c, n, n_logits, e)) return false;
    return !timed || (qn_gpu_launch(&c->gpu, FN_end, (qn_grid){ 1, 1, 1, 0 }, &end, e) &&
                      qn_driver_ok(d, d->copy_down(c->stamps, c->stamps_at, 8 * ((size_t)c->plan->n + 1), c->gpu.stream),
                                   "fetching stamps", e));
}

void qn_program_times(const qn_cuda *c, int n, int n_logits, u64 *ns)
{
    u64 end = c->stamps[c->plan->n];
    for (int i = c->plan->n - 1; i >= 0; i--) {
        const u64 begin = c->stamps[i];
        ns[i] = 0;
        if (!own_rows(c, i, n, n_logits)) continue; /* its stamp is an old one */
        ns[i] = end > begin ? end - begin : 0;
        end = begin;
    }
}

void qn_program_close(qn_cuda *c)
{
    const qn_driver *d = &c->gpu.d;
    for (int i = 0; i <= QN_GRAPHS; i++)
        if (c->graphs[i]) d->exec_destroy(c->graphs[i]);
    if (c->stamps) d->host_free(c->stamps);
    qn_wide_close(c);
    qn_free(c->steps);
    qn_free(c->placed);
    qn_arena_close(&c->arena);
}
