/* encode.h - what the encoders share: input made harmless, a safe reciprocal, rounding that vectorises, nibbles packed. */
#ifndef QN_ENCODE_H
#define QN_ENCODE_H

#include <float.h>
#include <math.h>

#include "base/half.h"

/* Scales are f16, so a block can hold nothing beyond their range: larger values and infinities are cut to it, NaN becomes 0.
 * Everything after this works on finite numbers whose conversions to integers are defined. */
static inline void qn_clean(const float *restrict x, float *restrict y, int n)
{
    const float most = 65504;
    for (int i = 0; i < n; i++) {
        const float v = x[i] > most ? most : x[i];
        const float u = v < -most ? -most : v;
        y[i] = u == u ? u : 0;
    }
}

/* 1/d; 0 for a d whose reciprocal would not be finite (such a scale is 0 in f16 anyway). */
static inline float qn_inverse(float d) { return fabsf(d) < FLT_MIN ? 0 : 1 / d; }

/* The f16 next to v and not nearer to zero; |v| <= 65504. A scale that is rounded down may leave the largest group out of
 * reach, and where f16 is denormal (weights below about 1e-3) by far. */
static inline float qn_f16_outward(float v)
{
    const u16 h = qn_f32_f16(v);
    return qn_f16_f32((u16)(h + (fabsf(qn_f16_f32(h)) < fabsf(v))));
}

/* Nearest integer, halves away from zero; |x| < 2^23. */
static inline int qn_nearest(float x)
{
    const int t = (int)x;
    const float r = x - (float)t;
    return t + (r >= 0.5f) - (r <= -0.5f);
}

/* The value of largest magnitude, with its sign; the first of equals. */
static inline float qn_extreme(const float *x, int n)
{
    float best = 0;
    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > fabsf(best)) best = x[i];
    return best;
}

static inline void qn_range(const float *x, int n, float *min, float *max)
{
    *min = *max = x[0];
    for (int i = 1; i < n; i++) {
        if (x[i] < *min) *min = x[i];
        if (x[i] > *max) *max = x[i];
    }
}

/* Low four bits of n values: the first half into low nibbles, the second into high ones. */
static inline void qn_pack_nibbles(const u8 *q, u8 *out, int n)
{
    for (int i = 0; i < n / 2; i++) out[i] = (u8)((q[i] & 15) | (q[i + n / 2] & 15) << 4);
}

/* Bit 4 of 32 values, value i to bit i. */
static inline void qn_pack_fifth(const u8 q[32], u8 out[4])
{
    u32 high = 0;
    for (int i = 0; i < 32; i++) high |= (u32)(q[i] >> 4 & 1) << i;
    memcpy(out, &high, 4);
}

/* Quantised weights of a block around zero or above a minimum: (x - min) / d + bias, cut to 0..top. */
static inline void qn_steps(const float x[32], float min, float inverse, float bias, int top, u8 q[32])
{
    for (int i = 0; i < 32; i++) {
        const int v = (int)((x[i] - min) * inverse + bias);
        q[i] = (u8)(v > top ? top : v);
    }
}

#endif
