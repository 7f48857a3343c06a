/* plan_names.h - what a step of a trace is: the plan and the choices name it once, its launches have only the number. And a trace
 * of ours from its first event to its last, for those who tell it again in other words. */
#ifndef QN_PLAN_NAMES_H
#define QN_PLAN_NAMES_H

#include "report/run.h"
#include "trace/event.h"

#define QN_STEPS_MOST   65536 /* steps of a plan: 1024 layers of 20 and then some */
#define QN_CHOICES_MOST 4     /* ranges of rows that one step has kernels for */

typedef struct qn_plan_choice { i64 lo, hi; const char *kernel, *reason; } qn_plan_choice;
typedef struct qn_plan_step {
    const char *op, *role, *type;
    int layer;
    bool logits;            /* runs over rows that ask for logits alone */
    int n_choices;
    qn_plan_choice choice[QN_CHOICES_MOST];
} qn_plan_step;

typedef struct qn_plan_names { QN_RUN_LIST(qn_plan_step) steps; qn_arena arena; } qn_plan_names; /* zeroed = empty */

/* Takes plan and choice events; others are passed over, and so is what makes no sense: a step that no plan has, a range of rows
 * that cannot be, one range too many. */
bool qn_plan_names_add(qn_plan_names *n, const qn_event *ev, qn_err *e);
/* Never NULL: an unknown number has empty names and layer -1. */
const qn_plan_step *qn_plan_names_get(const qn_plan_names *n, i64 step);
/* Index of the choice for that many rows; -1: none. */
int qn_plan_choice_for(const qn_plan_step *s, i64 rows);
const char *qn_plan_kernel(const qn_plan_step *s, i64 rows); /* "": not known */
void qn_plan_names_close(qn_plan_names *n);

/* Every event of the trace at path, in order; the plan is known as far as it was told by then. */
typedef bool (*qn_trace_event_fn)(void *user, const qn_plan_names *names, const qn_event *ev, qn_err *e);
bool qn_trace_each(const char *path, qn_trace_event_fn fn, void *user, qn_err *e);

#endif
