/* tokenizer_json.c - a tokenizer out of a Hugging Face tokenizer.json: vocabulary, merges, added tokens, post-processor; and
 * the few things that only tokenizer_config.json says (which tokens begin and end a text). The lists of steps are read by
 * tokenizer_steps.c. Every id and every reference is checked here; nothing behind this file checks again. */
#include "text/tokenizer_json.h"

#include <stdio.h>
#include <string.h>

static bool is(const char *a, const char *b) { return strcmp(a, b) == 0; }

/* ---- vocabulary */

/* Ids may leave gaps, but not so many that a short file asks for a lot of memory. */
static bool check_id(qn_reader *r, const char *key, yyjson_val *id, size_t n)
{
    if (!yyjson_is_uint(id)) return qn_read_fail(r, key, "an id is not a whole number");
    const u64 most = 2 * (u64)n + 65536;
    if (yyjson_get_uint(id) < most) return true;
    return qn_fail(r->e, QN_EFORMAT, "%s: %s: id %llu is out of range for %zu tokens", r->what, key,
                   (unsigned long long)yyjson_get_uint(id), n);
}

/* One more than the highest id of both lists. */
static bool count_ids(qn_reader *r, yyjson_val *vocab, yyjson_val *added, size_t *out)
{
    const size_t n = yyjson_obj_size(vocab) + yyjson_arr_size(added);
    size_t i, max, top = 0;
    yyjson_val *key, *val;
    yyjson_obj_foreach(vocab, i, max, key, val)
    {
        if (!check_id(r, "model.vocab", val, n)) return false;
        if (yyjson_get_uint(val) >= top) top = (size_t)yyjson_get_uint(val) + 1;
    }
    yyjson_arr_foreach(added, i, max, val)
    {
        yyjson_val *id = yyjson_obj_get(val, "id");
        if (!check_id(r, "added_tokens", id, n)) return false;
        if (yyjson_get_uint(id) >= top) top = (size_t)yyjson_get_uint(id) + 1;
    }
    if (top == 0) return qn_read_fail(r, "model.vocab", "is empty");
    *out = top;
    return true;
}

static bool read_vocab(qn_reader *r, yyjson_val *vocab)
{
    qn_tokenizer *t = r->t;
    size_t i, max;
    yyjson_val *key, *val;
    if (!qn_table_reserve(&t->ids, yyjson_obj_size(vocab), r->e)) return false;
    yyjson_obj_foreach(vocab, i, max, key, val)
    {
        const u32 id = (u32)yyjson_get_uint(val);
        if (t->flags[id] & TOKEN_there) {
            return qn_fail(r->e, QN_EFORMAT, "%s: model.vocab: two tokens have the id %u", r->what, id);
        }
        qn_str *text = &t->texts[id];
        if (!qn_tokenizer_copy(t, (qn_str){ yyjson_get_str(key), yyjson_get_len(key) }, text, r->e)) return false;
        t->flags[id] = TOKEN_there;
        t->types[id] = QN_TOKEN_NORMAL;
        const u32 stands = qn_table_put(&t->ids, text->p, text->n, id, r->e);
        if (stands == QN_NONE) return false;
        if (stands == id) continue;
        return qn_fail(r->e, QN_EFORMAT, "%s: model.vocab: a token is listed twice, as %u and %u", r->what, stands, id);
    }
    return true;
}

/* ---- added tokens */

static bool read_added(qn_reader *r, yyjson_val *v, qn_added *x, bool *normalized)
{
    qn_tokenizer *t = r->t;
    bool special;
    qn_str text;
    if (!yyjson_is_obj(v)) return qn_read_fail(r, "added_tokens", "must hold objects");
    if (!qn_read_need_str(r, v, "content", &text) || !qn_read_bool(r, v, "special", false, &special) ||
        !qn_read_bool(r, v, "normalized", !special, normalized) || !qn_read_bool(r, v, "single_word", false, &x->single_word) ||
        !qn_read_bool(r, v, "lstrip", false, &x->lstrip) || !qn_read_bool(r, v, "rstrip", false, &x->rstrip)) {
        return false;
    }
    const u32 id = (u32)yyjson_get_uint(yyjson_obj_get(v, "id"));
    x->id = (i32)id;
    x->text = text;
    t->texts[id] = text;
    t->types[id] = special ? QN_TOKEN_CONTROL : QN_TOKEN_USER;
    t->flags[id] = (u8)(TOKEN_there | TOKEN_added | (special ? TOKEN_special | TOKEN_control : 0));
    return qn_table_put(&t->added_ids, text.p, text.n, id, r->e) != QN_NONE;
}

/* The spelling that a token has once text is normalised. */
static bool normalised(qn_reader *r, qn_str text, qn_str *out)
{
    qn_buf buf = { 0 }, tmp = { 0 };
    qn_matcher m = { 0 };
    qn_buf_put(&buf, text.p, text.n);
    bool ok = !buf.failed || qn_fail(r->e, QN_ENOMEM, "out of memory: %zu bytes asked for", text.n);
    ok = ok && qn_matcher_open(&m, r->e) && qn_normalise(r->t->norms, r->t->n_norms, &m, &buf, &tmp, r->e) &&
         qn_tokenizer_copy(r->t, (qn_str){ buf.p, buf.n }, out, r->e);
    qn_matcher_close(&m);
    qn_buf_close(&buf);
    qn_buf_close(&tmp);
    return ok;
}

static bool read_all_added(qn_reader *r, yyjson_val *list)
{
    qn_tokenizer *t = r->t;
    size_t i, max;
    yyjson_val *v;
    t->added = qn_tokenizer_array(t, yyjson_arr_size(list), sizeof *t->added, r->e);
    if (!t->added) return false;
    yyjson_arr_foreach(list, i, max, v)
    {
        bool normalized;
        qn_added *x = &t->added[t->n_added];
        if (!read_added(r, v, x, &normalized)) return false;
        const u32 k = (u32)t->n_added++;
        if (!normalized) {
            if (!qn_trie_add(&t->raw, x->text, k, r->e)) return false;
            continue;
        }
        qn_str text;
        if (t->flags[x->id] & TOKEN_control && !qn_trie_add(&t->marked, x->text, k, r->e)) return false;
        if (!normalised(r, x->text, &text) || !qn_trie_add(&t->normal, text, k, r->e)) return false;
    }
    return true;
}

/* ---- merges */

static i32 find_token(const qn_tokenizer *t, const char *p, size_t n) { return (i32)qn_table_get(&t->ids, p, n); }

/* "left right" or ["left", "right"] */
static bool read_pair(yyjson_val *v, qn_str *left, qn_str *right)
{
    if (yyjson_is_arr(v) && yyjson_arr_size(v) == 2) {
        yyjson_val *a = yyjson_arr_get(v, 0), *b = yyjson_arr_get(v, 1);
        *left = (qn_str){ yyjson_get_str(a), yyjson_get_len(a) };
        *right = (qn_str){ yyjson_get_str(b), yyjson_get_len(b) };
        return left->p && right->p;
    }
    const char *s = yyjson_get_str(v);
    const size_t n = s ? yyjson_get_len(v) : 0;
    const char *space = s ? memchr(s, ' ', n) : NULL;
    if (!space || memchr(space + 1, ' ', n - (size_t)(space + 1 - s))) return false;
    *left = (qn_str){ s, (size_t)(space - s) };
    *right = (qn_str){ space + 1, n - left->n - 1 };
    return true;
}

static bool read_merges(qn_reader *r, yyjson_val *list)
{
    qn_tokenizer *t = r->t;
    size_t i, max;
    yyjson_val *v;
    qn_buf both = { 0 };
    const char *why = NULL;
    if (!yyjson_is_arr(list)) return qn_read_fail(r, "model.merges", "must be a list");
    if (yyjson_arr_size(list) >= UINT32_MAX / 4) return qn_read_fail(r, "model.merges", "too many");
    if (!qn_bpe_reserve(&t->bpe, yyjson_arr_size(list), r->e)) return false;
    yyjson_arr_foreach(list, i, max, v)
    {
        qn_str left, right;
        if (!read_pair(v, &left, &right)) {
            why = "is not two tokens";
            break;
        }
        const size_t skip = right.n >= t->bpe.prefix.n ? t->bpe.prefix.n : 0;
        both.n = 0;
        qn_buf_put(&both, left.p, left.n);
        qn_buf_put(&both, right.p + skip, right.n - skip);
        const i32 a = find_token(t, left.p, left.n), b = find_token(t, right.p, right.n);
        if (both.failed) {
            qn_fail(r->e, QN_ENOMEM, "out of memory: a merge of %zu bytes", left.n + right.n);
            break;
        }
        const i32 c = find_token(t, both.p, both.n);
        if (a < 0 || b < 0 || c < 0) {
            why = "names a token that the vocabulary does not have";
            break;
        }
        if (!qn_bpe_add(&t->bpe, (u32)a, (u32)b, (u32)i, c, r->e)) break;
    }
    qn_buf_close(&both);
    if (why) return qn_fail(r->e, QN_EFORMAT, "%s: model.merges: number %zu %s", r->what, i, why);
    return i == yyjson_arr_size(list);
}

static bool read_model(qn_reader *r, yyjson_val *model)
{
    qn_tokenizer *t = r->t;
    qn_str unk, prefix, suffix;
    if (!qn_read_str(r, model, "unk_token", &unk) || !qn_read_str(r, model, "continuing_subword_prefix", &prefix) ||
        !qn_read_str(r, model, "end_of_word_suffix", &suffix) ||
        !qn_read_bool(r, model, "byte_fallback", false, &t->bpe.byte_fallback) ||
        !qn_read_bool(r, model, "fuse_unk", false, &t->bpe.fuse_unk) ||
        !qn_read_bool(r, model, "ignore_merges", false, &t->bpe.ignore_merges) ||
        !qn_tokenizer_copy(t, prefix, &t->bpe.prefix, r->e) || !qn_tokenizer_copy(t, suffix, &t->bpe.suffix, r->e)) {
        return false;
    }
    qn_bpe_init(&t->bpe, &t->ids);
    t->bpe.unk = t->unk = unk.p ? find_token(t, unk.p, unk.n) : -1;
    return read_merges(r, yyjson_obj_get(model, "merges"));
}

/* ---- post-processor */

static bool push_special(qn_reader *r, i32 **list, size_t *n, yyjson_val *id)
{
    const u64 v = yyjson_is_uint(id) ? yyjson_get_uint(id) : UINT64_MAX;
    if (v >= r->t->n) return qn_read_fail(r, "post_processor", "names a token id that the vocabulary does not have");
    if (*n == QN_MOST_STEPS) return qn_read_fail(r, "post_processor", "adds too many tokens");
    if (!*list) *list = qn_tokenizer_array(r->t, QN_MOST_STEPS, sizeof **list, r->e);
    if (!*list) return false;
    (*list)[(*n)++] = (i32)v;
    return true;
}

static bool read_template(qn_reader *r, yyjson_val *v)
{
    qn_tokenizer *t = r->t;
    yyjson_val *single = yyjson_obj_get(v, "single"), *specials = yyjson_obj_get(v, "special_tokens"), *x, *id;
    size_t i, max, k, n_ids;
    bool behind = false;
    if (!yyjson_is_arr(single)) return qn_read_fail(r, "post_processor.single", "must be a list");
    yyjson_arr_foreach(single, i, max, x)
    {
        yyjson_val *token = yyjson_obj_get(x, "SpecialToken");
        if (!token) {
            const bool text = !behind && yyjson_obj_get(x, "Sequence");
            if (!text) return qn_read_fail(r, "post_processor.single", "is not one text with tokens around it");
            behind = true;
            continue;
        }
        const char *name = yyjson_get_str(yyjson_obj_get(token, "id"));
        yyjson_val *ids = name ? yyjson_obj_get(yyjson_obj_get(specials, name), "ids") : NULL;
        if (!yyjson_is_arr(ids)) return qn_read_fail(r, "post_processor.special_tokens", "misses a token that single names");
        yyjson_arr_foreach(ids, k, n_ids, id)
        {
            if (!push_special(r, behind ? &t->tail : &t->head, behind ? &t->n_tail : &t->n_head, id)) return false;
        }
    }
    return true;
}

/* ["<s>", 0] pairs named cls and sep */
static bool read_cls_sep(qn_reader *r, yyjson_val *v)
{
    qn_tokenizer *t = r->t;
    return push_special(r, &t->head, &t->n_head, yyjson_arr_get(yyjson_obj_get(v, "cls"), 1)) &&
           push_special(r, &t->tail, &t->n_tail, yyjson_arr_get(yyjson_obj_get(v, "sep"), 1));
}

static bool read_post(qn_reader *r, yyjson_val *v)
{
    if (!v || yyjson_is_null(v)) return true;
    const char *type = qn_read_type(r, v, "post_processor");
    if (!type) return false;
    if (is(type, "ByteLevel")) return true; /* moves offsets only */
    if (is(type, "TemplateProcessing")) return read_template(r, v);
    if (is(type, "RobertaProcessing") || is(type, "BertProcessing")) return read_cls_sep(r, v);
    if (!is(type, "Sequence")) {
        return qn_fail(r->e, QN_EUNSUPPORTED, "%s: post_processor: type %.64s is not supported", r->what, type);
    }
    size_t i, max;
    yyjson_val *x;
    yyjson_arr_foreach(yyjson_obj_get(v, "processors"), i, max, x)
    {
        if (!read_post(r, x)) return false; /* as deep as the file, which the parser limits */
    }
    return true;
}

/* ---- tokenizer_config.json */

/* "bos_token" is a text, or an added token with its text in "content". -1: not there. */
static i32 config_token(const qn_tokenizer *t, yyjson_val *config, const char *key)
{
    yyjson_val *v = yyjson_obj_get(config, key);
    if (yyjson_is_obj(v)) v = yyjson_obj_get(v, "content");
    return yyjson_is_str(v) ? qn_token_find(t, yyjson_get_str(v), yyjson_get_len(v)) : -1;
}

static bool read_config(qn_reader *r, const char *json, size_t n)
{
    qn_tokenizer *t = r->t;
    t->bos = t->eos = t->pad = -1;
    if (!json) return true;
    yyjson_doc *doc = qn_json_parse(json, n, 0, "tokenizer_config.json", r->e);
    if (!doc) return qn_fail_within(r->e, r->what);
    yyjson_val *root = yyjson_doc_get_root(doc);
    t->bos = config_token(t, root, "bos_token");
    t->eos = config_token(t, root, "eos_token");
    t->pad = config_token(t, root, "pad_token");
    if (t->unk < 0) t->unk = config_token(t, root, "unk_token");
    yyjson_doc_free(doc);
    return true;
}

/* ---- the whole file */

static bool read_root(qn_reader *r, yyjson_val *root, const char *config, size_t n_config)
{
    qn_tokenizer *t = r->t;
    yyjson_val *model = yyjson_obj_get(root, "model"), *added = yyjson_obj_get(root, "added_tokens");
    if (!yyjson_is_obj(model)) return qn_read_fail(r, "model", "missing");
    yyjson_val *vocab = yyjson_obj_get(model, "vocab");
    const char *type = yyjson_get_str(yyjson_obj_get(model, "type"));
    if (!type && yyjson_obj_get(model, "merges")) type = "BPE"; /* old files do not say */
    if (!type) return qn_read_fail(r, "model.type", "missing");
    if (!is(type, "BPE")) return qn_fail(r->e, QN_EUNSUPPORTED, "%s: model: type %.64s is not supported", r->what, type);
    if (!yyjson_is_obj(vocab)) return qn_read_fail(r, "model.vocab", "must be an object");
    if (added && !yyjson_is_null(added) && !yyjson_is_arr(added)) return qn_read_fail(r, "added_tokens", "must be a list");
    size_t n = 0;
    if (!count_ids(r, vocab, added, &n) || !qn_tokenizer_reserve(t, n, r->e) || !read_vocab(r, vocab) || !read_model(r, model) ||
        !qn_read_normalizer(r, yyjson_obj_get(root, "normalizer")) || !read_all_added(r, added) ||
        !qn_read_pre_tokenizer(r, yyjson_obj_get(root, "pre_tokenizer")) ||
        !read_post(r, yyjson_obj_get(root, "post_processor")) || !qn_read_decoder(r, yyjson_obj_get(root, "decoder")) ||
        !read_config(r, config, n_config)) {
        return false;
    }
    const bool bytes = t->n_pres && t->pres[t->n_pres - 1].kind == PRE_bytes;
    snprintf(t->kind, sizeof t->kind, "BPE (%s)", bytes ? "byte level" : t->bpe.byte_fallback ? "byte fallback" : "characters");
    qn_tokenizer_finish(t);
    return true;
}

qn_tokenizer *qn_tokenizer_from_json(const char *json, size_t n, const char *config_json, size_t n_config, const char *what,
                                     qn_err *e)
{
    qn_tokenizer *t = qn_new(sizeof *t, e);
    yyjson_doc *doc = t && (t->what = qn_strdup(what, e)) ? qn_json_parse(json, n, 0, what, e) : NULL;
    qn_reader r = { .t = t, .what = what, .e = e };
    const bool ok = doc && read_root(&r, yyjson_doc_get_root(doc), config_json, n_config);
    yyjson_doc_free(doc);
    if (ok) return t;
    qn_tokenizer_close(t);
    return NULL;
}
