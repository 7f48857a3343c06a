/* qopen.c - the tile that opens a chunk of packed weights for all others, made for each type. It has all rows of a tile of x, or
 * five where there are no more. */
#include "kernel/avx512vnni/qtile.h"

#define OPEN(name, log2_off, mins, halves, blocks) \
    void qn_qopen_##name(const qn_qtile *t) \
    { \
        static const form f = QN_FORM(name, log2_off, mins, halves, blocks); \
        const qn_plain_kind kind = QN_PLAIN_KIND(mins, halves); \
        if (t->step == QN_TILE) tile(kind, &f, t, QN_TILE); \
        else tile(kind, &f, t, QN_TILE - 1); \
    }
QN_FORMS(OPEN)
