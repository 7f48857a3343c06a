/* attend_many.h - more than FEW queries, as in a prompt: lanes are queries all the way, WIDE of them at a time, so that the
 * softmax has nothing to add up across lanes. A block of K and V is decoded once for all queries of the group. Every query sees
 * the operations of attend_few.h in the same order: the bits are the same. Where some queries of a tile see a token and others do
 * not, lanes are masked out: weight zero times a value that is no number would not be zero. What nobody sees is left out. */
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

/* Of the pairs of tokens of a block: any .. any_end-1 are seen by somebody in the tile, all .. all_end-1 by everybody. */
typedef struct span { int any, any_end, all, all_end; } span;

/* What m vectors of queries from q on see; earlier queries never see later tokens than others do. */
static span span_of(const group *g, int q, int block, int m)
{
    const int last = q + m * LANES - 1, at = block * BLOCK;
    span v = { qn_maxi(g->from[q] - at, 0) / 2, (qn_mini(g->to[last] - at, BLOCK) + 1) / 2,
               (qn_maxi(g->from[last] - at, 0) + 1) / 2, qn_mini(g->to[q] - at, BLOCK) / 2 };
    if (v.all >= v.all_end) v.all = v.all_end = v.any_end;
    return v;
}

/* Pairs begin .. end-1 of tokens to the sums of TALL values from i on. part: some queries do not see all of them. */
INLINE void blend_pairs(const group *g, __m512 (*sum)[2], int i, int begin, int end, const bool part, const int m)
{
    const u32 *v = g->v + begin * g->d + i;
    for (int t = begin; t < end; t++, v += g->d) {
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
}

/* TALL values from i on, m vectors of queries */
INLINE void blend_many(const group *g, float *acc, int i, const __m512 *keep, span v, const int m)
{
    __m512 sum[TALL][2];
    acc += i * WIDE;
    UNROLL for (int r = 0; r < TALL; r++)
        UNROLL for (int j = 0; j < m; j++) sum[r][j] = _mm512_mul_ps(_mm512_load_ps(acc + r * WIDE + j * LANES), keep[j]);
    blend_pairs(g, sum, i, v.any, v.all, true, m);
    blend_pairs(g, sum, i, v.all, v.all_end, false, m);
    blend_pairs(g, sum, i, v.all_end, v.any_end, true, m);
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

/* Takes away the scores of pair t where it is not seen, and notes it. */
INLINE void hide_pair(group *g, int q, int block, int t, int m)
{
    for (int j = 0; j < m; j++) {
        const int token = block * BLOCK + 2 * t, at = q + j * LANES;
        const __mmask16 first = sees(g, at, token), second = sees(g, at, token + 1);
        float *s = g->s + 2 * t * WIDE + j * LANES;
        const __m512 none = _mm512_set1_ps(-INFINITY);
        _mm512_store_ps(s, _mm512_mask_mov_ps(none, first, _mm512_load_ps(s)));
        _mm512_store_ps(s + WIDE, _mm512_mask_mov_ps(none, second, _mm512_load_ps(s + WIDE)));
        _mm512_store_si512(g->seen + t * WIDE + j * LANES, _mm512_or_si512(_mm512_maskz_set1_epi32(first, (i32)SEEN_FIRST),
                                                                           _mm512_maskz_set1_epi32(second, (i32)SEEN_SECOND)));
    }
}

#define PAIRS (QN_PAGE / 2)            /* of tokens in a page */

/* The pages that somebody sees tokens of */
INLINE int first_page(span v) { return v.any / PAIRS; }
INLINE int pages_end(span v) { return (v.any_end + PAIRS - 1) / PAIRS; }

static void hide_many(group *g, int q, int block, span v, int m)
{
    for (int t = first_page(v) * PAIRS; t < v.all; t++) hide_pair(g, q, block, t, m);
    for (int t = v.all_end; t < pages_end(v) * PAIRS; t++) hide_pair(g, q, block, t, m);
}

/* as weigh_one: token t of a page is added to those of the other pages first, then by halves as sum() does */
INLINE __m512 weigh_tokens(const float *s, u32 *p, __m512 base, span v)
{
    const int begin = first_page(v), end = pages_end(v);
    __m512 sum[LANES];
    for (int t = 0; t < LANES; t += 2) {
        __m512 w[BLOCK_PAGES][2];
        UNROLL for (int j = 0; j < BLOCK_PAGES; j++) {
            w[j][0] = w[j][1] = _mm512_setzero_ps();
            if (j < begin || j >= end) continue;
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
INLINE __m512 weigh_many(group *g, int q, int j, span v)
{
    const float *s = g->s + j * LANES;
    __m512 most[4];                    /* one would wait for itself */
    UNROLL for (int i = 0; i < 4; i++) most[i] = _mm512_set1_ps(-INFINITY);
    for (int t = first_page(v) * QN_PAGE; t < pages_end(v) * QN_PAGE; t += 4)
        UNROLL for (int i = 0; i < 4; i++) /* NaN is passed over */
            most[i] = _mm512_max_ps(_mm512_load_ps(s + (t + i) * WIDE), most[i]);
    most[0] = _mm512_max_ps(_mm512_max_ps(most[0], most[1]), _mm512_max_ps(most[2], most[3]));
    const __m512 before = _mm512_load_ps(g->top + q), now = _mm512_max_ps(most[0], before);
    const __mmask16 none = _mm512_cmp_ps_mask(now, _mm512_set1_ps(-INFINITY), _CMP_EQ_OQ);
    const __m512 total = weigh_tokens(s, g->p + j * LANES, _mm512_mask_mov_ps(now, none, _mm512_setzero_ps()), v);
    const __mmask16 same = _mm512_cmp_ps_mask(now, before, _CMP_EQ_OQ);
    const __m512 keep = _mm512_mask_mov_ps(exp2_below(_mm512_sub_ps(before, now)), same, _mm512_set1_ps(1));
    _mm512_store_ps(g->top + q, now);
    _mm512_store_ps(g->sum + q, _mm512_add_ps(_mm512_mul_ps(_mm512_load_ps(g->sum + q), keep), total));
    return keep;
}

INLINE void take_tile_many(group *g, int q, int block, const int m)
{
    const span v = span_of(g, q, block, m);
    __m512 keep[2];
    float *acc = g->acc + q * g->d;
    for (int t = 2 * v.any / TALL * TALL; t < 2 * v.any_end; t += TALL) score_many(g, g->x + q * g->d / 2, t, m);
    hide_many(g, q, block, v, m);
    UNROLL for (int j = 0; j < m; j++) keep[j] = weigh_many(g, q + j * LANES, j, v);
    for (int i = 0; i < g->a->d_head; i += TALL) blend_many(g, acc, i, keep, v, m);
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
