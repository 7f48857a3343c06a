/* rival_blas.c - OpenBLAS's sgemm, by dlopen. Takes f32 products as they lie: plain matrices, and rows times a weight matrix. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "probe/rival.h"

/* The values of CBLAS's enumerations. */
enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

typedef void (*sgemm_fn)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                         int ldb, float beta, float *c, int ldc);

typedef struct qn_rival_library { void *handle; sgemm_fn sgemm; } qn_rival_library;

typedef struct job { sgemm_fn sgemm; qn_matmul m; } job;

static const char *needs(const qn_rival *r, qn_op op, const qn_args *a)
{
    (void)r;
    if (op == OP_linear) return a->linear.type != DT_f32 ? "f32 only" : a->linear.bias ? "no bias" : NULL;
    if (op != OP_matmul) return "matrix products only";
    return a->matmul.type != DT_f32 ? "f32 only" : a->matmul.biased ? "no bias" : NULL;
}

static void *prepare(const qn_rival *r, qn_op op, const qn_args *a, qn_err *e)
{
    job *j = qn_new(sizeof *j, e);
    if (!j) return NULL;
    j->sgemm = ((const qn_rival_library *)r->library)->sgemm;
    const qn_linear *l = &a->linear;
    if (op == OP_matmul) j->m = a->matmul;
    else
        j->m = (qn_matmul){ .n = l->n, .cols = l->rows, .k = l->cols, .batch = 1, .tb = true, .alpha = 1, .y = l->y, .a = l->x,
                            .b = l->w };
    return j;
}

static void run(void *p)
{
    const job *j = p;
    const qn_matmul *m = &j->m;
    const size_t a = (size_t)m->n * (size_t)m->k, b = (size_t)m->k * (size_t)m->cols, y = (size_t)m->n * (size_t)m->cols;
    for (size_t i = 0; i < (size_t)m->batch; i++)
        j->sgemm(ROW_MAJOR, m->ta ? TRANS : NO_TRANS, m->tb ? TRANS : NO_TRANS, m->n, m->cols, m->k, m->alpha,
                 (const float *)m->a + i * a, m->ta ? m->n : m->k, (const float *)m->b + i * b, m->tb ? m->k : m->cols, m->beta,
                 m->y + i * y, m->cols);
}

bool qn_rival_blas(qn_rivals *r, int threads, const char *version)
{
    void *handle = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    sgemm_fn sgemm = handle ? (sgemm_fn)dlsym(handle, "cblas_sgemm") : NULL;
    void (*set_threads)(int) = handle ? (void (*)(int))dlsym(handle, "openblas_set_num_threads") : NULL;
    r->blas = sgemm ? qn_new(sizeof *r->blas, NULL) : NULL;
    if (!r->blas) {
        if (handle) dlclose(handle);
        return false;
    }
    *r->blas = (qn_rival_library){ handle, sgemm };
    if (set_threads) set_threads(threads);
    qn_rival *v = &r->at[r->n++];
    *v = (qn_rival){ .name = "openblas sgemm", .needs = needs, .prepare = prepare, .run = run, .close = qn_free,
                     .library = r->blas, .type = DT_f32,
                     .linger_ms = 30 }; /* 2^26 cycles, unless built otherwise */
    snprintf(v->version, sizeof v->version, "%s", version);
    return true;
}

void qn_rival_blas_close(qn_rivals *r)
{
    if (r->blas) dlclose(r->blas->handle);
    qn_free(r->blas);
    r->blas = NULL;
}
