/* tokenizer_export.c - a tokenizer described as a GGUF vocabulary. GGUF knows two pipelines: byte-level BPE with a pre-tokeniser
 * that has a name, and SentencePiece with scores. A tokenizer that is neither is refused: a file that gives other ids than its
 * model was trained with is worse than none. */
#include <stdio.h>
#include <string.h>

#include "text/pipeline.h"

#define BLOCK "\xE2\x96\x81" /* U+2581, SentencePiece's space */

static bool refuse(const qn_tokenizer *t, const char *why, qn_err *e)
{
    return qn_fail(e, QN_EUNSUPPORTED, "%s: cannot be written as a GGUF vocabulary: %s", t->what, why);
}

static bool equals(qn_str s, const char *text) { return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0; }

/* ---- which pipeline */

static bool is_byte_level(const qn_tokenizer *t)
{
    if (t->n_pres == 0 || t->pres[t->n_pres - 1].kind != PRE_bytes) return false;
    for (size_t i = 0; i + 1 < t->n_pres; i++) {
        const qn_pre *x = &t->pres[i];
        if (x->kind != PRE_split || x->how != SPLIT_isolated || x->invert || !x->regex) return false;
    }
    return true;
}

static bool same_splits(const qn_tokenizer *t, const qn_pre_row *row)
{
    size_t n = 0;
    for (; row->splits[n]; n++) {
        if (n + 1 >= t->n_pres || !equals(t->pres[n].pattern, row->splits[n])) return false;
    }
    return n + 1 == t->n_pres;
}

/* Is every token what merging makes of its own spelling? Then it does not matter whether merges are ignored for whole tokens. */
static bool merges_reach_all(const qn_tokenizer *t, bool *yes, qn_err *e)
{
    qn_bpe plain = t->bpe;
    plain.ignore_merges = false;
    qn_bpe_work w = { 0 };
    qn_ids ids = { 0 };
    bool ok = true;
    *yes = true;
    for (size_t i = 0; i < t->n && *yes && ok; i++) {
        if (!(t->flags[i] & TOKEN_there) || (t->flags[i] & TOKEN_added)) continue;
        ids.n = 0;
        ok = qn_bpe_encode(&plain, &w, t->texts[i].p, t->texts[i].n, &ids, e);
        *yes = ok && ids.n == 1 && ids.v[0] == (i32)i;
    }
    qn_bpe_work_close(&w);
    qn_free(ids.v);
    return ok;
}

static bool find_pre(const qn_tokenizer *t, qn_str *out, qn_err *e)
{
    const bool nfc = t->n_norms == 1 && t->norms[0].kind == NORM_form && t->norms[0].form == QN_NFC;
    if (t->n_norms > 0 && !nfc) return refuse(t, "its normalizer has no name there", e);
    if (t->bpe.prefix.n || t->bpe.suffix.n) return refuse(t, "its tokens have a word prefix or suffix", e);
    size_t n;
    const qn_pre_row *rows = qn_pre_rows(&n), *loose = NULL;
    for (size_t i = 0; i < n; i++) {
        const qn_pre_row *row = &rows[i];
        if (!same_splits(t, row) || row->nfc != nfc) continue;
        if (row->ignore_merges == t->bpe.ignore_merges) return *out = (qn_str){ row->name, strlen(row->name) }, true;
        loose = loose ? loose : row;
    }
    bool reach = false;
    if (loose && !merges_reach_all(t, &reach, e)) return false;
    if (!loose) return refuse(t, "its pre-tokenizer has no name there", e);
    if (!reach) return refuse(t, "its pre-tokenizer has a name there only with another ignore_merges", e);
    *out = (qn_str){ loose->name, strlen(loose->name) };
    return true;
}

/* Spaces become U+2581 somewhere before the model, and nothing else happens to the text. */
static bool is_spaced(const qn_tokenizer *t, bool *prefix)
{
    size_t i = 0;
    *prefix = false;
    if (i < t->n_norms && t->norms[i].kind == NORM_prepend && equals(t->norms[i].content, BLOCK)) *prefix = true, i++;
    const qn_norm *r = i < t->n_norms ? &t->norms[i] : NULL;
    const bool replaces = r && r->kind == NORM_replace && !r->regex && equals(r->literal, " ") && equals(r->content, BLOCK);
    if (i + replaces != t->n_norms || !t->bpe.byte_fallback || t->bpe.prefix.n || t->bpe.suffix.n) return false;
    if (replaces && t->n_pres == 0) return true;
    if (t->n_pres != 1) return false;
    const qn_pre *x = &t->pres[0];
    if (replaces) return x->kind == PRE_split && !x->regex && equals(x->pattern, " "); /* no space is left to split at */
    *prefix = x->prepend != PREPEND_never;
    return i == 0 && x->kind == PRE_metaspace && equals(x->pattern, BLOCK);
}

/* ---- tokens and merges */

/* Two or more U+2581 */
static bool is_blocks(qn_str s)
{
    for (size_t i = 0; i + 3 <= s.n; i += 3) {
        if (memcmp(s.p + i, BLOCK, 3) != 0) return false;
    }
    return s.n >= 6 && s.n % 3 == 0;
}

static bool is_byte_token(const qn_tokenizer *t, size_t id)
{
    for (int b = 0; b < 256 && t->bpe.byte_fallback; b++) {
        if (t->bpe.byte_ids[b] == (i32)id) return true;
    }
    return false;
}

static i32 type_of(const qn_tokenizer *t, size_t id)
{
    if (!(t->flags[id] & TOKEN_there)) return QN_TOKEN_UNUSED;
    if ((i32)id == t->bpe.unk) return QN_TOKEN_UNKNOWN;
    if (t->types[id] == QN_TOKEN_NORMAL && is_byte_token(t, id)) return QN_TOKEN_BYTE;
    return t->types[id];
}

static bool put_tokens(const qn_tokenizer *t, qn_arena *a, qn_vocab *out, qn_err *e)
{
    qn_str *tokens = qn_arena_new(a, t->n * sizeof *tokens, e);
    i32 *types = tokens ? qn_arena_new(a, t->n * sizeof *types, e) : NULL;
    if (!types) return false;
    for (size_t i = 0; i < t->n; i++) {
        types[i] = type_of(t, i);
        tokens[i] = t->texts[i];
        if (t->flags[i] & TOKEN_there) continue;
        char pad[32];
        const int n = snprintf(pad, sizeof pad, "[PAD%zu]", i);
        tokens[i] = (qn_str){ qn_arena_strndup(a, pad, (size_t)n, e), (size_t)n };
        if (!tokens[i].p) return false;
    }
    out->n = t->n;
    out->tokens = tokens;
    out->types = types;
    return true;
}

/* The merges by rank. */
static const qn_merge **sort_merges(const qn_tokenizer *t, qn_arena *a, size_t *n, qn_err *e)
{
    u32 top = 0;
    for (size_t i = 0; i < t->bpe.cap; i++) {
        if (t->bpe.merges[i].id >= 0 && t->bpe.merges[i].rank >= top) top = t->bpe.merges[i].rank + 1;
    }
    const qn_merge **v = qn_arena_new(a, ((size_t)top + 1) * sizeof *v, e);
    if (!v) return NULL;
    for (size_t i = 0; i < t->bpe.cap; i++) {
        if (t->bpe.merges[i].id >= 0) v[t->bpe.merges[i].rank] = &t->bpe.merges[i];
    }
    *n = 0;
    for (u32 i = 0; i < top; i++) {
        if (v[i]) v[(*n)++] = v[i];
    }
    return v;
}

static bool put_merges(const qn_tokenizer *t, qn_arena *a, qn_vocab *out, qn_err *e)
{
    size_t n;
    const qn_merge **v = sort_merges(t, a, &n, e);
    qn_str *merges = v ? qn_arena_new(a, (n + 1) * sizeof *merges, e) : NULL;
    if (!merges) return false;
    for (size_t i = 0; i < n; i++) {
        const qn_str l = t->texts[v[i]->left], r = t->texts[v[i]->right];
        if (memchr(l.p, ' ', l.n) || memchr(r.p, ' ', r.n)) return refuse(t, "a merge has a space in it", e);
        char *p = qn_arena_new(a, l.n + r.n + 2, e);
        if (!p) return false;
        memcpy(p, l.p, l.n);
        p[l.n] = ' ';
        memcpy(p + l.n + 1, r.p, r.n);
        merges[i] = (qn_str){ p, l.n + r.n + 1 };
    }
    out->merges = merges;
    out->n_merges = n;
    return true;
}

/* ---- scores out of merges */

static bool is_added(const qn_tokenizer *t, i32 id) { return t->flags[id] & TOKEN_added; }

/* SentencePiece merges any two neighbours that spell a token: all of them must be merges here too. */
static bool check_splits(const qn_tokenizer *t, size_t id, qn_err *e)
{
    const qn_str s = t->texts[id];
    u32 cp;
    for (size_t i = qn_char_next(s.p, s.n, &cp); i < s.n; i += qn_char_next(s.p + i, s.n - i, &cp)) {
        const u32 left = qn_table_get(&t->ids, s.p, i), right = qn_table_get(&t->ids, s.p + i, s.n - i);
        if (left == QN_NONE || right == QN_NONE) continue;
        const qn_merge *m = qn_bpe_find(&t->bpe, left, right);
        if (is_added(t, (i32)left) || is_added(t, (i32)right)) continue;
        if (!m || m->id != (i32)id) return refuse(t, "two neighbours that spell a token do not merge", e);
    }
    return true;
}

/* Added tokens that are runs of U+2581 stand for runs of spaces that merge before anything else does; GGUF writes them with
 * spaces and finds them in the text. */
static bool put_runs(const qn_tokenizer *t, qn_arena *a, const qn_merge **v, size_t n, qn_vocab *out, qn_err *e)
{
    bool other = false;
    for (size_t i = 0; i < n; i++) {
        const bool run = is_added(t, v[i]->id) && is_blocks(t->texts[v[i]->id]);
        if (run && other) return refuse(t, "runs of spaces merge later than words", e);
        other = other || !is_added(t, v[i]->id);
    }
    qn_str *tokens = qn_arena_new(a, t->n * sizeof *tokens, e);
    if (!tokens) return false;
    memcpy(tokens, out->tokens, t->n * sizeof *tokens);
    for (size_t i = 0; i < t->n; i++) {
        if (!is_added(t, (i32)i) || !is_blocks(tokens[i])) continue;
        char *spaces = qn_arena_new(a, tokens[i].n / 3 + 1, e);
        if (!spaces) return false;
        memset(spaces, ' ', tokens[i].n / 3);
        tokens[i] = (qn_str){ spaces, tokens[i].n / 3 };
    }
    out->tokens = tokens;
    return true;
}

static bool put_scores(const qn_tokenizer *t, qn_arena *a, qn_vocab *out, qn_err *e)
{
    size_t n;
    float *scores = qn_arena_new(a, t->n * sizeof *scores, e);
    const qn_merge **v = scores ? sort_merges(t, a, &n, e) : NULL;
    u8 *done = v ? qn_arena_new(a, t->n, e) : NULL;
    if (!done || !put_runs(t, a, v, n, out, e)) return false;
    i32 last = -1;
    float rank = 0;
    for (size_t i = 0; i < n; i++) { /* all merges into one token follow each other: one score says when it is made */
        const i32 id = v[i]->id;
        if (id == last || is_added(t, id)) continue; /* added tokens are found before merging */
        if (done[id]) return refuse(t, "its merges are in no order of scores", e);
        scores[id] = -++rank;
        done[id] = 1;
        last = id;
    }
    for (size_t i = 0; i < t->n; i++) {
        if (!done[i]) scores[i] = -rank - 1;
        const bool made = out->types[i] == QN_TOKEN_NORMAL && qn_table_get(&t->ids, t->texts[i].p, t->texts[i].n) == (u32)i;
        if (made && !check_splits(t, i, e)) return false;
    }
    out->scores = scores;
    return true;
}

/* ---- the whole */

static bool put_specials(const qn_tokenizer *t, qn_vocab *out, qn_err *e)
{
    out->bos = t->bos;
    out->eos = t->eos;
    out->pad = t->pad;
    out->unk = t->unk;
    if (t->n_head > 1 || t->n_tail > 1) return refuse(t, "its post-processor adds more than one token at a side", e);
    if (t->n_head == 1 && t->head[0] != t->bos) {
        if (t->bos >= 0) return refuse(t, "the token it puts before a text is not its beginning of sequence", e);
        out->bos = t->head[0];
    }
    if (t->n_tail == 1 && t->tail[0] != t->eos) {
        if (t->eos >= 0) return refuse(t, "the token it puts behind a text is not its end of sequence", e);
        out->eos = t->tail[0];
    }
    out->add_bos = t->n_head == 1;
    out->add_eos = t->n_tail == 1;
    return true;
}

bool qn_tokenizer_export(const qn_tokenizer *t, qn_arena *a, qn_vocab *out, qn_err *e)
{
    *out = (qn_vocab)QN_VOCAB_DEFAULT;
    if (!put_tokens(t, a, out, e) || !put_specials(t, out, e)) return false;
    bool prefix;
    if (is_byte_level(t)) {
        out->model = (qn_str){ "gpt2", 4 };
        return find_pre(t, &out->pre, e) && put_merges(t, a, out, e);
    }
    if (!is_spaced(t, &prefix)) return refuse(t, "neither byte-level nor SentencePiece", e);
    out->model = (qn_str){ "llama", 5 };
    out->pre = (qn_str){ "default", 7 };
    out->add_space_prefix = prefix;
    if (!t->scores) return put_scores(t, a, out, e);
    out->scores = t->scores;
    return true;
}
