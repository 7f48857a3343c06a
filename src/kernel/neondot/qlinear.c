/* neondot/qlinear.c - bytes times panels with sdot: a vector holds 4 columns of 4 rows, a panel's group is four of them. */
#include "kernel/neondot/sdot.h"

INLINE void dots(const form f, const u8 *p, int sub, int first, int last, const i8 *q, ints *dot, const int R)
{
    sdots(f, p, sub, first, last, q, dot, R);
}

QLINEARS(neondot_r4)
