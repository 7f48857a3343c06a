/* deal.c - rows to blocks, rows to stages, stages to places in the ring. All of it is known before a token is made, so the
 * device decides nothing: a stage's place and what must have been used before it is overwritten are written down here. The ring
 * is one run of bytes, filled in order; a token's first stage begins at its start, like every token's. */
#include "kernel/cuda/deal.h"

#include <string.h>

#define STATIC_SMEM 6400u  /* what the kernel declares for itself, at most */
#define STAGE 20480u       /* bytes of a stage, unless whole rows make it somewhat longer: one copy is better than sixteen */
#define STAGE_WHOLE 36864u
#define STAGES_LEAST 4u    /* that the ring has room for */
#define TILE 8u            /* rows */

typedef struct dealer {
    qn_lists *l;
    const qn_part *parts;
    int n_parts;
    u32 stage, whole;       /* bytes */
    qn_stage *out;          /* NULL: they are only counted */
    u16 *groups;            /* NULL: likewise */
    u32 n, n_groups;        /* of groups: numbers written */
    u32 most, largest;      /* of the phase at hand: most stages of a block, bytes of the largest */
} dealer;

/* ---- a row in chunks of 64 bytes of values */

static u32 chunk_cols(u32 kind) { return kind == QN_W_f32 ? 16 : kind <= QN_W_bf16 ? 32 : kind == QN_W_q8 ? 64 : 128; }
static u32 chunk_high(u32 kind) { return kind == QN_W_q6 ? 32 : 0; }
static u32 chunk_scale(u32 kind) { return kind < QN_W_q8 ? 0 : kind == QN_W_q8 ? 4 : kind == QN_W_q4 ? 8 : 16; }
static u32 pad16(u32 n) { return (n + 15) & ~15u; }

static u32 value_bytes(const qn_wmat *w)
{
    const u32 n = w->cols;
    return w->kind == QN_W_f32 ? 4 * n : w->kind <= QN_W_bf16 ? 2 * n : w->kind == QN_W_q8 ? n : n / 2;
}

static u32 n_chunks(const qn_wmat *w) { return (w->cols + chunk_cols(w->kind) - 1) / chunk_cols(w->kind); }

/* Chunks of a stage of so many rows; a multiple of 8, so that every plane's part begins at a multiple of 16 bytes. */
static u32 seg_chunks(const dealer *d, const qn_wmat *w, u32 rows)
{
    const u32 each = 64 + chunk_high(w->kind) + chunk_scale(w->kind), n = d->stage / (each * rows) & ~7u;
    return n ? n : 8;
}

/* ---- items and stages */

typedef struct item { const qn_part *p; u32 row, rows_a, rows_b; } item;

static qn_stage stage_of(const item *i, u32 chunk, u32 n)
{
    const qn_wmat *w = &i->p->a;
    const u32 values = pad16(value_bytes(w)), all = n_chunks(w), rows = i->rows_a + i->rows_b;
    qn_stage s = { .kind = (u8)w->kind, .rows_a = (u8)i->rows_a, .rows_b = (u8)i->rows_b, .chunk = (u16)chunk,
                   .n_chunks = (u16)n, .row = i->p->first + i->row, .row_bytes = w->row_bytes };
    const u64 first = (u64)i->row * w->row_bytes + 64 * (u64)chunk;
    s.a = w->at + first;
    s.b = i->p->gated ? i->p->b + first : s.a + TILE * (u64)w->row_bytes;
    s.bias = i->p->bias ? i->p->bias + 4 * (u64)i->row : 0;
    s.bias2 = i->p->bias2 ? i->p->bias2 + 4 * (u64)i->row : 0;
    const u32 left = values - 64 * chunk;
    s.n_units = (u16)((left < 64 * n ? left : 64 * n) / 16);
    if (n == all) {
        s.pitch = w->row_bytes;
        s.high_at = (u16)w->high, s.scale_at = (u16)w->scale;
        s.bytes = rows * w->row_bytes;
        return s;
    }
    const u32 blocks = (w->cols - chunk * chunk_cols(w->kind) + 31) / 32, most = n * chunk_cols(w->kind) / 32;
    const u32 here = blocks < most ? blocks : most;
    s.n_value = (u16)(16 * s.n_units);
    s.n_high = (u16)pad16(chunk_high(w->kind) ? 8 * here : 0);
    s.n_scale = (u16)pad16(chunk_scale(w->kind) * here * 32 / chunk_cols(w->kind));
    s.high = w->high ? w->high + chunk_high(w->kind) * chunk - 64 * chunk : 0;
    s.scale = w->scale ? w->scale + chunk_scale(w->kind) * chunk - 64 * chunk : 0;
    s.high_at = s.n_value;
    s.scale_at = (u16)(s.n_value + s.n_high);
    const u32 row = (u32)s.n_value + s.n_high + s.n_scale;
    s.pitch = row % 128 ? row : row + 64; /* neighbouring rows in other banks */
    s.bytes = rows * row;
    return s;
}

static u32 room_of(const qn_stage *s) { return (s->pitch * (u32)(s->rows_a + s->rows_b) + 127) & ~127u; }

/* Stage `at` of its phase goes to team at % teams; so do the sums of an item's stages. */
static void give_to_team(qn_stage *s, u32 teams, u32 at, u32 n_of_item)
{
    const u32 size = QN_P_WARPS / teams, warps = s->rows_b ? size / 2 : size;
    s->each = (u16)((s->n_chunks + warps - 1u) / warps);
    u32 mask = 0;
    for (u32 k = 0; k < n_of_item && k < teams; k++) mask |= ((1u << size) - 1) << (at + k) % teams * size;
    s->warps_a = (u16)(s->rows_b ? mask & 0x5555 : mask); /* even warps have the first half */
    s->warps_b = (u16)(s->rows_b ? mask & 0xAAAA : 0);
}

/* at: stages of this phase so far; returns those of the item. */
static u32 put_item(dealer *d, const item *i, u32 at, u32 slot)
{
    const qn_wmat *w = &i->p->a;
    const u32 all = n_chunks(w), rows = i->rows_a + i->rows_b, n = rows * w->row_bytes <= d->whole ? all : seg_chunks(d, w, rows);
    const u32 stages = (all + n - 1) / n;
    for (u32 k = 0; k < stages; k++, d->n++) {
        qn_stage s = stage_of(i, k * n, all - k * n < n ? all - k * n : n);
        s.left = (u16)(stages - 1 - k);
        s.slot = (u16)slot;
        if (room_of(&s) > d->largest) d->largest = room_of(&s);
        if (!d->out) continue;
        give_to_team(&s, d->l->phases[i->p->phase].teams, at, stages);
        d->out[d->n] = s;
    }
    return stages;
}

/* Rows of an item: two tiles of a matrix where they make one stage, the same rows of both matrices where they are gated. */
static u32 item_tiles(const dealer *d, const qn_part *p)
{
    return p->gated || 2 * TILE * p->a.row_bytes > d->stage ? 1 : 2;
}

static u32 tiles_of(const qn_part *p) { return (p->a.rows + TILE - 1) / TILE; }

static void put_number(dealer *d, u32 n)
{
    if (d->groups) d->groups[d->n_groups] = (u16)n;
    d->n_groups++;
}

/* Block b's share of the phase that begins with part `begin`; parts of it are neighbours. */
static void deal_phase(dealer *d, int begin, int end, int b)
{
    const u64 n = (u64)d->l->n_blocks, turn = ((u64)b + (u64)d->parts[begin].phase * 37) % n;
    u64 total = 0, before = 0;
    for (int k = begin; k < end; k++) total += tiles_of(&d->parts[k]);
    const u64 from = turn * total / n, to = (turn + 1) * total / n;
    u32 items = 0, stages = 0, closed = 0, groups = 0;
    const u32 how_many = d->n_groups++;
    for (int k = begin; k < end; k++) {
        const qn_part *p = &d->parts[k];
        const u64 tiles = tiles_of(p), lo = from > before ? from - before : 0, hi = to > before ? to - before : 0;
        const u32 last = (u32)(hi < tiles ? hi : tiles), step = item_tiles(d, p);
        for (u32 t = (u32)(lo < tiles ? lo : tiles); t < last; t += step) {
            const u32 row = TILE * t, left = p->a.rows - row, most = step == 2 && t + 1 < last ? 2 * TILE : TILE;
            const u32 rows = left < most ? left : most;
            item i = { .p = p, .row = row, .rows_a = rows < TILE ? rows : TILE, .rows_b = rows > TILE ? rows - TILE : 0 };
            if (p->gated) i.rows_b = i.rows_a;
            stages += put_item(d, &i, stages, items++);
            const bool phase_ends = t + step >= last && before + last == to;
            if (items < QN_P_ITEMS && !phase_ends) continue;
            put_number(d, stages - closed);
            put_number(d, items);
            closed = stages, items = 0, groups++;
        }
        before += tiles;
    }
    if (d->groups) d->groups[how_many] = (u16)groups;
    if (stages > d->most) d->most = stages;
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

static void place(qn_lists *l, int b)
{
    qn_stage *s = l->stages + l->stage_at[b];
    const u32 n = l->stage_at[b + 1] - l->stage_at[b];
    u32 at = 0;
    for (u32 i = 0; i < n; i++) {
        if (at + room_of(&s[i]) > l->ring_bytes) at = 0;
        s[i].to = at;
        at += room_of(&s[i]);
    }
    for (u32 i = 0; i < n; i++) s[i].back = back_of(s, n, i);
}

/* ---- all of it */

static int phase_end(const dealer *d, int begin)
{
    int end = begin;
    while (end < d->n_parts && d->parts[end].phase == d->parts[begin].phase) end++;
    return end;
}

/* How many teams: as many as there are stages at once, but half of the ring should be on its way. Counts all on the way. */
static void form_teams(dealer *d)
{
    u32 *numbers = d->l->stage_at; /* not in use yet: numbers of each block's groups */
    memset(numbers, 0, ((size_t)d->l->n_blocks + 1) * sizeof *numbers);
    for (int k = 0, end; k < d->n_parts; k = end) {
        end = phase_end(d, k);
        d->most = d->largest = 0;
        for (int b = 0; b < d->l->n_blocks; b++) {
            d->n_groups = 0;
            deal_phase(d, k, end, b);
            numbers[b] += d->n_groups;
        }
        u32 teams = 1;
        while (teams < 8 && 2 * teams <= d->most && 4 * teams * d->largest <= d->l->ring_bytes) teams *= 2;
        d->l->phases[d->parts[k].phase].teams = teams;
    }
    u32 most = 0;
    for (int b = 0; b < d->l->n_blocks; b++) most = numbers[b] > most ? numbers[b] : most;
    d->l->n_groups = (int)((most + 7) & ~7u);
}

static void deal_all(dealer *d)
{
    qn_lists *l = d->l;
    d->n = 0;
    for (int b = 0; b < l->n_blocks; b++) {
        l->stage_at[b] = d->n;
        d->n_groups = (u32)b * (u32)l->n_groups;
        for (int k = 0, end; k < d->n_parts; k = end) {
            end = phase_end(d, k);
            const u32 before = d->n;
            const int phase = d->parts[k].phase;
            deal_phase(d, k, end, b);
            if (d->n == before || phase + 1 >= l->n_phases || l->phases[phase + 1].op != QN_I_attend) continue;
            d->out[before].flags |= QN_S_kv;
            d->out[before].att = (u16)l->phases[phase + 1].index;
        }
    }
    l->stage_at[l->n_blocks] = d->n;
    l->n_stages = (int)d->n;
}

bool qn_deal(qn_lists *l, const qn_part *parts, int n_parts, size_t smem, const char **why, qn_err *e)
{
    dealer d = { .l = l, .parts = parts, .n_parts = n_parts };
    const size_t fixed = STATIC_SMEM + (size_t)l->x_bytes + l->form_bytes + QN_P_SUMS;
    const size_t guess = 64 * (size_t)l->n_phases; /* bytes of groups, more than there will be */
    if (smem < fixed + guess + STAGES_LEAST * 8192) return *why = "too little shared memory", false;
    l->ring_bytes = (u32)(smem - fixed - guess) & ~127u;
    d.stage = (u32)qn_minz(STAGE, l->ring_bytes / STAGES_LEAST - 1024); /* some room to pad rows */
    d.whole = (u32)qn_minz(STAGE_WHOLE, l->ring_bytes / STAGES_LEAST);
    l->stage_at = qn_new_array((size_t)l->n_blocks + 1, sizeof *l->stage_at, e);
    if (!l->stage_at) return false;
    form_teams(&d);
    const size_t room = (2 * (size_t)l->n_groups + 127) & ~(size_t)127;
    if (smem < fixed + room + STAGES_LEAST * 8192) return *why = "too little shared memory", false;
    l->ring_bytes = (u32)(smem - fixed - room) & ~127u;
    l->smem = smem - STATIC_SMEM;
    l->groups = qn_new_array((size_t)l->n_blocks * (size_t)l->n_groups, sizeof *l->groups, e);
    d.groups = l->groups;
    d.out = l->stages = l->groups ? qn_new_array(d.n, sizeof *l->stages, e) : NULL;
    if (!l->stages) return false;
    deal_all(&d);
    for (int b = 0; b < l->n_blocks; b++) place(l, b);
    return true;
}
