/* weights.h - a matrix in the order in which the device reads it (abi.h): sizes, and the packing of rows on the host. */
#ifndef QN_CUDA_WEIGHTS_H
#define QN_CUDA_WEIGHTS_H

#include "format/dtype.h"
#include "kernel/cuda/abi.h"

/* The device kind of a stored type; types without one of their own become f16. */
int qn_wmat_kind(qn_dtype type);
bool qn_wmat_native(qn_dtype type);    /* false: decoded to f16 at load */
const char *qn_wmat_name(int kind);    /* "q4m" */

/* Shape and planes; `at` stays 0. */
qn_wmat qn_wmat_of(qn_dtype type, int rows, int cols);
static inline u64 qn_wmat_bytes(const qn_wmat *w) { return (u64)w->rows * w->row_bytes; }

/* Packs one stored row into out [row_bytes]. */
void qn_wmat_pack_row(const qn_wmat *w, qn_dtype type, const void *row, u8 *out);

#endif
