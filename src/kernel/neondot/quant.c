/* neondot/quant.c - activations to bytes, one row at a time. The largest magnitude is found on the bits, where NaN and infinity
 * are larger than every number and cannot hide. */
#include <arm_neon.h>
#include <math.h>

#include "base/half.h"
#include "kernel/op.h"

static u32 top_bits(const float32x4_t x[8])
{
    uint32x4_t most = vdupq_n_u32(0);
    for (int i = 0; i < 8; i++) most = vmaxq_u32(most, vandq_u32(vreinterpretq_u32_f32(x[i]), vdupq_n_u32(0x7FFFFFFF)));
    return vmaxvq_u32(most);
}

static void quant_block(const float *x, i8 *q, float *scale, i32 *sum, i32 *sum16)
{
    float32x4_t v[8];
    int32x4_t n[8];
    for (int i = 0; i < 8; i++) v[i] = vld1q_f32(x + 4 * i);
    const u32 top = top_bits(v);
    const float most = qn_bits_f32(top);
    const bool finite = top < 0x7F800000u;
    *scale = finite ? most / 127 : NAN;
    /* 127 / most overflows for the tiniest most: infinity times x is clamped, times zero must be zero */
    const float inverse = finite && top ? 127 / most : 0;
    const uint32x4_t all = vdupq_n_u32(finite ? 0xFFFFFFFF : 0);
    for (int i = 0; i < 8; i++) {
        const uint32x4_t keep = vbicq_u32(all, vceqzq_f32(v[i]));
        const uint32x4_t level = vandq_u32(keep, vreinterpretq_u32_f32(vmulq_n_f32(v[i], inverse)));
        n[i] = vcvtnq_s32_f32(vminq_f32(vmaxq_f32(vreinterpretq_f32_u32(level), vdupq_n_f32(-127)), vdupq_n_f32(127)));
    }
    for (int h = 0; h < 2; h++) {
        const int32x4_t *m = n + 4 * h;
        sum16[h] = vaddvq_s32(vaddq_s32(vaddq_s32(m[0], m[1]), vaddq_s32(m[2], m[3])));
        const int16x8_t lo = vcombine_s16(vmovn_s32(m[0]), vmovn_s32(m[1])), hi = vcombine_s16(vmovn_s32(m[2]), vmovn_s32(m[3]));
        vst1q_s8(q + 16 * h, vcombine_s8(vmovn_s16(lo), vmovn_s16(hi)));
    }
    *sum = sum16[0] + sum16[1];
}

void qn_quant_f32_neondot_r1(const void *args, qn_lane lane);
void qn_quant_f32_neondot_r1(const void *args, qn_lane lane)
{
    const qn_quant *a = args;
    const size_t d = (size_t)a->d;
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++) {
        for (size_t at = (size_t)t * d; at < (size_t)(t + 1) * d; at += 32)
            quant_block(a->x + at, a->y.q + at, a->y.scale + at / 32, a->y.sum + at / 32, a->y.sum16 + at / 16);
    }
}
