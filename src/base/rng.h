/* rng.h - numbers that look random and are the same everywhere for the same seed (splitmix64 over a counter). */
#ifndef QN_RNG_H
#define QN_RNG_H

#include "base/types.h"

/* The nth draw of a seed; no state, so a draw does not depend on what else was drawn. */
static inline u64 qn_rng_at(u64 seed, u64 n)
{
    u64 z = seed + (n + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline double qn_rng_unit(u64 seed, u64 n) { return (double)(qn_rng_at(seed, n) >> 11) * 0x1.0p-53; } /* [0, 1) */

#endif
