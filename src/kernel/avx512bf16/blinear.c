/* avx512bf16/blinear.c - bf16 times panels with vdpbf16ps: 16 output rows to a register, pairs of
 * activations broadcast from memory. An output is one chain of dot products over the columns from
 * first to last, for every number of rows: the law of rows.
 * Up to 8 rows of x open the 12-bit codes on their way from memory, a twin of panels at a time, which
 * hides the latency of the chain: 19 instructions for four vectors, in the shade of their loads. Of
 * more rows the first open a chunk of panels for the others, into L1 or L2, and results wait in y from
 * chunk to chunk. Variants, the same bits from each: `r12` has tiles of 4 rows by 4 panels (8 by 2 or 1
 * where panels run out), `r6` of 6 by 4. Both ask for weights ahead of time where rows are few; `bare` does not. */
#include <immintrin.h>

#include "kernel/bpanel.h"
#include "kernel/generic/ahead.h"
#include "kernel/op.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
#define ROWS 256  /* rows of x that share an opened chunk: 512 KiB of them; with 96 opening it again cost 1.5 % */
#define CHUNK 512 /* pairs of columns: 128 KiB for four panels; with half as many, x and y came and went twice as often */
#define STRIP 16  /* pairs between two looks at what to fetch: all widths are multiples of it */
#define AHEAD 6144 /* bytes; 3 and 8 KiB are as good, 12 is 2 % worse */

typedef struct variant { int rows; bool fetch; } variant;

/* A panel's base and the places of codes: see bpanel.h. */
typedef struct key { __m512i base, code, digits, at0, at1, at2, sign; } key;

INLINE key key_of(const u16 (*base)[2])
{
    return (key){ _mm512_loadu_si512(base), _mm512_set1_epi16((i16)QN_CODE), _mm512_set1_epi16(QN_CODE & 0x7FFF),
                  _mm512_set1_epi16(QN_FOURTH_0), _mm512_set1_epi16(QN_FOURTH_1), _mm512_set1_epi16(QN_FOURTH_2),
                  _mm512_set1_epi16((i16)QN_FOURTH_S) };
}

/* A code is bf16 when its base is added, but for zero, which has none. */
INLINE __m512bh based(const key *k, __m512i code)
{
    return (__m512bh)_mm512_maskz_add_epi16(_mm512_test_epi16_mask(code, k->digits), code, k->base);
}

/* (v AND mask) OR rest, in one instruction. */
INLINE __m512i joined(__m512i v, __m512i mask, __m512i rest) { return _mm512_ternarylogic_epi32(v, mask, rest, 0xEA); }

/* The four pairs of a quad. */
INLINE void open_quad(const key *k, const qn_quad *q, __m512bh v[4])
{
    const __m512i a = _mm512_loadu_si512(q->w[0]), b = _mm512_loadu_si512(q->w[1]), c = _mm512_loadu_si512(q->w[2]);
    v[0] = based(k, _mm512_and_si512(a, k->code));
    v[1] = based(k, _mm512_and_si512(b, k->code));
    v[2] = based(k, _mm512_and_si512(c, k->code));
    __m512i d = _mm512_and_si512(_mm512_srli_epi16(a, 4), k->at0);
    d = joined(_mm512_srli_epi16(b, 8), k->at1, d);
    d = joined(_mm512_srli_epi16(c, 12), k->at2, d);
    v[3] = based(k, joined(_mm512_slli_epi16(c, 4), k->sign, d));
}

/* Asks for what lies AHEAD behind a quad and will be used once: behind a twin comes the next one. */
INLINE void fetch(const qn_quad *q)
{
    UNROLL
    for (int i = 0; i < 3; i++) __builtin_prefetch((const u8 *)q + AHEAD + 64 * i, 0, 0);
}

/* Keeps the compiler from making a pointer of each row of it. */
#define HIDE3(a, b, c) __asm__("" : "+r"(a), "+r"(b), "+r"(c))

INLINE __m512bh pair_at(const u16 *x)
{
    i32 v;
    __builtin_memcpy(&v, x, 4);
    return (__m512bh)_mm512_set1_epi32(v);
}

typedef struct task {
    const qn_blinear *a;
    int row, panel;         /* panel: even, the first of a twin */
    int begin, pairs;       /* the chunk: pairs of columns */
    const __m512bh *w;      /* its weights, CHUNK pairs to a panel */
    qn_ahead *next;         /* packed weights behind it */
} task;

/* The twin that panel i is in. */
INLINE const qn_twin *twin_of(const qn_blinear *a, int i)
{
    return (const qn_twin *)(const void *)(a->panels + (size_t)(i / QN_TWIN) * qn_twin_bytes(a->cols));
}

INLINE float *out_of(const task *t, int r, int p, __mmask16 *mask)
{
    const int first = (t->panel + p) * QN_PANEL, left = t->a->rows - first;
    *mask = left >= 16 ? (__mmask16)0xFFFF : (__mmask16)((1 << left) - 1);
    return t->a->y + (size_t)(t->row + r) * (size_t)t->a->rows + (size_t)first;
}

INLINE __m512 start(const task *t, int r, int p)
{
    __mmask16 mask;
    const float *y = out_of(t, r, p, &mask);
    return t->begin ? _mm512_maskz_loadu_ps(mask, y) : _mm512_setzero_ps();
}

INLINE void put(const task *t, int r, int p, __m512 v)
{
    const qn_blinear *a = t->a;
    __mmask16 mask;
    float *y = out_of(t, r, p, &mask);
    if (a->bias && 2 * (t->begin + t->pairs) == a->cols)
        v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, a->bias + (t->panel + p) * QN_PANEL));
    _mm512_mask_storeu_ps(y, mask, v);
}

/* Row r of a tile: base + index * scale, from a pointer for every third row. A pointer for each row would not fit the
 * registers. */
INLINE const u16 *row_of(const u16 *const x[3], size_t stride, int r) { return x[r / 3] + (size_t)(r % 3) * stride; }

/* R rows by P panels over a chunk that has been opened. */
INLINE void tile(const task *t, const int R, const int P)
{
    const size_t stride = (size_t)t->a->cols;
    const u16 *x[3];
    UNROLL
    for (size_t i = 0; i < 3; i++) x[i] = t->a->x + ((size_t)t->row + 3 * i) * stride + 2 * (size_t)t->begin;
    __m512 acc[24];
    UNROLL
    for (int i = 0; i < R * P; i++) acc[i] = start(t, i / P, i % P);
    for (int k = 0, stop = 0; k < t->pairs;)
    for (qn_ahead_fetch(t->next, R * STRIP / 4), stop += STRIP; k < stop; k++, x[0] += 2, x[1] += 2, x[2] += 2) {
        __m512bh v[4];
        HIDE3(x[0], x[1], x[2]);
        UNROLL
        for (int p = 0; p < P; p++) v[p] = t->w[p * CHUNK + k];
        UNROLL
        for (int r = 0; r < R; r++) {
            const __m512bh pair = pair_at(row_of(x, stride, r));
            UNROLL
            for (int p = 0; p < P; p++) acc[r * P + p] = _mm512_dpbf16_ps(acc[r * P + p], v[p], pair);
        }
    }
    UNROLL
    for (int i = 0; i < R * P; i++) put(t, i / P, i % P, acc[i]);
}

/* Rows r .. n-1 by P panels over a chunk, in tiles of the sizes that exist. */
INLINE void tiles(task t, const variant v, int r, int n, const int P)
{
    const int row = t.row;
    for (; P == 4 && v.rows == 6 && r + 6 <= n; r += 6) t.row = row + r, tile(&t, 6, P);
    for (; P < 4 && r + 8 <= n; r += 8) t.row = row + r, tile(&t, 8, P);
    for (; r + 4 <= n; r += 4) t.row = row + r, tile(&t, 4, P);
    for (; r + 2 <= n; r += 2) t.row = row + r, tile(&t, 2, P);
    for (; r < n; r++) t.row = row + r, tile(&t, 1, P);
}

/* R rows by P panels over a chunk's columns, opened on the way and, if more rows want them, kept. */
INLINE void stream(const task *t, const variant v, const int R, const int P, __m512bh *keep)
{
    const qn_blinear *a = t->a;
    const u16 *x = a->x + (size_t)t->row * (size_t)a->cols + 2 * (size_t)t->begin;
    const qn_quad (*w[2])[QN_TWIN];
    key k[4];
    __m512 acc[16];
    UNROLL
    for (int p = 0; p < P; p++) {
        const qn_twin *twin = twin_of(a, t->panel + p);
        w[p / QN_TWIN] = twin->quad + t->begin / 4;
        k[p] = key_of(twin->base[p % QN_TWIN]);
    }
    UNROLL
    for (int i = 0; i < R * P; i++) acc[i] = start(t, i / P, i % P);
    for (int q = 0; q < t->pairs / 4; q++) {
        if (keep) qn_ahead_fetch(t->next, R);
        UNROLL
        for (int p = 0; p < P; p++) {
            __m512bh four[4];
            const qn_quad *quad = &w[p / QN_TWIN][q][p % QN_TWIN];
            if (!keep && v.fetch) fetch(quad);
            open_quad(&k[p], quad, four);
            UNROLL
            for (int i = 0; keep && i < 4; i++) keep[p * CHUNK + 4 * q + i] = four[i];
            UNROLL
            for (int r = 0; r < R; r++) UNROLL
            for (int i = 0; i < 4; i++) {
                const __m512bh pair = pair_at(x + (size_t)r * (size_t)a->cols + QN_QUAD * q + 2 * i);
                acc[r * P + p] = _mm512_dpbf16_ps(acc[r * P + p], four[i], pair);
            }
        }
    }
    UNROLL
    for (int i = 0; i < R * P; i++) put(t, i / P, i % P, acc[i]);
}

/* What comes behind a chunk of P panels: their next columns, or the first ones of the panels behind them. */
INLINE qn_ahead behind(const task *t, int n, int end, const int P)
{
    const int pairs = t->a->cols / 2, begin = t->begin + t->pairs;
    const bool same = begin < pairs;
    const u8 *at = same || t->panel + P < end
                       ? (const u8 *)(twin_of(t->a, same ? t->panel : t->panel + P)->quad + (same ? begin : 0) / 4)
                       : NULL;
    const size_t bytes = (size_t)qn_mini(t->pairs, same ? pairs - begin : pairs) / 4 * sizeof(qn_quad) * QN_TWIN;
    const int panels = same ? P : qn_mini(P, end - t->panel - P);
    return qn_ahead_of(at, bytes, (panels + QN_TWIN - 1) / QN_TWIN, qn_twin_bytes(t->a->cols), (size_t)n * (size_t)t->pairs / 4);
}

/* n rows, at least 8, by P panels, chunk by chunk: the first rows open it for the others. Panels up to end are this lane's. */
INLINE void chunks(task t, const variant v, int n, int end, const int P)
{
    __m512bh open[4 * CHUNK];
    const int pairs = t.a->cols / 2, first = P == 4 ? 4 : 8;
    qn_ahead next;
    t.w = open;
    t.next = &next;
    for (t.begin = 0; t.begin < pairs; t.begin += CHUNK) {
        t.pairs = qn_mini(CHUNK, pairs - t.begin);
        next = behind(&t, n, end, P);
        stream(&t, v, first, P, open);
        tiles(t, v, first, n, P);
    }
}

/* All R rows of x times panels t.panel .. end-1, twin by twin: one stream. */
INLINE void few(task t, const variant v, const int R, int end)
{
    for (; t.panel + QN_TWIN <= end; t.panel += QN_TWIN) stream(&t, v, R, QN_TWIN, NULL);
    if (t.panel < end) stream(&t, v, R, 1, NULL);
}

INLINE void many(task t, const variant v, int end)
{
    const int begin = t.panel, parts = (t.a->n + ROWS - 1) / ROWS;
    for (int i = 0; i < parts; i++) {
        t.row = t.a->n * i / parts;
        const int n = t.a->n * (i + 1) / parts - t.row;
        for (t.panel = begin; t.panel + 4 <= end; t.panel += 4) chunks(t, v, n, end, 4);
        if (t.panel + 2 <= end) chunks(t, v, n, end, 2), t.panel += 2;
        if (t.panel < end) chunks(t, v, n, end, 1);
    }
}

INLINE void blinear(const void *args, const variant v, qn_lane lane)
{
    const qn_blinear *a = args;
    const int twins = qn_n_twins(a->rows), panels = (a->rows + QN_PANEL - 1) / QN_PANEL;
    const int end = qn_mini(QN_TWIN * lane_end(twins, lane), panels);
    const task t = { .a = a, .panel = QN_TWIN * lane_begin(twins, lane), .pairs = a->cols / 2 };
    switch (a->n) {
    case 1: few(t, v, 1, end); break;
    case 2: few(t, v, 2, end); break;
    case 3: few(t, v, 3, end); break;
    case 4: few(t, v, 4, end); break;
    case 5: few(t, v, 5, end); break;
    case 6: few(t, v, 6, end); break;
    case 7: few(t, v, 7, end); break;
    case 8: few(t, v, 8, end); break;
    default: many(t, v, end);
    }
}

/* F16 and BF16 become the same panels. */
#define MAKE(which, ...) \
    static void run_##which(const void *args, qn_lane lane) { blinear(args, (variant)__VA_ARGS__, lane); } \
    void qn_blinear_f16_avx512bf16_##which(const void *args, qn_lane lane); \
    void qn_blinear_bf16_avx512bf16_##which(const void *args, qn_lane lane); \
    void qn_blinear_f16_avx512bf16_##which(const void *args, qn_lane lane) { run_##which(args, lane); } \
    void qn_blinear_bf16_avx512bf16_##which(const void *args, qn_lane lane) { run_##which(args, lane); }
MAKE(r12, { 4, true })
MAKE(r6, { 6, true })
MAKE(bare, { 4, false })

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
