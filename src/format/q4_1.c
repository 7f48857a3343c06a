/* q4_1.c - Q4_1 made: the smallest value becomes 0, the largest 15. */
#include "format/q4_1.h"

#include "format/encode.h"

void qn_q4_1_encode(const float *restrict x, qn_q4_1 *b)
{
    float v[32], min, max;
    u8 q[32];
    qn_clean(x, v, 32);
    qn_range(v, 32, &min, &max);
    const float d = (max - min) / 15;
    qn_steps(v, min, qn_inverse(d), 0.5f, 15, q);
    b->d = qn_f32_f16(d);
    b->m = qn_f32_f16(min);
    qn_pack_nibbles(q, b->q, 32);
}
