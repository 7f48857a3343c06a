/* qmany.h - many rows of x times panels of any quantised type: between the loops that know no types (qmany.c) and the
 * tile that opens packed weights for the others, made for each type (qopen.c). */
#ifndef QN_QMANY_H
#define QN_QMANY_H

#include "kernel/op.h"
#include "kernel/panel.h"

struct qn_ahead;

#define QN_PAIR 2   /* panels side by side in a tile: each activation is loaded once for both */
#define QN_PLAINS 64 /* most blocks of 32 columns unpacked at a time: 80 KiB, which every tile reads in order from L2 */

/* Blocks of two panels, unpacked to bytes 0..255 and floats. */
typedef struct qn_plain {
    u8 q[8][QN_PAIR][QN_GROUP];
    float s[QN_PAIR][QN_PANEL];    /* scales, of the first half where there are two */
    float more[QN_PAIR][QN_PANEL]; /* scales of the second half; or minima / -128, which meet -128 times a sum */
} qn_plain;

/* PLAIN_offset: bytes are weights + 128. PLAIN_halves: the same with two scales a block. PLAIN_mins: bytes are weights >= 0. */
typedef enum qn_plain_kind { PLAIN_offset, PLAIN_halves, PLAIN_mins } qn_plain_kind;
#define QN_PLAIN_KIND(mins, halves) ((halves) ? PLAIN_halves : (mins) ? PLAIN_mins : PLAIN_offset)

typedef float qn_results[QN_PAIR * QN_PANEL];

/* R rows of x by two panels over a chunk of the columns. */
typedef struct qn_qtile {
    const i8 *q;        /* where the tile's first row and block are */
    const i32 *start;   /* per block, or per half */
    const i32 *shift;
    const float *unit;
    size_t step;        /* rows of the tile of x: blocks from one block of a row to its next */
    int b, blocks;      /* the chunk: its first block and how many */
    const u8 *panel[QN_PAIR]; /* where the packed panels begin */
    qn_plain *w;        /* the chunk, unpacked by the tile that opens it */
    struct qn_ahead *next; /* packed weights behind the chunk */
    qn_results *kept;   /* of this tile's rows, from chunk to chunk */
    float *y;
    size_t y_stride;
    u16 mask[QN_PAIR];  /* outputs that exist */
    bool begin, end;    /* first and last columns: start from zero, write to y */
    const float *bias;
} qn_qtile;

typedef struct qn_opener {
    void (*open)(const qn_qtile *t); /* unpacks the chunk; multiplies it by QN_TILE rows on the way */
    size_t panel_bytes;
    qn_plain_kind kind;
    int plains;         /* most blocks at a time; 0: QN_PLAINS */
} qn_opener;

void qn_qopen_q8_0(const qn_qtile *t);
void qn_qopen_q4_0(const qn_qtile *t);
void qn_qopen_q4_1(const qn_qtile *t);
void qn_qopen_q5_0(const qn_qtile *t);
void qn_qopen_q5_1(const qn_qtile *t);
void qn_qopen_q4_k(const qn_qtile *t);
void qn_qopen_q5_k(const qn_qtile *t);
void qn_qopen_q6_k(const qn_qtile *t);

void qn_qmany(const qn_qlinear *a, const qn_opener *u, qn_lane lane);

#endif
