/* jinja_access.c - v.name, v[key] and slices. A dot tries attributes first and items second, brackets the other way
 * round, as in jinja2. The sandbox: names that begin and end with two underscores, and methods that would change a list or
 * dict, give a value that prints as nothing and fails when it is used. */
#include "text/jinja.h"

#include <string.h>

static bool no_such(qn_jx *x, qn_jv v, qn_jstr name, qn_jv *out)
{
    return qn_jv_undef(x, out, "'%s object' has no attribute '%.*s'", qn_jv_type_name(v), (int)qn_minz(name.n, 80), name.p);
}

static bool unsafe(qn_jx *x, qn_jv v, qn_jstr name, qn_jv *out)
{
    if (!qn_jv_undef(x, out, "access to attribute '%.*s' of %s object is unsafe", (int)qn_minz(name.n, 80), name.p,
                     qn_jv_type_name(v)))
        return false;
    out->sub = 1;
    return true;
}

static bool fail_undefined(qn_jx *x, qn_jv v)
{
    return qn_jx_fail(x, "%.*s", v.s ? (int)v.s->n : 22, v.s ? v.s->p : "the value is undefined");
}

static bool in_list(const char *const *names, qn_jstr name)
{
    for (; *names; names++)
        if (qn_jstr_is(name, *names)) return true;
    return false;
}

/* Methods of Python that change their object: known, and refused. */
static bool changes(qn_jv v, qn_jstr name)
{
    static const char *const of_list[] = { "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort", NULL };
    static const char *const of_dict[] = { "clear", "pop", "popitem", "setdefault", "update", NULL };
    return in_list(v.type == JT_list ? of_list : v.type == JT_dict ? of_dict : (const char *const[]){ NULL }, name);
}

static const qn_jrow *method_of(qn_jv v, qn_jstr name)
{
    switch (v.type) {
    case JT_str: return qn_jrow_find(qn_jmethods_str, name);
    case JT_dict: return qn_jrow_find(qn_jmethods_dict, name);
    case JT_list:
    case JT_tuple: return qn_jrow_find(qn_jmethods_list, name);
    case JT_loop: return qn_jrow_find(qn_jmethods_loop, name);
    default: return NULL;
    }
}

static bool loop_attr(qn_jx *x, const qn_jloop *l, qn_jstr name, qn_jv *out)
{
    const i64 i = (i64)l->i, n = (i64)l->items->n;
    const struct { const char *name; qn_jv v; } attrs[] = {
        { "index", qn_jv_int(i + 1) }, { "index0", qn_jv_int(i) },
        { "revindex", qn_jv_int(n - i) }, { "revindex0", qn_jv_int(n - i - 1) },
        { "first", qn_jv_bool(i == 0) }, { "last", qn_jv_bool(i == n - 1) }, { "length", qn_jv_int(n) },
        { "depth", qn_jv_int(l->depth) }, { "depth0", qn_jv_int(l->depth - 1) } };
    for (size_t k = 0; k < QN_COUNT(attrs); k++) {
        if (!qn_jstr_is(name, attrs[k].name)) continue;
        *out = attrs[k].v;
        return true;
    }
    const bool before = qn_jstr_is(name, "previtem"), after = qn_jstr_is(name, "nextitem");
    if (before && i == 0) return qn_jv_undef(x, out, "there is no previous item");
    if (after && i == n - 1) return qn_jv_undef(x, out, "there is no next item");
    if (before || after) {
        *out = l->items->at[before ? i - 1 : i + 1];
        return true;
    }
    out->type = JT_missing;
    return true;
}

/* A method or another true attribute; JT_missing: v has none of that name. */
static bool own_attr(qn_jx *x, qn_jv v, qn_jstr name, qn_jv *out)
{
    *out = (qn_jv){ 0 };
    if (name.n > 3 && memcmp(name.p, "__", 2) == 0 && memcmp(name.p + name.n - 2, "__", 2) == 0)
        return unsafe(x, v, name, out);
    if (changes(v, name)) return unsafe(x, v, name, out);
    if (v.type == JT_loop) {
        if (!loop_attr(x, v.loop, name, out)) return false;
        if (qn_jv_given(*out)) return true;
    }
    if (v.type == JT_tuple && v.l->group && (qn_jstr_is(name, "grouper") || qn_jstr_is(name, "list"))) {
        *out = v.l->at[qn_jstr_is(name, "list")];
        return true;
    }
    if (v.type == JT_macro && qn_jstr_is(name, "name")) return qn_jv_str(x, x->t->name_list[v.macro->node->name], out);
    const qn_jrow *row = method_of(v, name);
    if (!row) return true;
    qn_jmethod *m = qn_jx_new(x, sizeof *m);
    if (!m) return false;
    *m = (qn_jmethod){ v, row };
    *out = (qn_jv){ .type = JT_method, .m = m };
    return true;
}

/* An item that is there; JT_missing: none. */
static bool own_item(qn_jx *x, qn_jv v, qn_jv key, qn_jv *out)
{
    i64 i;
    *out = (qn_jv){ 0 };
    if (v.type == JT_dict || v.type == JT_ns) {
        qn_jv *hit;
        if (key.type == JT_list || key.type == JT_dict) return true; /* cannot be a key, so is none */
        if (!qn_jdict_get(x, v.d, key, &hit)) return false;
        if (hit) *out = *hit;
        return true;
    }
    if (!qn_jv_integer(key, &i)) return true;
    if (qn_jv_is_seq(v) || v.type == JT_range) {
        const i64 n = (i64)(v.type == JT_range ? v.r->n : v.l->n);
        if (i < 0) i += n;
        if (i < 0 || i >= n) return true;
        *out = v.type == JT_range ? qn_jv_int(v.r->start + i * v.r->step) : v.l->at[i];
        return true;
    }
    if (v.type != JT_str) return true;
    const qn_jv part[3] = { qn_jv_int(i), i == -1 ? qn_jv_none() : qn_jv_int(i + 1), qn_jv_none() };
    if (!qn_jx_slice(x, v, part, out)) return false;
    if (!out->s->n) *out = (qn_jv){ 0 };
    return true;
}

bool qn_jx_attr(qn_jx *x, qn_jv v, qn_jstr name, qn_jv *out)
{
    qn_jv key;
    if (v.type == JT_undef) return fail_undefined(x, v);
    if (!own_attr(x, v, name, out)) return false;
    if (qn_jv_given(*out)) return true;
    if (!qn_jv_str(x, name, &key) || !own_item(x, v, key, out)) return false;
    return qn_jv_given(*out) || no_such(x, v, name, out);
}

bool qn_jx_item(qn_jx *x, qn_jv v, qn_jv key, qn_jv *out)
{
    if (v.type == JT_undef) return fail_undefined(x, v);
    if (!own_item(x, v, key, out)) return false;
    if (qn_jv_given(*out)) return true;
    if (key.type != JT_str) return qn_jv_undef(x, out, "%s object has no such element", qn_jv_type_name(v));
    if (!own_attr(x, v, *key.s, out)) return false;
    return qn_jv_given(*out) || no_such(x, v, *key.s, out);
}

/* ---- slices */

static bool slice_bound(qn_jx *x, qn_jv v, i64 n, i64 step, i64 missing, i64 *out)
{
    const i64 low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
    if (v.type == JT_none) {
        *out = missing;
        return true;
    }
    if (!qn_jv_integer(v, out)) return qn_jx_fail(x, "a slice needs integers, not a value of type %s", qn_jv_type_name(v));
    if (*out < 0) *out = *out < -n ? low : *out + n;
    if (*out < low) *out = low;
    if (*out > high) *out = high;
    return true;
}

static bool slice_str(qn_jx *x, qn_jstr s, i64 from, i64 step, i64 count, qn_jv *out)
{
    if (!qn_jx_step(x, s.n / 64)) return false;
    if (count <= 0) return qn_jv_str(x, (qn_jstr){ "", NULL, 0 }, out);
    if (step == 1) {
        const size_t a = qn_jstr_offset(s, (size_t)from), b = a + qn_jstr_offset(qn_jstr_part(s, a, s.n), (size_t)count);
        return qn_jv_str(x, qn_jstr_part(s, a, b), out);
    }
    qn_jbuild text = { 0 };
    size_t at = qn_jstr_offset(s, (size_t)from);
    u32 cp;
    for (i64 i = 0; i < count; i++) {
        if (!qn_jbuild_put(x, &text, qn_jstr_part(s, at, at + qn_jchar(s.p + at, s.n - at, &cp)))) return false;
        for (i64 k = step; k > 0 && at < s.n; k--) at += qn_jchar(s.p + at, s.n - at, &cp);
        for (i64 k = step; k < 0 && at > 0; k++) at -= qn_jchar_before(s.p, at, &cp);
    }
    return qn_jbuild_value(x, &text, out);
}

static bool slice_range(qn_jx *x, const qn_jrange *of, i64 from, i64 to, i64 step, size_t n, qn_jv *out)
{
    qn_jrange *r = qn_jx_new(x, sizeof *r);
    if (!r) return false;
    *r = (qn_jrange){ of->start + from * of->step, of->start + to * of->step, of->step * step, n };
    *out = (qn_jv){ .type = JT_range, .r = r };
    return true;
}

bool qn_jx_slice(qn_jx *x, qn_jv v, const qn_jv part[3], qn_jv *out)
{
    i64 step = 1, from, to;
    size_t n;
    if (v.type == JT_undef) return fail_undefined(x, v);
    if (v.type == JT_str) n = qn_jstr_chars(*v.s);
    else if (!qn_jv_is_seq(v) && v.type != JT_range)
        return qn_jx_fail(x, "a value of type %s has no slices", qn_jv_type_name(v));
    else if (v.type == JT_range) n = v.r->n;
    else n = v.l->n;
    if (part[2].type != JT_none && !qn_jv_integer(part[2], &step)) return qn_jx_fail(x, "a slice needs integers");
    if (!step) return qn_jx_fail(x, "a slice with step zero");
    if (step > (i64)n + 1) step = (i64)n + 1; /* one step leaves the sequence anyway */
    if (step < -(i64)n - 1) step = -(i64)n - 1;
    if (!slice_bound(x, part[0], (i64)n, step, step < 0 ? (i64)n - 1 : 0, &from)) return false;
    if (!slice_bound(x, part[1], (i64)n, step, step < 0 ? -1 : (i64)n, &to)) return false;
    const i64 count =
        step > 0 ? (to > from ? (to - from + step - 1) / step : 0) : (from > to ? (from - to - step - 1) / -step : 0);
    if (v.type == JT_str) return slice_str(x, *v.s, from, step, count, out);
    if (v.type == JT_range) return slice_range(x, v.r, from, to, step, (size_t)count, out);
    qn_jv list;
    if (!qn_jv_list(x, v.type == JT_tuple ? JT_tuple : JT_list, (size_t)count, &list)) return false;
    for (i64 i = 0; i < count; i++) list.l->at[i] = v.l->at[from + i * step];
    list.marked = v.marked;
    *out = list;
    return true;
}

bool qn_jx_attr_only(qn_jx *x, qn_jv v, qn_jstr name, qn_jv *out)
{
    if (v.type == JT_undef) return fail_undefined(x, v);
    if (!own_attr(x, v, name, out)) return false;
    return qn_jv_given(*out) || no_such(x, v, name, out);
}

/* "a.b.0" as the filters take it: digits are an index. An integer is an index too; none is the value itself. instead: what a
 * part that is undefined becomes, if given. */
bool qn_jx_path(qn_jx *x, qn_jv v, qn_jv path, qn_jv instead, qn_jv *out)
{
    *out = v;
    if (path.type == JT_none || path.type == JT_missing) return true;
    const bool replace = qn_jv_given(instead) && instead.type != JT_none;
    if (path.type != JT_str) {
        if (!qn_jx_item(x, v, path, out)) return false;
        if (replace && qn_jv_is_undef(*out)) *out = instead;
        return true;
    }
    for (qn_jstr rest = *path.s;;) {
        const size_t dot = qn_jstr_find(rest, QN_JLIT("."), 0), end = dot == (size_t)-1 ? rest.n : dot;
        const qn_jstr name = qn_jstr_part(rest, 0, end);
        qn_jv key;
        i64 index = 0;
        size_t digits = 0;
        while (digits < name.n && digits < 18 && name.p[digits] >= '0' && name.p[digits] <= '9')
            index = index * 10 + (name.p[digits++] - '0');
        if (name.n && digits == name.n) key = qn_jv_int(index);
        else if (!qn_jv_str(x, name, &key)) return false;
        if (!qn_jx_step(x, 1) || !qn_jx_item(x, *out, key, out)) return false;
        if (replace && qn_jv_is_undef(*out)) *out = instead;
        if (end == rest.n) return true;
        rest = qn_jstr_part(rest, end + 1, rest.n);
    }
}
