/* contest.c - who takes part, who is right, who won. */
#include "probe/contest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "kernel/plan.h"
#include "probe/compare.h"
#include "probe/parts.h"

#define REF_FLOPS 1e8   /* a reference does some 1e8 a second: no winner, and a minute of waiting */
#define CHECK_DEPTH 700 /* as deep as the cases of a check go: cases.c */
#define CHECK_BYTES 4e6 /* of operands; many rows say no more than some */
#define CHECK_FLOPS 4e7 /* double precision does some 3e8 a second, and a check runs a kernel seven times */

/* ---- who */

static bool streams(qn_op op)
{
    return op == OP_linear || op == OP_qlinear || op == OP_blinear || op == OP_plinear || op == OP_attend || op == OP_embed;
}

static const char *misses(const qn_kernel *k, const qn_shape *s, const qn_contest_opts *o)
{
    const int type = qn_args_type(s->op, &s->args);
    if (k->type != (int)DT_any && k->type != type) return "another type";
    if (!qn_cpu_runs(k->isa)) return "this machine lacks the instructions";
    if (o->isa && (int)k->isa != o->isa && k->isa != ISA_ref) return "not the level asked for";
    if (k->isa == ISA_ref && (double)qn_ops[s->op].cost(&s->args, s->depth).flops > REF_FLOPS) return "too slow for this size";
    return k->needs ? k->needs(&s->args) : NULL;
}

/* As choose.c does without a tuning file. */
static int default_of(const qn_contest *c, int threads)
{
    int best = -1;
    for (int i = 0; i < c->n; i++) {
        const qn_kernel *k = c->at[i].kernel;
        if (k && !c->at[i].lanes && !c->at[i].misses && (best < 0 || k->isa >= c->at[best].kernel->isa)) best = i;
    }
    if (best < 0 || threads <= 1 || c->shape.args.n > qn_rows_alone(c->shape.op, &c->shape.args)) return best;
    const qn_contender *alone = qn_contest_find(c, c->at[best].kernel, 1);
    return alone ? (int)(alone - c->at) : best;
}

/* Kernels of the level that a plan would take, once more on one thread: what waking the others costs is a part of the choice. Of
 * all levels where there is little work. */
#define LITTLE 4e6 /* bytes */

static void add_alone(qn_contest *c)
{
    const int n = c->n, chosen = default_of(c, 1);
    for (int i = 0; chosen >= 0 && i < n; i++) {
        const qn_contender *k = &c->at[i];
        const bool little = (double)c->cost.bytes < LITTLE && k->kernel && k->kernel->isa > ISA_ref;
        if (!k->kernel || k->misses || (k->kernel->isa != c->at[chosen].kernel->isa && !little)) continue;
        qn_contender *one = &c->at[c->n++];
        *one = (qn_contender){ .kernel = k->kernel, .lanes = 1 };
        snprintf(one->label, sizeof one->label, "%.76s@1", k->kernel->name);
        one->name = one->label;
    }
}

const qn_contender *qn_contest_find(const qn_contest *c, const qn_kernel *k, int lanes)
{
    for (int i = 0; i < c->n; i++)
        if (c->at[i].kernel == k && c->at[i].lanes == lanes) return &c->at[i];
    return NULL;
}

bool qn_contest_open(qn_contest *c, const qn_shape *shape, const qn_rivals *rivals, const qn_contest_opts *o, qn_err *e)
{
    int n = QN_RIVALS;
    *c = (qn_contest){ .shape = *shape, .by_cold = streams(shape->op) && !o->resident, .best = -1, .next = -1, .chosen = -1 };
    qn_shape_print(shape, true, c->text);
    if (!qn_case_fits(shape)) return qn_fail(e, QN_EUSAGE, "%s: " QN_CASE_MISFIT, c->text);
    c->cost = qn_ops[shape->op].cost(&shape->args, shape->depth);
    for (int i = 0; i < qn_n_kernels; i++) n += 2 * (qn_kernels[i].op == shape->op);
    c->at = qn_new_array((size_t)n, sizeof *c->at, e);
    if (!c->at) return false;
    for (int i = 0; i < qn_n_kernels; i++) {
        const qn_kernel *k = &qn_kernels[i];
        if (k->op != shape->op) continue;
        c->at[c->n++] = (qn_contender){ .name = k->name, .kernel = k, .misses = misses(k, shape, o) };
    }
    if (o->threads > 1) add_alone(c);
    for (int i = 0; rivals && i < rivals->n; i++) {
        const qn_rival *r = &rivals->at[i];
        c->at[c->n++] = (qn_contender){ .name = r->name, .rival = r, .misses = r->needs(r, shape->op, &shape->args) };
    }
    c->chosen = default_of(c, o->threads);
    return true;
}

void qn_contest_close(qn_contest *c)
{
    qn_free(c->at);
    *c = (qn_contest){ 0 };
}

/* ---- right */

qn_shape qn_shape_cut(const qn_shape *s)
{
    qn_shape cut = *s;
    const qn_cost cost = qn_ops[s->op].cost(&s->args, CHECK_DEPTH);
    if ((double)cost.flops <= CHECK_FLOPS && (double)cost.bytes <= CHECK_BYTES) return cut;
    cut.args.n = qn_mini(cut.args.n, 13); /* a full tile of 12 and one more */
    const qn_cost left = qn_ops[s->op].cost(&cut.args, CHECK_DEPTH);
    const double share = fmin(1, fmin(CHECK_FLOPS / (double)left.flops, CHECK_BYTES / (double)left.bytes));
    if (s->op == OP_linear) cut.args.linear.rows = qn_maxi(33, (int)(share * s->args.linear.rows));
    if (s->op == OP_qlinear) cut.args.qlinear.rows = qn_maxi(33, (int)(share * s->args.qlinear.rows));
    if (s->op == OP_blinear) cut.args.blinear.rows = qn_maxi(33, (int)(share * s->args.blinear.rows));
    if (s->op == OP_plinear) cut.args.plinear.rows = qn_maxi(33, (int)(share * s->args.plinear.rows));
    if (s->op == OP_matmul) cut.args.matmul.cols = qn_maxi(33, (int)(share * s->args.matmul.cols));
    return cut;
}

static void take(qn_contender *k, bool right, const qn_errors *off, const char *why)
{
    k->checked = true;
    k->right = right;
    k->off = *off;
    snprintf(k->why, sizeof k->why, "%s", why);
}

/* A shape as it is checked. */
typedef struct trial { qn_shape cut; u64 seed; qn_references known; } trial;

static bool check_kernel(const trial *t, qn_contender *k, const qn_contest_opts *o, qn_err *e)
{
    const qn_shape cut = t->cut;
    const qn_args sizes[] = { cut.args, { 0 } };
    const qn_probe_opts opts = { .op = -1, .type = qn_args_type(cut.op, &cut.args), .seed = t->seed,
                                 .timeout_s = o->timeout_s, .sizes = sizes, .known = &t->known };
    qn_probe_result r;
    if (!qn_probe_kernel(k->kernel, &opts, &r, e)) return false;
    take(k, r.passed, &r.off, r.why);
    return true;
}

/* A library's threads do not outlive a fork: it is checked here, in this process. Its bytes are not ours (no scales), so the one
 * that multiplies bytes cannot be compared. */
static bool check_rival(const trial *t, qn_contender *k, qn_err *e)
{
    const qn_shape cut = t->cut;
    qn_case data;
    qn_probe_result r = { .passed = true };
    k->checked = k->right = true;
    if (cut.op == OP_qlinear || cut.op == OP_blinear) return true;
    const int type = qn_args_type(cut.op, &cut.args);
    if (!qn_case_open(&data, cut.op, &cut.args, type, MOOD_plain, t->seed, e)) return false;
    qn_case_reset(&data);
    void *job = k->rival->prepare(k->rival, cut.op, &data.args, e);
    if (job) {
        k->rival->run(job);
        k->rival->close(job);
        r.passed = qn_compare_outputs(&data, &t->known, &r, e);
        take(k, r.passed, &r.off, r.why);
    } else if (e->code == QN_EUNSUPPORTED) {
        k->misses = "refused by the library";
        k->checked = k->right = false;
        *e = (qn_err){ 0 };
    }
    qn_case_close(&data);
    return e->code == QN_OK;
}

static bool check_all(qn_contest *c, const qn_contest_opts *o, qn_err *e)
{
    trial t = { .cut = qn_shape_cut(&c->shape), .seed = o->seed ? o->seed : 1 };
    bool ok = qn_references_make(&t.known, &t.cut, t.seed, o->memo, e);
    for (int i = 0; ok && i < c->n; i++) {
        qn_contender *k = &c->at[i];
        if (k->misses || k->cached) continue;
        if (o->progress && !o->progress(o->user, k->name, QN_CHECK_PART * i / c->n)) ok = qn_fail(e, QN_ECANCELLED, "stopped");
        const qn_contender *checked = k->lanes ? qn_contest_find(c, k->kernel, 0) : NULL; /* lanes make no difference */
        if (checked && checked->checked) take(k, checked->right, &checked->off, checked->why);
        else ok = ok && (k->kernel ? check_kernel(&t, k, o, e) : check_rival(&t, k, e));
    }
    qn_references_close(&t.known);
    return ok;
}

bool qn_contest_run(qn_contest *c, qn_pool *pool, const qn_contest_opts *o, qn_err *e)
{
    bool known = true;
    for (int i = 0; i < c->n; i++) known = known && (c->at[i].misses || c->at[i].cached);
    if (!known && !check_all(c, o, e)) return false;
    if (!qn_contest_time(c, pool, o, e)) return false;
    qn_contest_rank(c);
    return true;
}

/* ---- fast */

double qn_contender_ns(const qn_contest *c, const qn_contender *k)
{
    const qn_stats *s = c->by_cold ? &k->cold : &k->warm;
    return s->n ? s->p50 : 0;
}

/* The best time of a shape, in the kind of time that another contest ranks by; 0: not known. */
static double best_ns(const qn_contest *all, int n, const qn_shape *s, bool by_cold)
{
    for (int i = 0; i < n; i++) {
        if (all[i].best < 0 || memcmp(&all[i].shape, s, sizeof *s)) continue;
        const qn_contender *k = &all[i].at[all[i].best];
        return by_cold ? k->cold.p50 : k->warm.p50;
    }
    return 0;
}

void qn_contest_add_up(qn_contest *c, const qn_contest *others, int n)
{
    qn_shape parts[QN_PARTS];
    const int count = qn_shape_parts(&c->shape, parts);
    c->parts_ns = 0;
    for (int i = 0; i < count; i++) {
        const double ns = best_ns(others, n, &parts[i], c->by_cold);
        if (ns <= 0) {
            c->parts_ns = 0;
            return;
        }
        c->parts_ns += ns;
    }
}

static bool better(const qn_contest *c, int i, int j)
{
    if (j < 0) return true;
    return qn_contender_ns(c, &c->at[i]) < qn_contender_ns(c, &c->at[j]);
}

void qn_contest_rank(qn_contest *c)
{
    c->best = c->next = -1;
    for (int i = 0; i < c->n; i++) {
        const qn_contender *k = &c->at[i];
        if (k->misses || !k->right || qn_contender_ns(c, k) <= 0) continue;
        if (better(c, i, c->best)) {
            c->next = c->best;
            c->best = i;
        } else if (better(c, i, c->next)) {
            c->next = i;
        }
    }
    c->noise = false;
    if (c->best < 0 || c->next < 0) return;
    const qn_stats *b = c->by_cold ? &c->at[c->best].cold : &c->at[c->best].warm;
    const qn_stats *n = c->by_cold ? &c->at[c->next].cold : &c->at[c->next].warm;
    c->noise = b->hi >= n->lo;
}
