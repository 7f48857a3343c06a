/* q5_k.c - Q5_K made: kfit.c finds the numbers, this packs them. */
#include "format/q5_k.h"

#include "format/encode.h"
#include "format/kfit.h"

void qn_q5_k_encode(const float *restrict x, qn_q5_k *b)
{
    qn_kfit k;
    qn_kfit_find(x, 31, &k);
    b->d = k.d;
    b->dmin = k.dmin;
    qn_kscale_put(k.scale, k.min, b->scale);
    for (int j = 0; j < 4; j++) qn_pack_nibbles(k.q + 64 * j, b->q + 32 * j, 64);
    memset(b->high, 0, sizeof b->high);
    for (int g = 0; g < 8; g++)
        for (int i = 0; i < 32; i++) b->high[i] = (u8)(b->high[i] | (k.q[32 * g + i] >> 4 & 1) << g);
}
