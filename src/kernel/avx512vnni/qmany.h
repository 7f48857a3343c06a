/* qmany.h - many rows of x times panels of any quantised type: between the readers of the types
 * (qlinear.c) and the tile that knows no types (qmany.c). */
#ifndef QN_QMANY_H
#define QN_QMANY_H

#include "kernel/op.h"
#include "kernel/panel.h"

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

typedef struct qn_unpacker {
    /* blocks b .. b+n-1 of one panel into place `side` of out[0 .. n-1] */
    void (*unpack)(const u8 *panel, int b, int n, int side, qn_plain *out);
    size_t panel_bytes;
    qn_plain_kind kind;
    int plains;         /* most blocks at a time; 0: QN_PLAINS */
} qn_unpacker;

void qn_qmany(const qn_qlinear *a, const qn_unpacker *u, qn_lane lane);

#endif
