/* base/plinear.c - floats times panels of floats, 16-byte vectors: generic/plinear.h. */
#define LANES 4
#include "kernel/generic/plinear.h"

PLINEARS(base)
