/* attend_group.h - what the two ways of attention in bf16 share: the state of a group, pairs of bf16 out of f16 pages, and 2^x.
 * vdpbf16ps multiplies twice as much as a float multiply-add: queries (scaled, times log2 e), keys, values and weights are
 * rounded to bf16 on their way there; sums, scores and the softmax stay floats. */
#ifndef QN_ATTEND_GROUP_H
#define QN_ATTEND_GROUP_H

#include <immintrin.h>
#include <math.h>

#define LANES 16
#define QUERIES 128                    /* share the decoding of a block: 64 of them pay twice as much for it */
#include "kernel/generic/attend_share.h"

#define FEW 12                         /* so many at most go the way of few (attend_few.h), others the way of many */
#define WIDE 32                        /* queries of a tile of many: two vectors */
static_assert(QUERIES % WIDE == 0 && QN_PAGE == LANES, "whole tiles; a vector is a page");

struct group {
    const qn_attend *a;
    place at;
    const i32 *pages;      /* block table of the sequence */
    int d;                 /* d_head rounded up to whole vectors */
    int first, last;       /* tokens that anyone sees */
    bool few;
    _Alignas(64) i32 from[QUERIES], to[QUERIES];     /* tokens that a query sees; places without one are as the last */
    _Alignas(64) float top[QUERIES], sum[QUERIES];   /* of the chunk: largest score so far; sum of 2^(score - top) */
    _Alignas(64) float all_top[QUERIES], all_sum[QUERIES]; /* of the chunks before */
    /* few: x [d/2][FEW], acc and all [n][d]; many: by tiles, x [d/2][WIDE], acc and all [d][WIDE] */
    _Alignas(64) u32 x[QUERIES * QN_KV_HEAD_MOST / 2];
    _Alignas(64) float acc[QUERIES * QN_KV_HEAD_MOST];
    _Alignas(64) float all[QUERIES * QN_KV_HEAD_MOST];
    _Alignas(64) float s[BLOCK * WIDE];              /* scores: few [n][BLOCK], many [BLOCK][WIDE] */
    _Alignas(64) u32 p[BLOCK / 2 * WIDE];            /* weights of two tokens: few [n][BLOCK/2], many [BLOCK/2][WIDE] */
    _Alignas(64) u32 seen[BLOCK / 2 * WIDE];         /* many: bits of the pairs that a query sees */
    _Alignas(64) u32 k[BLOCK * QN_KV_HEAD_MOST / 2]; /* many: the block, [d/2][BLOCK] values 2i, 2i+1 of a token */
    _Alignas(64) u32 v[BLOCK / 2 * QN_KV_HEAD_MOST]; /* [BLOCK/2][d] tokens 2t, 2t+1 of a value */
};

/* A block of tokens: K and V of one head, by page, and those of the next block, to fetch ahead */
typedef struct view {
    const u8 *k[BLOCK_PAGES], *v[BLOCK_PAGES], *next_k[BLOCK_PAGES], *next_v[BLOCK_PAGES];
    size_t row_bytes;      /* of the V of a token */
} view;

/* The K of a page; what nobody sees may not exist: another page stands for it. */
INLINE const u8 *page_at(const group *g, const u8 *head, int page)
{
    page = qn_maxi(g->first / QN_PAGE, qn_mini(g->last / QN_PAGE, page));
    return head + (size_t)g->pages[page] * g->a->page_stride;
}

static view view_block(const group *g, int block)
{
    const qn_attend *a = g->a;
    const size_t part = qn_kv_part_bytes(DT_f16, a->d_head);
    const u8 *head = a->cache + qn_kv_head_at(DT_f16, a->d_head, g->at.kv);
    view b = { .row_bytes = part / QN_PAGE };
    for (int i = 0; i < BLOCK_PAGES; i++) {
        b.k[i] = page_at(g, head, block * BLOCK_PAGES + i);
        b.next_k[i] = page_at(g, head, (block + 1) * BLOCK_PAGES + i);
        b.v[i] = b.k[i] + part;
        b.next_v[i] = b.next_k[i] + part;
    }
    return b;
}

/* Pages lie far apart, and the processor fetches ahead only within 4 KiB: into the second cache, as attend_tile.h says. */
INLINE void fetch_ahead(const u8 *p) { __builtin_prefetch(p, 0, 2); }

/* bf16 of the floats of a and b in pairs, those of a below */
INLINE __m512i pair_floats(__m512 a, __m512 b)
{
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8,
                                           23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(b, a));
}

INLINE __m512i pair_halves(__m256i a, __m256i b) { return pair_floats(_mm512_cvtph_ps(a), _mm512_cvtph_ps(b)); }

/* Values 2i, 2i + 1 of the K of a page's tokens */
INLINE __m512i pair_k(const u8 *k, int i)
{
    k += i * 4 * QN_PAGE;
    return pair_halves(_mm256_loadu_si256((const void *)k), _mm256_loadu_si256((const void *)(k + 2 * QN_PAGE)));
}

/* Values i.. of the V of two tokens; left: values from i on, of which a vector may be more */
INLINE __m512i pair_v(const u8 *v0, const u8 *v1, int i, int left)
{
    if (left >= LANES)
        return pair_halves(_mm256_loadu_si256((const void *)(v0 + 2 * i)), _mm256_loadu_si256((const void *)(v1 + 2 * i)));
    const __mmask16 mask = (__mmask16)((1 << left) - 1);
    return pair_halves(_mm256_maskz_loadu_epi16(mask, v0 + 2 * i), _mm256_maskz_loadu_epi16(mask, v1 + 2 * i));
}

#define SEEN_FIRST 0xFFFFu             /* of a pair of tokens */
#define SEEN_SECOND 0xFFFF0000u

INLINE __m512 dot(__m512 sum, __m512i a, __m512i b) { return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b); }
INLINE __m512i spread(const u32 *pair) { return _mm512_set1_epi32((i32)*pair); }

/* 2^x for x of at most 0, or NaN, within 3e-6; what rounding to bf16 leaves of it is 2e-3 */
INLINE __m512 exp2_below(__m512 x)
{
    x = _mm512_max_ps(_mm512_set1_ps(-160), x); /* NaN passes: it is the second */
    const __m512 n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), r = _mm512_sub_ps(x, n);
    __m512 p = _mm512_set1_ps(0.00958285294f);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.0559064262f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.240240991f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.693124175f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1));
    return _mm512_scalef_ps(p, n);
}

INLINE float two_to(float x) { return _mm512_cvtss_f32(exp2_below(_mm512_set1_ps(x))); }

#endif
