/* fatbin.h - the compiled kernels that this build holds. */
#ifndef QN_CUDA_FATBIN_H
#define QN_CUDA_FATBIN_H

#include "base/types.h"

typedef struct qn_fatbin { const char *name; const void *image; } qn_fatbin; /* "ops": kernel/cuda/ops.cu */

extern const qn_fatbin qn_fatbins[];
extern const int qn_n_fatbins; /* 0: built without CUDA=1 */

#endif
