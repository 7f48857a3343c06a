/* neondot/quant.c - activations to bytes, block by block. */
#include <arm_neon.h>

#include "kernel/generic/quant.h"

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

static void quant_blocks(const float *x, size_t n, u32 top, u32 span, float inverse, const qn_bytes *y, qn_strand at)
{
    for (size_t b = 0; b < n; b++, at.first += at.step) quant_block(x + 32 * b, top, span, inverse, y, at.first);
}

void qn_quant_f32_neondot_r1(const void *args, qn_lane lane);
void qn_quant_f32_neondot_r1(const void *args, qn_lane lane) { quant_rows(args, lane); }
