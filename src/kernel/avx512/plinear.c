/* avx512/plinear.c - floats times panels of floats, 64-byte vectors: generic/plinear.h. */
#define LANES 16
#include "kernel/generic/plinear.h"

PLINEARS(avx512)
