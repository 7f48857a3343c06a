/* bpanel.h - floats as bf16 in panels of 16 rows, 12 bits a weight. The rows of a trained matrix need few of bf16's 256
 * exponents: a row keeps the 16 below and with its largest one, the sign and all 7 bits of the fraction. Nothing is lost but
 * weights below 2^-15 of the row's largest, which become zero or that: bf16 rounds the largest itself by 2^-9. Decode reads a
 * quarter less than bf16 would have it read.
 *
 * A panel has its base, what is added to a code to make it bf16, for both columns of a pair, and quads: four pairs of columns
 * in three vectors of 16-bit lanes. A lane has the code of its own pair in bits 15 and 10..0 (sign; exponent and fraction; 0 is
 * zero) and a third of the fourth pair's in bits 14..11, so that three of four codes are one AND away.
 *
 * Two panels lie together, a twin: both bases, then their quads in turn. Who multiplies them has two chains of sums, which hides
 * their latency, and reads one stream: four panels side by side were four, and a token took 7 % longer (SPEED.md). A matrix is a
 * whole number of twins. */
#ifndef QN_BPANEL_H
#define QN_BPANEL_H

#include "format/dtype.h"
#include "kernel/panel.h"

#define QN_QUAD 8 /* columns of a quad */
#define QN_TWIN 2 /* panels */

typedef struct qn_quad { u16 w[3][QN_PANEL][2]; } qn_quad;
typedef struct qn_twin {
    u16 base[QN_TWIN][QN_PANEL][2];
    qn_quad quad[][QN_TWIN]; /* columns / 8 */
} qn_twin;
static_assert(sizeof(qn_quad) == 3 * 64 && sizeof(qn_twin) == QN_TWIN * 64, "whole vectors");

#define QN_CODE 0x87FFu     /* sign, exponent and fraction in a lane */
/* The parts of the fourth code, and how far they are moved into the spare bits of lanes 0, 1, 2. */
#define QN_FOURTH_0 0x0780u /* up 4 */
#define QN_FOURTH_1 0x0078u /* up 8 */
#define QN_FOURTH_2 0x0007u /* up 12 */
#define QN_FOURTH_S 0x8000u /* the sign, in the third lane: down 4 */

size_t qn_twin_bytes(int cols);
static inline int qn_n_twins(int rows) { return (rows + QN_TWIN * QN_PANEL - 1) / (QN_TWIN * QN_PANEL); }
/* The base of a row whose largest weight, without its sign, is `most`. */
u16 qn_bpanel_base(qn_dtype type, u16 most);

/* Rows panel*16 .. of the f16 or bf16 matrix w, whose width is a multiple of 32, into their places in its twin; as fast as this
 * machine can. */
void qn_bpanel_pack(qn_dtype type, const u16 *w, int rows, int cols, int panel, qn_twin *out);
void qn_bpanel_plain(qn_dtype type, const u16 *w, int rows, int cols, int panel, qn_twin *out);
#if defined(__x86_64__)
void qn_bpanel_avx512bf16(qn_dtype type, const u16 *w, int rows, int cols, int panel, qn_twin *out);
#endif

/* Column c of row r, 0..31, of a twin. */
float qn_bpanel_at(const qn_twin *t, int r, int c);

#endif
