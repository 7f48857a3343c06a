/* base/matmul.c - plain matrix products, 16-byte vectors: generic/matmul.h. */
#define LANES 4
#include "kernel/generic/matmul.h"

MATMULS(base)
