/* qmany.c - the prefill tile: R rows of x by two panels, 32 outputs, over a chunk of unpacked columns.
 * A chunk is unpacked once and used by all rows of x; results wait in a buffer from chunk to chunk.
 * In each block of 32 columns 8 groups go into 2R integer sums; one shift and one convert, which other units do
 * than those that multiply, and one multiply-add bring a sum to its output: 8 of 9 multiplications are dot
 * products. With 6 rows there are 12 sums, 12 results, 2 weights and 1 activation: 27 registers, and 8 loads
 * for 12 dot products. The rows of a tile lie side by side (qn_bytes), so everything is read in order.
 * The lines of y that a tile writes are asked for when it begins: without that stores wait for memory.
 * Sums of integers are exact and blocks are added from first to last, as in qlinear.c: the law of rows. */
#include "kernel/avx512vnni/qmany.h"

#include "kernel/avx512vnni/qforms.h"

#define MOST QN_TILE     /* rows of a tile */
#define ROWS (86 * MOST) /* rows of x that share an unpacked chunk: their results take 64 KiB */

typedef float results[QN_PAIR * QN_PANEL];

typedef struct task {
    const i8 *q;        /* where the tile's first row and block are */
    const i32 *start;   /* per block, or per half */
    const i32 *shift;
    const float *unit;
    size_t step;        /* rows of the tile of x: blocks from one block of a row to its next */
    int blocks;
    const qn_plain *w;
    results *kept;      /* of this tile's rows, from chunk to chunk */
    float *y;
    size_t y_stride;
    __mmask16 mask[QN_PAIR];
    bool begin, end;    /* first and last columns: start from zero, write to y */
    const float *bias;
} task;

INLINE __m512i four(const i8 *q)
{
    i32 v;
    __builtin_memcpy(&v, q, 4);
    return _mm512_set1_epi32(v);
}

/* Groups first .. last-1 of a block into sums; halves: start has two for each row. */
INLINE void dots(const qn_plain_kind kind, const qn_plain *w, const i8 *q, const i32 *start, int first, int last,
                 __m512i (*dot)[QN_PAIR], const int R)
{
    UNROLL
    for (int r = 0; r < R; r++) {
        const i32 *own = kind == PLAIN_halves ? start + 2 * r + first / 4 : start + r;
        dot[r][0] = dot[r][1] = kind == PLAIN_mins ? _mm512_setzero_si512() : _mm512_set1_epi32(*own);
    }
    UNROLL
    for (int i = first; i < last; i++) {
        const __m512i w0 = load(w->q[i][0]), w1 = load(w->q[i][1]);
        UNROLL
        for (int r = 0; r < R; r++) {
            const __m512i x = four(q + 32 * r + 4 * i);
            dot[r][0] = _mm512_dpbusd_epi32(dot[r][0], w0, x);
            dot[r][1] = _mm512_dpbusd_epi32(dot[r][1], w1, x);
        }
    }
}

INLINE __m512 shifted(__m512i dot, __m512i by) { return _mm512_cvtepi32_ps(_mm512_sllv_epi32(dot, by)); }

/* Sums of a block, or of a half of it, to their results. */
INLINE void add(__m512 (*acc)[QN_PAIR], __m512i (*dot)[QN_PAIR], const i32 *shift, const float (*s)[QN_PANEL], const int R)
{
    UNROLL
    for (int r = 0; r < R; r++) {
        const __m512i by = _mm512_set1_epi32(shift[r]);
        UNROLL
        for (int p = 0; p < QN_PAIR; p++) acc[r][p] = _mm512_fmadd_ps(shifted(dot[r][p], by), _mm512_load_ps(s[p]), acc[r][p]);
    }
}

INLINE void add_mins(__m512 (*acc)[QN_PAIR], const i32 *start, const i32 *shift, const float (*m)[QN_PANEL], const int R)
{
    UNROLL
    for (int r = 0; r < R; r++) {
        const __m512 sum = shifted(_mm512_set1_epi32(start[r]), _mm512_set1_epi32(shift[r]));
        UNROLL
        for (int p = 0; p < QN_PAIR; p++) acc[r][p] = _mm512_fmadd_ps(sum, _mm512_load_ps(m[p]), acc[r][p]);
    }
}

INLINE float *out_of(const task *t, int r, int p) { return t->y + (size_t)r * t->y_stride + 16 * p; }

INLINE void write_out(const task *t, __m512 (*acc)[QN_PAIR], const int R)
{
    UNROLL
    for (int p = 0; p < QN_PAIR; p++) {
        const __m512 bias = t->bias ? _mm512_maskz_loadu_ps(t->mask[p], t->bias + 16 * p) : _mm512_setzero_ps();
        UNROLL
        for (int r = 0; r < R; r++)
            _mm512_mask_storeu_ps(out_of(t, r, p), t->mask[p], _mm512_fmadd_ps(acc[r][p], _mm512_set1_ps(t->unit[r]), bias));
    }
}

INLINE void tile(const qn_plain_kind kind, const task *t, const int R)
{
    __m512 acc[MOST][QN_PAIR];
    __m512i dot[MOST][QN_PAIR];
    const size_t step = R == MOST ? MOST : t->step;
    const i8 *q = t->q;
    const i32 *start = t->start, *shift = t->shift;
    const qn_plain *w = t->w;
    UNROLL
    for (int r = 0; r < R; r++) UNROLL
    for (int p = 0; p < QN_PAIR; p++) {
        if (t->end) __builtin_prefetch(out_of(t, r, p), 1);
        acc[r][p] = t->begin ? _mm512_setzero_ps() : _mm512_load_ps(t->kept[r] + 16 * p);
    }
    for (int b = 0; b < t->blocks; b++, w++, q += 32 * step, start += (kind == PLAIN_halves ? 2 : 1) * step, shift += step) {
        dots(kind, w, q, start, 0, kind == PLAIN_halves ? 4 : 8, dot, R);
        add(acc, dot, shift, w->s, R);
        if (kind == PLAIN_halves) {
            dots(kind, w, q, start, 4, 8, dot, R);
            add(acc, dot, shift, w->more, R);
        }
        if (kind == PLAIN_mins) add_mins(acc, start, shift, w->more, R);
    }
    if (t->end) {
        write_out(t, acc, R);
        return;
    }
    UNROLL
    for (int r = 0; r < R; r++) UNROLL
    for (int p = 0; p < QN_PAIR; p++) _mm512_store_ps(t->kept[r] + 16 * p, acc[r][p]);
}

/* R rows further within a tile of x. */
INLINE void pass_rows(const qn_plain_kind kind, task *t, int R)
{
    t->q += 32 * R;
    t->start += kind == PLAIN_halves ? 2 * R : R;
    t->shift += R;
    t->unit += R;
    t->kept += R;
    t->y += (size_t)R * t->y_stride;
}

/* The rows of a tile of x that is not full. */
INLINE void part_tile(const qn_plain_kind kind, task t)
{
    for (size_t left = t.step, take; left; left -= take) {
        take = left >= 4 ? 4 : left >= 2 ? 2 : 1;
        if (take == 4) tile(kind, &t, 4);
        else if (take == 2) tile(kind, &t, 2);
        else tile(kind, &t, 1);
        pass_rows(kind, &t, (int)take);
    }
}

/* A pair of panels, unpacked from block b on, times rows row .. row+n-1 of x: whole tiles but for the last. */
typedef struct chunk {
    const qn_qlinear *a;
    int row, n, b;
    results *kept;      /* [n] */
    task t;             /* what all tiles share; y: of row 0 */
} chunk;

INLINE void tiles(const qn_plain_kind kind, const chunk *c)
{
    const qn_qlinear *a = c->a;
    task t = c->t;
    for (int row = c->row, end = row + c->n; row < end; row += MOST) {
        const qn_strand at = qn_bytes_row(a->n, row, a->cols / 32);
        const size_t block = at.first + (size_t)c->b * at.step;
        t.step = at.step;
        t.q = a->x.q + 32 * block;
        t.start = kind == PLAIN_halves ? a->x.start16 + 2 * block : a->x.start + block;
        t.shift = a->x.shift + block;
        t.unit = a->x.unit + row;
        t.kept = c->kept + (row - c->row);
        t.y = c->t.y + (size_t)row * t.y_stride;
        if (at.step == MOST) tile(kind, &t, MOST);
        else part_tile(kind, t);
    }
}

static void run_tiles(qn_plain_kind kind, const chunk *c)
{
    switch (kind) {
    case PLAIN_offset: tiles(PLAIN_offset, c); break;
    case PLAIN_halves: tiles(PLAIN_halves, c); break;
    case PLAIN_mins: tiles(PLAIN_mins, c); break;
    }
}

/* Rows row .. row+n-1 of x, at most ROWS, times the panels of a pair, chunk by chunk. */
static void run_pair(const qn_qlinear *a, const qn_unpacker *u, int pair, int row, int n)
{
    _Alignas(64) qn_plain plains[QN_PLAINS];
    _Alignas(64) results kept[ROWS];
    const int blocks = a->cols / 32, panels = (a->rows + QN_PANEL - 1) / QN_PANEL, first = pair * QN_PAIR;
    const int most = u->plains ? u->plains : QN_PLAINS, n_chunks = (blocks + most - 1) / most;
    const int left = a->rows - first * QN_PANEL;
    chunk c = { .a = a, .row = row, .n = n, .kept = kept,
                .t = { .w = plains, .y = a->y + (size_t)first * QN_PANEL, .y_stride = (size_t)a->rows,
                       .mask = { (__mmask16)(left >= 16 ? 0xFFFF : (1 << left) - 1),
                                 (__mmask16)(left >= 32 ? 0xFFFF : left > 16 ? (1 << (left - 16)) - 1 : 0) },
                       .bias = a->bias ? a->bias + (size_t)first * QN_PANEL : NULL } };
    for (int i = 0; i < n_chunks; i++) {
        const int end = blocks * (i + 1) / n_chunks;
        c.b = blocks * i / n_chunks;
        c.t.blocks = end - c.b;
        c.t.begin = c.b == 0;
        c.t.end = end == blocks;
        for (int p = 0; p < QN_PAIR; p++) /* a lone last panel stands for its missing neighbour: nothing of that is stored */
            u->unpack(a->panels + (size_t)qn_mini(first + p, panels - 1) * u->panel_bytes, c.b, end - c.b, p, plains);
        run_tiles(u->kind, &c);
    }
}

/* Work is cut into pairs of panels, and where a matrix has too few of them for all lanes, into parts of the rows as well. Parts
 * that would fit L2 were slower than all rows at once: panels are unpacked again for each. */
void qn_qmany(const qn_qlinear *a, const qn_unpacker *u, qn_lane lane)
{
    const int pairs = (a->rows + QN_PANEL * QN_PAIR - 1) / (QN_PANEL * QN_PAIR);
    int parts = (a->n + ROWS - 1) / ROWS;
    while (pairs * parts < lane.n && a->n / (parts + 1) >= 8 * MOST) parts++;
    const int rows = ((a->n + parts - 1) / parts + MOST - 1) / MOST * MOST;
    for (int i = lane_begin(pairs * parts, lane), end = lane_end(pairs * parts, lane); i < end; i++) {
        const int row = i / pairs * rows;
        if (row < a->n) run_pair(a, u, i % pairs, row, qn_mini(rows, a->n - row));
    }
}
