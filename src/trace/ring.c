/* ring.c - the ring's memory and the two copies around its end. */
#include "trace/ring.h"

#include <string.h>

bool qn_ring_open(qn_ring *r, size_t bytes, qn_err *e)
{
    assert((bytes & (bytes - 1)) == 0);
    r->size = bytes / sizeof *r->words;
    r->words = qn_pages_new(bytes, e);
    return r->words != NULL;
}

void qn_ring_close(qn_ring *r)
{
    if (r->words) qn_pages_free(r->words, r->size * sizeof *r->words);
    r->words = NULL;
}

/* Bytes to the words at `at` and on, in two parts where the ring ends. */
static void write_at(qn_ring *r, u64 at, const void *p, size_t bytes)
{
    const size_t from = (size_t)(at & (r->size - 1)) * sizeof(u64), room = (size_t)r->size * sizeof(u64) - from;
    const size_t first = qn_minz(bytes, room);
    if (first) memcpy((char *)r->words + from, p, first);
    if (bytes > first) memcpy(r->words, (const char *)p + first, bytes - first);
}

bool qn_ring_put(qn_ring *r, const u64 *a, size_t n_a, const void *b, size_t bytes_b)
{
    const u64 head = atomic_load_explicit(&r->head, memory_order_relaxed);
    const u64 need = n_a + (bytes_b + sizeof(u64) - 1) / sizeof(u64);
    if (head + need - r->tail_seen > r->size) {
        r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
        if (head + need - r->tail_seen > r->size) {
            atomic_fetch_add_explicit(&r->lost, 1, memory_order_relaxed);
            return false;
        }
    }
    write_at(r, head, a, n_a * sizeof *a);
    write_at(r, head + n_a, b, bytes_b);
    atomic_store_explicit(&r->head, head + need, memory_order_release);
    return true;
}

void qn_ring_copy(const qn_ring *r, size_t at, void *out, size_t bytes)
{
    const u64 tail = atomic_load_explicit(&r->tail, memory_order_relaxed) + at;
    const size_t from = (size_t)(tail & (r->size - 1)) * sizeof(u64), room = (size_t)r->size * sizeof(u64) - from;
    const size_t first = qn_minz(bytes, room);
    memcpy(out, (const char *)r->words + from, first);
    if (bytes > first) memcpy((char *)out + first, r->words, bytes - first);
}
