/* analysis.h - what a run's figures mean: phases, rows of steps, growth, disturbances, choices, advice. Its one idea:
 * every figure is computed once, here, from a qn_run; sections, renderers and the page only show it. Nothing is NaN
 * or infinite: what is not known is 0, and a flag beside it says so. Times are ns, rates are per second, shares are
 * 0..1. */
#ifndef QN_ANALYSIS_H
#define QN_ANALYSIS_H

#include "base/stats.h"
#include "report/run.h"

typedef enum qn_by { BY_kernel, BY_op, BY_role, BY_layer, BY_phase, N_BY } qn_by;
extern const char *const qn_by_names[N_BY];

/* What limits a step at best: memory, or the arithmetic that its type uses. */
typedef enum qn_bound { BOUND_none, BOUND_memory, BOUND_f32, BOUND_bf16, BOUND_int8, N_BOUNDS } qn_bound;
extern const char *const qn_bound_names[N_BOUNDS]; /* "", "memory", "f32", "bf16", "int8" */

typedef struct qn_ceilings_of { double read_gbs, f32, bf16, int8; } qn_ceilings_of; /* GB/s, GFLOP/s, GOP/s; 0: not known */

/* All launches of one group in one phase. */
typedef struct qn_row {
    const char *name;           /* of the group: a kernel, an op, a role, "layer 3", a phase */
    const char *kernel, *op, *role, *type; /* what all its launches share; "" where they differ */
    int layer;                  /* -1 where they differ */
    qn_phase phase;
    u64 expected, n;            /* launches asked for (0: not known), captured */
    u64 total_ns, min_ns, max_ns, wait_ns;
    bool has_spread;            /* the log has samples; without them min, p50, p95, p99 are 0 */
    double avg_ns, p50_ns, p95_ns, p99_ns;
    double share, cumulative;   /* of the phase's time, in the order of the rows */
    double bytes, flops, gbs, gflops;
    qn_bound bound;
    double ideal_ns;            /* the total at the ceiling; 0: not known */
    double of_ceiling;          /* ideal / total; above 1 the data came from a cache */
    qn_fit fit;                 /* of all its launches: position, ns */
} qn_row;

typedef struct qn_phase_sum {
    u64 ns;                     /* exclusive */
    double share;               /* of the wall time */
    u64 tokens, passes;
    double tok_s;
    bool has_spread;            /* ms a token of its passes */
    qn_stats token_ns;
    u64 steps_ns, between_ns;   /* of ns: in steps, and in passes but in no step */
    u64 expected, captured;     /* launches */
    double bytes, flops, ideal_ns;
    u64 wait_ns;
} qn_phase_sum;

/* Time a token against position, per kernel of the decode phase; the whole token too (kernel ""). */
typedef enum qn_growth_kind { GROWTH_unknown, GROWTH_flat, GROWTH_grows, GROWTH_shrinks } qn_growth_kind;
typedef struct qn_growth {
    const char *name;           /* kernel, or the op where the log has no kernels; "all steps" for the whole */
    qn_growth_kind kind;
    u64 n;                      /* samples */
    double x_lo, x_hi;          /* positions */
    double at_zero_ns, slope_ns, error_ns; /* ns a token: at position 0, per position, standard error of the slope */
    double r2;
    double first_ns, last_ns;   /* on the line, at x_lo and x_hi */
    char verdict[96];           /* "grows 0.44 ms per position", "flat" */
} qn_growth;

typedef struct qn_disturbed {
    u32 pass;                   /* index in run->passes */
    u32 ordinal;                /* among the decode passes, from 1 */
    u64 ns;
    double expected_ns, extra_ns; /* of its steps where those are the steadier measure, else of the pass */
} qn_disturbed;

typedef struct qn_choice_group {
    const char *op, *kernel, *reason, *rejected;
    char rows[48];              /* "1", "2-8, 9+"; "all" for all three */
    const char *role, *first_rows; /* of the first step */
    u32 steps;
} qn_choice_group;

/* A decode step put together from averages, for logs that have only totals per kernel (MLC's tables). */
typedef struct qn_implied {
    bool known;
    u64 prefills, steps, layers;
    u64 expected, captured;     /* launches in the log */
    double step_ns, tok_s, layer_ns, head_ns;
    double matmul_share, head_share, attention_share;
    double weight_bytes;        /* read a token; 0: not known */
    double bandwidth_gbs;       /* given or measured; 0: not known */
    double roof_ns, roof_tok_s, of_roof;
    double prefill_ns;          /* one prefill call, average */
} qn_implied;

typedef struct qn_remark { char text[200]; } qn_remark;
typedef struct qn_advice { double cost_ns; char what[240]; char try_this[240]; } qn_advice;

typedef struct qn_analysis_options {
    qn_by by;
    double bandwidth_gbs;       /* for logs without ceilings; 0: none */
    double params;              /* weights of the model, for logs that do not say; 0: unknown */
} qn_analysis_options;

typedef struct qn_analysis {
    const qn_run *run;
    qn_by by;
    qn_arena arena;             /* names made here */
    qn_ceilings_of ceilings;
    u64 wall_ns;                /* the phases add up to it */
    qn_phase_sum phases[N_PHASES];
    QN_RUN_LIST(qn_row) rows;   /* by phase, then by total, largest first */
    int decode_seqs;            /* sequences in most decode passes: growth and disturbances are about those */
    u64 first_ns;               /* time to the first token (median over requests); 0: not known */
    bool has_gaps;
    qn_stats gaps;              /* ns between tokens as handed out, first ones left out */
    QN_RUN_LIST(qn_growth) growth;      /* the whole first, then by slope, largest first */
    QN_RUN_LIST(qn_disturbed) disturbed;
    double disturbed_ns;        /* what they cost in all */
    QN_RUN_LIST(qn_choice_group) choices;
    qn_implied implied;
    QN_RUN_LIST(qn_remark) remarks;     /* what a reader of the figures must know: sentences */
    QN_RUN_LIST(qn_advice) advice;      /* what costs most first */
} qn_analysis;

/* a: zeroed. The run must outlive it. Close also after a failure. */
bool qn_analysis_open(qn_analysis *a, const qn_run *r, const qn_analysis_options *o, qn_err *e);
void qn_analysis_close(qn_analysis *a);

/* Rows of one phase, in order: *n of them. */
const qn_row *qn_analysis_rows(const qn_analysis *a, qn_phase phase, size_t *n);
/* "blk.3.ffn_down" without its layer: "ffn_down". Points into role. */
const char *qn_role_part(const char *role);
bool qn_op_is_matmul(const char *op);

/* Least squares over a fit's sums: false when there are too few positions. */
typedef struct qn_trend { double a, b, b_error, r2, x_lo, x_hi; } qn_trend;
bool qn_fit_line(const qn_fit *f, qn_trend *out);
void qn_fit_merge(qn_fit *into, const qn_fit *from);

#endif
