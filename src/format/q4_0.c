/* q4_0.c - Q4_0 made: the value of largest magnitude becomes -8, so the scale carries its sign and the odd level
 * below zero is used by the value that needs it. */
#include "format/q4_0.h"

#include "format/encode.h"

void qn_q4_0_encode(const float *restrict x, qn_q4_0 *b)
{
    float v[32];
    u8 q[32];
    qn_clean(x, v, 32);
    const float d = qn_extreme(v, 32) / -8;
    qn_steps(v, 0, qn_inverse(d), 8.5f, 15, q);
    b->d = qn_f32_f16(d);
    qn_pack_nibbles(q, b->q, 32);
}
