/* avx512bf16/attend.c - attention over f16 pages with products in bf16: groups of few queries (attend_few.h) and of many
 * (attend_many.h), whose results are the same. Here is what happens once for a group or a chunk. */
#include "kernel/avx512bf16/attend_few.h"
#include "kernel/avx512bf16/attend_many.h"
#include "kernel/kernel.h"

/* where value i of query q lies in acc and all */
static size_t value_at(const group *g, int q, int i)
{
    return g->few ? (size_t)(q * g->d + i) : (size_t)(q / WIDE * WIDE * g->d + i * WIDE + q % WIDE);
}

/* Query q in pairs; scores are to be powers of two */
static void put_query(group *g, int q, const float *x)
{
    const int d = g->a->d_head, step = g->few ? FEW : WIDE;
    const float scale = g->a->scale * 1.44269504f;
    u32 *to = g->few ? g->x + q : g->x + q / WIDE * WIDE * g->d / 2 + q % WIDE;
    for (int i = 0; i < d; i += 2 * LANES) {
        const __mmask32 mask = d - i >= 2 * LANES ? 0xFFFFFFFFu : (__mmask32)((1u << (d - i)) - 1);
        const __m512 lo = _mm512_maskz_loadu_ps((__mmask16)mask, x + i), by = _mm512_set1_ps(scale);
        const __m512 hi = _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), x + i + LANES);
        _Alignas(64) u32 pairs[LANES];
        _mm512_store_si512(pairs, (__m512i)_mm512_cvtne2ps_pbh(_mm512_mul_ps(hi, by), _mm512_mul_ps(lo, by)));
        for (int k = 0; k < LANES && i / 2 + k < d / 2; k++) to[(i / 2 + k) * step] = pairs[k];
    }
}

static void open_group(group *g, const qn_attend *a, const place *p)
{
    g->a = a;
    g->at = *p;
    g->pages = a->at->pages + a->at->first[p->row];
    g->d = (a->d_head + LANES - 1) / LANES * LANES;
    g->few = p->n <= FEW;
    const int n = g->few ? p->n : (p->n + LANES - 1) / LANES * LANES;
    for (int i = 0; i < n; i++) {
        const int q = qn_mini(i, p->n - 1), row = row_of(a, p, q);
        g->from[i] = first_seen(a, row);
        g->to[i] = a->at->pos[row] + 1;
        g->all_top[i] = g->all_sum[i] = 0;
        put_query(g, i, a->q + head_of(a, p, q) * (size_t)a->d_head);
    }
    g->first = g->from[0];
    g->last = g->to[p->n - 1] - 1;
}

INLINE void take_chunk(group *g, const qn_dtype type, int chunk)
{
    const int per = QN_CHUNK / BLOCK, last = qn_mini(g->last / BLOCK, chunk * per + per - 1);
    (void)type; /* f16 */
    for (int i = 0; i < QUERIES; i++) {
        g->top[i] = -INFINITY;
        g->sum[i] = 0;
    }
    const int n = g->few ? g->at.n : (g->at.n + WIDE - 1) / WIDE * WIDE;
    memset(g->acc, 0, (size_t)(n * g->d) * sizeof *g->acc);
    for (int block = qn_maxi(g->first / BLOCK, chunk * per); block <= last; block++) {
        if (g->few) take_block_few(g, block);
        else take_block_many(g, block);
    }
}

/* A chunk in which nothing has weight changes nothing. */
static void join_few(group *g, int q)
{
    float *all = g->all + q * g->d;
    const float *acc = g->acc + q * g->d;
    if (g->sum[q] == 0) return;
    if (g->all_sum[q] == 0) {
        memcpy(all, acc, (size_t)g->d * sizeof *all);
        g->all_top[q] = g->top[q];
        g->all_sum[q] = g->sum[q];
        return;
    }
    const float now = g->top[q] > g->all_top[q] ? g->top[q] : g->all_top[q];
    const float before = two_to(g->all_top[q] - now), here = two_to(g->top[q] - now);
    for (int k = 0; k < g->d; k += LANES)
        store(all + k, vfma(load(acc + k), splat(here), load(all + k) * splat(before)));
    g->all_sum[q] = g->all_sum[q] * before + g->sum[q] * here;
    g->all_top[q] = now;
}

static void join_chunk(group *g)
{
    for (int q = 0; q < g->at.n; q += g->few ? 1 : LANES) {
        if (g->few) join_few(g, q);
        else join_many(g, q);
    }
}

static void leave_part(const group *g, int chunk)
{
    const int d = g->a->d_head;
    for (int q = 0; q < g->at.n; q++) {
        float *part = part_of(g->a, &g->at, q, chunk);
        for (int i = 0; i < d; i++) part[i] = g->acc[value_at(g, q, i)];
        part[d] = g->top[q];
        part[d + 1] = g->sum[q];
    }
}

static void fetch_part(group *g, int chunk)
{
    const int d = g->a->d_head;
    for (int q = 0; q < g->at.n; q++) {
        const float *part = part_of(g->a, &g->at, q, chunk);
        for (int i = 0; i < d; i++) g->acc[value_at(g, q, i)] = part[i];
        g->top[q] = part[d];
        g->sum[q] = part[d + 1];
    }
}

static void finish_group(group *g)
{
    const int d = g->a->d_head;
    for (int q = 0; q < g->at.n; q++) {
        float *y = g->a->y + head_of(g->a, &g->at, q) * (size_t)d;
        for (int i = 0; i < d; i++) y[i] = g->all[value_at(g, q, i)] / g->all_sum[q];
    }
}

const char *qn_attend_f16_avx512bf16_pairs_needs(const qn_args *a);
const char *qn_attend_f16_avx512bf16_pairs_needs(const qn_args *a)
{
    return a->attend.d_head % 2 ? "an even number of values in a head" : NULL;
}


void qn_attend_f16_avx512bf16_pairs(const void *args, qn_lane lane);
void qn_attend_f16_avx512bf16_pairs(const void *args, qn_lane lane)
{
    group g;
    attend(&g, args, lane, DT_f16);
}
