/* avx2/matmul.c - plain matrix products, 32-byte vectors: generic/matmul.h. */
#define LANES 8
#include "kernel/generic/matmul.h"

MATMULS(avx2)
