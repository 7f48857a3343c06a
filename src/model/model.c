/* model.c - opens a model: source, hyper-parameters, angles, tensors, text; and says what it is. */
#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "format/gguf.h"
#include "model/describe.h"
#include "model/hf.h"

static bool read_name(qn_model *m, const char *path, qn_err *e)
{
    qn_str name;
    qn_err ignored;
    if (qn_source_str(m->src, "general.name", &name, &ignored) && name.n > 0) {
        m->name = qn_arena_strndup(&m->arena, name.p, name.n, e);
    } else {
        const char *slash = strrchr(path, '/');
        m->name = qn_arena_strndup(&m->arena, slash ? slash + 1 : path, strlen(slash ? slash + 1 : path), e);
    }
    return m->name != NULL;
}

static bool open_source(qn_model *m, const char *path, qn_err *e)
{
    m->src = qn_is_dir(path) ? qn_hf_open(path, e) : qn_gguf_open(path, e);
    return m->src != NULL;
}

qn_model *qn_model_open(const char *path, qn_err *e)
{
    qn_model *m = qn_new(sizeof *m, e);
    if (m && open_source(m, path, e) && qn_model_read_params(m, e) && qn_model_make_rope(m, e) && qn_model_bind(m, e) &&
        read_name(m, path, e) && qn_model_read_text(m, path, e)) return m;
    qn_model_close(m);
    return NULL;
}

void qn_model_close(qn_model *m)
{
    if (!m) return;
    qn_template_close(m->chat);
    qn_tokenizer_close(m->tok);
    qn_free(m->chat_source);
    qn_source_close(m->src);
    qn_arena_close(&m->arena);
    qn_free(m);
}

const qn_tokenizer *qn_model_tokenizer(const qn_model *m) { return m->tok; }

static u64 n_weights(const qn_tensor *t) { return t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3]; }

void qn_model_count(const qn_model *m, qn_type_count by_type[N_DTYPES])
{
    memset(by_type, 0, N_DTYPES * sizeof *by_type);
    for (size_t i = 0; i < m->src->n_tensors; i++) {
        const qn_tensor *t = &m->src->tensors[i];
        by_type[t->type].tensors++;
        by_type[t->type].weights += n_weights(t);
        by_type[t->type].bytes += t->bytes;
    }
}

void qn_model_get_info(const qn_model *m, qn_model_info *out)
{
    qn_type_count by_type[N_DTYPES];
    qn_model_count(m, by_type);
    *out = (qn_model_info){
        .path = m->src->path, .name = m->name, .arch = m->arch->name, .n_layer = m->n_layer, .n_head = m->n_head, .n_kv = m->n_kv,
        .d_model = m->d_model, .d_head = m->d_head, .d_ff = m->d_ff, .n_vocab = m->n_vocab, .n_ctx_train = m->n_ctx_train,
        .sliding_window = m->window, .tokenizer_kind = m->tok ? qn_tokenizer_kind(m->tok) : "none",
        .chat_template = m->chat_source, .bos_id = m->tok ? qn_tokenizer_bos(m->tok) : -1,
        .eos_id = m->tok ? qn_tokenizer_eos(m->tok) : -1,
    };
    int most = 0;
    for (int t = 0; t < (int)N_DTYPES; t++) {
        out->n_params += by_type[t].weights;
        out->n_bytes += by_type[t].bytes;
        if (by_type[t].weights > by_type[most].weights) most = t;
    }
    out->type = qn_dtypes[most].name;
}

qn_dtype qn_kv_dtype(int kv) { return kv == QN_KV_F32 ? DT_f32 : kv == QN_KV_Q8_0 ? DT_q8_0 : DT_f16; }

uint64_t qn_model_kv_bytes(const qn_model *m, int n_ctx, int kv)
{
    const u64 row = 2 * (u64)qn_dtype_bytes(qn_kv_dtype(kv), (size_t)m->n_kv * (size_t)m->d_head); /* K and V */
    u64 tokens = 0; /* summed over layers; a sliding layer keeps no more than its window */
    for (int i = 0; i < m->n_layer; i++) tokens += (u64)(m->layers[i].sliding ? qn_mini(m->window, n_ctx) : n_ctx);
    return tokens * row;
}
