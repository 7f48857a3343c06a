/* jinja_eval.c - evaluates expressions and calls. One function per kind of node, so that the recursive one stays small on
 * the stack. Arithmetic is in jinja_ops.c, attributes and items in jinja_access.c. */
#include "text/jinja.h"

#include <string.h>

static bool eval_name(qn_jx *x, const qn_jnode *n, qn_jv *out)
{
    const qn_jstr name = x->t->name_list[n->name];
    const qn_jv *v = qn_jx_lookup(x, n->name);
    if (v) {
        *out = *v;
        return true;
    }
    const qn_jrow *row = qn_jrow_find(qn_jglobals, name);
    if (!row) return qn_jv_undef(x, out, "'%.*s' is undefined", (int)qn_minz(name.n, 80), name.p);
    *out = (qn_jv){ .type = JT_func, .row = row };
    return true;
}

/* JN_list, JN_tuple: items in a. */
static bool eval_list(qn_jx *x, const qn_jnode *n, qn_jv *out)
{
    size_t k = 0;
    qn_jv v;
    for (const qn_jnode *i = n->a; i; i = i->next) k++;
    if (!qn_jv_list(x, n->kind == JN_list ? JT_list : JT_tuple, k, &v)) return false;
    k = 0;
    for (const qn_jnode *i = n->a; i; i = i->next)
        if (!qn_jx_eval(x, i, &v.l->at[k++])) return false;
    *out = v;
    return true;
}

/* JN_dict: JN_pair in a, each with key a and value b. */
static bool eval_dict(qn_jx *x, const qn_jnode *n, qn_jv *out)
{
    size_t k = 0;
    qn_jv dict;
    for (const qn_jnode *i = n->a; i; i = i->next) k++;
    if (!qn_jv_dict(x, JT_dict, k, &dict)) return false;
    for (const qn_jnode *i = n->a; i; i = i->next) {
        qn_jv key, v;
        if (!qn_jx_eval(x, i->a, &key) || !qn_jx_eval(x, i->b, &v) || !qn_jdict_put(x, dict.d, key, v)) return false;
    }
    *out = dict;
    return true;
}

static bool eval_attr(qn_jx *x, const qn_jnode *n, qn_jv *out)
{
    qn_jv v;
    return qn_jx_eval(x, n->a, &v) && qn_jx_attr(x, v, x->t->name_list[n->name], out);
}

/* JN_item: a[b]; b may be a JN_slice with start, stop and step in a, b, c. */
static bool eval_item(qn_jx *x, const qn_jnode *n, qn_jv *out)
{
    qn_jv v, key;
    if (!qn_jx_eval(x, n->a, &v)) return false;
    if (n->b->kind != JN_slice) return qn_jx_eval(x, n->b, &key) && qn_jx_item(x, v, key, out);
    const qn_jnode *const of[3] = { n->b->a, n->b->b, n->b->c };
    qn_jv part[3];
    for (int i = 0; i < 3; i++) {
        part[i] = qn_jv_none();
        if (of[i] && !qn_jx_eval(x, of[i], &part[i])) return false;
    }
    return qn_jx_slice(x, v, part, out);
}

static bool eval_not(qn_jx *x, const qn_jnode *n, qn_jv *out)
{
    if (!qn_jx_eval(x, n->a, out)) return false;
    *out = qn_jv_bool(!qn_jv_truth(*out));
    return true;
}

static bool eval_sign(qn_jx *x, const qn_jnode *n, qn_jv *out)
{
    qn_jv v;
    i64 i;
    if (!qn_jx_eval(x, n->a, &v)) return false;
    if (v.type == JT_undef) return qn_jx_binary(x, '-', v, v, out);
    const bool marked = v.marked;
    if (v.type == JT_float) *out = qn_jv_float(n->kind == JN_neg ? -v.f : v.f);
    else if (!qn_jv_integer(v, &i)) return qn_jx_fail(x, "a sign before a value of type %s", qn_jv_type_name(v));
    else if (n->kind == JN_neg && i == INT64_MIN) return qn_jx_fail(x, "an integer out of range");
    else *out = qn_jv_int(n->kind == JN_neg ? -i : i);
    out->marked = marked;
    return true;
}

/* and, or give one of their operands, as in Python. */
static bool eval_logic(qn_jx *x, const qn_jnode *n, qn_jv *out)
{
    if (!qn_jx_eval(x, n->a, out)) return false;
    return qn_jv_truth(*out) == (n->kind == JN_or) || qn_jx_eval(x, n->b, out);
}

static bool eval_binary(qn_jx *x, const qn_jnode *n, qn_jv *out)
{
    qn_jv a, b;
    return qn_jx_eval(x, n->a, &a) && qn_jx_eval(x, n->b, &b) && qn_jx_binary(x, n->op, a, b, out);
}

/* JN_compare: a, then JN_operand in b: a < b < c is a < b and b < c. */
static bool eval_compare(qn_jx *x, const qn_jnode *n, qn_jv *out)
{
    qn_jv left, right;
    bool yes = true;
    if (!qn_jx_eval(x, n->a, &left)) return false;
    for (const qn_jnode *o = n->b; o && yes; o = o->next) {
        if (!qn_jx_eval(x, o->a, &right) || !qn_jx_compare(x, o->op, left, right, &yes)) return false;
        left = right;
    }
    *out = qn_jv_bool(yes);
    return true;
}

static bool eval_concat(qn_jx *x, const qn_jnode *n, qn_jv *out)
{
    qn_jv sum = { 0 }, v;
    for (const qn_jnode *i = n->a; i; i = i->next) {
        qn_jstr s;
        if (!qn_jx_eval(x, i, &v) || !qn_jv_text(x, v, &s)) return false;
        if (i == n->a ? !qn_jv_str(x, s, &sum) : !qn_jx_concat(x, *sum.s, s, &sum)) return false;
    }
    *out = sum;
    return true;
}

/* JN_cond: b if a else c. */
static bool eval_cond(qn_jx *x, const qn_jnode *n, qn_jv *out)
{
    qn_jv v;
    if (!qn_jx_eval(x, n->a, &v)) return false;
    if (qn_jv_truth(v)) return qn_jx_eval(x, n->b, out);
    return n->c ? qn_jx_eval(x, n->c, out) : qn_jv_undef(x, out, "the inline if evaluated to false and has no else");
}

/* ---- calls */

/* Space for the arguments of a call: how many there are at most, stars included. */
static bool count_args(qn_jx *x, const qn_jnode *list, const qn_jv *stars, size_t *n, size_t *n_kw)
{
    *n = *n_kw = 0;
    size_t k = 0;
    for (const qn_jnode *i = list; i; i = i->next) {
        size_t more = 1;
        if (i->kind == JN_star || i->kind == JN_starstar) {
            if (!qn_jv_length(x, stars[k++], &more)) return false;
        }
        *(i->kind == JN_kwarg || i->kind == JN_starstar ? n_kw : n) += more;
    }
    return true;
}

static bool add_starstar(qn_jx *x, qn_jv v, qn_jkw *kw, size_t *n)
{
    if (v.type != JT_dict) return qn_jx_fail(x, "** needs a mapping, not a value of type %s", qn_jv_type_name(v));
    for (size_t i = 0; i < v.d->n; i++) {
        if (v.d->keys[i].type != JT_str) return qn_jx_fail(x, "a named argument whose name is not a string");
        kw[(*n)++] = (qn_jkw){ *v.d->keys[i].s, v.d->vals[i] };
    }
    return true;
}

/* The arguments in `list`, evaluated; extra: one more named one, or NULL. */
static bool eval_args(qn_jx *x, const qn_jnode *list, const qn_jkw *extra, qn_jargs *out)
{
    *out = (qn_jargs){ 0 };
    if (!list && !extra) return true;
    size_t n = 0, n_kw = 0, k = 0, at = 0, at_kw = 0;
    for (const qn_jnode *i = list; i; i = i->next) n += i->kind == JN_star || i->kind == JN_starstar;
    qn_jv *stars = n ? qn_jx_new(x, n * sizeof *stars) : NULL;
    if (n && !stars) return false;
    for (const qn_jnode *i = list; i; i = i->next) {
        if (i->kind != JN_star && i->kind != JN_starstar) continue;
        qn_jlist *items;
        if (!qn_jx_eval(x, i->a, &stars[k])) return false;
        if (i->kind == JN_star) {
            if (!qn_jv_items(x, stars[k], &items)) return false;
            stars[k] = (qn_jv){ .type = JT_list, .l = items };
        }
        k++;
    }
    if (!count_args(x, list, stars, &n, &n_kw)) return false;
    n_kw += extra != NULL;
    qn_jv *pos = qn_jx_new(x, (n + 1) * sizeof *pos);
    qn_jkw *kw = pos ? qn_jx_new(x, (n_kw + 1) * sizeof *kw) : NULL;
    if (!kw) return false;
    k = 0;
    for (const qn_jnode *i = list; i; i = i->next) {
        if (i->kind == JN_star) {
            for (size_t j = 0; j < stars[k].l->n; j++) pos[at++] = stars[k].l->at[j];
            k++;
        } else if (i->kind == JN_starstar) {
            if (!add_starstar(x, stars[k++], kw, &at_kw)) return false;
        } else if (i->kind == JN_kwarg) {
            kw[at_kw].name = x->t->name_list[i->name];
            if (!qn_jx_eval(x, i->a, &kw[at_kw++].v)) return false;
        } else if (!qn_jx_eval(x, i, &pos[at++])) {
            return false;
        }
    }
    if (extra) kw[at_kw++] = *extra;
    *out = (qn_jargs){ pos, at, kw, at_kw };
    return true;
}

/* Sorts raw arguments into the places that the row names: "old new count". */
static bool bind_row(qn_jx *x, const qn_jrow *row, const qn_jargs *args, qn_jv a[QN_JARGS])
{
    size_t n = 0, n_named = 0;
    const bool by_name = !strchr(row->params, '/');
    for (const char *s = row->params; *s && *s != '/' && n < QN_JARGS; n++) {
        const size_t len = strcspn(s, " ");
        a[n] = (qn_jv){ 0 };
        if (n < args->n) a[n] = args->pos[n];
        for (size_t i = 0; i < args->n_kw && by_name; i++) {
            if (args->kw[i].name.n != len || memcmp(args->kw[i].name.p, s, len)) continue;
            if (n < args->n) return qn_jx_fail(x, "%s: two values for '%.*s'", row->name, (int)len, s);
            a[n] = args->kw[i].v;
            n_named++;
        }
        if ((int)n < row->required && !qn_jv_given(a[n]))
            return qn_jx_fail(x, "%s: argument '%.*s' is missing", row->name, (int)len, s);
        s += len;
        if (*s) s++;
    }
    if (args->n > n) return qn_jx_fail(x, "%s: takes at most %zu arguments", row->name, n);
    return n_named == args->n_kw || qn_jx_fail(x, "%s: was given a named argument that it does not have", row->name);
}

bool qn_jx_call_row(qn_jx *x, const qn_jrow *row, qn_jv self, const qn_jargs *args, qn_jv *out)
{
    qn_jv a[QN_JARGS], result = { 0 };
    if (!qn_jx_step(x, 1) || !qn_jx_enter(x)) return false;
    if (row->params && !bind_row(x, row, args, a)) return false;
    if (!row->fn(x, self, args, row->params ? a : NULL, &result)) return false;
    qn_jx_leave(x);
    *out = result;
    return true;
}

/* loop(items) in a recursive loop: the loop again, one deeper, captured. */
static bool call_loop(qn_jx *x, const qn_jloop *loop, const qn_jargs *args, qn_jv *out)
{
    if (!loop->node->flag) return qn_jx_fail(x, "a loop that is not recursive was called");
    if (args->n != 1 || args->n_kw) return qn_jx_fail(x, "loop: takes one argument");
    if (x->calls >= QN_TEMPLATE_CALLS) return qn_jx_fail(x, "more than %d calls within each other", QN_TEMPLATE_CALLS);
    qn_jbuild text = { 0 }, *const was = x->out;
    x->out = &text;
    x->calls++;
    const bool ok = qn_jx_run_loop(x, loop->node, args->pos[0], loop->depth + 1);
    x->calls--;
    x->out = was;
    return ok && qn_jbuild_value(x, &text, out);
}

bool qn_jx_call(qn_jx *x, qn_jv f, const qn_jargs *args, qn_jv *out)
{
    switch (f.type) {
    case JT_func: return qn_jx_call_row(x, f.row, qn_jv_none(), args, out);
    case JT_method: return qn_jx_call_row(x, f.m->row, f.m->self, args, out);
    case JT_macro: return qn_jx_call_macro(x, f.macro, args, out);
    case JT_loop: return call_loop(x, f.loop, args, out);
    case JT_undef: return qn_jx_fail(x, "%.*s", f.s ? (int)f.s->n : 22, f.s ? f.s->p : "the value is undefined");
    default: return qn_jx_fail(x, "a value of type %s is not callable", qn_jv_type_name(f));
    }
}

/* JN_call: a(b...). */
bool qn_jx_eval_call(qn_jx *x, const qn_jnode *n, const qn_jkw *extra, qn_jv *out)
{
    qn_jv f;
    qn_jargs args;
    return qn_jx_eval(x, n->a, &f) && eval_args(x, n->b, extra, &args) && qn_jx_call(x, f, &args, out);
}

/* JN_filter: a | name(b...). JN_test: a is name(b...). */
static bool eval_row(qn_jx *x, const qn_jnode *n, qn_jv *out)
{
    qn_jv v;
    qn_jargs args;
    const qn_jstr name = x->t->name_list[n->name];
    if (!n->row)
        return qn_jx_fail(x, "no %s named '%.*s'", n->kind == JN_filter ? "filter" : "test", (int)qn_minz(name.n, 60),
                          name.p);
    if (!qn_jx_eval(x, n->a, &v) || !eval_args(x, n->b, NULL, &args) || !qn_jx_call_row(x, n->row, v, &args, out))
        return false;
    if (n->kind == JN_test) *out = qn_jv_bool(qn_jv_truth(*out) != n->flag);
    return true;
}

static bool eval(qn_jx *x, const qn_jnode *n, qn_jv *out)
{
    switch (n->kind) {
    case JN_name: return eval_name(x, n, out);
    case JN_list:
    case JN_tuple: return eval_list(x, n, out);
    case JN_dict: return eval_dict(x, n, out);
    case JN_attr: return eval_attr(x, n, out);
    case JN_item: return eval_item(x, n, out);
    case JN_call: return qn_jx_eval_call(x, n, NULL, out);
    case JN_filter:
    case JN_test: return eval_row(x, n, out);
    case JN_not: return eval_not(x, n, out);
    case JN_neg:
    case JN_pos: return eval_sign(x, n, out);
    case JN_and:
    case JN_or: return eval_logic(x, n, out);
    case JN_binary: return eval_binary(x, n, out);
    case JN_compare: return eval_compare(x, n, out);
    case JN_concat: return eval_concat(x, n, out);
    case JN_cond: return eval_cond(x, n, out);
    case JN_captured: *out = x->captured; return true;
    default: return qn_jx_fail(x, "a slice outside of a subscript");
    }
}

bool qn_jx_eval(qn_jx *x, const qn_jnode *n, qn_jv *out)
{
    if (n->kind == JN_const) {
        *out = n->value;
        return true;
    }
    const qn_jnode *const was = x->at;
    x->at = n;
    if (!qn_jx_step(x, 1) || !qn_jx_enter(x) || !eval(x, n, out)) return false;
    qn_jx_leave(x);
    x->at = was;
    return true;
}
