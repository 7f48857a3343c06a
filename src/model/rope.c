/* rope.c - the angle per position of every pair, once per model: base, then what the file's scaling does to it.
 *   none    base^(-2i/d)
 *   linear  all divided by the factor
 *   factors rope_freqs.weight divides each pair by its own (Llama 3.1+)
 *   yarn    slow pairs divided, fast ones kept, a ramp between; and the rotation gets longer
 * Sliding layers keep the plain angles of their own base. */
#include <math.h>
#include <string.h>

#include "model/model.h"

typedef struct scaling {
    enum { NONE, LINEAR, YARN } kind;
    float factor, attn, beta_fast, beta_slow, n_ctx;
} scaling;

static bool maybe(const qn_model *m, const char *key, float *out, qn_err *e)
{
    char buf[128];
    const qn_value *v = qn_source_get(m->src, qn_model_key(m, key, buf));
    if (!v) return true;
    if (v->kind != KIND_f32 && v->kind != KIND_f64) { /* original_context_length is an integer */
        u32 u;
        if (!qn_source_u32(m->src, buf, 1, 1u << 30, &u, e)) return false;
        *out = (float)u;
        return true;
    }
    if (!qn_source_f32(m->src, buf, out, e)) return false;
    if (!(*out > 0 && *out <= 1e9f)) return qn_fail(e, QN_EFORMAT, "%s: %s is %g", m->src->path, buf, (double)*out);
    return true;
}

static bool is(qn_str s, const char *word) { return s.n == strlen(word) && !memcmp(s.p, word, s.n); }

static bool read_scaling(const qn_model *m, scaling *s, qn_err *e)
{
    char buf[128];
    *s = (scaling){ .factor = 1, .attn = 1, .beta_fast = 32, .beta_slow = 1, .n_ctx = (float)m->n_ctx_train };
    if (!maybe(m, "rope.scale_linear", &s->factor, e)) return false;
    if (s->factor > 1) s->kind = LINEAR; /* the old key, before rope.scaling.type */
    if (qn_source_get(m->src, qn_model_key(m, "rope.scaling.type", buf))) {
        qn_str type;
        if (!qn_source_str(m->src, buf, &type, e)) return false;
        if (is(type, "none")) s->kind = NONE;
        else if (is(type, "linear")) s->kind = LINEAR;
        else if (is(type, "yarn")) s->kind = YARN;
        else return qn_fail(e, QN_EUNSUPPORTED, "%s: %s is \"%.*s\"; none, linear and yarn run", m->src->path, buf,
                            (int)qn_minz(type.n, 32), type.p);
    }
    return maybe(m, "rope.scaling.factor", &s->factor, e) && maybe(m, "rope.scaling.attn_factor", &s->attn, e) &&
           maybe(m, "rope.scaling.yarn_beta_fast", &s->beta_fast, e) &&
           maybe(m, "rope.scaling.yarn_beta_slow", &s->beta_slow, e) &&
           maybe(m, "rope.scaling.original_context_length", &s->n_ctx, e);
}

/* The pair (as a real number) that turns `turns` times within the trained context. */
static double pair_of(const scaling *s, const qn_model *m, double turns)
{
    return m->d_rot * log((double)s->n_ctx / (turns * 2 * M_PI)) / (2 * log((double)m->rope_base));
}

static void scale_yarn(const scaling *s, const qn_model *m, float *freq)
{
    const double lo = fmax(0, floor(pair_of(s, m, (double)s->beta_fast)));
    const double hi = fmin(m->d_rot - 1, ceil(pair_of(s, m, (double)s->beta_slow)));
    for (int i = 0; i < m->d_rot / 2; i++) {
        const double slow = fmin(1, fmax(0, (i - lo) / fmax(0.001, hi - lo))); /* 0: fast, kept; 1: slow, divided */
        freq[i] = (float)((double)freq[i] * (1 - slow + slow / (double)s->factor));
    }
}

static bool scale_each(const qn_model *m, float *freq, qn_err *e)
{
    const qn_tensor *t = qn_source_tensor(m->src, "rope_freqs.weight");
    if (!t) return true;
    if (t->type != DT_f32 || t->n_dims != 1 || t->dims[0] != (u64)m->d_rot / 2)
        return qn_fail(e, QN_EFORMAT, "%s: rope_freqs.weight has %llu values of %s, wanted %d of F32", m->src->path,
                       (unsigned long long)t->dims[0], qn_dtypes[t->type].name, m->d_rot / 2);
    const float *f = (const float *)(const void *)t->data;
    for (int i = 0; i < m->d_rot / 2; i++) {
        if (!(f[i] > 0 && f[i] < 1e9f))
            return qn_fail(e, QN_EFORMAT, "%s: rope_freqs.weight holds %g", m->src->path, (double)f[i]);
        freq[i] /= f[i];
    }
    return true;
}

static float *plain(qn_model *m, float base, qn_err *e)
{
    float *freq = qn_arena_new(&m->arena, (size_t)m->d_rot / 2 * sizeof *freq, e);
    for (int i = 0; freq && i < m->d_rot / 2; i++) freq[i] = (float)pow((double)base, -2.0 * i / m->d_rot);
    return freq;
}

bool qn_model_make_rope(qn_model *m, qn_err *e)
{
    scaling s;
    if (!read_scaling(m, &s, e)) return false;
    m->freq = plain(m, m->rope_base, e);
    m->freq_local = m->freq ? plain(m, m->rope_base_local, e) : NULL;
    if (!m->freq_local) return false;
    m->rope_mscale = 1;
    if (s.kind == LINEAR) {
        for (int i = 0; i < m->d_rot / 2; i++) m->freq[i] /= s.factor;
    } else if (s.kind == YARN) {
        scale_yarn(&s, m, m->freq);
        m->rope_mscale = s.attn * (1 + 0.1f * logf(s.factor));
    }
    return scale_each(m, m->freq, e);
}
