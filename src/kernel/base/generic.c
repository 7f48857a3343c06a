/* base/generic.c - the generic kernels for the 16-byte vectors that every x86-64 (SSE2) and aarch64 (NEON) has. */
#define ISA base
#define LANES 4
#include "kernel/generic/all.h"
