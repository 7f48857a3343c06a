/* avx512bf16/bpack.c - bf16 in 12 bits, packed at the speed of memory: what qn_bpanel_plain does, byte for byte, 16 rows by 32
 * columns at a time in registers. Packing is no op: it runs once for each matrix, at load, so test_panel.c compares it instead of
 * the probe. */
#include <immintrin.h>

#include "kernel/bpanel.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
#define RUN 32 /* columns */

/* 32 weights as bf16. */
INLINE __m512i take(const bool f16, const u16 *w)
{
    const __m512i v = _mm512_loadu_si512(w);
    if (!f16) return v;
    return (__m512i)_mm512_cvtne2ps_pbh(_mm512_cvtph_ps(_mm512_extracti64x4_epi64(v, 1)),
                                        _mm512_cvtph_ps(_mm512_castsi512_si256(v)));
}

/* As base_of in bpanel.c, of weights rounded already. */
INLINE u16 base_of(const bool f16, const u16 *row, int cols)
{
    __m512i top = _mm512_setzero_si512();
    for (int i = 0; i < cols; i += RUN)
        top = _mm512_max_epu16(top, _mm512_and_si512(_mm512_loadu_si512(row + i), _mm512_set1_epi16(0x7FFF)));
    const __m512i both = _mm512_max_epu32(_mm512_and_si512(top, _mm512_set1_epi32(0xFFFF)), _mm512_srli_epi32(top, 16));
    return qn_bpanel_base(f16 ? DT_f16 : DT_bf16, (u16)_mm512_reduce_max_epu32(both));
}

/* As code_of in bpanel.c. */
INLINE __m512i code(__m512i v, u16 base)
{
    const __m512i sign = _mm512_set1_epi16((i16)0x8000), half = _mm512_set1_epi16((i16)(base > 128 ? base - 128 : 0));
    const __m512i mag = _mm512_andnot_si512(sign, v), over = _mm512_subs_epu16(mag, _mm512_set1_epi16((i16)base));
    const __mmask32 least = _mm512_mask_cmpgt_epu16_mask(_mm512_testn_epi16_mask(over, over), mag, half);
    return _mm512_ternarylogic_epi32(v, sign, _mm512_mask_set1_epi16(over, least, 1), 0xEA); /* (v AND sign) OR code */
}

/* Rows of 16 pairs to pairs of 16 rows. */
INLINE void turn(const __m512i r[16], __m512i out[16])
{
    __m512i t[16], u[16];
    UNROLL
    for (int i = 0; i < 16; i += 2)
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]), t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    UNROLL
    for (int i = 0; i < 16; i += 4) {
        u[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        u[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        u[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        u[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        const __m512i even0 = _mm512_shuffle_i32x4(u[i], u[4 + i], 0x88), odd0 = _mm512_shuffle_i32x4(u[i], u[4 + i], 0xDD);
        const __m512i even1 = _mm512_shuffle_i32x4(u[8 + i], u[12 + i], 0x88),
                      odd1 = _mm512_shuffle_i32x4(u[8 + i], u[12 + i], 0xDD);
        out[i] = _mm512_shuffle_i32x4(even0, even1, 0x88);
        out[4 + i] = _mm512_shuffle_i32x4(odd0, odd1, 0x88);
        out[8 + i] = _mm512_shuffle_i32x4(even0, even1, 0xDD);
        out[12 + i] = _mm512_shuffle_i32x4(odd0, odd1, 0xDD);
    }
}

/* What is written here is read much later, from memory: stored past the caches, whose lines would be fetched first. */
INLINE void put(void *out, __m512i v)
{
    if ((uintptr_t)out % 64 == 0) _mm512_stream_si512(out, v);
    else _mm512_storeu_si512(out, v);
}

INLINE __m512i part(__m512i v, u16 mask) { return _mm512_and_si512(v, _mm512_set1_epi16((i16)mask)); }

INLINE void put_quad(qn_quad *q, const __m512i v[4])
{
    put(q->w[0], _mm512_or_si512(v[0], _mm512_slli_epi16(part(v[3], QN_FOURTH_0), 4)));
    put(q->w[1], _mm512_or_si512(v[1], _mm512_slli_epi16(part(v[3], QN_FOURTH_1), 8)));
    put(q->w[2], _mm512_or_si512(_mm512_or_si512(v[2], _mm512_slli_epi16(part(v[3], QN_FOURTH_2), 12)),
                                 _mm512_srli_epi16(part(v[3], QN_FOURTH_S), 4)));
}

INLINE void pack(const bool f16, const u16 *w, int n, int cols, qn_twin *out, int half)
{
    u16 (*base)[2] = out->base[half];
    for (int r = 0; r < QN_PANEL; r++)
        base[r][0] = base[r][1] = r < n ? base_of(f16, w + (size_t)r * (size_t)cols, cols) : 0;
    for (int c = 0; c < cols; c += RUN) {
        __m512i rows[16], pairs[16];
        UNROLL
        for (int r = 0; r < QN_PANEL; r++)
            rows[r] = r < n ? code(take(f16, w + (size_t)r * (size_t)cols + (size_t)c), base[r][0]) : _mm512_setzero_si512();
        turn(rows, pairs);
        UNROLL
        for (int i = 0; i < RUN / QN_QUAD; i++) put_quad(&out->quad[c / QN_QUAD + i][half], pairs + 4 * i);
    }
    _mm_sfence(); /* such stores have no order of their own: they are seen before whatever says that the work is done */
}

void qn_bpanel_avx512bf16(qn_dtype type, const u16 *w, int rows, int cols, int panel, qn_twin *out)
{
    const u16 *first = w + (size_t)(panel * QN_PANEL) * (size_t)cols;
    const int n = qn_mini(QN_PANEL, rows - panel * QN_PANEL);
    if (type == DT_f16) pack(true, first, n, cols, out, panel % QN_TWIN);
    else pack(false, first, n, cols, out, panel % QN_TWIN);
}
