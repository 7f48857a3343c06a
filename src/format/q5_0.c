/* q5_0.c - Q5_0 made: the value of largest magnitude becomes -16, so the scale carries its sign and the odd level
 * below zero is used by the value that needs it. */
#include "format/q5_0.h"

#include "format/encode.h"

void qn_q5_0_encode(const float *restrict x, qn_q5_0 *b)
{
    float v[32];
    u8 q[32];
    qn_clean(x, v, 32);
    const float d = qn_extreme(v, 32) / -16;
    qn_steps(v, 0, qn_inverse(d), 16.5f, 31, q);
    b->d = qn_f32_f16(d);
    qn_pack_fifth(q, b->high);
    qn_pack_nibbles(q, b->q, 32);
}
