/* avx512/matmul.c - plain matrix products, 64-byte vectors: generic/matmul.h. */
#define LANES 16
#include "kernel/generic/matmul.h"

MATMULS(avx512)
