/* probe.h - inside of `quern probe`: where shapes come from, and how contests are printed. */
#ifndef QN_CLI_PROBE_H
#define QN_CLI_PROBE_H

#include "cli/command.h"
#include "probe/contest.h"
#include "probe/ceilings.h"

typedef struct qn_spec {
    qn_shape shape;
    double engine_ns;       /* from a trace; else 0 */
    bool deepest;           /* attention: no context of the model is longer */
} qn_spec;

typedef struct qn_specs {
    qn_spec *at;
    int n, cap;
    u64 model_bytes;        /* of the model's weights; 0: they are of no model */
} qn_specs;

/* probe_specs.c: each adds shapes that are not there yet. */
bool qn_specs_add_text(qn_specs *s, const char *text, qn_err *e);
bool qn_specs_add_built_in(qn_specs *s, qn_err *e);
bool qn_specs_add_model(const qn_cli *c, qn_specs *s, const char *name, const qn_engine_args *args, qn_err *e);
bool qn_specs_add_trace(qn_specs *s, const char *path, qn_err *e);
/* Puts the parts of fused ops before them; by_plans: only of those that plans may leave apart. */
bool qn_specs_add_parts(qn_specs *s, bool by_plans, qn_err *e);
/* Leaves only those of an op and type; -1: any. */
void qn_specs_filter(qn_specs *s, int op, int type);
void qn_specs_close(qn_specs *s);

/* probe_device.c: contests on a GPU */
typedef struct qn_probe_device {
    const char *device;
    const qn_list *specs;
    int type, format;       /* type -1: any */
    u64 seed;
    double seconds;         /* for each shape */
    bool all_failures;
} qn_probe_device;
int qn_probe_on_device(qn_cli *c, const qn_probe_device *a);

/* probe_print.c */
enum { PROBE_text, PROBE_seed, PROBE_json, PROBE_csv, PROBE_html };
#define QN_PROBE_FORMATS "text|seed|json|csv|html"

typedef struct qn_probe_page {
    const qn_cli *c;
    int format;
    const qn_ceilings *ceilings;    /* NULL: not known */
    bool all_failures;
    int n_specs, n_variants, threads;
    const qn_rivals *rivals;
} qn_probe_page;

void qn_probe_print_head(qn_buf *b, const qn_probe_page *p);
void qn_probe_print(qn_buf *b, const qn_probe_page *p, const qn_contest *c, int number);
/* What took no part and why, over all contests; the whole page where the format is one. */
void qn_probe_print_tail(qn_buf *b, const qn_probe_page *p, const qn_contest *all, int n);
/* Who won and by how much, in words. */
void qn_probe_verdict(qn_buf *b, const qn_contest *c);
/* The least time that the machine's ceilings allow, ns; 0: they are not known. */
double qn_probe_ceiling(const qn_probe_page *p, const qn_contest *c);

/* probe_html.c */
void qn_probe_html(qn_buf *out, const qn_probe_page *p, const qn_contest *all, int n);

#endif
