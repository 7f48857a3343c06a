/* qopen.c - the tile that opens a chunk of packed weights for all others, made for each type. */
#include "kernel/avx512vnni/qtile.h"

#define OPEN(name, log2_off, mins, halves, blocks) \
    void qn_qopen_##name(const qn_qtile *t) \
    { \
        static const form f = { log2_off, mins, halves, blocks, sizeof(qn_panel_##name), group_##name, scale_##name }; \
        tile((halves) ? PLAIN_halves : (mins) ? PLAIN_mins : PLAIN_offset, &f, t, QN_TILE); \
    }
QN_FORMS(OPEN)
