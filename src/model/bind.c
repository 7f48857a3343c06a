/* bind.c - finds every tensor that the architecture needs and compares its shape with the hyper-parameters, so that no kernel
 * ever has to. Counts what nobody asked for. */
#include <stdio.h>
#include <string.h>

#include "model/model.h"

typedef struct binder { qn_model *m; int layer, used; qn_err *e; } binder; /* layer -1: outside the layers */

static const qn_tensor *find(const binder *b, const char *name, const char *part, char full[96])
{
    if (b->layer < 0) snprintf(full, 96, "%s.%s", name, part);
    else snprintf(full, 96, "blk.%d.%s.%s", b->layer, name, part);
    return qn_source_tensor(b->m->src, full);
}

static bool missing(const binder *b, const char *full)
{
    return qn_fail(b->e, QN_EFORMAT, "%s: missing tensor %s", b->m->src->path, full);
}

static bool vector_at(binder *b, const char *name, const char *part, int n, bool needed, const float **out)
{
    char full[96];
    const qn_tensor *t = find(b, name, part, full);
    if (!t) return needed ? missing(b, full) : true;
    if (t->n_dims != 1 || t->dims[0] != (u64)n)
        return qn_fail(b->e, QN_EFORMAT, "%s: tensor %s has shape [%llu, %llu], wanted [%d]", b->m->src->path, full,
                       (unsigned long long)t->dims[0], (unsigned long long)t->dims[1], n);
    if (t->type != DT_f32)
        return qn_fail(b->e, QN_EUNSUPPORTED, "%s: tensor %s is %s, wanted F32", b->m->src->path, full,
                       qn_dtypes[t->type].name);
    *out = (const float *)(const void *)t->data;
    b->used++;
    return true;
}

static bool norm(binder *b, const char *name, int n, const float **out)
{
    return vector_at(b, name, "weight", n, true, out);
}

static bool matrix(binder *b, const char *name, int rows, int cols, bool bias_needed, qn_weight *out)
{
    char full[96];
    const qn_tensor *t = find(b, name, "weight", full);
    if (!t) return missing(b, full);
    if (t->n_dims != 2 || t->dims[0] != (u64)cols || t->dims[1] != (u64)rows)
        return qn_fail(b->e, QN_EFORMAT, "%s: tensor %s has shape [%llu, %llu], wanted [%d, %d]", b->m->src->path, full,
                       (unsigned long long)t->dims[0], (unsigned long long)t->dims[1], cols, rows);
    *out = (qn_weight){ .data = t->data, .type = t->type, .rows = rows, .cols = cols };
    b->used++;
    return vector_at(b, name, "bias", rows, bias_needed, &out->bias);
}

static bool bind_norms(binder *b, qn_layer *l)
{
    const qn_model *m = b->m;
    const qn_arch *a = m->arch;
    return norm(b, "attn_norm", m->d_model, &l->attn_norm) && norm(b, "ffn_norm", m->d_model, &l->ffn_norm) &&
           (!a->qk_norm || (norm(b, "attn_q_norm", m->d_head, &l->q_norm) && norm(b, "attn_k_norm", m->d_head, &l->k_norm))) &&
           (!a->post_norm || (norm(b, "post_attention_norm", m->d_model, &l->attn_post_norm) &&
                              norm(b, "post_ffw_norm", m->d_model, &l->ffn_post_norm)));
}

static bool bind_layer(binder *b, qn_layer *l)
{
    const qn_model *m = b->m;
    const bool bias = m->arch->qkv_bias;
    const int q = m->n_head * m->d_head, kv = m->n_kv * m->d_head, d = m->d_model;
    return bind_norms(b, l) && matrix(b, "attn_q", q, d, bias, &l->wq) && matrix(b, "attn_k", kv, d, bias, &l->wk) &&
           matrix(b, "attn_v", kv, d, bias, &l->wv) && matrix(b, "attn_output", d, q, false, &l->wo) &&
           matrix(b, "ffn_gate", m->d_ff, d, false, &l->w_gate) && matrix(b, "ffn_up", m->d_ff, d, false, &l->w_up) &&
           matrix(b, "ffn_down", d, m->d_ff, false, &l->w_down);
}

/* Which layers see only the window: the file's own pattern (a number, or a bool for each layer), else the architecture's. */
static bool mark_sliding(qn_model *m, qn_err *e)
{
    char key[128];
    const qn_value *v = qn_source_get(m->src, qn_model_key(m, "attention.sliding_window_pattern", key));
    u32 every = (u32)m->arch->global_every;
    if (v && v->kind == KIND_array) {
        if (v->item != KIND_bool || v->n < (size_t)m->n_layer)
            return qn_fail(e, QN_EFORMAT, "%s: %s must hold a bool for each of %d layers", m->src->path, key, m->n_layer);
        for (int i = 0; i < m->n_layer; i++) m->layers[i].sliding = m->window > 0 && qn_value_int_at(v, (size_t)i) != 0;
        return true;
    }
    if (v && !qn_source_u32(m->src, key, 0, 1024, &every, e)) return false;
    for (int i = 0; i < m->n_layer; i++)
        m->layers[i].sliding = m->window > 0 && (every == 0 || ((u32)i + 1) % every != 0);
    return true;
}

bool qn_model_bind(qn_model *m, qn_err *e)
{
    binder b = { .m = m, .layer = -1, .e = e };
    m->layers = qn_arena_new(&m->arena, (size_t)m->n_layer * sizeof *m->layers, e);
    if (!m->layers || !mark_sliding(m, e)) return false;
    if (!matrix(&b, "token_embd", m->n_vocab, m->d_model, false, &m->embed)) return false;
    if (!norm(&b, "output_norm", m->d_model, &m->output_norm)) return false;
    m->output = m->embed; /* tied, unless the file has a matrix of its own */
    const bool untied = qn_source_tensor(m->src, "output.weight") != NULL;
    if (untied && !matrix(&b, "output", m->n_vocab, m->d_model, false, &m->output)) return false;
    for (b.layer = 0; b.layer < m->n_layer; b.layer++)
        if (!bind_layer(&b, &m->layers[b.layer])) return false;
    b.used += qn_source_tensor(m->src, "rope_freqs.weight") != NULL;
    m->n_extra = (int)m->src->n_tensors - b.used;
    return true;
}
