/* jinja_ops.c - operators on values: arithmetic as Python does it (floor division, modulo with the divisor's sign, integers
 * that stay integers), concatenation, repetition, comparison. Integers have 64 bits; what does not fit is an error. */
#include "text/jinja.h"

#include <math.h>
#include <string.h>

static bool undefined(qn_jx *x, qn_jv v)
{
    return qn_jx_fail(x, "%.*s", v.s ? (int)v.s->n : 22, v.s ? v.s->p : "the value is undefined");
}

static bool too_big(qn_jx *x) { return qn_jx_fail(x, "an integer out of range"); }

static bool int_power(qn_jx *x, i64 a, i64 b, i64 *out)
{
    i64 r = 1;
    while (b) {
        if ((b & 1) && __builtin_mul_overflow(r, a, &r)) return too_big(x);
        b >>= 1;
        if (b && __builtin_mul_overflow(a, a, &a)) return too_big(x);
    }
    *out = r;
    return true;
}

static bool int_op(qn_jx *x, u16 op, i64 a, i64 b, i64 *out)
{
    bool over = false;
    switch (op) {
    case '+': over = __builtin_add_overflow(a, b, out); break;
    case '-': over = __builtin_sub_overflow(a, b, out); break;
    case '*': over = __builtin_mul_overflow(a, b, out); break;
    case QN_JOP2('*', '*'): return int_power(x, a, b, out);
    default:
        if (!b) return qn_jx_fail(x, "division by zero");
        if (b == -1) { /* INT64_MIN / -1 does not fit */
            over = op != '%' && __builtin_sub_overflow(0, a, out);
            if (op == '%') *out = 0;
            break;
        }
        *out = op == '%' ? a % b : a / b;
        if (a % b && (a < 0) != (b < 0)) *out = op == '%' ? *out + b : *out - 1;
    }
    return over ? too_big(x) : true;
}

static bool float_op(qn_jx *x, u16 op, double a, double b, double *out)
{
    switch (op) {
    case '+': *out = a + b; return true;
    case '-': *out = a - b; return true;
    case '*': *out = a * b; return true;
    case QN_JOP2('*', '*'):
        if (a == 0 && b < 0) return qn_jx_fail(x, "division by zero");
        *out = pow(a, b);
        if (isnan(*out) && !isnan(a) && !isnan(b)) return qn_jx_fail(x, "a power of a negative number");
        if (isinf(*out) && !isinf(a) && !isinf(b)) return qn_jx_fail(x, "a number out of range");
        return true;
    default: break;
    }
    if (b == 0) return qn_jx_fail(x, "division by zero");
    if (op == '/') *out = a / b;
    else if (op == '%') {
        *out = fmod(a, b);
        if (*out != 0 && (*out < 0) != (b < 0)) *out += b;
        else if (*out == 0) *out = copysign(0, b);
    } else *out = floor(a / b);
    return true;
}

static bool numbers(qn_jx *x, u16 op, qn_jv a, qn_jv b, qn_jv *out)
{
    i64 i, j, k = 0;
    double f, g, h = 0;
    const bool ints = qn_jv_integer(a, &i) && qn_jv_integer(b, &j);
    if (ints && op != '/' && !(op == QN_JOP2('*', '*') && j < 0)) {
        if (!int_op(x, op, i, j, &k)) return false;
        *out = qn_jv_int(k);
    } else {
        qn_jv_number(a, &f);
        qn_jv_number(b, &g);
        if (!float_op(x, op, f, g, &h)) return false;
        *out = qn_jv_float(h);
    }
    out->marked = a.marked || b.marked;
    return true;
}

/* Extends the last long result in place where it can, so that building a text piece by piece takes linear memory. */
bool qn_jx_concat(qn_jx *x, qn_jstr a, qn_jstr b, qn_jv *out)
{
    qn_jbuild *c = &x->cat;
    if (!b.n) return qn_jv_str(x, a, out);
    if (!a.n) return qn_jv_str(x, b, out);
    if (c->n && a.n <= c->n && a.p + a.n == c->p + c->n && c->cap - c->n >= b.n &&
        (!a.marks || a.marks + a.n == c->marks + c->n)) {
        const size_t from = c->n - a.n;
        if (!qn_jbuild_put(x, c, b)) return false;
        return qn_jv_str(x, (qn_jstr){ c->p + from, c->any ? c->marks + from : NULL, a.n + b.n }, out);
    }
    qn_jbuild fresh = { 0 };
    if (!qn_jbuild_put(x, &fresh, a) || !qn_jbuild_put(x, &fresh, b)) return false;
    if (fresh.n >= 256) *c = fresh; /* short ones would only drive a long one out */
    return qn_jbuild_value(x, &fresh, out);
}

static bool add_lists(qn_jx *x, qn_jv a, qn_jv b, qn_jv *out)
{
    qn_jv v;
    if (!qn_jv_list(x, (qn_jtype)a.type, a.l->n + b.l->n, &v)) return false;
    if (a.l->n) memcpy(v.l->at, a.l->at, a.l->n * sizeof *v.l->at);
    if (b.l->n) memcpy(v.l->at + a.l->n, b.l->at, b.l->n * sizeof *v.l->at);
    v.marked = a.marked && b.marked;
    *out = v;
    return true;
}

static bool repeat(qn_jx *x, qn_jv v, i64 times, qn_jv *out)
{
    if (times < 0) times = 0;
    if (v.type == JT_str) {
        qn_jbuild text = { 0 };
        if (times > (i64)QN_TEMPLATE_OUTPUT && v.s->n)
            return qn_jx_fail(x, "a text of more than %u MiB", QN_TEMPLATE_OUTPUT >> 20);
        for (i64 i = 0; i < times && v.s->n; i++)
            if (!qn_jbuild_put(x, &text, *v.s)) return false;
        return qn_jbuild_value(x, &text, out);
    }
    size_t total;
    qn_jv list;
    if (!qn_mul((size_t)times, v.l->n, &total) || !qn_jv_list(x, (qn_jtype)v.type, total, &list))
        return qn_jx_fail(x, "a list of too many items");
    for (size_t i = 0; i < total; i++) list.l->at[i] = v.l->at[i % v.l->n];
    list.marked = v.marked;
    *out = list;
    return true;
}

bool qn_jx_binary(qn_jx *x, u16 op, qn_jv a, qn_jv b, qn_jv *out)
{
    double f, g;
    i64 times;
    if (op == '%' && a.type == JT_str) return qn_jformat_percent(x, *a.s, b, out);
    if (a.type == JT_undef) return undefined(x, a);
    if (b.type == JT_undef) return undefined(x, b);
    if (qn_jv_number(a, &f) && qn_jv_number(b, &g)) return numbers(x, op, a, b, out);
    if (op == '+' && a.type == JT_str && b.type == JT_str) return qn_jx_concat(x, *a.s, *b.s, out);
    if (op == '+' && qn_jv_is_seq(a) && a.type == b.type) return add_lists(x, a, b, out);
    if (op == '*' && (a.type == JT_str || qn_jv_is_seq(a)) && qn_jv_integer(b, &times)) return repeat(x, a, times, out);
    if (op == '*' && (b.type == JT_str || qn_jv_is_seq(b)) && qn_jv_integer(a, &times)) return repeat(x, b, times, out);
    const char text[3] = { (char)(op > 255 ? op >> 8 : op), (char)(op > 255 ? op & 255 : 0), 0 };
    return qn_jx_fail(x, "operator %s between %s and %s", text, qn_jv_type_name(a), qn_jv_type_name(b));
}

/* 'i' and '!i' stand for in and not in. */
bool qn_jx_compare(qn_jx *x, u16 op, qn_jv a, qn_jv b, bool *out)
{
    int order;
    double f, g;
    switch (op) {
    case QN_JOP2('=', '='): return qn_jv_equal(x, a, b, out);
    case 'i': return qn_jv_contains(x, b, a, out);
    case QN_JOP2('!', '='):
        if (!qn_jv_equal(x, a, b, out)) return false;
        *out = !*out;
        return true;
    case QN_JOP2('!', 'i'):
        if (!qn_jv_contains(x, b, a, out)) return false;
        *out = !*out;
        return true;
    default: break;
    }
    if (qn_jv_number(a, &f) && qn_jv_number(b, &g) && (isnan(f) || isnan(g))) {
        *out = false;
        return true;
    }
    if (!qn_jv_order(x, a, b, &order)) return false;
    *out = op == '<' ? order < 0 : op == '>' ? order > 0 : op == QN_JOP2('<', '=') ? order <= 0 : order >= 0;
    return true;
}
