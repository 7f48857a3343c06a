/* device_contest.c - one linear on a GPU, by every kernel that takes it. The matrix lies in memory several times, one after the
 * other is multiplied, so that the second cache is of no help (cold); then the same one again and again (warm). Its rows repeat
 * after some: a matrix of any size is made in a moment, and every output can be compared. */
#include "probe/device_contest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/half.h"
#include "base/mem.h"
#include "base/rng.h"
#include "kernel/cuda/fatbin.h"
#include "kernel/cuda/tiles.h"
#include "kernel/cuda/weights.h"
#include "kernel/cuda/where.h"
#include "probe/rival_cublas.h"

#define LIBRARY "libcuda.so.1"
#define DISTINCT 61                   /* rows of the matrix until they repeat */
#define COLD_BYTES ((u64)512 << 20)   /* many times the second cache */
#define WORKSPACE ((size_t)32 << 20)
#define MOST_SAMPLES 512
#define FEW 64                        /* rows of x above which one warp a row of the matrix takes no part */

enum { BY_gemv, BY_mma, BY_wgmma, BY_cublas, BY_lt, N_WAYS };

struct qn_device_fair {
    qn_gpu gpu;
    qn_cublas *cublas;
    const qn_rivals *rivals;
    void *begin, *end;                /* events */
    u64 workspace;
};

typedef struct linear {               /* a shape's data on the device */
    qn_device_fair *f;
    qn_dtype type;
    int rows, cols, n, copies, times; /* times: products of a sample */
    qn_clinear a;                     /* x: floats */
    qn_cgemm *g;                      /* [times] of each copy; NULL: no wgmma */
    qn_tmap map[QN_TILES];
    u64 half_x, half_w;
    u8 *stored;                       /* [DISTINCT] rows as files hold them */
    float *x, *y;                     /* host: [n, cols], [n, rows] */
    double *samples[2 * N_WAYS];
    u64 blocks[8];
    int n_blocks;
} linear;

qn_device_fair *qn_device_fair_open(const char *word, qn_rivals *rivals, qn_err *e)
{
    qn_where w;
    *rivals = (qn_rivals){ 0 };
    if (!qn_where_parse(word, &w, e)) return NULL;
    if (qn_n_fatbins == 0) {
        qn_fail(e, QN_EUNSUPPORTED, "this build holds no CUDA kernels; `make CUDA=1` makes one that does");
        return NULL;
    }
    qn_device_fair *f = qn_new(sizeof *f, e);
    if (!f) return NULL;
    f->rivals = rivals;
    const bool ok = qn_driver_open(&f->gpu.d, LIBRARY, e) && qn_gpu_open(&f->gpu, w.ordinal, true,
                                                                         e) && qn_tiles_make(&f->gpu, e) &&
                    qn_gpu_take(&f->gpu, "a workspace", WORKSPACE, &f->workspace, e) &&
                    qn_driver_ok(&f->gpu.d, f->gpu.d.event_create(&f->begin, 0), "making an event", e) &&
                    qn_driver_ok(&f->gpu.d, f->gpu.d.event_create(&f->end, 0), "making an event", e);
    if (ok) return f->cublas = qn_cublas_open(rivals, f->gpu.stream, f->workspace, WORKSPACE), f;
    qn_device_fair_close(f);
    return NULL;
}

void qn_device_fair_close(qn_device_fair *f)
{
    if (!f) return;
    qn_cublas_close(f->cublas);
    if (f->begin) f->gpu.d.event_destroy(f->begin);
    if (f->end) f->gpu.d.event_destroy(f->end);
    qn_gpu_close(&f->gpu);
    qn_free(f);
}

/* ---- data */

static bool take(linear *l, u64 bytes, u64 *at, qn_err *e)
{
    const qn_driver *d = &l->f->gpu.d;
    if (!qn_driver_ok(d, d->mem_alloc(at, bytes), "taking device memory", e)) return false;
    l->blocks[l->n_blocks++] = *at;
    return true;
}

/* DISTINCT rows that lie at `at`, again and again until there are all of them, in every copy. */
static bool repeat(linear *l, u64 at, u64 row_bytes, const void *from, qn_err *e)
{
    const qn_driver *d = &l->f->gpu.d;
    const u64 all = (u64)l->copies * (u64)l->rows * row_bytes, one = (u64)l->rows * row_bytes;
    u64 have = (u64)qn_mini(DISTINCT, l->rows) * row_bytes;
    if (!qn_driver_ok(d, d->copy_up(at, from, have, l->f->gpu.stream), "copying weights", e)) return false;
    while (have < all) {
        const u64 whole = have < one ? have / (DISTINCT * row_bytes) * (DISTINCT * row_bytes) : have, left = (have < one ?
                                                                                                              one : all) - have;
        const u64 now = whole < left ? whole : left;
        if (!qn_driver_ok(d, d->copy_within(at + have, at, now, l->f->gpu.stream), "copying weights", e)) return false;
        have += now;
    }
    return qn_gpu_wait(&l->f->gpu, e);
}

static bool send_matrix(linear *l, qn_err *e)
{
    const size_t bytes = qn_dtype_bytes(l->type, (u64)l->cols), half_bytes = 2 * (size_t)l->cols;
    const qn_wmat *w = &l->a.w;
    u8 *packed = qn_new_array(DISTINCT, w->row_bytes, e);
    u16 *half = packed ? qn_new_array(DISTINCT, half_bytes, e) : NULL;
    float *row = half ? qn_new_array((size_t)l->cols, sizeof *row, e) : NULL;
    for (int r = 0; row && r < DISTINCT; r++) {
        qn_wmat_pack_row(w, l->type, l->stored + (size_t)r * bytes, packed + (size_t)r * w->row_bytes);
        qn_dtypes[l->type].decode(l->stored + (size_t)r * bytes, row, (size_t)l->cols);
        for (int c = 0; c < l->cols; c++) half[(size_t)r * (size_t)l->cols + (size_t)c] = qn_f32_f16(row[c]);
    }
    const bool ok = row && repeat(l, w->at, w->row_bytes, packed, e) && repeat(l, l->half_w, half_bytes, half, e);
    qn_free(packed);
    qn_free(half);
    qn_free(row);
    return ok;
}

static bool make_data(linear *l, u64 seed, qn_err *e)
{
    const size_t bytes = qn_dtype_bytes(l->type, (u64)l->cols), n_x = (size_t)l->n * (size_t)l->cols;
    float *row = qn_new_array((size_t)l->cols, sizeof *row, e);
    u64 k = 0;
    l->stored = row ? qn_new_array(DISTINCT, bytes, e) : NULL;
    l->x = l->stored ? qn_new_array(n_x, sizeof *l->x, e) : NULL;
    l->y = l->x ? qn_new_array((size_t)l->n * (size_t)l->rows, sizeof *l->y, e) : NULL;
    for (int r = 0; l->y && r < DISTINCT; r++) {
        for (int c = 0; c < l->cols; c++) row[c] = 0.04f * ((float)(qn_rng_at(seed, k++) >> 40) / (float)(1 << 24) - 0.5f);
        qn_dtypes[l->type].encode(row, l->stored + (size_t)r * bytes, (size_t)l->cols);
    }
    for (size_t i = 0; l->y && i < n_x; i++) l->x[i] = 2 * ((float)(qn_rng_at(seed, k++) >> 40) / (float)(1 << 24) - 0.5f);
    qn_free(row);
    return l->y != NULL;
}

/* What the copy engine wants to know, for wgmma. */
static bool describe(linear *l, qn_err *e)
{
    qn_gpu *g = &l->f->gpu;
    const u32 end = (l->a.w.rows + 2 * QN_GEMM_HALF - 1) / (2 * QN_GEMM_HALF);
    l->g = qn_new_array((size_t)l->times, sizeof *l->g, e);
    for (int k = 0; l->g && k < l->times; k++) {
        qn_cmat *m = l->g[k].m;
        m[0] = (qn_cmat){ .y = l->a.y, .w = l->a.w, .end = end };
        m[1].end = m[2].end = end;
        m[0].w.at += (u64)(k % l->copies) * (u64)l->rows * l->a.w.row_bytes;
        if (!qn_wgmma_matrix(g, &l->g[k], 0, e)) return false;
    }
    return l->g && qn_wgmma_input(g, l->half_x, (u32)l->cols, (u64)l->n, l->map, e);
}

static bool open_linear(linear *l, const qn_shape *s, u64 seed, qn_err *e)
{
    qn_gpu *g = &l->f->gpu;
    const qn_linear *a = &s->args.linear;
    l->type = a->type, l->rows = a->rows, l->cols = a->cols, l->n = a->n;
    l->a.w = qn_wmat_of(a->type, a->rows, a->cols);
    l->a.n = a->n;
    const u64 one = (u64)l->rows * l->a.w.row_bytes, half = 2 * (u64)l->rows * (u64)l->cols;
    l->copies = (int)(COLD_BYTES / one) + 1;
    l->times = qn_maxi(2, qn_mini(l->copies, 32));
    if (!make_data(l, seed, e)) return false;
    if (!take(l, (u64)l->copies * one + l->a.w.row_bytes, &l->a.w.at, e) || !take(l, (u64)l->copies * half, &l->half_w, e) ||
        !take(l, 4 * (u64)l->n * (u64)l->cols, &l->a.x, e) || !take(l, 2 * (u64)l->n * (u64)l->cols, &l->half_x, e) ||
        !take(l, 4 * (u64)l->n * (u64)l->rows, &l->a.y, e) || !send_matrix(l, e)) return false;
    if (!qn_driver_ok(&g->d, g->d.copy_up(l->a.x, l->x, 4 * (u64)l->n * (u64)l->cols, g->stream), "copying rows", e) ||
        !qn_narrow_launch(g, l->half_x, l->a.x, (u64)l->n * (u64)l->cols, e) || !qn_gpu_wait(g, e)) return false;
    for (int i = 0; i < 2 * N_WAYS; i++)
        if (!(l->samples[i] = qn_new_array(MOST_SAMPLES, sizeof(double), e))) return false;
    return !qn_wgmma_has(g) || !qn_tiles_take(&l->a.w) || describe(l, e);
}

static void close_linear(linear *l)
{
    l->f->gpu.d.stream_wait(l->f->gpu.stream);
    for (int i = 0; i < l->n_blocks; i++) l->f->gpu.d.mem_free(l->blocks[i]);
    for (int i = 0; i < 2 * N_WAYS; i++) qn_free(l->samples[i]);
    qn_free(l->g);
    qn_free(l->stored);
    qn_free(l->x);
    qn_free(l->y);
}

/* ---- one product with copy k of the matrix */

static bool run(linear *l, int way, int k, qn_err *e)
{
    qn_gpu *g = &l->f->gpu;
    qn_clinear a = l->a;
    a.w.at += (u64)k * (u64)l->rows * a.w.row_bytes;
    const qn_cublas_job job = { l->half_w + 2 * (u64)k * (u64)l->rows * (u64)l->cols, l->half_x, l->a.y, l->rows, l->cols,
                                l->n };
    if (way == BY_gemv) return qn_gemv_launch(g, &a, e);
    if (way >= BY_cublas) return qn_cublas_run(l->f->cublas, way == BY_lt ? QN_CUBLAS_LT : QN_CUBLAS, &job, e);
    a.x = l->half_x;
    if (way == BY_mma) return qn_mma_launch(g, &a, e);
    return qn_wgmma_launch(g, &l->g[k], l->map, l->n, e);
}

/* ---- right */

/* f16 activations and weights, float sums: a product is off by 2^-11 of itself each, and sums of some thousand by less. */
#define BOUND (4.0 / 2048)

static void judge(const linear *l, qn_contender *k)
{
    const size_t bytes = qn_dtype_bytes(l->type, (u64)l->cols);
    float *w = qn_new_array((size_t)l->cols, sizeof *w, NULL);
    double off2 = 0, sum2 = 0;
    k->checked = k->right = w != NULL;
    for (int r = 0; w && r < DISTINCT && r < l->rows; r++) {
        qn_dtypes[l->type].decode(l->stored + (size_t)r * bytes, w, (size_t)l->cols);
        for (int t = r % qn_mini(l->n, 7); t < l->n; t += 1 + l->n / 3) {
            double want = 0, most = 0;
            for (int c = 0; c < l->cols; c++) {
                const double p = (double)w[c] * (double)l->x[(size_t)t * (size_t)l->cols + (size_t)c];
                want += p;
                most += fabs(p);
            }
            for (int row = r; row < l->rows; row += DISTINCT * (1 + l->rows / DISTINCT / 4)) {
                const double off = fabs((double)l->y[(size_t)t * (size_t)l->rows + (size_t)row] - want);
                off2 += off * off;
                sum2 += want * want;
                k->off.max_abs = fmax(k->off.max_abs, off);
                k->off.max_rel = fmax(k->off.max_rel, off / fmax(fabs(want), 1e-30));
                k->off.worst = fmax(k->off.worst, off / (BOUND * most));
                if (!(off <= BOUND * most)) k->right = false;
            }
        }
    }
    k->off.nmse = sum2 > 0 ? off2 / sum2 : 0;
    if (!k->right) snprintf(k->why, sizeof k->why, "off by %.3g of what may be", k->off.worst);
    qn_free(w);
}

static bool check(linear *l, int way, qn_contender *k, qn_err *e)
{
    const qn_driver *d = &l->f->gpu.d;
    const size_t bytes = 4 * (size_t)l->n * (size_t)l->rows;
    if (!qn_driver_ok(d, d->fill(l->a.y, 0xFF, bytes, l->f->gpu.stream), "clearing memory", e) ||
        !run(l, way, qn_mini(l->copies, l->times) - 1, e) ||
        !qn_driver_ok(d, d->copy_down(l->y, l->a.y, bytes, l->f->gpu.stream), "fetching results", e) ||
        !qn_gpu_wait(&l->f->gpu, e)) return false;
    judge(l, k); /* what was not written is NaN, and no bound holds for it */
    return true;
}

/* ---- fast */

/* All copies once (cold), or the first as often (warm): ns a product. */
static bool sample(linear *l, int way, bool cold, double *ns, qn_err *e)
{
    const qn_driver *d = &l->f->gpu.d;
    float ms = 0;
    if (!qn_driver_ok(d, d->event_record(l->f->begin, l->f->gpu.stream), "recording an event", e)) return false;
    for (int i = 0; i < l->times; i++)
        if (!run(l, way, cold ? i % l->copies : 0, e)) return false;
    if (!qn_driver_ok(d, d->event_record(l->f->end, l->f->gpu.stream), "recording an event", e) || !qn_gpu_wait(&l->f->gpu,
                                                                                                                e) ||
        !qn_driver_ok(d, d->event_ms(&ms, l->f->begin, l->f->end), "reading an event", e)) return false;
    *ns = (double)ms * 1e6 / l->times;
    return true;
}

static bool time_all(linear *l, const int *ways, qn_contest *c, const qn_contest_opts *o, qn_err *e)
{
    const u64 end = qn_now_ns() + (u64)((o->seconds > 0 ? o->seconds : 1) * 1e9);
    size_t n = 0;
    double unused;
    for (int i = 0; i < c->n; i++) /* clocks rise, code arrives */
        if (c->at[i].right && !sample(l, ways[i], true, &unused, e)) return false;
    for (; n < MOST_SAMPLES && (n < 5 || qn_now_ns() < end); n++) {
        if (o->progress && !o->progress(o->user, c->text, 0.5)) return qn_fail(e, QN_ECANCELLED, "cancelled");
        for (int i = 0; i < c->n; i++)
            for (int cold = 0; cold < 2; cold++)
                if (c->at[i].right && !sample(l, ways[i], cold, &l->samples[2 * i + cold][n], e)) return false;
    }
    for (int i = 0; i < c->n; i++) {
        if (!c->at[i].right) continue;
        qn_stats_of(l->samples[2 * i], n, &c->at[i].warm);
        qn_stats_of(l->samples[2 * i + 1], n, &c->at[i].cold);
    }
    return true;
}

/* ---- all of it */

static const char *misses(const linear *l, int way)
{
    if (way == BY_gemv) return l->n > FEW ? "for few rows" : NULL;
    if (way == BY_mma || way == BY_wgmma)
        return !qn_tiles_take(&l->a.w) ? "no f32 weights" : way == BY_wgmma && !qn_wgmma_has(&l->f->gpu) ? "Hopper only" : NULL;
    return NULL;
}

static void list(const linear *l, qn_contest *c, int *ways)
{
    static const char *const names[] = { "linear_cuda_rows", "linear_cuda_mma", "linear_cuda_wgmma" };
    const qn_rivals *r = l->f->rivals;
    for (int way = 0; way <= BY_wgmma; way++) {
        ways[c->n] = way;
        c->at[c->n++] = (qn_contender){ .name = names[way], .misses = misses(l, way) };
    }
    for (int i = 0; l->f->cublas && i < r->n; i++) {
        ways[c->n] = r->at[i].type == QN_CUBLAS_LT ? BY_lt : BY_cublas;
        c->at[c->n++] = (qn_contender){ .name = r->at[i].name, .rival = &r->at[i] };
    }
    const bool wide = !c->at[BY_wgmma].misses, tensor = !c->at[BY_mma].misses;
    c->chosen = l->n == 1 ? BY_gemv : wide ? BY_wgmma : tensor && l->n > 8 ? BY_mma : BY_gemv;
}

static bool hold(linear *l, qn_contest *c, const qn_contest_opts *o, qn_err *e)
{
    int ways[N_WAYS];
    list(l, c, ways);
    for (int i = 0; i < c->n; i++) {
        const qn_cublas_job job = { .rows = l->rows, .cols = l->cols, .n = l->n };
        if (c->at[i].misses) continue;
        if (c->at[i].rival && !qn_cublas_prepare(l->f->cublas, ways[i] == BY_lt ? QN_CUBLAS_LT : QN_CUBLAS, &job, e)) {
            c->at[i].misses = "it refuses this shape";
            *e = (qn_err){ 0 };
        } else if (!check(l, ways[i], &c->at[i], e)) {
            return false;
        }
    }
    return time_all(l, ways, c, o, e);
}

bool qn_device_contest(qn_device_fair *f, const qn_shape *s, const qn_contest_opts *o, qn_contest *c, qn_err *e)
{
    linear l = { .f = f };
    *c = (qn_contest){ .shape = *s, .by_cold = true, .best = -1, .next = -1, .chosen = -1 };
    qn_shape_print(s, true, c->text);
    if (s->op != OP_linear || !qn_dtypes[s->args.linear.type].encode)
        return qn_fail(e, QN_EUSAGE, "%s: on a device the probe takes linears of types that can be written", c->text);
    if (!qn_case_fits(s)) return qn_fail(e, QN_EUSAGE, "%s: " QN_CASE_MISFIT, c->text);
    c->cost = qn_ops[s->op].cost(&s->args, 0);
    c->at = qn_new_array(N_WAYS, sizeof *c->at, e);
    const bool ok = c->at && open_linear(&l, s, o->seed ? o->seed : 1, e) && hold(&l, c, o, e);
    close_linear(&l);
    if (ok) qn_contest_rank(c);
    return ok;
}
