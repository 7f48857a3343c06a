/* read_text.c - the text side of a model: its tokenizer and its chat template. A GGUF file has both among its keys; a folder has
 * tokenizer.json, tokenizer_config.json and perhaps chat_template.jinja. A model without vocabulary is a model still. A
 * template that cannot be parsed is kept with the reason: completion works without it, and chat says why it does not. */
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "format/gguf.h"
#include "model/chat.h"


#define MOST_JSON ((size_t)256 << 20)   /* the largest tokenizer.json in use has 33 MB */

/* ---- from GGUF keys */

static bool strings(const qn_source *s, const char *key, bool needed, const qn_str **out, size_t *n, qn_err *e)
{
    const qn_value *v = qn_source_get(s, key);
    if (!v && !needed) return true;
    if (!v) return qn_fail(e, QN_EFORMAT, "%s: missing key %s", s->path, key);
    if (v->kind != KIND_array || v->item != KIND_str)
        return qn_fail(e, QN_EFORMAT, "%s: %s is no array of strings", s->path, key);
    *out = v->strs;
    *n = v->n;
    return true;
}

/* An array of n numbers, copied out of the file, where it may lie unaligned. */
static bool numbers(const qn_source *s, const char *key, size_t n, qn_arena *a, float **floats, i32 **ints, qn_err *e)
{
    const qn_value *v = qn_source_get(s, key);
    if (!v) return true;
    const bool ok = v->kind == KIND_array && v->data && v->n == n && v->item != KIND_bool;
    if (!ok) return qn_fail(e, QN_EFORMAT, "%s: %s is no array of %zu numbers", s->path, key, n);
    void *copy = qn_arena_new(a, n * 4, e);
    if (!copy) return false;
    for (size_t i = 0; i < n; i++) {
        if (floats) ((float *)copy)[i] = (float)qn_value_at(v, i);
        else ((i32 *)copy)[i] = (i32)qn_value_int_at(v, i);
    }
    if (floats) *floats = copy;
    else *ints = copy;
    return true;
}

/* An id that is no integer or no token of this vocabulary is dropped: the model runs without it. */
static void maybe_id(const qn_source *s, const char *key, size_t n, i32 *out)
{
    u32 id;
    qn_err ignored;
    if (n && qn_source_get(s, key) && qn_source_u32(s, key, 0, (u32)n - 1, &id, &ignored)) *out = (i32)id;
}

static void maybe_flag(const qn_source *s, const char *key, int *out)
{
    bool v;
    qn_err ignored;
    if (qn_source_get(s, key) && qn_source_bool(s, key, &v, &ignored)) *out = v;
}

static bool read_vocab(const qn_source *s, qn_arena *a, qn_vocab *v, qn_err *e)
{
    *v = (qn_vocab)QN_VOCAB_DEFAULT;
    float *scores = NULL;
    i32 *types = NULL;
    qn_err ignored;
    if (!qn_source_str(s, "tokenizer.ggml.model", &v->model, e)) return false;
    if (!strings(s, "tokenizer.ggml.tokens", true, &v->tokens, &v->n, e)) return false;
    if (v->n == 0 || v->n > 1u << 24) return qn_fail(e, QN_EFORMAT, "%s: a vocabulary of %zu tokens", s->path, v->n);
    if (!strings(s, "tokenizer.ggml.merges", false, &v->merges, &v->n_merges, e)) return false;
    if (!numbers(s, "tokenizer.ggml.scores", v->n, a, &scores, NULL, e)) return false;
    if (!numbers(s, "tokenizer.ggml.token_type", v->n, a, NULL, &types, e)) return false;
    v->scores = scores;
    v->types = types;
    if (!qn_source_str(s, "tokenizer.ggml.pre", &v->pre, &ignored)) v->pre = (qn_str){ "", 0 };
    maybe_id(s, "tokenizer.ggml.bos_token_id", v->n, &v->bos);
    maybe_id(s, "tokenizer.ggml.eos_token_id", v->n, &v->eos);
    maybe_id(s, "tokenizer.ggml.eot_token_id", v->n, &v->eot);
    maybe_id(s, "tokenizer.ggml.eom_token_id", v->n, &v->eom);
    maybe_id(s, "tokenizer.ggml.unknown_token_id", v->n, &v->unk);
    maybe_id(s, "tokenizer.ggml.padding_token_id", v->n, &v->pad);
    maybe_flag(s, "tokenizer.ggml.add_bos_token", &v->add_bos);
    maybe_flag(s, "tokenizer.ggml.add_eos_token", &v->add_eos);
    maybe_flag(s, "tokenizer.ggml.add_space_prefix", &v->add_space_prefix);
    maybe_flag(s, "tokenizer.ggml.remove_extra_whitespaces", &v->remove_extra_whitespaces);
    return true;
}

/* *out NULL: the file says that it has no vocabulary. */
static bool tokenizer_of_source(const qn_source *s, qn_tokenizer **out, qn_err *e)
{
    const qn_value *model = qn_source_get(s, "tokenizer.ggml.model");
    *out = NULL;
    if (!model || (model->kind == KIND_str && model->as.s.n == 8 && !memcmp(model->as.s.p, "no_vocab", 8))) return true;
    qn_arena a = { 0 };
    qn_vocab v;
    if (read_vocab(s, &a, &v, e)) *out = qn_tokenizer_from_vocab(&v, s->path, e);
    qn_arena_close(&a);
    return *out != NULL;
}

/* ---- from the files of a folder */

/* *text NULL: there is no such file. */
static bool read_beside(const char *dir, const char *name, char **text, size_t *n, qn_err *e)
{
    char *path = qn_path_join(dir, name, e);
    if (!path) return false;
    const bool there = qn_is_file(path);
    qn_free(path);
    if (!there) return true;
    path = qn_path_within(dir, name, e);
    const bool ok = path && qn_file_read(path, MOST_JSON, text, n, e);
    qn_free(path);
    return ok;
}

static bool tokenizer_of_folder(const char *dir, qn_tokenizer **out, qn_err *e)
{
    char *json = NULL, *config = NULL, *path = qn_path_join(dir, "tokenizer.json", e);
    size_t n_json = 0, n_config = 0;
    bool ok = path && read_beside(dir, "tokenizer.json", &json, &n_json, e) &&
              read_beside(dir, "tokenizer_config.json", &config, &n_config, e);
    if (ok && json) {
        *out = qn_tokenizer_from_json(json, n_json, config, n_config, path, e);
        ok = *out != NULL;
    }
    qn_free(json);
    qn_free(config);
    qn_free(path);
    return ok;
}

static bool template_of_folder(const char *dir, char **text, qn_err *e)
{
    char *jinja = NULL, *config = NULL, *path = qn_path_join(dir, "tokenizer_config.json", e);
    size_t n_jinja = 0, n_config = 0;
    bool ok = path && read_beside(dir, "chat_template.jinja", &jinja, &n_jinja, e) &&
              read_beside(dir, "tokenizer_config.json", &config, &n_config, e);
    if (ok) ok = qn_chat_template(jinja, n_jinja, config, n_config, path, text, e);
    qn_free(jinja);
    qn_free(config);
    qn_free(path);
    return ok;
}

static bool template_of_source(const qn_source *s, char **text, qn_err *e)
{
    const qn_value *v = qn_source_get(s, "tokenizer.chat_template");
    *text = NULL;
    return !v || v->kind != KIND_str || (*text = qn_strndup(v->as.s.p, v->as.s.n, e)) != NULL;
}

/* ---- for a model */

static bool read_template(qn_model *m, const char *path, qn_err *e)
{
    qn_err why = { 0 };
    if (qn_is_dir(path) ? template_of_folder(path, &m->chat_source, &why) : template_of_source(m->src, &m->chat_source, &why)) {
        if (!m->chat_source) return true;
        m->chat = qn_template_open(m->chat_source, strlen(m->chat_source), "chat template", &why);
        if (m->chat) return true;
    }
    m->chat_error = why;
    return why.code != QN_ENOMEM || qn_fail(e, QN_ENOMEM, "%s", why.msg);
}

bool qn_model_read_text(qn_model *m, const char *path, qn_err *e)
{
    const bool ok = qn_is_dir(path) ? tokenizer_of_folder(path, &m->tok, e) : tokenizer_of_source(m->src, &m->tok, e);
    return ok && read_template(m, path, e);
}

/* ---- alone */

/* The folder of a .json file, so that its siblings are found. */
static char *folder_of(const char *path, qn_err *e)
{
    const char *slash = strrchr(path, '/');
    return slash ? qn_strndup(path, (size_t)(slash - path) + (slash == path), e) : qn_strdup(".", e);
}

bool qn_read_text_at(const char *path, qn_tokenizer **tok, char **chat, qn_err *e)
{
    *tok = NULL;
    *chat = NULL;
    bool ok;
    if (qn_is_dir(path) || qn_ends_with(path, ".json")) {
        char *dir = qn_is_dir(path) ? qn_strdup(path, e) : folder_of(path, e);
        ok = dir && tokenizer_of_folder(dir, tok, e) && template_of_folder(dir, chat, e);
        qn_free(dir);
    } else {
        qn_source *s = qn_gguf_open(path, e);
        ok = s && tokenizer_of_source(s, tok, e) && template_of_source(s, chat, e);
        qn_source_close(s);
    }
    if (ok) return true;
    qn_tokenizer_close(*tok);
    qn_free(*chat);
    *tok = NULL;
    *chat = NULL;
    return false;
}

static qn_tokenizer *open_json(const char *path, qn_err *e)
{
    qn_tokenizer *t = NULL;
    char *json = NULL, *config = NULL, *dir = folder_of(path, e);
    size_t n_json = 0, n_config = 0;
    if (dir && qn_file_read(path, MOST_JSON, &json, &n_json, e) &&
        read_beside(dir, "tokenizer_config.json", &config, &n_config, e))
        t = qn_tokenizer_from_json(json, n_json, config, n_config, path, e);
    qn_free(json);
    qn_free(config);
    qn_free(dir);
    return t;
}

qn_tokenizer *qn_tokenizer_open(const char *path, qn_err *e)
{
    qn_tokenizer *t = NULL;
    if (qn_is_dir(path)) {
        if (tokenizer_of_folder(path, &t, e) && !t) qn_fail(e, QN_EFORMAT, "%s: no tokenizer.json in this folder", path);
    } else if (qn_ends_with(path, ".json")) {
        t = open_json(path, e);
    } else {
        qn_source *s = qn_gguf_open(path, e);
        if (s && tokenizer_of_source(s, &t, e) && !t) qn_fail(e, QN_EFORMAT, "%s: this file has no vocabulary", path);
        qn_source_close(s);
    }
    return t;
}
