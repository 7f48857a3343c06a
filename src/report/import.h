/* import.h - the readers of other programs' logs, one file each, and the table by which run_open.c knows them. A reader takes
 * the text in order and appends one run or several. */
#ifndef QN_IMPORT_H
#define QN_IMPORT_H

#include "report/run.h"
#include "trace/stream.h"

typedef struct qn_runs { qn_run **p; size_t n, cap; } qn_runs;

typedef struct qn_import {
    const char *path;
    qn_stream *text;
    qn_run_progress_fn progress; /* may be NULL */
    void *user;
    u64 asked;              /* where the caller was last told of */
    qn_runs *runs;
} qn_import;

/* An empty run at the end of im->runs. */
qn_run *qn_import_run(qn_import *im, const char *source, qn_err *e);
/* Tells the caller now and then how far it is; false: stop. To be called for every line. */
bool qn_import_goes_on(qn_import *im, qn_err *e);
/* The next line; END, ERROR and a stop by the caller as in qn_stream_line. Waits for pipes. */
qn_got qn_import_line(qn_import *im, qn_line *line, qn_err *e);

bool qn_import_metallic(qn_import *im, qn_err *e);
bool qn_import_doppler(qn_import *im, qn_err *e);
bool qn_import_mlc(qn_import *im, qn_err *e);
bool qn_import_chrome(qn_import *im, qn_err *e);

/* read_doppler.c: a series of such a run as that log labels it: matmul:q_proj:L3, matmul_rmsnorm_fused:L3.ffn_down, attention. */
void qn_doppler_label(const qn_series *s, char *out, size_t cap);

#endif
