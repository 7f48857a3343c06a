/* attend_many.h - more than FEW queries, as in a prompt: lanes are queries all the way, WIDE of them at a time, so that the
 * softmax has nothing to add up across lanes. A block of K and V is decoded once for all queries of the group. Every query sees
 * the operations of attend_few.h in the same order: the bits are the same. Where a query does not see a token, its lane is
 * masked out: weight zero times a value that is no number would not be zero. */
#ifndef QN_ATTEND_MANY_H
#define QN_ATTEND_MANY_H

#include "kernel/avx512bf16/attend_group.h"

#define TALL 8                         /* tokens, or values, of a tile: 16 sums, 2 loads and 8 spreads for 16 products */
static_assert(BLOCK % TALL == 0 && LANES % TALL == 0, "whole tiles");

static void decode_block(group *g, const view *b)
{
    const int d = g->a->d_head;
    for (int page = 0; page < BLOCK_PAGES; page++) {
        for (int i = 0; i < d / 2; i++) {
            fetch_ahead(b->next_k[page] + i * 4 * QN_PAGE);
            _mm512_store_si512(g->k + i * BLOCK + page * LANES, pair_k(b->k[page], i));
        }
    }
    for (int t = 0; t < BLOCK / 2; t++) {
        const int page = 2 * t / QN_PAGE;
        const size_t at = (size_t)(2 * t % QN_PAGE) * b->row_bytes;
        const u8 *v = b->v[page] + at, *next = b->next_v[page] + at;
        for (int i = 0; i < g->d; i += LANES) {
            fetch_ahead(next + 4 * i);
            _mm512_store_si512(g->v + t * g->d + i, pair_v(v, v + b->row_bytes, i, d - i));
        }
    }
}

/* Scores of m vectors of queries for TALL tokens from t on */
INLINE void score_many(group *g, const u32 *x, int t, const int m)
{
    __m512 sum[TALL][2];
    UNROLL for (int r = 0; r < TALL; r++)
        UNROLL for (int j = 0; j < m; j++) sum[r][j] = _mm512_setzero_ps();
    const u32 *k = g->k + t;
    for (int i = 0; i < g->a->d_head / 2; i++, x += WIDE, k += BLOCK) {
        __m512i q[2];
        UNROLL for (int j = 0; j < m; j++) q[j] = _mm512_load_si512(x + j * LANES);
        UNROLL for (int r = 0; r < TALL; r++) {
            const __m512i key = spread(k + r);
            UNROLL for (int j = 0; j < m; j++) sum[r][j] = dot(sum[r][j], q[j], key);
        }
    }
    UNROLL for (int r = 0; r < TALL; r++)
        UNROLL for (int j = 0; j < m; j++) _mm512_store_ps(g->s + (t + r) * WIDE + j * LANES, sum[r][j]);
}

/* TALL values from i on, m vectors of queries. part: some do not see all tokens. */
INLINE void blend_many(group *g, float *acc, int i, const __m512 *keep, const bool part, const int m)
{
    __m512 sum[TALL][2];
    acc += i * WIDE;
    UNROLL for (int r = 0; r < TALL; r++)
        UNROLL for (int j = 0; j < m; j++) sum[r][j] = _mm512_mul_ps(_mm512_load_ps(acc + r * WIDE + j * LANES), keep[j]);
    const u32 *v = g->v + i;
    for (int t = 0; t < BLOCK / 2; t++, v += g->d) {
        __m512i p[2], seen[2];
        UNROLL for (int j = 0; j < m; j++) {
            p[j] = _mm512_load_si512(g->p + t * WIDE + j * LANES);
            if (part) seen[j] = _mm512_load_si512(g->seen + t * WIDE + j * LANES);
        }
        UNROLL for (int r = 0; r < TALL; r++) {
            const __m512i value = spread(v + r);
            UNROLL for (int j = 0; j < m; j++) {
                if (!part) sum[r][j] = dot(sum[r][j], p[j], value);
                else sum[r][j] = _mm512_mask_dpbf16_ps(sum[r][j], _mm512_test_epi32_mask(seen[j], seen[j]), (__m512bh)p[j],
                                                       (__m512bh)_mm512_and_si512(value, seen[j]));
            }
        }
    }
    UNROLL for (int r = 0; r < TALL; r++)
        UNROLL for (int j = 0; j < m; j++) _mm512_store_ps(acc + r * WIDE + j * LANES, sum[r][j]);
}

/* Lanes of the vector from query q on that see token t */
INLINE __mmask16 sees(const group *g, int q, int t)
{
    const __m512i at = _mm512_set1_epi32(t);
    return _mm512_cmple_epi32_mask(_mm512_load_si512(g->from + q), at) &
           _mm512_cmpgt_epi32_mask(_mm512_load_si512(g->to + q), at);
}

/* Takes away the scores of what is not seen, and notes it. */
static void hide_many(group *g, int q, int block, int m)
{
    for (int t = 0; t < BLOCK; t += 2) {
        for (int j = 0; j < m; j++) {
            const int token = block * BLOCK + t, at = q + j * LANES;
            const __mmask16 first = sees(g, at, token), second = sees(g, at, token + 1);
            float *s = g->s + t * WIDE + j * LANES;
            const __m512 none = _mm512_set1_ps(-INFINITY);
            _mm512_store_ps(s, _mm512_mask_mov_ps(none, first, _mm512_load_ps(s)));
            _mm512_store_ps(s + WIDE, _mm512_mask_mov_ps(none, second, _mm512_load_ps(s + WIDE)));
            _mm512_store_si512(g->seen + t / 2 * WIDE + j * LANES,
                               _mm512_or_si512(_mm512_maskz_set1_epi32(first, (i32)SEEN_FIRST),
                                               _mm512_maskz_set1_epi32(second, (i32)SEEN_SECOND)));
        }
    }
}

/* as weigh_one: token t of a page is added to those of the other pages first, then by halves as sum() does */
INLINE __m512 weigh_tokens(const float *s, u32 *p, __m512 base)
{
    __m512 sum[LANES];
    for (int t = 0; t < LANES; t += 2) {
        __m512 w[BLOCK_PAGES][2];
        UNROLL for (int j = 0; j < BLOCK_PAGES; j++) {
            UNROLL for (int k = 0; k < 2; k++)
                w[j][k] = exp2_below(_mm512_sub_ps(_mm512_load_ps(s + (j * LANES + t + k) * WIDE), base));
            _mm512_store_si512(p + (j * LANES + t) / 2 * WIDE, pair_floats(w[j][0], w[j][1]));
        }
        UNROLL for (int k = 0; k < 2; k++)
            sum[t + k] = _mm512_add_ps(_mm512_add_ps(w[0][k], w[1][k]), _mm512_add_ps(w[2][k], w[3][k]));
    }
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int t = 0; t < half; t++) sum[t] = _mm512_add_ps(sum[t], sum[t + half]);
    return sum[0];
}

/* Scores of the vector of queries from q on, j of its tile, to weights. Returns what the sums so far must be scaled with. */
INLINE __m512 weigh_many(group *g, int q, int j)
{
    const float *s = g->s + j * LANES;
    __m512 most = _mm512_set1_ps(-INFINITY);
    for (int t = 0; t < BLOCK; t++) most = _mm512_max_ps(_mm512_load_ps(s + t * WIDE), most); /* NaN is passed over */
    const __m512 before = _mm512_load_ps(g->top + q), now = _mm512_max_ps(most, before);
    const __mmask16 none = _mm512_cmp_ps_mask(now, _mm512_set1_ps(-INFINITY), _CMP_EQ_OQ);
    const __m512 total = weigh_tokens(s, g->p + j * LANES, _mm512_mask_mov_ps(now, none, _mm512_setzero_ps()));
    const __mmask16 same = _mm512_cmp_ps_mask(now, before, _CMP_EQ_OQ);
    const __m512 keep = _mm512_mask_mov_ps(exp2_below(_mm512_sub_ps(before, now)), same, _mm512_set1_ps(1));
    _mm512_store_ps(g->top + q, now);
    _mm512_store_ps(g->sum + q, _mm512_add_ps(_mm512_mul_ps(_mm512_load_ps(g->sum + q), keep), total));
    return keep;
}

/* Do all queries of the tile see the whole block? */
static bool whole(const group *g, int q, int block, int m)
{
    for (int j = 0; j < m; j++)
        if ((sees(g, q + j * LANES, block * BLOCK) & sees(g, q + j * LANES, (block + 1) * BLOCK - 1)) != 0xFFFF) return false;
    return true;
}

INLINE void take_tile_many(group *g, int q, int block, const int m)
{
    __m512 keep[2];
    float *acc = g->acc + q * g->d;
    for (int t = 0; t < BLOCK; t += TALL) score_many(g, g->x + q * g->d / 2, t, m);
    const bool part = !whole(g, q, block, m);
    if (part) hide_many(g, q, block, m);
    UNROLL for (int j = 0; j < m; j++) keep[j] = weigh_many(g, q + j * LANES, j);
    for (int i = 0; i < g->a->d_head; i += TALL) {
        if (part) blend_many(g, acc, i, keep, true, m);
        else blend_many(g, acc, i, keep, false, m);
    }
}

static void take_block_many(group *g, int block)
{
    const view b = view_block(g, block);
    decode_block(g, &b);
    for (int q = 0; q < g->at.n; q += WIDE) {
        const int last = qn_mini(q + WIDE, g->at.n) - 1;
        if (g->to[last] <= block * BLOCK || g->from[q] >= (block + 1) * BLOCK) continue;
        if (last - q < LANES) take_tile_many(g, q, block, 1);
        else take_tile_many(g, q, block, 2);
    }
}

/* As join_few, LANES queries at once */
static void join_many(group *g, int q)
{
    const __m512 sum = _mm512_load_ps(g->sum + q), all_sum = _mm512_load_ps(g->all_sum + q), zero = _mm512_setzero_ps();
    const __m512 top = _mm512_load_ps(g->top + q), all_top = _mm512_load_ps(g->all_top + q), now = _mm512_max_ps(top, all_top);
    const __mmask16 none = _mm512_cmp_ps_mask(sum, zero, _CMP_EQ_OQ), first = _mm512_cmp_ps_mask(all_sum, zero, _CMP_EQ_OQ);
    const __m512 before = exp2_below(_mm512_sub_ps(all_top, now)), here = exp2_below(_mm512_sub_ps(top, now));
    const float *from = g->acc + q / WIDE * WIDE * g->d + q % WIDE;
    float *to = g->all + (from - g->acc);
    for (int i = 0; i < g->a->d_head; i++, from += WIDE, to += WIDE) {
        const __m512 acc = _mm512_load_ps(from), all = _mm512_load_ps(to);
        const __m512 v = _mm512_mask_mov_ps(_mm512_fmadd_ps(acc, here, _mm512_mul_ps(all, before)), first, acc);
        _mm512_store_ps(to, _mm512_mask_mov_ps(v, none, all));
    }
    __m512 s = _mm512_add_ps(_mm512_mul_ps(all_sum, before), _mm512_mul_ps(sum, here));
    s = _mm512_mask_mov_ps(s, first, sum);
    _mm512_store_ps(g->all_sum + q, _mm512_mask_mov_ps(s, none, all_sum));
    const __m512 most = _mm512_mask_mov_ps(now, first, top);
    _mm512_store_ps(g->all_top + q, _mm512_mask_mov_ps(most, none, all_top));
}

#endif
