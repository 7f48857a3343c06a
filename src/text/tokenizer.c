/* tokenizer.c - the pipeline run: added tokens cut the text into sections, each section is normalised, cut into pieces and
 * merged into tokens. Everything a call needs lives in one `work`, so a tokenizer is shared by threads without locks. */
#include "text/tokenizer.h"

#include <string.h>

#include "text/pipeline.h"

bool qn_ids_push(qn_ids *ids, i32 id, qn_err *e)
{
    if (ids->n == ids->cap) {
        const size_t cap = ids->cap ? ids->cap * 2 : 64;
        i32 *v = qn_resize(ids->v, cap * sizeof *v, e);
        if (!v) return false;
        ids->v = v;
        ids->cap = cap;
    }
    ids->v[ids->n++] = id;
    return true;
}

/* ---- encoding */

typedef struct work {
    const qn_tokenizer *t;
    qn_matcher matcher;
    qn_buf text, tmp;
    qn_pre_work pre;
    qn_bpe_work bpe;
    qn_ids ids;
} work;

static void close_work(work *w)
{
    qn_matcher_close(&w->matcher);
    qn_buf_close(&w->text);
    qn_buf_close(&w->tmp);
    qn_pre_work_close(&w->pre);
    qn_bpe_work_close(&w->bpe);
    qn_free(w->ids.v);
}

static bool encode_plain(work *w, const char *s, size_t n, bool first, qn_err *e)
{
    const qn_tokenizer *t = w->t;
    if (!qn_pretokenise(t->pres, t->n_pres, &w->matcher, s, n, first, &w->pre, e)) return false;
    for (size_t i = 0; i < w->pre.a.n; i++) {
        const qn_span piece = w->pre.a.v[i];
        if (!qn_bpe_encode(&t->bpe, &w->bpe, w->pre.a.text.p + piece.at, piece.n, &w->ids, e)) return false;
    }
    return true;
}

/* A section between two added tokens. Tokens that are looked for in normalised text are found here. */
static bool encode_section(work *w, const char *s, size_t n, bool first, qn_allow allow, qn_err *e)
{
    const qn_tokenizer *t = w->t;
    if (n == 0) return true;
    if (t->n_norms > 0) {
        w->text.n = 0;
        qn_buf_put(&w->text, s, n);
        if (w->text.failed) return qn_fail(e, QN_ENOMEM, "out of memory: %zu bytes asked for", n);
        if (!qn_normalise(t->norms, t->n_norms, &w->matcher, &w->text, &w->tmp, e)) return false;
        s = w->text.p;
        n = w->text.n;
    }
    for (size_t at = 0; at < n;) {
        qn_found f;
        qn_added_next(&t->normal, t->added, s, n, at, allow, &f);
        if (f.begin > at && !encode_plain(w, s + at, f.begin - at, first && at == 0, e)) return false;
        if (f.token && !qn_ids_push(&w->ids, f.token->id, e)) return false;
        at = f.end;
    }
    return true;
}

/* The next added token of either kind that is looked for before normalising. */
static void next_added(const qn_tokenizer *t, const char *s, size_t n, size_t at, qn_allow allow, qn_found *f)
{
    qn_added_next(&t->raw, t->added, s, n, at, allow, f);
    if (!allow.marks || t->marked.n == 0) return;
    qn_found other;
    qn_added_next(&t->marked, t->added, s, n, at, allow, &other);
    if (other.token && (!f->token || other.begin < f->begin)) *f = other;
}

/* Room for an id per byte: pages that are not touched cost nothing, growing by steps touches them twice. */
static bool reserve(qn_ids *ids, size_t bytes, qn_err *e)
{
    size_t room;
    if (!qn_add(bytes, 64, &ids->cap) || !qn_mul(ids->cap, sizeof *ids->v, &room)) {
        return qn_fail(e, QN_EUSAGE, "a text of %zu bytes is too long to tokenize", bytes);
    }
    ids->v = qn_alloc(room, e);
    return ids->v != NULL;
}

static bool encode(work *w, const char *s, size_t n, qn_allow allow, qn_err *e)
{
    /* behind the raw pass offsets are lost: with marks, control tokens have been found by then or must not be */
    const qn_allow inner = { .parse = allow.parse && !allow.marks, .marks = NULL };
    for (size_t at = 0; at < n;) {
        qn_found f;
        next_added(w->t, s, n, at, allow, &f);
        if (!encode_section(w, s + at, f.begin - at, at == 0, inner, e)) return false;
        if (f.token && !qn_ids_push(&w->ids, f.token->id, e)) return false;
        at = f.end;
    }
    return true;
}

bool qn_tokenize(const qn_tokenizer *t, const char *text, size_t n, const uint8_t *marks, unsigned flags, int32_t **ids,
                        size_t *n_ids, qn_err *e)
{
    work w = { .t = t };
    const qn_allow allow = { .parse = flags & QN_TOK_PARSE_SPECIAL, .marks = marks };
    const bool around = flags & QN_TOK_ADD_SPECIAL;
    bool ok = qn_matcher_open(&w.matcher, e) && reserve(&w.ids, n, e);
    for (size_t i = 0; ok && around && i < t->n_head; i++) ok = qn_ids_push(&w.ids, t->head[i], e);
    ok = ok && encode(&w, text, n, allow, e);
    for (size_t i = 0; ok && around && i < t->n_tail; i++) ok = qn_ids_push(&w.ids, t->tail[i], e);
    if (ok) {
        i32 *const fit = qn_resize(w.ids.v, w.ids.n * sizeof *fit, NULL); /* give back what was not needed */
        *ids = fit ? fit : w.ids.v;
        *n_ids = w.ids.n;
        w.ids.v = NULL;
    }
    close_work(&w);
    return ok;
}

/* ---- making */

void *qn_tokenizer_array(qn_tokenizer *t, size_t n, size_t size, qn_err *e)
{
    size_t bytes;
    if (qn_mul(n ? n : 1, size, &bytes)) return qn_arena_new(&t->arena, bytes, e);
    qn_fail(e, QN_ENOMEM, "out of memory: %zu x %zu bytes asked for", n, size);
    return NULL;
}

bool qn_tokenizer_copy(qn_tokenizer *t, qn_str s, qn_str *out, qn_err *e)
{
    out->p = qn_arena_strndup(&t->arena, s.p ? s.p : "", s.n, e);
    out->n = s.n;
    return out->p != NULL;
}

bool qn_tokenizer_reserve(qn_tokenizer *t, size_t n, qn_err *e)
{
    t->n = n;
    t->texts = qn_tokenizer_array(t, n, sizeof *t->texts, e);
    t->types = t->texts ? qn_tokenizer_array(t, n, 1, e) : NULL;
    t->flags = t->types ? qn_tokenizer_array(t, n, 1, e) : NULL;
    return t->flags != NULL;
}

bool qn_tokenizer_add_split(qn_tokenizer *t, size_t *k, const char *pattern, size_t n, qn_err *e)
{
    qn_pre *x = &t->pres[*k];
    *x = (qn_pre){ .kind = PRE_split, .how = SPLIT_isolated };
    ++*k;
    if (!qn_tokenizer_copy(t, (qn_str){ pattern, n }, &x->pattern, e)) return false;
    x->regex = qn_regex_open(x->pattern.p, n, t->what, e);
    return x->regex != NULL;
}

/* Tokens that end an answer wherever they occur, whatever the file says about them. */
static const char *const end_tokens[] = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<end_of_turn>", "<|endoftext|>", "<|eom_id|>", "<EOT>",
    "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>", "<end_of_utterance>", "<eos>", "</s>", "<turn|>", "<|tool_response>",
    "<｜end▁of▁sentence｜>",
};

static void find_ends(qn_tokenizer *t)
{
    for (size_t i = 0; i < QN_COUNT(end_tokens); i++) {
        const i32 id = qn_token_find(t, end_tokens[i], strlen(end_tokens[i]));
        if (id >= 0 && (t->flags[id] & (TOKEN_special | TOKEN_added))) t->flags[id] |= TOKEN_end | TOKEN_control;
    }
    /* harmony's <|end|> ends a message, not the answer: there <|return|> and <|call|> do */
    const i32 end = qn_token_find(t, "<|end|>", 7);
    if (end >= 0 && qn_token_find(t, "<|return|>", 10) >= 0 && qn_token_find(t, "<|call|>", 8) >= 0) {
        t->flags[end] &= (u8)~TOKEN_end;
    }
    if (t->eos >= 0) t->flags[t->eos] |= TOKEN_end;
}

static bool looks_control(qn_str s) { return s.n >= 5 && memcmp(s.p, "<|", 2) == 0 && memcmp(s.p + s.n - 2, "|>", 2) == 0; }

void qn_tokenizer_finish(qn_tokenizer *t)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->flags[i] & TOKEN_added && looks_control(t->texts[i])) t->flags[i] |= TOKEN_control;
    }
    find_ends(t);
    for (size_t i = 0; i < t->n_added; i++) {
        qn_added *x = &t->added[i];
        x->control = t->flags[x->id] & TOKEN_control;
    }
}

void qn_tokenizer_close(qn_tokenizer *t)
{
    if (!t) return;
    for (size_t i = 0; i < t->n_norms; i++) qn_regex_close(t->norms[i].regex);
    for (size_t i = 0; i < t->n_pres; i++) qn_regex_close(t->pres[i].regex);
    for (size_t i = 0; i < t->n_steps; i++) qn_regex_close(t->steps[i].regex);
    qn_table_close(&t->ids);
    qn_table_close(&t->added_ids);
    qn_trie_close(&t->raw);
    qn_trie_close(&t->normal);
    qn_trie_close(&t->marked);
    qn_bpe_close(&t->bpe);
    qn_arena_close(&t->arena);
    qn_free(t->what);
    qn_free(t);
}

/* ---- asking */

int qn_tokenizer_n_vocab(const qn_tokenizer *t) { return (int)t->n; }

static bool has(const qn_tokenizer *t, i32 id, u8 flag) { return id >= 0 && (size_t)id < t->n && (t->flags[id] & flag); }

bool qn_token_is_end(const qn_tokenizer *t, int32_t id) { return has(t, id, TOKEN_end); }
bool qn_token_is_control(const qn_tokenizer *t, i32 id) { return has(t, id, TOKEN_control); }

qn_str qn_token_text(const qn_tokenizer *t, i32 id) { return has(t, id, TOKEN_there) ? t->texts[id] : (qn_str){ NULL, 0 }; }

i32 qn_token_find(const qn_tokenizer *t, const char *text, size_t n)
{
    const u32 added = qn_table_get(&t->added_ids, text, n);
    return added != QN_NONE ? (i32)added : (i32)qn_table_get(&t->ids, text, n);
}

const char *qn_tokenizer_kind(const qn_tokenizer *t) { return t->kind; }
i32 qn_tokenizer_bos(const qn_tokenizer *t) { return t->bos; }
i32 qn_tokenizer_eos(const qn_tokenizer *t) { return t->eos; }
i32 qn_tokenizer_pad(const qn_tokenizer *t) { return t->pad; }
i32 qn_tokenizer_unk(const qn_tokenizer *t) { return t->unk; }

bool qn_tokenizer_adds_bos(const qn_tokenizer *t) { return t->n_head > 0 && t->bos >= 0 && t->head[0] == t->bos; }
bool qn_tokenizer_adds_eos(const qn_tokenizer *t) { return t->n_tail > 0 && t->eos >= 0 && t->tail[t->n_tail - 1] == t->eos; }
