/* jinja_filters_list.c - filters on lists and dictionaries. What jinja2 gives as a generator is made at once here and typed
 * as one, so that it can be iterated once and has no length. Sorting is a stable merge that ignores case unless told. */
#include "text/jinja.h"

#include <string.h>

#define FILTER(name) static bool name(qn_jx *x, qn_jv self, const qn_jargs *raw, const qn_jv *a, qn_jv *out)
#define UNUSED (void)x, (void)self, (void)raw, (void)a
#define NO_DEFAULT ((qn_jv){ 0 })

/* A copy of the items of v as a fresh list of the given type. */
static bool copy_items(qn_jx *x, qn_jv v, qn_jtype type, qn_jv *out)
{
    qn_jlist *items;
    if (!qn_jv_items(x, v, &items) || !qn_jv_list(x, type, items->n, out)) return false;
    if (items->n) memcpy(out->l->at, items->at, items->n * sizeof *items->at);
    out->marked = v.marked;
    return true;
}

FILTER(f_list) { UNUSED; return copy_items(x, self, JT_list, out); }

FILTER(f_first)
{
    UNUSED;
    qn_jlist *items;
    if (!qn_jv_items(x, self, &items)) return false;
    if (!items->n) return qn_jv_undef(x, out, "No first item, sequence was empty.");
    *out = items->at[0];
    return true;
}

FILTER(f_last)
{
    UNUSED;
    qn_jlist *items;
    if (self.type == JT_gen) return qn_jx_fail(x, "last: a generator cannot be reversed");
    if (!qn_jv_items(x, self, &items)) return false;
    if (!items->n) return qn_jv_undef(x, out, "No last item, sequence was empty.");
    *out = items->at[items->n - 1];
    return true;
}

FILTER(f_join)
{
    UNUSED;
    qn_jlist *items;
    qn_jbuild b = { 0 };
    qn_jstr sep = QN_JLIT("");
    if (!qn_jv_items(x, self, &items) || (qn_jv_given(a[0]) && !qn_jv_text(x, a[0], &sep))) return false;
    for (size_t i = 0; i < items->n; i++) {
        qn_jv v;
        if ((i && !qn_jbuild_put(x, &b, sep)) || !qn_jx_path(x, items->at[i], a[1], NO_DEFAULT, &v) ||
            !qn_jv_print(x, &b, v))
            return false;
    }
    return qn_jbuild_value(x, &b, out);
}

static bool pair(qn_jx *x, qn_jv key, qn_jv v, qn_jv *out)
{
    if (!qn_jv_list(x, JT_tuple, 2, out)) return false;
    out->l->at[0] = key;
    out->l->at[1] = v;
    return true;
}

FILTER(f_items)
{
    UNUSED;
    if (self.type == JT_undef) return qn_jv_list(x, JT_gen, 0, out);
    if (self.type != JT_dict) return qn_jx_fail(x, "items: can only get item pairs from a mapping");
    if (!qn_jv_list(x, JT_gen, self.d->n, out)) return false;
    for (size_t i = 0; i < self.d->n; i++)
        if (!pair(x, self.d->keys[i], self.d->vals[i], &out->l->at[i])) return false;
    return true;
}

FILTER(f_reverse)
{
    UNUSED;
    if (self.type == JT_str) {
        const qn_jv part[3] = { qn_jv_none(), qn_jv_none(), qn_jv_int(-1) };
        return qn_jx_slice(x, self, part, out);
    }
    if (!copy_items(x, self, JT_gen, out)) return false;
    for (size_t i = 0, k = out->l->n; i + 1 < k; i++) {
        const qn_jv v = out->l->at[i];
        out->l->at[i] = out->l->at[--k];
        out->l->at[k] = v;
    }
    return true;
}

/* ---- sorting */

typedef struct entry { qn_jv key, v; } entry;

static bool fold(qn_jx *x, qn_jv key, bool keep_case, qn_jv *out)
{
    *out = key;
    return keep_case || key.type != JT_str || qn_jstr_case(x, *key.s, JC_lower, out);
}

/* The keys of "a,b.c" as a list, of anything else as the one value. */
static bool sort_key(qn_jx *x, qn_jv v, qn_jv attribute, bool keep_case, qn_jv *out)
{
    qn_jv names, key;
    if (attribute.type != JT_str || qn_jstr_find(*attribute.s, QN_JLIT(","), 0) == (size_t)-1)
        return qn_jx_path(x, v, attribute, NO_DEFAULT, &key) && fold(x, key, keep_case, out);
    if (!qn_jstr_split(x, *attribute.s, &QN_JLIT(","), -1, false, &names) || !qn_jv_list(x, JT_list, names.l->n, out))
        return false;
    for (size_t i = 0; i < names.l->n; i++)
        if (!qn_jx_path(x, v, names.l->at[i], NO_DEFAULT, &key) || !fold(x, key, keep_case, &out->l->at[i])) return false;
    return true;
}

static bool merge(qn_jx *x, const entry *from, entry *to, size_t lo, size_t mid, size_t hi, bool down)
{
    size_t i = lo, j = mid, k = lo;
    while (i < mid && j < hi) {
        int order;
        if (!qn_jv_order(x, from[i].key, from[j].key, &order)) return false;
        to[k++] = (down ? order >= 0 : order <= 0) ? from[i++] : from[j++];
    }
    while (i < mid) to[k++] = from[i++];
    while (j < hi) to[k++] = from[j++];
    return true;
}

/* Bottom-up, stable; equal ones keep their order when reversed too, as in Python. */
static bool sort_entries(qn_jx *x, entry *e, size_t n, bool down)
{
    entry *other = qn_jx_new(x, (n + 1) * sizeof *e), *from = e, *to = other;
    if (!other) return false;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t lo = 0; lo < n; lo += 2 * width)
            if (!merge(x, from, to, lo, qn_minz(lo + width, n), qn_minz(lo + 2 * width, n), down)) return false;
        entry *const swap = from;
        from = to;
        to = swap;
    }
    if (from != e && n) memcpy(e, from, n * sizeof *e);
    return true;
}

static bool sorted(qn_jx *x, const qn_jlist *items, qn_jv attribute, bool keep_case, bool down, entry **out)
{
    entry *e = qn_jx_new(x, (items->n + 1) * sizeof *e);
    if (!e) return false;
    for (size_t i = 0; i < items->n; i++) {
        e[i].v = items->at[i];
        if (!sort_key(x, items->at[i], attribute, keep_case, &e[i].key)) return false;
    }
    *out = e;
    return sort_entries(x, e, items->n, down);
}

FILTER(f_sort)
{
    UNUSED;
    qn_jlist *items;
    entry *e;
    if (!qn_jv_items(x, self, &items) || !sorted(x, items, a[2], qn_jv_truth(a[1]), qn_jv_truth(a[0]), &e)) return false;
    if (!qn_jv_list(x, JT_list, items->n, out)) return false;
    for (size_t i = 0; i < items->n; i++) out->l->at[i] = e[i].v;
    out->marked = self.marked;
    return true;
}

FILTER(f_dictsort)
{
    UNUSED;
    qn_jstr by = QN_JLIT("key");
    qn_jv pairs = { 0 };
    entry *e;
    if (self.type != JT_dict)
        return qn_jx_fail(x, "dictsort: a mapping was expected, not a value of type %s", qn_jv_type_name(self));
    if (qn_jv_given(a[1]) && !qn_jv_text(x, a[1], &by)) return false;
    if (!qn_jstr_is(by, "key") && !qn_jstr_is(by, "value")) return qn_jx_fail(x, "dictsort: by is 'key' or 'value'");
    if (!f_items(x, self, raw, a, &pairs)) return false;
    if (!sorted(x, pairs.l, qn_jv_int(qn_jstr_is(by, "value")), qn_jv_truth(a[0]), qn_jv_truth(a[2]), &e)) return false;
    pairs.type = JT_list;
    for (size_t i = 0; i < pairs.l->n; i++) pairs.l->at[i] = e[i].v;
    *out = pairs;
    return true;
}

static bool extreme(qn_jx *x, qn_jv self, const qn_jv *a, int sign, qn_jv *out)
{
    qn_jlist *items;
    qn_jv best = { 0 };
    if (!qn_jv_items(x, self, &items)) return false;
    if (!items->n) return qn_jv_undef(x, out, "No aggregated item, sequence was empty.");
    for (size_t i = 0; i < items->n; i++) {
        qn_jv key;
        int order = -sign;
        if (!qn_jx_path(x, items->at[i], a[1], NO_DEFAULT, &key) || !fold(x, key, qn_jv_truth(a[0]), &key)) return false;
        if (i && !qn_jv_order(x, best, key, &order)) return false;
        if (i && order * sign >= 0) continue;
        best = key;
        *out = items->at[i];
    }
    return true;
}

FILTER(f_min) { UNUSED; return extreme(x, self, a, -1, out); }
FILTER(f_max) { UNUSED; return extreme(x, self, a, 1, out); }

FILTER(f_unique)
{
    UNUSED;
    qn_jlist *items;
    qn_jv keys;
    size_t n = 0;
    if (!qn_jv_items(x, self, &items) || !qn_jv_list(x, JT_gen, items->n, out) ||
        !qn_jv_list(x, JT_list, items->n, &keys))
        return false;
    for (size_t i = 0; i < items->n; i++) {
        bool seen = false;
        if (!sort_key(x, items->at[i], a[1], qn_jv_truth(a[0]), &keys.l->at[n])) return false;
        if (!qn_jv_hashable(x, keys.l->at[n])) return false;
        for (size_t k = 0; k < n && !seen; k++)
            if (!qn_jv_equal(x, keys.l->at[k], keys.l->at[n], &seen)) return false;
        if (!seen) out->l->at[n++] = items->at[i];
    }
    out->l->n = n;
    return true;
}

FILTER(f_groupby)
{
    UNUSED;
    qn_jlist *items;
    entry *e;
    size_t n = 0;
    if (!qn_jv_items(x, self, &items)) return false;
    if (!(e = qn_jx_new(x, (items->n + 1) * sizeof *e)) || !qn_jv_list(x, JT_list, items->n, out)) return false;
    for (size_t i = 0; i < items->n; i++) {
        e[i].v = items->at[i];
        if (!qn_jx_path(x, e[i].v, a[0], a[1], &e[i].key)) return false;
        if (!fold(x, e[i].key, qn_jv_truth(a[2]), &e[i].key)) return false;
    }
    if (!sort_entries(x, e, items->n, false)) return false;
    for (size_t from = 0, to; from < items->n; from = to) {
        qn_jv group, key;
        for (to = from + 1; to < items->n; to++) {
            bool same;
            if (!qn_jv_equal(x, e[from].key, e[to].key, &same)) return false;
            if (!same) break;
        }
        if (!qn_jv_list(x, JT_list, to - from, &group)) return false;
        for (size_t i = from; i < to; i++) group.l->at[i - from] = e[i].v;
        if (!qn_jx_path(x, e[from].v, a[0], a[1], &key)) return false; /* the group's name keeps its case */
        if (!pair(x, key, group, &out->l->at[n])) return false;
        out->l->at[n++].l->group = true;
    }
    out->l->n = n;
    return true;
}

/* ---- arithmetic on lists, and their parts */

FILTER(f_sum)
{
    UNUSED;
    qn_jlist *items;
    qn_jv v;
    *out = qn_jv_given(a[1]) ? a[1] : qn_jv_int(0);
    if (!qn_jv_items(x, self, &items)) return false;
    for (size_t i = 0; i < items->n; i++)
        if (!qn_jx_path(x, items->at[i], a[0], NO_DEFAULT, &v) || !qn_jx_binary(x, '+', *out, v, out)) return false;
    return true;
}

static bool part_of(qn_jx *x, const qn_jlist *items, size_t from, size_t n, size_t fill, qn_jv with, qn_jv *out)
{
    if (!qn_jv_list(x, JT_list, n + fill, out)) return false;
    for (size_t i = 0; i < n; i++) out->l->at[i] = items->at[from + i];
    for (size_t i = 0; i < fill; i++) out->l->at[n + i] = with;
    return true;
}

FILTER(f_batch)
{
    UNUSED;
    qn_jlist *items;
    i64 size;
    if (!qn_jv_integer(a[0], &size) || size < 1 || size > QN_TEMPLATE_RANGE)
        return qn_jx_fail(x, "batch: a size of 1 to %d was expected", QN_TEMPLATE_RANGE);
    if (!qn_jv_items(x, self, &items)) return false;
    const size_t k = (size_t)size, n = (items->n + k - 1) / k;
    const bool fill = qn_jv_given(a[1]) && a[1].type != JT_none;
    if (!qn_jv_list(x, JT_gen, n, out)) return false;
    for (size_t i = 0; i < n; i++) {
        const size_t have = qn_minz(k, items->n - i * k);
        if (!part_of(x, items, i * k, have, fill ? k - have : 0, a[1], &out->l->at[i])) return false;
    }
    return true;
}

FILTER(f_slice)
{
    UNUSED;
    qn_jlist *items;
    i64 n;
    if (!qn_jv_integer(a[0], &n) || n < 1 || n > QN_TEMPLATE_RANGE)
        return qn_jx_fail(x, "slice: 1 to %d slices were expected", QN_TEMPLATE_RANGE);
    if (!qn_jv_items(x, self, &items) || !qn_jv_list(x, JT_gen, (size_t)n, out)) return false;
    const size_t each = items->n / (size_t)n, longer = items->n % (size_t)n;
    const bool fill = qn_jv_given(a[1]) && a[1].type != JT_none;
    for (size_t i = 0, at = 0; i < (size_t)n; i++) {
        const size_t have = each + (i < longer);
        if (!part_of(x, items, at, have, fill && i >= longer, a[1], &out->l->at[i])) return false;
        at += have;
    }
    return true;
}

/* ---- map, select and their kin */

/* map('name', args...) or map(attribute='a.b', default=v). */
FILTER(f_map)
{
    UNUSED;
    qn_jlist *items;
    qn_jv attribute = { 0 }, instead = { 0 };
    const qn_jrow *row = NULL;
    if (!qn_jv_truth(self)) return qn_jv_list(x, JT_gen, 0, out); /* jinja2 does not even look at what is not true */
    for (size_t i = 0; i < raw->n_kw && !raw->n; i++) {
        if (qn_jstr_is(raw->kw[i].name, "attribute")) attribute = raw->kw[i].v;
        else if (qn_jstr_is(raw->kw[i].name, "default")) instead = raw->kw[i].v;
        else return qn_jx_fail(x, "map: was given a named argument that it does not have");
    }
    if (raw->n && (raw->pos[0].type != JT_str || !(row = qn_jfilter_find(*raw->pos[0].s))))
        return qn_jx_fail(x, "map: no such filter");
    if (!row && !qn_jv_given(attribute)) return qn_jx_fail(x, "map: needs the name of a filter or an attribute");
    if (!qn_jv_items(x, self, &items) || !qn_jv_list(x, JT_gen, items->n, out)) return false;
    const qn_jargs rest = { row ? raw->pos + 1 : NULL, row ? raw->n - 1 : 0, raw->kw, row ? raw->n_kw : 0 };
    for (size_t i = 0; i < items->n; i++) {
        qn_jv *to = &out->l->at[i];
        if (row ? !qn_jx_call_row(x, row, items->at[i], &rest, to)
                : !qn_jx_path(x, items->at[i], attribute, instead, to))
            return false;
    }
    return true;
}

/* Keeps the items for which the test (none: truth) of the item, or of its attribute, is `want`. */
static bool choose(qn_jx *x, qn_jv self, const qn_jargs *raw, bool by_attribute, bool want, qn_jv *out)
{
    qn_jlist *items;
    const size_t skip = by_attribute ? 1 : 0;
    const qn_jrow *test = NULL;
    size_t n = 0;
    if (!qn_jv_truth(self)) return qn_jv_list(x, JT_gen, 0, out);
    if (raw->n < skip) return qn_jx_fail(x, "selectattr: needs the name of an attribute");
    if (raw->n > skip && (raw->pos[skip].type != JT_str || !(test = qn_jrow_find(qn_jtests, *raw->pos[skip].s))))
        return qn_jx_fail(x, "select: no such test");
    if (!qn_jv_items(x, self, &items) || !qn_jv_list(x, JT_gen, items->n, out)) return false;
    const qn_jargs rest = { test ? raw->pos + skip + 1 : NULL, test ? raw->n - skip - 1 : 0, raw->kw, raw->n_kw };
    for (size_t i = 0; i < items->n; i++) {
        qn_jv v = items->at[i];
        if (by_attribute && !qn_jx_path(x, v, raw->pos[0], NO_DEFAULT, &v)) return false;
        if (test && !qn_jx_call_row(x, test, v, &rest, &v)) return false;
        if (qn_jv_truth(v) == want) out->l->at[n++] = items->at[i];
    }
    out->l->n = n;
    return true;
}

FILTER(f_select) { UNUSED; return choose(x, self, raw, false, true, out); }
FILTER(f_reject) { UNUSED; return choose(x, self, raw, false, false, out); }
FILTER(f_selectattr) { UNUSED; return choose(x, self, raw, true, true, out); }
FILTER(f_rejectattr) { UNUSED; return choose(x, self, raw, true, false, out); }

const qn_jrow qn_jfilters_list[] = {
    { "batch", f_batch, "linecount fill_with", 1 }, { "dictsort", f_dictsort, "case_sensitive by reverse", 0 },
    { "first", f_first, "", 0 }, { "groupby", f_groupby, "attribute default case_sensitive", 1 },
    { "items", f_items, "", 0 }, { "join", f_join, "d attribute", 0 }, { "last", f_last, "", 0 },
    { "list", f_list, "", 0 }, { "map", f_map, NULL, 0 }, { "max", f_max, "case_sensitive attribute", 0 },
    { "min", f_min, "case_sensitive attribute", 0 }, { "reject", f_reject, NULL, 0 },
    { "rejectattr", f_rejectattr, NULL, 0 }, { "reverse", f_reverse, "", 0 }, { "select", f_select, NULL, 0 },
    { "selectattr", f_selectattr, NULL, 0 }, { "slice", f_slice, "slices fill_with", 1 },
    { "sort", f_sort, "reverse case_sensitive attribute", 0 }, { "sum", f_sum, "attribute start", 0 },
    { "unique", f_unique, "case_sensitive attribute", 0 }, { NULL, NULL, NULL, 0 } };
