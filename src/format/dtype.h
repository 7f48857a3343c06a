/* dtype.h - the table of tensor types. Each type is one header, format/<name>.h: the block struct `qn_<name>` with its size
 * asserted and `static inline void qn_<name>_decode(const qn_<name> *b, float *y)` (one block, y has the block's weights);
 * and one file, format/<name>.c: `qn_<name>_encode(const float *x, qn_<name> *b)` for one block, where the type has an
 * encoder. Kernels include blocks.h and inline the decoders; everybody else goes through the table. */
#ifndef QN_DTYPE_H
#define QN_DTYPE_H

#include "base/err.h"

typedef enum qn_dtype {
#define DTYPE(name, NAME, id, block) DT_##name,
#include "format/dtypes.def"
#undef DTYPE
    N_DTYPES
} qn_dtype;

typedef struct qn_dtype_info {
    const char *name, *token;  /* "Q4_K" as people write it, "q4_k" as code spells it */
    u32 gguf_id;
    int block;                 /* weights per block */
    size_t block_bytes;
    void (*decode)(const void *blocks, float *y, size_t n);       /* n weights, a multiple of block */
    void (*encode)(const float *x, void *blocks, size_t n);       /* NULL: this type can only be read */
} qn_dtype_info;

extern const qn_dtype_info qn_dtypes[N_DTYPES];

bool qn_dtype_from_gguf(u32 gguf_id, qn_dtype *out);
bool qn_dtype_from_name(const char *name, qn_dtype *out); /* "Q4_K", "q4_k" */
/* Bytes of n weights; n must be a multiple of the block. */
static inline size_t qn_dtype_bytes(qn_dtype t, size_t n) { return n / (size_t)qn_dtypes[t].block * qn_dtypes[t].block_bytes; }

#endif
