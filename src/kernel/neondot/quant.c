/* neondot/quant.c - activations to bytes, one row at a time: the row's largest magnitude first, then its blocks. Magnitudes are
 * compared on the bits, where NaN and infinity are larger than every number and cannot hide, and where the difference of two
 * of them has the number of halvings between them in its exponent. */
#include <arm_neon.h>
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "kernel/op.h"

static uint32x4_t top4(const float *x)
{
    uint32x4_t most = vdupq_n_u32(0);
    for (int i = 0; i < 32; i += 4)
        most = vmaxq_u32(most, vandq_u32(vreinterpretq_u32_f32(vld1q_f32(x + i)), vdupq_n_u32(0x7FFFFFFF)));
    return most;
}

static u32 top_of_row(const float *x, size_t d)
{
    uint32x4_t most = vdupq_n_u32(0);
    for (size_t i = 0; i < d; i += 32) most = vmaxq_u32(most, top4(x + i));
    return vmaxvq_u32(most);
}

static int32x4_t level(const float *x, float inverse)
{
    /* 127 / top overflows for the tiniest top: infinity times x is clamped, times zero must be zero */
    const float32x4_t v = vld1q_f32(x);
    const uint32x4_t at = vbicq_u32(vreinterpretq_u32_f32(vmulq_n_f32(v, inverse)), vceqzq_f32(v));
    return vcvtnq_s32_f32(vminq_f32(vmaxq_f32(vreinterpretq_f32_u32(at), vdupq_n_f32(-127)), vdupq_n_f32(127)));
}

/* top: of the row, bits of a finite number; span: most halvings; inverse: 127 / top. */
static void quant_block(const float *x, u32 top, u32 span, float inverse, const qn_bytes *y, size_t at)
{
    const u32 far = (top - vmaxvq_u32(top4(x))) >> 23, j = far < span ? far : span;
    const float times = inverse * qn_bits_f32((127 + j) << 23);
    for (size_t h = 0; h < 2; h++) {
        int32x4_t m[4];
        for (int i = 0; i < 4; i++) m[i] = level(x + 16 * h + 4 * i, times);
        y->start16[2 * at + h] = -128 * vaddvq_s32(vaddq_s32(vaddq_s32(m[0], m[1]), vaddq_s32(m[2], m[3])));
        const int16x8_t lo = vcombine_s16(vmovn_s32(m[0]), vmovn_s32(m[1])), hi = vcombine_s16(vmovn_s32(m[2]), vmovn_s32(m[3]));
        vst1q_s8(y->q + 32 * at + 16 * h, vcombine_s8(vmovn_s16(lo), vmovn_s16(hi)));
    }
    y->shift[at] = (i32)(span - j);
    y->start[at] = y->start16[2 * at] + y->start16[2 * at + 1];
}

static void zero_block(const qn_bytes *y, size_t at)
{
    memset(y->q + 32 * at, 0, 32);
    y->shift[at] = y->start[at] = y->start16[2 * at] = y->start16[2 * at + 1] = 0;
}

static void quant_row(const float *x, size_t d, const qn_bytes *y, qn_strand at, float *unit)
{
    const u32 top = top_of_row(x, d);
    const float most = qn_bits_f32(top);
    const bool finite = top < 0x7F800000u;
    const u32 span = finite && most >= QN_BYTES_LEAST ? QN_SHIFTS : 0;
    *unit = finite ? most / 127 * qn_bits_f32((127 - span) << 23) : NAN;
    for (size_t b = 0; b < d; b += 32, at.first += at.step) {
        if (finite && top) quant_block(x + b, top, span, 127 / most, y, at.first);
        else zero_block(y, at.first);
    }
}

void qn_quant_f32_neondot_r1(const void *args, qn_lane lane);
void qn_quant_f32_neondot_r1(const void *args, qn_lane lane)
{
    const qn_quant *a = args;
    const size_t d = (size_t)a->d;
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++)
        quant_row(a->x + (size_t)t * d, d, &a->y, qn_bytes_row(a->n, t, a->d / 32), &a->y.unit[t]);
}
