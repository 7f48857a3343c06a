/* all.h - the generic kernels under their names. A file kernel/<isa>/generic.c says ISA and LANES and includes this; the rows of
 * kernels.def with variant gen (part, wide) are what is made here. Nothing else lives here: each wrapper is one call. */
#include "format/blocks.h"
#include "kernel/generic/choice.h"
#include "kernel/generic/glu.h"
#include "kernel/generic/linear.h"
#include "kernel/generic/make.h"
#include "kernel/generic/move.h"
#include "kernel/generic/norm.h"
#include "kernel/generic/rope.h"
#include "kernel/kernel.h"


/* decoders as functions */
#define DTYPE(name, NAME, id, block) \
    static void decode_##name(const void *b, float *y, size_t n) { qn_##name##_decode_run(b, y, n); }
#include "format/dtypes.def"
#undef DTYPE

/* linear uses F32 where it lies */
#define DTYPE(name, NAME, id, block) \
    MAKE(linear, name, linear(args, lane, DT_##name == DT_f32 ? NULL : decode_##name)) \
    MAKE(embed, name, embed(args, lane, decode_##name))
#include "format/dtypes.def"
#undef DTYPE

MAKE(store, f16, store_f16(args, lane))
MAKE(rmsnorm, f32, rmsnorm(args, lane))
MAKE(headnorm, f32, headnorm(args, lane))
MAKE(rope, f32, rope(args, lane))
MAKE(add, f32, add(args, lane))
MAKE(addnorm, f32, addnorm(args, lane))
MAKE(swiglu, f32, swiglu(args, lane))
MAKE(geglu, f32, geglu(args, lane))
MAKE(softmax, f32, softmax(args, lane, false))
MAKE_AS(part, softmax, f32, softmax(args, lane, true))
MAKE(best, f32, best(args, lane, 1))
MAKE_AS(wide, best, f32, best(args, lane, 4))
