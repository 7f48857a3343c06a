/* attend_tile.h - the two products of attention for a few queries and a block of tokens, in registers: scores = q * K^T and
 * acc += weights * V. A tile is up to TILE_ROWS queries and two vectors wide, so that each vector of K or V is loaded and decoded
 * once for all of them. Lanes are tokens in the first product and values in the second.
 *
 * The law of rows: a score is one chain over the values of a head from first to last, a sum of values one chain over tokens. */
#ifndef QN_ATTEND_TILE_H
#define QN_ATTEND_TILE_H

#include "base/half.h"
#include "format/dtype.h"
#include "kernel/generic/attend_share.h"

#if LANES == 16
#define TILE_ROWS 12                   /* 24 sums, 2 of K and a query's value: 27 of 32 registers */
#else
#define TILE_ROWS 6                    /* 12 + 2 + 1 of 16 */
#endif
static_assert(QN_PAGE % LANES == 0 && BLOCK % (2 * LANES) == 0, "scores of a page are whole vectors, those of a block pairs");

#if LANES == 16
INLINE vf load_halves(const void *p) { return (vf)_mm512_cvtph_ps(_mm256_loadu_si256(p)); }
#elif LANES == 8
INLINE vf load_halves(const void *p) { return (vf)_mm256_cvtph_ps(_mm_loadu_si128(p)); }
#else
/* as qn_f16_f32, four at a time */
INLINE vf load_halves(const void *p)
{
    typedef u16 v4 __attribute__((vector_size(8)));
    v4 raw;
    memcpy(&raw, p, sizeof raw);
    const vi h = __builtin_convertvector(raw, vi), special = ((h & 0x7C00) == 0x7C00) & 0x7F800000;
    const vf mag = (vf)((h & 0x7FFF) << 13) * splat(0x1.0p+112f);
    return (vf)((vi)mag | special | (h & 0x8000) << 16);
}
#endif

INLINE vf load_bytes(const u8 *p)
{
    typedef i8 bytes __attribute__((vector_size(LANES)));
    bytes raw;
    memcpy(&raw, p, sizeof raw);
    return __builtin_convertvector(raw, vf);
}

/* Value i of the K of LANES tokens, the first of them at `token` of the page */
INLINE vf load_k(const qn_dtype type, const u8 *k, int i, int token)
{
    const u8 *at = k + (size_t)(i * QN_PAGE + token) * (type == DT_f32 ? 4 : 2);
    if (type == DT_f32) return load((const float *)(const void *)at);
    if (type == DT_f16) return load_halves(at);
    const u8 *values = k + (size_t)(i / 32) * QN_Q8_GROUP;
    return load_halves(values + 2 * token) * load_bytes(values + 2 * QN_PAGE + i % 32 * QN_PAGE + token);
}

/* Values i.. of the V of a token */
INLINE vf load_v(const qn_dtype type, const u8 *v, int i)
{
    if (type == DT_f32) return load((const float *)(const void *)v + i);
    if (type == DT_f16) return load_halves(v + 2 * i);
    const u8 *block = v + (size_t)(i / 32) * 34;
    u16 scale;
    memcpy(&scale, block, sizeof scale);
    return splat(qn_f16_f32(scale)) * load_bytes(block + 2 + i % 32);
}

/* Pages lie far apart, and the processor fetches ahead only within 4 KiB: the tokens of the next block are asked for by hand,
 * into the second cache: the first has room for 24 lines on their way, which is 11 GB/s. (One query of one head of 128, one
 * thread of a Zen 4: 10 GB/s without, 12 into the first cache, 26 into the second.) */
INLINE void fetch_ahead(const u8 *p) { __builtin_prefetch(p, 0, 2); }

/* LANES tokens of a block: K of their page, which of its tokens they are, and the page to fetch ahead. */
typedef struct strip { const u8 *k, *next; int token; } strip;

/* Scores of n queries for two strips. x: [d][TILE_ROWS], the queries side by side; s: [n][BLOCK] */
INLINE void score_tile(const qn_dtype type, const float *x, int d, strip u, strip v, float *s, const int n)
{
    const int step = type == DT_f32 ? 64 : type == DT_f16 ? 32 : 17; /* bytes of one value of all tokens of a page */
    vf a[TILE_ROWS], b[TILE_ROWS];
    UNROLL for (int r = 0; r < n; r++) a[r] = b[r] = splat(0);
    for (int i = 0; i < d; i++, x += TILE_ROWS) {
        const vf ka = load_k(type, u.k, i, u.token), kb = load_k(type, v.k, i, v.token);
        if (type == DT_f32 || i % 2 == 0) {
            fetch_ahead(u.next + i * step);
            fetch_ahead(v.next + i * step);
        }
        UNROLL for (int r = 0; r < n; r++) {
            const vf q = splat(x[r]);
            a[r] = vfma(q, ka, a[r]);
            b[r] = vfma(q, kb, b[r]);
        }
    }
    UNROLL for (int r = 0; r < n; r++) {
        store(s + r * BLOCK, a[r]);
        store(s + r * BLOCK + LANES, b[r]);
    }
}

/* Tokens begin..end-1 of a block, of which v has the V by page; p: [n][BLOCK] their weights; acc: [n][d] */
typedef struct blending {
    const u8 *v[BLOCK_PAGES], *next[BLOCK_PAGES]; /* next: to fetch ahead */
    size_t row_bytes;
    const float *p;
    float *acc;
    int d, begin, end;
} blending;

/* Values i.. of n queries, m vectors of them */
INLINE void blend_tile(const qn_dtype type, const blending *b, int i, const int n, const int m)
{
    vf s[TILE_ROWS][2];
    UNROLL for (int r = 0; r < n; r++)
        UNROLL for (int j = 0; j < m; j++) s[r][j] = load(b->acc + r * b->d + i + j * LANES);
    for (int t = b->begin; t < b->end;) {
        const u8 *v = b->v[t / QN_PAGE] + (size_t)(t % QN_PAGE) * b->row_bytes;
        const ptrdiff_t ahead = b->next[t / QN_PAGE] - b->v[t / QN_PAGE] + i * (type == DT_f32 ? 4 : type == DT_f16 ? 2 : 1);
        const int stop = qn_mini(b->end, (t / QN_PAGE + 1) * QN_PAGE);
        for (; t < stop; t++, v += b->row_bytes) {
            const float *p = b->p + t;
            vf value[2];
            fetch_ahead(v + ahead);
            if (type == DT_f32) fetch_ahead(v + ahead + 64);
            UNROLL for (int j = 0; j < m; j++) value[j] = load_v(type, v, i + j * LANES);
            UNROLL for (int r = 0; r < n; r++)
                UNROLL for (int j = 0; j < m; j++) s[r][j] = vfma(splat(p[r * BLOCK]), value[j], s[r][j]);
        }
    }
    UNROLL for (int r = 0; r < n; r++)
        UNROLL for (int j = 0; j < m; j++) store(b->acc + r * b->d + i + j * LANES, s[r][j]);
}

/* What is behind the last whole vector of a head. */
static void blend_rest(const qn_dtype type, const blending *b, int i, int d_head, int n)
{
    float values[QN_KV_HEAD_MOST];
    for (int t = b->begin; t < b->end; t++) {
        qn_dtypes[type].decode(b->v[t / QN_PAGE] + (size_t)(t % QN_PAGE) * b->row_bytes, values, (size_t)d_head);
        for (int r = 0; r < n; r++)
            for (int j = i; j < d_head; j++) b->acc[r * b->d + j] += b->p[r * BLOCK + t] * values[j];
    }
}

INLINE void blend_n(const qn_dtype type, const blending *b, int d_head, const int n)
{
    int i = 0;
    for (; i + 2 * LANES <= d_head; i += 2 * LANES) blend_tile(type, b, i, n, 2);
    for (; i + LANES <= d_head; i += LANES) blend_tile(type, b, i, n, 1);
    if (i < d_head) blend_rest(type, b, i, d_head, n);
}

/* The same for a number of queries known only now */
#if LANES == 16
#define EACH_COUNT(call) \
    case 12: call(12); break; case 11: call(11); break; case 10: call(10); break; case 9: call(9); break; \
    case 8: call(8); break; case 7: call(7); break; case 6: call(6); break; case 5: call(5); break; \
    case 4: call(4); break; case 3: call(3); break; case 2: call(2); break; default: call(1); break;
#else
#define EACH_COUNT(call) \
    case 6: call(6); break; case 5: call(5); break; case 4: call(4); break; case 3: call(3); break; \
    case 2: call(2); break; default: call(1); break;
#endif

INLINE void scores(const qn_dtype type, const float *x, int d, const u8 *const k[BLOCK_PAGES],
                   const u8 *const next[BLOCK_PAGES], float *s, int n)
{
    for (int t = 0; t < BLOCK; t += 2 * LANES) {
        const strip u = { k[t / QN_PAGE], next[t / QN_PAGE], t % QN_PAGE };
        const strip v = { k[(t + LANES) / QN_PAGE], next[(t + LANES) / QN_PAGE], (t + LANES) % QN_PAGE };
#define CALL(n) score_tile(type, x, d, u, v, s + t, n)
        switch (n) { EACH_COUNT(CALL) }
#undef CALL
    }
}

INLINE void blend(const qn_dtype type, const blending *b, int d_head, int n)
{
#define CALL(n) blend_n(type, b, d_head, n)
    switch (n) { EACH_COUNT(CALL) }
#undef CALL
}

#endif
