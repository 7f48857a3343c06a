/* q5_1.c - Q5_1 made: the smallest value becomes 0, the largest 31. */
#include "format/q5_1.h"

#include "format/encode.h"

void qn_q5_1_encode(const float *restrict x, qn_q5_1 *b)
{
    float v[32], min, max;
    u8 q[32];
    qn_clean(x, v, 32);
    qn_range(v, 32, &min, &max);
    const float d = (max - min) / 31;
    qn_steps(v, min, qn_inverse(d), 0.5f, 31, q);
    b->d = qn_f32_f16(d);
    b->m = qn_f32_f16(min);
    qn_pack_fifth(q, b->high);
    qn_pack_nibbles(q, b->q, 32);
}
