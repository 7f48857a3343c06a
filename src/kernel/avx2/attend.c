/* avx2/attend.c - attention, 32-byte vectors: generic/attend.h. Apart from generic.c, because its tiles compile slowly. */
#define ISA avx2
#define LANES 8
#include "format/blocks.h"
#include "kernel/generic/attend.h"
#include "kernel/generic/make.h"

MAKE(attend, f32, group g; attend(&g, args, lane, DT_f32))
MAKE(attend, f16, group g; attend(&g, args, lane, DT_f16))
MAKE(attend, q8_0, group g; attend(&g, args, lane, DT_q8_0))
