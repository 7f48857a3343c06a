/* rope.h - rotary position. The angles of a row are made once, in double, and used by all of its heads. */
#ifndef QN_GENERIC_ROPE_H
#define QN_GENERIC_ROPE_H

#include <math.h>

#include "kernel/generic/vec.h"
#include "kernel/op.h"

#define ROT_MOST 512 /* the model refuses larger heads */

/* Factors laid out as the values of a head lie: x' = x * same + partner(x) * other. */
typedef struct rotation { float same[ROT_MOST], other[ROT_MOST]; } rotation;

static void angles(const qn_rope *a, int pos, rotation *r)
{
    const int half = a->d_rot / 2;
    for (int i = 0; i < half; i++) {
        double s, c;
        sincos((double)pos * (double)a->freq[i], &s, &c);
        const int p = a->neox ? i : 2 * i, q = a->neox ? i + half : 2 * i + 1;
        r->same[p] = r->same[q] = (float)(c * (double)a->mscale);
        r->other[p] = (float)(-s * (double)a->mscale);
        r->other[q] = (float)(s * (double)a->mscale);
    }
}

static void rotate_pairs(float *x, const rotation *r, int d)
{
    int i = 0;
    for (; i + LANES <= d; i += LANES) {
        const vf v = load(x + i);
        store(x + i, vfma(v, load(r->same + i), swap_pairs(v) * load(r->other + i)));
    }
    if (i < d) {
        const vf v = load_first(x + i, d - i);
        store_first(x + i, vfma(v, load_first(r->same + i, d - i), swap_pairs(v) * load_first(r->other + i, d - i)), d - i);
    }
}

static void rotate_halves(float *x, const rotation *r, int d)
{
    const int half = d / 2;
    float *y = x + half;
    int i = 0;
    for (; i + LANES <= half; i += LANES) {
        const vf u = load(x + i), v = load(y + i);
        store(x + i, vfma(u, load(r->same + i), v * load(r->other + i)));
        store(y + i, vfma(v, load(r->same + half + i), u * load(r->other + half + i)));
    }
    for (; i < half; i++) {
        const float u = x[i], v = y[i];
        x[i] = u * r->same[i] + v * r->other[i];
        y[i] = v * r->same[half + i] + u * r->other[half + i];
    }
}

static void rope(const qn_rope *a, qn_lane lane)
{
    rotation r;
    for (int t = lane_begin(a->n, lane), end = lane_end(a->n, lane); t < end; t++) {
        angles(a, a->pos[t], &r);
        for (int h = 0; h < a->n_head + a->n_kv; h++) {
            float *x = h < a->n_head ? a->q + ((size_t)t * (size_t)a->n_head + (size_t)h) * (size_t)a->d_head
                                     : a->k + ((size_t)t * (size_t)a->n_kv + (size_t)(h - a->n_head)) * (size_t)a->d_head;
            if (a->neox) rotate_halves(x, &r, a->d_rot);
            else rotate_pairs(x, &r, a->d_rot);
        }
    }
}

#endif
