/* run.h - a run as the reports see it: what was launched, how often, how long, and everything else that a trace says. Filled by a
 * reader of one kind of log (quern's own, Metallic's, Doppler's, MLC's, Chrome's), read by every report. Its one idea: the
 * unit is the *series*, all launches of one thing in one phase (steps; also sampling and tokenising), with every sample kept
 * (8 bytes each), so that percentiles are exact. */
#ifndef QN_RUN_H
#define QN_RUN_H

#include "base/mem.h"
#include "base/str.h"
#include "base/table.h"

typedef enum qn_phase { PHASE_load, PHASE_tokenize, PHASE_prefill, PHASE_decode, PHASE_sample, PHASE_other, N_PHASES } qn_phase;
extern const char *const qn_phase_names[N_PHASES];

/* Sums for a straight line y = a + b x through samples, in the order they came. */
typedef struct qn_fit { u64 n; double sx, sy, sxx, sxy, syy; } qn_fit;

typedef struct qn_series {
    const char *kernel, *op, *role, *type; /* "" where the log does not say */
    int layer;              /* -1: outside the layers, or not known */
    qn_phase phase;
    u64 expected;           /* launches that the plan and the passes ask for; 0: not known */
    u64 n;                  /* launches captured; samples may be fewer when the log has only totals */
    size_t n_samples, cap;
    u64 *ns;                /* [n_samples] duration of each launch */
    u64 total_ns, min_ns, max_ns;
    u64 wait_ns;            /* thread time waited, summed over threads, divided by their number */
    double bytes, flops;    /* summed */
    qn_fit fit;             /* x: position, y: ns */
} qn_series;

typedef struct qn_run_pass {
    i64 t, number;          /* number: as the log counts them, from 1 */
    u64 ns, steps_ns;
    qn_phase phase;
    int rows, seqs;
    i64 pos;
} qn_run_pass;
typedef struct qn_run_token { i64 t; u64 ns; i64 request, index, id, pos; } qn_run_token;
typedef struct qn_run_load { const char *phase; u64 ns, bytes; } qn_run_load;
typedef struct qn_run_memory { const char *when, *parts; u64 weights, kv, kv_used, scratch, resident, peak; } qn_run_memory;
typedef struct qn_run_test { const char *name; i64 rep; u64 tokens, ns; } qn_run_test;
typedef struct qn_run_request {
    i64 id, prompt, cached, tokens;
    const char *stop;
    u64 first_ns, prompt_ns, decode_ns, ns;
} qn_run_request;
typedef struct qn_run_choice { int step; const char *role, *op, *rows, *kernel, *reason, *rejected; } qn_run_choice;
/* One launch on the timeline; kept for a few passes only (the first prefill pass, some decode passes), for the drawings. */
typedef struct qn_run_span { i64 t; u64 ns; u32 series, pass; } qn_run_span; /* series: index; pass: its number */

/* A growing array of anything; report/run.c has the one function that grows it. */
#define QN_RUN_LIST(type) struct { type *p; size_t n, cap; }

typedef struct qn_run {
    qn_arena arena;         /* every text in here */
    const char *source;     /* "quern", "metallic", "doppler", "mlc", "chrome" */
    const char *path;
    /* who, where, with what: "" or 0 when not known */
    const char *program, *commit, *command, *started, *level, *host, *os, *cpu, *device, *isa, *model, *model_path, *arch, *type;
    const char *hash, *plan_hash, *settings, *status;
    i64 seed, cores, threads, layers;
    u64 model_bytes, params;
    double read_gbs, read_small_gbs, f32_gflops, bf16_gflops, int8_gops, barrier_us, clock_ns; /* ceilings; 0: not known */
    u64 wall_ns;            /* of the whole trace */
    u64 phase_ns[N_PHASES]; /* exclusive: they add up to wall_ns, `other` is the rest */
    u64 phase_tokens[N_PHASES];
    u64 events, writer_ns;  /* of the trace, and what writing it took of a processor; 0: not known */
    u64 lost, unknown, bad, ignored; /* events: lost by the writer, of unknown kinds, damaged lines, senseless values */
    bool ended;             /* there was an end record */
    QN_RUN_LIST(qn_series) series;
    QN_RUN_LIST(qn_run_pass) passes;
    QN_RUN_LIST(qn_run_token) tokens;
    QN_RUN_LIST(qn_run_load) loads;
    QN_RUN_LIST(qn_run_memory) memory;
    QN_RUN_LIST(qn_run_test) tests;
    QN_RUN_LIST(qn_run_request) requests;
    QN_RUN_LIST(qn_run_choice) choices;
    QN_RUN_LIST(qn_run_span) spans;
    QN_RUN_LIST(const char *) notes; /* what the reader and the analysis have to say, one sentence each */
    QN_RUN_LIST(const char *) all_texts; /* these three belong to run.c */
    qn_table texts, index;
} qn_run;

/* Called while reading; share is 0..1, negative when the size is not known. False stops with QN_ECANCELLED. */
typedef bool (*qn_run_progress_fn)(void *user, double share);

/* run_open.c: looks at the first bytes, takes the reader that knows them. A file may hold several runs (MLC's tables do):
 * *runs [*n] are yours, each to be closed with qn_run_close and the array with qn_free. */
bool qn_runs_open(const char *path, bool follow, qn_run_progress_fn progress, void *user, qn_run ***runs, size_t *n, qn_err *e);
void qn_run_close(qn_run *r);
/* The same for bytes that the caller keeps (path is for messages). */
bool qn_runs_open_bytes(const char *path, const void *p, size_t n, qn_run ***runs, size_t *n_runs, qn_err *e);

/* read_quern.c: a run filled event by event, for a view that follows one. finish may be called again and again: it brings
 * expected launches, phases and notes up to date. */
typedef struct qn_fill qn_fill;
struct qn_event;
struct qn_reader_state;
qn_fill *qn_fill_open(qn_run *r, qn_err *e);
bool qn_fill_add(qn_fill *f, const struct qn_event *ev, qn_err *e);
bool qn_fill_finish(qn_fill *f, const struct qn_reader_state *state, qn_err *e);
void qn_fill_close(qn_fill *f);

/* For readers. An empty run; its texts are "" and not NULL. Zeroed memory is an empty run too, except for that. */
qn_run *qn_run_new(const char *source, const char *path, qn_err *e);
/* One more element (zeroed) at the end of a QN_RUN_LIST; NULL: no memory. */
#define QN_RUN_PUSH(list, e) qn_run_push(&(list)->p, &(list)->n, &(list)->cap, sizeof *(list)->p, e)
void *qn_run_push(void *pointer, size_t *n, size_t *cap, size_t size, qn_err *e); /* pointer: to the array's own */
bool qn_run_note(qn_run *r, qn_err *e, const char *fmt, ...) QN_PRINTF(3, 4);
/* The series with these names, made if it is not there (hashed: constant time); NULL: no memory. */
qn_series *qn_run_series(qn_run *r, qn_phase phase, const char *kernel, const char *op, const char *role,
                         const char *type, int layer, qn_err *e);
bool qn_series_add(qn_series *s, u64 ns, qn_err *e);
const char *qn_run_text(qn_run *r, qn_str s, qn_err *e); /* one copy of each text; NULL: no memory */
void qn_fit_add(qn_fit *f, double x, double y);

#endif
