/* bench.h - what the parts of `quern bench` share. cmd_bench.c reads the options and walks models, settings and tests;
 * bench_run.c takes samples; bench_others.c watches who else runs meanwhile; bench_against.c gets another engine's samples;
 * bench_print.c writes rows. */
#ifndef QN_BENCH_H
#define QN_BENCH_H

#include <sched.h>

#include "base/stats.h"
#include "cli/command.h"
#include "probe/ceilings.h"

#define QN_RIVALS_MOST 4

typedef struct qn_bench_test { int n_prompt, n_gen, n_depth; } qn_bench_test;

/* A model opened with one combination of settings. */
typedef struct qn_bench_setup {
    qn_engine_args args;
    const char *kv;              /* the name of args.kv */
    qn_model *model;
    qn_engine *engine;
    qn_session *session;
    qn_model_info info;
    const qn_ceilings *ceilings; /* with these threads and this ISA; NULL: not measured */
    double memory_from;          /* bytes a second that memory must give around samples; 0: whatever it gives */
    double memory_wait;          /* seconds that a test waits for that, at most */
    u64 load_ns;                 /* to open model and engine */
    u64 first_token_ns;          /* from before opening until the logits of a first token were there, no warm-up */
    u64 drawn;                   /* random token ids so far: no prompt comes twice, so no cached prefix helps */
} qn_bench_setup;

/* Another engine: a program that takes llama-bench's options. */
typedef struct qn_rival {
    char *label;                 /* "NAME" of "NAME=COMMAND", else the program's file name */
    const char *command;         /* as typed, without the label */
    char *words;                 /* the command cut at its spaces; argv points into it */
    char **argv;                 /* [argc] and room for what is added */
    int argc;
    bool knows_depth, behind;    /* it knows -d; it does not, and a depth is asked for as -gp */
    cpu_set_t allowed;           /* where this process might run when it began */
} qn_rival;

/* What the cores did up to a moment, and what became of samples between such moments: seconds of all cores, added up. */
typedef struct qn_core_use { u64 at_ns; int cores; bool known; double others_s, host_s; } qn_core_use;
typedef struct qn_others { double all_s, others_s, host_s; } qn_others;

typedef struct qn_bench_result {
    qn_bench_test test;
    const qn_bench_setup *setup;
    int n;                       /* samples */
    double *ns, *ts;             /* [n] as they came */
    double *reads;               /* [n] bytes per second that memory gave before and behind each; 0: not asked */
    qn_stats ns_stats, ts_stats;
    u64 bytes, flops;            /* least that generating must read, and that the prompt must compute */
    const char *arithmetic;      /* which ceiling the prompt is held against: "f32", "bf16" or "int8"; NULL: none */
    double share;                /* of the ceiling: the least time they take / the time it took, at the median; 0: unknown */
    double switches_s;           /* involuntary context switches per second */
    double load;                 /* load average before the run; -1: unknown. Told, and no reason for anything */
    qn_others others;            /* while our samples were taken */
    bool slow_memory;            /* some sample was taken though memory gave less than was wanted */
    bool disturbed;
    qn_memory memory;
    char time[32];               /* when it began, ISO 8601, UTC */
    int n_rivals;
    qn_rival *rivals;
    double *rival_ts[QN_RIVALS_MOST], *rival_reads[QN_RIVALS_MOST]; /* [n] each; reads: as above */
    qn_stats rival_stats[QN_RIVALS_MOST], ratio[QN_RIVALS_MOST]; /* ratio: ours / theirs, sample by sample */
    double most[QN_RIVALS_MOST]; /* the ratio that the ceiling allowed, at the median; 0: unknown */
} qn_bench_result;

/* ---- bench_run.c */

/* Opens c->args[i]-like `name` with s->args; s is zeroed but for args, kv, ceilings and what is wanted of memory. */
bool qn_bench_open(const qn_cli *c, const char *name, qn_bench_setup *s, qn_err *e);
void qn_bench_close(qn_bench_setup *s, bool ok);
/* Fills r->ns and all that follows from it; r has test, setup, n, rivals and load set, the rest zeroed. */
bool qn_bench_measure(qn_bench_setup *s, qn_bench_result *r, qn_err *e);
void qn_bench_result_close(qn_bench_result *r);
/* "pp512", "tg128", "pp512+tg128", "pp512 @ d4096" */
const char *qn_bench_name(const qn_bench_test *t, char out[64]);
/* Sleeps; false: interrupted. */
bool qn_bench_rest(double seconds, qn_err *e);
/* What else the machine did while r was measured, as a sentence; NULL: nothing worth telling. */
const char *qn_bench_disturbance(const qn_bench_result *r, char out[160]);

/* ---- bench_others.c */

qn_core_use qn_core_use_now(void);
void qn_core_use_add(qn_others *o, const qn_core_use *from, const qn_core_use *to);
/* Of all cores' time: what other programs took, and what the host of a virtual machine did not give; 0: nothing, or unknown. */
double qn_others_share(const qn_others *o);
double qn_host_share(const qn_others *o);
bool qn_others_disturb(const qn_others *o);

/* ---- bench_against.c */

bool qn_rival_open(qn_rival *v, const char *text, qn_err *e);
void qn_rival_close(qn_rival *v);
/* One sample of a test, in tokens per second. */
bool qn_rival_sample(qn_rival *v, const qn_bench_setup *s, const qn_bench_test *t, double *ts, qn_err *e);

/* ---- bench_print.c */

enum { QN_BENCH_MD, QN_BENCH_CSV, QN_BENCH_JSON, QN_BENCH_JSONL, QN_BENCH_SQL, QN_BENCH_NONE };
#define QN_BENCH_FORMATS "md|csv|json|jsonl|sql"

typedef struct qn_bench_printer {
    int format, fd;              /* fd 1: stdout, 2: stderr */
    bool batch, isa, kv;         /* columns that only a table with different values needs */
    int rows;
} qn_bench_printer;

/* False without an error: stdout takes no more, which main reports. */
bool qn_bench_print(qn_bench_printer *p, const qn_bench_result *r, qn_err *e);
/* Ends the output, after a failure too. ceilings: [n], for the lines below a table. */
bool qn_bench_print_end(qn_bench_printer *p, const qn_ceilings *ceilings, int n, qn_err *e);

#endif
