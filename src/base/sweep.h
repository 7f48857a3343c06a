/* sweep.h - reads memory through, as fast as it comes: what nothing that reads the same bytes can beat. */
#ifndef QN_SWEEP_H
#define QN_SWEEP_H

#include "base/pool.h"

/* Brings n bytes (a multiple of 256, 64-byte aligned) line by line and returns a value that depends on each line. */
u64 qn_sweep_bytes(const void *p, size_t n);

enum { QN_SWEEP_PAGE = 4096 };

/* All lanes of the pool, each its share of whole pages (what is left behind the last whole page is not read); returns the
 * nanoseconds it took. *sink depends on every line. */
u64 qn_sweep(qn_pool *pool, const void *p, size_t n, u64 *sink);

#endif
