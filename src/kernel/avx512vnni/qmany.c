/* qmany.c - many rows of x: a chunk of two panels is opened once and used by all tiles (qtile.h); results wait in a buffer from
 * chunk to chunk. While a chunk is multiplied the next one is fetched. */
#include "kernel/avx512vnni/qtile.h"

#define ROWS (86 * QN_TILE) /* rows of x that share an open chunk: their results take 64 KiB */

/* The rows of a tile of x that is not full. */
INLINE void part_tile(const qn_plain_kind kind, const qn_qtile *t)
{
    switch (t->step) {
    case 1: tile(kind, NULL, t, 1); break;
    case 2: tile(kind, NULL, t, 2); break;
    case 3: tile(kind, NULL, t, 3); break;
    case 4: tile(kind, NULL, t, 4); break;
    default: tile(kind, NULL, t, 5); break;
    }
}

/* A chunk of a pair of panels times rows row .. row+n-1 of x: whole tiles but for the last. */
typedef struct chunk {
    const qn_qlinear *a;
    const qn_opener *open;
    int row, n;
    qn_results *kept;   /* [n] */
    qn_qtile t;         /* what all tiles share; y: of row 0 */
} chunk;

INLINE void tiles(const qn_plain_kind kind, const chunk *c)
{
    const qn_qlinear *a = c->a;
    qn_qtile t = c->t;
    for (int row = c->row, end = row + c->n; row < end; row += QN_TILE) {
        const qn_strand at = qn_bytes_row(a->n, row, a->cols / 32);
        const size_t block = at.first + (size_t)t.b * at.step;
        t.step = at.step;
        t.q = a->x.q + 32 * block;
        t.start = kind == PLAIN_halves ? a->x.start16 + 2 * block : a->x.start + block;
        t.shift = a->x.shift + block;
        t.unit = a->x.unit + row;
        t.kept = c->kept + (row - c->row);
        t.y = c->t.y + (size_t)row * t.y_stride;
        if (row == c->row) c->open->open(&t);
        else if (at.step == QN_TILE) tile(kind, NULL, &t, QN_TILE);
        else part_tile(kind, &t);
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

/* What comes behind chunk c of a pair: as many blocks of this pair or of the next. last: that is not this lane's. */
static qn_ahead behind(const chunk *c, bool last)
{
    const size_t blocks = (size_t)c->a->cols / 32, n = (size_t)c->t.blocks, end = (size_t)c->t.b + n;
    const size_t bytes = c->open->panel_bytes;
    const u8 *panel = c->t.panel[0];
    const u8 *at = end < blocks ? panel + bytes * end / blocks : last ? NULL : panel + QN_PAIR * bytes;
    return qn_ahead_of(at, bytes * n / blocks, QN_PAIR, bytes, (size_t)c->n * n);
}

/* Rows row .. row+n-1 of x, at most ROWS, times the panels of a pair, chunk by chunk. */
static void run_pair(const qn_qlinear *a, const qn_opener *u, int pair, int row, int n, bool last)
{
    _Alignas(64) qn_plain plains[QN_PLAINS];
    _Alignas(64) qn_results kept[ROWS];
    const int blocks = a->cols / 32, first = pair * QN_PAIR;
    const int most = u->plains ? u->plains : QN_PLAINS, n_chunks = (blocks + most - 1) / most;
    const int left = a->rows - first * QN_PANEL;
    const u8 *panel = a->panels + (size_t)first * u->panel_bytes;
    qn_ahead next;
    chunk c = { .a = a, .open = u, .row = row, .n = n, .kept = kept,
                .t = { .w = plains, .next = &next, .y = a->y + (size_t)first * QN_PANEL, .y_stride = (size_t)a->rows,
                       /* a lone last panel stands for its missing neighbour: nothing of that is stored */
                       .panel = { panel, left > QN_PANEL ? panel + u->panel_bytes : panel },
                       .mask = { (u16)(left >= 16 ? 0xFFFF : (1 << left) - 1),
                                 (u16)(left >= 32 ? 0xFFFF : left > 16 ? (1 << (left - 16)) - 1 : 0) },
                       .bias = a->bias ? a->bias + (size_t)first * QN_PANEL : NULL } };
    for (int i = 0; i < n_chunks; i++) {
        const int end = blocks * (i + 1) / n_chunks;
        c.t.b = blocks * i / n_chunks;
        c.t.blocks = end - c.t.b;
        c.t.begin = c.t.b == 0;
        c.t.end = end == blocks;
        next = behind(&c, last);
        run_tiles(u->kind, &c);
    }
}

/* Work is cut into pairs of panels, and where a matrix has too few of them for all lanes, into parts of the rows as well, each
 * with a full tile at its beginning. Parts that would fit L2 were slower than all rows at once: panels are opened again for
 * each. */
void qn_qmany(const qn_qlinear *a, const qn_opener *u, qn_lane lane)
{
    const int pairs = (a->rows + QN_PANEL * QN_PAIR - 1) / (QN_PANEL * QN_PAIR), n_tiles = (a->n + QN_TILE - 1) / QN_TILE;
    int parts = (a->n + ROWS - 1) / ROWS;
    while (pairs * parts < lane.n && a->n / (parts + 1) >= 8 * QN_TILE) parts++;
    for (int i = lane_begin(pairs * parts, lane), end = lane_end(pairs * parts, lane); i < end; i++) {
        const int part = i / pairs, row = n_tiles * part / parts * QN_TILE, stop = n_tiles * (part + 1) / parts * QN_TILE;
        run_pair(a, u, i % pairs, row, qn_mini(stop, a->n) - row, i + 1 == end || (i + 1) % pairs == 0);
    }
}
