/* params.c - hyper-parameters: every key that the model needs, with the range that makes sense. A key that is missing, of
 * another type or senseless is refused by name; what depends on two keys is checked against both. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "model/model.h"

const char *qn_model_key(const qn_model *m, const char *key, char buf[128])
{
    snprintf(buf, 128, "%s.%s", m->arch->name, key);
    return buf;
}

static bool has(const qn_model *m, const char *key)
{
    char buf[128];
    return qn_source_get(m->src, qn_model_key(m, key, buf)) != NULL;
}

static bool read_int(const qn_model *m, const char *key, u32 lo, u32 hi, int *out, qn_err *e)
{
    char buf[128];
    u32 v;
    if (!qn_source_u32(m->src, qn_model_key(m, key, buf), lo, hi, &v, e)) return false;
    *out = (int)v;
    return true;
}

/* A key that may be absent: *out keeps its default then. */
static bool maybe_int(const qn_model *m, const char *key, u32 lo, u32 hi, int *out, qn_err *e)
{
    return !has(m, key) || read_int(m, key, lo, hi, out, e);
}

static bool maybe_float(const qn_model *m, const char *key, float lo, float hi, float *out, qn_err *e)
{
    char buf[128];
    float v;
    if (!has(m, key)) return true;
    if (!qn_source_f32(m->src, qn_model_key(m, key, buf), &v, e)) return false;
    if (!(v >= lo && v <= hi))
        return qn_fail(e, QN_EFORMAT, "%s: %s is %g, which is not between %g and %g", m->src->path, buf, (double)v,
                       (double)lo, (double)hi);
    *out = v;
    return true;
}

static bool find_arch(qn_model *m, qn_err *e)
{
    static const qn_arch *const all[] = {
#define ARCH(name) &qn_arch_##name,
#include "model/models.def"
#undef ARCH
    };
    qn_str name;
    if (!qn_source_str(m->src, "general.architecture", &name, e)) return false;
    for (size_t i = 0; i < QN_COUNT(all); i++) {
        if (strlen(all[i]->name) != name.n || memcmp(all[i]->name, name.p, name.n)) continue;
        m->arch = all[i];
        return true;
    }
    char shown[72], known[96] = "";
    for (size_t i = 0, at = 0; i < QN_COUNT(all) && at < sizeof known; i++) /* as many as there is room for */
        at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "", all[i]->name);
    return qn_fail(e, QN_EUNSUPPORTED, "%.80s: unsupported architecture \"%s\" (these run: %s)", m->src->path,
                   qn_printable(name.p, name.n, 64, shown, sizeof shown), known);
}

static bool read_heads(qn_model *m, qn_err *e)
{
    const char *path = m->src->path;
    if (!read_int(m, "attention.head_count", 1, 1024, &m->n_head, e)) return false;
    m->n_kv = m->n_head;
    if (!maybe_int(m, "attention.head_count_kv", 1, 1024, &m->n_kv, e)) return false;
    if (m->n_head % m->n_kv)
        return qn_fail(e, QN_EFORMAT, "%s: attention.head_count %d is no multiple of attention.head_count_kv %d", path,
                       m->n_head, m->n_kv);
    if (has(m, "attention.key_length")) {
        if (!read_int(m, "attention.key_length", 2, 512, &m->d_head, e)) return false;
    } else {
        if (m->d_model % m->n_head)
            return qn_fail(e, QN_EFORMAT, "%s: embedding_length %d does not divide by attention.head_count %d", path,
                           m->d_model, m->n_head);
        m->d_head = m->d_model / m->n_head;
        if (m->d_head > 512) return qn_fail(e, QN_EUNSUPPORTED, "%s: heads of %d values; at most 512 run", path, m->d_head);
    }
    int d_value = m->d_head;
    if (!maybe_int(m, "attention.value_length", 1, 512, &d_value, e)) return false;
    if (d_value != m->d_head)
        return qn_fail(e, QN_EUNSUPPORTED, "%s: attention.value_length %d differs from the key length %d", path, d_value,
                       m->d_head);
    m->d_rot = m->d_head;
    if (!maybe_int(m, "rope.dimension_count", 2, 512, &m->d_rot, e)) return false;
    if (m->d_rot > m->d_head || m->d_rot % 2)
        return qn_fail(e, QN_EFORMAT, "%s: rope.dimension_count %d must be even and at most the head's %d", path, m->d_rot,
                       m->d_head);
    return true;
}

/* n_vocab: what the file says, else the length of its token list, else the rows of the embedding. */
static bool read_vocab(qn_model *m, qn_err *e)
{
    const qn_value *tokens = qn_source_get(m->src, "tokenizer.ggml.tokens");
    const qn_tensor *t = qn_source_tensor(m->src, "token_embd.weight");
    if (has(m, "vocab_size")) return read_int(m, "vocab_size", 1, 1u << 24, &m->n_vocab, e);
    if (!t) return qn_fail(e, QN_EFORMAT, "%s: missing tensor token_embd.weight", m->src->path);
    const u64 n = tokens && tokens->kind == KIND_array ? tokens->n : t->dims[1];
    if (n < 1 || n > 1u << 24)
        return qn_fail(e, QN_EFORMAT, "%s: vocabulary of %llu tokens", m->src->path, (unsigned long long)n);
    m->n_vocab = (int)n;
    return true;
}

static bool read_rope(qn_model *m, qn_err *e)
{
    m->rope_base = 10000;
    if (!maybe_float(m, "rope.freq_base", 1, 1e12f, &m->rope_base, e)) return false;
    m->rope_base_local = m->arch->rope_base_local > 0 ? m->arch->rope_base_local : m->rope_base;
    if (!maybe_float(m, "rope.freq_base_swa", 1, 1e12f, &m->rope_base_local, e)) return false;
    m->rope_neox = m->arch->rope_neox;
    return !qn_source_get(m->src, "quern.rope.neox") || qn_source_bool(m->src, "quern.rope.neox", &m->rope_neox, e);
}

bool qn_model_read_params(qn_model *m, qn_err *e)
{
    if (!find_arch(m, e)) return false;
    char buf[128];
    if (!read_int(m, "block_count", 1, 1024, &m->n_layer, e)) return false;
    if (!read_int(m, "context_length", 1, 1u << 30, &m->n_ctx_train, e)) return false;
    if (!read_int(m, "embedding_length", 1, 1u << 20, &m->d_model, e)) return false;
    if (!read_int(m, "feed_forward_length", 1, 1u << 22, &m->d_ff, e)) return false;
    if (!read_heads(m, e) || !read_vocab(m, e) || !read_rope(m, e)) return false;
    if (!qn_source_f32(m->src, qn_model_key(m, "attention.layer_norm_rms_epsilon", buf), &m->eps, e)) return false;
    if (!(m->eps >= 0 && m->eps <= 1)) return qn_fail(e, QN_EFORMAT, "%s: %s is %g", m->src->path, buf, (double)m->eps);
    if (!maybe_int(m, "attention.sliding_window", 0, 1u << 30, &m->window, e)) return false;
    m->attn_scale = m->arch->attn_scale ? m->arch->attn_scale(m) : 1 / sqrtf((float)m->d_head);
    return maybe_float(m, "attention.scale", 1e-6f, 1e6f, &m->attn_scale, e);
}
