/* avx512vnni/qlinear.c - bytes times panels with vpdpbusd: 16 output rows to a register, activations
 * broadcast from memory.
 *
 * A tile is R rows of x by one panel. In each block of 32 columns it adds 8 groups into R integer
 * sums, then turns each into a float with the two scales: sums of integers are exact, so the only
 * order that matters is that of the blocks, and it is the same for every R: the law of rows.
 * Up to FEW rows of x (decode) a tile unpacks a panel for itself as it streams by, in code made for
 * the type. With more, a chunk of the panel is unpacked to bytes once and used by all tiles, their
 * results waiting in y: that code knows no types, only whether blocks have minima or two scales.
 * 12 rows: 12 sums, 12 results, and the weights in 25 registers. */
#include <immintrin.h>

#include "kernel/op.h"
#include "kernel/panel.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

#define FEW 4   /* rows of x up to which a tile unpacks for itself */
#define MOST 12 /* rows of a tile */
#define CHUNK \
    16 /* blocks of 32 columns unpacked at a time: 8 KiB of bytes, beside 6 KiB of activations in \
          L1 */
#define ROWS 96 /* rows of x that share an unpacked chunk: their activations stay in L2 */

typedef struct scales {
    __m512 s[2], m;
} scales; /* of the two halves of a block; one for both where a type has one per 32 */

/* How a type is read: what its unsigned values are above the signed ones, whether blocks have
 * minima, whether each half has a scale of its own, bytes and blocks of 32 in a panel block, and
 * the two readers. All constants to the compiler. */
typedef struct form {
    int log2_off; /* values are stored + 2^this; -1: as they are */
    bool mins, halves;
    int blocks;
    size_t bytes;
    __m512i (*group)(const u8 *p, int b, int i); /* columns 4i..4i+3 of block b */
    scales (*scale)(const u8 *p, int b);
} form;

/* ---- readers */

INLINE __m512i load(const void *p) { return _mm512_loadu_si512(p); }
INLINE __m512 halves16(const u16 *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
INLINE __m512 bytes16(const u8 *p)
{
    return _mm512_cvtepi32_ps(
        _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}
INLINE __m512 signed16(const i8 *p)
{
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}

INLINE __m512i nibbles(const u8 *q, int i)
{
    const __m512i v = load(q + i / 2 * QN_GROUP);
    return _mm512_and_si512(i % 2 ? _mm512_srli_epi16(v, 4) : v, _mm512_set1_epi8(15));
}

INLINE __m512i fives(const u8 *q, const u64 *high, int i)
{
    return _mm512_mask_add_epi8(nibbles(q, i), _cvtu64_mask64(high[i]), nibbles(q, i),
                                _mm512_set1_epi8(16));
}

INLINE __m512i group_q8_0(const u8 *p, int b, int i)
{
    (void)b;
    return load(((const qn_panel_q8_0 *)(const void *)p)->q[i]);
}
INLINE scales scale_q8_0(const u8 *p, int b)
{
    (void)b;
    return (scales){ .s = { halves16(((const qn_panel_q8_0 *)(const void *)p)->d) } };
}

INLINE __m512i group_q4_0(const u8 *p, int b, int i)
{
    (void)b;
    return nibbles(((const qn_panel_q4_0 *)(const void *)p)->q[0], i);
}
INLINE scales scale_q4_0(const u8 *p, int b)
{
    (void)b;
    return (scales){ .s = { halves16(((const qn_panel_q4_0 *)(const void *)p)->d) } };
}

INLINE __m512i group_q4_1(const u8 *p, int b, int i)
{
    (void)b;
    return nibbles(((const qn_panel_q4_1 *)(const void *)p)->q[0], i);
}
INLINE scales scale_q4_1(const u8 *p, int b)
{
    const qn_panel_q4_1 *w = (const void *)p;
    (void)b;
    return (scales){ .s = { halves16(w->d) }, .m = halves16(w->m) };
}

INLINE __m512i group_q5_0(const u8 *p, int b, int i)
{
    const qn_panel_q5_0 *w = (const void *)p;
    (void)b;
    return fives(w->q[0], w->high, i);
}
INLINE scales scale_q5_0(const u8 *p, int b)
{
    (void)b;
    return (scales){ .s = { halves16(((const qn_panel_q5_0 *)(const void *)p)->d) } };
}

INLINE __m512i group_q5_1(const u8 *p, int b, int i)
{
    const qn_panel_q5_1 *w = (const void *)p;
    (void)b;
    return fives(w->q[0], w->high, i);
}
INLINE scales scale_q5_1(const u8 *p, int b)
{
    const qn_panel_q5_1 *w = (const void *)p;
    (void)b;
    return (scales){ .s = { halves16(w->d) }, .m = halves16(w->m) };
}

INLINE __m512i group_q4_k(const u8 *p, int b, int i)
{
    return nibbles(((const qn_panel_q4_k *)(const void *)p)->q[b][0], i);
}
INLINE scales scale_q4_k(const u8 *p, int b)
{
    const qn_panel_q4_k *w = (const void *)p;
    return (scales){ .s = { _mm512_mul_ps(halves16(w->d), bytes16(w->scale[b])) },
                     .m = _mm512_sub_ps(_mm512_setzero_ps(),
                                        _mm512_mul_ps(halves16(w->dmin), bytes16(w->min[b]))) };
}

INLINE __m512i group_q5_k(const u8 *p, int b, int i)
{
    const qn_panel_q5_k *w = (const void *)p;
    return fives(w->q[b][0], w->high[b], i);
}
INLINE scales scale_q5_k(const u8 *p, int b)
{
    const qn_panel_q5_k *w = (const void *)p;
    return (scales){ .s = { _mm512_mul_ps(halves16(w->d), bytes16(w->scale[b])) },
                     .m = _mm512_sub_ps(_mm512_setzero_ps(),
                                        _mm512_mul_ps(halves16(w->dmin), bytes16(w->min[b]))) };
}

INLINE __m512i group_q6_k(const u8 *p, int b, int i)
{
    const qn_panel_q6_k *w = (const void *)p;
    const __m512i h = load(w->high[b][i / 4]);
    const __m512i at = i % 4 == 0   ? _mm512_slli_epi16(h, 4)
                       : i % 4 == 1 ? _mm512_slli_epi16(h, 2)
                       : i % 4 == 2 ? h
                                    : _mm512_srli_epi16(h, 2);
    return _mm512_or_si512(nibbles(w->q[b][0], i), _mm512_and_si512(at, _mm512_set1_epi8(48)));
}
INLINE scales scale_q6_k(const u8 *p, int b)
{
    const qn_panel_q6_k *w = (const void *)p;
    const __m512 d = halves16(w->d);
    return (scales){ .s = { _mm512_mul_ps(d, signed16(w->scale[2 * b])),
                            _mm512_mul_ps(d, signed16(w->scale[2 * b + 1])) } };
}

/* A block unpacked, for many rows. */
typedef struct plain {
    u8 q[8][QN_GROUP];
    float s[2][16], m[16];
} plain;
INLINE __m512i group_plain(const u8 *p, int b, int i)
{
    (void)b;
    return load(((const plain *)(const void *)p)->q[i]);
}
INLINE scales scale_plain(const u8 *p, int b)
{
    const plain *w = (const void *)p;
    (void)b;
    return (scales){ .s = { _mm512_loadu_ps(w->s[0]), _mm512_loadu_ps(w->s[1]) },
                     .m = _mm512_loadu_ps(w->m) };
}

/* ---- the tile */

typedef struct task {
    const qn_qlinear *a;
    int row;           /* first row of x */
    int b0, b1;        /* blocks of 32 columns */
    const u8 *w;       /* where block b0 lies; b0 begins a panel block */
    float *y;          /* [R, a->rows] at this panel's first output */
    __mmask16 mask;    /* outputs that exist */
    bool begin, end;   /* first and last blocks of a row: start from zero, add the bias */
    const float *bias; /* of this panel, or NULL */
} task;

INLINE __m512i at4(const i8 *q)
{
    i32 v;
    __builtin_memcpy(&v, q, 4);
    return _mm512_set1_epi32(v);
}

/* What makes up for the offset of the weights: -2^k times the sum of the activations. */
INLINE __m512i start_sum(const i32 *sum, int k)
{
    return k < 0 ? _mm512_setzero_si512()
                 : _mm512_sub_epi32(_mm512_setzero_si512(),
                                    _mm512_slli_epi32(_mm512_set1_epi32(*sum), (unsigned)k));
}

INLINE void add_half(const form f, const task *t, const u8 *p, int sub, int b, int half, scales s,
                     __m512 *acc, const int R)
{
    const qn_bytes *x = &t->a->x;
    const size_t cols = (size_t)t->a->cols;
    const int first = f.halves ? 4 * half : 0, last = f.halves ? first + 4 : 8;
    __m512i dot[MOST], odd = _mm512_setzero_si512();
    UNROLL
    for (int r = 0; r < R; r++) {
        const size_t row = (size_t)(t->row + r);
        dot[r] = start_sum(f.halves ? x->sum16 + row * (cols / 16) + (size_t)(2 * b + half)
                                    : x->sum + row * (cols / 32) + (size_t)b,
                           f.log2_off);
    }
    UNROLL
    for (int i = first; i < last; i++) {
        const __m512i w = f.group(p, sub, i);
        UNROLL
        for (int r = 0; r < R; r++) {
            const i8 *q = x->q + (size_t)(t->row + r) * cols + (size_t)(32 * b + 4 * i);
            if (R == 1 && i % 2)
                odd = _mm512_dpbusd_epi32(odd, w,
                                          at4(q)); /* one row: two chains hide the latency */
            else dot[r] = _mm512_dpbusd_epi32(dot[r], w, at4(q));
        }
    }
    if (R == 1) dot[0] = _mm512_add_epi32(dot[0], odd);
    UNROLL
    for (int r = 0; r < R; r++) {
        const __m512 scale = _mm512_set1_ps(
            x->scale[(size_t)(t->row + r) * (cols / 32) + (size_t)b]);
        acc[r] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(dot[r]), scale), s.s[half],
                                 acc[r]);
    }
}

INLINE void tile(const form f, const task *t, const int R)
{
    const qn_bytes *x = &t->a->x;
    const size_t rows = (size_t)t->a->rows, nb = (size_t)t->a->cols / 32;
    __m512 acc[MOST];
    UNROLL
    for (int r = 0; r < R; r++)
        acc[r] = t->begin ? _mm512_setzero_ps()
                          : _mm512_maskz_loadu_ps(t->mask, t->y + (size_t)r * rows);
    const u8 *p = t->w;
    for (int b = t->b0, sub = 0; b < t->b1; b++) {
        const scales s = f.scale(p, sub);
        add_half(f, t, p, sub, b, 0, s, acc, R);
        if (f.halves) add_half(f, t, p, sub, b, 1, s, acc, R);
        if (f.mins) UNROLL
        for (int r = 0; r < R; r++) {
            const size_t at = (size_t)(t->row + r) * nb + (size_t)b;
            acc[r] = _mm512_fmadd_ps(_mm512_set1_ps(x->scale[at] * (float)x->sum[at]), s.m, acc[r]);
        }
        if (++sub == f.blocks) {
            sub = 0;
            p += f.bytes;
        }
    }
    UNROLL
    for (int r = 0; r < R; r++) {
        if (t->end && t->bias)
            acc[r] = _mm512_add_ps(acc[r], _mm512_maskz_loadu_ps(t->mask, t->bias));
        _mm512_mask_storeu_ps(t->y + (size_t)r * rows, t->mask, acc[r]);
    }
}

/* n rows of x in tiles of the sizes that exist; few: only the small ones */
INLINE void tiles(const form f, task t, int n, const bool few)
{
    while (n > 0) {
        const int take = !few && n >= 12 ? 12 : !few && n >= 8 ? 8 : n >= 4 ? 4 : n >= 2 ? 2 : 1;
        if (!few && take == 12) tile(f, &t, 12);
        else if (!few && take == 8) tile(f, &t, 8);
        else if (take == 4) tile(f, &t, 4);
        else if (take == 2) tile(f, &t, 2);
        else tile(f, &t, 1);
        t.row += take;
        t.y += (size_t)take * (size_t)t.a->rows;
        n -= take;
    }
}

/* ---- many rows: three loops over unpacked blocks, whatever the type was */

typedef void (*tiles_fn)(const task *t, int n, int log2_off);

INLINE form plain_form(int log2_off, bool mins, bool halves)
{
    return (form){ log2_off, mins, halves, 1, sizeof(plain), group_plain, scale_plain };
}

static void tiles_offset(const task *t, int n, int k) { tiles(plain_form(k, false, false), *t, n, false); }
static void tiles_mins(const task *t, int n, int k)
{
    (void)k;
    tiles(plain_form(-1, true, false), *t, n, false);
}
static void tiles_halves(const task *t, int n, int k) { tiles(plain_form(k, false, true), *t, n, false); }

INLINE void unpack(const form f, const u8 *w, int blocks, plain *out)
{
    for (int b = 0; b < blocks; b++, out++) {
        const u8 *p = w + (size_t)(b / f.blocks) * f.bytes;
        const scales s = f.scale(p, b % f.blocks);
        UNROLL for (int i = 0; i < 8; i++)
            _mm512_storeu_si512(out->q[i], f.group(p, b % f.blocks, i));
        _mm512_storeu_ps(out->s[0], s.s[0]);
        if (f.halves) _mm512_storeu_ps(out->s[1], s.s[1]);
        if (f.mins) _mm512_storeu_ps(out->m, s.m);
    }
}

INLINE task panel_task(const qn_qlinear *a, int panel)
{
    const int left = a->rows - panel * QN_PANEL;
    return (task){ .a = a,
                   .y = a->y + (size_t)panel * QN_PANEL,
                   .mask = left >= 16 ? (__mmask16)0xFFFF : (__mmask16)((1 << left) - 1),
                   .bias = a->bias ? a->bias + (size_t)panel * QN_PANEL : NULL };
}

/* Rows row .. row+n of x times a panel, chunk by chunk, all tiles over each. */
INLINE void many(const form f, const qn_qlinear *a, const u8 *w, int panel, int row, int n)
{
    _Alignas(64) plain buffer[CHUNK];
    const int blocks = a->cols / 32;
    const tiles_fn run = f.halves ? tiles_halves : f.mins ? tiles_mins : tiles_offset;
    for (int b = 0; b < blocks; b += CHUNK) {
        task t = panel_task(a, panel);
        t.row = row;
        t.y += (size_t)row * (size_t)a->rows;
        t.b0 = b;
        t.b1 = b + CHUNK < blocks ? b + CHUNK : blocks;
        t.begin = b == 0;
        t.end = t.b1 == blocks;
        t.w = (const u8 *)buffer;
        unpack(f, w + (size_t)(b / f.blocks) * f.bytes, t.b1 - b, buffer);
        run(&t, n, f.log2_off);
    }
}

INLINE void qlinear(const form f, const void *args, qn_lane lane)
{
    const qn_qlinear *a = args;
    const int n_panels = (a->rows + QN_PANEL - 1) / QN_PANEL, blocks = a->cols / 32;
    const int begin = lane_begin(n_panels, lane), end = lane_end(n_panels, lane);
    const size_t panel_bytes = (size_t)(blocks / f.blocks) * f.bytes;
    if (a->n <= FEW) {
        for (int i = begin; i < end; i++) {
            task t = panel_task(a, i);
            t.w = a->panels + (size_t)i * panel_bytes;
            t.b1 = blocks;
            t.begin = t.end = true;
            tiles(f, t, a->n, true);
        }
        return;
    }
    for (int row = 0; row < a->n; row += ROWS)
        for (int i = begin; i < end; i++)
            many(f, a, a->panels + (size_t)i * panel_bytes, i, row,
                 a->n - row < ROWS ? a->n - row : ROWS);
}

#define MAKE(name, log2_off, mins, halves, blocks) \
    void qn_qlinear_##name##_avx512vnni_r12(const void *args, qn_lane lane); \
    void qn_qlinear_##name##_avx512vnni_r12(const void *args, qn_lane lane) \
    { \
        qlinear((form){ log2_off, mins, halves, blocks, sizeof(qn_panel_##name), group_##name, scale_##name }, args, lane); \
    }
MAKE(q8_0, 7, false, false, 1)
MAKE(q4_0, 3, false, false, 1)
MAKE(q4_1, -1, true, false, 1)
MAKE(q5_0, 4, false, false, 1)
MAKE(q5_1, -1, true, false, 1)
MAKE(q4_k, -1, true, false, 8)
MAKE(q5_k, -1, true, false, 8)
MAKE(q6_k, 5, false, true, 8)
