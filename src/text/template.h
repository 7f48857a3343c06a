/* template.h - chat templates: a Jinja interpreter that knows where each byte of its output came from.
 *
 * A template is parsed once and rendered many times; it is immutable, so any thread may render it. Behaves as jinja2's
 * ImmutableSandboxedEnvironment with trim_blocks, lstrip_blocks and loop controls, as chat templates expect. There is no
 * way out of it: no attribute with a name like __this__, no file, no process, no environment, no mutation.
 * Limits: see QN_TEMPLATE_*; whatever passes one stops with an error that names the template, line and column. */
#ifndef QN_TEMPLATE_H
#define QN_TEMPLATE_H

#include "base/buf.h"

#define QN_TEMPLATE_SOURCE (1u << 20)  /* bytes of a template */
#define QN_TEMPLATE_OUTPUT (4u << 20)  /* bytes of a rendering, and of any string made on the way */
#define QN_TEMPLATE_MEMORY (64u << 20) /* bytes of all values of a rendering */
#define QN_TEMPLATE_STEPS 1000000u     /* a step: one node evaluated, one item made, or 256 bytes of text handled */
#define QN_TEMPLATE_CALLS 64           /* macros within macros; values within values */
#define QN_TEMPLATE_RANGE 100000       /* items of a range, as in jinja2's sandbox */

typedef struct qn_template qn_template;

/* A variable of the template, as JSON text. Bytes that come out of a marked one are marked in the output, but for a message's
 * role where it is one of the usual words: templates make control tokens of it. */
typedef struct qn_template_var { const char *name; const char *json; size_t n; bool marked; } qn_template_var;

/* name: begins each message, e.g. "chat template". The source is copied. */
qn_template *qn_template_open(const char *src, size_t n, const char *name, qn_err *e);
void qn_template_close(qn_template *t);

/* Appends the text to out, and to marks (may be NULL) a 1 for each byte that came out of a marked variable, else 0. A marked
 * byte never loses its mark, whatever the template does to the string that holds it. now: seconds since the epoch for
 * strftime_now, 0 for the clock. On failure out and marks hold what they held before. */
bool qn_template_render(const qn_template *t, const qn_template_var *vars, size_t n_vars, i64 now, qn_buf *out,
                        qn_buf *marks, qn_err *e);

#endif
