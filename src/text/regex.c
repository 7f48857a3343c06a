/* regex.c - PCRE2 behind a narrow door. Tokenizer files are written for Oniguruma (Ruby syntax, Unicode); the few escapes that
 * mean something else in PCRE2 are spelled out before compiling. JIT where there is one; when its small stack is not enough the
 * interpreter, which keeps its frames on the heap, takes over. */
#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define MOST_PATTERN 65536u
#define HEAP_KIB 262144u /* of the interpreter's frames; taken only when they are needed */

struct qn_regex {
    pcre2_code *code;
    char *what;
};

static void *take(PCRE2_SIZE bytes, void *user)
{
    (void)user;
    return qn_alloc(bytes, NULL);
}

static void give(void *p, void *user)
{
    (void)user;
    qn_free(p);
}

/* ---- Oniguruma to PCRE2 */

#define SPACES "\\x09-\\x0D\\x20\\x85\\xA0\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}"
#define WORDS "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"

/* \s: PCRE2 counts U+180E as a space. \w: PCRE2 leaves marks out. \h: a hexadecimal digit there, a blank here. */
static const struct { char letter; const char *inside, *outside; } escapes[] = {
    { 's', SPACES, "[" SPACES "]" }, { 'S', NULL, "[^" SPACES "]" },
    { 'w', WORDS, "[" WORDS "]" },   { 'W', NULL, "[^" WORDS "]" },
    { 'h', "0-9a-fA-F", "[0-9a-fA-F]" }, { 'H', NULL, "[^0-9a-fA-F]" },
};

static const char *spelled_out(char letter, bool inside)
{
    for (size_t i = 0; i < QN_COUNT(escapes); i++) {
        if (escapes[i].letter == letter) return inside ? escapes[i].inside : escapes[i].outside;
    }
    return NULL;
}

static void translate(qn_buf *out, const char *p, size_t n)
{
    int depth = 0; /* of brackets */
    for (size_t i = 0; i < n; i++) {
        const char *other = p[i] == '\\' && i + 1 < n ? spelled_out(p[i + 1], depth > 0) : NULL;
        if (other) {
            qn_buf_puts(out, other);
            i++;
        } else if (p[i] == '\\' && i + 1 < n) {
            qn_buf_put(out, p + i, 2);
            i++;
        } else {
            if (p[i] == '[' && (depth == 0 || (i + 1 < n && p[i + 1] == ':'))) depth++;
            else if (p[i] == ']' && depth > 0) depth--;
            qn_buf_putc(out, p[i]);
        }
    }
}

/* Trailing white space is looked for from every space of a run in turn unless the pattern says that it begins one; the
 * matches are the same. */
static bool is_trailing_space(const char *p, size_t n) { return n == 4 && memcmp(p, "\\s+$", 4) == 0; }

static bool compile(qn_regex *r, const char *pattern, size_t n, qn_err *e)
{
    qn_buf text = { 0 };
    if (is_trailing_space(pattern, n)) qn_buf_puts(&text, "(?<!\\s)");
    translate(&text, pattern, n);
    pcre2_general_context *general = text.failed ? NULL : pcre2_general_context_create(take, give, NULL);
    pcre2_compile_context *context = general ? pcre2_compile_context_create(general) : NULL;
    int code = PCRE2_ERROR_NOMEMORY;
    PCRE2_SIZE at = 0;
    if (context) {
        pcre2_set_parens_nest_limit(context, 100); /* the compiler recurses on these */
        r->code = pcre2_compile((PCRE2_SPTR)text.p, text.n, PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &at,
                                context);
    }
    pcre2_compile_context_free(context);
    pcre2_general_context_free(general);
    qn_buf_close(&text);
    if (r->code) {
        pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE); /* optional: without it pcre2_match interprets */
        return true;
    }
    if (!context || code == PCRE2_ERROR_HEAP_FAILED || code == PCRE2_ERROR_NOMEMORY) {
        return qn_fail(e, QN_ENOMEM, "out of memory: a regular expression of %zu bytes", n);
    }
    PCRE2_UCHAR why[120];
    pcre2_get_error_message(code, why, sizeof why);
    return qn_fail(e, QN_EFORMAT, "%s: regular expression: %s at byte %zu", r->what, (const char *)why, (size_t)at);
}

qn_regex *qn_regex_open(const char *pattern, size_t n, const char *what, qn_err *e)
{
    if (n > MOST_PATTERN) {
        qn_fail(e, QN_EFORMAT, "%s: regular expression of %zu bytes, at most %u fit", what, n, MOST_PATTERN);
        return NULL;
    }
    if (!qn_utf8_valid(pattern, n)) {
        qn_fail(e, QN_EFORMAT, "%s: regular expression is not UTF-8", what);
        return NULL;
    }
    qn_regex *r = qn_new(sizeof *r, e);
    if (r && (r->what = qn_strdup(what, e)) && compile(r, pattern, n, e)) return r;
    qn_regex_close(r);
    return NULL;
}

void qn_regex_close(qn_regex *r)
{
    if (!r) return;
    pcre2_code_free(r->code);
    qn_free(r->what);
    qn_free(r);
}

bool qn_matcher_open(qn_matcher *m, qn_err *e)
{
    pcre2_general_context *general = pcre2_general_context_create(take, give, NULL);
    if (general) {
        m->data = pcre2_match_data_create(1, general);
        m->context = pcre2_match_context_create(general);
        pcre2_general_context_free(general);
    }
    if (!m->data || !m->context) {
        qn_matcher_close(m);
        return qn_fail(e, QN_ENOMEM, "out of memory: a regular expression's match");
    }
    pcre2_set_heap_limit(m->context, HEAP_KIB);
    return true;
}

void qn_matcher_close(qn_matcher *m)
{
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->context);
    *m = (qn_matcher){ 0 };
}

void qn_regex_subject(char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        u32 cp;
        const int len = (u8)s[i] < 0x80 ? 1 : qn_utf8_get(s + i, n - i, &cp);
        if (len == 0) s[i] = 0x1A; /* SUBSTITUTE: neither letter, number, mark nor space */
        i += len > 0 ? (size_t)len : 1;
    }
}

bool qn_regex_next(const qn_regex *r, qn_matcher *m, const char *s, size_t n, size_t from, bool *found, size_t *begin,
                   size_t *end, qn_err *e)
{
    /* every step back in a run of n characters counts once; 32 steps per byte is more than any tokenizer takes */
    const size_t limit = n < (UINT32_MAX - 100000) / 32 ? 100000 + 32 * n : UINT32_MAX;
    pcre2_set_match_limit(m->context, (u32)limit);
    int rc = pcre2_match(r->code, (PCRE2_SPTR)s, n, from, PCRE2_NO_UTF_CHECK, m->data, m->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
        rc = pcre2_match(r->code, (PCRE2_SPTR)s, n, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, m->data, m->context);
    }
    *found = rc >= 0;
    if (rc == PCRE2_ERROR_NOMATCH) return true;
    if (rc == PCRE2_ERROR_NOMEMORY) return qn_fail(e, QN_ENOMEM, "out of memory: a regular expression's match");
    if (rc < 0) return qn_fail(e, QN_EFORMAT, "%s: regular expression: too much backtracking in a text of %zu bytes", r->what, n);
    const PCRE2_SIZE *v = pcre2_get_ovector_pointer(m->data);
    *begin = v[0];
    *end = v[1] > v[0] ? v[1] : v[0]; /* \K may set the end before the beginning */
    return true;
}
