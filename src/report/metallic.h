/* metallic.h - Metallic's metrics: an event of its log, the sums that its analyser prints, and our own trace told as
 * such events. `--format metallic` and `quern export --to metallic` share the telling, so a log that was exported and
 * then analysed by any analyser of that format gives the figures that we print. */
#ifndef QN_METALLIC_H
#define QN_METALLIC_H

#include "base/buf.h"
#include "base/str.h"
#include "report/report.h"
#include "trace/event.h"

enum { QN_METALLIC_PAIRS = 24 };

typedef struct qn_metallic_pair { qn_str key, value; } qn_metallic_pair;
/* Where an event counts, found once: sums of metallic_sum.c. */
typedef struct qn_metallic_place { int n; struct { u32 sum, group; } at[8]; } qn_metallic_place;

typedef struct qn_metallic_event {
    i64 t;                      /* ns since the trace began; for the export */
    const char *type;           /* "GpuOpCompleted" */
    qn_str op, kernel, parent, backend, reason; /* p NULL: the event does not have it */
    bool timed;
    u64 us;
    const qn_metallic_pair *data; /* of a matrix product: op, backend, m, ... */
    int n_data;
    struct qn_metallic_place *place; /* kept by whoever tells the same event again and again, zeroed at first; NULL: nobody */
    qn_str rest;                /* other members as JSON text: "size_bytes":1; for the export */
    qn_str when;                /* while reading: the time stamp, and all members of the event's data */
    struct yyjson_val *members;
} qn_metallic_event;

typedef bool (*qn_metallic_fn)(void *user, const qn_metallic_event *ev, qn_err *e);

/* metallic_sum.c: sums as the analyser keeps them; metallic_print.c: as it prints them. */
typedef struct qn_metallic qn_metallic;
qn_metallic *qn_metallic_open(qn_err *e);
bool qn_metallic_add(qn_metallic *m, const qn_metallic_event *ev, qn_err *e);
void qn_metallic_print(qn_metallic *m, const qn_report_options *o, qn_buf *out); /* all but the line with the path */
void qn_metallic_close(qn_metallic *m);

/* metallic_read.c: a log of Metallic, event by event. What cannot be parsed is said in out as the analyser says it. */
bool qn_metallic_read(const char *path, qn_metallic_fn fn, void *user, qn_buf *out, qn_err *e);
/* One line of it; a record without a type is no event. why: what is wrong with the line, QN_OK if nothing is. */
bool qn_metallic_take(qn_str line, qn_metallic_fn fn, void *user, qn_err *why, qn_err *e);

/* metallic_tell.c: a trace of ours as their events; a run of any other program, from its series. */
bool qn_metallic_tell_trace(const char *path, qn_metallic_fn fn, void *user, qn_err *e);
bool qn_metallic_tell_run(const qn_run *r, qn_metallic_fn fn, void *user, qn_err *e);

/* One line of Metallic's JSONL with its newline; `timestamp` is started (RFC 3339, "" for 1970) + t. */
void qn_metallic_line(qn_buf *out, const qn_metallic_event *ev, const char *started);

#endif
