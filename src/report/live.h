/* live.h - a run while it runs: events in, a screen of text out. Its one idea: what is shown are sums that every event keeps up
 * to date, and figures of the last tokens; percentiles of everything wait for the report. Knows no terminal: lines end with
 * \n, and the caller puts them where it likes. */
#ifndef QN_LIVE_H
#define QN_LIVE_H

#include "base/buf.h"
#include "report/analysis.h"
#include "trace/reader.h"

typedef struct qn_live qn_live;

qn_live *qn_live_open(const char *path, qn_err *e);
bool qn_live_add(qn_live *l, const qn_event *ev, qn_err *e);
/* The screen: at most height lines of at most width columns; steps grouped by `by`. */
bool qn_live_draw(qn_live *l, const qn_reader_state *state, qn_by by, int width, int height, bool color, qn_buf *out, qn_err *e);
bool qn_live_ended(const qn_live *l);
void qn_live_close(qn_live *l);

#endif
