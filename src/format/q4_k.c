/* q4_k.c - Q4_K made: kfit.c finds the numbers, this packs them. */
#include "format/q4_k.h"

#include "format/encode.h"
#include "format/kfit.h"

void qn_q4_k_encode(const float *restrict x, qn_q4_k *b)
{
    qn_kfit k;
    qn_kfit_find(x, 15, &k);
    b->d = k.d;
    b->dmin = k.dmin;
    qn_kscale_put(k.scale, k.min, b->scale);
    for (int j = 0; j < 4; j++) qn_pack_nibbles(k.q + 64 * j, b->q + 32 * j, 64);
}
