/* jinja_lex.c - a template's source as tokens, one at a time. All whitespace control happens here: `-` and `+` signs, the
 * newline that trim_blocks takes behind a block, the blanks that lstrip_blocks takes before one, comments and raw blocks.
 * Inside brackets `}}` is two closing braces, not the end of the expression. Knows no grammar. */
#include "text/jinja.h"

#include <stdio.h>
#include <string.h>

static bool fail(const qn_jlex *l, size_t pos, qn_err *e, const char *what)
{
    return qn_jfail_at(l->t, pos, QN_EFORMAT, e, what);
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f); }

static size_t skip_space(const qn_jlex *l, size_t at)
{
    while (at < l->t->n && is_space(l->t->src[at])) at++;
    return at;
}

static bool has(const qn_jlex *l, size_t at, const char *lit)
{
    const size_t n = strlen(lit);
    return at <= l->t->n && n <= l->t->n - at && memcmp(l->t->src + at, lit, n) == 0;
}

/* Where `lit` comes next, or the end of the source. */
static size_t find(const qn_jlex *l, size_t at, const char *lit)
{
    const char *hit = at < l->t->n ? memmem(l->t->src + at, l->t->n - at, lit, strlen(lit)) : NULL;
    return hit ? (size_t)(hit - l->t->src) : l->t->n;
}

static size_t find_tag(const qn_jlex *l, size_t at)
{
    const char *s = l->t->src;
    for (;; at++) {
        const char *hit = at < l->t->n ? memchr(s + at, '{', l->t->n - at) : NULL;
        if (!hit) return l->t->n;
        at = (size_t)(hit - s);
        if (at + 1 < l->t->n && (s[at + 1] == '%' || s[at + 1] == '{' || s[at + 1] == '#')) return at;
    }
}

/* The text from..to before a tag at `to`: how much of it stays. */
static size_t keep_before_tag(const qn_jlex *l, size_t from, size_t to, char sign, bool is_print)
{
    const char *s = l->t->src;
    size_t end = to;
    if (sign == '-') {
        u32 cp;
        while (end > from) {
            const size_t k = qn_jchar_before(s + from, end - from, &cp);
            if (!qn_jchar_space(cp)) break;
            end -= k;
        }
        return end;
    }
    if (sign == '+' || is_print) return to;
    while (end > from && is_space(s[end - 1]) && s[end - 1] != '\n') end--;
    const bool at_line_start = end > from ? s[end - 1] == '\n' : from == 0 || s[from - 1] == '\n';
    return at_line_start ? end : to;
}

/* Behind the end of a block or comment whose closing `%}` or `#}` stands at `at`, with an optional sign before it. */
static size_t after_block(const qn_jlex *l, size_t close, char sign)
{
    const size_t at = close + 2;
    if (sign == '-') return skip_space(l, at);
    if (sign != '+' && at < l->t->n && l->t->src[at] == '\n') return at + 1;
    return at;
}

static char sign_at(const qn_jlex *l, size_t at)
{
    const char c = at < l->t->n ? l->t->src[at] : 0;
    return c == '-' || c == '+' ? c : 0;
}

/* `{% word %}` at `at` (which is behind `{%`): the place behind it, else 0. The signs stand in sign[0] and sign[1]. */
static size_t match_word_block(const qn_jlex *l, size_t at, const char *word, char sign[2])
{
    sign[0] = sign_at(l, at);
    if (sign[0]) at++;
    at = skip_space(l, at);
    if (!has(l, at, word)) return 0;
    at = skip_space(l, at + strlen(word));
    sign[1] = sign_at(l, at);
    if (sign[1]) at++;
    return has(l, at, "%}") ? at + 2 : 0;
}

static void set_data(const qn_jlex *l, qn_jtok *out, size_t from, size_t to)
{
    *out = (qn_jtok){ .type = JK_data, .pos = from, .p = l->t->src + from, .n = to - from };
}

/* A raw block that begins at `tag`; its content is the token. */
static bool lex_raw(qn_jlex *l, size_t tag, size_t body, char begin_sign, qn_jtok *out, qn_err *e)
{
    if (begin_sign == '-') body = skip_space(l, body);
    for (size_t at = find(l, body, "{%"); at < l->t->n; at = find(l, at + 2, "{%")) {
        char sign[2];
        const size_t end = match_word_block(l, at + 2, "endraw", sign);
        if (!end) continue;
        set_data(l, out, body, keep_before_tag(l, body, at, sign[0], false));
        l->at = after_block(l, end - 2, sign[1]);
        return true;
    }
    return fail(l, tag, e, "a raw block without its end");
}

static bool skip_comment(qn_jlex *l, size_t tag, qn_err *e)
{
    const size_t end = find(l, tag + 2, "#}");
    if (end == l->t->n) return fail(l, tag, e, "a comment without its end");
    const char sign = end > tag + 2 ? sign_at(l, end - 1) : 0;
    l->at = after_block(l, end, sign);
    return true;
}

/* Outside of tags: text, up to the next tag that is neither a comment nor raw. */
static bool lex_data(qn_jlex *l, qn_jtok *out, qn_err *e)
{
    while (l->at < l->t->n) {
        const size_t from = l->at, tag = find_tag(l, from);
        if (tag == l->t->n) {
            set_data(l, out, from, tag);
            l->at = tag;
            return true;
        }
        const char kind = l->t->src[tag + 1], sign = sign_at(l, tag + 2);
        const size_t keep = keep_before_tag(l, from, tag, sign, kind == '{');
        if (keep > from) { /* the tag itself is met again, with nothing before it */
            set_data(l, out, from, keep);
            l->at = tag;
            return true;
        }
        if (kind == '#') {
            if (!skip_comment(l, tag, e)) return false;
            continue;
        }
        char signs[2];
        const size_t raw = kind == '%' ? match_word_block(l, tag + 2, "raw", signs) : 0;
        if (raw && signs[1] != '+') {
            if (!lex_raw(l, tag, raw, signs[1], out, e)) return false;
            if (out->n) return true;
            continue;
        }
        l->mode = kind == '{' ? JK_print : JK_block;
        *out = (qn_jtok){ .type = l->mode, .pos = tag };
        l->at = tag + 2 + (sign != 0);
        return true;
    }
    *out = (qn_jtok){ .type = JK_eof, .pos = l->t->n };
    return true;
}

static bool lex_end(qn_jlex *l, qn_jtok *out)
{
    const size_t at = l->at;
    const char sign = sign_at(l, at);
    const size_t close = at + (sign != 0);
    const bool print = l->mode == JK_print;
    if (!has(l, close, print ? "}}" : "%}") || (print && sign == '+')) return false;
    *out = (qn_jtok){ .type = print ? JK_print_end : JK_block_end, .pos = at };
    l->at = print ? (sign ? skip_space(l, close + 2) : close + 2) : after_block(l, close, sign);
    l->mode = JK_data;
    return true;
}

static bool lex_string(qn_jlex *l, qn_jtok *out, qn_err *e)
{
    const size_t from = l->at;
    const char quote = l->t->src[from];
    size_t at = from + 1;
    while (at < l->t->n && l->t->src[at] != quote) at += l->t->src[at] == '\\' ? 2 : 1;
    if (at >= l->t->n) return fail(l, from, e, "a string without its end");
    *out = (qn_jtok){ .type = JK_string, .pos = from, .p = l->t->src + from + 1, .n = at - from - 1 };
    l->at = at + 1;
    return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static size_t digits(const qn_jlex *l, size_t at)
{
    const char *s = l->t->src;
    while (at < l->t->n && (is_digit(s[at]) || (s[at] == '_' && at + 1 < l->t->n && is_digit(s[at + 1])))) at++;
    return at;
}

static size_t hex_digits(const qn_jlex *l, size_t at)
{
    while (at < l->t->n && is_word(l->t->src[at]) && (unsigned char)l->t->src[at] < 0x80) at++;
    return at;
}

static void lex_number(qn_jlex *l, qn_jtok *out)
{
    const char *s = l->t->src;
    const size_t n = l->t->n, from = l->at;
    size_t at;
    bool real = false;
    if (s[from] == '0' && from + 1 < n && strchr("xXoObB", s[from + 1]) && s[from + 1]) {
        at = hex_digits(l, from + 2);
    } else {
        at = digits(l, from);
        if (at + 1 < n && s[at] == '.' && is_digit(s[at + 1])) {
            at = digits(l, at + 1);
            real = true;
        }
        if (at < n && (s[at] == 'e' || s[at] == 'E')) {
            const size_t k = at + 1 + (at + 1 < n && (s[at + 1] == '+' || s[at + 1] == '-'));
            if (k < n && is_digit(s[k])) {
                at = digits(l, k);
                real = true;
            }
        }
    }
    *out = (qn_jtok){ .type = real ? JK_float : JK_int, .pos = from, .p = s + from, .n = at - from };
    l->at = at;
}

static bool lex_operator(qn_jlex *l, qn_jtok *out, qn_err *e)
{
    static const char pairs[][3] = { "//", "**", "==", "!=", ">=", "<=" };
    const size_t at = l->at;
    const char c = l->t->src[at];
    *out = (qn_jtok){ .type = JK_op, .pos = at, .op = (u16)(unsigned char)c };
    l->at = at + 1;
    for (size_t i = 0; i < QN_COUNT(pairs); i++) {
        if (!has(l, at, pairs[i])) continue;
        out->op = QN_JOP2(pairs[i][0], pairs[i][1]);
        l->at = at + 2;
        return true;
    }
    if (!c || !strchr("+-/*%~[](){}><=.:|,;", c)) {
        char what[64];
        snprintf(what, sizeof what, "unexpected character '%c'", c >= ' ' && c < 127 ? c : '?');
        return fail(l, at, e, what);
    }
    if (strchr("([{", c)) {
        if (l->n_open == (int)sizeof l->open) return fail(l, at, e, "nested too deeply");
        l->open[l->n_open++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (strchr(")]}", c)) {
        if (!l->n_open || l->open[l->n_open - 1] != c) return fail(l, at, e, "a closing bracket without its opening one");
        l->n_open--;
    }
    return true;
}

bool qn_jlex_next(qn_jlex *l, qn_jtok *out, qn_err *e)
{
    if (l->mode == JK_data) return lex_data(l, out, e);
    l->at = skip_space(l, l->at);
    if (l->at >= l->t->n) return fail(l, l->t->n, e, "the template ends inside a tag");
    if (!l->n_open && lex_end(l, out)) return true;
    const char c = l->t->src[l->at];
    if (c == '"' || c == '\'') return lex_string(l, out, e);
    if (is_digit(c)) {
        lex_number(l, out);
        return true;
    }
    if (!is_word(c)) return lex_operator(l, out, e);
    size_t at = l->at;
    while (at < l->t->n && is_word(l->t->src[at])) at++;
    *out = (qn_jtok){ .type = JK_name, .pos = l->at, .p = l->t->src + l->at, .n = at - l->at };
    l->at = at;
    return true;
}
