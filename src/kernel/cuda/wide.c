/* wide.c - passes of several rows on Hopper: which steps become one launch, in what form activations lie between them, and how a
 * linear is cut. Decided once, when the plan is loaded:
 *   - neighbouring linears with one input and one kind of weights are one launch, gate, up and their product too, and a linear
 *     takes the addition behind it;
 *   - what only such linears read (norms, attention, gated products) is written as f16 at once, into the start of its own buffer;
 *   - rotation and KV store are one launch.
 * What fits none of this runs as on every other device (program.c). */
#include <string.h>

#include "kernel/cuda/program.h"
#include "kernel/cuda/tiles.h"

enum { INPUTS = 16 };

enum { WIDE_plain, WIDE_with, WIDE_gemm, WIDE_norm, WIDE_rotate, WIDE_attend };

typedef struct wide_step {
    int how, lead;          /* WIDE_with: the step whose launch does this one's work */
    bool half;              /* y is f16 */
    int input;              /* gemm: of qn_wide */
    qn_cgemm *gemm;         /* gemm: all but what depends on the rows */
} wide_step;

typedef struct qn_wide {
    wide_step *steps;       /* [plan->n] */
    qn_cgemm *gemms;        /* [n_gemms] */
    int n_gemms, n_inputs;
    struct input { u64 at,
                   from; u32 cols; qn_tmap map[QN_TILES]; } inputs[INPUTS]; /* f16 rows; from: the floats they come from, or 0 */
} qn_wide;

/* ---- who reads and writes a buffer */

enum { READS = 1, WRITES = 2 };

static int uses(const qn_step *s, const void *b)
{
    const qn_args *a = &s->args;
    switch (s->op) {
    case OP_embed: return a->embed.y == b ? WRITES : 0;
    case OP_rmsnorm: return (a->rmsnorm.x == b ? READS : 0) | (a->rmsnorm.y == b ? WRITES : 0);
    case OP_headnorm: return a->headnorm.x == b ? READS | WRITES : 0;
    case OP_linear: return (a->linear.x == b ? READS : 0) | (a->linear.y == b ? WRITES : 0);
    case OP_rope: return a->rope.q == b || a->rope.k == b ? READS | WRITES : 0;
    case OP_store: return a->store.k == b || a->store.v == b ? READS : 0;
    case OP_attend: return (a->attend.q == b ? READS : 0) | (a->attend.y == b ? WRITES : 0);
    case OP_add: return a->add.x == b ? READS | WRITES : a->add.y == b ? READS : 0;
    case OP_swiglu: case OP_geglu: return a->swiglu.gate == b ? READS | WRITES : a->swiglu.up == b ? READS : 0;
    case OP_pick: return (a->pick.x == b ? READS : 0) | (a->pick.y == b ? WRITES : 0);
    default: return READS | WRITES;
    }
}

static bool is_gemm(const qn_cuda *c, int i)
{
    return c->plan->steps[i].op == OP_linear && qn_tiles_take(&c->steps[i].args.linear.w);
}

/* What step i leaves in b is read by nobody, or (gemms) by linears on the tensor cores alone. */
static bool only_for(const qn_cuda *c, int i, const void *b, bool gemms)
{
    while (++i < c->plan->n) {
        const int u = uses(&c->plan->steps[i], b);
        if (u & READS && !(gemms && is_gemm(c, i) && !(u & WRITES))) return false;
        if (u & WRITES) return true;
    }
    return true;
}

/* ---- linears */

/* Whether the newest value of x in front of step i is f16 already. */
static bool is_half(const qn_cuda *c, int i, const void *x)
{
    while (--i >= 0)
        if (uses(&c->plan->steps[i], x) & WRITES) return c->wide->steps[i].half;
    return false;
}

static bool find_input(qn_cuda *c, int i, int *out, qn_err *e)
{
    qn_wide *w = c->wide;
    const qn_step *s = &c->plan->steps[i];
    const u64 x = qn_program_buffer(c, s->args.linear.x), from = is_half(c, i, s->args.linear.x) ? 0 : x;
    const u64 at = from ? qn_program_buffer(c, c->need.narrow) : x, rows = (u64)(s->logits ? c->need.n_logits : c->need.n_rows);
    const u32 cols = (u32)s->args.linear.cols;
    for (*out = 0; *out < w->n_inputs; ++*out)
        if (w->inputs[*out].at == at && w->inputs[*out].from == from && w->inputs[*out].cols == cols) return true;
    assert(w->n_inputs < INPUTS); /* a decoder has four buffers that linears read */
    struct input *n = &w->inputs[w->n_inputs++];
    n->at = at, n->from = from, n->cols = cols;
    return qn_wgmma_input(&c->gpu, at, cols, rows, n->map, e);
}

static bool goes_with(const qn_cuda *c, int i, int j)
{
    const qn_step *a = &c->plan->steps[i], *b = &c->plan->steps[j];
    const qn_wmat *v = &c->steps[i].args.linear.w, *w = &c->steps[j].args.linear.w;
    return is_gemm(c, j) && a->args.linear.x == b->args.linear.x && a->logits == b->logits && v->kind == w->kind &&
           v->cols == w->cols;
}

static void merge(qn_cuda *c, int lead, int i) { c->wide->steps[i] = (wide_step){ .how = WIDE_with, .lead = lead }; }

/* Linears i..j-1 are one launch; what is behind them may be part of it. */
static void take_next(qn_cuda *c, int i, int j, qn_cgemm *g)
{
    const qn_step *s = &c->plan->steps[i], *next = j < c->plan->n ? &c->plan->steps[j] : NULL;
    const int rows = s->args.linear.rows;
    if (!next) return;
    if ((next->op == OP_swiglu || next->op == OP_geglu) && j - i == 2 && next->args.swiglu.gate == s->args.linear.y &&
        next->args.swiglu.up == s[1].args.linear.y && rows == s[1].args.linear.rows && rows % 4 == 0 &&
        only_for(c, j, next->args.swiglu.gate, true) && only_for(c, j, next->args.swiglu.up, false)) {
        g->out = next->op == OP_geglu ? QN_GEMM_gelu : QN_GEMM_silu;
        merge(c, i, j);
        c->wide->steps[j].half = true;
    } else if (next->op == OP_add && j - i == 1 && next->args.add.y == s->args.linear.y && only_for(c, j, s->args.linear.y,
                                                                                                    false)) {
        g->out = QN_GEMM_add;
        g->m[0].y = qn_program_buffer(c, next->args.add.x);
        merge(c, i, j);
    }
}

static bool make_gemm(qn_cuda *c, int i, qn_err *e)
{
    wide_step *t = &c->wide->steps[i];
    qn_cgemm *g = t->gemm = &c->wide->gemms[c->wide->n_gemms++];
    u32 end = 0;
    int j = i;
    t->how = WIDE_gemm;
    if (!find_input(c, i, &t->input, e)) return false;
    do {
        const qn_clinear *l = &c->steps[j].args.linear;
        qn_cmat *m = &g->m[j - i];
        end += (l->w.rows + 2 * QN_GEMM_HALF - 1) / (2 * QN_GEMM_HALF);
        *m = (qn_cmat){ .y = l->y, .bias = l->bias, .w = l->w, .end = end };
        if (!qn_wgmma_matrix(&c->gpu, g, j - i, e)) return false;
        if (j > i) merge(c, i, j);
        j++;
    } while (j - i < QN_GEMM_MATS && j < c->plan->n && goes_with(c, i, j));
    for (int k = j - i; k < QN_GEMM_MATS; k++) g->m[k].end = end;
    take_next(c, i, j, g);
    return true;
}

/* ---- all steps */

static bool make_step(qn_cuda *c, int i, qn_err *e)
{
    wide_step *t = &c->wide->steps[i];
    const qn_step *s = &c->plan->steps[i], *next = i + 1 < c->plan->n ? s + 1 : s;
    if (t->how == WIDE_with) return true;
    if (is_gemm(c, i)) return make_gemm(c, i, e);
    if (s->op == OP_rmsnorm && s->args.rmsnorm.d % 4 == 0 && only_for(c, i, s->args.rmsnorm.y, true))
        t->how = WIDE_norm, t->half = true;
    if (s->op == OP_attend && qn_attention_can_half(&c->steps[i].args.attend) && only_for(c, i, s->args.attend.y, true))
        t->how = WIDE_attend, t->half = true;
    if (s->op == OP_rope && next->op == OP_store && next->args.store.k == s->args.rope.k && next->args.store.type == DT_f16 &&
        only_for(c, i + 1, s->args.rope.k, false)) {
        t->how = WIDE_rotate;
        merge(c, i, i + 1);
    }
    return true;
}

bool qn_wide_make(qn_cuda *c, qn_err *e)
{
    if (!qn_wgmma_has(&c->gpu)) return true;
    c->wide = qn_new(sizeof *c->wide, e);
    if (!c->wide) return false;
    c->wide->steps = qn_new_array((size_t)c->plan->n, sizeof *c->wide->steps, e);
    c->wide->gemms = c->wide->steps ? qn_new_array((size_t)c->plan->n, sizeof *c->wide->gemms, e) : NULL;
    if (!c->wide->gemms) return false;
    for (int i = 0; i < c->plan->n; i++)
        if (!make_step(c, i, e)) return false;
    return true;
}

void qn_wide_close(qn_cuda *c)
{
    if (!c->wide) return;
    qn_free(c->wide->steps);
    qn_free(c->wide->gemms);
    qn_free(c->wide);
    c->wide = NULL;
}

const char *qn_wide_name(const qn_cuda *c, int i, int bucket)
{
    static const char *const linear[QN_W_KINDS] = { [QN_W_f16] = "linear_f16_cuda_wgmma",
                                                    [QN_W_bf16] = "linear_bf16_cuda_wgmma",
        [QN_W_q8] = "linear_q8_cuda_wgmma", [QN_W_q4] = "linear_q4_cuda_wgmma", [QN_W_q4m] = "linear_q4m_cuda_wgmma",
        [QN_W_q6] = "linear_q6_cuda_wgmma" };
    const int how = c->wide && bucket != BUCKET_one ? c->wide->steps[i].how : WIDE_plain;
    switch (how) {
    case WIDE_gemm: return linear[c->steps[i].args.linear.w.kind];
    case WIDE_with: return "merged_cuda";
    case WIDE_norm: return "rmsnorm_cuda_half";
    case WIDE_rotate: return "rope_cuda_store";
    default: return NULL;
    }
}

bool qn_wide_merged(const qn_cuda *c, int i) { return c->wide && c->wide->steps[i].how == WIDE_with; }

/* ---- launching */

static bool launch_gemm(qn_cuda *c, const wide_step *t, int n, qn_err *e)
{
    const struct input *in = &c->wide->inputs[t->input];
    if (in->from && c->narrowed != in->from) {
        if (!qn_narrow_launch(&c->gpu, in->at, in->from, (u64)n * in->cols, e)) return false;
        c->narrowed = in->from;
    }
    return qn_wgmma_launch(&c->gpu, t->gemm, in->map, n, e);
}

bool qn_wide_launch(qn_cuda *c, int i, int n, bool *done, qn_err *e)
{
    const wide_step *t = &c->wide->steps[i];
    qn_cargs a = c->steps[i].args;
    *done = t->how != WIDE_plain;
    if (t->how != WIDE_gemm && t->how != WIDE_with) c->narrowed = 0; /* it may write what was made f16 */
    switch (t->how) {
    case WIDE_gemm: return launch_gemm(c, t, n, e);
    case WIDE_norm: return qn_gpu_launch_early(&c->gpu, FN_norm_half, (qn_grid){ (unsigned)n, 1, 256, 0 }, 1, &a, e);
    case WIDE_attend: a.attend.half = 1; return qn_attention_launch(c, &a.attend, n, e);
    case WIDE_rotate: {
        const qn_crotate r = { .rope = a.rope, .store = c->steps[i + 1].args.store };
        return qn_gpu_launch_early(&c->gpu, FN_rotate, (qn_grid){ (unsigned)n, 1, 256, 0 }, 1, &r, e);
    }
    default: return true;
    }
}
