/* avx512vnni/qlinear.c - bytes times panels with vpdpbusd: 16 output rows to a register, activations
 * broadcast from memory.
 *
 * Up to FEW rows of x (decode, and small batches) a panel is taken apart as it streams by, in code made
 * for its type: R rows of x by one panel, in each block of 32 columns 8 groups into R integer sums, then
 * each, shifted by its row's power of two, into a float with the panel's scale. Sums of integers are exact,
 * so the only order that matters is that of the blocks, and it is the same for every R: the law of rows. With
 * more rows qmany.c does the same over panels that their first rows opened for all of them. Memory is the limit up to there,
 * so nothing is stored on the way; beyond, taking panels apart for each row alone takes longer than opening them. Bytes
 * need no taking apart: with 12 rows of Q8_0 that is still 8 to 15 % faster (Zen 5), with 12 of a 4-bit type slower. */
#include "kernel/avx512vnni/qforms.h"
#include "kernel/avx512vnni/qmany.h"

#define FEW 8         /* rows of x up to which a panel is taken apart in passing */
#define FEW_BYTES 12  /* and where its values are bytes as they are */

/* Variants, the same bits from each; which is best depends on the processor and on where the weights come from. */
typedef struct variant {
    int ahead;     /* bytes of weights asked for ahead of time; 0: the core looks ahead by itself */
    bool q8_too;   /* also one row of Q8_0 */
    int plains;    /* most blocks that are unpacked at a time for many rows; 0: QN_PLAINS */
} variant;
#define VARIANT_r12 { 4096, false, 0 }
#define VARIANT_far { 8192, true, 28 }
#define VARIANT_bare { 0, false, 44 }

typedef struct task {
    const qn_qlinear *a;
    const u8 *w;    /* the panel */
    int panel;
} task; /* what a tile has more than the rows of x repeats the last of them */

/* What makes up for the offset of the weights: -2^k times the sum of the activations. */
INLINE __m512i start_sum(i32 start, int k)
{
    return k < 0 ? _mm512_setzero_si512() : _mm512_set1_epi32(start >> (7 - k));
}

/* Groups first .. last-1 of block `sub` of the panel block p into R sums; block b of the rows of x. */
INLINE void dots(const form f, const qn_bytes *x, const size_t *at, const u8 *p, int sub, int first, int last, __m512i *dot,
                 const int R)
{
    __m512i odd = _mm512_setzero_si512();
    UNROLL
    for (int r = 0; r < R; r++)
        dot[r] = start_sum(f.halves ? x->start16[2 * at[r] + (size_t)(first / 4)] : x->start[at[r]], f.log2_off);
    UNROLL
    for (int i = first; i < last; i++) {
        const __m512i w = f.group(p, sub, i);
        UNROLL
        for (int r = 0; r < R; r++) {
            const i8 *q = x->q + 32 * at[r] + 4 * (size_t)i;
            if (R == 1 && i % 2) odd = _mm512_dpbusd_epi32(odd, w, four(q)); /* one row: two chains hide the latency */
            else dot[r] = _mm512_dpbusd_epi32(dot[r], w, four(q));
        }
    }
    if (R == 1) dot[0] = _mm512_add_epi32(dot[0], odd);
}

/* What has a scale of its own: a block, or a half of it. Called for each half by name: as a loop gcc 12 kept it and the
 * bounds of its groups, and one row of Q6_K took twice as long. */
INLINE void scaled(const form f, const qn_bytes *x, const size_t *at, const u8 *p, int sub, const scales *s, const int half,
                   __m512 *acc, const int R)
{
    __m512i dot[FEW_BYTES];
    dots(f, x, at, p, sub, 4 * half, f.halves ? 4 * half + 4 : 8, dot, R);
    UNROLL
    for (int r = 0; r < R; r++)
        acc[r] = _mm512_fmadd_ps(shifted(dot[r], _mm512_set1_epi32(x->shift[at[r]])), s->s[half], acc[r]);
}

INLINE void block(const form f, const qn_bytes *x, const size_t *at, const u8 *p, int sub, __m512 *acc, const int R)
{
    const scales s = f.scale(p, sub);
    scaled(f, x, at, p, sub, &s, 0, acc, R);
    if (f.halves) scaled(f, x, at, p, sub, &s, 1, acc, R);
    if (!f.mins) return;
    const __m512 m = _mm512_mul_ps(s.m, _mm512_set1_ps(-1.0f / 128)); /* start is -128 times the sum */
    UNROLL
    for (int r = 0; r < R; r++)
        acc[r] = _mm512_fmadd_ps(shifted(_mm512_set1_epi32(x->start[at[r]]), _mm512_set1_epi32(x->shift[at[r]])), m, acc[r]);
}

/* With more than a few instructions to a line the core itself does not look far enough ahead: 8 rows of Q8_0 read 14 GB/s
 * without this and 28 with it, one row of Q6_K 19 and 29 (two threads). Lines that nobody reads again need no place in the
 * caches behind the first: that and 4 KiB instead of 2 made a token of Q4_0 4 % and of Q4_K_M 4 % shorter. One row of Q8_0 has
 * so few instructions that the core does better by itself: 8 % (17.3 ms a token against 18.8, Qwen2.5-0.5B). K types are read in
 * several places of a block at once and want twice the distance: with it a token of Llama-3.2-1B Q4_K_M takes 6 % less (Zen 5,
 * 3 % each for Q6_K and Q4_K). */
INLINE void fetch_ahead(const u8 *p, size_t bytes, const int ahead)
{
    UNROLL
    for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + ahead + i, 0, 0);
}

/* Whether values are bytes as they are: nothing to take apart. */
INLINE bool plain_bytes(const form f) { return f.log2_off == 7; }

INLINE void tile(const form f, const variant v, const task *t, const int R)
{
    const qn_qlinear *a = t->a;
    const size_t nb = (size_t)a->cols / 32, rows = (size_t)a->rows, first = (size_t)t->panel * QN_PANEL;
    const size_t left = rows - first;
    const __mmask16 mask = left >= 16 ? (__mmask16)0xFFFF : (__mmask16)((1 << left) - 1);
    __m512 acc[FEW_BYTES];
    size_t at[FEW_BYTES], step[FEW_BYTES]; /* blocks of x */
    UNROLL
    for (int r = 0; r < R; r++) {
        acc[r] = _mm512_setzero_ps();
        const qn_strand row = qn_bytes_row(a->n, qn_mini(r, a->n - 1), (int)nb);
        at[r] = row.first;
        step[r] = row.step;
    }
    const u8 *p = t->w;
    const size_t sub_bytes = f.bytes / (size_t)f.blocks;
    const int ahead = f.blocks > 1 ? 2 * v.ahead : v.ahead;
    for (size_t b = 0; b < nb; b += (size_t)f.blocks, p += f.bytes)
        for (int sub = 0; sub < f.blocks; sub++) {
            if (ahead && (R > 1 || v.q8_too || !plain_bytes(f))) fetch_ahead(p + (size_t)sub * sub_bytes, sub_bytes, ahead);
            block(f, &a->x, at, p, sub, acc, R);
            UNROLL
            for (int r = 0; r < R; r++) at[r] += step[r];
        }
    const __m512 bias = a->bias ? _mm512_maskz_loadu_ps(mask, a->bias + first) : _mm512_setzero_ps();
    UNROLL
    for (int r = 0; r < R; r++) {
        const size_t row = (size_t)qn_mini(r, a->n - 1);
        _mm512_mask_storeu_ps(a->y + row * rows + first, mask, _mm512_fmadd_ps(acc[r], _mm512_set1_ps(a->x.unit[row]), bias));
    }
}

INLINE void few(const form f, const variant v, const qn_qlinear *a, qn_lane lane)
{
    const int panels = (a->rows + QN_PANEL - 1) / QN_PANEL;
    const size_t panel_bytes = (size_t)(a->cols / 32 / f.blocks) * f.bytes;
    for (int i = lane_begin(panels, lane), end = lane_end(panels, lane); i < end; i++) {
        const task t = { .a = a, .w = a->panels + (size_t)i * panel_bytes, .panel = i };
        if (a->n == 1) tile(f, v, &t, 1);
        else if (a->n == 2) tile(f, v, &t, 2);
        else if (a->n <= 4) tile(f, v, &t, 4);
        else if (a->n <= 6) tile(f, v, &t, 6);
        else if (a->n <= FEW || !plain_bytes(f)) tile(f, v, &t, FEW);
        else if (a->n <= 10) tile(f, v, &t, 10);
        else tile(f, v, &t, FEW_BYTES);
    }
}

INLINE void qlinear(const form f, const variant v, const qn_opener u, const qn_qlinear *a, qn_lane lane)
{
    if (a->n <= (plain_bytes(f) ? FEW_BYTES : FEW)) few(f, v, a, lane);
    else qn_qmany(a, &u, lane);
}

#define MAKE_AS(which, name, log2_off, mins, halves, blocks) \
    void qn_qlinear_##name##_avx512vnni_##which(const void *args, qn_lane lane); \
    void qn_qlinear_##name##_avx512vnni_##which(const void *args, qn_lane lane) \
    { \
        const qn_qlinear *a = args; \
        const form f = QN_FORM(name, log2_off, mins, halves, blocks); \
        const variant v = VARIANT_##which; \
        const qn_opener u = { qn_qopen_##name, (size_t)(a->cols / 32 / (blocks)) * sizeof(qn_panel_##name), \
                              QN_PLAIN_KIND(mins, halves), v.plains }; \
        qlinear(f, v, u, a, lane); \
    }
#define MAKE_r12(...) MAKE_AS(r12, __VA_ARGS__)
#define MAKE_far(...) MAKE_AS(far, __VA_ARGS__)
#define MAKE_bare(...) MAKE_AS(bare, __VA_ARGS__)
QN_FORMS(MAKE_r12)
QN_FORMS(MAKE_far)
QN_FORMS(MAKE_bare)
