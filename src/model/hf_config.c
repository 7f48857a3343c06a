/* hf_config.c - config.json to GGUF keys. Every number is asked for by name, with its range; what is missing, of another type
 * or asks for something that nothing here can run is refused by file and key. Both spellings of the rope settings are read:
 * rope_theta with rope_scaling, and rope_parameters (nested by layer type where a model has two kinds of layers). */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "model/hf_parts.h"

enum { MOST_CONFIG = 16 << 20, MOST_LAYERS = 1024 };

/* What a model_type is in GGUF. */
typedef struct kind { const char *type, *arch, *act; bool permuted, gemma; } kind;

static const kind kinds[] = {
    { "llama", "llama", "silu", true, false },
    { "mistral", "llama", "silu", true, false },
    { "qwen2", "qwen2", "silu", false, false },
    { "qwen3", "qwen3", "silu", false, false },
    { "gemma3_text", "gemma3", "gelu_pytorch_tanh", false, true },
    { "gemma3", "gemma3", "gelu_pytorch_tanh", false, true }, /* with pictures: the text half is in text_config */
};

typedef struct config {
    qn_source *s;
    yyjson_val *root, *text;  /* text: where the text model's keys are */
    const char *path;
    const kind *kind;
    qn_err *e;
} config;

static bool bad(const config *c, const char *key, const char *what)
{
    return qn_fail(c->e, QN_EFORMAT, "%s: key %s %s", c->path, key, what);
}

static bool unsupported(const config *c, const char *key, const char *value)
{
    return qn_fail(c->e, QN_EUNSUPPORTED, "%s: %s %.64s is not supported", c->path, key, value);
}

/* ---- asking ---- */

/* A key that is null is not there. */
static yyjson_val *find(yyjson_val *o, const char *key)
{
    yyjson_val *v = yyjson_obj_get(o, key);
    return yyjson_is_null(v) ? NULL : v;
}

static bool read_uint(const config *c, yyjson_val *o, const char *key, u32 most, u32 fallback, u32 *out)
{
    char what[80];
    yyjson_val *v = find(o, key);
    *out = fallback;
    if (!v) return fallback || bad(c, key, "is missing");
    if (!yyjson_is_uint(v) || yyjson_get_uint(v) < 1 || yyjson_get_uint(v) > most) {
        snprintf(what, sizeof what, "must be a whole number from 1 to %u", most);
        return bad(c, key, what);
    }
    *out = (u32)yyjson_get_uint(v);
    return true;
}

/* fallback 0: the key must be there. */
static bool read_real(const config *c, yyjson_val *o, const char *key, double most, double fallback, double *out)
{
    char what[80];
    yyjson_val *v = find(o, key);
    *out = fallback;
    if (!v) return fallback > 0 || bad(c, key, "is missing");
    const double x = yyjson_get_num(v);
    if (!yyjson_is_num(v) || !(x > 0) || !(x <= most)) {
        snprintf(what, sizeof what, "must be a number above 0 and at most %g", most);
        return bad(c, key, what);
    }
    *out = x;
    return true;
}

static bool read_bool(const config *c, yyjson_val *o, const char *key, bool fallback, bool *out)
{
    yyjson_val *v = find(o, key);
    *out = v ? yyjson_get_bool(v) : fallback;
    return !v || yyjson_is_bool(v) || bad(c, key, "must be true or false");
}

/* ---- answering ---- */

static const char *name_key(const config *c, const char *key, char out[96])
{
    snprintf(out, 96, "%s.%s", c->kind->arch, key);
    return out;
}

static bool put_uint(const config *c, const char *key, u32 v)
{
    char k[96];
    return qn_source_put_u32(c->s, name_key(c, key, k), v, c->e);
}

static bool put_real(const config *c, const char *key, double v)
{
    char k[96];
    return qn_source_put_f32(c->s, name_key(c, key, k), (float)v, c->e);
}

static bool put_text(const config *c, const char *key, const char *v)
{
    char k[96];
    return qn_source_put_str(c->s, name_key(c, key, k), v, strlen(v), c->e);
}

/* ---- which model ---- */

static bool find_kind(config *c)
{
    yyjson_val *v = find(c->root, "model_type");
    if (!v) return bad(c, "model_type", "is missing");
    if (!yyjson_is_str(v)) return bad(c, "model_type", "must be a string");
    for (size_t i = 0; i < QN_COUNT(kinds); i++)
        if (yyjson_equals_str(v, kinds[i].type)) c->kind = &kinds[i];
    if (!c->kind) return unsupported(c, "model_type", yyjson_get_str(v));
    yyjson_val *text = find(c->root, "text_config");
    if (text && !yyjson_is_obj(text)) return bad(c, "text_config", "must be an object");
    c->text = text ? text : c->root;
    return true;
}

/* Settings that change the arithmetic in a way that nothing here follows. Silence would give wrong tokens. */
static bool check_features(const config *c)
{
    static const char *const refused[] = { "attn_logit_softcapping", "final_logit_softcapping" };
    if (find(c->root, "quantization_config"))
        return unsupported(c, "quantization_config", "(a quantised Hugging Face folder)");
    for (size_t i = 0; i < QN_COUNT(refused); i++)
        if (find(c->text, refused[i])) return unsupported(c, refused[i], "(other than null)");
    bool both_ways;
    if (!read_bool(c, c->text, "use_bidirectional_attention", false, &both_ways)) return false;
    if (both_ways) return unsupported(c, "use_bidirectional_attention", "true");
    double partial;
    if (!read_real(c, c->text, "partial_rotary_factor", 1, 1, &partial)) return false;
    if (partial < 1) return unsupported(c, "partial_rotary_factor", "below 1");
    yyjson_val *act = find(c->text, "hidden_activation");
    if (!act) act = find(c->text, "hidden_act");
    if (act && !yyjson_is_str(act)) return bad(c, "hidden_act", "must be a string");
    if (act && strcmp(yyjson_get_str(act), c->kind->act)) return unsupported(c, "hidden_act", yyjson_get_str(act));
    return true;
}

/* ---- sizes ---- */

/* Gemma 3's folders with pictures leave out what equals the defaults of their configuration class; the others write all. */
static u32 fallback(const config *c, u32 gemma) { return c->kind->gemma ? gemma : 0; }

static bool read_sizes(const config *c, qn_hf_config *out)
{
    u32 d_model, d_ff, n_head, n_kv, d_head, n_vocab, n_ctx;
    double eps, scalar;
    yyjson_val *t = c->text;
    if (!read_uint(c, t, "hidden_size", INT32_MAX, fallback(c, 2304), &d_model)
        || !read_uint(c, t, "intermediate_size", INT32_MAX, fallback(c, 9216), &d_ff)
        || !read_uint(c, t, "num_hidden_layers", MOST_LAYERS, fallback(c, 26), &out->n_layer)
        || !read_uint(c, t, "num_attention_heads", 65536, fallback(c, 8), &n_head)
        || !read_uint(c, t, "num_key_value_heads", 65536, c->kind->gemma ? 4 : n_head, &n_kv)
        || !read_uint(c, t, "vocab_size", INT32_MAX, fallback(c, 262208), &n_vocab)
        || !read_uint(c, t, "max_position_embeddings", INT32_MAX, fallback(c, 131072), &n_ctx)
        || !read_real(c, t, "rms_norm_eps", 1, c->kind->gemma ? 1e-6 : 0, &eps))
        return false;
    if (!c->kind->gemma && !find(t, "head_dim") && d_model % n_head)
        return bad(c, "num_attention_heads", "does not divide hidden_size, and there is no head_dim");
    if (!read_uint(c, t, "head_dim", 65536, c->kind->gemma ? 256 : d_model / n_head, &d_head)) return false;
    if (d_head % 2) return bad(c, "head_dim", "must be even");
    if (!read_real(c, t, "query_pre_attn_scalar", 1e9, c->kind->gemma ? 256 : d_head, &scalar)) return false;
    out->d_head = d_head;
    if (scalar != d_head && !put_real(c, "attention.scale", 1 / sqrt(scalar))) return false;
    return put_uint(c, "block_count", out->n_layer) && put_uint(c, "context_length", n_ctx)
           && put_uint(c, "embedding_length", d_model) && put_uint(c, "feed_forward_length", d_ff)
           && put_uint(c, "attention.head_count", n_head) && put_uint(c, "attention.head_count_kv", n_kv)
           && put_uint(c, "attention.key_length", d_head) && put_uint(c, "attention.value_length", d_head)
           && put_real(c, "attention.layer_norm_rms_epsilon", eps) && put_uint(c, "rope.dimension_count", d_head)
           && put_uint(c, "vocab_size", n_vocab);
}

/* ---- sliding windows ---- */

/* Which layers slide, from whichever key says it. */
static bool read_layer_types(const config *c, u32 n_layer, u8 *slides)
{
    yyjson_val *types = find(c->text, "layer_types");
    u32 pattern, first;
    if (!types && c->kind->gemma) {
        const char *key = "_sliding_window_pattern"; /* older ones spell it without the line in front */
        if (!read_uint(c, c->text, find(c->text, key) ? key : key + 1, MOST_LAYERS, 6, &pattern)) return false;
        for (u32 i = 0; i < n_layer; i++) slides[i] = (i + 1) % pattern != 0;
        return true;
    }
    if (!types) { /* mistral: every layer; qwen: those behind max_window_layers */
        if (!read_uint(c, c->text, "max_window_layers", INT32_MAX, UINT32_MAX, &first)) return false;
        for (u32 i = 0; i < n_layer; i++) slides[i] = first == UINT32_MAX || i >= first;
        return true;
    }
    if (yyjson_arr_size(types) != n_layer) return bad(c, "layer_types", "must name the type of every layer");
    for (u32 i = 0; i < n_layer; i++) {
        yyjson_val *v = yyjson_arr_get(types, i);
        slides[i] = yyjson_equals_str(v, "sliding_attention");
        if (!slides[i] && !yyjson_equals_str(v, "full_attention"))
            return bad(c, "layer_types", "may have sliding_attention and full_attention only");
    }
    return true;
}

/* The pattern is written out only where it is not what the architecture implies: every layer, or Gemma's five of six. */
static bool put_pattern(const config *c, const u8 *slides, u32 n_layer)
{
    bool usual = true;
    for (u32 i = 0; i < n_layer; i++) usual = usual && slides[i] == (c->kind->gemma ? (i + 1) % 6 != 0 : 1);
    char k[96];
    name_key(c, "attention.sliding_window_pattern", k);
    return usual || qn_source_put_array(c->s, k, KIND_bool, slides, n_layer, c->e);
}

static bool read_window(const config *c, u32 n_layer)
{
    bool on;
    u32 window;
    const bool mistral = !strcmp(c->kind->type, "mistral");
    const bool said = yyjson_obj_get(c->text, "sliding_window") != NULL; /* null says: no window */
    if (!read_bool(c, c->text, "use_sliding_window", c->kind->gemma || mistral, &on)) return false;
    if (!on || (said ? !find(c->text, "sliding_window") : !c->kind->gemma && !mistral)) return true;
    if (!read_uint(c, c->text, "sliding_window", INT32_MAX, 4096, &window)) return false;
    u8 *slides = qn_arena_new(&c->s->arena, n_layer, c->e);
    if (!slides || !read_layer_types(c, n_layer, slides)) return false;
    bool any = false;
    for (u32 i = 0; i < n_layer; i++) any = any || slides[i];
    return !any || (put_uint(c, "attention.sliding_window", window) && put_pattern(c, slides, n_layer));
}

/* ---- rope ---- */

/* GGUF multiplies the usual lengthening, 1 + ln(factor) / 10, where the folder names what it shall be. */
static bool read_yarn(const config *c, yyjson_val *o, double factor)
{
    u32 n_ctx, old_ctx;
    static const struct { const char *hf, *gguf; } betas[] = {
        { "beta_fast", "rope.scaling.yarn_beta_fast" },
        { "beta_slow", "rope.scaling.yarn_beta_slow" },
    };
    if (factor < 1) return bad(c, "factor", "must be at least 1 in a yarn scaling");
    if (find(o, "mscale") || find(o, "mscale_all_dim")) return unsupported(c, "mscale", "in a yarn scaling");
    if (yyjson_is_false(find(o, "truncate"))) return unsupported(c, "truncate", "false");
    if (!read_uint(c, c->text, "max_position_embeddings", INT32_MAX, 0, &n_ctx)
        || !read_uint(c, o, "original_max_position_embeddings", INT32_MAX, n_ctx, &old_ctx))
        return false;
    if (!put_text(c, "rope.scaling.type", "yarn") || !put_real(c, "rope.scaling.factor", factor)
        || !put_uint(c, "rope.scaling.original_context_length", old_ctx))
        return false;
    for (size_t i = 0; i < QN_COUNT(betas); i++) {
        double x;
        if (!find(o, betas[i].hf)) continue;
        if (!read_real(c, o, betas[i].hf, 1e9, 1, &x) || !put_real(c, betas[i].gguf, x)) return false;
    }
    const double usual = 1 + 0.1 * log(factor);
    double attn;
    if (!read_real(c, o, "attention_factor", 1e9, usual, &attn)) return false;
    return !find(o, "attention_factor") || put_real(c, "rope.scaling.attn_factor", attn / usual);
}

static bool read_llama3(const config *c, yyjson_val *o, double factor, qn_hf_rope *r)
{
    *r = (qn_hf_rope){ .llama3 = true, .factor = factor, .base = r->base };
    if (!read_real(c, o, "low_freq_factor", 1e6, 0, &r->low) || !read_real(c, o, "high_freq_factor", 1e6, 0, &r->high)
        || !read_real(c, o, "original_max_position_embeddings", 1e9, 0, &r->old_ctx))
        return false;
    return r->high > r->low || bad(c, "high_freq_factor", "must be above low_freq_factor");
}

/* o: rope_scaling, or rope_parameters, which also holds the base. */
static bool read_scaling(const config *c, yyjson_val *o, qn_hf_rope *r)
{
    yyjson_val *v = find(o, "rope_type");
    if (!v) v = find(o, "type");
    if (!o || (!v && !find(o, "factor")) || yyjson_equals_str(v, "default")) return true;
    if (!yyjson_is_str(v)) return bad(c, "rope_type", "must be a string");
    double factor;
    if (!read_real(c, o, "factor", 1e6, 0, &factor)) return false;
    const char *type = yyjson_get_str(v);
    if (!strcmp(type, "linear")) return put_text(c, "rope.scaling.type", type) && put_real(c, "rope.scaling.factor", factor);
    if (!strcmp(type, "llama3")) return read_llama3(c, o, factor, r);
    if (!strcmp(type, "yarn")) return read_yarn(c, o, factor);
    return unsupported(c, "rope_type", type);
}

/* Gemma's sliding layers turn at a base of their own, 10000 if nobody says otherwise. */
static bool read_local_rope(const config *c, yyjson_val *o, const char *key)
{
    double base;
    if (!read_real(c, o, key, 1e30, 1e4, &base)) return false;
    yyjson_val *type = find(o, "rope_type");
    if (o != c->text && type && !yyjson_equals_str(type, "default"))
        return unsupported(c, "rope_type", "of sliding_attention other than default");
    return base == 1e4 || put_real(c, "rope.freq_base_swa", base);
}

static bool read_rope(const config *c, qn_hf_rope *r)
{
    yyjson_val *full = find(c->text, "rope_parameters"), *local = find(full, "sliding_attention");
    const double usual = c->kind->gemma ? 1e6 : 1e4;
    if (full && !yyjson_is_obj(full)) return bad(c, "rope_parameters", "must be an object");
    if (find(full, "full_attention")) full = find(full, "full_attention");
    yyjson_val *scaling = full ? full : find(c->text, "rope_scaling");
    if (scaling && !yyjson_is_obj(scaling)) return bad(c, full ? "rope_parameters" : "rope_scaling", "must be an object");
    if (local && !yyjson_is_obj(local)) return bad(c, "sliding_attention", "must be an object");
    if (!read_real(c, find(full, "rope_theta") ? full : c->text, "rope_theta", 1e30, usual, &r->base)) return false;
    if (!put_real(c, "rope.freq_base", r->base) || !read_scaling(c, scaling, r)) return false;
    if (!c->kind->gemma) return true;
    return local ? read_local_rope(c, local, "rope_theta") : read_local_rope(c, c->text, "rope_local_base_freq");
}

/* ---- all of it ---- */

static bool put_general(const config *c, const char *dir)
{
    char real[PATH_MAX];
    const char *slash = realpath(dir, real) ? strrchr(real, '/') : NULL, *name = slash && slash[1] ? slash + 1 : "model";
    return qn_source_put_str(c->s, "general.architecture", c->kind->arch, strlen(c->kind->arch), c->e)
           && qn_source_put_str(c->s, "general.name", name, strlen(name), c->e)
           && (!c->kind->permuted || qn_source_put_bool(c->s, "quern.rope.neox", true, c->e));
}

static bool read_tied(const config *c, qn_hf_config *out)
{
    const char *key = "tie_word_embeddings";
    yyjson_val *o = find(c->text, key) ? c->text : c->root;
    bool tied;
    out->tied = -1;
    if (!find(o, key)) return true;
    if (!read_bool(c, o, key, true, &tied)) return false;
    out->tied = tied;
    return true;
}

/* A link that leads nowhere is there too: what is wrong with it, qn_path_within says. So does no memory. */
static bool has_config(const char *dir)
{
    struct stat st;
    char *path = qn_path_join(dir, "config.json", NULL);
    const bool there = !path || lstat(path, &st) == 0 || errno != ENOENT;
    qn_free(path);
    return there;
}

bool qn_hf_config_read(qn_source *s, const char *dir, qn_hf_config *out, qn_err *e)
{
    *out = (qn_hf_config){ 0 };
    if (!has_config(dir)) /* most often a folder of GGUF files */
        return qn_fail(e, QN_EIO, "%s: a folder without config.json is no Hugging Face model; name the model's file instead",
                       qn_path_tail(dir));
    char *path = qn_path_within(dir, "config.json", e);
    yyjson_doc *doc = path ? qn_json_read(path, MOST_CONFIG, e) : NULL;
    config c = { .s = s, .root = yyjson_doc_get_root(doc), .path = path ? qn_path_tail(path) : "", .e = e };
    bool ok = doc && (yyjson_is_obj(c.root) || qn_fail(e, QN_EFORMAT, "%s: must be a JSON object", c.path));
    ok = ok && find_kind(&c) && check_features(&c) && put_general(&c, dir) && read_sizes(&c, out)
         && read_rope(&c, &out->rope) && read_window(&c, out->n_layer) && read_tied(&c, out);
    if (ok) out->gemma = c.kind->gemma;
    yyjson_doc_free(doc);
    qn_free(path);
    return ok;
}
