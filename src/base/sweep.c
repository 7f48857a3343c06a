/* sweep.c - see sweep.h. One loop for everybody who wants to know what memory gives: a second one would give another figure. */
#include "base/sweep.h"

#include <stdatomic.h>

#include "base/clock.h"

typedef u64 wide __attribute__((vector_size(64), aligned(64))); /* one cache line; the compiler splits it as it must */

u64 qn_sweep_bytes(const void *p, size_t n)
{
    const wide *at = p, *end = at + n / sizeof *at;
    wide a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };
    for (; at < end; at += 4) {
        a ^= at[0];
        b ^= at[1];
        c ^= at[2];
        d ^= at[3];
    }
    a ^= b ^ c ^ d;
    return a[0] ^ a[1] ^ a[2] ^ a[3] ^ a[4] ^ a[5] ^ a[6] ^ a[7];
}

typedef struct sweep { const u8 *p; int pages; _Atomic u64 *sink; } sweep;

static void sweep_share(const void *args, qn_lane lane)
{
    const sweep *s = args;
    const size_t from = (size_t)lane_begin(s->pages, lane) * QN_SWEEP_PAGE, to = (size_t)lane_end(s->pages, lane) * QN_SWEEP_PAGE;
    atomic_fetch_xor(s->sink, qn_sweep_bytes(s->p + from, to - from));
}

u64 qn_sweep(qn_pool *pool, const void *p, size_t n, u64 *sink)
{
    _Atomic u64 bits = 0;
    const sweep s = { p, (int)(n / QN_SWEEP_PAGE), &bits };
    const u64 start = qn_now_ns();
    qn_pool_run(pool, sweep_share, &s);
    const u64 ns = qn_now_ns() - start;
    *sink ^= bits;
    return ns;
}
