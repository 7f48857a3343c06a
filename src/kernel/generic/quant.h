/* quant.h - activations to bytes, what all levels share: a row's unit, its blocks, and rows of zeros or of what is no number.
 * Who includes it has top_of_row, the bits of a row's largest magnitude, and quant_blocks, n blocks of a row: top is finite and
 * not zero, span the most halvings a block may be away from it, inverse 127 / top. Magnitudes are compared on the bits, where NaN
 * and infinity are larger than every number and cannot hide, and where the difference of two of them has the number of halvings
 * between them in its exponent. */
#ifndef QN_GENERIC_QUANT_H
#define QN_GENERIC_QUANT_H

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "kernel/op.h"

static u32 top_of_row(const float *x, size_t d);
static void quant_blocks(const float *x, size_t n, u32 top, u32 span, float inverse, const qn_bytes *y, qn_strand at);

static void quant_row(const float *x, size_t blocks, const qn_bytes *y, qn_strand at, float *unit)
{
    const u32 top = top_of_row(x, 32 * blocks);
    const float most = qn_bits_f32(top);
    const bool finite = top < 0x7F800000u;
    const u32 span = finite && most >= QN_BYTES_LEAST ? QN_SHIFTS : 0;
    *unit = finite ? most / 127 * qn_bits_f32((127 - span) << 23) : NAN;
    if (finite && top) {
        quant_blocks(x, blocks, top, span, 127 / most, y, at);
        return;
    }
    for (size_t b = 0; b < blocks; b++, at.first += at.step) {
        memset(y->q + 32 * at.first, 0, 32);
        y->shift[at.first] = y->start[at.first] = y->start16[2 * at.first] = y->start16[2 * at.first + 1] = 0;
    }
}

static void quant_rows(const qn_quant *a, qn_lane lane)
{
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++)
        quant_row(a->x + (size_t)t * (size_t)a->d, (size_t)a->d / 32, &a->y, qn_bytes_row(a->n, t, a->d / 32), &a->y.unit[t]);
}

#endif
