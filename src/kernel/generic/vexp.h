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

#endif
