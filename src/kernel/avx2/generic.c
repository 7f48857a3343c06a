/* avx2/generic.c - the generic kernels for AVX2 and FMA, 32-byte vectors. */
#define ISA avx2
#define LANES 8
#include "kernel/generic/all.h"
