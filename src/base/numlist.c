/* numlist.c - reads lists of numbers. Items stand between commas; an item is a number or a range FIRST-LAST, both ends
 * included, walked by +STEP (1 unless told) or by *FACTOR. Strict: nothing is skipped, guessed or cut off. */
#include "base/numlist.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

bool qn_ints_add(qn_ints *list, int v, qn_err *e)
{
    if (list->n >= QN_INTS_MOST) return qn_fail(e, QN_EUSAGE, "a list of more than %d numbers", QN_INTS_MOST);
    int *at = qn_resize(list->at, ((size_t)list->n + 1) * sizeof *at, e);
    if (!at) return false;
    list->at = at;
    at[list->n++] = v;
    return true;
}

void qn_ints_close(qn_ints *list)
{
    qn_free(list->at);
    *list = (qn_ints){ 0 };
}

int qn_ints_max(const qn_ints *list)
{
    int most = 0;
    for (int i = 0; i < list->n; i++) most = list->at[i] > most ? list->at[i] : most;
    return most;
}

typedef struct range { i64 first, last, step; bool times; } range;

static bool parse_part(const char *s, size_t n, i64 lo, i64 hi, i64 *out)
{
    char word[24];
    if (n == 0 || n >= sizeof word) return false;
    memcpy(word, s, n);
    word[n] = 0;
    return word[0] != '-' && qn_parse_i64(word, lo, hi, out);
}

/* FIRST, FIRST-LAST, FIRST-LAST+STEP or FIRST-LAST*FACTOR in s[0..n). */
static bool parse_item(const char *s, size_t n, int lo, int hi, range *r)
{
    const char *dash = memchr(s, '-', n);
    *r = (range){ .step = 1 };
    if (!dash) {
        if (!parse_part(s, n, lo, hi, &r->first)) return false;
        r->last = r->first;
        return true;
    }
    const char *last = dash + 1, *end = s + n, *by = last;
    while (by < end && *by != '+' && *by != '*') by++;
    if (!parse_part(s, (size_t)(dash - s), lo, hi, &r->first) || !parse_part(last, (size_t)(by - last), lo, hi, &r->last))
        return false;
    if (by < end) {
        r->times = *by == '*';
        if (!parse_part(by + 1, (size_t)(end - by - 1), r->times ? 2 : 1, INT32_MAX, &r->step)) return false;
    }
    return r->first <= r->last && (!r->times || r->first > 0);
}

bool qn_ints_parse(qn_ints *list, const char *text, int lo, int hi, const char *what, qn_err *e)
{
    for (const char *s = text;; s++) {
        const size_t n = strcspn(s, ",");
        range r;
        char shown[64];
        if (!parse_item(s, n, lo, hi, &r))
            return qn_fail(e, QN_EUSAGE, "%s: \"%s\" is neither a number from %d to %d nor a range of them (1-8, 1-8+2, 1-64*2)",
                           what, qn_printable(s, n, 40, shown, sizeof shown), lo, hi);
        for (i64 v = r.first; v <= r.last; v = r.times ? v * r.step : v + r.step)
            if (!qn_ints_add(list, (int)v, e)) return false;
        s += n;
        if (!*s) return true;
    }
}
