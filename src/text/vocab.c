/* vocab.c - a tokenizer out of a GGUF vocabulary. GGUF says less than a tokenizer.json: the model's name stands for a whole
 * pipeline and `pre` for its patterns; this file spells both out. Ids of special tokens that are out of range are dropped. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/pipeline.h"

#define BLOCK "\xE2\x96\x81" /* U+2581, SentencePiece's space */

static bool equals(qn_str s, const char *text) { return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0; }

static bool is_looked_for(u8 type) { return type == QN_TOKEN_CONTROL || type == QN_TOKEN_USER || type == QN_TOKEN_UNKNOWN; }

/* ---- tokens */

static u8 type_at(const qn_vocab *v, size_t i)
{
    const i32 type = v->types ? v->types[i] : QN_TOKEN_NORMAL;
    return type >= QN_TOKEN_NORMAL && type <= QN_TOKEN_BYTE ? (u8)type : QN_TOKEN_NORMAL;
}

static bool copy_tokens(qn_tokenizer *t, const qn_vocab *v, qn_err *e)
{
    if (!qn_tokenizer_reserve(t, v->n, e) || !qn_table_reserve(&t->ids, v->n, e)) return false;
    for (size_t i = 0; i < v->n; i++) {
        if (!qn_tokenizer_copy(t, v->tokens[i], &t->texts[i], e)) return false;
        const u8 type = t->types[i] = type_at(v, i);
        const bool special = type == QN_TOKEN_CONTROL || type == QN_TOKEN_UNKNOWN;
        t->flags[i] = (u8)(TOKEN_there | (is_looked_for(type) ? TOKEN_added : 0) | (special ? TOKEN_special | TOKEN_control : 0));
        /* a control token is never made of letters; padding repeats spellings: the first one stands */
        qn_table *into = special ? &t->added_ids : type == QN_TOKEN_UNUSED ? NULL : &t->ids;
        if (into && t->texts[i].n && qn_table_put(into, t->texts[i].p, t->texts[i].n, (u32)i, e) == QN_NONE) return false;
    }
    return true;
}

static bool collect_added(qn_tokenizer *t, qn_err *e)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) n += is_looked_for(t->types[i]);
    t->added = qn_tokenizer_array(t, n, sizeof *t->added, e);
    if (!t->added) return false;
    for (size_t i = 0; i < t->n; i++) {
        if (!is_looked_for(t->types[i])) continue;
        t->added[t->n_added] = (qn_added){ .id = (i32)i, .text = t->texts[i] };
        if (!qn_trie_add(&t->raw, t->texts[i], (u32)t->n_added++, e)) return false;
    }
    return true;
}

/* ---- merges, scores */

static bool copy_merges(qn_tokenizer *t, const qn_vocab *v, qn_err *e)
{
    if (v->n_merges >= UINT32_MAX / 4) return qn_fail(e, QN_EFORMAT, "%s: tokenizer.ggml.merges: too many", t->what);
    if (!qn_bpe_reserve(&t->bpe, v->n_merges, e)) return false;
    qn_buf both = { 0 };
    bool ok = true;
    for (size_t i = 0; i < v->n_merges && ok; i++) {
        const qn_str m = v->merges[i];
        const char *space = m.n > 1 ? memchr(m.p + 1, ' ', m.n - 1) : NULL;
        if (!space) continue;
        const size_t left = (size_t)(space - m.p), right = m.n - left - 1;
        both.n = 0;
        qn_buf_put(&both, m.p, left);
        qn_buf_put(&both, space + 1, right);
        if (both.failed) {
            ok = qn_fail(e, QN_ENOMEM, "out of memory: a merge of %zu bytes", m.n);
            break;
        }
        const u32 a = qn_table_get(&t->ids, m.p, left), b = qn_table_get(&t->ids, space + 1, right);
        const u32 c = qn_table_get(&t->ids, both.p, both.n);
        if (a == QN_NONE || b == QN_NONE || c == QN_NONE) continue; /* nothing can ever be merged by it */
        ok = qn_bpe_add(&t->bpe, a, b, (u32)i, (i32)c, e);
    }
    qn_buf_close(&both);
    return ok;
}

static bool copy_scores(qn_tokenizer *t, const qn_vocab *v, qn_err *e)
{
    if (!v->scores) return qn_fail(e, QN_EFORMAT, "%s: missing key tokenizer.ggml.scores", t->what);
    t->scores = qn_tokenizer_array(t, v->n, sizeof *t->scores, e);
    if (!t->scores) return false;
    for (size_t i = 0; i < v->n; i++) t->scores[i] = isnan(v->scores[i]) ? -INFINITY : v->scores[i];
    t->bpe.scores = t->scores;
    return true;
}

/* ---- the pipelines */

static bool make_bytes(qn_tokenizer *t, const qn_vocab *v, qn_err *e)
{
    char name[80];
    const qn_str pre = v->pre.n ? v->pre : (qn_str){ "default", 7 };
    const qn_pre_row *row = qn_pre_find(pre.p, pre.n);
    if (!row) {
        return qn_fail(e, QN_EUNSUPPORTED, "%s: tokenizer.ggml.pre: %s is not supported", t->what,
                       qn_printable(pre.p, pre.n, 64, name, sizeof name));
    }
    size_t n = 0;
    while (row->splits[n]) n++;
    t->pre = row->name;
    t->pres = qn_tokenizer_array(t, n + 1, sizeof *t->pres, e);
    t->steps = t->pres ? qn_tokenizer_array(t, 1, sizeof *t->steps, e) : NULL;
    t->norms = t->steps ? qn_tokenizer_array(t, 1, sizeof *t->norms, e) : NULL;
    if (!t->norms) return false;
    for (size_t i = 0; i < n; i++) {
        if (!qn_tokenizer_add_split(t, &t->n_pres, row->splits[i], strlen(row->splits[i]), e)) return false;
    }
    t->pres[t->n_pres++].kind = PRE_bytes;
    t->steps[t->n_steps++].kind = STEP_bytes;
    if (row->nfc) t->norms[t->n_norms++] = (qn_norm){ .kind = NORM_form, .form = QN_NFC };
    t->bpe.ignore_merges = row->ignore_merges;
    snprintf(t->kind, sizeof t->kind, "BPE (gpt2, pre %s)", row->name);
    return copy_merges(t, v, e);
}

/* SentencePiece: spaces become U+2581, text begins with one unless the file says otherwise, bytes stand for what is missing. */
static bool make_spaces(qn_tokenizer *t, qn_err *e)
{
    t->norms = qn_tokenizer_array(t, 2, sizeof *t->norms, e);
    t->steps = t->norms ? qn_tokenizer_array(t, 4, sizeof *t->steps, e) : NULL;
    if (!t->steps) return false;
    const qn_str block = { BLOCK, 3 }, space = { " ", 1 };
    if (t->space_prefix) t->norms[t->n_norms++] = (qn_norm){ .kind = NORM_prepend, .content = block };
    t->norms[t->n_norms++] = (qn_norm){ .kind = NORM_replace, .literal = space, .content = block };
    t->steps[t->n_steps++] = (qn_step){ .kind = STEP_replace, .literal = block, .content = space };
    t->steps[t->n_steps++] = (qn_step){ .kind = STEP_fallback };
    t->steps[t->n_steps++] = (qn_step){ .kind = STEP_fuse };
    if (t->space_prefix) t->steps[t->n_steps++] = (qn_step){ .kind = STEP_strip, .literal = space, .start = 1 };
    t->bpe.byte_fallback = true;
    t->bpe.fuse_unk = true;
    return true;
}

static bool make_scores(qn_tokenizer *t, const qn_vocab *v, qn_err *e)
{
    t->space_prefix = v->add_space_prefix != 0;
    snprintf(t->kind, sizeof t->kind, "SentencePiece BPE (llama%s)", t->space_prefix ? "" : ", no space prefix");
    return make_spaces(t, e) && copy_scores(t, v, e);
}

static bool make_lines(qn_tokenizer *t, const qn_vocab *v, qn_err *e)
{
    const qn_pre_row *row = qn_pre_find("gemma4", 6);
    t->space_prefix = v->add_space_prefix == 1;
    t->pres = qn_tokenizer_array(t, 1, sizeof *t->pres, e);
    snprintf(t->kind, sizeof t->kind, "BPE (gemma4)");
    return t->pres && make_spaces(t, e) && qn_tokenizer_add_split(t, &t->n_pres, row->splits[0], strlen(row->splits[0]), e) &&
           copy_merges(t, v, e);
}

/* ---- special ids */

static i32 in_range(const qn_vocab *v, i32 id, i32 missing)
{
    const i32 x = id == -1 ? missing : id;
    return x >= 0 && (size_t)x < v->n ? x : -1;
}

static bool set_specials(qn_tokenizer *t, const qn_vocab *v, bool spm, bool add_bos, qn_err *e)
{
    t->bos = in_range(v, v->bos, spm ? 1 : -1);
    t->eos = in_range(v, v->eos, spm ? 2 : -1);
    t->unk = in_range(v, v->unk, spm ? 0 : -1);
    t->pad = in_range(v, v->pad, -1);
    t->bpe.unk = t->unk;
    const i32 eot = in_range(v, v->eot, -1), eom = in_range(v, v->eom, -1);
    if (eot >= 0) t->flags[eot] |= TOKEN_end;
    if (eom >= 0) t->flags[eom] |= TOKEN_end;
    t->head = qn_tokenizer_array(t, 2, sizeof *t->head, e);
    if (!t->head) return false;
    t->tail = t->head + 1;
    if (t->bos >= 0 && (v->add_bos == -1 ? add_bos : v->add_bos)) t->head[t->n_head++] = t->bos;
    if (t->eos >= 0 && v->add_eos == 1) t->tail[t->n_tail++] = t->eos;
    return true;
}

static bool make(qn_tokenizer *t, const qn_vocab *v, qn_err *e)
{
    char name[80];
    if (v->n == 0) return qn_fail(e, QN_EFORMAT, "%s: tokenizer.ggml.tokens is empty", t->what);
    if (v->n > INT32_MAX / 2) return qn_fail(e, QN_EFORMAT, "%s: tokenizer.ggml.tokens: %zu are too many", t->what, v->n);
    const bool spm = equals(v->model, "llama"), lines = equals(v->model, "gemma4");
    if (!spm && !lines && !equals(v->model, "gpt2")) {
        return qn_fail(e, QN_EUNSUPPORTED, "%s: tokenizer.ggml.model: %s is not supported", t->what,
                       qn_printable(v->model.p ? v->model.p : "", v->model.n, 64, name, sizeof name));
    }
    if (!copy_tokens(t, v, e) || !collect_added(t, e)) return false;
    qn_bpe_init(&t->bpe, &t->ids);
    if (spm ? !make_scores(t, v, e) : lines ? !make_lines(t, v, e) : !make_bytes(t, v, e)) return false;
    const qn_pre_row *row = t->pre ? qn_pre_find(t->pre, strlen(t->pre)) : NULL;
    if (!set_specials(t, v, spm, spm || (row && row->add_bos), e)) return false;
    qn_tokenizer_finish(t);
    return true;
}

qn_tokenizer *qn_tokenizer_from_vocab(const qn_vocab *v, const char *what, qn_err *e)
{
    qn_tokenizer *t = qn_new(sizeof *t, e);
    if (t && (t->what = qn_strdup(what, e)) && make(t, v, e)) return t;
    qn_tokenizer_close(t);
    return NULL;
}
