/* rival_cublas.c - NVIDIA's own matrix products, by dlopen: cublasGemmEx, and cublasLtMatmul with the first of its proposals.
 * Their interfaces are declared here by hand. A row-major y = x * w^T is to them the column-major y^T = w * x^T. */
#include "probe/rival_cublas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* The values of their enumerations. */
enum { OP_N = 0, OP_T = 1, R_32F = 0, R_16F = 2, COMPUTE_32F = 68, ALGO_DEFAULT = -1 };
enum { DESC_TRANSA = 3, PREF_WORKSPACE = 1 };

typedef struct lt_choice { u64 algo[8]; size_t workspace; int state; float waves; int reserved[4]; } lt_choice;

struct qn_cublas {
    void *blas_lib, *lt_lib, *blas, *lt, *stream;
    void *workspace;
    size_t workspace_bytes;
    int (*create)(void **h), (*destroy)(void *h), (*set_stream)(void *h, void *stream), (*version)(void *h, int *v);
    int (*gemm)(void *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int at, int lda,
                const void *b, int bt,
                int ldb, const void *beta, void *c, int ct, int ldc, int compute, int algo);
    int (*lt_create)(void **h), (*lt_destroy)(void *h);
    size_t (*lt_version)(void);
    int (*desc_create)(void **d, int compute, int scale), (*desc_set)(void *d, int what, const void *p,
                                                                      size_t n), (*desc_destroy)(void *d);
    int (*layout_create)(void **l, int type, u64 rows, u64 cols, i64 ld), (*layout_destroy)(void *l);
    int (*pref_create)(void **p), (*pref_set)(void *p, int what, const void *v, size_t n), (*pref_destroy)(void *p);
    int (*heuristic)(void *h, void *d, void *a, void *b, void *c, void *y, void *pref, int want, lt_choice *out, int *n);
    int (*matmul)(void *h, void *d, const void *alpha, const void *a, void *la, const void *b, void *lb, const void *beta,
                  const void *c,
                  void *lc, void *y, void *ly, const u64 *algo, void *workspace, size_t bytes, void *stream);
    void *desc, *la, *lb, *lc;  /* of the shape at hand */
    lt_choice choice;
};

/* dlsym hands out object pointers; the bytes are copied, as in kernel/cuda/driver.c. */
static bool find(void *lib, const char *symbol, void *out)
{
    void *p = dlsym(lib, symbol);
    if (p) memcpy(out, &p, sizeof p);
    return p != NULL;
}

static void *open_first(const char *const names[], size_t n)
{
    void *lib = NULL;
    for (size_t i = 0; i < n && !lib; i++) lib = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
    return lib;
}

static bool open_blas(qn_cublas *c)
{
    static const char *const names[] = { "libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so" };
    c->blas_lib = open_first(names, QN_COUNT(names));
    return c->blas_lib && find(c->blas_lib, "cublasCreate_v2", &c->create) && find(c->blas_lib, "cublasDestroy_v2",
                                                                                   &c->destroy) &&
           find(c->blas_lib, "cublasSetStream_v2", &c->set_stream) && find(c->blas_lib, "cublasGetVersion_v2", &c->version) &&
           find(c->blas_lib, "cublasGemmEx", &c->gemm) && c->create(&c->blas) == 0 && c->set_stream(c->blas, c->stream) == 0;
}

static bool open_lt(qn_cublas *c)
{
    static const char *const names[] = { "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", "libcublasLt.so" };
    void *l = c->lt_lib = open_first(names, QN_COUNT(names));
    return l && find(l, "cublasLtCreate", &c->lt_create) && find(l, "cublasLtDestroy", &c->lt_destroy) &&
           find(l, "cublasLtGetVersion", &c->lt_version) && find(l, "cublasLtMatmulDescCreate", &c->desc_create) &&
           find(l, "cublasLtMatmulDescSetAttribute", &c->desc_set) && find(l, "cublasLtMatmulDescDestroy", &c->desc_destroy) &&
           find(l, "cublasLtMatrixLayoutCreate", &c->layout_create) && find(l, "cublasLtMatrixLayoutDestroy",
                                                                            &c->layout_destroy) &&
           find(l, "cublasLtMatmulPreferenceCreate", &c->pref_create) && find(l, "cublasLtMatmulPreferenceSetAttribute",
                                                                              &c->pref_set) &&
           find(l, "cublasLtMatmulPreferenceDestroy", &c->pref_destroy) && find(l, "cublasLtMatmulAlgoGetHeuristic",
                                                                                &c->heuristic) &&
           find(l, "cublasLtMatmul", &c->matmul) && c->lt_create(&c->lt) == 0;
}

static void add(qn_rivals *r, const char *name, int type, int version)
{
    qn_rival *v = &r->at[r->n++];
    *v = (qn_rival){ .name = name, .type = type };
    snprintf(v->version, sizeof v->version, "version %d, f16 matrices", version);
}

qn_cublas *qn_cublas_open(qn_rivals *r, void *stream, u64 workspace, size_t workspace_bytes)
{
    int version = 0;
    *r = (qn_rivals){ 0 };
    qn_cublas *c = qn_new(sizeof *c, NULL);
    if (!c) return NULL;
    c->stream = stream;
    c->workspace = (void *)(uintptr_t)workspace;
    c->workspace_bytes = workspace_bytes;
    if (open_blas(c)) add(r, "cublas gemm", QN_CUBLAS, c->version(c->blas, &version) == 0 ? version : 0);
    else snprintf(r->absent[0], sizeof r->absent[0], "cuBLAS (libcublas.so.13, .12 or .11) is not here: no baseline by it");
    if (open_lt(c)) add(r, "cublaslt matmul", QN_CUBLAS_LT, (int)c->lt_version());
    else snprintf(r->absent[1], sizeof r->absent[1], "cuBLASLt (libcublasLt.so.13, .12 or .11) is not here: no baseline by it");
    return c;
}

static void forget(qn_cublas *c)
{
    if (c->desc) c->desc_destroy(c->desc);
    if (c->la) c->layout_destroy(c->la);
    if (c->lb) c->layout_destroy(c->lb);
    if (c->lc) c->layout_destroy(c->lc);
    c->desc = c->la = c->lb = c->lc = NULL;
}

void qn_cublas_close(qn_cublas *c)
{
    if (!c) return;
    forget(c);
    if (c->lt) c->lt_destroy(c->lt);
    if (c->blas) c->destroy(c->blas);
    if (c->blas_lib) dlclose(c->blas_lib);
    if (c->lt_lib) dlclose(c->lt_lib);
    qn_free(c);
}

static bool ok(int status, const char *what, qn_err *e)
{
    return status == 0 || qn_fail(e, QN_EFAIL, "%s failed with status %d", what, status);
}

bool qn_cublas_prepare(qn_cublas *c, int which, const qn_cublas_job *j, qn_err *e)
{
    const int turned = OP_T;
    void *pref = NULL;
    int n = 0;
    if (which == QN_CUBLAS) return true;
    forget(c);
    const bool made = ok(c->desc_create(&c->desc, COMPUTE_32F, R_32F), "cublasLtMatmulDescCreate", e) &&
                      ok(c->desc_set(c->desc, DESC_TRANSA, &turned, sizeof turned), "cublasLtMatmulDescSetAttribute", e) &&
                      ok(c->layout_create(&c->la, R_16F, (u64)j->cols, (u64)j->rows, j->cols), "cublasLtMatrixLayoutCreate",
                         e) &&
                      ok(c->layout_create(&c->lb, R_16F, (u64)j->cols, (u64)j->n, j->cols), "cublasLtMatrixLayoutCreate", e) &&
                      ok(c->layout_create(&c->lc, R_32F, (u64)j->rows, (u64)j->n, j->rows), "cublasLtMatrixLayoutCreate", e) &&
                      ok(c->pref_create(&pref), "cublasLtMatmulPreferenceCreate", e) &&
                      ok(c->pref_set(pref, PREF_WORKSPACE, &c->workspace_bytes, sizeof c->workspace_bytes),
                         "cublasLtMatmulPreferenceSetAttribute", e) &&
                      ok(c->heuristic(c->lt, c->desc, c->la, c->lb, c->lc, c->lc, pref, 1, &c->choice, &n),
                         "cublasLtMatmulAlgoGetHeuristic", e);
    if (pref) c->pref_destroy(pref);
    return made && (n > 0 || qn_fail(e, QN_EFAIL, "cuBLASLt has no algorithm for this shape"));
}

bool qn_cublas_run(qn_cublas *c, int which, const qn_cublas_job *j, qn_err *e)
{
    const float one = 1, zero = 0;
    const void *w = (const void *)(uintptr_t)j->w, *x = (const void *)(uintptr_t)j->x;
    void *y = (void *)(uintptr_t)j->y;
    if (which == QN_CUBLAS)
        return ok(c->gemm(c->blas, OP_T, OP_N, j->rows, j->n, j->cols, &one, w, R_16F, j->cols, x, R_16F, j->cols, &zero, y,
                          R_32F,
                          j->rows, COMPUTE_32F, ALGO_DEFAULT), "cublasGemmEx", e);
    return ok(c->matmul(c->lt, c->desc, &one, w, c->la, x, c->lb, &zero, y, c->lc, y, c->lc, c->choice.algo, c->workspace,
                        c->workspace_bytes, c->stream), "cublasLtMatmul", e);
}
