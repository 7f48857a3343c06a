/* probe_specs.c - where the probe's shapes come from: flags, a built-in list, a model's plan, a trace. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/probe.h"
#include "probe/parts.h"
#include "trace/reader.h"

/* The list that is probed when nothing else is said: what other probes print (plain products of a 0.5B model's decode, and of
 * its attention heads), then what this engine's own steps look like. */
static const char *const built_in[] = {
    "op=matmul m=1 n=9728 k=896 tB=1", "op=matmul m=1 n=896 k=4864 tB=1", "op=matmul m=1 n=896 k=896 tB=1",
    "op=matmul_bias_add m=1 n=1152 k=896", "op=matmul m=1 n=151936 k=896 tB=1",
    "op=matmul_alpha_beta batch=14 m=1 n=64 k=95", "op=matmul_alpha_beta batch=14 m=1 n=64 k=16",
    "op=matmul_alpha_beta batch=14 m=1 n=51 k=64 tB=1", "op=matmul_alpha_beta batch=14 m=1 n=64 k=88",
    "op=matmul_alpha_beta batch=14 m=1 n=83 k=64 tB=1", "op=matmul_alpha_beta batch=14 m=1 n=90 k=64 tB=1",
    "op=matmul_alpha_beta batch=14 m=1 n=76 k=64 tB=1", "op=matmul_alpha_beta batch=14 m=1 n=64 k=83",
    "op=matmul_alpha_beta batch=14 m=1 n=64 k=69", "op=matmul_alpha_beta batch=14 m=1 n=80 k=64 tB=1",
    "op=matmul_alpha_beta batch=14 m=1 n=67 k=64 tB=1", "op=matmul_alpha_beta batch=14 m=1 n=64 k=67",
    "op=matmul_alpha_beta batch=14 m=1 n=73 k=64 tB=1", "op=matmul_alpha_beta batch=14 m=1 n=64 k=68",
    "op=matmul_alpha_beta batch=14 m=1 n=64 k=84",
    "op=matmul m=1024 n=1024 k=1024", "op=matmul type=bf16 m=1024 n=1024 k=1024",
    /* attention by depth, heads and head size */
    "op=attend type=f16 n=1 heads=14 kv=2 d=64 depth=512", "op=attend type=f16 n=1 heads=14 kv=2 d=64 depth=8192",
    "op=attend type=f16 n=256 heads=14 kv=2 d=64 depth=512", "op=attend type=f16 n=1 heads=32 kv=8 d=64 depth=2048",
    "op=attend type=f16 n=1 heads=32 kv=8 d=128 depth=2048", "op=attend type=f16 n=1 heads=4 kv=1 d=256 depth=2048",
    "op=attend type=q8_0 n=1 heads=32 kv=8 d=128 depth=2048",
    /* norms, positions, gates, sums */
    "op=rmsnorm n=1 d=896", "op=rmsnorm n=1 d=2048", "op=rmsnorm n=512 d=896", "op=headnorm n=1 heads=16 d=128",
    "op=headnorm n=64 heads=16 d=128", "op=rope n=1 heads=14 kv=2 d=64 rot=64 neox=1",
    "op=rope n=64 heads=14 kv=2 d=64 rot=64 neox=1", "op=rope n=64 heads=32 kv=8 d=64 rot=64",
    "op=store type=f16 n=64 kv=2 d=64", "op=swiglu n=1 d=4864", "op=swiglu n=64 d=4864", "op=geglu n=64 d=4864",
    "op=add n=64 d=896", "op=addnorm n=1 d=896", "op=addnorm n=256 d=896",
    /* activations in bytes and in bf16, tokens */
    "op=quant n=1 d=896", "op=quant n=1 d=4864", "op=quant n=64 d=896", "op=narrow n=1 d=896", "op=narrow n=64 d=896",
    "op=embed type=q8_0 n=64 d=896",
    /* over a vocabulary */
    "op=softmax n=1 d=151936", "op=softmax n=14 d=513", "op=best n=1 d=151936 k=1", "op=best n=1 d=151936 k=40",
    /* weights: one row, a few, many */
    "op=qlinear type=q8_0 n=1 rows=4864 cols=896", "op=qlinear type=q8_0 n=8 rows=4864 cols=896",
    "op=qlinear type=q8_0 n=256 rows=4864 cols=896", "op=qlinear type=q4_0 n=1 rows=4864 cols=896",
    "op=qlinear type=q4_0 n=256 rows=4864 cols=896", "op=qlinear type=q4_k n=1 rows=8192 cols=2048",
    "op=qlinear type=q4_k n=256 rows=8192 cols=2048", "op=blinear type=f16 n=1 rows=4864 cols=896",
    "op=blinear type=f16 n=256 rows=4864 cols=896", "op=plinear type=f32 n=1 rows=4864 cols=896",
    "op=plinear type=f32 n=256 rows=4864 cols=896", "op=linear type=f32 n=64 rows=4864 cols=896",
};

static bool add(qn_specs *s, const qn_shape *shape, double engine_ns, qn_err *e)
{
    for (int i = 0; i < s->n; i++)
        if (!memcmp(&s->at[i].shape, shape, sizeof *shape)) return true;
    if (s->n == s->cap) {
        const int cap = s->cap ? 2 * s->cap : 64;
        qn_spec *at = qn_resize(s->at, (size_t)cap * sizeof *at, e);
        if (!at) return false;
        s->at = at;
        s->cap = cap;
    }
    s->at[s->n++] = (qn_spec){ .shape = *shape, .engine_ns = engine_ns };
    return true;
}

bool qn_specs_add_text(qn_specs *s, const char *text, qn_err *e)
{
    qn_shape shape;
    return qn_shape_parse(text, &shape, e) && add(s, &shape, 0, e);
}

bool qn_specs_add_built_in(qn_specs *s, qn_err *e)
{
    for (size_t i = 0; i < QN_COUNT(built_in); i++)
        if (!qn_specs_add_text(s, built_in[i], e)) return false;
    return true;
}

/* What the sampler runs: in no plan, with sizes of the model. */
static const char *const of_vocab[] = { "op=softmax n=1 d=%d", "op=best n=1 d=%d k=40" };

bool qn_specs_add_model(const qn_cli *c, qn_specs *s, const char *name, const qn_engine_args *args, qn_err *e)
{
    static const struct { int rows, depth; } passes[] = { { 1, 512 }, { 4, 512 }, { 256, 0 } }; /* one for each bucket */
    qn_model *m = NULL;
    qn_engine *en = NULL;
    qn_model_info info;
    if (!qn_cli_open(c, name, args, &m, &en, e)) return false;
    qn_model_get_info(m, &info);
    s->model_bytes = info.n_bytes;
    bool ok = true;
    for (size_t p = 0; p < QN_COUNT(passes); p++)
        for (int i = 0; ok && i < qn_engine_n_steps(en); i++) {
            const int most = info.n_ctx_train - passes[p].rows;
            qn_step_info step;
            qn_engine_get_step(en, i, passes[p].rows, most > 0 ? qn_mini(passes[p].depth, most) : passes[p].depth, &step);
            ok = qn_specs_add_text(s, step.shape, e);
            if (ok && s->at[s->n - 1].shape.op == OP_attend) s->at[s->n - 1].deepest = most > 0 && most <= passes[p].depth;
        }
    for (size_t i = 0; ok && i < QN_COUNT(of_vocab); i++) {
        char text[QN_SHAPE_TEXT];
        snprintf(text, sizeof text, of_vocab[i], info.n_vocab);
        ok = qn_specs_add_text(s, text, e);
    }
    qn_cli_close(m, en, ok);
    return ok;
}

/* ---- a trace: the plan's shapes with the rows and depths that were run, and what the engine took for them */

typedef struct plan_step { char op[32], shape[QN_SHAPE_TEXT]; } plan_step;
typedef struct seen { qn_shape shape; double sum; u64 n; } seen;
typedef struct gather { plan_step *plan; size_t n_plan, cap_plan; seen *at; size_t n, cap; } gather;

static void *grow(void *p, size_t n, size_t *cap, size_t size, qn_err *e)
{
    if (n < *cap) return p;
    *cap = *cap ? 2 * *cap : 256;
    return qn_resize(p, *cap * size, e);
}

static bool take_plan(gather *g, const qn_ev_plan *ev, qn_err *e)
{
    if (ev->step != (i64)g->n_plan) return true; /* damaged: without it its steps are no shapes */
    plan_step *plan = grow(g->plan, g->n_plan, &g->cap_plan, sizeof *plan, e);
    if (!plan) return false;
    g->plan = plan;
    plan_step *p = &plan[g->n_plan++];
    snprintf(p->op, sizeof p->op, "%.*s", (int)qn_minz(ev->op.n, 31), ev->op.p ? ev->op.p : "");
    snprintf(p->shape, sizeof p->shape, "%.*s", (int)qn_minz(ev->shape.n, QN_SHAPE_TEXT - 1), ev->shape.p ? ev->shape.p : "");
    return true;
}

/* Depths differ from token to token: they count as the power of two below. */
static int round_depth(i64 depth)
{
    int d = 1;
    while (2 * (i64)d <= depth) d *= 2;
    return depth > 0 ? d : 0;
}

static bool take_step(gather *g, const qn_ev_step *ev, qn_err *e)
{
    char text[QN_SHAPE_TEXT + 96];
    qn_err bad = { 0 };
    qn_shape shape;
    if (ev->step < 0 || (u64)ev->step >= g->n_plan || ev->ns <= 0 || ev->rows <= 0 || ev->rows > 1 << 20) return true;
    const plan_step *p = &g->plan[ev->step];
    snprintf(text, sizeof text, "op=%s %s n=%lld", p->op, p->shape, (long long)ev->rows);
    if (!qn_shape_parse(text, &shape, &bad)) return true; /* another version's op */
    if (shape.op == OP_attend) shape.depth = round_depth(ev->pos);
    size_t i = 0;
    while (i < g->n && memcmp(&g->at[i].shape, &shape, sizeof shape)) i++;
    if (i == g->n) {
        seen *at = grow(g->at, g->n, &g->cap, sizeof *at, e);
        if (!at) return false;
        g->at = at;
        g->at[g->n++] = (seen){ .shape = shape };
    }
    g->at[i].sum += (double)ev->ns;
    g->at[i].n++;
    return true;
}

bool qn_specs_add_trace(qn_specs *s, const char *path, qn_err *e)
{
    gather g = { 0 };
    qn_event ev;
    qn_reader *r = qn_reader_open(path, false, e);
    int got = r ? 1 : -1;
    bool ok = r != NULL;
    while (ok && (got = qn_reader_next(r, &ev, e)) > 0) {
        if (ev.kind == QN_EV_plan) ok = take_plan(&g, &ev.plan, e);
        if (ev.kind == QN_EV_step) ok = take_step(&g, &ev.step, e);
    }
    ok = ok && got == 0;
    for (size_t i = 0; ok && i < g.n; i++) ok = add(s, &g.at[i].shape, g.at[i].sum / (double)g.at[i].n, e);
    if (ok && !g.n) ok = qn_fail(e, QN_EFORMAT, "%.160s has no steps: record it with --trace-level step", path);
    qn_reader_close(r);
    qn_free(g.plan);
    qn_free(g.at);
    return ok;
}

bool qn_specs_add_parts(qn_specs *s, bool by_plans, qn_err *e)
{
    qn_specs all = { .model_bytes = s->model_bytes };
    bool ok = true;
    for (int i = 0; ok && i < s->n; i++) {
        qn_shape parts[QN_PARTS];
        const int n = by_plans && !qn_fused_by_plans(s->at[i].shape.op) ? 0 : qn_shape_parts(&s->at[i].shape, parts);
        for (int k = 0; ok && k < n; k++) ok = add(&all, &parts[k], 0, e);
        ok = ok && add(&all, &s->at[i].shape, s->at[i].engine_ns, e);
        if (ok && s->at[i].deepest) all.at[all.n - 1].deepest = true; /* attention: nobody's part, so it is the last */
    }
    qn_free(s->at);
    *s = all;
    return ok;
}

void qn_specs_filter(qn_specs *s, int op, int type)
{
    int kept = 0;
    for (int i = 0; i < s->n; i++) {
        const qn_shape *h = &s->at[i].shape;
        if ((op < 0 || (int)h->op == op) && (type < 0 || qn_args_type(h->op, &h->args) == type)) s->at[kept++] = s->at[i];
    }
    s->n = kept;
}

void qn_specs_close(qn_specs *s)
{
    qn_free(s->at);
    *s = (qn_specs){ 0 };
}
