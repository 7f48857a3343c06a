/* fuse.c - which neighbours become one step: add, rmsnorm -> addnorm. A table of rules; each fused op has a reference of its own
 * and the bits of its parts, so a fused plan makes the same tokens. The probe holds each against the sum of its parts, and where
 * apart is faster the tuning says so: then the parts stay, and their first says why. Knows no device: plans of GPUs come by
 * another way and do their own. */
#include "model/fuse.h"

#include <stdio.h>
#include <string.h>

#include "kernel/tuned.h"

/* How many steps from the i-th on become *to; 0: the rule does not fit. */
typedef int (*matcher)(const qn_plan *p, int i, qn_args *to);

static int match_addnorm(const qn_plan *p, int i, qn_args *to)
{
    const qn_step *s = &p->steps[i];
    if (i + 1 >= p->n || s->op != OP_add || s[1].op != OP_rmsnorm || s->logits != s[1].logits) return 0;
    const qn_add_args *a = &s->args.add;
    const qn_rmsnorm *m = &s[1].args.rmsnorm;
    if (m->x != a->x || m->d != a->d || m->y == a->x) return 0;
    to->addnorm = (qn_addnorm){ .d = a->d, .y = m->y, .x = a->x, .add = a->y, .w = m->w, .eps = m->eps };
    return 2;
}

static const struct { qn_op to; matcher match; } rules[] = { { OP_addnorm, match_addnorm } };

/* A kernel that was asked for by name for one of the parts is used, and not lost in the whole. */
static bool asked_for(const qn_plan *p, int i, int n)
{
    for (int k = 0; k < n; k++)
        if (qn_tuned_asked(p->tuned, p->steps[i + k].op)) return true;
    return false;
}

/* A part that stays one says why. */
static bool say_apart(qn_plan *p, qn_step *s, qn_op fused, const qn_tuned_row *by, qn_err *e)
{
    char text[320];
    for (int b = 0; b < N_BUCKETS; b++) {
        const char *why = s->choice[b].reason;
        if (!by->date) snprintf(text, sizeof text, "%.160s; apart from the next, asked for by --kernel", why);
        else
            snprintf(text, sizeof text, "%.160s; %s: apart from the next, %.2fx %s (+- %.0f %%), %s", why,
                     by->cpu ? "table" : "tuned", by->gain, qn_ops[fused].name, 100 * by->error, by->date);
        s->choice[b].reason = qn_arena_strndup(&p->arena, text, strlen(text), e);
        if (!s->choice[b].reason) return false;
    }
    return true;
}

/* Step i, and those that become one with it, to the end of `to`. How many; 0: there was no memory. */
static int move(const qn_plan *p, int i, qn_plan *to, qn_err *e)
{
    const qn_step *s = &p->steps[i];
    const qn_tuned_row *apart = NULL;
    qn_args args;
    qn_op fused = s->op;
    int n = 0;
    for (size_t r = 0; r < QN_COUNT(rules) && n == 0; r++) {
        n = qn_kernel_exists(rules[r].to, DT_f32, p->isa) ? rules[r].match(p, i, &args) : 0;
        fused = rules[r].to;
    }
    if (n && p->tuned && (apart = qn_tuned_apart(p->tuned, fused, &args)) == NULL && asked_for(p, i, n)) n = 0;
    const bool fuses = n && !apart;
    const qn_step *named = fuses ? s + n - 1 : s; /* a fused step has the name of its last part */
    qn_step *made = qn_plan_add(to, fuses ? fused : s->op, named->layer, named->role, fuses ? &args : &s->args, e);
    if (!made) return 0;
    made->logits = s->logits;
    if (apart && !say_apart(to, made, fused, apart, e)) return 0;
    return fuses ? n : 1;
}

bool qn_fuse_run(qn_plan *p, qn_err *e)
{
    qn_plan to = { .isa = p->isa, .tuned = p->tuned };
    for (int i = 0, n; i < p->n; i += n) {
        n = move(p, i, &to, e);
        if (n) continue;
        qn_plan_close(&to);
        return false;
    }
    qn_plan_close(p);
    *p = to;
    return true;
}
