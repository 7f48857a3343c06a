/* compare.h - two runs or more, held against the first: what each phase and each group of steps costs a token in
 * both, the difference with its 95 % interval, and what it comes to. Its one idea: runs of the same work are
 * compared pass by pass, so that what grows with the position cancels out; runs of other lengths by their medians.
 * Unlike runs are refused. */
#ifndef QN_COMPARE_H
#define QN_COMPARE_H

#include "base/buf.h"
#include "report/analysis.h"

typedef enum qn_verdict {
    VERDICT_unknown, VERDICT_same, VERDICT_faster, VERDICT_slower, VERDICT_gone, VERDICT_new, N_VERDICTS
} qn_verdict;
extern const char *const qn_verdict_names[N_VERDICTS];

typedef struct qn_delta {
    const char *name;           /* a phase, a test, a group of steps */
    qn_phase phase;
    bool in_a, in_b;
    bool gates;                 /* may be a regression: phases that make tokens, and tests */
    bool has_interval, paired;
    u64 n;                      /* samples (pairs, or the fewer of the two) */
    double a_ns, b_ns;          /* a token; of what happens once, the whole of it */
    double diff_ns, lo_ns, hi_ns; /* b - a, and its 95 % interval */
    double change;              /* diff / a; 0 when a is 0 */
    double cost_ns;             /* diff over all tokens of run a */
    qn_verdict verdict;
    bool regressed;             /* gates, beyond the threshold and beyond noise */
} qn_delta;

typedef struct qn_versus {
    const qn_run *b;
    QN_RUN_LIST(qn_delta) phases;       /* phases, the first token, tests */
    QN_RUN_LIST(qn_delta) steps;        /* the largest cost first */
    QN_RUN_LIST(const char *) notes;    /* what differs between the two and was allowed */
    bool regressed;
} qn_versus;

typedef struct qn_compare_options {
    qn_by by;
    double threshold;           /* 0.05: a regression is 5 % or more */
    bool force;                 /* compare unlike runs too */
} qn_compare_options;

typedef struct qn_compare {
    qn_arena arena;
    const qn_run *a;
    qn_by by;
    double threshold;
    QN_RUN_LIST(qn_versus) others;
    bool regressed;
} qn_compare;

/* c: zeroed. runs[0] is the base; at least two, all of them must outlive c. Unlike runs fail with QN_EUSAGE and
 * what differs. Close also after a failure. */
bool qn_compare_open(qn_compare *c, const qn_run *const *runs, size_t n, const qn_compare_options *o, qn_err *e);
void qn_compare_close(qn_compare *c);

/* compare_like.c: may b be held against a? False: out says what differs. Differences that are the point of a
 * comparison (kernels, precision, program) become notes, one per line, in `notes` instead. */
bool qn_run_is_like(const qn_run *a, const qn_run *b, char out[160], qn_buf *notes);

/* compare_print.c */
typedef enum qn_compare_format { COMPARE_text, COMPARE_markdown, COMPARE_json, COMPARE_html } qn_compare_format;
bool qn_compare_write(const qn_compare *c, qn_compare_format format, int top, int width, bool color, qn_buf *out, qn_err *e);
/* A short name for a run among others: its file and its type. */
const char *qn_run_title(const qn_run *r, char out[80]);

#endif
