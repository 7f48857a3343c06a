/* decoder.c - the model, reading like the paper. Nothing is computed here: each line appends one step to the plan, and a
 * session only runs plans. An architecture differs by its traits (model.h), not by a file like this of its own. */
#include "model/decoder.h"

#include <math.h>
#include <stdio.h>

typedef struct planner {
    const qn_model *m;
    const qn_buffers *b;
    qn_plan *plan;
    int layer;     /* -1: outside the layers */
    bool logits;   /* steps now run over the rows that ask for logits */
    bool ok;       /* false: a step could not be added; *e says why, the rest is skipped */
    qn_err *e;
} planner;

static void step(planner *p, qn_op op, const char *role, const qn_args *args)
{
    char name[64];
    if (!p->ok) return;
    if (p->layer < 0) snprintf(name, sizeof name, "%s", role);
    else snprintf(name, sizeof name, "blk.%d.%s", p->layer, role);
    qn_step *s = qn_plan_add(p->plan, op, p->layer, name, args, p->e);
    if (s) s->logits = p->logits;
    p->ok = s != NULL;
}

#define STEP(p, op, role, ...) step(p, OP_##op, role, &(qn_args){ .op = { __VA_ARGS__ } })

static void embed(planner *p, float *y, const qn_weight *w, float scale)
{
    STEP(p, embed, "token_embd", .y = y, .table = w->data, .type = w->type, .d = w->cols, .tokens = p->b->tokens,
         .scale = scale);
}

static void rmsnorm(planner *p, const char *role, float *y, const float *x, const float *w)
{
    STEP(p, rmsnorm, role, .y = y, .x = x, .w = w, .d = p->m->d_model, .eps = p->m->eps);
}

static void headnorm(planner *p, const char *role, float *x, int n_head, const float *w)
{
    STEP(p, headnorm, role, .x = x, .w = w, .n_head = n_head, .d = p->m->d_head, .eps = p->m->eps);
}

static void linear(planner *p, const char *role, float *y, const float *x, const qn_weight *w)
{
    STEP(p, linear, role, .y = y, .x = x, .w = w->data, .type = w->type, .rows = w->rows, .cols = w->cols, .bias = w->bias);
}

static void rope(planner *p, const qn_layer *l, float *q, float *k)
{
    const qn_model *m = p->m;
    STEP(p, rope, "rope", .q = q, .k = k, .pos = p->b->pos, .freq = l->sliding ? m->freq_local : m->freq,
         .mscale = l->sliding ? 1 : m->rope_mscale, .neox = m->rope_neox, .n_head = m->n_head, .n_kv = m->n_kv,
         .d_head = m->d_head, .d_rot = m->d_rot);
}

static void store(planner *p, const qn_layer *l, const float *k, const float *v)
{
    STEP(p, store, "kv_store", .k = k, .v = v, .cache = p->b->cache[p->layer], .page_stride = p->b->page_stride[l->sliding],
         .at = &p->b->rows[l->sliding], .type = p->b->kv_type, .n_kv = p->m->n_kv, .d_head = p->m->d_head);
}

static void attend(planner *p, const qn_layer *l, float *y, const float *q)
{
    const qn_model *m = p->m;
    STEP(p, attend, "attend", .y = y, .q = q, .cache = p->b->cache[p->layer], .page_stride = p->b->page_stride[l->sliding],
         .at = &p->b->rows[l->sliding], .type = p->b->kv_type, .n_head = m->n_head, .n_kv = m->n_kv, .d_head = m->d_head,
         .window = l->sliding ? m->window : 0, .scale = m->attn_scale, .parts = p->b->parts);
}

static void add(planner *p, const char *role, float *x, const float *y)
{
    STEP(p, add, role, .x = x, .y = y, .d = p->m->d_model);
}

static void gated(planner *p, float *gate, const float *up)
{
    if (p->m->arch->geglu) STEP(p, geglu, "ffn_act", .gate = gate, .up = up, .d = p->m->d_ff);
    else STEP(p, swiglu, "ffn_act", .gate = gate, .up = up, .d = p->m->d_ff);
}

static void pick(planner *p, float *y, const float *x)
{
    STEP(p, pick, "pick", .y = y, .x = x, .d = p->m->d_model, .rows = p->b->asking);
}

static void layer(planner *p, const qn_layer *l)
{
    const qn_buffers *b = p->b;
    const qn_model *m = p->m;
    rmsnorm(p, "attn_norm", b->h, b->x, l->attn_norm);        /* h    [n, d_model]       */
    linear (p, "attn_q", b->q, b->h, &l->wq);                 /* q    [n, n_head*d_head] */
    linear (p, "attn_k", b->k, b->h, &l->wk);                 /* k, v [n, n_kv*d_head]   */
    linear (p, "attn_v", b->v, b->h, &l->wv);
    if (m->arch->qk_norm) {
        headnorm(p, "attn_q_norm", b->q, m->n_head, l->q_norm);
        headnorm(p, "attn_k_norm", b->k, m->n_kv, l->k_norm);
    }
    rope   (p, l, b->q, b->k);
    store  (p, l, b->k, b->v);
    attend (p, l, b->a, b->q);                                /* a    [n, n_head*d_head] */
    linear (p, "attn_output", b->h, b->a, &l->wo);
    if (m->arch->post_norm) rmsnorm(p, "post_attention_norm", b->h, b->h, l->attn_post_norm);
    add    (p, "attn_add", b->x, b->h);

    rmsnorm(p, "ffn_norm", b->h, b->x, l->ffn_norm);
    linear (p, "ffn_gate", b->gate, b->h, &l->w_gate);        /* gate, up [n, d_ff]      */
    linear (p, "ffn_up", b->up, b->h, &l->w_up);
    gated  (p, b->gate, b->up);
    linear (p, "ffn_down", b->h, b->gate, &l->w_down);
    if (m->arch->post_norm) rmsnorm(p, "post_ffw_norm", b->h, b->h, l->ffn_post_norm);
    add    (p, "ffn_add", b->x, b->h);
}

bool qn_decoder_plan(const qn_model *m, const qn_buffers *b, qn_plan *plan, qn_err *e)
{
    planner p = { .m = m, .b = b, .plan = plan, .layer = -1, .ok = true, .e = e };
    embed(&p, b->x, &m->embed, m->arch->scale_embed ? sqrtf((float)m->d_model) : 1);
    for (p.layer = 0; p.layer < m->n_layer; p.layer++) layer(&p, &m->layers[p.layer]);
    p.layer = -1;
    p.logits = true; /* from here on only the rows that ask */
    pick(&p, b->last, b->x);
    rmsnorm(&p, "output_norm", b->normed, b->last, m->output_norm);
    linear(&p, "output", b->logits, b->normed, &m->output);   /* logits [n_logits, n_vocab] */
    return p.ok;
}
