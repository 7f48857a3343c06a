/* hf_convert.c - qn_convert: a Hugging Face folder as one GGUF file that other programs read too. The folder is opened as a
 * model first, so whatever could not run is not written either; then the tokenizer and the chat template become keys, and the
 * tensors go through requant.c, where q and k rows get GGUF's order. Types: mix.c. */
#include <stdio.h>
#include <string.h>

#include "model/hf.h"
#include "model/mix.h"
#include "model/model.h"
#include "model/requant.h"

/* ---- the vocabulary ---- */

/* Programs that read GGUF take the size of the vocabulary from the list of tokens, so the list gets as many as the embedding
 * has rows: what is missing is named and marked unused, what is too many has no row and goes. */
static bool fit_tokens(qn_source *s, qn_vocab *v, size_t n, qn_err *e)
{
    qn_str *tokens = qn_arena_new(&s->arena, n * sizeof *tokens, e);
    i32 *types = tokens ? qn_arena_new(&s->arena, n * sizeof *types, e) : NULL;
    float *scores = types && v->scores ? qn_arena_new(&s->arena, n * sizeof *scores, e) : NULL;
    if (!types || (v->scores && !scores)) return false;
    for (size_t i = 0; i < n; i++) {
        const bool there = i < v->n && v->tokens[i].p; /* ids may have holes */
        char name[32];
        snprintf(name, sizeof name, "[PAD%zu]", i);
        if (there) tokens[i] = v->tokens[i];
        else tokens[i] = (qn_str){ qn_arena_strndup(&s->arena, name, strlen(name), e), strlen(name) };
        if (!tokens[i].p) return false;
        types[i] = !there ? QN_TOKEN_UNUSED : v->types ? v->types[i] : QN_TOKEN_NORMAL;
        if (scores) scores[i] = there ? v->scores[i] : -1e4f;
    }
    v->tokens = tokens;
    v->types = types;
    v->scores = scores;
    v->n = n;
    return true;
}

static bool put_id(qn_source *s, const char *key, i32 id, size_t n, qn_err *e)
{
    return id < 0 || (size_t)id >= n || qn_source_put_u32(s, key, (u32)id, e);
}

static bool put_flag(qn_source *s, const char *key, int flag, qn_err *e)
{
    return flag < 0 || qn_source_put_bool(s, key, flag, e);
}

static bool put_lists(qn_source *s, const qn_vocab *v, qn_err *e)
{
    return qn_source_put_strs(s, "tokenizer.ggml.tokens", v->tokens, v->n, e)
           && (!v->scores || qn_source_put_array(s, "tokenizer.ggml.scores", KIND_f32, v->scores, v->n, e))
           && qn_source_put_array(s, "tokenizer.ggml.token_type", KIND_i32, v->types, v->n, e)
           && (!v->n_merges || qn_source_put_strs(s, "tokenizer.ggml.merges", v->merges, v->n_merges, e));
}

/* Strings stay in the tokenizer or in the source's arena; both outlive the writing. */
static bool put_vocab(qn_source *s, const qn_tokenizer *t, size_t n_rows, qn_err *e)
{
    qn_vocab v;
    if (!t) return qn_source_put_str(s, "tokenizer.ggml.model", "no_vocab", 8, e);
    if (!qn_tokenizer_export(t, &s->arena, &v, e) || !fit_tokens(s, &v, n_rows, e)) return false;
    return qn_source_put_str(s, "tokenizer.ggml.model", v.model.p, v.model.n, e)
           && (!v.pre.n || qn_source_put_str(s, "tokenizer.ggml.pre", v.pre.p, v.pre.n, e)) && put_lists(s, &v, e)
           && put_id(s, "tokenizer.ggml.bos_token_id", v.bos, v.n, e) && put_id(s, "tokenizer.ggml.eos_token_id", v.eos, v.n, e)
           && put_id(s, "tokenizer.ggml.eot_token_id", v.eot, v.n, e) && put_id(s, "tokenizer.ggml.eom_token_id", v.eom, v.n, e)
           && put_id(s, "tokenizer.ggml.unknown_token_id", v.unk, v.n, e)
           && put_id(s, "tokenizer.ggml.padding_token_id", v.pad, v.n, e)
           && put_flag(s, "tokenizer.ggml.add_bos_token", v.add_bos, e)
           && put_flag(s, "tokenizer.ggml.add_eos_token", v.add_eos, e)
           && put_flag(s, "tokenizer.ggml.add_space_prefix", v.add_space_prefix, e)
           && put_flag(s, "tokenizer.ggml.remove_extra_whitespaces", v.remove_extra_whitespaces, e);
}

/* ---- the types ---- */

/* As stored; the file type is then that of most bytes. */
static bool keep_types(qn_source *s, qn_dtype *types, qn_err *e)
{
    u64 bytes[N_DTYPES] = { 0 };
    for (size_t i = 0; i < s->n_tensors; i++) {
        types[i] = s->tensors[i].type;
        bytes[types[i]] += s->tensors[i].bytes;
    }
    const bool f16 = bytes[DT_f16] > bytes[DT_f32], bf16 = bytes[DT_bf16] > bytes[f16 ? DT_f16 : DT_f32];
    return qn_source_put_u32(s, "general.file_type", bf16 ? 32 : f16 ? 1 : 0, e);
}

static bool write_model(qn_model *m, const char *out, const char *type, const qn_options *o, qn_err *e)
{
    qn_source *s = m->src;
    qn_dtype *types = qn_new_array(s->n_tensors, sizeof *types, e);
    const u64 d_head = qn_source_get(s, "quern.rope.neox") ? (u64)m->d_head : 0;
    const size_t n_chat = m->chat_source ? strlen(m->chat_source) : 0;
    const bool ok = types && (type ? qn_mix_plan(s, type, types, e) : keep_types(s, types, e))
                    && qn_source_put_str(s, "general.type", "model", 5, e) && put_vocab(s, m->tok, (size_t)m->n_vocab, e)
                    && (!n_chat || qn_source_put_str(s, "tokenizer.chat_template", m->chat_source, n_chat, e))
                    && qn_requant(out, s, types, d_head, "converting", o, e);
    qn_free(types);
    return ok;
}

bool qn_convert(const char *dir, const char *out, const char *type, const qn_options *o, qn_err *e)
{
    if (!qn_is_dir(dir))
        return qn_fail(e, QN_EUSAGE, "%s: is not a Hugging Face folder; a GGUF file is changed by quantize", qn_path_tail(dir));
    qn_model *m = qn_model_open(dir, e);
    const bool ok = m && write_model(m, out, type, o, e);
    qn_model_close(m);
    return ok;
}
