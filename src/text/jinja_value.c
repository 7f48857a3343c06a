/* jinja_value.c - making values and asking Python's questions of them: is it true, are they equal, which is first, what is
 * inside. Recursion into containers is bounded by QN_TEMPLATE_CALLS. Dictionaries keep their order and are searched from
 * the front: those of a chat are small, and each search is paid for in steps. */
#include "text/jinja.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

const char *qn_jv_type_name(qn_jv v)
{
    static const char *const names[] = {
        [JT_missing] = "Undefined", [JT_undef] = "Undefined", [JT_none] = "None",       [JT_bool] = "bool",
        [JT_int] = "int",           [JT_float] = "float",     [JT_big] = "int",         [JT_str] = "str",
        [JT_list] = "list",         [JT_tuple] = "tuple",     [JT_gen] = "generator",   [JT_view] = "dict view",
        [JT_range] = "range",       [JT_dict] = "dict",       [JT_ns] = "Namespace",    [JT_func] = "function",
        [JT_method] = "method",     [JT_macro] = "Macro",     [JT_loop] = "LoopContext"
    };
    return names[v.type];
}

/* ---- making */

bool qn_jv_undef(qn_jx *x, qn_jv *out, const char *fmt, ...)
{
    char text[240];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const size_t len = qn_minz(n < 0 ? 0 : (size_t)n, sizeof text - 1);
    qn_jstr *s = qn_jx_new(x, sizeof *s + len + 1);
    if (!s) return false;
    char *p = (char *)(s + 1);
    memcpy(p, text, len);
    *s = (qn_jstr){ p, NULL, len };
    *out = (qn_jv){ .type = JT_undef, .s = s };
    return true;
}

bool qn_jv_str(qn_jx *x, qn_jstr s, qn_jv *out)
{
    qn_jstr *copy = qn_jx_new(x, sizeof *copy);
    if (!copy) return false;
    *copy = s;
    *out = (qn_jv){ .type = JT_str, .s = copy };
    return true;
}

bool qn_jv_list(qn_jx *x, qn_jtype type, size_t n, qn_jv *out)
{
    size_t bytes;
    if (!qn_jx_step(x, n) || !qn_mul(n, sizeof(qn_jv), &bytes)) return false;
    qn_jlist *l = qn_jx_new(x, sizeof *l);
    qn_jv *at = l && n ? qn_jx_new(x, bytes) : NULL;
    if (!l || (n && !at)) return false;
    *l = (qn_jlist){ .at = at, .n = n };
    *out = (qn_jv){ .type = (u8)type, .l = l };
    return true;
}

static bool reserve(qn_jx *x, qn_jdict *d, size_t cap)
{
    size_t bytes;
    if (cap <= d->cap) return true;
    if (!qn_mul(cap, sizeof(qn_jv), &bytes)) return false;
    qn_jv *keys = qn_jx_new(x, bytes), *vals = keys ? qn_jx_new(x, bytes) : NULL;
    if (!vals) return false;
    if (d->n) {
        memcpy(keys, d->keys, d->n * sizeof *keys);
        memcpy(vals, d->vals, d->n * sizeof *vals);
    }
    d->keys = keys;
    d->vals = vals;
    d->cap = cap;
    return true;
}

bool qn_jv_dict(qn_jx *x, qn_jtype type, size_t cap, qn_jv *out)
{
    qn_jdict *d = qn_jx_new(x, sizeof *d);
    if (!d || !reserve(x, d, cap)) return false;
    *out = (qn_jv){ .type = (u8)type, .d = d };
    return true;
}

bool qn_jv_hashable(qn_jx *x, qn_jv key)
{
    if (key.type == JT_list || key.type == JT_dict) return qn_jx_fail(x, "unhashable type: '%s'", qn_jv_type_name(key));
    return true;
}

static bool find_key(qn_jx *x, const qn_jdict *d, qn_jv key, size_t *at)
{
    *at = d->n;
    if (!qn_jv_hashable(x, key) || !qn_jx_step(x, d->n / 16)) return false;
    for (size_t i = 0; i < d->n; i++) {
        bool same;
        if (key.type == JT_str && d->keys[i].type == JT_str) { /* the usual case, without a call */
            const qn_jstr *a = key.s, *b = d->keys[i].s;
            if (a->n != b->n) continue;
            if (!qn_jx_step(x, a->n / 256)) return false;
            same = memcmp(a->p, b->p, a->n) == 0;
        } else if (!qn_jv_equal(x, d->keys[i], key, &same)) {
            return false;
        }
        if (!same) continue;
        *at = i;
        return true;
    }
    return true;
}

bool qn_jdict_get(qn_jx *x, const qn_jdict *d, qn_jv key, qn_jv **out)
{
    size_t at;
    if (!find_key(x, d, key, &at)) return false;
    *out = at < d->n ? &d->vals[at] : NULL;
    return true;
}

bool qn_jdict_put(qn_jx *x, qn_jdict *d, qn_jv key, qn_jv v)
{
    size_t at;
    if (!find_key(x, d, key, &at)) return false;
    if (at == d->n) {
        if (d->n == d->cap && !reserve(x, d, d->cap ? d->cap * 2 : 4)) return false;
        d->keys[d->n++] = key;
    }
    d->vals[at] = v;
    return true;
}

/* ---- from JSON */

static bool json_string(qn_jx *x, const char *p, size_t n, bool marked, qn_jv *out)
{
    if (n > QN_TEMPLATE_OUTPUT) return qn_jx_fail(x, "a text of more than %u MiB", QN_TEMPLATE_OUTPUT >> 20);
    char *copy = qn_jx_new(x, n + 1);
    u8 *marks = copy && marked && n ? qn_jx_new(x, n) : NULL;
    if (!copy || (marked && n && !marks)) return false;
    if (n) memcpy(copy, p, n);
    if (marks) memset(marks, 1, n);
    return qn_jv_str(x, (qn_jstr){ copy, marks, n }, out);
}

static bool json_number(qn_jx *x, yyjson_val *j, qn_jv *out)
{
    if (yyjson_is_real(j)) *out = qn_jv_float(yyjson_get_real(j));
    else if (yyjson_is_sint(j)) *out = qn_jv_int(yyjson_get_sint(j));
    else if (yyjson_get_uint(j) <= INT64_MAX) *out = qn_jv_int((i64)yyjson_get_uint(j));
    else {
        char digits[24];
        const int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)yyjson_get_uint(j));
        if (!json_string(x, digits, (size_t)n, false, out)) return false;
        out->type = JT_big;
    }
    return true;
}

static bool from_json(qn_jx *x, yyjson_val *j, bool marked, qn_jv *out);

/* Templates spell control tokens with a message's role ("<|" + role + "|>"). One of these words is the program's, not the
 * user's, and carries no mark; any other role is text like the rest. */
static bool is_known_role(yyjson_val *key, yyjson_val *v)
{
    static const char *const roles[] = { "system", "developer", "user", "assistant", "tool", "function", "model", "ipython" };
    if (!yyjson_equals_str(key, "role")) return false;
    for (size_t i = 0; i < QN_COUNT(roles); i++)
        if (yyjson_equals_str(v, roles[i])) return true;
    return false;
}

static bool json_object(qn_jx *x, yyjson_val *j, bool marked, qn_jv *out)
{
    qn_jv dict, key, v;
    if (!qn_jv_dict(x, JT_dict, yyjson_obj_size(j), &dict)) return false;
    yyjson_obj_iter it = yyjson_obj_iter_with(j);
    for (yyjson_val *k; (k = yyjson_obj_iter_next(&it));) {
        if (!json_string(x, yyjson_get_str(k), yyjson_get_len(k), marked, &key)) return false;
        yyjson_val *value = yyjson_obj_iter_get_val(k);
        if (!from_json(x, value, marked && !is_known_role(k, value), &v) || !qn_jdict_put(x, dict.d, key, v)) return false;
    }
    *out = dict;
    return true;
}

static bool from_json(qn_jx *x, yyjson_val *j, bool marked, qn_jv *out) /* depth: qn_json_parse has bounded it */
{
    bool ok = true;
    switch (yyjson_get_type(j)) {
    case YYJSON_TYPE_BOOL: *out = qn_jv_bool(yyjson_get_bool(j)); break;
    case YYJSON_TYPE_NUM: ok = json_number(x, j, out); break;
    case YYJSON_TYPE_STR: return json_string(x, yyjson_get_str(j), yyjson_get_len(j), marked, out);
    case YYJSON_TYPE_OBJ: ok = json_object(x, j, marked, out); break;
    case YYJSON_TYPE_ARR: {
        qn_jv list;
        size_t k = 0;
        if (!qn_jv_list(x, JT_list, yyjson_arr_size(j), &list)) return false;
        yyjson_arr_iter it = yyjson_arr_iter_with(j);
        for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));)
            if (!from_json(x, v, marked, &list.l->at[k++])) return false;
        *out = list;
        break;
    }
    default: *out = qn_jv_none(); break;
    }
    out->marked = marked;
    return ok;
}

bool qn_jv_from_json(qn_jx *x, const qn_template_var *var, qn_jv *out)
{
    yyjson_doc *doc = qn_json_parse(var->json, var->n, 0, var->name, x->e);
    if (!doc) return qn_fail_within(x->e, x->t->name);
    const bool ok = from_json(x, yyjson_doc_get_root(doc), var->marked, out);
    yyjson_doc_free(doc);
    return ok;
}

/* ---- questions */

bool qn_jv_number(qn_jv v, double *out)
{
    if (v.type == JT_int) *out = (double)v.i;
    else if (v.type == JT_float) *out = v.f;
    else if (v.type == JT_bool) *out = v.b;
    else return false;
    return true;
}

bool qn_jv_integer(qn_jv v, i64 *out)
{
    if (v.type == JT_int) *out = v.i;
    else if (v.type == JT_bool) *out = v.b;
    else return false;
    return true;
}

bool qn_jv_truth(qn_jv v)
{
    switch (v.type) {
    case JT_missing:
    case JT_undef:
    case JT_none: return false;
    case JT_bool: return v.b;
    case JT_int: return v.i != 0;
    case JT_float: return v.f != 0;
    case JT_str: return v.s->n != 0;
    case JT_list:
    case JT_tuple:
    case JT_view: return v.l->n != 0;
    case JT_range: return v.r->n != 0;
    case JT_dict: return v.d->n != 0;
    default: return true;
    }
}

static bool equal_lists(qn_jx *x, const qn_jlist *a, const qn_jlist *b, bool *out)
{
    *out = a->n == b->n;
    for (size_t i = 0; i < a->n && *out; i++)
        if (!qn_jv_equal(x, a->at[i], b->at[i], out)) return false;
    return true;
}

static bool equal_dicts(qn_jx *x, const qn_jdict *a, const qn_jdict *b, bool *out)
{
    *out = a->n == b->n;
    for (size_t i = 0; i < a->n && *out; i++) {
        qn_jv *other;
        if (!qn_jdict_get(x, b, a->keys[i], &other)) return false;
        *out = other != NULL;
        if (other && !qn_jv_equal(x, a->vals[i], *other, out)) return false;
    }
    return true;
}

static bool equal(qn_jx *x, qn_jv a, qn_jv b, bool *out)
{
    double f, g;
    if (a.type == JT_int && b.type == JT_int) return *out = a.i == b.i, true;
    if (qn_jv_number(a, &f) && qn_jv_number(b, &g)) return *out = f == g, true;
    *out = false;
    if (a.type != b.type) return true;
    switch (a.type) {
    case JT_undef:
    case JT_none: *out = true; return true;
    case JT_big:
    case JT_str:
        *out = a.s->n == b.s->n && memcmp(a.s->p, b.s->p, a.s->n) == 0;
        return qn_jx_step(x, a.s->n / 256);
    case JT_list:
    case JT_tuple: return equal_lists(x, a.l, b.l, out);
    case JT_dict: return equal_dicts(x, a.d, b.d, out);
    case JT_range:
        *out = a.r->n == b.r->n && (!a.r->n || (a.r->start == b.r->start && (a.r->n == 1 || a.r->step == b.r->step)));
        return true;
    case JT_method: *out = a.m->row == b.m->row; return true;
    default: *out = a.l == b.l; return true; /* identity: every kind left is a pointer */
    }
}

bool qn_jv_equal(qn_jx *x, qn_jv a, qn_jv b, bool *out)
{
    if (!qn_jx_step(x, 1) || !qn_jx_enter(x) || !equal(x, a, b, out)) return false;
    qn_jx_leave(x);
    return true;
}

static bool order_lists(qn_jx *x, const qn_jlist *a, const qn_jlist *b, int *out)
{
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        bool same;
        if (!qn_jv_equal(x, a->at[i], b->at[i], &same)) return false;
        if (!same) return qn_jv_order(x, a->at[i], b->at[i], out);
    }
    *out = a->n < b->n ? -1 : a->n > b->n;
    return true;
}

bool qn_jv_order(qn_jx *x, qn_jv a, qn_jv b, int *out)
{
    double f, g;
    if (!qn_jx_step(x, 1)) return false;
    if (a.type == JT_int && b.type == JT_int) return *out = a.i < b.i ? -1 : a.i > b.i, true;
    if (qn_jv_number(a, &f) && qn_jv_number(b, &g)) return *out = f < g ? -1 : f > g, true;
    if (a.type == JT_undef || b.type == JT_undef) {
        const qn_jstr *s = a.type == JT_undef ? a.s : b.s;
        return qn_jx_fail(x, "%.*s", s ? (int)s->n : 22, s ? s->p : "the value is undefined");
    }
    if (a.type == JT_str && b.type == JT_str) { /* UTF-8 sorts as its characters do */
        const int k = memcmp(a.s->p, b.s->p, qn_minz(a.s->n, b.s->n));
        *out = k ? k : a.s->n < b.s->n ? -1 : a.s->n > b.s->n;
        return qn_jx_step(x, a.s->n / 256);
    }
    if (!qn_jv_is_seq(a) || a.type != b.type)
        return qn_jx_fail(x, "cannot order values of type %s and %s", qn_jv_type_name(a), qn_jv_type_name(b));
    if (!qn_jx_enter(x) || !order_lists(x, a.l, b.l, out)) return false;
    qn_jx_leave(x);
    return true;
}

bool qn_jv_contains(qn_jx *x, qn_jv box, qn_jv v, bool *out)
{
    *out = false;
    if (box.type == JT_str) {
        if (v.type == JT_undef) return qn_jx_fail(x, "'in <string>' needs a string, not an undefined value");
        if (v.type != JT_str)
            return qn_jx_fail(x, "'in <string>' needs a string, not a value of type %s", qn_jv_type_name(v));
        *out = qn_jstr_find(*box.s, *v.s, 0) != (size_t)-1;
        return qn_jx_step(x, box.s->n / 256);
    }
    if (box.type == JT_dict) {
        qn_jv *hit;
        if (!qn_jdict_get(x, box.d, v, &hit)) return false;
        *out = hit != NULL;
        return true;
    }
    qn_jlist *items;
    if (!qn_jv_items(x, box, &items)) return false;
    for (size_t i = 0; i < items->n && !*out; i++)
        if (!qn_jv_equal(x, items->at[i], v, out)) return false;
    return true;
}

bool qn_jv_length(qn_jx *x, qn_jv v, size_t *out)
{
    switch (v.type) {
    case JT_undef: *out = 0; return true;
    case JT_str: *out = qn_jstr_chars(*v.s); return qn_jx_step(x, v.s->n / 64);
    case JT_list:
    case JT_tuple:
    case JT_view: *out = v.l->n; return true;
    case JT_range: *out = v.r->n; return true;
    case JT_dict: *out = v.d->n; return true;
    case JT_loop: *out = v.loop->items->n; return true;
    default: return qn_jx_fail(x, "a value of type %s has no length", qn_jv_type_name(v));
    }
}

/* ---- iterating */

static bool items_of_str(qn_jx *x, qn_jstr s, qn_jv *list)
{
    size_t k = 0;
    u32 cp;
    if (!qn_jv_list(x, JT_list, qn_jstr_chars(s), list)) return false;
    for (size_t at = 0, len; at < s.n; at += len) {
        len = qn_jchar(s.p + at, s.n - at, &cp);
        if (!qn_jv_str(x, qn_jstr_part(s, at, at + len), &list->l->at[k++])) return false;
    }
    return true;
}

bool qn_jv_items(qn_jx *x, qn_jv v, qn_jlist **out)
{
    qn_jv list = { 0 };
    switch (v.type) {
    case JT_list:
    case JT_tuple:
    case JT_view: *out = v.l; return true;
    case JT_gen:
        if (!v.l->used) {
            *out = v.l;
            v.l->used = true;
            return true;
        } /* fall through */
    case JT_undef:
        if (!qn_jv_list(x, JT_list, 0, &list)) return false;
        break;
    case JT_str:
        if (!items_of_str(x, *v.s, &list)) return false;
        break;
    case JT_dict:
        if (!qn_jv_list(x, JT_list, v.d->n, &list)) return false;
        for (size_t i = 0; i < v.d->n; i++) list.l->at[i] = v.d->keys[i];
        break;
    case JT_range:
        if (!qn_jv_list(x, JT_list, v.r->n, &list)) return false;
        for (size_t i = 0; i < v.r->n; i++) list.l->at[i] = qn_jv_int(v.r->start + (i64)i * v.r->step);
        break;
    default: return qn_jx_fail(x, "a value of type %s cannot be iterated", qn_jv_type_name(v));
    }
    *out = list.l;
    return true;
}
