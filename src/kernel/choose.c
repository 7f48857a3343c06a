/* choose.c - which kernel a step gets, and why. One rule: the highest ISA level that is allowed and has a kernel for the op
 * and the operand's type; among equals the one listed last in kernels.def. Says what it passed over. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "kernel/plan.h"

static bool fits(const qn_kernel *k, qn_op op, int type) { return k->op == op && (k->type == type || k->type == (int)DT_any); }
static const char *misses(const qn_kernel *k, const qn_args *a) { return k->needs ? k->needs(a) : NULL; }

static const char *explain(const qn_kernel *k, qn_isa most, qn_arena *a, qn_err *e)
{
    char text[96];
    if (k->isa == most) snprintf(text, sizeof text, "highest level allowed (%s)", qn_isa_name(most));
    else if (k->isa == ISA_ref) snprintf(text, sizeof text, "only the reference has this operand type");
    else snprintf(text, sizeof text, "no kernel above %s up to %s", qn_isa_name(k->isa), qn_isa_name(most));
    return qn_arena_strndup(a, text, strlen(text), e);
}

bool qn_choose(qn_op op, const qn_args *args, qn_isa most, int bucket, qn_arena *a, qn_choice *out, qn_err *e)
{
    (void)bucket; /* every kernel there is takes any number of rows */
    const int type = qn_args_type(op, args);
    const qn_kernel *best = NULL;
    for (int i = 0; i < qn_n_kernels; i++) {
        const qn_kernel *k = &qn_kernels[i];
        if (fits(k, op, type) && k->isa <= most && !misses(k, args) && (!best || k->isa >= best->isa)) best = k;
    }
    assert(best); /* every op has its reference */
    qn_buf rejected = { 0 };
    for (int i = 0; i < qn_n_kernels; i++) {
        const qn_kernel *k = &qn_kernels[i];
        if (!fits(k, op, type) || k == best) continue;
        const char *missed = misses(k, args);
        qn_buf_printf(&rejected, "%s%s: %s", rejected.n ? "; " : "", k->name,
                      missed ? missed : k->isa > most ? "above the allowed level" : "lower level");
    }
    out->kernel = best;
    out->reason = explain(best, most, a, e);
    out->rejected = qn_arena_strndup(a, rejected.p ? rejected.p : "", rejected.n, e);
    const bool whole = !rejected.failed;
    qn_buf_close(&rejected);
    if (!whole) return qn_fail(e, QN_ENOMEM, "out of memory while choosing kernels");
    return out->reason && out->rejected;
}
