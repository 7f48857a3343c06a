/* avx512bf16/blinear.c - bf16 times panels with vdpbf16ps: 16 output rows to a register, pairs of
 * activations broadcast from memory. An output is one chain of dot products over the columns from
 * first to last, for every number of rows: the law of rows. A tile is R rows of x by P panels: with
 * one row, four panels side by side hide the latency of the chain; with four rows and four panels
 * 8 loads feed 16 dot products. Variants, the same bits from each: `r12` has tiles of 4 rows by 4 panels
 * (12 by 1 where panels run out), `r6` of 6 by 4; `far` asks for weights of up to two rows of x ahead of time. */
#include <immintrin.h>

#include "kernel/op.h"
#include "kernel/panel.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
#define ROWS 96 /* rows of x that share a panel while it is in L2 */
#define AHEAD 64 /* pairs: 4 KiB of each panel */

typedef struct variant { int rows; bool fetch; } variant;

INLINE __m512bh pair_at(const u16 *x)
{
    i32 v;
    __builtin_memcpy(&v, x, 4);
    return (__m512bh)_mm512_set1_epi32(v);
}

typedef struct task {
    const qn_blinear *a;
    int row, panel;
} task;

INLINE void put(const task *t, int r, int p, __m512 v)
{
    const qn_blinear *a = t->a;
    const int first = (t->panel + p) * QN_PANEL, left = a->rows - first;
    const __mmask16 mask = left >= 16 ? (__mmask16)0xFFFF : (__mmask16)((1 << left) - 1);
    if (a->bias) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, a->bias + first));
    _mm512_mask_storeu_ps(a->y + (size_t)(t->row + r) * (size_t)a->rows + (size_t)first, mask, v);
}

INLINE void tile(const task *t, const int R, const int P, const bool fetch)
{
    const qn_blinear *a = t->a;
    const size_t pairs = (size_t)a->cols / 2;
    const qn_panel_bf16 *w = (const qn_panel_bf16 *)(const void *)a->panels +
                             (size_t)t->panel * pairs;
    __m512 acc[24];
    UNROLL
    for (int i = 0; i < R * P; i++) acc[i] = _mm512_setzero_ps();
    for (size_t k = 0; k < pairs; k++) {
        __m512bh v[4];
        UNROLL
        for (int p = 0; p < P; p++) v[p] = (__m512bh)_mm512_loadu_si512(&w[(size_t)p * pairs + k]);
        UNROLL
        for (int p = 0; fetch && p < P; p++) __builtin_prefetch(&w[(size_t)p * pairs + k + AHEAD], 0, 0);
        UNROLL
        for (int r = 0; r < R; r++) {
            const __m512bh x = pair_at(a->x + (size_t)(t->row + r) * (size_t)a->cols + 2 * k);
            UNROLL
            for (int p = 0; p < P; p++) acc[r * P + p] = _mm512_dpbf16_ps(acc[r * P + p], v[p], x);
        }
    }
    UNROLL
    for (int r = 0; r < R; r++) UNROLL
    for (int p = 0; p < P; p++) put(t, r, p, acc[r * P + p]);
}

/* Rows row .. row+n of x times panels begin .. end. */
INLINE void block(const qn_blinear *a, const variant v, int row, int n, int begin, int end)
{
    task t = { .a = a };
    for (t.panel = begin; t.panel < end;) {
        const int wide = end - t.panel >= 4 ? 4 : 1;
        int r = 0;
        for (; v.rows == 6 && wide == 4 && r + 6 <= n; r += 6) t.row = row + r, tile(&t, 6, 4, false);
        for (; wide == 4 && r + 4 <= n; r += 4) t.row = row + r, tile(&t, 4, 4, false);
        for (; wide == 4 && r + 2 <= n; r += 2) t.row = row + r, tile(&t, 2, 4, v.fetch);
        for (; wide == 4 && r < n; r++) t.row = row + r, tile(&t, 1, 4, v.fetch);
        for (; r + 12 <= n; r += 12) t.row = row + r, tile(&t, 12, 1, false);
        for (; r + 4 <= n; r += 4) t.row = row + r, tile(&t, 4, 1, false);
        for (; r < n; r++) t.row = row + r, tile(&t, 1, 1, false);
        t.panel += wide;
    }
}

INLINE void blinear(const void *args, const variant v, qn_lane lane)
{
    const qn_blinear *a = args;
    const int n_panels = (a->rows + QN_PANEL - 1) / QN_PANEL;
    for (int row = 0; row < a->n; row += ROWS)
        block(a, v, row, a->n - row < ROWS ? a->n - row : ROWS, lane_begin(n_panels, lane),
              lane_end(n_panels, lane));
}

/* F16 and BF16 become the same panels. */
#define MAKE(which, ...) \
    static void run_##which(const void *args, qn_lane lane) { blinear(args, (variant)__VA_ARGS__, lane); } \
    void qn_blinear_f16_avx512bf16_##which(const void *args, qn_lane lane); \
    void qn_blinear_bf16_avx512bf16_##which(const void *args, qn_lane lane); \
    void qn_blinear_f16_avx512bf16_##which(const void *args, qn_lane lane) { run_##which(args, lane); } \
    void qn_blinear_bf16_avx512bf16_##which(const void *args, qn_lane lane) { run_##which(args, lane); }
MAKE(r12, { 4, false })
MAKE(r6, { 6, false })
MAKE(far, { 4, true })

void qn_narrow_f32_avx512bf16_r1(const void *args, qn_lane lane);
/* vcvtneps2bf16 flushes denormals; the arithmetic of the dot product would do the same to them. */
void qn_narrow_f32_avx512bf16_r1(const void *args, qn_lane lane)
{
    const qn_narrow *a = args;
    const size_t begin = (size_t)lane_begin(a->n, lane) * (size_t)a->d,
                 end = (size_t)lane_end(a->n, lane) * (size_t)a->d;
    size_t i = begin;
    for (; i + 16 <= end; i += 16)
        _mm256_storeu_si256((__m256i *)(void *)(a->y + i),
                            (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(a->x + i)));
    if (i < end) {
        const __mmask16 k = (__mmask16)((1u << (end - i)) - 1);
        _mm256_mask_storeu_epi16(a->y + i, k,
                                 (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(k, a->x + i)));
    }
}
