/* cover.c - exclusive time with a window: spans come nearly in order, so only the last few hundred are kept. */
#include "report/cover.h"

#include <string.h>

/* The oldest span is decided. */
static void settle(qn_cover *c, size_t i)
{
    const i64 begin = c->open[i].begin > c->until ? c->open[i].begin : c->until;
    if (c->open[i].end > begin) {
        c->ns[c->open[i].phase] += (u64)(c->open[i].end - begin);
        c->until = c->open[i].end;
    } else if (c->open[i].end > c->open[i].begin) {
        c->covered++;
    }
}

void qn_cover_add(qn_cover *c, qn_phase phase, i64 t, u64 ns)
{
    if (c->n == QN_COVER_WINDOW) {
        const size_t half = QN_COVER_WINDOW / 2;
        for (size_t i = 0; i < half; i++) settle(c, i);
        memmove(c->open, c->open + half, half * sizeof c->open[0]);
        c->n = half;
    }
    size_t at = c->n++;
    for (; at && c->open[at - 1].begin > t; at--) c->open[at] = c->open[at - 1];
    c->open[at].begin = t;
    c->open[at].end = t + (i64)ns;
    c->open[at].phase = phase;
    c->late += t + (i64)ns < c->until;
}

void qn_cover_sum(const qn_cover *c, u64 ns[N_PHASES])
{
    qn_cover rest = *c;
    for (size_t i = 0; i < rest.n; i++) settle(&rest, i);
    memcpy(ns, rest.ns, sizeof rest.ns);
}
