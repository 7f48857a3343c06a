/* normalize.c - normalisers: each step reads the whole text and writes it anew. Bytes that are no character pass through. */
#include <string.h>

#include "text/pipeline.h"

static bool replace_literal(qn_buf *out, const char *s, size_t n, qn_str literal, qn_str content)
{
    if (literal.n == 0) {
        qn_buf_put(out, s, n);
        return true;
    }
    while (n > 0) {
        const char *at = memmem(s, n, literal.p, literal.n);
        if (!at) break;
        qn_buf_put(out, s, (size_t)(at - s));
        qn_buf_put(out, content.p, content.n);
        n -= (size_t)(at - s) + literal.n;
        s = at + literal.n;
    }
    qn_buf_put(out, s, n);
    return true;
}

bool qn_replace(qn_buf *out, const char *s, size_t n, const qn_regex *r, qn_str literal, qn_str content, qn_matcher *m,
                qn_err *e)
{
    if (!r) return replace_literal(out, s, n, literal, content);
    qn_buf subject = { 0 };
    qn_buf_put(&subject, s, n);
    if (subject.failed) return qn_fail(e, QN_ENOMEM, "out of memory: %zu bytes asked for", n);
    qn_regex_subject(subject.p, n);
    size_t done = 0, from = 0, begin, end;
    bool found = true, ok = true;
    while (from <= n && ok) {
        ok = qn_regex_next(r, m, subject.p, n, from, &found, &begin, &end, e);
        if (!ok || !found || begin < done) break;
        qn_buf_put(out, s + done, begin - done);
        qn_buf_put(out, content.p, content.n);
        done = end;
        u32 cp;
        from = end > begin ? end : end < n ? end + qn_char_next(s + end, n - end, &cp) : n + 1;
    }
    qn_buf_put(out, s + done, n - done);
    qn_buf_close(&subject);
    return ok;
}

static void strip(qn_buf *out, const char *s, size_t n, bool left, bool right)
{
    u32 cp;
    while (left && n > 0) {
        const size_t len = qn_char_next(s, n, &cp);
        if (!qn_is_space(cp)) break;
        s += len;
        n -= len;
    }
    while (right && n > 0) {
        const size_t len = qn_char_prev(s, n, &cp);
        if (!qn_is_space(cp)) break;
        n -= len;
    }
    qn_buf_put(out, s, n);
}

/* What the NMT rules of SentencePiece drop and what they make a space of. */
static bool is_nmt_dropped(u32 cp)
{
    return (cp >= 1 && cp <= 8) || cp == 0xB || (cp >= 0xE && cp <= 0x1F) || cp == 0x7F || cp == 0x8F || cp == 0x9F;
}

static bool is_nmt_space(u32 cp)
{
    return cp == 9 || cp == 0xA || cp == 0xC || cp == 0xD || cp == 0x1680 || (cp >= 0x200B && cp <= 0x200F) || cp == 0x2028 ||
           cp == 0x2029 || cp == 0x2581 || cp == 0xFEFF || cp == 0xFFFD;
}

static void filter(qn_buf *out, const char *s, size_t n, qn_norm_kind kind)
{
    for (size_t i = 0; i < n;) {
        u32 cp;
        const size_t len = qn_char_next(s + i, n - i, &cp);
        const bool drop = kind == NORM_nmt ? is_nmt_dropped(cp) : qn_is_mark(cp);
        if (kind == NORM_nmt && is_nmt_space(cp)) qn_buf_putc(out, ' ');
        else if (!drop) qn_buf_put(out, s + i, len);
        i += len;
    }
}

static bool apply(const qn_norm *x, qn_matcher *m, const char *s, size_t n, qn_buf *out, qn_err *e)
{
    switch (x->kind) {
    case NORM_form: return qn_normal_form(out, s, n, x->form, e);
    case NORM_lowercase: qn_lowercase(out, s, n); return true;
    case NORM_strip: strip(out, s, n, x->left, x->right); return true;
    case NORM_nmt:
    case NORM_strip_accents: filter(out, s, n, x->kind); return true;
    case NORM_replace: return qn_replace(out, s, n, x->regex, x->literal, x->content, m, e);
    case NORM_prepend:
        if (n > 0) qn_buf_put(out, x->content.p, x->content.n);
        qn_buf_put(out, s, n);
        return true;
    case NORM_bytes: qn_bytes_spell(out, s, n); return true;
    }
    return true;
}

bool qn_normalise(const qn_norm *steps, size_t n, qn_matcher *m, qn_buf *text, qn_buf *tmp, qn_err *e)
{
    for (size_t i = 0; i < n; i++) {
        tmp->n = 0;
        if (!apply(&steps[i], m, text->p, text->n, tmp, e)) return false;
        if (tmp->failed) return qn_fail(e, QN_ENOMEM, "out of memory: a text of %zu bytes to normalise", text->n);
        const qn_buf old = *text;
        *text = *tmp;
        *tmp = old;
    }
    return true;
}
