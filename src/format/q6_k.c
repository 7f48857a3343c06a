/* q6_k.c - Q6_K made. First each group of 16 alone: the value of largest magnitude is laid near either end of the levels, a
 * little tighter or wider, and the scale that suits these levels best is solved for. Then the block: scales become bytes
 * times d, each group takes the best of three neighbours, and d is solved for again while that lowers the error. */
#include "format/q6_k.h"

#include "format/encode.h"
#include "format/lanes4.h"

enum { QUADS = 4, N = 16 }; /* 16 groups as 4 x 4 lanes, weights per group */

typedef struct scales { float d; qn_f32x4 scale[QUADS]; double error; } scales; /* scale: -128..127 */

static inline qn_f32x4 level(qn_f32x4 x, qn_f32x4 inverse) { return qn_level4(x * inverse, -32, 31); }

/* Squared error falls by (sum x q)^2 / (sum q^2) if the levels q get their best scale, sum x q / sum q^2. */
static qn_f32x4 solve(const qn_f32x4 x[N], qn_f32x4 inverse, qn_f32x4 *scale)
{
    qn_f32x4 xq = { 0 }, qq = { 0 };
    for (int i = 0; i < N; i++) {
        const qn_f32x4 q = level(x[i], inverse);
        xq += x[i] * q;
        qq += q * q;
    }
    *scale = xq * qn_inverse4(qq);
    return *scale * xq;
}

static void search_groups(const qn_f32x4 x[N], qn_f32x4 *scale)
{
    qn_f32x4 most = { 0 }, best = { 0 };
    for (int i = 0; i < N; i++) most = qn_pick4(qn_abs4(x[i]) > qn_abs4(most), x[i], most);
    *scale = qn_all4(0);
    const qn_f32x4 unit = qn_inverse4(most);
    for (int k = 0; k < 20; k++) {
        /* the extreme goes to -30.9 .. -32.7, then to 29.9 .. 31.7 */
        const float to = k < 10 ? -30.9f - 0.2f * (float)k : 29.9f + 0.2f * (float)(k - 10);
        qn_f32x4 s;
        const qn_f32x4 gain = solve(x, unit * to, &s);
        const qn_i32x4 better = gain > best;
        best = qn_pick4(better, gain, best);
        *scale = qn_pick4(better, s, *scale);
    }
}

static qn_f32x4 error_of(const qn_f32x4 x[N], qn_f32x4 s)
{
    const qn_f32x4 inverse = qn_inverse4(s);
    qn_f32x4 error = { 0 };
    for (int i = 0; i < N; i++) {
        const qn_f32x4 e = x[i] - s * level(x[i], inverse);
        error += e * e;
    }
    return error;
}

/* Every group takes the best scale of three around the one it has. Sets k->error. */
static void choose_scales(const qn_f32x4 x[QUADS][N], scales *k)
{
    k->error = 0;
    for (int c = 0; c < QUADS; c++) {
        const qn_f32x4 s0 = k->scale[c];
        qn_f32x4 best = qn_all4(FLT_MAX);
        for (int i = -1; i <= 1; i++) {
            const qn_f32x4 s = qn_level4(s0 + (float)i, -128, 127), error = error_of(x[c], k->d * s);
            const qn_i32x4 better = error < best;
            best = qn_pick4(better, error, best);
            k->scale[c] = qn_pick4(better, s, k->scale[c]);
        }
        for (int l = 0; l < 4; l++) k->error += (double)best[l];
    }
}

static void solve_block(const qn_f32x4 x[QUADS][N], scales *k)
{
    double aa = 0, xa = 0; /* y = d * a */
    for (int c = 0; c < QUADS; c++) {
        const qn_f32x4 inverse = qn_inverse4(k->d * k->scale[c]);
        qn_f32x4 vaa = { 0 }, vxa = { 0 };
        for (int i = 0; i < N; i++) {
            const qn_f32x4 a = k->scale[c] * level(x[c][i], inverse);
            vaa += a * a;
            vxa += x[c][i] * a;
        }
        for (int l = 0; l < 4; l++) aa += (double)vaa[l], xa += (double)vxa[l];
    }
    if (aa > 0) k->d = qn_f16_f32(qn_f32_f16((float)(xa / aa)));
}

static void start(const qn_f32x4 x[QUADS][N], scales *k)
{
    float s[4 * QUADS];
    for (int c = 0; c < QUADS; c++) {
        search_groups(x[c], &k->scale[c]);
        for (int l = 0; l < 4; l++) s[4 * c + l] = k->scale[c][l];
    }
    k->d = qn_f16_outward(qn_extreme(s, 4 * QUADS) / -128);
    for (int c = 0; c < QUADS; c++) k->scale[c] = qn_level4(k->scale[c] * qn_inverse(k->d), -128, 127);
    choose_scales(x, k);
}

static void pack(const qn_f32x4 x[QUADS][N], const scales *k, qn_q6_k *b)
{
    u8 q[256];
    for (int c = 0; c < QUADS; c++) {
        const qn_f32x4 inverse = qn_inverse4(k->d * k->scale[c]);
        for (int i = 0; i < N; i++) {
            const qn_f32x4 v = level(x[c][i], inverse) + 32;
            for (int l = 0; l < 4; l++) q[(4 * c + l) * N + i] = (u8)v[l];
        }
    }
    b->d = qn_f32_f16(k->d);
    for (int g = 0; g < 16; g++) b->scale[g] = (i8)k->scale[g / 4][g % 4];
    for (int h = 0; h < 2; h++) {
        const u8 *from = q + 128 * h;
        qn_pack_nibbles(from, b->low + 64 * h, 128);
        for (int i = 0; i < 32; i++)
            b->high[32 * h + i] = (u8)(from[i] >> 4 | from[i + 32] >> 4 << 2 | from[i + 64] >> 4 << 4 | from[i + 96] >> 4 << 6);
    }
}

void qn_q6_k_encode(const float *restrict in, qn_q6_k *b)
{
    float v[256];
    qn_f32x4 x[QUADS][N];
    qn_clean(in, v, 256);
    for (int c = 0; c < QUADS; c++) qn_turn4(v + 4 * N * c, N, x[c]);
    scales best;
    start(x, &best);
    for (int round = 0; round < 2; round++) {
        scales next = best;
        solve_block(x, &next);
        choose_scales(x, &next);
        if (!(next.error < best.error)) break;
        best = next;
    }
    pack(x, &best, b);
}
