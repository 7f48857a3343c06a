/* tokenizer.h - text to ids and back, as the rest of quern sees it. A tokenizer is made from a Hugging Face tokenizer.json or
 * from a GGUF vocabulary; both end as the same pipeline: split at added tokens, normalise, pre-tokenise, model,
 * post-process. The calls for users (qn_tokenize, qn_detokenize, ...) are in quern.h. A tokenizer is immutable once made. */
#ifndef QN_TOKENIZER_H
#define QN_TOKENIZER_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

/* Token types, with GGUF's own numbers. */
enum {
    QN_TOKEN_NORMAL = 1,
    QN_TOKEN_UNKNOWN = 2,
    QN_TOKEN_CONTROL = 3,
    QN_TOKEN_USER = 4,
    QN_TOKEN_UNUSED = 5,
    QN_TOKEN_BYTE = 6
};

/* A vocabulary as GGUF describes it. Everything is borrowed. Yes-or-no fields: 1, 0, or -1 for "not said: the model's own
 * default". Ids: -1 for none; one outside the vocabulary is dropped. */
typedef struct qn_vocab {
    qn_str model;             /* tokenizer.ggml.model: gpt2, llama, gemma4 */
    qn_str pre;               /* tokenizer.ggml.pre; empty: default */
    size_t n;
    const qn_str *tokens;     /* [n] */
    const float *scores;      /* [n] or NULL */
    const i32 *types;         /* [n] or NULL: all normal */
    const qn_str *merges;     /* [n_merges] "left right" */
    size_t n_merges;
    i32 bos, eos, eot, eom, unk, pad;
    int add_bos, add_eos, add_space_prefix, remove_extra_whitespaces;
} qn_vocab;

#define QN_VOCAB_DEFAULT                                                                                                \
    { .bos = -1, .eos = -1, .eot = -1, .eom = -1, .unk = -1, .pad = -1, .add_bos = -1, .add_eos = -1,                   \
      .add_space_prefix = -1, .remove_extra_whitespaces = -1 }

/* what: names the text in messages, e.g. the file's path. config_json: tokenizer_config.json, or NULL. Nothing is kept of
 * either text. */
qn_tokenizer *qn_tokenizer_from_json(const char *json, size_t n, const char *config_json, size_t n_config, const char *what,
                                     qn_err *e);
/* Nothing is kept of v. */
qn_tokenizer *qn_tokenizer_from_vocab(const qn_vocab *v, const char *what, qn_err *e);

/* Describes the tokenizer as a GGUF vocabulary that gives the same ids there; what GGUF cannot say is refused. Strings point
 * into t or into a. */
bool qn_tokenizer_export(const qn_tokenizer *t, qn_arena *a, qn_vocab *out, qn_err *e);

const char *qn_tokenizer_kind(const qn_tokenizer *t);                    /* "BPE (gpt2, pre smollm)" */
i32 qn_tokenizer_bos(const qn_tokenizer *t);                             /* -1: none */
i32 qn_tokenizer_eos(const qn_tokenizer *t);
i32 qn_tokenizer_pad(const qn_tokenizer *t);
i32 qn_tokenizer_unk(const qn_tokenizer *t);
bool qn_tokenizer_adds_bos(const qn_tokenizer *t);                       /* with QN_TOK_ADD_SPECIAL */
bool qn_tokenizer_adds_eos(const qn_tokenizer *t);
qn_str qn_token_text(const qn_tokenizer *t, i32 id);                     /* as the vocabulary spells it; p NULL: no such token */
i32 qn_token_find(const qn_tokenizer *t, const char *text, size_t n);    /* -1: none */
bool qn_token_is_control(const qn_tokenizer *t, i32 id);

/* A decoder gives text while tokens come. What push has appended to out is final: whole characters only, and all of it
 * together with what flush appends is what qn_detokenize gives for the same ids. Borrows t. Nothing is allocated per token
 * once its buffers and out have grown. */
typedef struct qn_decoder qn_decoder;
qn_decoder *qn_decoder_open(const qn_tokenizer *t, bool special, qn_err *e);
void qn_decoder_close(qn_decoder *d);
bool qn_decoder_push(qn_decoder *d, i32 id, qn_buf *out, qn_err *e);     /* ids outside the vocabulary give nothing */
bool qn_decoder_flush(qn_decoder *d, qn_buf *out, qn_err *e);            /* the rest; the decoder is as new afterwards */

#endif
