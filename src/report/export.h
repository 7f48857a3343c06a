/* export.h - a trace in the formats of other tools. Our own traces are read again and written event by event, so the file may be
 * of any size; runs of other programs are written from what the run has. */
#ifndef QN_EXPORT_H
#define QN_EXPORT_H

#include "base/buf.h"
#include "report/run.h"

typedef enum qn_export_to { EXPORT_chrome, EXPORT_perfetto, EXPORT_folded, EXPORT_metallic, EXPORT_csv, N_EXPORTS } qn_export_to;

/* Takes the next bytes of the file; false stops. */
typedef bool (*qn_export_fn)(void *user, const void *p, size_t n, qn_err *e);

#define QN_EXPORT_LANES 64  /* tracks of requests; where more go on at once, they share them */
typedef struct qn_export {
    const qn_run *run;
    qn_export_fn fn;
    void *user;
    qn_buf out;             /* what was not yet handed to fn */
    bool counters;          /* perfetto: tracks of numbers too */
    bool comma;             /* an event was written */
    i64 lanes[QN_EXPORT_LANES]; /* chrome: the request that has each track; 0: free */
    int n_lanes;            /* that ever were taken */
} qn_export;

/* Hands over what is there once it is much; at the end all of it. */
bool qn_export_flush(qn_export *x, bool all, qn_err *e);

/* The run (for quern's own: its trace at run->path) as a file. */
bool qn_export_write(const qn_run *run, qn_export_to to, qn_export_fn fn, void *user, qn_err *e);

bool qn_export_chrome(qn_export *x, qn_err *e); /* export_chrome.c */
bool qn_export_csv(qn_export *x, qn_err *e);    /* export_csv.c */

#endif
