/* kfit.c - the search behind Q4_K and Q5_K. Two stages, both judged by the squared error of what will be decoded.
 * First each group alone: levels are laid over its range a little tighter or wider, each time the scale and min that suit the
 * levels best are solved for, the best try is kept and polished. Then the block: scales and mins become 6-bit multiples of d
 * and dmin, each group takes the best of the nine nearest pairs, and d and dmin are solved for again while that helps. */
#include "format/kfit.h"

#include "format/encode.h"
#include "format/lanes4.h"

enum { QUADS = 2, N = 32 }; /* 8 groups as 2 x 4 lanes, weights per group */

typedef struct turned { qn_f32x4 x[QUADS][N]; float top; } turned;
typedef struct scales { float d, dmin; qn_f32x4 scale[QUADS], min[QUADS]; double error; } scales; /* scale, min: 0..63 */

static inline qn_f32x4 level(qn_f32x4 x, qn_f32x4 min, qn_f32x4 inverse, float top)
{
    return qn_level4((x + min) * inverse, 0, top);
}

/* Levels of (x + from) * inverse; then the scale and the min >= 0 that suit these levels best, and the error of that. */
static qn_f32x4 solve(const qn_f32x4 x[N], float top, qn_f32x4 from, qn_f32x4 inverse, qn_f32x4 *scale, qn_f32x4 *min)
{
    qn_f32x4 q[N], sx = { 0 }, sq = { 0 }, sqq = { 0 }, sxq = { 0 }, error = { 0 };
    for (int i = 0; i < N; i++) {
        q[i] = level(x[i], from, inverse, top);
        sx += x[i];
        sq += q[i];
        sqq += q[i] * q[i];
        sxq += x[i] * q[i];
    }
    const qn_f32x4 det = N * sqq - sq * sq, idet = qn_inverse4(det);
    const qn_i32x4 flat = det < 0.5f; /* all levels are one: the min alone can say it, if it is not negative */
    const qn_f32x4 s = (N * sxq - sx * sq) * idet, m = qn_pick4(flat, -sx / N, (sq * sxq - sqq * sx) * idet);
    const qn_i32x4 below = m < 0;
    *scale = qn_pick4(below, sxq * qn_inverse4(sqq), qn_pick4(flat, qn_all4(0), s));
    *min = qn_pick4(below, qn_all4(0), m);
    for (int i = 0; i < N; i++) {
        const qn_f32x4 e = x[i] - (*scale * q[i] - *min);
        error += e * e;
    }
    return error;
}

static void keep_better(qn_f32x4 *best, qn_f32x4 error, qn_f32x4 *scale, qn_f32x4 s, qn_f32x4 *min, qn_f32x4 m)
{
    const qn_i32x4 better = error < *best;
    *best = qn_pick4(better, error, *best);
    *scale = qn_pick4(better, s, *scale);
    *min = qn_pick4(better, m, *min);
}

/* Four groups, each alone: *scale and *min as real numbers. */
static void search_groups(const qn_f32x4 x[N], float top, qn_f32x4 *scale, qn_f32x4 *min)
{
    qn_f32x4 lo = { 0 }, hi = x[0], best = qn_all4(FLT_MAX), s, m;
    for (int i = 0; i < N; i++) {
        lo = qn_min4(lo, x[i]);
        hi = qn_max4(hi, x[i]);
    }
    *scale = qn_all4(0);
    *min = -lo;
    for (int k = -8; k <= 8; k++) {
        const qn_f32x4 inverse = (top + 0.125f * (float)k) * qn_inverse4(hi - lo);
        const qn_f32x4 error = solve(x, top, -lo, inverse, &s, &m);
        keep_better(&best, error, scale, s, min, m);
    }
    for (int k = 0; k < 3; k++) {
        const qn_f32x4 error = solve(x, top, *min, qn_inverse4(*scale), &s, &m);
        keep_better(&best, error, scale, s, min, m);
    }
}

static qn_f32x4 error_of(const qn_f32x4 x[N], float top, qn_f32x4 s, qn_f32x4 m)
{
    const qn_f32x4 inverse = qn_inverse4(s);
    qn_f32x4 error = { 0 };
    for (int i = 0; i < N; i++) {
        const qn_f32x4 e = x[i] - (s * level(x[i], m, inverse, top) - m);
        error += e * e;
    }
    return error;
}

/* Every group takes the best pair of steps around the one it has. Sets k->error. */
static void choose_steps(const turned *t, scales *k)
{
    k->error = 0;
    for (int c = 0; c < QUADS; c++) {
        const qn_f32x4 s0 = k->scale[c], m0 = k->min[c];
        qn_f32x4 best = qn_all4(FLT_MAX);
        for (int i = 0; i < 9; i++) {
            const qn_f32x4 s = qn_level4(s0 + (float)(i / 3 - 1), 0, 63), m = qn_level4(m0 + (float)(i % 3 - 1), 0, 63);
            const qn_f32x4 error = error_of(t->x[c], t->top, k->d * s, k->dmin * m);
            keep_better(&best, error, &k->scale[c], s, &k->min[c], m);
        }
        for (int l = 0; l < 4; l++) k->error += (double)best[l];
    }
}

static float to_f16(double v) { return qn_f16_f32(qn_f32_f16((float)(v < 0 ? 0 : v > 65504 ? 65504 : v))); }

/* The d and dmin that suit all levels and steps best: least squares in two unknowns. */
static void solve_block(const turned *t, scales *k)
{
    double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0; /* y = d * a - dmin * b */
    for (int c = 0; c < QUADS; c++) {
        const qn_f32x4 s = k->d * k->scale[c], m = k->dmin * k->min[c], inverse = qn_inverse4(s), b = k->min[c];
        qn_f32x4 vaa = { 0 }, va = { 0 }, vxa = { 0 }, vx = { 0 };
        for (int i = 0; i < N; i++) {
            const qn_f32x4 x = t->x[c][i], a = k->scale[c] * level(x, m, inverse, t->top);
            vaa += a * a;
            va += a;
            vxa += x * a;
            vx += x;
        }
        for (int l = 0; l < 4; l++) {
            aa += (double)vaa[l];
            xa += (double)vxa[l];
            ab += (double)b[l] * (double)va[l];
            xb += (double)b[l] * (double)vx[l];
            bb += (double)b[l] * (double)b[l] * N;
        }
    }
    const double det = aa * bb - ab * ab;
    if (bb == 0 || det <= 1e-9 * aa * bb) {
        if (aa > 0) k->d = to_f16((xa + (double)k->dmin * ab) / aa);
        return;
    }
    k->d = to_f16((xa * bb - xb * ab) / det);
    k->dmin = to_f16((xa * ab - xb * aa) / det);
}

static void start(const turned *t, scales *k)
{
    float most_s = 0, most_m = 0;
    for (int c = 0; c < QUADS; c++) {
        search_groups(t->x[c], t->top, &k->scale[c], &k->min[c]);
        for (int l = 0; l < 4; l++) {
            most_s = fmaxf(most_s, k->scale[c][l]);
            most_m = fmaxf(most_m, k->min[c][l]);
        }
    }
    k->d = qn_f16_outward(most_s / 63);
    k->dmin = qn_f16_outward(most_m / 63);
    for (int c = 0; c < QUADS; c++) {
        k->scale[c] = qn_level4(k->scale[c] * qn_inverse(k->d), 0, 63);
        k->min[c] = qn_level4(k->min[c] * qn_inverse(k->dmin), 0, 63);
    }
    choose_steps(t, k);
}

static void finish(const turned *t, const scales *k, qn_kfit *out)
{
    out->d = qn_f32_f16(k->d);
    out->dmin = qn_f32_f16(k->dmin);
    for (int g = 0; g < 8; g++) {
        out->scale[g] = (u8)k->scale[g / 4][g % 4];
        out->min[g] = (u8)k->min[g / 4][g % 4];
    }
    for (int c = 0; c < QUADS; c++) {
        const qn_f32x4 s = k->d * k->scale[c], m = k->dmin * k->min[c], inverse = qn_inverse4(s);
        for (int i = 0; i < N; i++) {
            const qn_f32x4 q = level(t->x[c][i], m, inverse, t->top);
            for (int l = 0; l < 4; l++) out->q[(4 * c + l) * N + i] = (u8)q[l];
        }
    }
}

void qn_kfit_find(const float *restrict x, int top, qn_kfit *out)
{
    float v[256];
    turned t = { .top = (float)top };
    qn_clean(x, v, 256);
    for (int c = 0; c < QUADS; c++) qn_turn4(v + 4 * N * c, N, t.x[c]);
    scales best;
    start(&t, &best);
    for (int round = 0; round < 3; round++) {
        scales next = best;
        solve_block(&t, &next);
        choose_steps(&t, &next);
        if (!(next.error < best.error)) break;
        best = next;
    }
    finish(&t, &best, out);
}
