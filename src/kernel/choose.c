/* choose.c - which kernel a step gets, and why. What the user asked for, then what the probe measured, then one rule: the
 * highest ISA level that is allowed and has a kernel for the op and the operand's type; among equals the one listed last in
 * kernels.def. Says what it passed over. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "kernel/plan.h"
#include "kernel/tuned.h"

static bool fits(const qn_kernel *k, qn_op op, int type) { return k->op == op && (k->type == type || k->type == (int)DT_any); }
static const char *misses(const qn_kernel *k, const qn_args *a) { return k->needs ? k->needs(a) : NULL; }

static const char *explain(const qn_kernel *k, const qn_tuned_row *tuned, qn_isa most, qn_arena *a, qn_err *e)
{
    char text[288], parts[40] = "";
    if (tuned && tuned->over_parts > 0) snprintf(parts, sizeof parts, ", %.2fx its parts", tuned->over_parts);
    if (tuned && !tuned->date) snprintf(text, sizeof text, "asked for by --kernel");
    else if (tuned && !tuned->cpu && tuned->gain <= 1)
        snprintf(text, sizeof text, "tuned: %s, nothing is faster than the default%s, %s", k->name, parts, tuned->date);
    else if (tuned)
        snprintf(text, sizeof text, "%s: %s%s, %.2fx the default%s%.60s (+- %.0f %%)%s, %s", tuned->cpu ? "table" : "tuned",
                 k->name,
                 tuned->lanes == 1 ? " on one thread" : tuned->lanes > 1 ? " on all threads" : "", tuned->gain,
                 tuned->cpu ? " on " : "", tuned->cpu ? tuned->cpu : "", 100 * tuned->error, parts, tuned->date);
    else if (k->isa == most) snprintf(text, sizeof text, "highest level allowed (%s)", qn_isa_name(most));
    else if (k->isa == ISA_ref) snprintf(text, sizeof text, "only the reference has this operand type");
    else snprintf(text, sizeof text, "no kernel above %s up to %s", qn_isa_name(k->isa), qn_isa_name(most));
    return qn_arena_strndup(a, text, strlen(text), e);
}

static const qn_kernel *pick(qn_op op, const qn_args *args, qn_isa most, int bucket, const qn_tuned *tuned,
                             const qn_tuned_row **by)
{
    const int type = qn_args_type(op, args);
    const qn_tuned_row *row = tuned ? qn_tuned_find(tuned, op, args, bucket) : NULL;
    if (row && !qn_isa_within(row->kernel->isa, most)) row = NULL;
    *by = row;
    const qn_kernel *best = row ? row->kernel : NULL;
    for (int i = 0; !row && i < qn_n_kernels; i++) {
        const qn_kernel *k = &qn_kernels[i];
        if (fits(k, op, type) && qn_isa_within(k->isa, most) && !misses(k, args) && (!best || k->isa >= best->isa)) best = k;
    }
    assert(best); /* every op has its reference */
    return best;
}

static const char *why_not(const qn_kernel *k, qn_isa most, bool tuned)
{
    if (k->isa > most) return "above the allowed level";
    if (!qn_isa_within(k->isa, most)) return "for processors without AVX-512";
    return tuned ? "not the winner" : "lower level";
}

const qn_kernel *qn_choose_kernel(qn_op op, const qn_args *args, qn_isa most, int bucket, const qn_tuned *tuned)
{
    const qn_tuned_row *row;
    return pick(op, args, most, bucket, tuned, &row);
}

bool qn_choose(qn_op op, const qn_args *args, qn_isa most, int bucket, const qn_tuned *tuned, qn_arena *a, qn_choice *out,
               qn_err *e)
{
    const int type = qn_args_type(op, args);
    const qn_tuned_row *row;
    const qn_kernel *best = pick(op, args, most, bucket, tuned, &row);
    qn_buf rejected = { 0 };
    for (int i = 0; i < qn_n_kernels; i++) {
        const qn_kernel *k = &qn_kernels[i];
        if (!fits(k, op, type) || k == best) continue;
        const char *missed = misses(k, args);
        qn_buf_printf(&rejected, "%s%s: %s", rejected.n ? "; " : "", k->name, missed ? missed : why_not(k, most, row != NULL));
    }
    out->kernel = best;
    out->lanes = row ? row->lanes : 0;
    out->reason = explain(best, row, most, a, e);
    out->rejected = qn_arena_strndup(a, rejected.p ? rejected.p : "", rejected.n, e);
    const bool whole = !rejected.failed;
    qn_buf_close(&rejected);
    if (!whole) return qn_fail(e, QN_ENOMEM, "out of memory while choosing kernels");
    return out->reason && out->rejected;
}
