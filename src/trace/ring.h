/* ring.h - words from one thread to another without a lock: one producer, one consumer. A record is put whole or not at all, and
 * taken whole. Inside trace/. */
#ifndef QN_RING_H
#define QN_RING_H

#include <stdatomic.h>

#include "base/mem.h"

typedef struct qn_ring {
    u64 *words;
    u64 size;                    /* in words, a power of two */
    _Alignas(64) atomic_ullong head; /* words put; written by the producer */
    u64 tail_seen;               /* the producer's copy of tail: most puts need no look at the other's line */
    atomic_ullong lost;          /* records that found no room */
    _Alignas(64) atomic_ullong tail; /* words taken; written by the consumer */
} qn_ring;

bool qn_ring_open(qn_ring *r, size_t bytes, qn_err *e);
void qn_ring_close(qn_ring *r);

/* A record is one or two runs of words behind each other; the first word tells the consumer its length. False: no room. */
bool qn_ring_put(qn_ring *r, const u64 *a, size_t n_a, const void *b, size_t bytes_b);

/* The consumer: word i of the oldest record, a copy of some of its words, and the end of it. */
static inline bool qn_ring_empty(const qn_ring *r)
{
    return atomic_load_explicit(&r->head, memory_order_acquire) == atomic_load_explicit(&r->tail, memory_order_relaxed);
}
void qn_ring_copy(const qn_ring *r, size_t at, void *out, size_t bytes);
static inline void qn_ring_drop(qn_ring *r, size_t words)
{
    const u64 tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    atomic_store_explicit(&r->tail, tail + words, memory_order_release);
}

#endif
