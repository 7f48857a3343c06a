/* qmany.c - the prefill tile: R rows of x by two panels, 32 outputs, over a chunk of unpacked columns.
 * A chunk is unpacked once and used by all rows of x; results wait in y from chunk to chunk.
 * In each block of 32 columns 8 groups go into 2R integer sums; one convert, one multiply and one
 * multiply-add bring a sum to its output: 8 of 10 multiplications are dot products. With 6 rows there
 * are 12 sums, 12 results, 2 weights and 1 activation: 27 registers, and 8 loads for 12 dot products.
 * The lines that a tile writes are asked for when it begins: without that stores wait for memory.
 * Sums of integers are exact and blocks are added from first to last, as in qlinear.c: the law of rows. */
#include "kernel/avx512vnni/qmany.h"

#include "kernel/avx512vnni/qforms.h"

#define MOST 6 /* rows of a tile */

typedef struct task {
    const i8 *q;        /* where the tile's first row and column are */
    const float *scale;
    const i32 *sums;    /* per block, or per half */
    size_t stride;      /* bytes from row to row of q; columns */
    int blocks;
    const qn_plain *w;
    float *y;
    size_t y_stride;
    __mmask16 mask[QN_PAIR];
    bool begin, end;    /* first and last columns: start from zero, add the bias */
    const float *bias;
} task;

/* What each row brings into its sums: minus 128 times its own sum, or its own sum as a number. */
typedef union lead { i32 start[64]; float sum[32]; } lead;
static_assert(2 * QN_PLAINS <= 64, "leads are written by whole vectors");

INLINE void fill_lead(const qn_plain_kind kind, const task *t, int r, lead *out)
{
    const int n = kind == PLAIN_halves ? 2 * t->blocks : t->blocks;
    const i32 *sums = t->sums + (size_t)r * (t->stride / (kind == PLAIN_halves ? 16 : 32));
    const float *scale = t->scale + (size_t)r * (t->stride / 32);
    for (int i = 0; i < n; i += 16) {
        const __mmask16 k = n - i >= 16 ? (__mmask16)0xFFFF : (__mmask16)((1 << (n - i)) - 1);
        const __m512i v = _mm512_maskz_loadu_epi32(k, sums + i);
        if (kind == PLAIN_mins)
            _mm512_storeu_ps(out->sum + i, _mm512_mul_ps(_mm512_maskz_loadu_ps(k, scale + i), _mm512_cvtepi32_ps(v)));
        else _mm512_storeu_si512(out->start + i, _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(v, 7)));
    }
}

/* Row r of a tile, from two pointers: addresses of base + index * scale need no registers of their own. */
INLINE const void *row_of(const void *p0, const void *p3, size_t stride, int r)
{
    const char *p = r < 3 ? p0 : p3;
    return p + (size_t)(r % 3) * stride;
}

INLINE __m512i four(const void *q, int i)
{
    i32 v;
    __builtin_memcpy(&v, (const char *)q + 4 * i, 4);
    return _mm512_set1_epi32(v);
}

/* Keeps the compiler from making a pointer of each row of it. */
#define HIDE4(a, b, c, d) __asm__("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d))

/* Groups first .. last-1 of a block into sums that begin with own[r].start[at]. */
INLINE void dots(const qn_plain_kind kind, const qn_plain *w, const void *q0, const void *q3, size_t stride, const lead *own,
                 int at, int first, int last, __m512i (*dot)[QN_PAIR], const int R)
{
    UNROLL
    for (int r = 0; r < R; r++)
        dot[r][0] = dot[r][1] = kind == PLAIN_mins ? _mm512_setzero_si512() : _mm512_set1_epi32(own[r].start[at]);
    UNROLL
    for (int i = first; i < last; i++) {
        const __m512i w0 = load(w->q[i][0]), w1 = load(w->q[i][1]);
        UNROLL
        for (int r = 0; r < R; r++) {
            const __m512i x = four(row_of(q0, q3, stride, r), i);
            dot[r][0] = _mm512_dpbusd_epi32(dot[r][0], w0, x);
            dot[r][1] = _mm512_dpbusd_epi32(dot[r][1], w1, x);
        }
    }
}

/* A line of three rows of the next tile: they come from L2 or L3, and their distance hides them from the hardware. */
INLINE void fetch_next(const char *q, size_t stride)
{
    q += MOST * stride;
    for (size_t r = 0; r < 3; r++) __builtin_prefetch(q + r * stride);
}

INLINE __m512 times(__m512i dot, const float *s) { return _mm512_mul_ps(_mm512_cvtepi32_ps(dot), _mm512_loadu_ps(s)); }

INLINE __m512 and_times(__m512 v, __m512i dot, const float *s)
{
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), _mm512_loadu_ps(s), v);
}

INLINE float *out_of(const task *t, int r, int p) { return t->y + (size_t)r * t->y_stride + 16 * p; }

INLINE void tile(const qn_plain_kind kind, const task *t, const int R)
{
    __m512 acc[MOST][QN_PAIR];
    __m512i dot[MOST][QN_PAIR];
    lead own[MOST];
    const size_t stride = t->stride, s_stride = stride / 8; /* a float for 32 bytes */
    const char *q0 = (const char *)t->q, *q3 = q0 + 3 * stride, *s0 = (const char *)t->scale, *s3 = s0 + 3 * s_stride;
    const qn_plain *w = t->w;
    UNROLL
    for (int r = 0; r < R; r++) {
        fill_lead(kind, t, r, &own[r]);
        for (int p = 0; p < QN_PAIR; p++) __builtin_prefetch(out_of(t, r, p), 1);
        for (int p = 0; p < QN_PAIR; p++)
            acc[r][p] = t->begin ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(t->mask[p], out_of(t, r, p));
    }
    for (int b = 0; b < t->blocks; b++, w++, q0 += 32, q3 += 32, s0 += 4, s3 += 4) {
        HIDE4(q0, q3, s0, s3);
        __m512 half[MOST][QN_PAIR];
        if (R == MOST) fetch_next(b % 2 ? q3 : q0, stride);
        if (kind == PLAIN_halves) {
            dots(kind, w, q0, q3, stride, own, 2 * b, 0, 4, dot, R);
            UNROLL
            for (int i = 0; i < 2 * R; i++) half[i / 2][i % 2] = times(dot[i / 2][i % 2], w->s[0][i % 2]);
            dots(kind, w, q0, q3, stride, own, 2 * b + 1, 4, 8, dot, R);
        } else dots(kind, w, q0, q3, stride, own, b, 0, 8, dot, R);
        UNROLL
        for (int r = 0; r < R; r++) {
            const __m512 scale = _mm512_set1_ps(*(const float *)row_of(s0, s3, s_stride, r));
            UNROLL
            for (int p = 0; p < QN_PAIR; p++) {
                const __m512 v = kind == PLAIN_halves ? and_times(half[r][p], dot[r][p], w->s[1][p])
                                                      : times(dot[r][p], w->s[0][p]);
                acc[r][p] = _mm512_fmadd_ps(v, scale, acc[r][p]);
                if (kind == PLAIN_mins)
                    acc[r][p] = _mm512_fmadd_ps(_mm512_set1_ps(own[r].sum[b]), _mm512_loadu_ps(w->m[p]), acc[r][p]);
            }
        }
    }
    UNROLL
    for (int r = 0; r < R; r++) UNROLL
    for (int p = 0; p < QN_PAIR; p++) {
        if (t->end && t->bias) acc[r][p] = _mm512_add_ps(acc[r][p], _mm512_maskz_loadu_ps(t->mask[p], t->bias + 16 * p));
        _mm512_mask_storeu_ps(out_of(t, r, p), t->mask[p], acc[r][p]);
    }
}

/* n rows in tiles of the sizes that exist. */
INLINE void tiles(const qn_plain_kind kind, task t, int n)
{
    while (n > 0) {
        const int take = n >= 6 ? 6 : n >= 4 ? 4 : n >= 2 ? 2 : 1;
        if (take == 6) tile(kind, &t, 6);
        else if (take == 4) tile(kind, &t, 4);
        else if (take == 2) tile(kind, &t, 2);
        else tile(kind, &t, 1);
        t.q += (size_t)take * t.stride;
        t.scale += (size_t)take * (t.stride / 32);
        t.sums += (size_t)take * (t.stride / (kind == PLAIN_halves ? 16 : 32));
        t.y += (size_t)take * t.y_stride;
        n -= take;
    }
}

static void run_tiles(qn_plain_kind kind, const task *t, int n)
{
    switch (kind) {
    case PLAIN_offset: tiles(PLAIN_offset, *t, n); break;
    case PLAIN_halves: tiles(PLAIN_halves, *t, n); break;
    case PLAIN_mins: tiles(PLAIN_mins, *t, n); break;
    }
}

/* Rows row .. row+n-1 of x times the panels of a pair, chunk by chunk. */
static void run_pair(const qn_qlinear *a, const qn_unpacker *u, int pair, int row, int n)
{
    _Alignas(64) qn_plain chunk[QN_PLAINS];
    const int blocks = a->cols / 32, panels = (a->rows + QN_PANEL - 1) / QN_PANEL, first = pair * QN_PAIR;
    const int most = u->plains ? u->plains : QN_PLAINS, n_chunks = (blocks + most - 1) / most;
    const int left = a->rows - first * QN_PANEL;
    const size_t cols = (size_t)a->cols, y_at = (size_t)row * (size_t)a->rows + (size_t)first * QN_PANEL;
    for (int c = 0; c < n_chunks; c++) {
        const int b = blocks * c / n_chunks, end = blocks * (c + 1) / n_chunks;
        for (int p = 0; p < QN_PAIR; p++) /* a lone last panel stands for its missing neighbour: nothing of that is stored */
            u->unpack(a->panels + (size_t)qn_mini(first + p, panels - 1) * u->panel_bytes, b, end - b, p, chunk);
        const task t = { .q = a->x.q + (size_t)row * cols + (size_t)b * 32,
                         .scale = a->x.scale + (size_t)row * (cols / 32) + (size_t)b,
                         .sums = u->kind == PLAIN_halves ? a->x.sum16 + (size_t)row * (cols / 16) + (size_t)b * 2
                                                         : a->x.sum + (size_t)row * (cols / 32) + (size_t)b,
                         .stride = cols, .blocks = end - b, .w = chunk, .y = a->y + y_at, .y_stride = (size_t)a->rows,
                         .mask = { (__mmask16)(left >= 16 ? 0xFFFF : (1 << left) - 1),
                                   (__mmask16)(left >= 32 ? 0xFFFF : left > 16 ? (1 << (left - 16)) - 1 : 0) },
                         .begin = b == 0, .end = end == blocks, .bias = a->bias ? a->bias + (size_t)first * QN_PANEL : NULL };
        run_tiles(u->kind, &t, n);
    }
}

/* Work is cut into pairs of panels, and where a matrix has too few of them for all lanes, into parts of the rows as well. Parts
 * that would fit L2 were slower than all rows at once with what comes next fetched ahead: panels are unpacked again for each. */
void qn_qmany(const qn_qlinear *a, const qn_unpacker *u, qn_lane lane)
{
    const int pairs = (a->rows + QN_PANEL * QN_PAIR - 1) / (QN_PANEL * QN_PAIR);
    int parts = 1;
    while (pairs * parts < lane.n && a->n / (parts + 1) >= 8 * MOST) parts++;
    const int rows = ((a->n + parts - 1) / parts + MOST - 1) / MOST * MOST;
    for (int i = lane_begin(pairs * parts, lane), end = lane_end(pairs * parts, lane); i < end; i++) {
        const int row = i / pairs * rows;
        if (row < a->n) run_pair(a, u, i % pairs, row, qn_mini(rows, a->n - row));
    }
}
