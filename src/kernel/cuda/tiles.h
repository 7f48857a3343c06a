/* tiles.h - one linear on its own, by each of the kernels that can compute it. Plans launch through here, and the probe. */
#ifndef QN_CUDA_TILES_H
#define QN_CUDA_TILES_H

#include "kernel/cuda/abi.h"
#include "kernel/cuda/gpu.h"

/* Once for a device: more shared memory than kernels get unasked. */
bool qn_tiles_make(qn_gpu *g, qn_err *e);

/* Floats and one warp a row of the matrix; any kind, any number of rows of x. */
bool qn_gemv_launch(qn_gpu *g, const qn_clinear *a, qn_err *e);

/* n values as f16. */
bool qn_narrow_launch(qn_gpu *g, u64 to, u64 from, u64 n, qn_err *e);

/* Whether the tensor cores take a matrix. mma: of every device; x is f16. */
bool qn_tiles_take(const qn_wmat *w);
bool qn_mma_launch(qn_gpu *g, const qn_clinear *a, qn_err *e);

/* wgmma: of Hopper (has). input, matrix: how the copy engine finds f16 rows and the i-th matrix. launch: a over n rows; a->x, n
 * and split are filled here. */
enum { QN_TILES = 5 };
bool qn_wgmma_has(const qn_gpu *g);
bool qn_wgmma_input(qn_gpu *g, u64 at, u32 cols, u64 rows, qn_tmap map[QN_TILES], qn_err *e);
bool qn_wgmma_matrix(qn_gpu *g, qn_cgemm *a, int i, qn_err *e);
bool qn_wgmma_launch(qn_gpu *g, const qn_cgemm *a, const qn_tmap map[QN_TILES], int n, qn_err *e);

#endif
