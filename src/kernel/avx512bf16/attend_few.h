/* attend_few.h - up to FEW queries, as in decode: lanes are tokens in the first product and values in the second, and pages are
 * decoded in registers on their way into the products. Up to 6 queries take four vectors at once: fewer sums than 24 would wait
 * for each other. */
#ifndef QN_ATTEND_FEW_H
#define QN_ATTEND_FEW_H

#include "kernel/avx512bf16/attend_group.h"

#define SUMS 24

/* Scores of n queries for m pages of the block, from page `page` on */
INLINE void score_few(group *g, const view *b, int page, const int n, const int m)
{
    __m512 sum[SUMS];
    const u32 *x = g->x;
    UNROLL for (int r = 0; r < n * m; r++) sum[r] = _mm512_setzero_ps();
    for (int i = 0; i < g->a->d_head / 2; i++, x += FEW) {
        __m512i k[4];
        UNROLL for (int j = 0; j < m; j++) {
            k[j] = pair_k(b->k[page + j], i);
            fetch_ahead(b->next_k[page + j] + i * 4 * QN_PAGE);
        }
        UNROLL for (int r = 0; r < n; r++) {
            const __m512i q = spread(x + r);
            UNROLL for (int j = 0; j < m; j++) sum[r * m + j] = dot(sum[r * m + j], q, k[j]);
        }
    }
    UNROLL for (int r = 0; r < n; r++)
        UNROLL for (int j = 0; j < m; j++) _mm512_store_ps(g->s + r * BLOCK + (page + j) * LANES, sum[r * m + j]);
}

/* Values i.. of n queries, m vectors of them, over pairs begin..end-1 of tokens */
INLINE void blend_few(group *g, const view *b, int i, int begin, int end, const int n, const int m)
{
    __m512 sum[SUMS];
    UNROLL for (int r = 0; r < n; r++)
        UNROLL for (int j = 0; j < m; j++) sum[r * m + j] = _mm512_loadu_ps(g->acc + r * g->d + i + j * LANES);
    for (int t = begin; t < end; t++) {
        const int page = 2 * t / QN_PAGE;
        const size_t at = (size_t)(2 * t % QN_PAGE) * b->row_bytes;
        const u8 *v = b->v[page] + at, *next = b->next_v[page] + at + 2 * i;
        __m512i value[4];
        UNROLL for (int j = 0; j < m; j++) {
            value[j] = pair_v(v, v + b->row_bytes, i + j * LANES, g->a->d_head - i - j * LANES);
            if (j % 2 == 0) fetch_ahead(next + 2 * j * LANES), fetch_ahead(next + b->row_bytes + 2 * j * LANES);
        }
        UNROLL for (int r = 0; r < n; r++) {
            const __m512i p = spread(g->p + r * (BLOCK / 2) + t);
            UNROLL for (int j = 0; j < m; j++) sum[r * m + j] = dot(sum[r * m + j], p, value[j]);
        }
    }
    UNROLL for (int r = 0; r < n; r++)
        UNROLL for (int j = 0; j < m; j++) _mm512_storeu_ps(g->acc + r * g->d + i + j * LANES, sum[r * m + j]);
}

/* Query q and pair t of tokens, of which it sees what the bits of seen say */
static void blend_pair(group *g, const view *b, int q, int t, u32 seen)
{
    const u8 *v = b->v[2 * t / QN_PAGE] + (size_t)(2 * t % QN_PAGE) * b->row_bytes;
    for (int i = 0; i < g->d; i += LANES) {
        float *acc = g->acc + q * g->d + i;
        const __m512i value = _mm512_and_si512(pair_v(v, v + b->row_bytes, i, g->a->d_head - i), spread(&seen));
        _mm512_storeu_ps(acc, dot(_mm512_loadu_ps(acc), spread(g->p + q * (BLOCK / 2) + t), value));
    }
}

INLINE void score_block_few(group *g, const view *b, const int n)
{
    const int m = n <= SUMS / 4 ? 4 : 2;
    for (int page = 0; page < BLOCK_PAGES; page += m) score_few(g, b, page, n, m);
}

INLINE void blend_block_few(group *g, const view *b, int begin, int end, const int n)
{
    int i = 0;
    for (; n <= SUMS / 4 && i + 3 * LANES < g->d; i += 4 * LANES) blend_few(g, b, i, begin, end, n, 4);
    for (; i + LANES < g->d; i += 2 * LANES) blend_few(g, b, i, begin, end, n, 2);
    for (; i < g->d; i += LANES) blend_few(g, b, i, begin, end, n, 1);
}

/* A number of queries known only now */
#define EACH_COUNT(call) \
    case 12: call(12); break; case 11: call(11); break; case 10: call(10); break; case 9: call(9); break; \
    case 8: call(8); break; case 7: call(7); break; case 6: call(6); break; case 5: call(5); break; \
    case 4: call(4); break; case 3: call(3); break; case 2: call(2); break; default: call(1); break;

/* Scores of query i to weights. Returns what the sums so far must be scaled with. */
static float weigh_one(group *g, int i)
{
    const float *s = g->s + i * BLOCK;
    __m512 w[4], most = _mm512_set1_ps(-INFINITY);
    UNROLL for (int j = 0; j < 4; j++) most = _mm512_max_ps(w[j] = _mm512_load_ps(s + j * LANES), most); /* NaN is passed over */
    const float here = _mm512_reduce_max_ps(most), before = g->top[i], now = here > before ? here : before;
    const __m512 base = _mm512_set1_ps(now == -INFINITY ? 0 : now);
    UNROLL for (int j = 0; j < 4; j++) w[j] = exp2_below(_mm512_sub_ps(w[j], base));
    u32 *p = g->p + i * (BLOCK / 2);
    _mm512_store_si512(p, (__m512i)_mm512_cvtne2ps_pbh(w[1], w[0]));
    _mm512_store_si512(p + LANES, (__m512i)_mm512_cvtne2ps_pbh(w[3], w[2]));
    const float keep = now == before ? 1 : two_to(before - now);
    g->top[i] = now;
    g->sum[i] = g->sum[i] * keep + sum((vf)_mm512_add_ps(_mm512_add_ps(w[0], w[1]), _mm512_add_ps(w[2], w[3])));
    return keep;
}

static void weigh_few(group *g, int block)
{
    for (int i = 0; i < g->at.n; i++) {
        const int begin = g->from[i] - block * BLOCK, end = g->to[i] - block * BLOCK;
        float *s = g->s + i * BLOCK, *acc = g->acc + i * g->d;
        for (int t = 0; t < begin && t < BLOCK; t++) s[t] = -INFINITY;
        for (int t = qn_maxi(end, 0); t < BLOCK; t++) s[t] = -INFINITY;
        const float keep = weigh_one(g, i);
        if (keep == 1) continue;
        for (int k = 0; k < g->d; k += LANES) _mm512_storeu_ps(acc + k, _mm512_loadu_ps(acc + k) * _mm512_set1_ps(keep));
    }
}

INLINE int within(int token) { return qn_maxi(0, qn_mini(BLOCK, token)); }

/* Tokens begin..end-1 of one query */
static void blend_alone(group *g, const view *b, int q, int begin, int end)
{
    for (int t = begin / 2; 2 * t < end && begin < end; t++)
        blend_pair(g, b, q, t, (2 * t >= begin ? SEEN_FIRST : 0) | (2 * t + 1 < end ? SEEN_SECOND : 0));
}

static void take_block_few(group *g, int block)
{
    const view b = view_block(g, block);
    const int n = g->at.n;
#define CALL(n) score_block_few(g, &b, n)
    switch (n) { EACH_COUNT(CALL) }
#undef CALL
    weigh_few(g, block);
    int begin = 0, end = BLOCK; /* what all of them see, in whole pairs */
    for (int i = 0; i < n; i++) {
        begin = qn_maxi(begin, within(g->from[i] - block * BLOCK));
        end = qn_mini(end, within(g->to[i] - block * BLOCK));
    }
    begin = (begin + 1) / 2 * 2;
    end = end / 2 * 2;
    if (begin >= end) begin = end = BLOCK;
    for (int i = 0; i < n; i++)
        blend_alone(g, &b, i, within(g->from[i] - block * BLOCK), qn_mini(begin, within(g->to[i] - block * BLOCK)));
#define CALL(n) blend_block_few(g, &b, begin / 2, end / 2, n)
    switch (n) { EACH_COUNT(CALL) }
#undef CALL
    for (int i = 0; i < n; i++)
        blend_alone(g, &b, i, qn_maxi(end, within(g->from[i] - block * BLOCK)), within(g->to[i] - block * BLOCK));
}

#endif
