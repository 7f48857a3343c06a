/* deal.c - rows to blocks, rows to stages, stages to places in the ring. All of it is known before a token is made, so the
 * device decides nothing: a stage's place and what must have been used before it is overwritten are written down here. The ring
 * is one run of bytes, filled in order; a token's first stage begins at its start, like every token's. */
#include "kernel/cuda/deal.h"

#include <string.h>

#define STATIC_SMEM 8192u  /* what the kernel declares for itself, at most */
#define STAGE 36864u       /* bytes of a stage; a task that takes more is a stage alone */
#define STREAM_PARTS 4u    /* of a row, where a phase is longer than the ring: its last stage should not keep one warp long */
#define STAGES_LEAST 3u    /* that the ring has room for: a task that takes more than a third of it is cut by columns */
#define RING_LEAST 768u    /* bytes of each of them */
#define CUT 256u           /* columns: every plane's part then begins at a multiple of 16 bytes */
#define TURNS 32u          /* stages from a team's item to its next, at most: no barrier may be two turns behind */
#define ROWS_MOST 8u       /* that a warp multiplies at once */
#define PIECES_LEAST 36u   /* of a part: with fewer a warp goes through its loop but once, and joining costs more */

/* How the tasks of a phase go to warps. */
typedef struct manner {
    u32 rows, tasks, parts; /* of a task; of an item; of a row */
    u32 cut, cut_cols;      /* stages of an item, and their columns where there are several */
} manner;

typedef struct dealer {
    qn_lists *l;
    const qn_part *parts;
    int n_parts;
    qn_stage *out;          /* NULL: they are only counted */
    u16 *items;             /* NULL: likewise */
    u32 n;                  /* stages */
} dealer;

/* ---- a row in pieces: 32 columns of a quantised one, 16 bytes of floats */

static u32 piece_cols(u32 kind) { return kind == QN_W_f32 ? 4 : kind <= QN_W_bf16 ? 8 : 32; }
static u32 piece_value(u32 kind) { return kind == QN_W_q8 ? 32 : 16; }
static u32 piece_high(u32 kind) { return kind == QN_W_q6 ? 8 : 0; }
static u32 piece_scale(u32 kind) { return kind < QN_W_q8 ? 0 : kind <= QN_W_q4 ? 2 : 4; }
static u32 n_pieces(const qn_wmat *w) { return (w->cols + piece_cols(w->kind) - 1) / piece_cols(w->kind); }
static u32 pad16(u32 n) { return (n + 15) & ~15u; }
static u32 at_most(u32 a, u32 b) { return a < b ? a : b; }

/* The power of two that is at most n, 1 at least. */
static u32 power_below(u32 n)
{
    u32 p = 1;
    while (2 * p <= n) p *= 2;
    return p;
}

static u32 log_of(u32 power)
{
    u32 n = 0;
    while (1u << n < power) n++;
    return n;
}

/* ---- items and stages */

typedef struct item { const qn_part *p; u32 row, rows; } item;

static qn_stage stage_of(const item *i, const manner *h, u32 nth)
{
    const qn_wmat *w = &i->p->a;
    const u32 each = piece_cols(w->kind), first = h->cut > 1 ? nth * h->cut_cols / each : 0, all = n_pieces(w);
    const u32 n = h->cut > 1 ? at_most(h->cut_cols / each, all - first) : all, matrices = i->p->gated ? 2 : 1;
    qn_stage s = { .kind = (u8)w->kind, .rows = (u8)i->rows, .piece = (u16)first, .n_pieces = (u16)n,
                   .row = i->p->first + i->row, .row_bytes = w->row_bytes };
    const u64 from = (u64)i->row * w->row_bytes + (u64)first * piece_value(w->kind);
    s.a = w->at + from;
    s.b = i->p->gated ? i->p->b + from : 0;
    s.bias = i->p->bias ? i->p->bias + 4 * (u64)i->row : 0;
    s.bias2 = i->p->bias2 ? i->p->bias2 + 4 * (u64)i->row : 0;
    if (h->cut == 1) {
        s.pitch = w->row_bytes;
        s.high_at = (u16)w->high, s.scale_at = (u16)w->scale;
        s.bytes = matrices * i->rows * w->row_bytes;
        return s;
    }
    s.n_value = (u16)(piece_value(w->kind) * n);
    s.n_high = (u16)pad16(piece_high(w->kind) * n);
    s.n_scale = (u16)pad16(piece_scale(w->kind) * n);
    s.high = w->high ? w->high + piece_high(w->kind) * first - piece_value(w->kind) * first : 0;
    s.scale = w->scale ? w->scale + piece_scale(w->kind) * first - piece_value(w->kind) * first : 0;
    s.high_at = s.n_value;
    s.scale_at = (u16)(s.n_value + s.n_high);
    s.pitch = (u32)s.n_value + s.n_high + s.n_scale;
    s.bytes = matrices * i->rows * s.pitch;
    return s;
}

static u32 room_of(const qn_stage *s) { return (s->pitch * s->rows * (s->b ? 2u : 1u) + 127) & ~127u; }

static void put_item(dealer *d, const item *i, const manner *h)
{
    for (u32 k = 0; k < h->cut; k++, d->n++)
        if (d->out) d->out[d->n] = stage_of(i, h, k);
}

static u32 tiles_of(const qn_part *p, const manner *h) { return (p->a.rows + h->rows - 1) / h->rows; }

/* Block b's share of the phase that begins with part `begin`; parts of it are neighbours. Returns items. */
static u32 deal_phase(dealer *d, int begin, int end, int b, const manner *h)
{
    const u64 n = (u64)d->l->n_blocks, turn = ((u64)b + (u64)d->parts[begin].phase * 37) % n;
    u64 total = 0, before = 0;
    for (int k = begin; k < end; k++) total += tiles_of(&d->parts[k], h);
    const u64 from = turn * total / n, to = (turn + 1) * total / n;
    u32 items = 0;
    for (int k = begin; k < end; k++) {
        const qn_part *p = &d->parts[k];
        const u64 tiles = tiles_of(p, h), lo = from > before ? from - before : 0, hi = to > before ? to - before : 0;
        const u32 last = (u32)(hi < tiles ? hi : tiles);
        for (u32 t = (u32)(lo < tiles ? lo : tiles); t < last; t += h->tasks, items++) {
            const u32 row = h->rows * t, stop = h->rows * at_most(last, t + h->tasks);
            put_item(d, &(item){ .p = p, .row = row, .rows = at_most(stop, p->a.rows) - row }, h);
        }
        before += tiles;
    }
    return items;
}

/* ---- the manner of a phase */

/* A warp should have one task of a phase: all that is not products costs as much as these. So a task has more rows where there
 * would be more tasks than warps, which then share what is read of the input; columns are parted where there are fewer. */
static manner manner_of(const dealer *d, int begin, int end)
{
    const bool gated = d->parts[begin].gated;
    const u32 cols = d->parts[begin].a.cols;
    u32 rows = 0, row_bytes = 0, pieces = ~0u;
    for (int k = begin; k < end; k++) {
        const qn_wmat *w = &d->parts[k].a;
        rows += w->rows;
        row_bytes = w->row_bytes > row_bytes ? w->row_bytes : row_bytes;
        pieces = at_most(pieces, n_pieces(w));
    }
    const u32 mine = (rows + (u32)d->l->n_blocks - 1) / (u32)d->l->n_blocks;
    const u32 parts = at_most(power_below(pieces / PIECES_LEAST), 8);
    const u32 stage = at_most(STAGE, d->l->ring_bytes / STAGES_LEAST);
    const u32 twice = gated ? 2 : 1;
    manner h = { .rows = 2, .cut = 1 };
    while (twice * h.rows < ROWS_MOST && (mine + h.rows - 1) / h.rows * parts > QN_P_WARPS &&
           2 * twice * h.rows * row_bytes <= stage) h.rows *= 2;
    const u32 tasks = (mine + h.rows - 1) / h.rows, bytes = twice * h.rows * row_bytes;
    h.parts = at_most(parts, power_below(QN_P_WARPS / at_most(tasks, QN_P_WARPS)));
    const bool streams = (u64)mine * twice * row_bytes > d->l->ring_bytes;
    if (streams && h.parts < STREAM_PARTS) h.parts = at_most(power_below(pieces / 32), STREAM_PARTS);
    h.tasks = at_most(power_below(stage / bytes), QN_P_WARPS / h.parts);
    while (h.tasks / 2 >= tasks) h.tasks /= 2;
    const u32 most = d->l->ring_bytes / STAGES_LEAST;
    if (bytes > most) {
        h.cut_cols = (cols / (bytes / at_most(STAGE, most) + 1) + CUT - 1) / CUT * CUT;
        h.cut = (cols + h.cut_cols - 1) / h.cut_cols;
        h.parts = parts, h.tasks = 1; /* few teams: see TURNS */
    }
    return h;
}

/* ---- places */

/* What still lies where stage i goes: the newest stage before it, of this token or the one before, that overlaps. */
static u32 back_of(const qn_stage *s, u32 n, u32 i)
{
    const u32 from = s[i].to, to = from + room_of(&s[i]);
    for (u32 back = 1; back < n; back++) {
        const qn_stage *o = &s[(i + n - back) % n];
        if (back == QN_P_SLOTS - QN_P_AHEAD || (o->to < to && from < o->to + room_of(o))) return back;
    }
    return n; /* itself */
}

static bool place(qn_lists *l, int b)
{
    qn_stage *s = l->stages + l->stage_at[b];
    const u32 n = l->stage_at[b + 1] - l->stage_at[b];
    u32 at = 0;
    for (u32 i = 0; i < n; i++) {
        if (room_of(&s[i]) > l->ring_bytes) return false;
        if (at + room_of(&s[i]) > l->ring_bytes) at = 0;
        s[i].to = at;
        at += room_of(&s[i]);
    }
    for (u32 i = 0; i < n; i++) s[i].back = back_of(s, n, i);
    return true;
}

/* ---- all of it */

static int phase_end(const dealer *d, int begin)
{
    int end = begin;
    while (end < d->n_parts && d->parts[end].phase == d->parts[begin].phase) end++;
    return end;
}

static bool deal_all(dealer *d)
{
    qn_lists *l = d->l;
    d->n = 0;
    for (int b = 0; b < l->n_blocks; b++) {
        l->stage_at[b] = d->n;
        for (int k = 0, end, at = b * l->n_items; k < d->n_parts; k = end, at++) {
            end = phase_end(d, k);
            const manner h = manner_of(d, k, end);
            if (h.cut * (QN_P_WARPS / (h.tasks * h.parts)) > TURNS) return false;
            const u32 before = d->n, n = deal_phase(d, k, end, b, &h);
            qn_phase *p = &l->phases[d->parts[k].phase];
            p->teams = (u8)log_of(QN_P_WARPS / (h.tasks * h.parts)), p->parts = (u8)log_of(h.parts);
            p->rows = (u8)log_of(h.rows), p->cut = (u8)h.cut;
            if (!d->out) continue;
            d->items[at] = (u16)n;
            if (d->n == before || p + 1 >= l->phases + l->n_phases || p[1].op != QN_I_attend) continue;
            d->out[before].flags |= QN_S_kv;
            d->out[before].att = (u16)p[1].index;
        }
    }
    l->stage_at[l->n_blocks] = d->n;
    l->n_stages = (int)d->n;
    return true;
}

bool qn_deal(qn_lists *l, const qn_part *parts, int n_parts, size_t smem, const char **why, qn_err *e)
{
    dealer d = { .l = l, .parts = parts, .n_parts = n_parts };
    for (int k = 0; k < n_parts; k = phase_end(&d, k)) l->n_items++;
    l->n_items = (l->n_items + 7) & ~7;
    const size_t fixed = STATIC_SMEM + (size_t)l->x_bytes + l->form_bytes + ((2 * (size_t)l->n_items + 127) & ~(size_t)127);
    if (smem < fixed + STAGES_LEAST * RING_LEAST) return *why = "too little shared memory", false;
    l->ring_bytes = (u32)(smem - fixed) & ~127u;
    l->smem = smem - STATIC_SMEM;
    l->stage_at = qn_new_array((size_t)l->n_blocks + 1, sizeof *l->stage_at, e);
    l->items = l->stage_at ? qn_new_array((size_t)l->n_blocks * (size_t)l->n_items, sizeof *l->items, e) : NULL;
    if (!l->items) return false;
    if (!deal_all(&d)) return *why = "rows too long for shared memory", false; /* how many */
    d.items = l->items;
    d.out = l->stages = qn_new_array(d.n, sizeof *l->stages, e);
    if (!l->stages) return false;
    bool ok = deal_all(&d);
    for (int b = 0; ok && b < l->n_blocks; b++) ok = place(l, b);
    if (!ok) *why = "rows too long for shared memory";
    return ok;
}
