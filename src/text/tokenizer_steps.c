/* tokenizer_steps.c - the normalizer, pre_tokenizer and decoder of a tokenizer.json, made into lists of steps. Nested
 * sequences become one list; a type that is not known is refused by name. */
#include <string.h>

#include "text/tokenizer_json.h"

bool qn_read_fail(qn_reader *r, const char *key, const char *why)
{
    return qn_fail(r->e, QN_EFORMAT, "%s: %s: %s", r->what, key, why);
}

bool qn_read_bool(qn_reader *r, yyjson_val *v, const char *key, bool missing, bool *out)
{
    yyjson_val *x = yyjson_obj_get(v, key);
    *out = missing;
    if (!x || yyjson_is_null(x)) return true;
    if (!yyjson_is_bool(x)) return qn_read_fail(r, key, "must be true or false");
    *out = yyjson_get_bool(x);
    return true;
}

bool qn_read_str(qn_reader *r, yyjson_val *v, const char *key, qn_str *out)
{
    yyjson_val *x = yyjson_obj_get(v, key);
    *out = (qn_str){ NULL, 0 };
    if (!x || yyjson_is_null(x)) return true;
    if (!yyjson_is_str(x)) return qn_read_fail(r, key, "must be a string");
    *out = (qn_str){ yyjson_get_str(x), yyjson_get_len(x) };
    return true;
}

bool qn_read_need_str(qn_reader *r, yyjson_val *v, const char *key, qn_str *out)
{
    qn_str s;
    if (!qn_read_str(r, v, key, &s)) return false;
    if (!s.p) return qn_read_fail(r, key, "missing");
    return qn_tokenizer_copy(r->t, s, out, r->e);
}

const char *qn_read_type(qn_reader *r, yyjson_val *v, const char *key)
{
    const char *type = yyjson_get_str(yyjson_obj_get(v, "type"));
    if (!type) qn_read_fail(r, key, yyjson_is_obj(v) ? "has no type" : "must be an object");
    return type;
}

static bool is(const char *a, const char *b) { return strcmp(a, b) == 0; }

static bool unknown(qn_reader *r, const char *key, const char *type)
{
    return qn_fail(r->e, QN_EUNSUPPORTED, "%s: %s: type %.64s is not supported", r->what, key, type);
}

/* {"String": ".."} or {"Regex": ".."}: the text always, a regex for the latter. */
static bool read_pattern(qn_reader *r, yyjson_val *v, const char *key, qn_str *literal, qn_regex **regex)
{
    yyjson_val *p = yyjson_obj_get(v, "pattern");
    qn_str s;
    if (!yyjson_is_obj(p)) return qn_read_fail(r, key, "pattern must be an object");
    if (!qn_read_str(r, p, "String", &s)) return false;
    if (s.p) return qn_tokenizer_copy(r->t, s, literal, r->e);
    if (!qn_read_need_str(r, p, "Regex", literal)) return false;
    *regex = qn_regex_open(literal->p, literal->n, r->what, r->e);
    return *regex != NULL;
}

/* Calls each() for v, or for the members of v if it is a sequence, or of sequences in it. */
typedef bool (*each_fn)(qn_reader *r, yyjson_val *v, const char *type);

static bool walk(qn_reader *r, yyjson_val *v, const char *key, const char *members, each_fn each)
{
    if (!v || yyjson_is_null(v)) return true;
    const char *type = qn_read_type(r, v, key);
    if (!type) return false;
    if (!is(type, "Sequence")) return each(r, v, type);
    yyjson_val *list = yyjson_obj_get(v, members), *x;
    if (!yyjson_is_arr(list)) return qn_read_fail(r, members, "must be a list");
    size_t i, n;
    yyjson_arr_foreach(list, i, n, x)
    {
        if (!walk(r, x, key, members, each)) return false; /* as deep as the file, which the parser limits */
    }
    return true;
}

/* ---- normalizer */

static const struct { const char *type; qn_norm_kind kind; qn_form form; } plain_norms[] = {
    { "NFC", NORM_form, QN_NFC },        { "NFD", NORM_form, QN_NFD },
    { "NFKC", NORM_form, QN_NFKC },      { "NFKD", NORM_form, QN_NFKD },
    { "Lowercase", NORM_lowercase, 0 },  { "StripAccents", NORM_strip_accents, 0 },
    { "Nmt", NORM_nmt, 0 },              { "ByteLevel", NORM_bytes, 0 },
};

static bool add_norm(qn_reader *r, yyjson_val *v, const char *type)
{
    qn_tokenizer *t = r->t;
    if (t->n_norms == QN_MOST_STEPS) return qn_read_fail(r, "normalizer", "too many steps");
    qn_norm *x = &t->norms[t->n_norms++];
    for (size_t i = 0; i < QN_COUNT(plain_norms); i++) {
        if (!is(type, plain_norms[i].type)) continue;
        x->kind = plain_norms[i].kind;
        x->form = plain_norms[i].form;
        return true;
    }
    if (is(type, "Prepend")) {
        x->kind = NORM_prepend;
        return qn_read_need_str(r, v, "prepend", &x->content);
    }
    if (is(type, "Replace")) {
        x->kind = NORM_replace;
        return read_pattern(r, v, "normalizer", &x->literal, &x->regex) && qn_read_need_str(r, v, "content", &x->content);
    }
    if (is(type, "Strip")) {
        x->kind = NORM_strip;
        return qn_read_bool(r, v, "strip_left", true, &x->left) && qn_read_bool(r, v, "strip_right", true, &x->right);
    }
    return unknown(r, "normalizer", type);
}

bool qn_read_normalizer(qn_reader *r, yyjson_val *v)
{
    r->t->norms = qn_tokenizer_array(r->t, QN_MOST_STEPS, sizeof(qn_norm), r->e);
    return r->t->norms && walk(r, v, "normalizer", "normalizers", add_norm);
}

/* ---- pre_tokenizer */

static qn_pre *new_pre(qn_reader *r)
{
    if (r->t->n_pres + 4 > QN_MOST_STEPS) {
        qn_read_fail(r, "pre_tokenizer", "too many steps");
        return NULL;
    }
    return &r->t->pres[r->t->n_pres++];
}

/* A split by a pattern of ours. */
static bool add_regex(qn_reader *r, const char *pattern, qn_split how, bool invert)
{
    if (!new_pre(r)) return false;
    size_t k = r->t->n_pres - 1;
    if (!qn_tokenizer_add_split(r->t, &k, pattern, strlen(pattern), r->e)) return false;
    r->t->pres[k - 1].how = how;
    r->t->pres[k - 1].invert = invert;
    return true;
}

static bool read_behavior(qn_reader *r, yyjson_val *v, const char *missing, qn_split *out)
{
    static const struct { const char *name; qn_split how; } all[] = {
        { "Isolated", SPLIT_isolated },       { "Removed", SPLIT_removed },       { "MergedWithPrevious", SPLIT_previous },
        { "MergedWithNext", SPLIT_next },     { "Contiguous", SPLIT_contiguous },
    };
    qn_str s;
    if (!qn_read_str(r, v, "behavior", &s)) return false;
    const char *name = s.p ? s.p : missing;
    for (size_t i = 0; i < QN_COUNT(all); i++) {
        if (!is(name, all[i].name)) continue;
        *out = all[i].how;
        return true;
    }
    return qn_read_fail(r, "behavior", "is none that is known");
}

static bool add_byte_level(qn_reader *r, yyjson_val *v)
{
    bool prefix, regex;
    if (!qn_read_bool(r, v, "add_prefix_space", true, &prefix) || !qn_read_bool(r, v, "use_regex", true, &regex)) return false;
    qn_pre *x;
    if (prefix) {
        if (!(x = new_pre(r))) return false;
        x->kind = PRE_prefix_space;
    }
    if (regex && !add_regex(r, qn_gpt2_split, SPLIT_isolated, false)) return false;
    if (!(x = new_pre(r))) return false;
    x->kind = PRE_bytes;
    return true;
}

/* Old files say add_prefix_space, new ones prepend_scheme. */
static bool read_scheme(qn_reader *r, yyjson_val *v, qn_prepend *out)
{
    qn_str s;
    bool prefix;
    if (!qn_read_str(r, v, "prepend_scheme", &s) || !qn_read_bool(r, v, "add_prefix_space", true, &prefix)) return false;
    if (!s.p) *out = prefix ? PREPEND_always : PREPEND_never;
    else if (is(s.p, "always")) *out = PREPEND_always;
    else if (is(s.p, "first")) *out = PREPEND_first;
    else if (is(s.p, "never")) *out = PREPEND_never;
    else return qn_read_fail(r, "prepend_scheme", "must be always, first or never");
    return true;
}

static bool add_metaspace(qn_reader *r, yyjson_val *v)
{
    qn_pre *x = new_pre(r);
    if (!x) return false;
    x->kind = PRE_metaspace;
    return qn_read_need_str(r, v, "replacement", &x->pattern) && read_scheme(r, v, &x->prepend) &&
           qn_read_bool(r, v, "split", true, &x->split);
}

static bool add_split(qn_reader *r, yyjson_val *v)
{
    qn_pre *x = new_pre(r);
    if (!x) return false;
    x->kind = PRE_split;
    return read_pattern(r, v, "pre_tokenizer", &x->pattern, &x->regex) && read_behavior(r, v, "Isolated", &x->how) &&
           qn_read_bool(r, v, "invert", false, &x->invert);
}

static bool add_delimiter(qn_reader *r, yyjson_val *v)
{
    qn_pre *x = new_pre(r);
    if (!x) return false;
    x->kind = PRE_split;
    x->how = SPLIT_removed;
    return qn_read_need_str(r, v, "delimiter", &x->pattern);
}

static const char punctuation[] = "[\\p{P}!-/:-@\\[-`{-~]";

static bool add_digits(qn_reader *r, yyjson_val *v)
{
    bool each;
    if (!qn_read_bool(r, v, "individual_digits", false, &each)) return false;
    return add_regex(r, "\\p{N}", each ? SPLIT_isolated : SPLIT_contiguous, false);
}

static bool add_pre(qn_reader *r, yyjson_val *v, const char *type)
{
    qn_split how = SPLIT_isolated;
    if (is(type, "ByteLevel")) return add_byte_level(r, v);
    if (is(type, "Split")) return add_split(r, v);
    if (is(type, "Metaspace")) return add_metaspace(r, v);
    if (is(type, "Digits")) return add_digits(r, v);
    if (is(type, "CharDelimiterSplit")) return add_delimiter(r, v);
    if (is(type, "Whitespace")) return add_regex(r, "\\w+|[^\\w\\s]+", SPLIT_removed, true);
    if (is(type, "WhitespaceSplit")) return add_regex(r, "\\s", SPLIT_removed, false);
    if (is(type, "Punctuation")) return read_behavior(r, v, "Isolated", &how) && add_regex(r, punctuation, how, false);
    if (is(type, "BertPreTokenizer")) {
        return add_regex(r, "\\s", SPLIT_removed, false) && add_regex(r, punctuation, SPLIT_isolated, false);
    }
    return unknown(r, "pre_tokenizer", type);
}

bool qn_read_pre_tokenizer(qn_reader *r, yyjson_val *v)
{
    r->t->pres = qn_tokenizer_array(r->t, QN_MOST_STEPS, sizeof(qn_pre), r->e);
    return r->t->pres && walk(r, v, "pre_tokenizer", "pretokenizers", add_pre);
}

/* ---- decoder */

static bool read_count(qn_reader *r, yyjson_val *v, const char *key, size_t *out)
{
    yyjson_val *x = yyjson_obj_get(v, key);
    if (!yyjson_is_uint(x)) return qn_read_fail(r, key, "must be a whole number");
    *out = (size_t)yyjson_get_uint(x);
    return true;
}

static bool read_suffix(qn_reader *r, yyjson_val *v, qn_str *out)
{
    qn_str s;
    if (!qn_read_str(r, v, "suffix", &s)) return false;
    return qn_tokenizer_copy(r->t, s.p ? s : (qn_str){ "</w>", 4 }, out, r->e);
}

static bool add_decoder(qn_reader *r, yyjson_val *v, const char *type)
{
    if (r->t->n_steps == QN_MOST_STEPS) return qn_read_fail(r, "decoder", "too many steps");
    qn_step *x = &r->t->steps[r->t->n_steps++];
    if (is(type, "ByteLevel")) return x->kind = STEP_bytes, true;
    if (is(type, "ByteFallback")) return x->kind = STEP_fallback, true;
    if (is(type, "Fuse")) return x->kind = STEP_fuse, true;
    if (is(type, "Replace")) {
        x->kind = STEP_replace;
        return read_pattern(r, v, "decoder", &x->literal, &x->regex) && qn_read_need_str(r, v, "content", &x->content);
    }
    if (is(type, "Strip")) {
        x->kind = STEP_strip;
        return qn_read_need_str(r, v, "content", &x->literal) && read_count(r, v, "start", &x->start) &&
               read_count(r, v, "stop", &x->stop);
    }
    if (is(type, "Metaspace")) {
        qn_prepend how;
        x->kind = STEP_metaspace;
        if (!qn_read_need_str(r, v, "replacement", &x->literal) || !read_scheme(r, v, &how)) return false;
        x->drop_first = how != PREPEND_never;
        return true;
    }
    if (is(type, "BPEDecoder")) {
        x->kind = STEP_suffix;
        return read_suffix(r, v, &x->literal);
    }
    return unknown(r, "decoder", type);
}

bool qn_read_decoder(qn_reader *r, yyjson_val *v)
{
    r->t->steps = qn_tokenizer_array(r->t, QN_MOST_STEPS, sizeof(qn_step), r->e);
    if (!r->t->steps) return false;
    if (!v || yyjson_is_null(v)) {
        r->t->steps[r->t->n_steps++].kind = STEP_spaced; /* without a decoder tokens stand with spaces between them */
        return true;
    }
    return walk(r, v, "decoder", "decoders", add_decoder);
}
