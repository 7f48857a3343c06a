/* attend.h - attention with the softmax made on the way. Up to QUERIES queries (a row and a head) that look at the same KV head
 * of the same sequence are a group: they go through the tokens together, block by block, so that K and V come out of memory
 * once for all of them. attend_tile.h has the two products; here are the softmax between them, the chunks, and the shares of
 * the lanes.
 *
 * The law of rows: a query's own state (top, sum, acc) changes block by block, and blocks and chunks are counted from the start
 * of the sequence. Which queries came along, where a prompt was cut and who took which chunk is not seen. Where a token is
 * seen by some queries of a tile and not by others, each query goes alone: weight zero times a value that is no number would
 * not be zero. */
#ifndef QN_GENERIC_ATTEND_H
#define QN_GENERIC_ATTEND_H

#include <math.h>

#define QUERIES 48
#include "kernel/generic/attend_share.h"
#include "kernel/generic/attend_tile.h"
#include "kernel/generic/vexp.h"

static_assert(QUERIES % TILE_ROWS == 0, "whole tiles");

typedef struct query {
    float *y;
    int first, last;       /* tokens that it sees */
    float top, sum;        /* of the chunk: largest score so far; sum of e^(score - top) */
    float all_top, all_sum; /* of the chunks before */
} query;

struct group {
    const qn_attend *a;
    place at;
    const i32 *pages;      /* block table of the sequence */
    int d;                 /* d_head rounded up to whole vectors */
    int first, last;       /* tokens that anyone sees */
    query q[QUERIES];
    _Alignas(64) float x[QUERIES * QN_KV_HEAD_MOST];    /* by tiles: [d_head][TILE_ROWS], scaled */
    _Alignas(64) float acc[QUERIES * QN_KV_HEAD_MOST];  /* [n, d] weighted values of the chunk */
    _Alignas(64) float all[QUERIES * QN_KV_HEAD_MOST];  /* [n, d] of the chunks before it */
    _Alignas(64) float s[TILE_ROWS * BLOCK];            /* scores, then weights, of a tile */
};

static void open_group(group *g, const qn_attend *a, const place *p)
{
    const int d = a->d_head;
    g->a = a;
    g->at = *p;
    g->pages = a->at->pages + a->at->first[p->row];
    g->d = (d + LANES - 1) / LANES * LANES;
    for (int i = 0; i < p->n; i++) {
        const int row = row_of(a, p, i);
        const size_t from = head_of(a, p, i) * (size_t)d;
        float *x = g->x + i / TILE_ROWS * TILE_ROWS * d + i % TILE_ROWS;
        for (int k = 0; k < d; k++) x[k * TILE_ROWS] = a->q[from + (size_t)k] * a->scale;
        g->q[i] = (query){ .y = a->y + from, .first = first_seen(a, row), .last = a->at->pos[row] };
    }
    g->first = g->q[0].first;
    g->last = g->q[p->n - 1].last;
}

/* ---- the softmax */

INLINE float e_to(float x) { return vexp_below(splat(x))[0]; }

/* Tokens of a block that a query sees, counted within it; none: begin >= end */
INLINE int block_begin(const query *q, int block) { return qn_maxi(0, q->first - block * BLOCK); }
INLINE int block_end(const query *q, int block) { return qn_mini(BLOCK, q->last + 1 - block * BLOCK); }

static void hide(float *s, int begin, int end)
{
    for (int t = 0; t < begin; t++) s[t] = -INFINITY;
    for (int t = end; t < BLOCK; t++) s[t] = -INFINITY;
}

/* Scores to weights. Returns what the sums so far must be scaled with. */
static float weigh(query *q, float *s)
{
    vf most = load(s);
    for (int t = LANES; t < BLOCK; t += LANES) most = vmax(load(s + t), most); /* of two, one NaN, the second is kept */
    const float here = top(most), now = here > q->top ? here : q->top;
    const vf base = splat(now == -INFINITY ? 0 : now);
    vf total = splat(0);
    for (int t = 0; t < BLOCK; t += LANES) {
        const vf w = vexp_below(load(s + t) - base);
        store(s + t, w);
        total += w;
    }
    const float keep = now == q->top ? 1 : e_to(q->top - now);
    q->top = now;
    q->sum = q->sum * keep + sum(total);
    return keep;
}

static void scale_row(float *x, int d, float by)
{
    for (int i = 0; i < d; i += LANES) store(x + i, load(x + i) * splat(by));
}

/* A chunk in which nothing has weight changes nothing. */
static void join_query(group *g, int i)
{
    query *q = &g->q[i];
    float *all = g->all + i * g->d;
    const float *acc = g->acc + i * g->d;
    if (q->sum == 0) return;
    if (q->all_sum == 0) {
        memcpy(all, acc, (size_t)g->d * sizeof *all);
        q->all_top = q->top;
        q->all_sum = q->sum;
        return;
    }
    const float now = q->top > q->all_top ? q->top : q->all_top;
    const float before = e_to(q->all_top - now), here = e_to(q->top - now);
    for (int k = 0; k < g->d; k += LANES) store(all + k, vfma(load(acc + k), splat(here), load(all + k) * splat(before)));
    q->all_sum = q->all_sum * before + q->sum * here;
    q->all_top = now;
}

static void join_chunk(group *g)
{
    for (int i = 0; i < g->at.n; i++) join_query(g, i);
}

static void finish_group(group *g)
{
    for (int i = 0; i < g->at.n; i++)
        for (int j = 0; j < g->a->d_head; j++) g->q[i].y[j] = g->all[i * g->d + j] / g->q[i].all_sum;
}

/* ---- a chunk */

/* Weights times values: what all queries of the tile see together, what is before and behind it one by one. */
INLINE void blend_rows(group *g, const qn_dtype type, blending *b, int block, int from, int n)
{
    const int d_head = g->a->d_head;
    int begin = 0, end = BLOCK;
    for (int i = from; i < from + n; i++) {
        begin = qn_maxi(begin, block_begin(&g->q[i], block));
        end = qn_mini(end, block_end(&g->q[i], block));
    }
    const float *p = b->p;
    float *acc = b->acc;
    if (begin >= end) begin = end = BLOCK; /* nothing in common */
    for (int part = 0; part < 3; part++) {
        for (int i = 0; i < (part == 1 ? 1 : n); i++) {
            const query *q = &g->q[from + i];
            b->p = p + i * BLOCK;
            b->acc = acc + i * g->d;
            b->begin = part == 0 ? block_begin(q, block) : part == 1 ? begin : end;
            b->end = part == 0 ? qn_mini(begin, block_end(q, block)) : part == 1 ? end : block_end(q, block);
            if (b->begin >= b->end) continue;
            if (part == 1) blend(type, b, d_head, n);
            else blend_n(type, b, d_head, 1);
        }
    }
}

typedef struct block_keys { const u8 *k[BLOCK_PAGES], *next[BLOCK_PAGES]; } block_keys;

INLINE void take_tile(group *g, const qn_dtype type, const block_keys *keys, blending *b, int block, int from, int n)
{
    scores(type, g->x + from * g->a->d_head, g->a->d_head, keys->k, keys->next, g->s, n);
    for (int i = 0; i < n; i++) {
        query *q = &g->q[from + i];
        const int begin = block_begin(q, block), end = block_end(q, block);
        if (begin >= end) continue;
        if (begin > 0 || end < BLOCK) hide(g->s + i * BLOCK, begin, end);
        const float keep = weigh(q, g->s + i * BLOCK);
        if (keep != 1) scale_row(g->acc + (from + i) * g->d, g->d, keep);
    }
    b->p = g->s;
    b->acc = g->acc + from * g->d;
    blend_rows(g, type, b, block, from, n);
}

/* The K of a page; what nobody sees may not exist: another page stands for it. */
INLINE const u8 *page_at(const group *g, const u8 *head, int page)
{
    page = qn_maxi(g->first / QN_PAGE, qn_mini(g->last / QN_PAGE, page));
    return head + (size_t)g->pages[page] * g->a->page_stride;
}

INLINE void take_block(group *g, const qn_dtype type, int block)
{
    const qn_attend *a = g->a;
    const size_t part = qn_kv_part_bytes(type, a->d_head);
    const u8 *head = a->cache + qn_kv_head_at(type, a->d_head, g->at.kv);
    blending b = { .row_bytes = part / QN_PAGE, .d = g->d };
    block_keys keys;
    for (int i = 0; i < BLOCK_PAGES; i++) {
        keys.k[i] = page_at(g, head, block * BLOCK_PAGES + i);
        keys.next[i] = page_at(g, head, (block + 1) * BLOCK_PAGES + i);
        b.v[i] = keys.k[i] + part;
        b.next[i] = keys.next[i] + part;
    }
    for (int from = 0; from < g->at.n; from += TILE_ROWS) {
        const int n = qn_mini(TILE_ROWS, g->at.n - from);
        if (g->q[from + n - 1].last >= block * BLOCK && g->q[from].first < (block + 1) * BLOCK)
            take_tile(g, type, &keys, &b, block, from, n);
    }
}

INLINE void take_chunk(group *g, const qn_dtype type, int chunk)
{
    const int per = QN_CHUNK / BLOCK, last = qn_mini(g->last / BLOCK, chunk * per + per - 1);
    for (int i = 0; i < g->at.n; i++) {
        g->q[i].top = -INFINITY;
        g->q[i].sum = 0;
    }
    memset(g->acc, 0, (size_t)(g->at.n * g->d) * sizeof *g->acc);
    for (int block = qn_maxi(g->first / BLOCK, chunk * per); block <= last; block++) take_block(g, type, block);
}

/* ---- parts */

static void leave_part(const group *g, int chunk)
{
    const size_t d = (size_t)g->a->d_head;
    for (int i = 0; i < g->at.n; i++) {
        float *part = part_of(g->a, &g->at, i, chunk);
        memcpy(part, g->acc + i * g->d, d * sizeof *part);
        part[d] = g->q[i].top;
        part[d + 1] = g->q[i].sum;
    }
}

static void fetch_part(group *g, int chunk)
{
    const size_t d = (size_t)g->a->d_head;
    for (int i = 0; i < g->at.n; i++) {
        const float *part = part_of(g->a, &g->at, i, chunk);
        memcpy(g->acc + i * g->d, part, d * sizeof *part);
        g->q[i].top = part[d];
        g->q[i].sum = part[d + 1];
    }
}

#endif
