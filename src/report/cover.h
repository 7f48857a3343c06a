/* cover.h - whose time it was: spans of a run, each of one phase, into exclusive times. Where two spans lie over each other the
 * one that began first keeps the time; a span that lies wholly inside others adds nothing and is counted as covered. */
#ifndef QN_COVER_H
#define QN_COVER_H

#include "report/run.h"

#define QN_COVER_WINDOW 512 /* spans that may come out of order: a writer drains its threads one after the other */

typedef struct qn_cover {
    struct { i64 begin, end; qn_phase phase; } open[QN_COVER_WINDOW]; /* by begin */
    size_t n;
    i64 until;              /* everything before is decided */
    u64 ns[N_PHASES];
    u64 covered;            /* spans that added nothing */
    u64 late;               /* of those, spans that began before what is decided: time went back */
} qn_cover;

void qn_cover_add(qn_cover *c, qn_phase phase, i64 t, u64 ns);
/* Times of all spans so far; c itself goes on. */
void qn_cover_sum(const qn_cover *c, u64 ns[N_PHASES]);

#endif
