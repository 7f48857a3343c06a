/* shortlist.c - behind a pass, the best logits of every row that asked, and these alone on their way to the host: 512 bytes a row
 * instead of half a megabyte. Who draws with a top-k needs no more (engine/generate.c). Draws can be made on the device too, so
 * that the next token begins without the host. */
#include <string.h>

#include "kernel/cuda/program.h"

typedef struct qn_shortlist {
    u64 keys[2];            /* [ROWS, pitch] on the device */
    u32 pitch;
    u64 *best;              /* [ROWS, QN_LIST_BEST] pinned */
    i32 *drawn;             /* [QN_CUDA_DECODE_MOST] behind it: the device writes here */
    u64 next;               /* on the device: the token that was drawn last */
    int n_rows;             /* of the newest pass; 0: it has none */
    bool on;
} qn_shortlist;

#define ROWS QN_GRAPHS      /* passes with more do not come again and again */
static_assert(QN_CUDA_BEST == QN_LIST_BEST, "what the kernel finds is what the door promises");

static u32 blocks_of(u64 n) { return (u32)((n + QN_LIST_KEYS - 1) / QN_LIST_KEYS); }

bool qn_shortlist_make(qn_cuda *c, qn_err *e)
{
    void *pinned = NULL;
    qn_shortlist *s = c->shortlist = qn_new(sizeof *s, e);
    if (!s) return false;
    s->pitch = blocks_of((u64)c->need.n_vocab) * QN_LIST_BEST;
    for (int i = 0; i < 2; i++)
        if (!qn_gpu_take(&c->gpu, "the best logits", 8 * (u64)ROWS * s->pitch, &s->keys[i], e)) return false;
    const size_t bytes = 8 * (size_t)ROWS * QN_LIST_BEST + QN_CUDA_DECODE_MOST * sizeof *s->drawn;
    if (!qn_gpu_take(&c->gpu, "the next token", 16, &s->next, e) ||
        !qn_driver_ok(&c->gpu.d, c->gpu.d.host_alloc(&pinned, bytes, 0), "taking pinned memory", e)) return false;
    s->best = pinned;
    s->drawn = (i32 *)(s->best + (size_t)ROWS * QN_LIST_BEST);
    return true;
}

void qn_shortlist_close(qn_cuda *c)
{
    if (!c->shortlist) return;
    if (c->shortlist->best) c->gpu.d.host_free(c->shortlist->best);
    qn_free(c->shortlist);
    c->shortlist = NULL;
}

void qn_cuda_list_best(qn_cuda *c, bool on) { c->shortlist->on = on; }

/* keys: where the best of each row are, side by side. */
static bool launch_turns(qn_cuda *c, int rows, u64 *keys, qn_err *e)
{
    const qn_shortlist *s = c->shortlist;
    qn_clist a = { .logits = qn_program_buffer(c, c->need.logits), .n = (u32)c->need.n_vocab, .pitch = s->pitch };
    for (u32 turn = 0, blocks = 0; blocks != 1; turn ^= 1) {
        blocks = blocks_of(a.n);
        a.out = s->keys[turn];
        a.out_pitch = blocks > 1 ? s->pitch : QN_LIST_BEST;
        const qn_grid g = { blocks, (unsigned)rows, QN_LIST_KEYS / 2, 0 };
        if (!qn_gpu_launch(&c->gpu, FN_shortlist, g, &a, e)) return false;
        a = (qn_clist){ .keys = a.out, .n = blocks * QN_LIST_BEST, .pitch = s->pitch };
    }
    *keys = a.keys;
    return true;
}

/* rows 0: what is known is of a pass before. */
bool qn_shortlist_launch(qn_cuda *c, int rows, qn_err *e)
{
    qn_shortlist *s = c->shortlist;
    const size_t bytes = 8 * QN_LIST_BEST * (size_t)rows;
    u64 keys = 0;
    s->n_rows = 0;
    if (!s->on || rows == 0 || rows > ROWS) return true;
    if (!launch_turns(c, rows, &keys, e) ||
        !qn_driver_ok(&c->gpu.d, c->gpu.d.copy_down(s->best, keys, bytes, c->gpu.stream), "fetching the best logits",
                      e)) return false;
    s->n_rows = rows;
    return true;
}

bool qn_shortlist_draw(qn_cuda *c, const qn_cuda_rules *r, double u, int i, qn_err *e)
{
    const qn_shortlist *s = c->shortlist;
    qn_cdraw a = { .next = s->next, .out = (u64)(uintptr_t)&s->drawn[i], .u = u, .temp = r->temp, .top_p = r->top_p,
                   .min_p = r->min_p, .n = qn_mini(r->top_k, c->need.n_vocab) };
    assert(a.n <= QN_LIST_BEST);
    return launch_turns(c, 1, &a.keys, e) && qn_gpu_launch(&c->gpu, FN_draw, (qn_grid){ 1, 1, QN_LIST_BEST, 0 }, &a, e);
}

u64 qn_shortlist_next(const qn_cuda *c) { return c->shortlist->next; }
const i32 *qn_shortlist_drawn(const qn_cuda *c) { return c->shortlist->drawn; }

int qn_cuda_best(const qn_cuda *c, int row, i32 *ids, float *values)
{
    const qn_shortlist *s = c->shortlist;
    if (row >= s->n_rows) return 0;
    const int n = qn_mini(QN_LIST_BEST, c->need.n_vocab);
    for (int i = 0; i < n; i++) {
        const u64 key = s->best[(size_t)row * QN_LIST_BEST + (size_t)i];
        const u32 high = (u32)(key >> 32), bits = high >> 31 ? high & 0x7FFFFFFF : ~high;
        ids[i] = (i32)(0xFFFFFFFFu - (u32)key);
        memcpy(&values[i], &bits, sizeof bits);
    }
    return n;
}
