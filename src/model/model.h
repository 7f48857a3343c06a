/* model.h - a model bound to its weights: hyper-parameters checked, every tensor found and its shape compared. What runs it
 * is the plan that decoder.c writes from this. */
#ifndef QN_MODEL_H
#define QN_MODEL_H

#include "format/source.h"
#include "text/template.h"
#include "text/tokenizer.h"

/* What tells one architecture from another. Everything that a file can say is read from the file instead. */
typedef struct qn_arch {
    const char *name;
    bool rope_neox;           /* pairs (i, i + d/2) instead of (2i, 2i+1) */
    bool qkv_bias;            /* q, k and v have a bias; elsewhere a bias is used if it is there */
    bool qk_norm;             /* norm of each head of q and k before rope */
    bool post_norm;           /* norms behind attention and feed-forward too (sandwich) */
    bool geglu;               /* gelu instead of silu in the gate */
    bool scale_embed;         /* embeddings times sqrt(d_model) */
    int global_every;         /* with a sliding window: every how many layers one sees everything; 0: none does */
    float rope_base_local;    /* rope base of sliding layers; 0: as the others */
    float (*attn_scale)(const qn_model *m); /* NULL: 1 / sqrt(d_head) */
} qn_arch;

#define ARCH(name) extern const qn_arch qn_arch_##name;
#include "model/models.def"
#undef ARCH

typedef struct qn_weight {
    const void *data;         /* [rows, cols] */
    qn_dtype type;
    int rows, cols;
    const float *bias;        /* [rows] or NULL */
} qn_weight;

typedef struct qn_layer {
    const float *attn_norm, *ffn_norm;            /* [d_model] */
    const float *attn_post_norm, *ffn_post_norm;  /* [d_model], post_norm only */
    const float *q_norm, *k_norm;                 /* [d_head], qk_norm only */
    qn_weight wq, wo;                             /* [n_head*d_head, d_model], [d_model, n_head*d_head] */
    qn_weight wk, wv;                             /* [n_kv*d_head, d_model] */
    qn_weight w_gate, w_up, w_down;               /* [d_ff, d_model] x2, [d_model, d_ff] */
    bool sliding;
} qn_layer;

struct qn_model {
    qn_source *src;
    const qn_arch *arch;
    char *name;
    int n_layer, n_head, n_kv, d_model, d_head, d_ff, n_vocab, n_ctx_train, window, d_rot;
    bool rope_neox;
    float eps, attn_scale, rope_base, rope_base_local, rope_mscale;
    float *freq, *freq_local; /* [d_rot/2] angle per position: global and sliding layers */
    qn_weight embed, output;  /* [n_vocab, d_model]; tied: the same data */
    const float *output_norm; /* [d_model] */
    qn_layer *layers;
    int n_extra;              /* tensors in the file that nothing uses */
    qn_tokenizer *tok;        /* NULL: the file has no vocabulary */
    char *chat_source;        /* the chat template's text; NULL: none */
    qn_template *chat;        /* the same, parsed; NULL: none, or it cannot be used: */
    qn_err chat_error;        /* why */
    qn_arena arena;
};

/* params.c: reads and checks the hyper-parameters. rope.c: makes the angles. bind.c: finds the tensors. */
bool qn_model_read_params(qn_model *m, qn_err *e);
bool qn_model_make_rope(qn_model *m, qn_err *e);
bool qn_model_bind(qn_model *m, qn_err *e);
/* read_text.c: tokenizer and chat template from the source or, for a folder, from its files. */
bool qn_model_read_text(qn_model *m, const char *path, qn_err *e);

/* "PREFIX.key" with the architecture as prefix, in buf */
const char *qn_model_key(const qn_model *m, const char *key, char buf[128]);

#endif
