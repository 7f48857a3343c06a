/* attend.h - attention with the softmax made on the way: one pass over the pages, oldest first. Up to QUERIES queries (a row
 * and a head) that look at the same KV head of the same sequence go together, so a page is decoded once for all of them.
 *
 * The law of rows: a query's own state (top, sum, acc) changes page by page, and pages begin at multiples of QN_PAGE tokens
 * of the sequence: which queries came along, and where a prompt was cut, is not seen. */
#ifndef QN_GENERIC_ATTEND_H
#define QN_GENERIC_ATTEND_H

#include <math.h>

#include "kernel/generic/vexp.h"
#include "kernel/op.h"

#define QUERIES 16
#define HEAD_MOST 512      /* the model refuses larger heads */
#define STRIDE (HEAD_MOST + 16) /* between tokens of a decoded page: a constant, and no two of them share a set of the cache */
static_assert(QN_PAGE % LANES == 0, "scores of a page are whole vectors");

typedef struct query {
    float *y;
    int first, last;       /* tokens that it sees */
    float top, sum;        /* largest score so far; sum of e^(score - top) */
    _Alignas(64) float p[QN_PAGE]; /* scores of the page, then weights of its tokens */
} query;

typedef struct group {
    const qn_attend *a;
    void (*decode)(const void *blocks, float *y, size_t n);
    const i32 *pages;      /* block table of the sequence */
    int kv, n, d;          /* d: d_head rounded up to whole vectors; what is behind d_head is 0 */
    query q[QUERIES];
    _Alignas(64) float x[QUERIES * HEAD_MOST];    /* [n, d] queries, scaled */
    _Alignas(64) float acc[QUERIES * HEAD_MOST];  /* [n, d] sums of weighted values */
    _Alignas(64) float page[QN_PAGE * STRIDE];    /* [QN_PAGE, d] K, then V, of one page */
} group;

static void join_group(group *g, int row, int head)
{
    const qn_attend *a = g->a;
    const size_t from = ((size_t)row * (size_t)a->n_head + (size_t)head) * (size_t)a->d_head, to = (size_t)g->n * (size_t)g->d;
    const int last = a->at->pos[row];
    for (int i = 0; i < a->d_head; i++) g->x[to + (size_t)i] = a->q[from + (size_t)i] * a->scale;
    for (int i = a->d_head; i < g->d; i++) g->x[to + (size_t)i] = 0;
    memset(g->acc + to, 0, (size_t)g->d * sizeof *g->acc);
    g->q[g->n++] = (query){ .y = a->y + from, .last = last, .first = a->window ? qn_maxi(0, last - a->window + 1) : 0,
                            .top = -INFINITY };
}

/* K (part 0) or V (part 1) of a page, all of its tokens */
static void fetch(group *g, int page, int part)
{
    const qn_attend *a = g->a;
    const size_t row_bytes = qn_kv_row_bytes(a->type, a->n_kv, a->d_head);
    const u8 *at = a->cache + (size_t)g->pages[page] * a->page_stride + (size_t)(part * QN_PAGE) * row_bytes +
                   qn_dtype_bytes(a->type, (size_t)g->kv * (size_t)a->d_head);
    for (int t = 0; t < QN_PAGE; t++) g->decode(at + (size_t)t * row_bytes, g->page + t * STRIDE, (size_t)a->d_head);
}

static void score(const float *x, const float *k, int d, float *s)
{
    for (int t0 = 0; t0 < QN_PAGE; t0 += LANES) {
        vf acc[LANES];
        const float *row = k + t0 * STRIDE;
        UNROLL for (int t = 0; t < LANES; t++) acc[t] = splat(0);
        for (int i = 0; i < d; i += LANES) {
            const vf v = load(x + i);
            UNROLL for (int t = 0; t < LANES; t++) acc[t] = vfma(v, load(row + t * STRIDE + i), acc[t]);
        }
        store(s + t0, sums(acc));
    }
}

/* Scores of tokens begin..end-1 of the page to weights, 0 for the others. Returns what the sums so far must be scaled with. */
static float weigh(query *q, int begin, int end)
{
    for (int t = 0; t < begin; t++) q->p[t] = -INFINITY;
    for (int t = end; t < QN_PAGE; t++) q->p[t] = -INFINITY;
    float most = q->top;
    for (int t = 0; t < QN_PAGE; t += LANES) {
        const float here = top(load(q->p + t));
        most = here > most ? here : most;
    }
    vf total = { 0 };
    for (int t = 0; t < QN_PAGE; t += LANES) {
        const vf w = vexp(load(q->p + t) - splat(most));
        store(q->p + t, w);
        total += w;
    }
    const float keep = vexp(splat(q->top - most))[0];
    q->top = most;
    q->sum = q->sum * keep + sum(total);
    return keep;
}

INLINE void blend(float *acc, const float *v, const float *p, int begin, int end, float keep, const int n)
{
    vf s[4];
    UNROLL for (int j = 0; j < n; j++) s[j] = load(acc + j * LANES) * splat(keep);
    for (int t = begin; t < end; t++)
        UNROLL for (int j = 0; j < n; j++) s[j] = vfma(splat(p[t]), load(v + t * STRIDE + j * LANES), s[j]);
    UNROLL for (int j = 0; j < n; j++) store(acc + j * LANES, s[j]);
}

static void blend_page(float *acc, const float *v, int d, const query *q, int begin, int end, float keep)
{
    int i = 0;
    for (; i + 4 * LANES <= d; i += 4 * LANES) blend(acc + i, v + i, q->p, begin, end, keep, 4);
    for (; i < d; i += LANES) blend(acc + i, v + i, q->p, begin, end, keep, 1);
}

/* Tokens of a page that a query sees, counted within the page; none: begin >= end */
INLINE int page_begin(const query *q, int page) { return qn_maxi(0, q->first - page * QN_PAGE); }
INLINE int page_end(const query *q, int page) { return qn_mini(QN_PAGE, q->last + 1 - page * QN_PAGE); }

static bool anyone_sees(const group *g, int page)
{
    for (int i = 0; i < g->n; i++)
        if (page_begin(&g->q[i], page) < page_end(&g->q[i], page)) return true;
    return false;
}

static void take_page(group *g, int page)
{
    float keep[QUERIES];
    fetch(g, page, 0);
    for (int i = 0; i < g->n; i++) {
        query *q = &g->q[i];
        const int begin = page_begin(q, page), end = page_end(q, page);
        if (begin >= end) continue;
        score(g->x + i * g->d, g->page, g->d, q->p);
        keep[i] = weigh(q, begin, end);
    }
    fetch(g, page, 1);
    for (int i = 0; i < g->n; i++) {
        const query *q = &g->q[i];
        const int begin = page_begin(q, page), end = page_end(q, page);
        if (begin < end) blend_page(g->acc + i * g->d, g->page, g->d, q, begin, end, keep[i]);
    }
}

static void finish_group(group *g)
{
    int first = g->q[0].first, last = g->q[0].last;
    for (int i = 1; i < g->n; i++) {
        first = qn_mini(first, g->q[i].first);
        last = qn_maxi(last, g->q[i].last);
    }
    for (int page = first / QN_PAGE; page <= last / QN_PAGE; page++)
        if (anyone_sees(g, page)) take_page(g, page);
    for (int i = 0; i < g->n; i++)
        for (int j = 0; j < g->a->d_head; j++) g->q[i].y[j] = g->acc[i * g->d + j] / g->q[i].sum;
    g->n = 0;
}

static void attend(const qn_attend *a, qn_lane lane, void (*decode)(const void *blocks, float *y, size_t n))
{
    const int per_kv = a->n_head / a->n_kv, all = a->n * a->n_head;
    group g;
    g.a = a;
    g.decode = decode;
    g.n = 0;
    g.d = (a->d_head + LANES - 1) / LANES * LANES;
    if (g.d > a->d_head) memset(g.page, 0, sizeof g.page);
    for (int i = lane_begin(all, lane), end = lane_end(all, lane); i < end; i++) {
        const int kv = i / (a->n * per_kv), row = i % (a->n * per_kv) / per_kv, head = kv * per_kv + i % per_kv;
        const i32 *pages = a->at->pages + a->at->first[row];
        if (g.n && (g.n == QUERIES || g.kv != kv || g.pages != pages)) finish_group(&g);
        g.kv = kv;
        g.pages = pages;
        join_group(&g, row, head);
    }
    if (g.n) finish_group(&g);
}

#endif
