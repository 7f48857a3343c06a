/* pretokenize.c - pre-tokenisers: each step cuts every piece of the step before it, or spells it anew. Two lists of pieces
 * take turns, so a text of a million words costs two arrays and not a million strings. */
#include <string.h>

#include "text/pipeline.h"

#define MOST_BYTES (UINT32_MAX / 8) /* spans have 32 bits */

static bool reserve(qn_pieces *p, size_t n, qn_err *e)
{
    if (n <= p->cap) return true;
    qn_span *v = qn_resize(p->v, n * sizeof *v, e);
    if (!v) return false;
    p->v = v;
    p->cap = n;
    return true;
}

static bool add(qn_pieces *p, size_t at, size_t n, qn_err *e)
{
    if (n == 0) return true;
    if (p->n == p->cap && !reserve(p, p->cap ? p->cap * 2 : 64, e)) return false;
    p->v[p->n++] = (qn_span){ (u32)at, (u32)n };
    return true;
}

/* ---- split */

/* The next match in s[0..n) that begins at or behind *from; moves *from behind it. */
static bool find_next(const qn_pre *x, qn_matcher *m, const char *s, size_t n, size_t *from, bool *found, qn_span *out, qn_err *e)
{
    size_t begin = 0, end = 0;
    if (x->regex) {
        if (!qn_regex_next(x->regex, m, s, n, *from, found, &begin, &end, e)) return false;
    } else {
        const char *at = x->pattern.n ? memmem(s + *from, n - *from, x->pattern.p, x->pattern.n) : NULL;
        *found = at != NULL;
        begin = at ? (size_t)(at - s) : 0;
        end = begin + x->pattern.n;
    }
    if (!*found) return true;
    u32 cp;
    *from = end > begin ? end : end < n ? end + qn_char_next(s + end, n - end, &cp) : n + 1;
    *out = (qn_span){ (u32)begin, (u32)(end - begin) };
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
        j->last.n += (u32)n;
        return true;
    }
    if (j->open && !close_last(j, e)) return false;
    j->last = (qn_span){ (u32)at, (u32)n };
    j->open = true;
    return true;
}

static bool split_piece(const qn_pre *x, qn_matcher *m, qn_pre_work *w, const char *s, qn_span piece, qn_err *e)
{
    qn_joiner j = { .out = &w->b, .how = x->how };
    size_t done = 0, from = 0;
    while (from <= piece.n) {
        qn_span hit = { 0, 0 };
        bool found = false;
        if (!find_next(x, m, s, piece.n, &from, &found, &hit, e)) return false;
        if (!found) break;
        if (hit.at < done) continue;
        if (hit.at > done && !join(&j, piece.at + done, hit.at - done, x->invert, e)) return false;
        if (!join(&j, piece.at + hit.at, hit.n, !x->invert, e)) return false;
        done = (size_t)hit.at + hit.n;
    }
    if (done < piece.n && !join(&j, piece.at + done, piece.n - done, x->invert, e)) return false;
    return !j.open || close_last(&j, e);
}

static bool split(const qn_pre *x, qn_matcher *m, qn_pre_work *w, qn_err *e)
{
    const char *s = w->a.text.p;
    if (x->regex && !qn_utf8_valid(s, w->a.text.n)) {
        w->subject.n = 0;
        qn_buf_put(&w->subject, s, w->a.text.n);
        if (w->subject.failed) return qn_fail(e, QN_ENOMEM, "out of memory: %zu bytes asked for", w->a.text.n);
        qn_regex_subject(w->subject.p, w->subject.n);
        s = w->subject.p;
    }
    w->b.n = 0;
    if (!reserve(&w->b, w->a.n + w->a.text.n / 3, e)) return false; /* at once: growing by steps touches twice the memory */
    for (size_t i = 0; i < w->a.n; i++) {
        if (!split_piece(x, m, w, s + w->a.v[i].at, w->a.v[i], e)) return false;
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
    qn_buf_room(&w->b.text, w->a.text.n * 2);
    if (!reserve(&w->b, w->a.n, e)) return false;
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
        if (w->b.text.n > UINT32_MAX / 2) {
            return qn_fail(e, QN_EUSAGE, "a text of %zu bytes is too long to tokenize", w->a.text.n);
        }
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

bool qn_pretokenise(const qn_pre *steps, size_t n, qn_matcher *m, const char *text, size_t bytes, bool first, qn_pre_work *w,
                    qn_err *e)
{
    if (bytes > MOST_BYTES) return qn_fail(e, QN_EUSAGE, "a text of %zu bytes is too long to tokenize", bytes);
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
