/* gpu.h - one device, opened: driver, context, stream, kernels, and memory that is given back all at once. */
#ifndef QN_CUDA_GPU_H
#define QN_CUDA_GPU_H

#include "base/mem.h"
#include "kernel/cuda/driver.h"

enum {
#define FN(name, fatbin) FN_##name,
#include "kernel/cuda/functions.def"
#undef FN
    N_FN
};

#define QN_GPU_BLOCKS 64  /* allocations of one device */
#define QN_GPU_MODULES 8

typedef struct qn_gpu {
    qn_driver d;
    int ordinal, device, n_sm, major, minor, version, smem; /* smem: most bytes a block may have */
    bool cooperative;
    char name[96];
    u64 memory;
    void *ctx, *stream, *modules[QN_GPU_MODULES], *fn[N_FN];
    bool retained;
    u64 blocks[QN_GPU_BLOCKS];
    int n_blocks, n_modules;
    u64 taken;              /* bytes of all blocks */
    u64 stamp;              /* where the next kernel writes the time at which it begins, and no other behind it; 0: nowhere */
} qn_gpu;

/* Opens device `ordinal` of the driver in g->d, which the caller has filled; on failure g can be closed. `kernels` false: looks
 * only, loads no code. */
bool qn_gpu_open(qn_gpu *g, int ordinal, bool kernels, qn_err *e);
void qn_gpu_close(qn_gpu *g);

/* Device memory that lives as long as the device is open. Says need and free in bytes when there is not enough. */
bool qn_gpu_take(qn_gpu *g, const char *what, u64 bytes, u64 *address, qn_err *e);
bool qn_gpu_free_bytes(qn_gpu *g, u64 *bytes, qn_err *e);

typedef struct qn_grid { unsigned x, y, threads, smem; } qn_grid;
bool qn_gpu_launch(qn_gpu *g, int fn, qn_grid grid, const void *args, qn_err *e);
/* The same with all blocks on the device at once. */
bool qn_gpu_launch_together(qn_gpu *g, int fn, qn_grid grid, const void *args, qn_err *e);
/* The same for kernels that know of clusters and wait for the one in front themselves (grid.cuh): `cluster` neighbours along x
 * are one cluster, and blocks take their places before the kernel in front has ended. */
bool qn_gpu_launch_early(qn_gpu *g, int fn, qn_grid grid, int cluster, const void *args, qn_err *e);
bool qn_gpu_wait(qn_gpu *g, qn_err *e);
/* The context belongs to the calling thread from now on. */
bool qn_gpu_enter(qn_gpu *g, qn_err *e);

#endif
