/* avx512bf16/matmul.c - plain products of bf16 by the instruction that multiplies pairs and adds them to a float: 6 rows by 4
 * panels, as generic/gemm.h has it for floats. Both sides are packed by pairs of k, an odd k is filled up with zeros; 96 rows of
 * a and 4 panels of b at a time (`pack`), or 264 rows and more of k (`tall`), as generic/matmul.h has them. alpha and beta are
 * applied where sums are written. */
#include <immintrin.h>
#include <string.h>

#include "kernel/op.h"
#include "kernel/panel.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
#define R 6
#define P 4
#define ROWS 264                /* the most of a variant */
#define PAIRS 256

typedef struct limits { int rows, pairs; } limits;

typedef struct tile {
    const u32 *a;               /* [rows][PAIRS] */
    const u32 (*b)[PAIRS * QN_PANEL]; /* [P] panels of [pairs][16] */
    int pairs;
    float *y;
    size_t y_stride;
    int left;                   /* columns that exist */
    float alpha, beta;          /* beta of what y holds: 1 after the first chunk */
    const float *bias;          /* NULL before the last */
} tile;

INLINE __mmask16 mask_of(int left) { return (__mmask16)(left >= 16 ? 0xFFFF : left > 0 ? (1u << left) - 1 : 0); }

INLINE void put(const tile *t, int r, int p, __m512 sum)
{
    float *y = t->y + (size_t)r * t->y_stride + QN_PANEL * p;
    const __mmask16 m = mask_of(t->left - QN_PANEL * p);
    __m512 v = _mm512_mul_ps(sum, _mm512_set1_ps(t->alpha));
    if (t->beta != 0) v = _mm512_fmadd_ps(_mm512_set1_ps(t->beta), _mm512_maskz_loadu_ps(m, y), v);
    if (t->bias) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(m, t->bias + QN_PANEL * p));
    _mm512_mask_storeu_ps(y, m, v);
}

INLINE void run_tile(const tile *t, const int rows)
{
    __m512 acc[R][P];
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int p = 0; p < P; p++) acc[r][p] = _mm512_setzero_ps();
    for (int k = 0; k < t->pairs; k++) {
        __m512bh w[P];
        UNROLL for (int p = 0; p < P; p++) w[p] = (__m512bh)_mm512_load_si512(t->b[p] + k * QN_PANEL);
        UNROLL for (int r = 0; r < rows; r++) {
            const __m512bh x = (__m512bh)_mm512_set1_epi32((int)t->a[r * PAIRS + k]);
            UNROLL for (int p = 0; p < P; p++) acc[r][p] = _mm512_dpbf16_ps(acc[r][p], w[p], x);
        }
    }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int p = 0; p < P; p++) put(t, r, p, acc[r][p]);
}

static __attribute__((noinline)) void tile_many(const tile *t) { run_tile(t, R); }
static __attribute__((noinline)) void tile_one(const tile *t) { run_tile(t, 1); }

/* Element (i, k) of a matrix whose rows, or with `across` columns, lie one behind the other; 0 behind the end. */
INLINE u32 pair(const u16 *m, size_t i, size_t k, size_t n, size_t depth, bool across)
{
    const u32 lo = across ? m[k * n + i] : m[i * depth + k];
    const u32 hi = k + 1 >= depth ? 0 : across ? m[(k + 1) * n + i] : m[i * depth + k + 1];
    return lo | hi << 16;
}

static void pack_a(const qn_matmul *m, const u16 *a, int row, int n, int k, int pairs, u32 *out)
{
    for (int i = 0; i < n; i++) {
        const size_t r = (size_t)(row + i), from = r * (size_t)m->k + (size_t)k;
        if (!m->ta && k + 2 * pairs <= m->k) memcpy(out + i * PAIRS, a + from, (size_t)pairs * 4);
        else
            for (int c = 0; c < pairs; c++) out[i * PAIRS + c] = pair(a, r, (size_t)(k + 2 * c), (size_t)m->n, (size_t)m->k,
                                                                      m->ta);
    }
}

/* Two rows of b, woven: 16 columns of pairs. */
INLINE void weave(const u16 *lo, const u16 *hi, u32 *out)
{
    const __m512i l = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)lo));
    const __m512i h = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)hi));
    _mm512_store_si512(out, _mm512_or_si512(l, _mm512_slli_epi32(h, 16)));
}

static void pack_b(const qn_matmul *m, const u16 *b, int j, int k, int pairs, u32 *out)
{
    const size_t cols = (size_t)m->cols;
    const int left = qn_mini(QN_PANEL, m->cols - j);
    for (int c = 0; c < pairs; c++) {
        const size_t at = (size_t)(k + 2 * c);
        if (!m->tb && left == QN_PANEL && at + 1 < (size_t)m->k) {
            weave(b + at * cols + (size_t)j, b + (at + 1) * cols + (size_t)j, out + c * QN_PANEL);
            continue;
        }
        for (int i = 0; i < QN_PANEL; i++)
            out[c * QN_PANEL + i] = i < left ? pair(b, (size_t)(j + i), at, cols, (size_t)m->k, !m->tb) : 0;
    }
}

static void one_chunk(const qn_matmul *m, const limits *cut, size_t batch, int row, int k, int begin, int end, const u32 *a)
{
    _Alignas(64) u32 b[P][PAIRS * QN_PANEL];
    const size_t n = (size_t)m->n, cols = (size_t)m->cols;
    const int pairs = qn_mini(cut->pairs, (m->k - k + 1) / 2), rows = qn_mini(cut->rows, m->n - row);
    const u16 *from = (const u16 *)m->b + batch * (size_t)m->k * cols;
    for (int i = begin; i < end; i += P) {
        const int panels = qn_mini(P, end - i), j = i * QN_PANEL;
        for (int p = 0; p < panels; p++) pack_b(m, from, j + p * QN_PANEL, k, pairs, b[p]);
        for (int p = panels; p < P; p++) memset(b[p], 0, (size_t)pairs * QN_PANEL * sizeof **b); /* nobody's: not written */
        tile t = { .a = a, .b = (const u32 (*)[PAIRS * QN_PANEL])b, .pairs = pairs, .y_stride = cols,
                   .y = m->y + (batch * n + (size_t)row) * cols + (size_t)j, .left = qn_mini(m->cols - j, panels * QN_PANEL),
                   .alpha = m->alpha, .beta = k == 0 ? m->beta : 1,
                   .bias = m->bias && k + 2 * pairs >= m->k ? m->bias + j : NULL };
        int r = 0;
        for (; r + R <= rows; r += R, t.a += R * PAIRS, t.y += R * cols) tile_many(&t);
        for (; r < rows; r++, t.a += PAIRS, t.y += cols) tile_one(&t);
    }
}

static void matmul(const qn_matmul *m, qn_lane lane, const limits cut)
{
    _Alignas(64) u32 a[ROWS * PAIRS];
    const int n_panels = (m->cols + QN_PANEL - 1) / QN_PANEL;
    const int begin = lane_begin(n_panels, lane), end = lane_end(n_panels, lane);
    for (size_t batch = 0; begin < end && batch < (size_t)m->batch; batch++)
        for (int row = 0; row < m->n; row += cut.rows)
            for (int k = 0; k < m->k; k += 2 * cut.pairs) {
                const u16 *from = (const u16 *)m->a + batch * (size_t)m->n * (size_t)m->k;
                pack_a(m, from, row, qn_mini(cut.rows, m->n - row), k, qn_mini(cut.pairs, (m->k - k + 1) / 2), a);
                one_chunk(m, &cut, batch, row, k, begin, end, a);
            }
}

void qn_matmul_bf16_avx512bf16_pack(const void *args, qn_lane lane);
void qn_matmul_bf16_avx512bf16_tall(const void *args, qn_lane lane);
void qn_matmul_bf16_avx512bf16_pack(const void *args, qn_lane lane) { matmul(args, lane, (limits){ 96, 128 }); }
void qn_matmul_bf16_avx512bf16_tall(const void *args, qn_lane lane) { matmul(args, lane, (limits){ 264, 256 }); }
