/* all.h - the generic kernels under their names. A file kernel/<isa>/generic.c says ISA and LANES and includes this; the rows of
 * kernels.def with variant gen are what is made here. Nothing else lives here: each wrapper is one call. */
#include "format/blocks.h"
#include "kernel/generic/linear.h"
#include "kernel/kernel.h"

#define NAME_(op, type, isa) qn_##op##_##type##_##isa##_gen
#define NAME(op, type, isa) NAME_(op, type, isa)
#define MAKE(op, type, call) \
    void NAME(op, type, ISA)(const void *args, qn_lane lane); \
    void NAME(op, type, ISA)(const void *args, qn_lane lane) { call; }

/* decoders as functions; F32 has none: it is used where it lies */
#define DTYPE(name, NAME, id, block) \
    static void decode_##name(const void *b, float *y, size_t n) { qn_##name##_decode_run(b, y, n); }
#include "format/dtypes.def"
#undef DTYPE

#define DTYPE(name, NAME, id, block) \
    MAKE(linear, name, linear(args, lane, DT_##name == DT_f32 ? NULL : decode_##name))
#include "format/dtypes.def"
#undef DTYPE
