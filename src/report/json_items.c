/* json_items.c - finds where objects begin and end by counting brackets outside of strings; what is in them is for the parser. */
#include "report/json_items.h"

#include <string.h>

enum { AT_START, IN_ARRAY, AT_END };

#define STEP ((size_t)64 << 10)

/* Bytes from here, at least `want` if there are as many. */
static qn_got look(qn_items *it, size_t want, qn_str *out, qn_err *e)
{
    for (;;) {
        const qn_got got = qn_stream_peek(it->im->text, want, out, e);
        if (got == QN_GOT_NOTHING_YET) it->im->asked = 0;
        if (got == QN_GOT_ERROR || !qn_import_goes_on(it->im, e)) return QN_GOT_ERROR;
        if (got != QN_GOT_NOTHING_YET) return got;
    }
}

/* Length of the value at p: an object, array or string with its end; 0: it does not end within n. */
static size_t length_of(const char *p, size_t n)
{
    int depth = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '"') {
            for (i++; i < n && p[i] != '"'; i++) i += p[i] == '\\';
            if (i >= n) return 0;
        } else if (p[i] == '{' || p[i] == '[') {
            depth++;
        } else if (p[i] == '}' || p[i] == ']') {
            depth--;
        }
        if (depth <= 0) return i + 1;
    }
    return 0;
}

/* Passes over a value that is too long to be looked at whole. */
static qn_got pass_over(qn_items *it, qn_err *e)
{
    int depth = 0;
    bool text = false, escaped = false;
    for (qn_str s;;) {
        const qn_got got = look(it, 1, &s, e);
        if (got != QN_GOT_ONE) return got;
        size_t i = 0;
        bool done = false;
        for (; i < s.n && !done; i++) {
            const char c = s.p[i];
            if (text) {
                if (escaped) escaped = false;
                else if (c == '\\') escaped = true;
                else if (c == '"') text = false;
            } else if (c == '"') {
                text = true;
            } else if (c == '{' || c == '[') {
                depth++;
            } else if (c == '}' || c == ']') {
                depth--;
            }
            done = !text && depth <= 0;
        }
        qn_stream_take(it->im->text, i);
        if (done) return QN_GOT_ONE;
    }
}

/* A value at the present place, whole; END: the text ends in it. ONE with n = 0: too long, passed over. */
static qn_got value_here(qn_items *it, qn_str *out, qn_err *e)
{
    qn_str s;
    for (size_t want = STEP;; want *= 2) {
        if (want > QN_LINE_MOST) want = QN_LINE_MOST;
        const qn_got got = look(it, want, &s, e);
        if (got != QN_GOT_ONE) return got;
        const size_t n = length_of(s.p, qn_minz(s.n, QN_LINE_MOST));
        if (n) {
            *out = (qn_str){ s.p, n };
            return QN_GOT_ONE;
        }
        if (s.n < want) return QN_GOT_END;
        if (want == QN_LINE_MOST) break;
    }
    *out = (qn_str){ "", 0 };
    return pass_over(it, e);
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/* The next sign that is not blank, not taken. */
static qn_got sign(qn_items *it, const char *also, char *out, qn_err *e)
{
    for (qn_str s;;) {
        const qn_got got = look(it, 1, &s, e);
        if (got != QN_GOT_ONE) return got;
        size_t i = 0;
        while (i < s.n && (is_blank(s.p[i]) || (s.p[i] && strchr(also, s.p[i])))) i++;
        qn_stream_take(it->im->text, i);
        if (i == s.n) continue;
        *out = s.p[i];
        return QN_GOT_ONE;
    }
}

/* A number, true, null: to the next comma or bracket. */
static qn_got pass_scalar(qn_items *it, qn_err *e)
{
    for (qn_str s;;) {
        const qn_got got = look(it, 1, &s, e);
        if (got != QN_GOT_ONE) return got;
        size_t i = 0;
        while (i < s.n && !(s.p[i] && strchr(",]}{[\"", s.p[i]))) i++;
        qn_stream_take(it->im->text, i);
        if (i < s.n) return QN_GOT_ONE;
    }
}

/* In the outermost object: from key to key until the array is found. */
static qn_got find_array(qn_items *it, qn_err *e)
{
    char c;
    qn_got got = sign(it, "", &c, e);
    if (got != QN_GOT_ONE) return got;
    const bool array = c == '[';
    qn_stream_take(it->im->text, 1);
    it->state = IN_ARRAY;
    if (array) return QN_GOT_ONE;
    for (;;) {
        qn_str key;
        bool ours = false;
        if ((got = sign(it, ",", &c, e)) != QN_GOT_ONE) return got;
        if (c != '"') return QN_GOT_END; /* the object's end, or no JSON */
        if ((got = value_here(it, &key, e)) != QN_GOT_ONE) return got;
        if (key.n) {
            ours = key.n == strlen(it->key) + 2 && !memcmp(key.p + 1, it->key, key.n - 2);
            qn_stream_take(it->im->text, key.n);
        }
        if ((got = sign(it, ":", &c, e)) != QN_GOT_ONE) return got;
        if (ours && c == '[') {
            qn_stream_take(it->im->text, 1);
            return QN_GOT_ONE;
        }
        got = c == '{' || c == '[' || c == '"' ? pass_over(it, e) : pass_scalar(it, e);
        if (got != QN_GOT_ONE) return got;
    }
}

static void complain(qn_items *it)
{
    if (it->bad++ == 0) it->bad_at = qn_stream_at(it->im->text);
}

static qn_got next_in_array(qn_items *it, qn_str *element, qn_err *e)
{
    for (char c;;) {
        qn_got got = sign(it, ",", &c, e);
        if (got != QN_GOT_ONE) return got;
        if (c == ']') return QN_GOT_END;
        const u64 at = qn_stream_at(it->im->text);
        if (c != '{') {
            complain(it);
            if (c == '}') qn_stream_take(it->im->text, 1);
            else got = c == '[' || c == '"' ? pass_over(it, e) : pass_scalar(it, e);
            if (got != QN_GOT_ONE) return got;
            continue;
        }
        if ((got = value_here(it, element, e)) == QN_GOT_END) {
            it->cut = true;
            it->cut_at = at;
        }
        if (got == QN_GOT_ONE && !element->n) {
            complain(it);
            continue;
        }
        if (got == QN_GOT_ONE) qn_stream_take(it->im->text, element->n); /* the window keeps it until the next look */
        return got;
    }
}

qn_got qn_items_next(qn_items *it, qn_str *element, qn_err *e)
{
    if (it->state == AT_END) return QN_GOT_END;
    qn_got got = it->state == AT_START ? find_array(it, e) : QN_GOT_ONE;
    if (got == QN_GOT_ONE) got = next_in_array(it, element, e);
    if (got != QN_GOT_ONE) it->state = AT_END;
    return got;
}
