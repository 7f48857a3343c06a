/* rival_dnn.c - oneDNN's matmul, by dlopen: f32, bf16 and bytes. Versions 2 and 3 differ in how a product is described (a struct
 * that the caller holds, or a handle); everything else is the same. The bytes one multiplies plain bytes, no scales: the least
 * work that a product of bytes can be, so a generous baseline. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "probe/rival.h"

/* The values of its enumerations, and the sizes of version 2's structs (696 and 2800 bytes in 2.6) with room to spare. */
enum { ENGINE_CPU = 1, STREAM_DEFAULT = 1 };
enum { T_BF16 = 2, T_F32 = 3, T_S8 = 5 };
enum { ARG_SRC = 1, ARG_DST = 17, ARG_WEIGHTS = 33, ARG_BIAS = 41 };
#define DESC_BYTES 2048
#define OP_BYTES 8192
#define NDIMS 12

typedef struct exec_arg { int arg; void *memory; } exec_arg;
typedef struct desc { _Alignas(16) u8 bytes[DESC_BYTES]; void *handle; } desc; /* version 2: bytes; version 3: handle */

typedef struct qn_rival_dnn {
    void *lib, *omp, *engine, *stream;
    int (*engine_create)(void **, int, size_t);
    int (*stream_create)(void **, void *, unsigned);
    int (*stream_wait)(void *);
    int (*primitive_create)(void **, const void *);
    int (*primitive_execute)(const void *, void *, int, const exec_arg *);
    int (*memory_create)(void **, const void *, void *, void *);
    void (*memory_destroy)(void *);
    void (*primitive_destroy)(void *);
    void (*primitive_desc_destroy)(void *);
    void (*engine_destroy)(void *);
    void (*stream_destroy)(void *);
    /* version 2 */
    int (*desc_init)(void *, int, const i64 *, int, const i64 *);
    int (*matmul_init)(void *, const void *, const void *, const void *, const void *);
    int (*primitive_desc_create)(void **, const void *, const void *, void *, const void *);
    /* version 3 */
    int (*desc_create)(void **, int, const i64 *, int, const i64 *);
    void (*desc_destroy)(void *);
    int (*matmul_create)(void **, void *, const void *, const void *, const void *, const void *, const void *);
} dnn;

static bool load(dnn *d)
{
    const struct { const char *name; void *at; bool must; } rows[] = {
        { "dnnl_engine_create", &d->engine_create, true },   { "dnnl_stream_create", &d->stream_create, true },
        { "dnnl_stream_wait", &d->stream_wait, true },       { "dnnl_primitive_create", &d->primitive_create, true },
        { "dnnl_primitive_execute", &d->primitive_execute, true }, { "dnnl_memory_create", &d->memory_create, true },
        { "dnnl_memory_destroy", &d->memory_destroy, true }, { "dnnl_primitive_destroy", &d->primitive_destroy, true },
        { "dnnl_primitive_desc_destroy", &d->primitive_desc_destroy, true },
        { "dnnl_engine_destroy", &d->engine_destroy, true }, { "dnnl_stream_destroy", &d->stream_destroy, true },
        { "dnnl_memory_desc_init_by_strides", &d->desc_init, false }, { "dnnl_matmul_desc_init", &d->matmul_init, false },
        { "dnnl_primitive_desc_create", &d->primitive_desc_create, false },
        { "dnnl_memory_desc_create_with_strides", &d->desc_create, false },
        { "dnnl_memory_desc_destroy", &d->desc_destroy, false },
        { "dnnl_matmul_primitive_desc_create", &d->matmul_create, false },
    };
    for (size_t i = 0; i < QN_COUNT(rows); i++) {
        void *sym = dlsym(d->lib, rows[i].name);
        if (!sym && rows[i].must) return false;
        memcpy(rows[i].at, &sym, sizeof sym);
    }
    const bool two = d->desc_init && d->matmul_init && d->primitive_desc_create;
    return (two || (d->desc_create && d->desc_destroy && d->matmul_create)) &&
           d->engine_create(&d->engine, ENGINE_CPU, 0) == 0 && d->stream_create(&d->stream, d->engine, STREAM_DEFAULT) == 0;
}

/* ---- one product */

typedef struct job {
    const dnn *d;
    void *primitive, *memory[4]; /* src, weights, dst, bias */
    exec_arg args[4];
    int n_args;
    void *own;                  /* weights that only this product uses */
} job;

static bool describe(const dnn *d, desc *to, int type, i64 batch, i64 rows, i64 cols, bool transposed)
{
    const i64 dims[NDIMS] = { batch, rows, cols };
    const i64 strides[NDIMS] = { rows * cols, transposed ? 1 : cols, transposed ? rows : 1 };
    if (d->desc_init) return d->desc_init(to->bytes, 3, dims, type, strides) == 0;
    return d->desc_create(&to->handle, 3, dims, type, strides) == 0;
}

static const void *pointer(const dnn *d, const desc *m) { return d->desc_init ? (const void *)m->bytes : m->handle; }

static bool make_primitive(job *j, const desc m[4], bool biased)
{
    const dnn *d = j->d;
    const void *src = pointer(d, &m[0]), *weights = pointer(d, &m[1]), *dst = pointer(d, &m[2]);
    const void *bias = biased ? pointer(d, &m[3]) : NULL;
    void *pd = NULL;
    bool ok;
    if (d->desc_init) {
        _Alignas(16) u8 op[OP_BYTES] = { 0 };
        ok = d->matmul_init(op, src, weights, bias, dst) == 0 && d->primitive_desc_create(&pd, op, NULL, d->engine, NULL) == 0;
    } else {
        ok = d->matmul_create(&pd, d->engine, src, weights, bias, dst, NULL) == 0;
    }
    ok = ok && d->primitive_create(&j->primitive, pd) == 0;
    if (pd) d->primitive_desc_destroy(pd);
    return ok;
}

static bool add_memory(job *j, const desc *m, int arg, const void *data)
{
    void **at = &j->memory[j->n_args];
    if (j->d->memory_create(at, pointer(j->d, m), j->d->engine, (void *)(uintptr_t)data) != 0) return false;
    j->args[j->n_args++] = (exec_arg){ arg, *at };
    return true;
}

static void close_job(void *p)
{
    job *j = p;
    if (!j) return;
    for (int i = 0; i < j->n_args; i++) j->d->memory_destroy(j->memory[i]);
    if (j->primitive) j->d->primitive_destroy(j->primitive);
    qn_free(j->own);
    qn_free(j);
}

static void run(void *p)
{
    const job *j = p;
    j->d->primitive_execute(j->primitive, j->d->stream, j->n_args, j->args);
    j->d->stream_wait(j->d->stream);
}

/* What a case of ours is as a plain product. The weights of panels are stood for by plain ones of the same size. */
static bool as_matmul(qn_op op, const qn_args *a, job *j, qn_matmul *m, qn_err *e)
{
    const qn_linear *l = &a->linear;
    if (op == OP_matmul) {
        *m = a->matmul;
        return true;
    }
    *m = (qn_matmul){ .n = l->n, .cols = l->rows, .k = l->cols, .batch = 1, .tb = true, .alpha = 1 };
    if (op == OP_linear) {
        m->y = l->y, m->a = l->x, m->b = l->w;
        return true;
    }
    const size_t values = (size_t)m->k * (size_t)m->cols, size = op == OP_blinear ? 2 : 1;
    j->own = qn_new(values * size, e);
    if (!j->own) return false;
    memset(j->own, 0x3C, values * size); /* 0.0115 in bf16, 60 as a byte: zeros could be faster than real data */
    m->b = j->own;
    m->a = op == OP_blinear ? (const void *)a->blinear.x : (const void *)a->qlinear.x.q;
    m->y = op == OP_blinear ? a->blinear.y : a->qlinear.y;
    return true;
}

static void *prepare(const qn_rival *r, qn_op op, const qn_args *a, qn_err *e)
{
    const dnn *d = r->library;
    const int type = r->type == DT_f32 ? T_F32 : r->type == DT_bf16 ? T_BF16 : T_S8;
    job *j = qn_new(sizeof *j, e);
    qn_matmul m;
    desc descs[4] = { 0 };
    if (!j) return NULL;
    j->d = d;
    bool ok = as_matmul(op, a, j, &m, e);
    ok = ok && describe(d, &descs[0], type, m.batch, m.n, m.k, m.ta) &&
         describe(d, &descs[1], type, m.batch, m.k, m.cols, m.tb) &&
         describe(d, &descs[2], T_F32, m.batch, m.n, m.cols, false) && describe(d, &descs[3], T_F32, 1, 1, m.cols, false);
    ok = ok && make_primitive(j, descs, m.biased) && add_memory(j, &descs[0], ARG_SRC, m.a) &&
         add_memory(j, &descs[1], ARG_WEIGHTS, m.b) && add_memory(j, &descs[2], ARG_DST, m.y) &&
         (!m.biased || add_memory(j, &descs[3], ARG_BIAS, m.bias));
    for (int i = 0; i < 4; i++)
        if (descs[i].handle) d->desc_destroy(descs[i].handle);
    if (ok) return j;
    close_job(j);
    if (e->code == QN_OK) qn_fail(e, QN_EUNSUPPORTED, "oneDNN refuses this product");
    return NULL;
}

static const char *needs(const qn_rival *r, qn_op op, const qn_args *a)
{
    if (op == OP_qlinear) return r->type == DT_q8_0 ? NULL : "bytes only";
    if (op == OP_blinear) return r->type == DT_bf16 ? NULL : "bf16 only";
    if (op != OP_matmul && op != OP_linear) return "matrix products only";
    if (qn_args_type(op, a) != r->type || r->type == DT_q8_0) return "another type";
    if (op == OP_linear) return a->linear.bias ? "no bias here" : r->type != DT_f32 ? "activations are f32" : NULL;
    return a->matmul.alpha != 1 || a->matmul.beta != 0 ? "alpha 1 and beta 0 only" : NULL;
}

bool qn_rival_dnn(qn_rivals *r, int threads, const char *version)
{
    static const struct { const char *name; int type; } rows[] = {
        { "onednn f32", DT_f32 }, { "onednn bf16", DT_bf16 }, { "onednn int8", DT_q8_0 } };
    static const char *const files[] = { "libdnnl.so.3", "libdnnl.so.2" };
    dnn *d = qn_new(sizeof *d, NULL);
    for (size_t i = 0; d && !d->lib && i < QN_COUNT(files); i++) d->lib = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    r->dnn = d;
    if (!d || !d->lib || !load(d)) {
        qn_rival_dnn_close(r);
        return false;
    }
    d->omp = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD); /* Debian's oneDNN takes its threads from there */
    void (*set_threads)(int) = d->omp ? (void (*)(int))dlsym(d->omp, "omp_set_num_threads") : NULL;
    if (set_threads) set_threads(threads);
    for (size_t i = 0; i < QN_COUNT(rows); i++) {
        qn_rival *v = &r->at[r->n++];
        *v = (qn_rival){ .name = rows[i].name, .needs = needs, .prepare = prepare, .run = run, .close = close_job, .library = d,
                         .type = rows[i].type, .linger_ms = 8 }; /* OpenMP's: 300,000 turns of a loop */
        snprintf(v->version, sizeof v->version, "oneDNN %.80s", version);
    }
    return true;
}

void qn_rival_dnn_close(qn_rivals *r)
{
    dnn *d = r->dnn;
    if (!d) return;
    if (d->stream) d->stream_destroy(d->stream);
    if (d->engine) d->engine_destroy(d->engine);
    if (d->omp) dlclose(d->omp);
    if (d->lib) dlclose(d->lib);
    qn_free(d);
    r->dnn = NULL;
}
