/* tracing.h - a trace as commands see it: opened with a header from what the program knows, closed with a word about what was
 * lost. Used by shared.c, which opens models and engines for all commands. */
#ifndef QN_TRACING_H
#define QN_TRACING_H

#include "cli/command.h"
#include "probe/ceilings.h"
#include "probe/machine.h"
#include "trace/trace.h"

/* What the header borrows until the engine is open. */
typedef struct qn_tracing {
    qn_trace *trace;           /* NULL: nothing is recorded */
    qn_buf command, settings;
    qn_machine machine;
    char host[64], started[32];
    u64 seed;
} qn_tracing;

/* Does nothing when no file was named. */
bool qn_tracing_open(qn_tracing *t, const qn_cli *c, const qn_engine_args *a, qn_err *e);
void qn_tracing_release(qn_tracing *t); /* the header is written; the trace stays open */
/* Ends a trace; NULL is fine. code: the exit code of the command. */
void qn_tracing_end(qn_trace *t, int code);

/* A phase of loading or closing, from begin until now. */
void qn_tracing_load(qn_trace *t, const char *phase, u64 begin_ns, u64 bytes);
void qn_tracing_tokenize(qn_trace *t, u64 begin_ns, size_t bytes, size_t tokens);

/* A repetition of a test; rep -1: a warm-up. */
void qn_tracing_test(qn_trace *t, const char *name, int rep, u64 tokens, u64 begin_ns, u64 ns);

/* Keeps what was measured for the headers of later traces; a place that cannot be written is told, nothing more. */
void qn_cli_keep_ceilings(const qn_cli *c, const qn_ceilings *k);
/* False: none are kept for these threads and this ISA. note: "" when there is nothing to say. */
bool qn_cli_kept_ceilings(const qn_engine_args *a, qn_ceilings *out, char note[240]);
/* Measures and keeps them if none are kept for these threads and this ISA; about two seconds, with a progress bar. */
/* Those of what --device `device` runs on: the processor's or a GPU's. */
bool qn_cli_measure_ceilings(const char *device, const qn_ceilings_opts *o, qn_ceilings *out, qn_err *e);
bool qn_cli_need_ceilings(const qn_cli *c, const qn_engine_args *a, qn_err *e);

#endif
