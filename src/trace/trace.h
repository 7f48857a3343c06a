/* trace.h - recording. A producer writes a few words into its ring and goes on; one thread turns them into lines and writes the
 * file. Its one idea: recording may lose events, and counts them, but never waits for a disk and never fails a run.
 *
 * qn_trace_put takes an event from any thread. Whoever has many of them opens a qn_tracer, a ring of its own for one thread at a
 * time. Times that callers pass are those of qn_now_ns(); the trace turns them into times since it began. */
#ifndef QN_TRACE_H
#define QN_TRACE_H

#include "base/clock.h"
#include "trace/event.h"

enum { QN_TRACE_REQUEST, QN_TRACE_TOKEN, QN_TRACE_STEP };
#define QN_TRACE_LEVELS "request|token|step"

/* Opens the file and starts the thread. A path that ends in .zst is compressed: a frame for each piece, so that what is on disk
 * always ends on a full line. Refuses folders, FIFOs that nobody reads, and files that hold something else than a trace. */
qn_trace *qn_trace_open(const char *path, int level, qn_err *e);
bool qn_trace_wants(const qn_trace *t, int level); /* false for NULL */
i64 qn_trace_time(const qn_trace *t, u64 now_ns);

/* What the program knows of the header before the model is open; the engine adds the rest and puts it. Texts are borrowed until
 * then. */
void qn_trace_set_head(qn_trace *t, const qn_ev_trace *head);
const qn_ev_trace *qn_trace_head(const qn_trace *t);

/* The header may come late, when the model is open: lines wait for it. NULL as trace does nothing. */
void qn_trace_put(qn_trace *t, const qn_event *ev);

typedef struct qn_trace_sum {
    u64 events, lost, bytes; /* lines written, events that are not in the file, its size */
    char why[160];           /* why events were lost; "": none was */
} qn_trace_sum;

/* Writes what is there and the end record. status: ok, cancelled, failed. Waits at most 2 s for a reader that does not read. */
void qn_trace_close(qn_trace *t, const char *status, qn_trace_sum *out);

/* ---- a ring of one's own */

typedef struct qn_tracer qn_tracer;

qn_tracer *qn_tracer_open(qn_trace *t, qn_err *e);
void qn_tracer_close(qn_tracer *r); /* what it holds is still written */
qn_trace *qn_tracer_trace(const qn_tracer *r);
void qn_tracer_put(qn_tracer *r, const qn_event *ev);
/* Waits, at most 0.2 s, until the ring is empty: for bursts outside of anything that is timed. */
void qn_tracer_settle(qn_tracer *r);

/* A step, in words. */
enum { QN_PASS_PREFILL, QN_PASS_DECODE, QN_PASS_MIXED };
extern const char *const qn_pass_names[3];

typedef struct qn_lane_time { u64 begin, end; char pad[48]; } qn_lane_time; /* a cache line: lanes write their own */

typedef struct qn_step_mark {
    u32 pass, step;
    int phase, rows, pos, lanes;
    u64 begin, end, bytes, flops;
    const qn_lane_time *times; /* [lanes] */
} qn_step_mark;
void qn_tracer_step(qn_tracer *r, const qn_step_mark *m);

#endif
