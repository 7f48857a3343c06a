/* jinja_globals.c - the functions that every template sees: range, dict, namespace, raise_exception, strftime_now. What else
 * jinja2 has (cycler, joiner, lipsum) is undefined here. Time is written in English whatever the locale. */
#include "text/jinja.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define GLOBAL(name) static bool name(qn_jx *x, qn_jv self, const qn_jargs *raw, const qn_jv *a, qn_jv *out)
#define UNUSED (void)x, (void)self, (void)raw, (void)a

GLOBAL(g_range)
{
    UNUSED;
    i64 part[3] = { 0, 0, 1 };
    if (!raw->n || raw->n > 3 || raw->n_kw) return qn_jx_fail(x, "range: takes one to three arguments");
    for (size_t i = 0; i < raw->n; i++)
        if (!qn_jv_integer(raw->pos[i], &part[i]))
            return qn_jx_fail(x, "range: needs integers, not a value of type %s", qn_jv_type_name(raw->pos[i]));
    if (raw->n == 1) {
        part[1] = part[0];
        part[0] = 0;
    }
    if (!part[2]) return qn_jx_fail(x, "range: a step of zero");
    i64 span;
    const bool empty = part[2] > 0 ? part[0] >= part[1] : part[0] <= part[1];
    if (part[2] == INT64_MIN || __builtin_sub_overflow(part[1], part[0], &span) || span == INT64_MIN)
        return qn_jx_fail(x, "range: too big");
    const i64 size = part[2] < 0 ? -part[2] : part[2], n = empty ? 0 : ((span < 0 ? -span : span) - 1) / size + 1;
    if (n > QN_TEMPLATE_RANGE) return qn_jx_fail(x, "range: more than %d items", QN_TEMPLATE_RANGE);
    qn_jrange *r = qn_jx_new(x, sizeof *r);
    if (!r) return false;
    *r = (qn_jrange){ part[0], part[1], part[2], (size_t)n };
    *out = (qn_jv){ .type = JT_range, .r = r };
    return true;
}

static bool put_all(qn_jx *x, qn_jdict *d, qn_jv from)
{
    qn_jlist *items, *two;
    if (from.type == JT_dict) {
        for (size_t i = 0; i < from.d->n; i++)
            if (!qn_jdict_put(x, d, from.d->keys[i], from.d->vals[i])) return false;
        return true;
    }
    if (!qn_jv_items(x, from, &items)) return false;
    for (size_t i = 0; i < items->n; i++) {
        if (!qn_jv_items(x, items->at[i], &two)) return false;
        if (two->n != 2) return qn_jx_fail(x, "dict: an element of %zu values where a pair was expected", two->n);
        if (!qn_jdict_put(x, d, two->at[0], two->at[1])) return false;
    }
    return true;
}

static bool new_dict(qn_jx *x, qn_jtype type, const qn_jargs *raw, qn_jv *out)
{
    qn_jv v;
    if (raw->n > 1) return qn_jx_fail(x, "dict: takes one argument beside named ones");
    if (!qn_jv_dict(x, type, raw->n_kw, &v) || (raw->n && !put_all(x, v.d, raw->pos[0]))) return false;
    for (size_t i = 0; i < raw->n_kw; i++) {
        qn_jv key;
        if (!qn_jv_str(x, raw->kw[i].name, &key) || !qn_jdict_put(x, v.d, key, raw->kw[i].v)) return false;
    }
    *out = v;
    return true;
}

GLOBAL(g_dict) { UNUSED; return new_dict(x, JT_dict, raw, out); }
GLOBAL(g_namespace) { UNUSED; return new_dict(x, JT_ns, raw, out); }

GLOBAL(g_raise)
{
    UNUSED;
    qn_jstr s;
    if (!qn_jv_text(x, a[0], &s)) return false;
    (void)out;
    return qn_jx_fail(x, "%.*s", (int)qn_minz(s.n, 300), s.p);
}

static int time_part(char c, const struct tm *t, char *o, size_t n)
{
    static const char *const days[] = { "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday" };
    static const char *const months[] = { "January", "February", "March",     "April",   "May",      "June",
                                          "July",    "August",   "September", "October", "November", "December" };
    const int hour12 = t->tm_hour % 12 ? t->tm_hour % 12 : 12;
    switch (c) {
    case 'A': return snprintf(o, n, "%s", days[t->tm_wday % 7]);
    case 'a': return snprintf(o, n, "%.3s", days[t->tm_wday % 7]);
    case 'B': return snprintf(o, n, "%s", months[t->tm_mon % 12]);
    case 'b':
    case 'h': return snprintf(o, n, "%.3s", months[t->tm_mon % 12]);
    case 'd': return snprintf(o, n, "%02d", t->tm_mday);
    case 'e': return snprintf(o, n, "%2d", t->tm_mday);
    case 'm': return snprintf(o, n, "%02d", t->tm_mon + 1);
    case 'Y': return snprintf(o, n, "%d", t->tm_year + 1900);
    case 'y': return snprintf(o, n, "%02d", t->tm_year % 100);
    case 'H': return snprintf(o, n, "%02d", t->tm_hour);
    case 'I': return snprintf(o, n, "%02d", hour12);
    case 'M': return snprintf(o, n, "%02d", t->tm_min);
    case 'S': return snprintf(o, n, "%02d", t->tm_sec);
    case 'p': return snprintf(o, n, "%s", t->tm_hour < 12 ? "AM" : "PM");
    case 'j': return snprintf(o, n, "%03d", t->tm_yday + 1);
    case 'w': return snprintf(o, n, "%d", t->tm_wday);
    case 'u': return snprintf(o, n, "%d", t->tm_wday ? t->tm_wday : 7);
    case 'F': return snprintf(o, n, "%d-%02d-%02d", t->tm_year + 1900, t->tm_mon + 1, t->tm_mday);
    case 'T': return snprintf(o, n, "%02d:%02d:%02d", t->tm_hour, t->tm_min, t->tm_sec);
    case 'D': return snprintf(o, n, "%02d/%02d/%02d", t->tm_mon + 1, t->tm_mday, t->tm_year % 100);
    case 'R': return snprintf(o, n, "%02d:%02d", t->tm_hour, t->tm_min);
    case '%': return snprintf(o, n, "%%");
    default: return 0;
    }
}

bool qn_jtime_text(qn_jx *x, qn_jstr fmt, qn_jv *out)
{
    const time_t now = x->now ? (time_t)x->now : time(NULL);
    struct tm t;
    qn_jbuild b = { 0 };
    if (!localtime_r(&now, &t)) return qn_jx_fail(x, "strftime_now: the time is out of range");
    for (size_t i = 0; i < fmt.n;) {
        char part[64];
        size_t len = 1;
        const bool bare = i + 2 < fmt.n && fmt.p[i + 1] == '-'; /* %-d: without leading zeros */
        int n = fmt.p[i] == '%' && i + 1 < fmt.n ? time_part(fmt.p[i + 1 + bare], &t, part, sizeof part) : 0;
        if (n) len = 2u + bare;
        const char *from = part;
        while (bare && n > 1 && (*from == '0' || *from == ' ')) from++, n--;
        const bool marked = qn_jstr_marked(qn_jstr_part(fmt, i, i + len));
        if (!qn_jbuild_bytes(x, &b, n ? from : fmt.p + i, n ? (size_t)n : 1, marked)) return false;
        i += len;
    }
    return qn_jbuild_value(x, &b, out);
}

GLOBAL(g_strftime_now)
{
    UNUSED;
    qn_jstr s;
    return qn_jv_text(x, a[0], &s) && qn_jtime_text(x, s, out);
}

const qn_jrow qn_jglobals[] = {
    { "dict", g_dict, NULL, 0 }, { "namespace", g_namespace, NULL, 0 }, { "raise_exception", g_raise, "message", 1 },
    { "range", g_range, NULL, 0 }, { "strftime_now", g_strftime_now, "format", 1 }, { NULL, NULL, NULL, 0 } };
