/* hf_names.c - names of tensors, from Hugging Face's to GGUF's. One table; a model's prefix is stripped first, so the text half
 * of a model that also sees pictures reads like any other. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "model/hf.h"
#include "model/hf_parts.h"

typedef struct row { const char *hf, *gguf, *gemma; } row; /* gemma: its name there, where it differs */

static const row outside[] = {
    { "embed_tokens", "token_embd", NULL },
    { "norm", "output_norm", NULL },
};

static const row inside[] = {
    { "input_layernorm", "attn_norm", NULL },
    { "self_attn.q_proj", "attn_q", NULL },
    { "self_attn.k_proj", "attn_k", NULL },
    { "self_attn.v_proj", "attn_v", NULL },
    { "self_attn.o_proj", "attn_output", NULL },
    { "self_attn.q_norm", "attn_q_norm", NULL },
    { "self_attn.k_norm", "attn_k_norm", NULL },
    { "post_attention_layernorm", "ffn_norm", "post_attention_norm" },
    { "pre_feedforward_layernorm", "ffn_norm", NULL },
    { "post_feedforward_layernorm", "post_ffw_norm", NULL },
    { "mlp.gate_proj", "ffn_gate", NULL },
    { "mlp.up_proj", "ffn_up", NULL },
    { "mlp.down_proj", "ffn_down", NULL },
};

static const char *after(const char *s, const char *prefix)
{
    const size_t n = strlen(prefix);
    return strncmp(s, prefix, n) ? NULL : s + n;
}

static const char *look_up(const row *rows, size_t n, const char *stem, size_t n_stem, bool gemma)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(rows[i].hf) == n_stem && !memcmp(rows[i].hf, stem, n_stem))
            return gemma && rows[i].gemma ? rows[i].gemma : rows[i].gguf;
    return NULL;
}

/* "12.mlp.up_proj" gives 12 and what is behind the dot; plain decimal only. */
static bool layer_of(const char *s, u32 n_layer, u64 *il, const char **rest)
{
    const char *dot = strchr(s, '.');
    char digits[8] = { 0 };
    if (!dot || dot == s || dot - s > 6 || (s[0] == '0' && dot - s > 1)) return false;
    memcpy(digits, s, (size_t)(dot - s));
    *rest = dot + 1;
    return qn_parse_u64(digits, il) && *il < n_layer;
}

bool qn_hf_name(const qn_hf_config *c, const char *name, char out[65])
{
    static const char *const prefixes[] = { "model.language_model.", "language_model.model.", "model." };
    if (!strcmp(name, "lm_head.weight") || !strcmp(name, "language_model.lm_head.weight")) {
        snprintf(out, 65, "output.weight");
        return true;
    }
    const char *s = NULL;
    for (size_t i = 0; !s && i < QN_COUNT(prefixes); i++) s = after(name, prefixes[i]);
    const char *tail = s ? strrchr(s, '.') : NULL; /* ".weight" or ".bias" stays */
    if (!tail || (strcmp(tail, ".weight") && strcmp(tail, ".bias"))) return false;
    const char *gguf, *rest = after(s, "layers.");
    u64 il = 0;
    if (!rest) {
        gguf = look_up(outside, QN_COUNT(outside), s, (size_t)(tail - s), c->gemma);
        return gguf && snprintf(out, 65, "%s%s", gguf, tail) < 65;
    }
    if (!layer_of(rest, c->n_layer, &il, &rest) || rest > tail) return false;
    gguf = look_up(inside, QN_COUNT(inside), rest, (size_t)(tail - rest), c->gemma);
    return gguf && snprintf(out, 65, "blk.%u.%s%s", (unsigned)il, gguf, tail) < 65;
}

bool qn_hf_is_permuted(const char *name)
{
    return qn_ends_with(name, ".attn_q.weight") || qn_ends_with(name, ".attn_k.weight")
           || qn_ends_with(name, ".attn_q.bias") || qn_ends_with(name, ".attn_k.bias");
}
