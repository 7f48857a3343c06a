/* dtype.c - the table of tensor types, made from dtypes.def. It only joins: what a type is stands in its own header. */
#include "format/dtype.h"

#include <strings.h>

#include "format/blocks.h"

#define DTYPE_RO(name, NAME, id, block)                                                                                  \
    static void decode_##name(const void *blocks, float *y, size_t n) { qn_##name##_decode_run(blocks, y, n); }
#define DTYPE(name, NAME, id, block)                                                                                     \
    DTYPE_RO(name, NAME, id, block)                                                                                      \
    static void encode_##name(const float *x, void *blocks, size_t n)                                                    \
    {                                                                                                                    \
        qn_##name *const b = blocks;                                                                                     \
        for (size_t i = 0; i < n / (block); i++) qn_##name##_encode(x + i * (block), b + i);                             \
    }
#include "format/dtypes.def"
#undef DTYPE

const qn_dtype_info qn_dtypes[N_DTYPES] = {
#define ROW(name, NAME, id, block, enc) [DT_##name] = { NAME, #name, id, block, sizeof(qn_##name), decode_##name, enc },
#define DTYPE_RO(name, NAME, id, block) ROW(name, NAME, id, block, NULL)
#define DTYPE(name, NAME, id, block) ROW(name, NAME, id, block, encode_##name)
#include "format/dtypes.def"
#undef DTYPE
#undef ROW
};

bool qn_dtype_from_gguf(u32 gguf_id, qn_dtype *out)
{
    for (int t = 0; t < N_DTYPES; t++) {
        if (qn_dtypes[t].gguf_id != gguf_id) continue;
        *out = (qn_dtype)t;
        return true;
    }
    return false;
}

bool qn_dtype_from_name(const char *name, qn_dtype *out)
{
    for (int t = 0; t < N_DTYPES; t++) {
        if (strcasecmp(qn_dtypes[t].name, name) != 0) continue;
        *out = (qn_dtype)t;
        return true;
    }
    return false;
}
