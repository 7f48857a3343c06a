/* qforms.h - how each quantised type is read out of its panels: 16 rows of 4 columns as unsigned bytes
 * in one register, and the scales of the 16 rows. qlinear.c has the loops around it. All static and
 * inline: a form is a constant to the compiler, and nothing of it is left in the code. */
#ifndef QN_QFORMS_H
#define QN_QFORMS_H

#include <immintrin.h>

#include "kernel/op.h"
#include "kernel/panel.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

typedef struct scales {
    __m512 s[2], m;
} scales; /* of the two halves of a block; one for both where a type has one per 32 */

/* How a type is read: what its unsigned values are above the signed ones, whether blocks have
 * minima, whether each half has a scale of its own, bytes and blocks of 32 in a panel block, and
 * the two readers. All constants to the compiler. */
typedef struct form {
    int log2_off; /* values are stored + 2^this; -1: as they are */
    bool mins, halves;
    int blocks;
    size_t bytes;
    __m512i (*group)(const u8 *p, int b, int i); /* columns 4i..4i+3 of block b */
    scales (*scale)(const u8 *p, int b);
} form;

/* ---- what all tiles do: four activations to every row, and an integer sum to a float by its row's power of two */

INLINE __m512i four(const i8 *q)
{
    i32 v;
    __builtin_memcpy(&v, q, 4);
    return _mm512_set1_epi32(v);
}

INLINE __m512 shifted(__m512i dot, __m512i by) { return _mm512_cvtepi32_ps(_mm512_sllv_epi32(dot, by)); }

/* ---- readers */

INLINE __m512i load(const void *p) { return _mm512_loadu_si512(p); }
INLINE __m512 halves16(const u16 *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
INLINE __m512 bytes16(const u8 *p)
{
    return _mm512_cvtepi32_ps(
        _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}
INLINE __m512 signed16(const i8 *p)
{
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}

INLINE __m512i nibbles(const u8 *q, int i)
{
    const __m512i v = load(q + i / 2 * QN_GROUP);
    return _mm512_and_si512(i % 2 ? _mm512_srli_epi16(v, 4) : v, _mm512_set1_epi8(15));
}

INLINE __m512i fives(const u8 *q, const u64 *high, int i)
{
    return _mm512_mask_add_epi8(nibbles(q, i), _cvtu64_mask64(high[i]), nibbles(q, i),
                                _mm512_set1_epi8(16));
}

INLINE __m512i group_q8_0(const u8 *p, int b, int i)
{
    (void)b;
    return load(((const qn_panel_q8_0 *)(const void *)p)->q[i]);
}
INLINE scales scale_q8_0(const u8 *p, int b)
{
    (void)b;
    return (scales){ .s = { halves16(((const qn_panel_q8_0 *)(const void *)p)->d) } };
}

INLINE __m512i group_q4_0(const u8 *p, int b, int i)
{
    (void)b;
    return nibbles(((const qn_panel_q4_0 *)(const void *)p)->q[0], i);
}
INLINE scales scale_q4_0(const u8 *p, int b)
{
    (void)b;
    return (scales){ .s = { halves16(((const qn_panel_q4_0 *)(const void *)p)->d) } };
}

INLINE __m512i group_q4_1(const u8 *p, int b, int i)
{
    (void)b;
    return nibbles(((const qn_panel_q4_1 *)(const void *)p)->q[0], i);
}
INLINE scales scale_q4_1(const u8 *p, int b)
{
    const qn_panel_q4_1 *w = (const void *)p;
    (void)b;
    return (scales){ .s = { halves16(w->d) }, .m = halves16(w->m) };
}

INLINE __m512i group_q5_0(const u8 *p, int b, int i)
{
    const qn_panel_q5_0 *w = (const void *)p;
    (void)b;
    return fives(w->q[0], w->high, i);
}
INLINE scales scale_q5_0(const u8 *p, int b)
{
    (void)b;
    return (scales){ .s = { halves16(((const qn_panel_q5_0 *)(const void *)p)->d) } };
}

INLINE __m512i group_q5_1(const u8 *p, int b, int i)
{
    const qn_panel_q5_1 *w = (const void *)p;
    (void)b;
    return fives(w->q[0], w->high, i);
}
INLINE scales scale_q5_1(const u8 *p, int b)
{
    const qn_panel_q5_1 *w = (const void *)p;
    (void)b;
    return (scales){ .s = { halves16(w->d) }, .m = halves16(w->m) };
}

INLINE __m512i group_q4_k(const u8 *p, int b, int i)
{
    return nibbles(((const qn_panel_q4_k *)(const void *)p)->q[b][0], i);
}
INLINE scales scale_q4_k(const u8 *p, int b)
{
    const qn_panel_q4_k *w = (const void *)p;
    return (scales){ .s = { _mm512_mul_ps(halves16(w->d), bytes16(w->scale[b])) },
                     .m = _mm512_sub_ps(_mm512_setzero_ps(),
                                        _mm512_mul_ps(halves16(w->dmin), bytes16(w->min[b]))) };
}

INLINE __m512i group_q5_k(const u8 *p, int b, int i)
{
    const qn_panel_q5_k *w = (const void *)p;
    return fives(w->q[b][0], w->high[b], i);
}
INLINE scales scale_q5_k(const u8 *p, int b)
{
    const qn_panel_q5_k *w = (const void *)p;
    return (scales){ .s = { _mm512_mul_ps(halves16(w->d), bytes16(w->scale[b])) },
                     .m = _mm512_sub_ps(_mm512_setzero_ps(),
                                        _mm512_mul_ps(halves16(w->dmin), bytes16(w->min[b]))) };
}

INLINE __m512i group_q6_k(const u8 *p, int b, int i)
{
    const qn_panel_q6_k *w = (const void *)p;
    const __m512i h = load(w->high[b][i / 4]);
    const __m512i at = i % 4 == 0   ? _mm512_slli_epi16(h, 4)
                       : i % 4 == 1 ? _mm512_slli_epi16(h, 2)
                       : i % 4 == 2 ? h
                                    : _mm512_srli_epi16(h, 2);
    return _mm512_or_si512(nibbles(w->q[b][0], i), _mm512_and_si512(at, _mm512_set1_epi8(48)));
}
INLINE scales scale_q6_k(const u8 *p, int b)
{
    const qn_panel_q6_k *w = (const void *)p;
    const __m512 d = halves16(w->d);
    return (scales){ .s = { _mm512_mul_ps(d, signed16(w->scale[2 * b])),
                            _mm512_mul_ps(d, signed16(w->scale[2 * b + 1])) } };
}

#define QN_FORM(name, log2_off, mins, halves, blocks) \
    { log2_off, mins, halves, blocks, sizeof(qn_panel_##name), group_##name, scale_##name }

/* F(name, log2_off, mins, halves, blocks): every type, as in its form. */
#define QN_FORMS(F) \
    F(q8_0, 7, false, false, 1) \
    F(q4_0, 3, false, false, 1) \
    F(q4_1, -1, true, false, 1) \
    F(q5_0, 4, false, false, 1) \
    F(q5_1, -1, true, false, 1) \
    F(q4_k, -1, true, false, 8) \
    F(q5_k, -1, true, false, 8) \
    F(q6_k, 5, false, true, 8)

#endif
