/* qtile.h - the prefill tile: R rows of x by two panels, 32 outputs, over a chunk of the columns.
 * In each block of 32 columns 8 groups go into 2R integer sums; one shift and one convert, which other units do
 * than those that multiply, and one multiply-add bring a sum to its output: 8 of 9 multiplications are dot
 * products. With 6 rows there are 12 sums, 12 results, 2 weights and 1 activation: 27 registers, and 8 loads
 * for 12 dot products. The rows of a tile lie side by side (qn_bytes), so everything is read in order.
 * The lines of y that a tile writes are asked for when it begins: without that stores wait for memory.
 * The first tile of a chunk opens the packed weights and leaves them for the others: its stores are in the shade of its
 * products. Sums of integers are exact and blocks are added from first to last, as in qlinear.c: the law of rows. */
#ifndef QN_QTILE_H
#define QN_QTILE_H

#include "kernel/avx512vnni/qforms.h"
#include "kernel/avx512vnni/qmany.h"
#include "kernel/generic/ahead.h"

/* Where weights come from: packed panels of a type, opened on the way and kept in w; or, opened before, w (form NULL). */
typedef struct source {
    const form *f;
    const u8 *p[QN_PAIR]; /* panel blocks */
    int sub;              /* block of 32 columns there */
} source;

INLINE __m512i weights(const source *from, qn_plain *w, int i, int side)
{
    const form *f = from->f;
    if (!f) return load(w->q[i][side]);
    __m512i v = f->group(from->p[side], from->sub, i);
    if (f->log2_off >= 0 && f->log2_off < 7) v = _mm512_add_epi8(v, _mm512_set1_epi8((char)(128 - (1 << f->log2_off))));
    _mm512_store_si512(w->q[i][side], v);
    return v;
}

INLINE void open_scales(const source *from, qn_plain *w)
{
    const form *f = from->f;
    UNROLL
    for (int side = 0; side < QN_PAIR; side++) {
        const scales s = f->scale(from->p[side], from->sub);
        _mm512_store_ps(w->s[side], s.s[0]);
        if (f->halves) _mm512_store_ps(w->more[side], s.s[1]);
        if (f->mins) _mm512_store_ps(w->more[side], _mm512_mul_ps(s.m, _mm512_set1_ps(-1.0f / 128)));
    }
}

/* Groups first .. last-1 of a block into sums; halves: start has two for each row. */
INLINE void dots(const qn_plain_kind kind, const source *from, qn_plain *w, const i8 *q, const i32 *start, int first, int last,
                 __m512i (*dot)[QN_PAIR], const int R)
{
    UNROLL
    for (int r = 0; r < R; r++) {
        const i32 *own = kind == PLAIN_halves ? start + 2 * r + first / 4 : start + r;
        dot[r][0] = dot[r][1] = kind == PLAIN_mins ? _mm512_setzero_si512() : _mm512_set1_epi32(*own);
    }
    UNROLL
    for (int i = first; i < last; i++) {
        const __m512i w0 = weights(from, w, i, 0), w1 = weights(from, w, i, 1);
        UNROLL
        for (int r = 0; r < R; r++) {
            const __m512i x = four(q + 32 * r + 4 * i);
            dot[r][0] = _mm512_dpbusd_epi32(dot[r][0], w0, x);
            dot[r][1] = _mm512_dpbusd_epi32(dot[r][1], w1, x);
        }
    }
}

/* Sums of a block, or of a half of it, to their results. */
INLINE void add(__m512 (*acc)[QN_PAIR], __m512i (*dot)[QN_PAIR], const i32 *shift, const float (*s)[QN_PANEL], const int R)
{
    UNROLL
    for (int r = 0; r < R; r++) {
        const __m512i by = _mm512_set1_epi32(shift[r]);
        UNROLL
        for (int p = 0; p < QN_PAIR; p++) acc[r][p] = _mm512_fmadd_ps(shifted(dot[r][p], by), _mm512_load_ps(s[p]), acc[r][p]);
    }
}

INLINE void add_mins(__m512 (*acc)[QN_PAIR], const i32 *start, const i32 *shift, const float (*m)[QN_PANEL], const int R)
{
    UNROLL
    for (int r = 0; r < R; r++) {
        const __m512 sum = shifted(_mm512_set1_epi32(start[r]), _mm512_set1_epi32(shift[r]));
        UNROLL
        for (int p = 0; p < QN_PAIR; p++) acc[r][p] = _mm512_fmadd_ps(sum, _mm512_load_ps(m[p]), acc[r][p]);
    }
}

INLINE float *out_of(const qn_qtile *t, int r, int p) { return t->y + (size_t)r * t->y_stride + 16 * p; }

INLINE void write_out(const qn_qtile *t, __m512 (*acc)[QN_PAIR], const int R)
{
    UNROLL
    for (int p = 0; p < QN_PAIR; p++) {
        const __m512 bias = t->bias ? _mm512_maskz_loadu_ps(t->mask[p], t->bias + 16 * p) : _mm512_setzero_ps();
        UNROLL
        for (int r = 0; r < R; r++)
            _mm512_mask_storeu_ps(out_of(t, r, p), t->mask[p], _mm512_fmadd_ps(acc[r][p], _mm512_set1_ps(t->unit[r]), bias));
    }
}

INLINE void tile(const qn_plain_kind kind, const form *f, const qn_qtile *t, const int R)
{
    __m512 acc[QN_TILE][QN_PAIR];
    __m512i dot[QN_TILE][QN_PAIR];
    const size_t step = R == QN_TILE ? QN_TILE : t->step;
    const i8 *q = t->q;
    const i32 *start = t->start, *shift = t->shift;
    qn_plain *w = t->w;
    UNROLL
    for (int r = 0; r < R; r++) UNROLL
    for (int p = 0; p < QN_PAIR; p++) {
        if (t->end) __builtin_prefetch(out_of(t, r, p), 1);
        acc[r][p] = t->begin ? _mm512_setzero_ps() : _mm512_load_ps(t->kept[r] + 16 * p);
    }
    for (int b = 0; b < t->blocks; b++, w++, q += 32 * step, start += (kind == PLAIN_halves ? 2 : 1) * step, shift += step) {
        source from = { .f = f };
        if (f) {
            const size_t at = (size_t)((t->b + b) / f->blocks) * f->bytes;
            from = (source){ f, { t->panel[0] + at, t->panel[1] + at }, (t->b + b) % f->blocks };
            open_scales(&from, w);
        }
        qn_ahead_fetch(t->next, R);
        dots(kind, &from, w, q, start, 0, kind == PLAIN_halves ? 4 : 8, dot, R);
        add(acc, dot, shift, w->s, R);
        if (kind == PLAIN_halves) {
            dots(kind, &from, w, q, start, 4, 8, dot, R);
            add(acc, dot, shift, w->more, R);
        }
        if (kind == PLAIN_mins) add_mins(acc, start, shift, w->more, R);
    }
    if (t->end) {
        write_out(t, acc, R);
        return;
    }
    UNROLL
    for (int r = 0; r < R; r++) UNROLL
    for (int p = 0; p < QN_PAIR; p++) _mm512_store_ps(t->kept[r] + 16 * p, acc[r][p]);
}

#endif
