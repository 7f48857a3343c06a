/* avx512/generic.c - the generic kernels for AVX-512, 64-byte vectors. */
#define ISA avx512
#define LANES 16
#include "kernel/generic/all.h"
