/* sweep.c - see sweep.h. One loop for everybody who wants to know what memory gives: a second one would give another figure. */
#include "base/sweep.h"

#include <stdatomic.h>

#include "base/clock.h"

enum { LINE = 64, WORDS = LINE / sizeof(u64), AHEAD = 8192 };

/* A word of each line: the line comes whole, and what is done with it must not count. Sums of whole lines, which gcc 12 keeps on
 * the stack, made 33 GB/s of what is 45 (one thread, Zen 5), and products of weights read at 120 % of that. */
u64 qn_sweep_bytes(const void *p, size_t n)
{
    const u64 *at = p, *end = at + n / sizeof *at;
    u64 bits = 0;
    for (; at < end; at += 4 * WORDS) {
        for (int i = 0; i < 4; i++) __builtin_prefetch((const u8 *)at + AHEAD + i * LINE, 0, 0);
        bits ^= at[0] ^ at[WORDS] ^ at[2 * WORDS] ^ at[3 * WORDS];
    }
    return bits;
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
