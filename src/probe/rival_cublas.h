/* rival_cublas.h - cuBLAS and cuBLASLt, found at run time, on the device that is open: f16 matrices, float sums and results. */
#ifndef QN_RIVAL_CUBLAS_H
#define QN_RIVAL_CUBLAS_H

#include "probe/rival.h"

enum { QN_CUBLAS, QN_CUBLAS_LT, QN_CUBLAS_KINDS };

typedef struct qn_cublas qn_cublas;

/* Fills r: who is there, and one sentence for who is not. The device's context is the calling thread's. NULL: none is there. */
qn_cublas *qn_cublas_open(qn_rivals *r, void *stream, u64 workspace, size_t workspace_bytes);
void qn_cublas_close(qn_cublas *c);

typedef struct qn_cublas_job { u64 w, x, y; int rows, cols, n; } qn_cublas_job; /* y[n, rows] = x[n, cols] * w[rows, cols] */
bool qn_cublas_prepare(qn_cublas *c, int which, const qn_cublas_job *j, qn_err *e); /* once for each shape */
bool qn_cublas_run(qn_cublas *c, int which, const qn_cublas_job *j, qn_err *e);

#endif
