/* tune.c - winners out of contests. Contests of one op and one size, for different numbers of rows, are judged together. */
#include "probe/tune.h"

#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "kernel/plan.h"
#include "probe/parts.h"

#define ROWS_OF_TRIAL 13 /* one tile of 12 and a rest, in one pass: what kernels of different buckets must agree on */

#define LEAST_GAIN 1.02
#define MOST_ERROR 0.10 /* wider than that and the machine was busy with something else: nothing is known */

/* What all threads must save where one would do: in a contest they meet at once, since they do nothing else; in a model one of
 * them is late now and then, and the others wait. */
#define MEETING_NS 1000

typedef struct group {
    char shape[QN_SHAPE_TEXT];
    const qn_contest *of[N_BUCKETS]; /* the deepest contest of each bucket; NULL: not measured */
    qn_op op;
} group;

/* ---- do two kernels give the same bits? */

static void keep(const qn_case *c, qn_buf *out)
{
    for (int i = 0; i < c->n_operands; i++)
        if (c->operand[i].use == USE_out || c->operand[i].use == USE_inout) qn_buf_put(out, c->operand[i].p, c->operand[i].bytes);
}

static bool same_bits(const qn_shape *shape, const qn_kernel *a, const qn_kernel *b, bool *same, qn_err *e)
{
    qn_shape cut = *shape;
    qn_case c;
    qn_buf first = { 0 }, second = { 0 };
    *same = a == b;
    if (a == b) return true;
    cut.args.n = ROWS_OF_TRIAL;
    cut = qn_shape_cut(&cut);
    if (!qn_case_open(&c, cut.op, &cut.args, qn_args_type(cut.op, &cut.args), MOOD_plain, 7, e)) return e->code == QN_OK;
    qn_case_reset(&c);
    a->fn(&c.args, lane_of(0, 1));
    keep(&c, &first);
    qn_case_reset(&c);
    b->fn(&c.args, lane_of(0, 1));
    keep(&c, &second);
    const bool whole = !first.failed && !second.failed;
    *same = whole && first.n == second.n && !memcmp(first.p, second.p, first.n);
    qn_buf_close(&first);
    qn_buf_close(&second);
    qn_case_close(&c);
    return whole || qn_fail(e, QN_ENOMEM, "no memory to compare kernels");
}

/* ---- judging a group */

static double ns_of(const qn_contest *c, const qn_contender *k)
{
    return k && k->kernel && !k->misses && k->right ? qn_contender_ns(c, k) : 0;
}

static const qn_contender *default_of(const qn_contest *c) { return c->chosen >= 0 ? &c->at[c->chosen] : NULL; }

/* Times as fast as the default, and the half-width of that. 0: one of the two was not timed. */
static double gain(const qn_contest *c, const qn_contender *a, double *error)
{
    const qn_contender *d = default_of(c);
    if (ns_of(c, a) <= 0 || ns_of(c, d) <= 0) return 0;
    const qn_stats *s = c->by_cold ? &a->cold : &a->warm, *t = c->by_cold ? &d->cold : &d->warm;
    *error = a == d ? 0 : 0.5 * ((s->hi - s->lo) / s->p50 + (t->hi - t->lo) / t->p50);
    return t->p50 / s->p50;
}

/* The fastest of ours in a contest, of one kernel or of all (NULL); the default where the difference is noise or below
 * LEAST_GAIN: what was measured once may be otherwise tomorrow. */
static const qn_contender *favourite(const qn_contest *c, const qn_kernel *only)
{
    const qn_contender *best = default_of(c);
    double most = 1;
    /* 9 rows or 512, a context of 10 tokens or of 8,192: one size cannot say how many threads. But where one thread is enough
     * for the longest context, it is for all. */
    const bool varies = qn_bucket(c->shape.args.n) == BUCKET_many || (c->shape.op == OP_attend && !c->deepest);
    if (!best) return NULL;
    if (only && best->kernel != only) best = NULL, most = 0;
    for (int i = 0; i < c->n; i++) {
        double error = 0;
        if ((only && c->at[i].kernel != only) || (varies && c->at[i].lanes != default_of(c)->lanes)) continue;
        if (default_of(c)->lanes == 1 && c->at[i].lanes != 1 &&
            ns_of(c, default_of(c)) - ns_of(c, &c->at[i]) < MEETING_NS) continue;
        const double g = gain(c, &c->at[i], &error);
        if (g > most && (most == 0 || (g > LEAST_GAIN + error && error <= MOST_ERROR))) most = g, best = &c->at[i];
    }
    return best;
}

/* One kernel for every number of rows: the one with the largest mean gain that no bucket loses by. */
static const qn_kernel *compromise(const group *g)
{
    const qn_kernel *best = NULL;
    double most = 0;
    for (int i = 0; i < qn_n_kernels; i++) {
        const qn_kernel *k = &qn_kernels[i];
        double sum = 0;
        bool fair = k->op == g->op;
        for (int b = 0; fair && b < N_BUCKETS; b++) {
            double error = 0;
            const qn_contender *w = g->of[b] ? favourite(g->of[b], k) : NULL;
            const double x = g->of[b] ? gain(g->of[b], w, &error) : 1;
            fair = x >= 1 - error && x > 0;
            sum += x;
        }
        if (fair && sum > most) most = sum, best = k;
    }
    return best;
}

/* w NULL: the bucket was not measured, or nothing was faster. */
static bool add_row(const group *g, int bucket, const qn_kernel *k, const qn_contender *w, int threads, const char *date,
                    qn_tuned *out, qn_err *e)
{
    double error = 0;
    const double x = w ? gain(g->of[bucket], w, &error) : 1;
    const int lanes = w && threads > 1 ? (w->lanes == 1 ? 1 : threads) : 0;
    qn_tuned_row row = { .op = g->op, .shape = g->shape, .bucket = bucket, .kernel = k, .lanes = lanes, .gain = x,
                         .error = error, .date = date };
    const qn_contest *c = g->of[bucket];
    const double ns = c && qn_fused_by_plans(g->op) ? ns_of(c, w ? w : default_of(c)) : 0;
    if (ns > 0) row.over_parts = c->parts_ns / ns;
    return qn_tuned_add(out, &row, e);
}

/* A fused op against its parts, over all numbers of rows: apart where that is faster for some, by more than noise, and fusing is
 * for none. */
typedef struct verdict { bool apart; double gain, error; } verdict;

static verdict weigh_parts(const group *g)
{
    verdict v = { .gain = 1 };
    bool fuse = false;
    for (int b = 0; b < N_BUCKETS; b++) {
        const qn_contest *c = g->of[b];
        const qn_contender *w = c ? favourite(c, NULL) : NULL;
        if (ns_of(c, w) <= 0 || c->parts_ns <= 0) continue;
        const qn_stats *s = c->by_cold ? &w->cold : &w->warm;
        const double error = (s->hi - s->lo) / s->p50; /* of the parts it is not known: as much again */
        const double times = s->p50 / c->parts_ns;
        fuse = fuse || 1 / times > 1 + error;
        if (times > LEAST_GAIN + error && times > v.gain) v = (verdict){ true, times, error };
    }
    v.apart = v.apart && !fuse;
    return v;
}

static bool judge(const group *g, int threads, const char *date, qn_tuned *out, qn_err *e)
{
    const qn_contender *pick[N_BUCKETS] = { 0 };
    const qn_kernel *base = NULL;
    const qn_shape *shape = NULL;
    bool mix = true;
    for (int b = 0; b < N_BUCKETS; b++) {
        if (!g->of[b] || !default_of(g->of[b])) continue;
        pick[b] = favourite(g->of[b], NULL);
        base = default_of(g->of[b])->kernel;
        shape = &g->of[b]->shape;
    }
    if (!base) return true;
    const verdict parts = qn_fused_by_plans(g->op) ? weigh_parts(g) : (verdict){ 0 };
    if (parts.apart)
        return qn_tuned_add(out, &(qn_tuned_row){ .op = g->op, .shape = g->shape, .bucket = -1, .gain = parts.gain,
                                                  .error = parts.error, .date = date }, e);
    for (int b = 0; b < N_BUCKETS; b++) {
        bool same = true;
        if (pick[b] && !same_bits(shape, base, pick[b]->kernel, &same, e)) return false;
        mix = mix && same;
    }
    const qn_kernel *one = mix ? NULL : compromise(g);
    if (!mix && !one) one = base;
    for (int b = 0; b < N_BUCKETS; b++) {
        const qn_contender *w = mix || !g->of[b] ? pick[b] : favourite(g->of[b], one);
        const bool as_it_was = w ? w == default_of(g->of[b]) : mix || one == base; /* one for all: measured or not */
        if (as_it_was && !w) continue;
        /* where nothing is faster that is said too: else the built-in table would be asked */
        if (!add_row(g, b, w ? w->kernel : one, as_it_was ? NULL : w, threads, date, out, e)) return false;
    }
    return true;
}

bool qn_tune(const qn_contest *all, int n, int threads, const char *date, qn_tuned *winners, qn_err *e)
{
    for (int i = 0; i < n; i++) {
        group g = { .op = all[i].shape.op };
        char text[QN_SHAPE_TEXT];
        bool first = true;
        qn_shape_print(&all[i].shape, false, g.shape);
        for (int j = 0; j < n; j++) {
            qn_shape_print(&all[j].shape, false, text);
            if (all[j].shape.op != g.op || strcmp(text, g.shape)) continue;
            first = first && j >= i; /* this group was judged when its first contest came by */
            const int b = qn_bucket(all[j].shape.args.n);
            if (!g.of[b] || all[j].shape.depth > g.of[b]->shape.depth) g.of[b] = &all[j];
        }
        if (first && !judge(&g, threads, date, winners, e)) return false;
    }
    return true;
}

/* ---- the file */

static bool replaced(const qn_tuned *winners, const qn_tuned_row *old)
{
    for (size_t i = 0; i < winners->n; i++)
        if (winners->at[i].op == old->op && !strcmp(winners->at[i].shape, old->shape)) return true;
    return false;
}

bool qn_tune_write(const qn_tuned *winners, const char *path, int threads, qn_err *e)
{
    qn_tuned old = { 0 };
    qn_buf b = { 0 };
    qn_out out = { 0 };
    qn_err ignored = { 0 };
    bool ok = qn_tuned_read(&old, path, threads, &ignored) || ignored.code != QN_ENOMEM;
    for (size_t i = 0; ok && i < old.n; i++)
        if (!replaced(winners, &old.at[i])) qn_tuned_print(&b, &old.at[i], threads);
    for (size_t i = 0; i < winners->n; i++) qn_tuned_print(&b, &winners->at[i], threads);
    ok = ok && (!b.failed || qn_fail(e, QN_ENOMEM, "no memory for the winners"));
    ok = ok && qn_mkdirs_for(path, e) && qn_out_open(&out, path, e) && qn_out_write(&out, b.p ? b.p : "", b.n, e) &&
         qn_out_commit(&out, e);
    qn_out_close(&out);
    qn_buf_close(&b);
    qn_tuned_close(&old);
    return ok;
}
