/* move.h - values from one place and type to another: embedding rows out of their table, K and V into their pages. */
#ifndef QN_GENERIC_MOVE_H
#define QN_GENERIC_MOVE_H

#include "format/f16.h"
#include "kernel/generic/vec.h"
#include "kernel/kvpage.h"
#include "kernel/panel.h"

static void embed(const qn_embed *a, qn_lane lane, void (*decode)(const void *blocks, float *y, size_t n))
{
    const size_t row_bytes = qn_dtype_bytes(a->type, (size_t)a->d);
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++) {
        float *y = a->y + (size_t)t * (size_t)a->d;
        if (a->packed) qn_panel_part(a->type, a->table, a->d, a->tokens[t], 0, a->d, y);
        else decode((const u8 *)a->table + (size_t)a->tokens[t] * row_bytes, y, (size_t)a->d);
        for (int i = 0; i < a->d; i++) y[i] *= a->scale;
    }
}

#if LANES == 16
INLINE void store_halves(void *p, vf v) { _mm256_storeu_si256(p, _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT)); }
#elif LANES == 8
INLINE void store_halves(void *p, vf v) { _mm_storeu_si128(p, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT)); }
#else
INLINE void store_halves(void *p, vf v)
{
    u16 h[LANES];
    for (int i = 0; i < LANES; i++) h[i] = qn_f32_f16(v[i]);
    memcpy(p, h, sizeof h);
}
#endif

static void to_f16(const float *x, u16 *y, int n)
{
    int i = 0;
    for (; i + LANES <= n; i += LANES) store_halves(y + i, load(x + i));
    for (; i < n; i++) y[i] = qn_f32_f16(x[i]);
}

/* K lies across the page, so a token's values are QN_PAGE apart there */
static void store_f16(const qn_store *a, qn_lane lane)
{
    const size_t d = (size_t)a->d_head, part = qn_kv_part_bytes(DT_f16, a->d_head);
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++) {
        const int pos = a->at->pos[t], page = a->at->pages[a->at->first[t] + pos / QN_PAGE], at = pos % QN_PAGE;
        for (int h = 0; h < a->n_kv; h++) {
            const size_t from = ((size_t)t * (size_t)a->n_kv + (size_t)h) * d;
            u8 *head = a->cache + (size_t)page * a->page_stride + qn_kv_head_at(DT_f16, a->d_head, h);
            u16 *k = (u16 *)(void *)head, across[QN_KV_HEAD_MOST];
            to_f16(a->k + from, across, a->d_head);
            for (size_t i = 0; i < d; i++) k[i * QN_PAGE + (size_t)at] = across[i];
            to_f16(a->v + from, (u16 *)(void *)(head + part) + (size_t)at * d, a->d_head);
        }
    }
}

#endif
