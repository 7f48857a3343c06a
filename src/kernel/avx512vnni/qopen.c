/* qopen.c - the tile that opens a chunk of packed weights for all others, made for each type. Fewer rows than a
 * tile of x has do not come here: qlinear.c keeps them. */
#include "kernel/avx512vnni/qtile.h"

#define OPEN(name, log2_off, mins, halves, blocks) \
    void qn_qopen_##name(const qn_qtile *t) \
    { \
        static const form f = QN_FORM(name, log2_off, mins, halves, blocks); \
        tile(QN_PLAIN_KIND(mins, halves), &f, t, QN_TILE); \
    }
QN_FORMS(OPEN)
