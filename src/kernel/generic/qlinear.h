/* qlinear.h - bytes times panels, for vectors of LANES floats. The file that includes this brings what a processor does its own
 * way (dots, fifths: see below); types, tiles and loops are written here once.
 *
 * A tile is R rows of x by one panel. In each block of 32 columns it adds integers, which is exact, then turns each sum into a
 * float with the two scales: the only order that matters is that of the blocks, and it is the same for every R: the law of rows.
 * Up to FEW rows of x a tile unpacks a panel for itself as it streams by, in code made for the type. With more, a chunk
 * of the panel is unpacked to bytes once and used by all tiles, their results waiting in y: that code knows no types, only how
 * many bits values have and whether blocks have minima or two scales. */
#ifndef QN_GENERIC_QLINEAR_H
#define QN_GENERIC_QLINEAR_H

#include "kernel/generic/panels.h"
#include "kernel/op.h"

#define CHUNK 16              /* blocks of 32 columns unpacked at a time: 11 KiB, beside 2 KiB of activations in L1 */
#define ROWS 96               /* rows of x that share an unpacked chunk: their activations stay in L2 */
#define AHEAD 4096            /* bytes of weights asked for ahead of time */

typedef u8 vb __attribute__((vector_size(4 * LANES)));
typedef u16 vh __attribute__((vector_size(4 * LANES)));
typedef u8 vb_any __attribute__((vector_size(4 * LANES), aligned(1), may_alias));

typedef struct group { vb v[NV]; } group;       /* 4 columns of 16 rows */
typedef struct ints { vi v[NV]; } ints;
typedef struct scales { floats s[2], m; } scales; /* of the two halves of a block; s[0] for both where a type has one per 32 */

/* How a type is read. All constants to the compiler. */
typedef struct form {
    int bits;     /* of a stored value; 8: signed where the processor wants it (SIGNED_BYTES), else + 128 */
    int log2_off; /* values are stored + 2^this; -1: as they are */
    bool mins, halves;
    int blocks;   /* of 32 columns in a panel block */
    size_t bytes;
    group (*group)(const u8 *p, int b, int i); /* columns 4i..4i+3 of block b */
    scales (*scale)(const u8 *p, int b);
} form;

/* What the including file defines before this header (it needs nothing of it but vec.h and panel.h):
 *   ISA, VARIANT, MOST, SIGNED_BYTES   the level, its name's end, rows of a tile (6, 3 or 2: it lies within a tile of x), bytes
 *                                      as i8 or as u8
 * and after it, declared here: */
INLINE vb fifths(u64 mask, int v);         /* 16 in every byte whose bit is set, of part v of the mask; else 0 */
INLINE vf unsigned_at(const u8 *p);        /* LANES bytes as floats */
INLINE vf signed_at(const i8 *p);
/* dot[r] += groups first..last-1 of block `sub` at p times the rows of x; q is x's first row at the block, the others follow 32
 * bytes apart */
INLINE void dots(const form f, const u8 *p, int sub, int first, int last, const i8 *q, ints *dot, const int R);

/* ---- readers */

INLINE vb bytes_at(const u8 *p) { return *(const vb_any *)p; }

INLINE group load_group(const u8 *p)
{
    group g;
    UNROLL for (int v = 0; v < NV; v++) g.v[v] = bytes_at(p + 4 * LANES * v);
    return g;
}

INLINE group nibbles(const u8 *q, int i)
{
    group g = load_group(q + i / 2 * QN_GROUP);
    UNROLL for (int v = 0; v < NV; v++) g.v[v] = (i % 2 ? (vb)((vh)g.v[v] >> 4) : g.v[v]) & 15;
    return g;
}

INLINE group fives(const u8 *q, const u64 *high, int i)
{
    group g = nibbles(q, i);
    UNROLL for (int v = 0; v < NV; v++) g.v[v] |= fifths(high[i], v);
    return g;
}

INLINE group sixes(const u8 *q, const u8 (*high)[QN_GROUP], int i)
{
    group g = nibbles(q, i);
    UNROLL for (int v = 0; v < NV; v++) {
        const vh h = (vh)bytes_at(high[i / 4] + 4 * LANES * v);
        g.v[v] |= (vb)(i % 4 == 0 ? h << 4 : i % 4 == 1 ? h << 2 : i % 4 == 2 ? h : h >> 2) & 48;
    }
    return g;
}

INLINE floats halves16(const u16 *p)
{
    floats f;
    UNROLL for (int v = 0; v < NV; v++) f.v[v] = halves_at(p + LANES * v);
    return f;
}

/* d * q, or its negative where the file has minima to subtract */
INLINE floats times_bytes(const u16 *d, const u8 *q, float sign)
{
    floats f;
    UNROLL for (int v = 0; v < NV; v++) f.v[v] = halves_at(d + LANES * v) * unsigned_at(q + LANES * v) * splat(sign);
    return f;
}

INLINE floats times_signed(const u16 *d, const i8 *q)
{
    floats f;
    UNROLL for (int v = 0; v < NV; v++) f.v[v] = halves_at(d + LANES * v) * signed_at(q + LANES * v);
    return f;
}

#define BLOCK_OF(name, p) ((const qn_panel_##name *)(const void *)(p))

INLINE group group_q8_0(const u8 *p, int b, int i)
{
    group g = load_group(BLOCK_OF(q8_0, p)->q[i]);
    (void)b;
    if (SIGNED_BYTES) UNROLL for (int v = 0; v < NV; v++) g.v[v] ^= 128;
    return g;
}
INLINE group group_q4_0(const u8 *p, int b, int i) { return (void)b, nibbles(BLOCK_OF(q4_0, p)->q[0], i); }
INLINE group group_q4_1(const u8 *p, int b, int i) { return (void)b, nibbles(BLOCK_OF(q4_1, p)->q[0], i); }
INLINE group group_q5_0(const u8 *p, int b, int i) { return (void)b, fives(BLOCK_OF(q5_0, p)->q[0], BLOCK_OF(q5_0, p)->high, i); }
INLINE group group_q5_1(const u8 *p, int b, int i) { return (void)b, fives(BLOCK_OF(q5_1, p)->q[0], BLOCK_OF(q5_1, p)->high, i); }
INLINE group group_q4_k(const u8 *p, int b, int i) { return nibbles(BLOCK_OF(q4_k, p)->q[b][0], i); }
INLINE group group_q5_k(const u8 *p, int b, int i) { return fives(BLOCK_OF(q5_k, p)->q[b][0], BLOCK_OF(q5_k, p)->high[b], i); }
INLINE group group_q6_k(const u8 *p, int b, int i) { return sixes(BLOCK_OF(q6_k, p)->q[b][0], BLOCK_OF(q6_k, p)->high[b], i); }

INLINE scales scale_q8_0(const u8 *p, int b) { return (void)b, (scales){ .s = { halves16(BLOCK_OF(q8_0, p)->d) } }; }
INLINE scales scale_q4_0(const u8 *p, int b) { return (void)b, (scales){ .s = { halves16(BLOCK_OF(q4_0, p)->d) } }; }
INLINE scales scale_q5_0(const u8 *p, int b) { return (void)b, (scales){ .s = { halves16(BLOCK_OF(q5_0, p)->d) } }; }
INLINE scales scale_q4_1(const u8 *p, int b)
{
    return (void)b, (scales){ .s = { halves16(BLOCK_OF(q4_1, p)->d) }, .m = halves16(BLOCK_OF(q4_1, p)->m) };
}
INLINE scales scale_q5_1(const u8 *p, int b)
{
    return (void)b, (scales){ .s = { halves16(BLOCK_OF(q5_1, p)->d) }, .m = halves16(BLOCK_OF(q5_1, p)->m) };
}
INLINE scales scale_q4_k(const u8 *p, int b)
{
    const qn_panel_q4_k *w = BLOCK_OF(q4_k, p);
    return (scales){ .s = { times_bytes(w->d, w->scale[b], 1) }, .m = times_bytes(w->dmin, w->min[b], -1) };
}
INLINE scales scale_q5_k(const u8 *p, int b)
{
    const qn_panel_q5_k *w = BLOCK_OF(q5_k, p);
    return (scales){ .s = { times_bytes(w->d, w->scale[b], 1) }, .m = times_bytes(w->dmin, w->min[b], -1) };
}
INLINE scales scale_q6_k(const u8 *p, int b)
{
    const qn_panel_q6_k *w = BLOCK_OF(q6_k, p);
    return (scales){ .s = { times_signed(w->d, w->scale[2 * b]), times_signed(w->d, w->scale[2 * b + 1]) } };
}

/* A block unpacked, for many rows. */
typedef struct plain {
    u8 q[8][QN_GROUP];
    floats s[2], m;
} plain;

INLINE group group_plain(const u8 *p, int b, int i) { return (void)b, load_group(((const plain *)(const void *)p)->q[i]); }
INLINE scales scale_plain(const u8 *p, int b)
{
    const plain *w = (const void *)p;
    (void)b;
    return (scales){ .s = { w->s[0], w->s[1] }, .m = w->m };
}

/* ---- the tile */

typedef struct task {
    const qn_qlinear *a;
    int row;           /* first row of x */
    qn_strand x;       /* where its blocks lie, beside those of the tile's other rows */
    int b0, b1;        /* blocks of 32 columns */
    const u8 *w;       /* where block b0 lies; b0 begins a panel block */
    float *y;          /* [R, a->rows] at this panel's first output */
    int left;          /* outputs that exist, from the panel's first to the matrix's last */
    bool begin, end;   /* first and last blocks of a row: start from zero, add the bias */
    const float *bias; /* of this panel, or NULL */
} task;

/* One half of block b, or all of it. */
INLINE void add_block(const form f, const task *t, const u8 *p, int sub, int b, int half, const scales *s, floats *acc,
                      const int R)
{
    const qn_bytes *x = &t->a->x;
    const size_t at = t->x.first + (size_t)b * t->x.step;
    ints dot[MOST];
    UNROLL for (int r = 0; r < R; r++) {
        const size_t i = at + (size_t)r;
        const i32 start = f.halves ? x->start16[2 * i + (size_t)half] : x->start[i];
        /* what makes up for the offset of the weights, which is 2^7 in start */
        UNROLL for (int v = 0; v < NV; v++) dot[r].v[v] = (f.log2_off < 0 ? 0 : start >> (7 - f.log2_off)) - (vi){ 0 };
    }
    dots(f, p, sub, f.halves ? 4 * half : 0, f.halves ? 4 * half + 4 : 8, x->q + 32 * at, dot, R);
    UNROLL for (int r = 0; r < R; r++) {
        const i32 shift = x->shift[at + (size_t)r];
        UNROLL for (int v = 0; v < NV; v++)
            acc[r].v[v] = vfma(__builtin_convertvector(dot[r].v[v] << shift, vf), s->s[half].v[v], acc[r].v[v]);
    }
}

INLINE void add_mins(const task *t, int b, const scales *s, floats *acc, const int R)
{
    const qn_bytes *x = &t->a->x;
    UNROLL for (int r = 0; r < R; r++) {
        const size_t at = t->x.first + (size_t)b * t->x.step + (size_t)r;
        const vf sum = splat((float)(-x->start[at] / 128 * (1 << x->shift[at])));
        UNROLL for (int v = 0; v < NV; v++) acc[r].v[v] = vfma(sum, s->m.v[v], acc[r].v[v]);
    }
}

/* Blocks of q5_k and q6_k are read in three places at once, and the processor's own prefetcher loses the thread: without this
 * one core reads 9 GB/s of them. Asking for what is not there does no harm. */
INLINE void fetch(const u8 *p, size_t n)
{
    for (size_t i = 0; i < n; i += 64) __builtin_prefetch(p + i);
}

INLINE void tile(const form f, const task *t, const int R)
{
    const size_t rows = (size_t)t->a->rows, slice = f.bytes / (size_t)f.blocks;
    const u8 *ahead = t->w + AHEAD;
    floats acc[MOST];
    UNROLL for (int r = 0; r < R; r++) acc[r] = t->begin ? (floats){ 0 } : get(t->y + (size_t)r * rows, t->left);
    const u8 *p = t->w;
    for (int b = t->b0, sub = 0; b < t->b1; b++) {
        const scales s = f.scale(p, sub);
        if (f.group != group_plain) fetch(ahead, slice), ahead += slice;
        add_block(f, t, p, sub, b, 0, &s, acc, R);
        if (f.halves) add_block(f, t, p, sub, b, 1, &s, acc, R);
        if (f.mins) add_mins(t, b, &s, acc, R);
        if (++sub == f.blocks) {
            sub = 0;
            p += f.bytes;
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        const floats bias = t->end && t->bias ? get(t->bias, t->left) : (floats){ 0 };
        const vf unit = splat(t->a->x.unit[t->row + r]);
        if (t->end) UNROLL for (int v = 0; v < NV; v++) acc[r].v[v] = vfma(acc[r].v[v], unit, bias.v[v]);
        put(t->y + (size_t)r * rows, acc[r], t->left);
    }
}

/* n rows of x in tiles of the sizes that exist, none of them over the end of a tile of x. */
INLINE void tiles(const form f, task t, int n)
{
    while (n > 0) {
        const int left = qn_mini(n, QN_TILE - t.row % QN_TILE), take = left >= MOST ? MOST : left >= 2 ? 2 : 1;
        t.x = qn_bytes_row(t.a->n, t.row, t.a->cols / 32);
        if (MOST > 2 && take == MOST) tile(f, &t, MOST);
        else if (take == 2) tile(f, &t, 2);
        else tile(f, &t, 1);
        t.row += take;
        t.y += (size_t)take * (size_t)t.a->rows;
        n -= take;
    }
}

/* ---- many rows: loops over unpacked blocks, one for each way of adding, whatever the type was */

#define OUTLINE static __attribute__((noinline))

INLINE form plain_form(int bits, int log2_off, bool mins, bool halves)
{
    return (form){ bits, log2_off, mins, halves, 1, sizeof(plain), group_plain, scale_plain };
}

typedef void (*tiles_fn)(const task *t, int n, int log2_off);
OUTLINE void tiles_8(const task *t, int n, int k) { tiles(plain_form(8, SIGNED_BYTES ? -1 : k, false, false), *t, n); }
OUTLINE void tiles_4(const task *t, int n, int k) { tiles(plain_form(4, k, false, false), *t, n); }
OUTLINE void tiles_4_mins(const task *t, int n, int k) { (void)k, tiles(plain_form(4, -1, true, false), *t, n); }
OUTLINE void tiles_6(const task *t, int n, int k) { tiles(plain_form(6, k, false, false), *t, n); }
OUTLINE void tiles_6_mins(const task *t, int n, int k) { (void)k, tiles(plain_form(6, -1, true, false), *t, n); }
OUTLINE void tiles_halves(const task *t, int n, int k) { tiles(plain_form(6, k, false, true), *t, n); }

INLINE tiles_fn tiles_for(const form f)
{
    if (f.halves) return tiles_halves;
    if (f.bits == 8) return tiles_8;
    return f.bits == 4 ? (f.mins ? tiles_4_mins : tiles_4) : f.mins ? tiles_6_mins : tiles_6;
}

INLINE void unpack(const form f, const u8 *w, int blocks, plain *out)
{
    for (int b = 0; b < blocks; b++, out++) {
        const u8 *p = w + (size_t)(b / f.blocks) * f.bytes;
        const scales s = f.scale(p, b % f.blocks);
        UNROLL for (int i = 0; i < 8; i++) {
            const group g = f.group(p, b % f.blocks, i);
            UNROLL for (int v = 0; v < NV; v++) *(vb_any *)(out->q[i] + 4 * LANES * v) = g.v[v];
        }
        out->s[0] = s.s[0];
        if (f.halves) out->s[1] = s.s[1];
        if (f.mins) out->m = s.m;
    }
}

INLINE task panel_task(const qn_qlinear *a, int panel)
{
    return (task){ .a = a, .y = a->y + (size_t)panel * QN_PANEL, .left = a->rows - panel * QN_PANEL,
                   .bias = a->bias ? a->bias + (size_t)panel * QN_PANEL : NULL };
}

/* Rows row .. row+n of x times a panel, chunk by chunk, all tiles over each. */
INLINE void many(const form f, const qn_qlinear *a, const u8 *w, int panel, int row, int n)
{
    _Alignas(64) plain buffer[CHUNK];
    const int blocks = a->cols / 32;
    const tiles_fn run = tiles_for(f);
    for (int b = 0; b < blocks; b += CHUNK) {
        task t = panel_task(a, panel);
        t.row = row;
        t.y += (size_t)row * (size_t)a->rows;
        t.b0 = b;
        t.b1 = qn_mini(b + CHUNK, blocks);
        t.begin = b == 0;
        t.end = t.b1 == blocks;
        t.w = (const u8 *)buffer;
        const u8 *at = w + (size_t)(b / f.blocks) * f.bytes;
        unpack(f, at, t.b1 - b, buffer);
        fetch(at + (size_t)(CHUNK / f.blocks) * f.bytes, (size_t)(CHUNK / f.blocks) * f.bytes);
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
            tiles(f, t, a->n);
        }
        return;
    }
    for (int row = 0; row < a->n; row += ROWS)
        for (int i = begin; i < end; i++)
            many(f, a, a->panels + (size_t)i * panel_bytes, i, row, qn_mini(ROWS, a->n - row));
}

/* ---- the kernels; a file makes them all with QLINEARS(level_variant) at its end */

#define QLINEAR(name, suffix, bits, log2_off, mins, halves, blocks) \
    void qn_qlinear_##name##_##suffix(const void *args, qn_lane lane); \
    void qn_qlinear_##name##_##suffix(const void *args, qn_lane lane) \
    { \
        qlinear((form){ bits, log2_off, mins, halves, blocks, sizeof(qn_panel_##name), group_##name, scale_##name }, args, \
                lane); \
    }
#define QLINEARS(suffix) \
    QLINEAR(q8_0, suffix, 8, SIGNED_BYTES ? -1 : 7, false, false, 1) \
    QLINEAR(q4_0, suffix, 4, 3, false, false, 1) \
    QLINEAR(q4_1, suffix, 4, -1, true, false, 1) \
    QLINEAR(q5_0, suffix, 6, 4, false, false, 1) \
    QLINEAR(q5_1, suffix, 6, -1, true, false, 1) \
    QLINEAR(q4_k, suffix, 4, -1, true, false, 8) \
    QLINEAR(q5_k, suffix, 6, -1, true, false, 8) \
    QLINEAR(q6_k, suffix, 6, 5, false, true, 8)

#endif
