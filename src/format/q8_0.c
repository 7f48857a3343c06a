/* q8_0.c - Q8_0 made: the largest magnitude becomes 127. */
#include "format/q8_0.h"

#include "format/encode.h"

void qn_q8_0_encode(const float *restrict x, qn_q8_0 *b)
{
    float v[32];
    qn_clean(x, v, 32);
    const float d = fabsf(qn_extreme(v, 32)) / 127, inverse = qn_inverse(d);
    b->d = qn_f32_f16(d);
    for (int i = 0; i < 32; i++) b->q[i] = (i8)qn_nearest(v[i] * inverse);
}
