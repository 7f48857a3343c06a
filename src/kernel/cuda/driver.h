/* driver.h - the CUDA driver as a table of pointers, opened at run time: the program has no link to it and starts without it.
 * Declared here by hand from the driver's published interface, so that building needs no CUDA either. */
#ifndef QN_CUDA_DRIVER_H
#define QN_CUDA_DRIVER_H

#include "base/err.h"

/* A launch with more to say than its grid, as the driver lays it out. */
typedef struct qn_launch_attr {
    int id;
    char pad[4];
    union { unsigned cluster[3]; int flag; char bytes[64]; } value;
} qn_launch_attr;

typedef struct qn_launch {
    unsigned gx, gy, gz, bx, by, bz, smem;
    void *stream;
    const qn_launch_attr *attrs;
    unsigned n_attrs;
} qn_launch;

typedef struct qn_driver {
#define CALL(name, symbol, params) int (*name) params;
#include "kernel/cuda/driver.def"
#undef CALL
    void *library;
} qn_driver;

/* Attributes of a device, errors and flags, by the driver's numbers. */
enum { CU_ATTR_SM = 16, CU_ATTR_MAJOR = 75, CU_ATTR_MINOR = 76, CU_ATTR_COOPERATIVE = 95, CU_ATTR_SMEM_BLOCK = 97,
       CU_ATTR_CLOCK_KHZ = 13, CU_ATTR_L2 = 38 };
enum { CU_FUNC_DYNAMIC_SMEM = 8 };
/* attributes of a launch: blocks of a cluster; starting before the kernel in front has ended */
enum { CU_LAUNCH_CLUSTER = 4, CU_LAUNCH_EARLY = 6 };
enum { CU_MAP_BYTES = 0, CU_MAP_F16 = 6, CU_MAP_SWIZZLE_128 = 3, CU_MAP_PROMOTE_256 = 3 };
enum { CU_OUT_OF_MEMORY = 2, CU_NO_DEVICE = 100, CU_NO_BINARY = 209, CU_INVALID_PTX = 218, CU_PTX_VERSION = 222 };
enum { CU_STREAM_NON_BLOCKING = 1, CU_CAPTURE_THREAD = 1, CU_EVENT_NO_TIMING = 2 };

/* Opens `library` and finds every function. Fails in one sentence: no driver, or one too old to have them all. */
bool qn_driver_open(qn_driver *d, const char *library, qn_err *e);
void qn_driver_close(qn_driver *d);

/* True if `error` is 0; else e says what failed, by the driver's own name for it. */
bool qn_driver_ok(const qn_driver *d, int error, const char *what, qn_err *e);

#endif
