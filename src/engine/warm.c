/* warm.c - reads the mapped files through once, in pieces, so that loading shows its progress, can be stopped, and does not
 * hide inside the first token. Pages that are in the page cache already cost about 0.1 ms per MiB of page-table work. */
#include "engine/warm.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define PIECE ((u64)16 << 20)
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

static bool warm_piece(const u8 *p, u64 n)
{
    /* a kernel before 5.14 does not know the advice: then it only hears that reading is near */
    if (madvise((void *)(uintptr_t)p, n, MADV_POPULATE_READ) == 0) return true;
    if (errno != EINVAL) return errno != EFAULT;
    madvise((void *)(uintptr_t)p, n, MADV_WILLNEED);
    return true;
}

bool qn_warm(const qn_source *s, qn_progress_fn progress, void *user, qn_err *e)
{
    u64 total = 0, done = 0;
    for (int i = 0; i < s->n_maps; i++) total += s->maps[i].bytes;
    for (int i = 0; i < s->n_maps; i++) {
        for (u64 at = 0; at < s->maps[i].bytes; at += PIECE) {
            const u64 n = s->maps[i].bytes - at < PIECE ? s->maps[i].bytes - at : PIECE;
            if (!warm_piece(s->maps[i].p + at, n))
                return qn_fail(e, QN_EIO, "%s: the file became shorter while it was being read", s->path);
            done += n;
            if (progress && !progress(user, "loading", (double)done / (double)total))
                return qn_fail(e, QN_ECANCELLED, "loading was stopped");
        }
    }
    return true;
}
