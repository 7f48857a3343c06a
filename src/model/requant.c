/* requant.c - every tensor of a source, re-encoded in parallel, into one GGUF file. The unit of work is a run of rows of about
 * a megabyte of floats: lanes take the next one from a counter, decode, encode and write it at its place, so memory stays at a
 * few megabytes per lane whatever the model's size, and one huge embedding keeps all lanes busy. Which type a tensor gets is
 * the caller's decision. */
#include "model/requant.h"

#include <stdatomic.h>
#include <string.h>

#include "base/half.h"
#include "base/pool.h"
#include "format/gguf.h"
#include "model/hf.h"

enum { UNIT_FLOATS = 1 << 18 };

typedef struct lane_state { float *x; u8 *y; qn_err e; } lane_state;

typedef struct work {
    const qn_source *s;
    const qn_dtype *types;
    u64 d_head;
    qn_gguf_writer w;
    u64 *first;              /* [n_tensors + 1] number of the first unit of each tensor */
    lane_state *lanes;
    qn_pool *pool;
    const qn_options *o;
    const char *what;
    _Atomic u64 next, done;  /* units; bytes written */
    _Atomic bool stop;
    bool cancelled;
} work;

static u64 rows_of(const qn_tensor *t) { return t->dims[1] * t->dims[2] * t->dims[3]; }

static u64 unit_rows(const qn_tensor *t)
{
    return t->dims[0] >= UNIT_FLOATS ? 1 : UNIT_FLOATS / t->dims[0];
}

/* The row of the source that becomes row r of the file. */
static const u8 *source_row(const work *k, const qn_tensor *t, u64 r, size_t row_bytes, bool permuted)
{
    return t->data + (size_t)(permuted ? qn_hf_row(r, k->d_head) : r) * row_bytes;
}

static bool is_permuted(const work *k, const qn_tensor *t)
{
    return k->d_head && qn_hf_is_permuted(t->name);
}

/* A vector of the permuted kind (a bias) has its "rows" along its only dimension. */
static bool write_bias(work *k, lane_state *me, size_t i)
{
    const qn_tensor *t = &k->s->tensors[i];
    const size_t n = (size_t)t->dims[0];
    qn_dtypes[t->type].decode(t->data, me->x, n);
    float *y = (float *)(void *)me->y;
    for (size_t r = 0; r < n; r++) y[r] = me->x[qn_hf_row(r, k->d_head)];
    return qn_gguf_write_tensor(&k->w, i, 0, y, n * sizeof *y, &me->e);
}

/* Block types cannot hold NaN or infinity: encoding them would hide that the model is broken. */
static bool check_finite(const qn_tensor *t, u64 row, const float *x, size_t n, qn_err *e)
{
    u32 bad = 0;
    for (size_t i = 0; i < n; i++) bad |= (qn_f32_bits(x[i]) & 0x7F800000u) == 0x7F800000u;
    return !bad || qn_fail(e, QN_EFORMAT, "tensor %s: row %llu has a weight that is not finite", t->name,
                           (unsigned long long)row);
}

static bool write_unit(work *k, lane_state *me, size_t i, u64 unit)
{
    const qn_tensor *t = &k->s->tensors[i];
    const qn_dtype_info *from = &qn_dtypes[t->type], *to = &qn_dtypes[k->types[i]];
    const size_t cols = (size_t)t->dims[0], row = qn_dtype_bytes(t->type, cols), row_out = qn_dtype_bytes(k->types[i], cols);
    const u64 begin = unit * unit_rows(t), rows = rows_of(t), end = begin + unit_rows(t) < rows ? begin + unit_rows(t) : rows;
    const bool permuted = is_permuted(k, t), same = from == to;
    if (permuted && t->n_dims == 1) return write_bias(k, me, i);
    if (same && !permuted)
        return qn_gguf_write_tensor(&k->w, i, begin * row, t->data + begin * row, (size_t)(end - begin) * row, &me->e);
    for (u64 r = begin; r < end; r++) {
        u8 *y = me->y + (size_t)(r - begin) * row_out;
        const u8 *x = source_row(k, t, r, row, permuted);
        if (same) {
            memcpy(y, x, row);
        } else {
            from->decode(x, me->x, cols);
            if (to->block > 1 && !check_finite(t, r, me->x, cols, &me->e)) return false;
            to->encode(me->x, y, cols);
        }
    }
    return qn_gguf_write_tensor(&k->w, i, begin * row_out, me->y, (size_t)(end - begin) * row_out, &me->e);
}

/* Each weight is read once: a model larger than memory must not push everything else out of it. */
static void drop_unit(const work *k, size_t i, u64 unit)
{
    const qn_tensor *t = &k->s->tensors[i];
    const u64 row = qn_dtype_bytes(t->type, (size_t)t->dims[0]), begin = unit * unit_rows(t) * row;
    const u64 end = begin + unit_rows(t) * row < t->bytes ? begin + unit_rows(t) * row : t->bytes;
    qn_map_drop(t->data + begin, (size_t)(end - begin));
}

/* The tensor that unit u belongs to. */
static size_t tensor_of(const work *k, u64 u)
{
    size_t lo = 0, hi = k->s->n_tensors;
    while (hi - lo > 1) {
        const size_t mid = (lo + hi) / 2;
        if (k->first[mid] <= u) lo = mid;
        else hi = mid;
    }
    return lo;
}

/* Only the caller's own lane speaks to the caller. */
static void report(work *k)
{
    if (!k->o->progress) return;
    const double share = (double)atomic_load(&k->done) / (double)k->first[k->s->n_tensors];
    if (k->o->progress(k->o->progress_user, k->what, share)) return;
    k->cancelled = true;
    atomic_store(&k->stop, true);
}

static void run_lane(const void *args, qn_lane lane)
{
    work *k = *(work *const *)args;
    lane_state *me = &k->lanes[lane.i];
    const u64 n = k->first[k->s->n_tensors];
    while (!atomic_load(&k->stop)) {
        const u64 u = atomic_fetch_add(&k->next, 1);
        if (u >= n) break;
        const size_t i = tensor_of(k, u);
        if (!write_unit(k, me, i, u - k->first[i])) atomic_store(&k->stop, true);
        drop_unit(k, i, u - k->first[i]);
        atomic_fetch_add(&k->done, 1);
        if (lane.i == 0) report(k);
    }
}

static bool run_all(work *k, qn_err *e)
{
    qn_pool_run(k->pool, run_lane, &k);
    return qn_maps_whole(k->s->maps, k->s->n_maps, qn_path_tail(k->s->path), e);
}

/* ---- before and after ---- */

static bool check_types(const work *k, qn_err *e)
{
    for (size_t i = 0; i < k->s->n_tensors; i++) {
        const qn_tensor *t = &k->s->tensors[i];
        const qn_dtype_info *to = &qn_dtypes[k->types[i]];
        if (t->type != k->types[i] && !to->encode)
            return qn_fail(e, QN_EUNSUPPORTED, "tensor %s: %s can be read but not written", t->name, to->name);
        const u64 rows = t->n_dims == 1 ? t->dims[0] : rows_of(t);
        if (is_permuted(k, t) && rows % k->d_head)
            return qn_fail(e, QN_EFORMAT, "tensor %s: %llu rows are not a whole number of heads of %llu", t->name,
                           (unsigned long long)rows, (unsigned long long)k->d_head);
        if (is_permuted(k, t) && t->n_dims == 1 && k->types[i] != DT_f32)
            return qn_fail(e, QN_EUNSUPPORTED, "tensor %s: a vector is written as F32 only", t->name);
    }
    return true;
}

static bool prepare(work *k, qn_err *e)
{
    size_t floats = 0, bytes = 0;
    const qn_source *s = k->s;
    k->first = qn_new_array(s->n_tensors + 1, sizeof *k->first, e);
    if (!k->first) return false;
    for (size_t i = 0; i < s->n_tensors; i++) {
        const qn_tensor *t = &s->tensors[i];
        const u64 rows = unit_rows(t) < rows_of(t) ? unit_rows(t) : rows_of(t);
        const size_t out = (size_t)rows * qn_dtype_bytes(k->types[i], (size_t)t->dims[0]);
        k->first[i + 1] = k->first[i] + (rows_of(t) + unit_rows(t) - 1) / unit_rows(t);
        if (floats < t->dims[0]) floats = (size_t)t->dims[0];
        if (bytes < out) bytes = out;
    }
    k->pool = qn_pool_open(k->o->threads, e);
    if (!k->pool) return false;
    const int n = qn_pool_n(k->pool);
    k->lanes = qn_new_array((size_t)n, sizeof *k->lanes, e);
    for (int i = 0; k->lanes && i < n; i++) {
        k->lanes[i].x = qn_new_array(floats, sizeof *k->lanes[i].x, e);
        k->lanes[i].y = k->lanes[i].x ? qn_alloc(bytes, e) : NULL;
        if (!k->lanes[i].y) return false;
    }
    return k->lanes != NULL;
}

static bool collect(const work *k, qn_err *e)
{
    for (int i = 0; i < qn_pool_n(k->pool); i++) {
        if (!k->lanes[i].e.code) continue;
        *e = k->lanes[i].e;
        return false;
    }
    return !k->cancelled || qn_fail(e, QN_ECANCELLED, "%s: stopped", k->what);
}

static void clear(work *k)
{
    const int n = k->pool && k->lanes ? qn_pool_n(k->pool) : 0;
    for (int i = 0; i < n; i++) {
        qn_free(k->lanes[i].x);
        qn_free(k->lanes[i].y);
    }
    qn_free(k->lanes);
    qn_free(k->first);
    qn_pool_close(k->pool);
    qn_gguf_write_close(&k->w);
}

bool qn_requant(const char *path, const qn_source *s, const qn_dtype *types, u64 d_head, const char *what, const qn_options *o,
                qn_err *e)
{
    work k = { .s = s, .types = types, .d_head = d_head, .what = what, .o = o };
    const bool ok = check_types(&k, e) && prepare(&k, e) && qn_gguf_write_open(&k.w, path, s, types, e)
                    && run_all(&k, e) && collect(&k, e) && qn_gguf_write_commit(&k.w, e);
    clear(&k);
    return ok;
}
