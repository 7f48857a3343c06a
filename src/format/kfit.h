/* kfit.h - the search behind Q4_K and Q5_K: 256 weights as y = d * scale[g] * q - dmin * min[g] in 8 groups of 32. */
#ifndef QN_KFIT_H
#define QN_KFIT_H

#include "base/types.h"

typedef struct qn_kfit {
    u16 d, dmin;               /* f16 */
    u8 scale[8], min[8];       /* 0..63 */
    u8 q[256];                 /* 0..top */
} qn_kfit;

void qn_kfit_find(const float *restrict x, int top, qn_kfit *out);

#endif
