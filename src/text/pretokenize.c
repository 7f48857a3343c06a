/* pretokenize.c - pre-tokenisers: each step cuts every piece of the step before it, or spells it anew. Two lists of pieces
 * take turns, so a text of a million words costs two arrays and not a million strings. */
#include <string.h>

#include "text/pipeline.h"

static bool add(qn_pieces *p, size_t at, size_t n, qn_err *e)
{
    if (n == 0) return true;
    if (p->n == p->cap) {
        const size_t cap = p->cap ? p->cap * 2 : 64;
        qn_span *v = qn_resize(p->v, cap * sizeof *v, e);
        if (!v) return false;
        p->v = v;
        p->cap = cap;
    }
    p->v[p->n++] = (qn_span){ at, n };
    return true;
}

/* ---- split */

typedef struct qn_hits { qn_span *v; size_t n, cap; } qn_hits;

static bool hit(qn_pre_work *w, size_t *n, size_t begin, size_t end, qn_err *e)
{
    if (*n == w->cap) {
        const size_t cap = w->cap ? w->cap * 2 : 64;
        qn_span *v = qn_resize(w->matches, cap * sizeof *v, e);
        if (!v) return false;
        w->matches = v;
        w->cap = cap;
    }
    w->matches[(*n)++] = (qn_span){ begin, end - begin };
    return true;
}

/* All matches in s[0..n), as spans relative to s. */
static bool find_all(const qn_pre *x, qn_matcher *m, const char *s, size_t n, qn_pre_work *w, size_t *count, qn_err *e)
{
    *count = 0;
    size_t from = 0, done = 0;
    while (from <= n) {
        size_t begin, end;
        bool found = true;
        if (x->regex) {
            if (!qn_regex_next(x->regex, m, s, n, from, &found, &begin, &end, e)) return false;
        } else {
            const char *at = x->pattern.n ? memmem(s + from, n - from, x->pattern.p, x->pattern.n) : NULL;
            found = at != NULL;
            begin = at ? (size_t)(at - s) : 0;
            end = begin + x->pattern.n;
        }
        if (!found) break;
        u32 cp;
        from = end > begin ? end : end < n ? end + qn_char_next(s + end, n - end, &cp) : n + 1;
        if (begin < done) continue;
        if (!hit(w, count, begin, end, e)) return false;
        done = end;
    }
    return true;
}

/* The pieces of one text, in order, matches and gaps in turn, put together as `how` says. */
typedef struct qn_joiner { qn_pieces *out; qn_split how; qn_span last; bool open, last_match; } qn_joiner;

static bool close_last(qn_joiner *j, qn_err *e)
{
    j->open = false;
    return add(j->out, j->last.at, j->last.n, e);
}

static bool join(qn_joiner *j, size_t at, size_t n, bool match, qn_err *e)
{
    const bool was = j->last_match;
    j->last_match = match;
    if (j->how == SPLIT_removed) return match || add(j->out, at, n, e);
    if (j->how == SPLIT_isolated) return add(j->out, at, n, e);
    const bool glue = j->open && (j->how == SPLIT_contiguous  ? match == was
                                  : j->how == SPLIT_previous ? match && !was
                                                             : !match && was);
    if (glue) {
        j->last.n += n;
        return true;
    }
    if (j->open && !close_last(j, e)) return false;
    j->last = (qn_span){ at, n };
    j->open = true;
    return true;
}

static bool split(const qn_pre *x, qn_matcher *m, qn_pre_work *w, qn_err *e)
{
    w->subject.n = 0;
    qn_buf_put(&w->subject, w->a.text.p, w->a.text.n);
    if (w->subject.failed) return qn_fail(e, QN_ENOMEM, "out of memory: %zu bytes asked for", w->a.text.n);
    if (x->regex) qn_regex_subject(w->subject.p, w->subject.n);
    w->b.n = 0;
    for (size_t i = 0; i < w->a.n; i++) {
        const qn_span piece = w->a.v[i];
        size_t count, done = 0;
        if (!find_all(x, m, w->subject.p + piece.at, piece.n, w, &count, e)) return false;
        qn_joiner j = { .out = &w->b, .how = x->how };
        for (size_t k = 0; k < count; k++) {
            const qn_span hit_at = w->matches[k];
            if (hit_at.at > done && !join(&j, piece.at + done, hit_at.at - done, x->invert, e)) return false;
            if (!join(&j, piece.at + hit_at.at, hit_at.n, !x->invert, e)) return false;
            done = hit_at.at + hit_at.n;
        }
        if (done < piece.n && !join(&j, piece.at + done, piece.n - done, x->invert, e)) return false;
        if (j.open && !close_last(&j, e)) return false;
    }
    const qn_buf text = w->b.text; /* the bytes stay, the list is new */
    w->b.text = w->a.text;
    w->a.text = text;
    return true;
}

/* ---- steps that spell pieces anew */

static void metaspace(const qn_pre *x, qn_pre_work *w, qn_span piece, bool first)
{
    const char *s = w->a.text.p + piece.at;
    const bool begins = (piece.n > 0 && s[0] == ' ') || (piece.n >= x->pattern.n && memcmp(s, x->pattern.p, x->pattern.n) == 0);
    if (!begins && (x->prepend == PREPEND_always || (x->prepend == PREPEND_first && first))) {
        qn_buf_put(&w->b.text, x->pattern.p, x->pattern.n);
    }
    for (size_t i = 0; i < piece.n;) {
        const char *at = memchr(s + i, ' ', piece.n - i);
        const size_t plain = at ? (size_t)(at - s) - i : piece.n - i;
        qn_buf_put(&w->b.text, s + i, plain);
        if (at) qn_buf_put(&w->b.text, x->pattern.p, x->pattern.n);
        i += plain + (at ? 1 : 0);
    }
}

static bool respell(const qn_pre *x, qn_pre_work *w, bool first, qn_err *e)
{
    w->b.n = 0;
    w->b.text.n = 0;
    for (size_t i = 0; i < w->a.n; i++) {
        const qn_span piece = w->a.v[i];
        const char *s = w->a.text.p + piece.at;
        const size_t at = w->b.text.n;
        switch (x->kind) {
        case PRE_bytes: qn_bytes_spell(&w->b.text, s, piece.n); break;
        case PRE_prefix_space:
            if (s[0] != ' ') qn_buf_putc(&w->b.text, ' ');
            qn_buf_put(&w->b.text, s, piece.n);
            break;
        case PRE_metaspace: metaspace(x, w, piece, first && i == 0); break;
        case PRE_split: break;
        }
        if (w->b.text.failed) return qn_fail(e, QN_ENOMEM, "out of memory: a text of %zu bytes", w->a.text.n);
        if (!add(&w->b, at, w->b.text.n - at, e)) return false;
    }
    return true;
}

static void swap(qn_pre_work *w)
{
    const qn_pieces old = w->a;
    w->a = w->b;
    w->b = old;
}

bool qn_pretokenise(const qn_pre *steps, size_t n, qn_matcher *m, const char *text, size_t bytes, bool first, qn_pre_work *w, qn_err *e)
{
    w->a.n = 0;
    w->a.text.n = 0;
    qn_buf_put(&w->a.text, text, bytes);
    if (w->a.text.failed) return qn_fail(e, QN_ENOMEM, "out of memory: %zu bytes asked for", bytes);
    if (!add(&w->a, 0, bytes, e)) return false;
    for (size_t i = 0; i < n; i++) {
        const qn_pre *x = &steps[i];
        if (x->kind == PRE_split ? !split(x, m, w, e) : !respell(x, w, first, e)) return false;
        swap(w);
        if (x->kind != PRE_metaspace || !x->split) continue;
        const qn_pre cut = { .kind = PRE_split, .pattern = x->pattern, .how = SPLIT_next };
        if (!split(&cut, m, w, e)) return false;
        swap(w);
    }
    return true;
}

void qn_pre_work_close(qn_pre_work *w)
{
    qn_buf_close(&w->a.text);
    qn_buf_close(&w->b.text);
    qn_free(w->a.v);
    qn_free(w->b.v);
    qn_buf_close(&w->subject);
    qn_free(w->matches);
}

/* ---- the table of names */

const char qn_gpt2_split[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

#define SPLITS(id, ...) static const char *const splits_##id[] = { __VA_ARGS__, NULL };
#define PRE(name, id, ignore_merges, add_bos, nfc)
#include "text/pre.def"
#undef SPLITS
#undef PRE

static const qn_pre_row rows[] = {
#define SPLITS(id, ...)
#define PRE(name, id, ignore_merges, add_bos, nfc) { name, splits_##id, ignore_merges, add_bos, nfc },
#include "text/pre.def"
#undef SPLITS
#undef PRE
};

const qn_pre_row *qn_pre_rows(size_t *n)
{
    *n = QN_COUNT(rows);
    return rows;
}

const qn_pre_row *qn_pre_find(const char *name, size_t n)
{
    for (size_t i = 0; i < QN_COUNT(rows); i++) {
        if (strlen(rows[i].name) == n && memcmp(rows[i].name, name, n) == 0) return &rows[i];
    }
    return NULL;
}
