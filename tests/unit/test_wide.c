/* test_wide.c - passes of several rows as the host launches them for a Hopper device: every kernel that is started is done here in
 * plain loops, over memory of this process, so that the logits must be those of the CPU's plan whatever was merged with what.
 * Also looked at: which steps have a launch of their own, graphs that are captured once and run again, stamps that add up to the
 * pass, the best logits of each row, and what comes of it when any one call of the driver fails. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* cmocka wants these first */
#include <cmocka.h>

#include "base/rng.h"
#include "device_plan.h"
#include "device_row.h"
#include "engine/engine.h"
#include "fake_driver.h"
#include "kernel/cuda/program.h"

/* ---- kernels, each over its whole grid */

typedef struct start { int fn; qn_grid g; u64 stamp; union { qn_cargs plain; qn_cgemm gemm; qn_crotate rotate; qn_cangles angles;
                       qn_clist list; u64 end; } a; } start;

static struct {
    u64 clock;
    bool capturing;
    start graph[512];       /* the only one there is */
    int n_graph, n_captured, n_graph_runs, n_starts[N_FN];
    int n_calls, fails_at;  /* of the calls that can fail, which one does; 0: none */
    int n_taken;            /* pieces of memory that are not given back yet */
} device;

#define LOST 700 /* what the real driver says once a kernel went wrong: to every call from then on */

static int may(void) { return device.fails_at && ++device.n_calls >= device.fails_at ? LOST : 0; }

static float *floats(u64 at) { return (float *)(uintptr_t)at; }
static u16 *halves(u64 at) { return (u16 *)(uintptr_t)at; }
static const i32 *ints(u64 at) { return (const i32 *)(uintptr_t)at; }

static float weight(const qn_wmat *w, u32 r, u32 c)
{
    return row_weight(w->kind, w->high, w->scale, (const u8 *)(uintptr_t)w->at + (size_t)r * w->row_bytes, c);
}

static void do_embed(const qn_cembed *a, unsigned n)
{
    for (unsigned t = 0; t < n; t++)
        for (u32 c = 0; c < a->table.cols; c++)
            floats(a->y)[t * a->table.cols + c] = weight(&a->table, (u32)ints(a->tokens)[t], c) * a->scale;
}

static void do_norm(const qn_cnorm *a, unsigned n, bool half)
{
    const size_t d = (size_t)a->d;
    for (size_t t = 0; t < n; t++) {
        double ss = 0;
        for (size_t i = 0; i < d; i++) ss += (double)floats(a->x)[t * d + i] * (double)floats(a->x)[t * d + i];
        const float s = (float)(1 / sqrt(ss / (double)d + (double)a->eps));
        for (size_t i = 0; i < d; i++) {
            const float y = floats(a->x)[t * d + i] * s * floats(a->w)[i];
            if (half) halves(a->y)[t * d + i] = qn_f32_f16(y);
            else floats(a->y)[t * d + i] = y;
        }
    }
}

static void do_linear(const qn_clinear *a)
{
    for (size_t t = 0; t < (size_t)a->n; t++)
        for (u32 r = 0; r < a->w.rows; r++) {
            double sum = a->bias ? (double)floats(a->bias)[r] : 0;
            for (u32 c = 0; c < a->w.cols; c++) sum += (double)floats(a->x)[t * a->w.cols + c] * (double)weight(&a->w, r, c);
            floats(a->y)[t * a->w.rows + r] = (float)sum;
        }
}

static float product(const qn_cgemm *a, const qn_cmat *m, size_t t, u32 r)
{
    const u16 *x = halves(a->x.words[0]) + t * (a->x.words[1] / 2);
    double sum = m->bias ? (double)floats(m->bias)[r] : 0;
    for (u32 c = 0; c < m->w.cols; c++) sum += (double)qn_f16_f32(x[c]) * (double)weight(&m->w, r, c);
    return (float)sum;
}

static float gate_of(float x, bool gelu)
{
    return gelu ? 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x))) : x / (1 + expf(-x));
}

static void do_gemm(const qn_cgemm *a, const qn_grid *g)
{
    const bool gated = a->out >= QN_GEMM_silu;
    const int n_mats = gated ? 1 : a->m[1].end == a->m[0].end ? 1 : a->m[2].end == a->m[1].end ? 2 : 3;
    const u32 tiles = gated ? (a->m[0].w.rows + QN_GEMM_HALF - 1) / QN_GEMM_HALF : a->m[QN_GEMM_MATS - 1].end;
    assert_int_equal(g->y, tiles); /* every tile of every matrix has a block */
    assert_true(g->x / (unsigned)a->split * (unsigned)a->x.words[2] >= (unsigned)a->n);
    for (int k = 0; k < n_mats; k++) {
        const qn_cmat *m = &a->m[k];
        assert_int_equal(a->map[k].words[0], m->w.at);
        for (size_t t = 0; t < (size_t)a->n; t++)
            for (u32 r = 0; r < m->w.rows; r++) {
                const float p = product(a, m, t, r);
                const size_t to = t * m->w.rows + r;
                if (gated) halves(m->y)[to] = qn_f32_f16(gate_of(p, a->out == QN_GEMM_gelu) * product(a, &a->m[1], t, r));
                else floats(m->y)[to] = (a->out == QN_GEMM_add ? floats(m->y)[to] : 0) + p;
            }
    }
}

static void do_rope(const qn_crope *a, unsigned n)
{
    const size_t half = (size_t)a->d_rot / 2, d = (size_t)a->d_head;
    for (size_t t = 0; t < n; t++)
        for (size_t h = 0; h < (size_t)(a->n_head + a->n_kv); h++)
            for (size_t i = 0; i < half; i++) {
                float *x = h < (size_t)a->n_head ? floats(a->q) + (t * (size_t)a->n_head + h) * d
                                                 : floats(a->k) + (t * (size_t)a->n_kv + h - (size_t)a->n_head) * d;
                const float *angle = floats(a->table) + 2 * ((size_t)ints(a->pos)[t] * half + i);
                float *u = x + (a->neox ? i : 2 * i), *v = a->neox ? u + half : u + 1;
                const float p = *u, q = *v;
                *u = p * angle[0] - q * angle[1];
                *v = p * angle[1] + q * angle[0];
            }
}

/* part 0: keys, 1: values of an f16 cache */
static u16 *kv_row(const qn_crows *at, u64 cache, u64 stride, size_t values, size_t t, i32 pos, int part)
{
    const i32 page = ints(at->pages)[ints(at->first)[t] + pos / QN_CPAGE];
    return halves(cache + (u64)page * stride) + (size_t)(part * QN_CPAGE + pos % QN_CPAGE) * values;
}

static void do_store(const qn_cstore *a, unsigned n)
{
    const size_t values = (size_t)a->n_kv * (size_t)a->d_head;
    assert_int_equal(a->type, QN_KVT_f16);
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < values; i++) {
            const i32 pos = ints(a->at.pos)[t];
            kv_row(&a->at, a->cache, a->stride, values, t, pos, 0)[i] = qn_f32_f16(floats(a->k)[t * values + i]);
            kv_row(&a->at, a->cache, a->stride, values, t, pos, 1)[i] = qn_f32_f16(floats(a->v)[t * values + i]);
        }
}

static void attend_one(const qn_cattend *a, size_t t, size_t h)
{
    const size_t d = (size_t)a->d_head, values = (size_t)a->n_kv * d, kv = h / (size_t)(a->n_head / a->n_kv) * d;
    const size_t to = (t * (size_t)a->n_head + h) * d;
    const i32 last = ints(a->at.pos)[t], from = a->window && last >= a->window ? last - a->window + 1 : 0;
    double sum = 0, y[256] = { 0 };
    for (i32 p = from; p <= last; p++) { /* scores of these models are far from overflow */
        const u16 *k = kv_row(&a->at, a->cache, a->stride, values, t, p, 0) + kv;
        const u16 *v = kv_row(&a->at, a->cache, a->stride, values, t, p, 1) + kv;
        double s = 0;
        for (size_t i = 0; i < d; i++) s += (double)floats(a->q)[to + i] * (double)qn_f16_f32(k[i]);
        s = exp(s * (double)a->scale);
        sum += s;
        for (size_t i = 0; i < d; i++) y[i] += s * (double)qn_f16_f32(v[i]);
    }
    for (size_t i = 0; i < d; i++) {
        if (a->half) halves(a->y)[to + i] = qn_f32_f16((float)(y[i] / sum));
        else floats(a->y)[to + i] = (float)(y[i] / sum);
    }
}

static void do_attend(const qn_cattend *a)
{
    for (size_t t = 0; t < (size_t)a->n; t++)
        for (size_t h = 0; h < (size_t)a->n_head; h++) attend_one(a, t, h);
}

static void do_small(const start *s)
{
    const qn_cargs *a = &s->a.plain;
    switch (s->fn) {
    case FN_add: for (u32 i = 0; i < a->add.n; i++) floats(a->add.x)[i] += floats(a->add.y)[i]; break;
    case FN_glu:
        for (u32 i = 0; i < a->glu.n; i++)
            floats(a->glu.gate)[i] = gate_of(floats(a->glu.gate)[i], a->glu.gelu) * floats(a->glu.up)[i];
        break;
    case FN_narrow: for (u32 i = 0; i < a->add.n; i++) halves(a->add.x)[i] = qn_f32_f16(floats(a->add.y)[i]); break;
    default:
        for (size_t t = 0; t < s->g.x; t++)
            memcpy(floats(a->pick.y) + t * (size_t)a->pick.d, floats(a->pick.x) + (size_t)(ints(a->pick.rows)[t] * a->pick.d),
                   (size_t)a->pick.d * sizeof(float));
    }
}

static int larger_first(const void *x, const void *y)
{
    const u64 a = *(const u64 *)x, b = *(const u64 *)y;
    return a > b ? -1 : a < b;
}

/* As shortlist.cu says. */
static void do_list(const qn_clist *a, const qn_grid *g)
{
    for (size_t row = 0; row < g->y; row++)
        for (size_t b = 0; b < g->x; b++) {
            u64 keys[QN_LIST_KEYS] = { 0 };
            for (size_t i = 0; i < QN_LIST_KEYS && b * QN_LIST_KEYS + i < a->n; i++) {
                const size_t from = b * QN_LIST_KEYS + i;
                u32 bits;
                if (a->logits) memcpy(&bits, floats(a->logits) + row * a->n + from, 4);
                keys[i] = !a->logits ? ((const u64 *)(uintptr_t)a->keys)[row * a->pitch + from]
                                     : (u64)(bits >> 31 ? ~bits : bits | 0x80000000u) << 32 | (0xFFFFFFFFu - (u32)from);
            }
            qsort(keys, QN_LIST_KEYS, sizeof *keys, larger_first);
            memcpy((u64 *)(uintptr_t)a->out + row * a->out_pitch + b * QN_LIST_BEST, keys, QN_LIST_BEST * sizeof *keys);
        }
}

static void stamp(u64 at)
{
    device.clock += 100;
    if (at) *(u64 *)(uintptr_t)at = device.clock;
}

static void run(const start *s)
{
    const qn_cargs *a = &s->a.plain;
    device.n_starts[s->fn]++;
    if (s->fn != FN_end && s->fn != FN_shortlist) stamp(s->stamp);
    switch (s->fn) {
    case FN_angles: do_angles(&s->a.angles); return;
    case FN_end: stamp(s->a.end); return;
    case FN_shortlist: do_list(&s->a.list, &s->g); return;
    case FN_embed: do_embed(&a->embed, s->g.x); return;
    case FN_rmsnorm: case FN_norm_half: do_norm(&a->norm, s->g.x, s->fn == FN_norm_half); return;
    case FN_linear_r1: case FN_linear_r8: do_linear(&a->linear); return;
    case FN_rope: do_rope(&a->rope, s->g.x); return;
    case FN_store: do_store(&a->store, s->g.x); return;
    case FN_rotate: do_rope(&s->a.rotate.rope, s->g.x), do_store(&s->a.rotate.store, s->g.x); return;
    case FN_add: case FN_glu: case FN_narrow: case FN_pick: do_small(s); return;
    case FN_attend: case FN_attend_64: case FN_attend_128: case FN_attend_256: case FN_flash_64: case FN_flash_128:
        do_attend(&a->attend);
        return;
    default: break;
    }
    if (s->fn < FN_wg_f16_16 || s->fn > FN_wg_q6_256) fail_msg("kernel %d is not for Hopper", s->fn);
    do_gemm(&s->a.gemm, &s->g);
}

/* of the arguments, as the kernels have declared them */
static size_t bytes_of(int fn)
{
    static const size_t known[N_FN] = {
        [FN_embed] = sizeof(qn_cembed), [FN_rmsnorm] = sizeof(qn_cnorm), [FN_norm_half] = sizeof(qn_cnorm),
        [FN_linear_r1] = sizeof(qn_clinear), [FN_linear_r8] = sizeof(qn_clinear), [FN_rope] = sizeof(qn_crope),
        [FN_store] = sizeof(qn_cstore), [FN_add] = sizeof(qn_cadd), [FN_narrow] = sizeof(qn_cadd), [FN_glu] = sizeof(qn_cglu),
        [FN_pick] = sizeof(qn_cpick), [FN_rotate] = sizeof(qn_crotate), [FN_angles] = sizeof(qn_cangles),
        [FN_shortlist] = sizeof(qn_clist), [FN_end] = sizeof(u64), [FN_attend] = sizeof(qn_cattend),
        [FN_attend_64] = sizeof(qn_cattend), [FN_attend_128] = sizeof(qn_cattend), [FN_attend_256] = sizeof(qn_cattend),
        [FN_flash_64] = sizeof(qn_cattend), [FN_flash_128] = sizeof(qn_cattend),
    };
    return known[fn] ? known[fn] : sizeof(qn_cgemm);
}

static int begin(void *fn, qn_grid g, void **args)
{
    start s = { .fn = (int)(uintptr_t)fn - 1, .g = g };
    memcpy(&s.a, args[0], bytes_of(s.fn));
    if (s.fn != FN_end && s.fn != FN_angles && s.fn != FN_shortlist) s.stamp = *(const u64 *)args[1];
    if (may()) return LOST;
    if (!device.capturing) run(&s);
    else if (device.n_graph < (int)QN_COUNT(device.graph)) device.graph[device.n_graph++] = s;
    else return 1;
    return 0;
}

/* ---- the driver */

static int f_launch(void *fn, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned smem, void *stream,
                    void **args, void **extra)
{
    (void)gz, (void)by, (void)bz, (void)stream, (void)extra;
    return begin(fn, (qn_grid){ gx, gy, bx, smem }, args);
}

static int f_launch_ex(const qn_launch *how, void *fn, void **args, void **extra)
{
    (void)extra;
    for (unsigned i = 0; i < how->n_attrs; i++)
        if (how->attrs[i].id == CU_LAUNCH_CLUSTER) assert_int_equal(how->gx % how->attrs[i].value.cluster[0], 0);
    return begin(fn, (qn_grid){ how->gx, how->gy, how->bx, how->smem }, args);
}

/* What a kernel needs of a map: address, bytes from row to row, rows of a box. */
static int f_map(void *map, int type, u32 rank, void *at, const u64 *dims, const u64 *strides, const u32 *box, const u32 *steps,
                 int interleave, int swizzle, int promotion, int fill)
{
    (void)type, (void)rank, (void)dims, (void)steps, (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    u64 *words = map;
    words[0] = (u64)(uintptr_t)at, words[1] = strides[0], words[2] = box[1];
    return may() || strides[0] % 16 || words[0] % 16; /* as the real one: addresses and steps of 16 bytes */
}

static int f_capture(void *stream, int mode) { return (void)stream, (void)mode, device.capturing = true, device.n_graph = 0, 0; }
static int f_captured(void *stream, void **graph)
{
    return (void)stream, device.capturing = false, device.n_captured++, *graph = device.graph, may();
}
static int f_graph(void **exec, void *graph, unsigned long long flags) { return (void)flags, *exec = graph, may(); }
static int f_graph_run(void *exec, void *stream)
{
    (void)exec, (void)stream;
    if (may()) return LOST;
    device.n_graph_runs++;
    for (int i = 0; i < device.n_graph; i++) run(&device.graph[i]);
    return 0;
}

static int f_attr(int *v, int attribute, int d)
{
    (void)d;
    *v = attribute == CU_ATTR_SM ? 132 : attribute == CU_ATTR_SMEM_BLOCK ? 232448 : attribute == CU_ATTR_COOPERATIVE ? 0 : 9;
    return 0;
}

static int f_alloc(u64 *at, size_t n)
{
    if (may()) return CU_OUT_OF_MEMORY;
    device.n_taken++;
    *at = (u64)(uintptr_t)aligned_alloc(256, (n + 255) & ~(size_t)255); /* as a device's memory is */
    return *at ? 0 : CU_OUT_OF_MEMORY;
}
static int f_free(u64 at) { return free((void *)(uintptr_t)at), device.n_taken--, 0; }
static int f_host(void **p, size_t bytes, unsigned flags)
{
    (void)flags;
    if (may()) return CU_OUT_OF_MEMORY;
    device.n_taken++;
    *p = qn_new(bytes, NULL);
    return *p ? 0 : CU_OUT_OF_MEMORY;
}
static int f_host_free(void *p) { return qn_free(p), device.n_taken--, 0; }
static int f_up(u64 to, const void *from, size_t n, void *s) { return (void)s, memcpy((void *)(uintptr_t)to, from, n), may(); }
static int f_down(void *to, u64 from, size_t n, void *s) { return (void)s, memcpy(to, (const void *)(uintptr_t)from, n), may(); }
static int f_fill(u64 to, unsigned char v, size_t n, void *s) { return (void)s, memset((void *)(uintptr_t)to, v, n), may(); }
static int f_fset(void *fn, int attribute, int value) { return (void)fn, (void)attribute, value > 232448 || may(); }
static int f_wait(void *s) { return (void)s, may(); }
static int f_event(void **out, unsigned flags) { return (void)flags, *out = (void *)(uintptr_t)4096, may(); }
static int f_record(void *event, void *s) { return (void)event, (void)s, may(); }

static const qn_driver driver = {
    FAKE_DRIVER, .device_attr = f_attr, .mem_alloc = f_alloc, .mem_free = f_free, .host_alloc = f_host, .host_free = f_host_free,
    .copy_up = f_up, .copy_down = f_down, .fill = f_fill, .stream_wait = f_wait,
    .event_create = f_event, .event_record = f_record, .event_wait = f_wait, .function_set = f_fset,
    .launch = f_launch, .launch_ex = f_launch_ex, .tensor_map = f_map, .capture_begin = f_capture, .capture_end = f_captured,
    .graph_make = f_graph, .graph_launch = f_graph_run, .graph_destroy = f_done, .exec_destroy = f_done,
};

/* ---- a model on the CPU, then on the device of this file */

#define TOKENS 31 /* a prompt of 24, three at a time, one */

typedef struct work { qn_model *m; qn_engine *en; qn_session *s; qn_cuda *c; float *want, most; i32 tokens[TOKENS]; } work;

static bool open_device(work *w, qn_err *e)
{
    u8 *kv[2];
    const qn_engine *en = w->en;
    const qn_cuda_need need = { .scratch = en->scratch, .scratch_bytes = en->scratch_bytes, .logits = (const u8 *)en->b.logits,
                                .rows = (const u8 *)en->b.tokens, .tables = (const u8 *)en->tables[0], .tokens = en->b.tokens,
                                .pos = en->b.pos, .first = en->firsts, .narrow = en->b.narrow, .n_vocab = en->m->n_vocab,
                                .n_ctx = en->n_ctx, .n_rows = en->n_batch, .n_logits = en->n_logits };
    const qn_cuda_load l = { .plan = &w->en->plan, .pool = en->pool, .path = "test" };
    w->c = qn_new(sizeof *w->c, e);
    w->c->gpu.d = driver;
    if (!qn_gpu_open(&w->c->gpu, 0, false, e)) return false;
    for (int i = 0; i < N_FN; i++) w->c->gpu.fn[i] = (void *)(uintptr_t)(i + 1);
    return qn_cuda_reserve(w->c, &need, kv, e) && qn_cuda_load_plan(w->c, &l, e);
}

static bool keep(void *user, int pos, const float *logits)
{
    work *w = user;
    const size_t row = (size_t)w->m->n_vocab;
    memcpy(w->want + (size_t)pos * row, logits, row * sizeof *logits);
    for (size_t i = 0; i < row; i++) w->most = fmaxf(w->most, fabsf(logits[i]));
    return true;
}

static void open_work(work *w, const char *path)
{
    qn_err e = { 0 };
    qn_options o = QN_OPTIONS_DEFAULT;
    *w = (work){ 0 };
    memset(&device, 0, sizeof device);
    o.device = "cpu";
    o.no_repack = true;
    o.n_ctx = 64;
    o.n_batch = 64;
    o.isa = ISA_base; /* attention in floats, as here */
    o.threads = 1;
    w->m = qn_model_open(path, &e);
    w->en = w->m ? qn_engine_open(w->m, &o, &e) : NULL;
    if (!w->en) fail_msg("%s: %s", path, e.msg);
    w->s = qn_session_open(w->en, &e);
    w->want = qn_new_array((size_t)w->m->n_vocab * TOKENS, sizeof *w->want, &e);
    for (int t = 0; t < TOKENS; t++) w->tokens[t] = (i32)(qn_rng_at(5, (u64)t) % (u64)w->m->n_vocab);
    assert_true(qn_session_eval(w->s, w->tokens, TOKENS, keep, w, &e));
    qn_session_rewind(w->s, 0); /* sliding pages went back while it ran: take all anew, as one pass would */
    for (int t = 0; t < TOKENS; t++) assert_true(qn_session_push(w->s, w->tokens[t], &e));
    qn_timeline_prepare(w->s, TOKENS);
    assert_true(plan_for_device(w->en, &e));
}

static void close_work(work *w)
{
    qn_cuda_close(w->c);
    qn_free(w->want);
    qn_session_close(w->s);
    qn_engine_close(w->en);
    qn_model_close(w->m);
}

static void check_times(const work *w, const u64 *ns, int rows, u64 began)
{
    u64 sum = 0;
    for (int i = 0; i < w->en->plan.n; i++) {
        assert_int_equal(ns[i] == 0, rows > 1 && qn_wide_merged(w->c, i)); /* what has no launch of its own has no time */
        sum += ns[i];
    }
    assert_int_equal(sum, device.clock - began - 100); /* from the first stamp to the last */
}

static void check_best(const work *w, int row, const float *got)
{
    i32 ids[QN_CUDA_BEST];
    float values[QN_CUDA_BEST];
    const int n_vocab = w->m->n_vocab, n = qn_cuda_best(w->c, row, ids, values);
    assert_int_equal(n, qn_mini(QN_CUDA_BEST, n_vocab));
    for (int i = 0; i < n; i++) {
        int before = 0;
        assert_true(values[i] == got[ids[i]]);
        for (int k = 0; k < n_vocab; k++) before += got[k] > values[i] || (got[k] == values[i] && k < ids[i]);
        assert_int_equal(before, i);
    }
}

/* Rows from..from+n-1; the last n_ask of them ask. */
static void gather(work *w, int from, int n, int n_ask)
{
    qn_engine *en = w->en;
    for (int i = 0; i < n; i++) {
        en->b.tokens[i] = w->tokens[from + i];
        en->b.pos[i] = from + i;
        en->firsts[i] = 0;
        if (i >= n - n_ask) en->b.asking[i - (n - n_ask)] = i;
    }
}

static void pass(work *w, int from, int n, int n_ask)
{
    const qn_engine *en = w->en;
    qn_err e = { 0 };
    const size_t row = (size_t)w->m->n_vocab;
    u64 *ns = qn_new_array((size_t)en->plan.n, sizeof *ns, &e);
    gather(w, from, n, n_ask);
    qn_cuda_list_best(w->c, true);
    const u64 began = device.clock;
    if (!qn_cuda_run(w->c, n, n_ask, ns, &e)) fail_msg("%s", e.msg);
    assert_true(qn_cuda_fetch(w->c, &e));
    for (int k = 0; k < n_ask; k++) {
        const float *want = w->want + (size_t)(from + n - n_ask + k) * row, *got = en->b.logits + (size_t)k * row;
        float off = 0;
        for (size_t i = 0; i < row; i++) off = fmaxf(off, fabsf(want[i] - got[i]));
        if (!(off <= 5e-3f * w->most)) fail_msg("%s: row %d of %d: off by %g of %g", w->m->src->path, from + n - n_ask + k, n, (double)off, (double)w->most);
        check_best(w, k, got);
    }
    check_times(w, ns, n, began);
    qn_free(ns);
}

static void check_model(const char *path)
{
    work w;
    qn_err e = { 0 };
    open_work(&w, path);
    if (!open_device(&w, &e)) fail_msg("%s: %s", path, e.msg);
    assert_non_null(w.c->wide);
    pass(&w, 0, 24, 1);      /* a prompt */
    pass(&w, 24, 3, 3);      /* a graph */
    assert_int_equal(device.n_captured, 1);
    pass(&w, 27, 3, 3);      /* and once more */
    assert_int_equal(device.n_captured, 1);
    assert_int_equal(device.n_graph_runs, 2);
    pass(&w, 30, 1, 1);      /* one row: nothing is merged */
    close_work(&w);
}

static void in_type(const char *path, const char *type)
{
    char to[] = "/tmp/quern-wide-XXXXXX";
    qn_options o = QN_OPTIONS_DEFAULT;
    qn_err e = { 0 };
    const int fd = mkstemp(to);
    assert_true(fd >= 0);
    close(fd);
    if (!qn_quantize(path, to, type, &o, &e)) fail_msg("%s as %s: %s", path, type, e.msg);
    check_model(to);
    unlink(to);
}

static void launches_are_the_plan(void **state)
{
    (void)state;
    static const char *const names[] = { "llama", "llama3", "mistral", "qwen2", "qwen3", "gemma3" };
    for (size_t i = 0; i < QN_COUNT(names); i++) {
        char path[256];
        snprintf(path, sizeof path, "tests/data/models/%s/model.gguf", names[i]);
        in_type(path, "F16");
    }
    in_type("tests/data/models/llama/model.gguf", "Q8_0");
    in_type("tests/data/models/llama/model.gguf", "Q4_1");
    check_model("tests/data/models/llama/model.gguf"); /* F32: no linear is for the tensor cores */
    check_model("tests/data/heads64.gguf");             /* attention ends in f16 */
}

/* What a llama's layer is made of: norm, q k v, rotation and store, attention, output and addition, norm, gate up and product,
 * down and addition. */
static void eight_launches_a_layer(void **state)
{
    (void)state;
    work w;
    qn_err e = { 0 };
    open_work(&w, "tests/data/heads64.gguf");
    assert_true(open_device(&w, &e));
    const int layers = w.m->n_layer;
    memset(device.n_starts, 0, sizeof device.n_starts);
    pass(&w, 0, 24, 1);
    assert_int_equal(device.n_starts[FN_norm_half], 2 * layers); /* the last norm is of one row */
    assert_int_equal(device.n_starts[FN_rmsnorm], 1);
    assert_int_equal(device.n_starts[FN_rotate], layers);
    assert_int_equal(device.n_starts[FN_flash_64], layers);
    assert_int_equal(device.n_starts[FN_narrow] + device.n_starts[FN_add] + device.n_starts[FN_glu] + device.n_starts[FN_rope] +
                     device.n_starts[FN_store], 0);
    int gemms = 0;
    for (int f = FN_wg_f16_16; f <= FN_wg_q6_256; f++) gemms += device.n_starts[f];
    assert_int_equal(gemms, 4 * layers);
    close_work(&w);
}

/* A device that is lost at the k-th call, for every k: one line that says so, everything is given back. */
static void every_call_can_fail(void **state)
{
    (void)state;
    work w;
    int lost = 0, short_of = 0;
    open_work(&w, "tests/data/heads64.gguf");
    u64 *ns = qn_new_array((size_t)w.en->plan.n, sizeof *ns, NULL);
    for (int k = 1;; k++) {
        qn_err e = { 0 };
        memset(&device, 0, sizeof device);
        device.fails_at = k;
        bool good = open_device(&w, &e);
        if (good) qn_cuda_list_best(w.c, true);
        gather(&w, 0, 24, 1);
        good = good && qn_cuda_run(w.c, 24, 1, ns, &e);
        gather(&w, 24, 3, 3);
        good = good && qn_cuda_run(w.c, 3, 3, ns, &e) && qn_cuda_fetch(w.c, &e);
        const bool reached = device.n_calls >= k;
        device.fails_at = 0;
        qn_cuda_close(w.c);
        w.c = NULL;
        assert_int_equal(device.n_taken, 0);
        assert_int_equal(good, !reached);
        if (good) break;
        assert_true(e.msg[0] && !strchr(e.msg, '\n'));
        lost += strstr(e.msg, "the device is lost") != NULL;
        short_of += e.code == QN_ENOMEM && strstr(e.msg, "need ") && strstr(e.msg, " are free");
    }
    assert_true(lost > 0 && short_of > 3);
    qn_free(ns);
    close_work(&w);
}

/* Looked at before anything is taken. */
static void too_large_for_the_device(void **state)
{
    (void)state;
    work w;
    qn_err e = { 0 };
    u8 *kv[2];
    open_work(&w, "tests/data/heads64.gguf");
    const qn_cuda_need need = { .scratch = w.en->scratch, .scratch_bytes = w.en->scratch_bytes, .logits = (const u8 *)w.en->b.logits,
                                .weights = (u64)1 << 39, .kv_bytes = { (size_t)1 << 39, 0 } };
    w.c = qn_new(sizeof *w.c, &e);
    w.c->gpu.d = driver;
    assert_true(qn_gpu_open(&w.c->gpu, 0, false, &e));
    assert_false(qn_cuda_reserve(w.c, &need, kv, &e));
    assert_int_equal(e.code, QN_ENOMEM);
    assert_int_equal(device.n_taken, 0);
    assert_non_null(strstr(e.msg, "(weights 549755813888, KV 549755813888, scratch "));
    assert_non_null(strstr(e.msg, ", 1099511627776 are free; lower -c or use --device cpu"));
    close_work(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(launches_are_the_plan), cmocka_unit_test(eight_launches_a_layer),
                                        cmocka_unit_test(every_call_can_fail), cmocka_unit_test(too_large_for_the_device) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
