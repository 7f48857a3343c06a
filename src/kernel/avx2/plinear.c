/* avx2/plinear.c - floats times panels of floats, 32-byte vectors: generic/plinear.h. */
#define LANES 8
#include "kernel/generic/plinear.h"

PLINEARS(avx2)
