/* vocab_of.h - for tests: the vocabulary of a GGUF file as qn_vocab. Arrays live in the arena. */
#ifndef QN_TEST_VOCAB_OF_H
#define QN_TEST_VOCAB_OF_H

#include "format/gguf.h"
#include "text/tokenizer.h"

static i32 id_of(const qn_source *s, const char *key)
{
    const qn_value *v = qn_source_get(s, key);
    return v ? (i32)v->as.u : -1;
}

static int flag_of(const qn_source *s, const char *key)
{
    const qn_value *v = qn_source_get(s, key);
    return v ? v->as.b : -1;
}

static bool vocab_of(const qn_source *s, qn_arena *a, qn_vocab *out, qn_err *e)
{
    *out = (qn_vocab)QN_VOCAB_DEFAULT;
    const qn_value *tokens = qn_source_get(s, "tokenizer.ggml.tokens"), *types = qn_source_get(s, "tokenizer.ggml.token_type");
    const qn_value *merges = qn_source_get(s, "tokenizer.ggml.merges"), *scores = qn_source_get(s, "tokenizer.ggml.scores");
    const qn_value *pre = qn_source_get(s, "tokenizer.ggml.pre");
    if (!tokens || !tokens->strs) return qn_fail(e, QN_EFORMAT, "no tokens");
    if (!qn_source_str(s, "tokenizer.ggml.model", &out->model, e)) return false;
    if (pre) out->pre = pre->as.s;
    out->n = tokens->n;
    out->tokens = tokens->strs;
    i32 *t = types ? qn_arena_new(a, types->n * sizeof *t, e) : NULL;
    for (size_t i = 0; t && i < types->n; i++) t[i] = (i32)qn_value_int_at(types, i);
    out->types = t;
    float *f = scores ? qn_arena_new(a, scores->n * sizeof *f, e) : NULL;
    for (size_t i = 0; f && i < scores->n; i++) f[i] = (float)qn_value_at(scores, i);
    out->scores = f;
    if (merges) out->merges = merges->strs, out->n_merges = merges->n;
    out->bos = id_of(s, "tokenizer.ggml.bos_token_id");
    out->eos = id_of(s, "tokenizer.ggml.eos_token_id");
    out->unk = id_of(s, "tokenizer.ggml.unknown_token_id");
    out->pad = id_of(s, "tokenizer.ggml.padding_token_id");
    out->eot = id_of(s, "tokenizer.ggml.eot_token_id");
    out->add_bos = flag_of(s, "tokenizer.ggml.add_bos_token");
    out->add_eos = flag_of(s, "tokenizer.ggml.add_eos_token");
    out->add_space_prefix = flag_of(s, "tokenizer.ggml.add_space_prefix");
    return true;
}

#endif
