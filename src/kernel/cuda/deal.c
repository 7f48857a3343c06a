/* deal.c - rows to blocks, rows to stages, stages to places in the ring and to the warps that multiply them. All of it is known
 * before a token is made, so the device decides nothing: a stage's place, what must have been used before it is overwritten, and
 * every warp's tasks one behind the other are written down here. The ring is one run of bytes, filled in order; a token's first
 * stage begins at its start, like every token's. */
#include "kernel/cuda/deal.h"

#include <string.h>

#define STATIC_SMEM 11264u  /* what the kernel declares for itself, at most */
#define STAGE 36864u       /* bytes of a stage; a task that takes more is a stage alone */
#define STREAM_PARTS 4u    /* of a row, where a phase is longer than the ring: its last stage should not keep one warp long */
#define STAGES_LEAST 3u    /* that the ring has room for: a task that takes more than a third of it is cut by columns */
#define RING_LEAST 768u    /* bytes of each of them */
#define CUT 256u           /* columns: every plane's part then begins at a multiple of 16 bytes */
#define TURNS 32u          /* stages from a team's item to its next, at most: no barrier may be two turns behind */
#define ROWS_MOST 8u       /* that a warp multiplies at once */
#define PIECES_LEAST 36u   /* of a part: with fewer a warp goes through its loop but once, and joining costs more */

/* How a phase goes to warps: an item is as many tasks as a team has warps (columns parted: as many times so many warps), a team
 * has an item, the next team the next. */
typedef struct manner {
    u32 rows, tasks, parts; /* of a task; of an item; of a row */
    u32 cut, cut_cols;      /* stages of an item, and their columns where there are several */
    bool streams;           /* the phase is longer than the ring */
} manner;

typedef struct dealer {
    qn_lists *l;
    const qn_part *parts;
    int n_parts;
    bool write;             /* else they are only counted */
    u32 n, block;           /* stages so far; the block at hand */
    u32 *n_tasks;           /* [n_blocks * QN_P_WARPS] so far */
    const char *why;        /* it does not work */
} dealer;

static bool refuse(dealer *d, const char *why) { return d->why = why, false; }

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

/* The pieces of an item's nth stage. */
static u32 pieces_of(const item *i, const manner *h, u32 nth, u32 *first)
{
    const u32 each = piece_cols(i->p->a.kind), all = n_pieces(&i->p->a);
    *first = h->cut > 1 ? nth * h->cut_cols / each : 0;
    return h->cut > 1 ? at_most(h->cut_cols / each, all - *first) : all;
}

static qn_stage stage_of(const item *i, const manner *h, u32 nth)
{
    const qn_wmat *w = &i->p->a;
    u32 first;
    const u32 n = pieces_of(i, h, nth, &first), matrices = i->p->gated ? 2 : 1;
    qn_stage s = { .rows = (u8)i->rows, .row_bytes = w->row_bytes, .phase = (u16)i->p->phase };
    const u64 from = (u64)i->row * w->row_bytes + (u64)first * piece_value(w->kind);
    s.a = w->at + from;
    s.b = i->p->gated ? i->p->b + from : 0;
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

/* Task t of an item's nth stage, part q of its columns; `at` is still from the stage's start. */
static qn_task task_of(const item *i, const manner *h, const qn_stage *s, u32 nth, u32 t, u32 q)
{
    u32 piece;
    const u32 n = pieces_of(i, h, nth, &piece), each = (n + h->parts - 1) / h->parts, first = t * h->rows;
    const u64 bias = 4 * (u64)(i->row + first);
    return (qn_task){
        .at = first * s->pitch, .row = i->p->first + i->row + first, .pitch = (u16)(s->pitch / 16),
        .up = (u16)(i->p->gated ? i->rows * s->pitch / 16 : 0), .high = s->high_at, .scale = s->scale_at,
        .begin = (u16)at_most(q * each, n), .end = (u16)at_most((q + 1) * each, n), .piece = (u16)piece,
        .phase = (u16)i->p->phase, .kind = (u8)i->p->a.kind, .rows = (u8)at_most(i->rows - first, h->rows), .part = (u8)q,
        .flags = (u8)((nth == 0 ? QN_T_begins : 0) | (nth + 1 == h->cut ? QN_T_ends : 0) |
                      (i->p->bias || i->p->bias2 ? QN_T_bias : 0)),
        .bias = i->p->bias ? i->p->bias + bias : 0, .bias2 = i->p->bias2 ? i->p->bias2 + bias : 0,
    };
}

/* The nth item of a phase: its stages, and a task of each for every warp of the team that has rows. */
static void put_item(dealer *d, const item *i, const manner *h, u32 nth)
{
    const u32 size = h->tasks * h->parts, team = nth % (QN_P_WARPS / size);
    const u32 users = (i->rows + h->rows - 1) / h->rows * h->parts, warp = d->block * QN_P_WARPS + team * size;
    for (u32 k = 0; k < h->cut; k++, d->n++) {
        if (d->write) d->l->stages[d->n] = stage_of(i, h, k);
        for (u32 u = 0; u < users; u++) {
            const u32 at = d->n_tasks[warp + u]++;
            if (!d->write) continue;
            qn_task *t = &d->l->tasks[d->l->task_at[warp + u] + at];
            *t = task_of(i, h, &d->l->stages[d->n], k, u / h->parts, u % h->parts);
            t->stage = (u16)(d->n - d->l->stage_at[d->block]);
            t->weight = (u8)(QN_T_USES / users + (u < QN_T_USES % users));
        }
    }
}

static u32 tiles_of(const qn_part *p, const manner *h) { return (p->a.rows + h->rows - 1) / h->rows; }

/* The block's share of the phase that begins with part `begin`; parts of it are neighbours. */
static void deal_phase(dealer *d, int begin, int end, const manner *h)
{
    const u64 n = (u64)d->l->n_blocks, turn = ((u64)d->block + (u64)d->parts[begin].phase * 37) % n;
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
            put_item(d, &(item){ .p = p, .row = row, .rows = at_most(stop, p->a.rows) - row }, h, items);
        }
        before += tiles;
    }
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
    h.streams = (u64)mine * twice * row_bytes > d->l->ring_bytes;
    if (h.streams && h.parts < STREAM_PARTS) h.parts = at_most(power_below(pieces / 32), STREAM_PARTS);
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
        if (back == QN_P_SLOTS || (o->to < to && from < o->to + room_of(o))) return back;
    }
    return n; /* itself */
}

/* How many bytes may be on their way with stage i, which is asked for when the stage `back` before it has been used: many while
 * that one's phase goes on, few when it ends soon. What blocks send each other then is queued behind what they have asked for. */
static u32 flight_of(const qn_stage *s, u32 n, u32 i)
{
    const u32 used = (i + n - s[i].back % n) % n;
    u32 left = 0;
    for (u32 k = used + 1; k < n && s[k].phase == s[used].phase; k++) left += s[k].bytes;
    return left > QN_CALM ? QN_FLIGHT_MOST : QN_FLIGHT;
}

/* How many stages before this one must have come, so that no more are on their way (where a large stage is behind small ones,
 * that one too). Far fewer than there are barriers. */
static u32 after_of(const qn_stage *s, u32 n, u32 i)
{
    const u32 most = at_most(n, QN_P_SLOTS / 2), flight = flight_of(s, n, i);
    u32 after = 1;
    for (u32 bytes = s[i].bytes; after < most; after++) {
        bytes += s[(i + n - after) % n].bytes;
        if (bytes > flight) break;
    }
    return after;
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
    for (u32 i = 0; i < n; i++) s[i].after = (u16)after_of(s, n, i);
    return true;
}

/* ---- all of it */

static int phase_end(const dealer *d, int begin)
{
    int end = begin;
    while (end < d->n_parts && d->parts[end].phase == d->parts[begin].phase) end++;
    return end;
}

static void end_phase(const dealer *d, int phase)
{
    for (u32 w = d->block * QN_P_WARPS; w < (d->block + 1) * QN_P_WARPS; w++) {
        if (d->n_tasks[w] == 0) continue;
        qn_task *t = &d->l->tasks[d->l->task_at[w] + d->n_tasks[w] - 1];
        if (t->phase == phase) t->flags |= QN_T_last;
    }
}

/* What the first of a phase's stages brings besides itself. */
static void mark_stages(const dealer *d, u32 first, const qn_phase *p)
{
    qn_stage *s = d->l->stages;
    if (d->n == first || !p->att) return;
    s[first].flags |= QN_S_kv;
    s[first].att = (u16)(p->att - 1);
}

static bool deal_all(dealer *d)
{
    qn_lists *l = d->l;
    d->n = 0;
    memset(d->n_tasks, 0, (size_t)l->n_blocks * QN_P_WARPS * sizeof *d->n_tasks);
    for (d->block = 0; d->block < (u32)l->n_blocks; d->block++) {
        l->stage_at[d->block] = d->n;
        for (int k = 0, end; k < d->n_parts; k = end) {
            end = phase_end(d, k);
            const manner h = manner_of(d, k, end);
            const u32 before = d->n;
            if (h.cut * (QN_P_WARPS / (h.tasks * h.parts)) > TURNS) return refuse(d, "rows in more pieces than barriers");
            deal_phase(d, k, end, &h);
            qn_phase *p = &l->phases[d->parts[k].phase];
            p->parts = (u8)log_of(h.parts), p->rows = (u8)log_of(h.rows);
            if (!d->write) continue;
            end_phase(d, d->parts[k].phase);
            mark_stages(d, before, p);
        }
        if (d->n - l->stage_at[d->block] > UINT16_MAX) return refuse(d, "more stages of weights than a list can number");
    }
    l->stage_at[l->n_blocks] = d->n;
    l->n_stages = (int)d->n;
    return true;
}

/* Where each warp's tasks begin; a warp that has none has one of no phase. */
static void count_tasks(qn_lists *l, const u32 *n)
{
    u32 at = 0;
    for (int w = 0; w < l->n_blocks * QN_P_WARPS; w++) {
        l->task_at[w] = at;
        at += n[w] ? n[w] : 1;
    }
    l->task_at[l->n_blocks * QN_P_WARPS] = at;
    l->n_tasks = (int)at;
}

/* Tasks lie where their stages do. */
static void place_tasks(qn_lists *l, int b)
{
    for (u32 t = l->task_at[b * QN_P_WARPS]; t < l->task_at[(b + 1) * QN_P_WARPS]; t++)
        if (l->tasks[t].phase != QN_NO_PHASE) l->tasks[t].at += l->stages[l->stage_at[b] + l->tasks[t].stage].to;
}

static bool fill_lists(dealer *d, qn_err *e)
{
    qn_lists *l = d->l;
    bool ok = deal_all(d); /* how many */
    if (ok) count_tasks(l, d->n_tasks);
    l->stages = ok ? qn_new_array(d->n, sizeof *l->stages, e) : NULL;
    l->tasks = l->stages ? qn_new_array((size_t)l->n_tasks, sizeof *l->tasks, e) : NULL;
    if (!l->tasks) return false;
    for (int t = 0; t < l->n_tasks; t++) l->tasks[t].phase = QN_NO_PHASE;
    d->write = true;
    ok = deal_all(d);
    for (int b = 0; ok && b < l->n_blocks; b++)
        if ((ok = place(l, b) || refuse(d, "rows too long for shared memory"))) place_tasks(l, b);
    return ok;
}

bool qn_deal(qn_lists *l, const qn_part *parts, int n_parts, size_t smem, const char **why, qn_err *e)
{
    dealer d = { .l = l, .parts = parts, .n_parts = n_parts };
    const size_t fixed = STATIC_SMEM + (size_t)l->x_bytes + l->form_bytes, warps = (size_t)l->n_blocks * QN_P_WARPS;
    if (smem < fixed + STAGES_LEAST * RING_LEAST) return *why = "too little shared memory", false;
    l->ring_bytes = (u32)(smem - fixed) & ~127u;
    l->smem = smem - STATIC_SMEM;
    l->stage_at = qn_new_array((size_t)l->n_blocks + 1, sizeof *l->stage_at, e);
    l->task_at = l->stage_at ? qn_new_array(warps + 1, sizeof *l->task_at, e) : NULL;
    d.n_tasks = l->task_at ? qn_new_array(warps, sizeof *d.n_tasks, e) : NULL;
    if (!d.n_tasks) return false;
    const bool ok = fill_lists(&d, e);
    qn_free(d.n_tasks);
    if (d.why) *why = d.why;
    return ok;
}
