/* vexp.h - e^x for vectors, within 2 units in the last place; infinities, NaN, overflow to infinity and denormals included.
 * x = n ln 2 + r with |r| <= ln 2 / 2; e^r by its series (the term left out is below 6e-9), then times 2^n in two steps, since
 * n reaches further than one exponent can. */
#ifndef QN_VEXP_H
#define QN_VEXP_H

#include "kernel/generic/vec.h"

INLINE vf vexp(vf x)
{
    const vf hi = splat(89), lo = splat(-104), magic = splat(0x1.8p23f); /* beyond hi and lo: infinity and 0; NaN passes */
    x = choose(x > hi, hi, x);
    x = choose(x < lo, lo, x);
    const vf shifted = vfma(x, splat(1.44269504f), magic); /* rounds x / ln 2: its low bits are n */
    const vi n = (vi)shifted - (vi)magic, half = n >> 1;
    const vf whole = shifted - magic;
    const vf r = vfma(whole, splat(2.12194440e-4f), vfma(whole, splat(-0.693359375f), x));
    vf p = splat(1.0f / 5040);
    p = vfma(p, r, splat(1.0f / 720));
    p = vfma(p, r, splat(1.0f / 120));
    p = vfma(p, r, splat(1.0f / 24));
    p = vfma(p, r, splat(1.0f / 6));
    p = vfma(p, r, splat(0.5f));
    p = vfma(p, r, splat(1));
    p = vfma(p, r, splat(1));
    return p * (vf)((half + 127) << 23) * (vf)((n - half + 127) << 23);
}

/* The same for x that is at most 0, or NaN: what a softmax needs. */
#if LANES == 16
INLINE vf vexp_below(vf x)
{
    x = (vf)_mm512_max_ps((__m512)splat(-104), (__m512)x); /* NaN passes: it is the second */
    const vf n = (vf)_mm512_roundscale_ps((__m512)(x * splat(1.44269504f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const vf r = vfma(n, splat(2.12194440e-4f), vfma(n, splat(-0.693359375f), x));
    vf p = splat(0.00138367934f); /* of degree 6, the largest error 1.9e-9 */
    p = vfma(p, r, splat(0.00837485678f));
    p = vfma(p, r, splat(0.0416682288f));
    p = vfma(p, r, splat(0.166664198f));
    p = vfma(p, r, splat(0.499999911f));
    p = vfma(p, r, splat(1));
    p = vfma(p, r, splat(1));
    return (vf)_mm512_scalef_ps((__m512)p, (__m512)n);
}
#else
INLINE vf vexp_below(vf x) { return vexp(x); }
#endif

#endif
