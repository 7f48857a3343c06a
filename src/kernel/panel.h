/* panel.h - weights in the order in which dot-product instructions eat them. A panel is 16 rows of a
 * matrix, side by side: a group is 4 neighbouring columns of the 16 rows, 64 bytes, one vector; row r has
 * bytes 4r .. 4r+3 of it. Values are unsigned: the instruction wants one unsigned side, and what was added
 * comes off again through the sum of the activations. Panels lie at multiples of 32 bytes.
 * A panel block covers as many columns as the type's own block; the last panel of a matrix is padded with
 * rows of zeros.
 *
 * Types with 4 bits keep two groups in one vector: group 2i in the low nibbles, 2i+1 in the high ones. A
 * fifth bit is a 64-bit mask per group, bits five and six are two vectors of four 2-bit fields each. */
#ifndef QN_PANEL_H
#define QN_PANEL_H

#include "format/dtype.h"

#define QN_PANEL 16       /* rows */
#define QN_GROUP 64       /* bytes of a group: 16 rows of 4 columns */

typedef struct qn_panel_q8_0 { u16 d[16]; u8 q[8][QN_GROUP]; } qn_panel_q8_0;                       /* q + 128 */
typedef struct qn_panel_q4_0 { u16 d[16]; u8 q[4][QN_GROUP]; } qn_panel_q4_0;
typedef struct qn_panel_q4_1 { u16 d[16], m[16]; u8 q[4][QN_GROUP]; } qn_panel_q4_1;
typedef struct qn_panel_q5_0 { u16 d[16]; u64 high[8]; u8 q[4][QN_GROUP]; } qn_panel_q5_0;
typedef struct qn_panel_q5_1 { u16 d[16], m[16]; u64 high[8]; u8 q[4][QN_GROUP]; } qn_panel_q5_1;
typedef struct qn_panel_q4_k {
    u16 d[16], dmin[16];
    u8 scale[8][16], min[8][16];
    u8 q[8][4][QN_GROUP];
} qn_panel_q4_k;
typedef struct qn_panel_q5_k {
    u16 d[16], dmin[16];
    u8 scale[8][16], min[8][16];
    u64 high[8][8];
    u8 q[8][4][QN_GROUP];
} qn_panel_q5_k;
typedef struct qn_panel_q6_k {
    u16 d[16];
    i8 scale[16][16];
    u8 high[8][2][QN_GROUP];
    u8 q[8][4][QN_GROUP];
} qn_panel_q6_k;
static_assert(sizeof(qn_panel_q8_0) == 16 * 34 && sizeof(qn_panel_q4_0) == 16 * 18 && sizeof(qn_panel_q4_1) == 16 * 20 &&
              sizeof(qn_panel_q5_0) == 16 * 22 && sizeof(qn_panel_q5_1) == 16 * 24, "as large as in the file");
static_assert(sizeof(qn_panel_q4_k) == 16 * 148 && sizeof(qn_panel_q5_k) == 16 * 180 && sizeof(qn_panel_q6_k) == 16 * 210,
              "4 bytes more a block where 6-bit scales became bytes");

/* f16 and bf16 become bf16 in bpanel.h's order. */
typedef enum qn_panel_kind { PANEL_none, PANEL_int8, PANEL_bf16 } qn_panel_kind;
qn_panel_kind qn_panel_of(qn_dtype type);

/* Bytes of a packed matrix, of floats whole twins of panels; 0: the type or the width has no panels. */
size_t qn_panel_bytes(qn_dtype type, int rows, int cols);
/* Packs panels first..last-1 of the matrix w; out is where panel 0 begins. */
void qn_panel_pack(qn_dtype type, const void *w, int rows, int cols, int first, int last, u8 *out);
/* Columns c .. c+len-1 of row r of the packed matrix as floats: for the reference and for tests. */
void qn_panel_part(qn_dtype type, const u8 *panels, int cols, int r, int c, int len, float *out);

#endif
