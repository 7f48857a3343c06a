/* template.c - opens and renders templates: the frame around the interpreter. Everything of a template lives in its arena,
 * everything of a rendering in another, so closing is one call each. */
#include "text/template.h"

#include <string.h>

#include "text/jinja.h"

bool qn_jfail_at(const qn_template *t, size_t pos, int code, qn_err *e, const char *what)
{
    size_t line = 1, start = 0;
    if (e->code == QN_ENOMEM) return false; /* what failed was memory: that stays the message */
    for (size_t i = 0; i < pos && i < t->n; i++) {
        if (t->src[i] != '\n') continue;
        line++;
        start = i + 1;
    }
    return qn_fail(e, code, "%s, line %zu, column %zu: %s", t->name, line, pos - start + 1, what);
}

u32 qn_jname_put(qn_template *t, const char *p, size_t n, qn_err *e)
{
    const u32 have = qn_table_get(&t->names, p, n);
    if (have != QN_NONE) return have;
    if (t->n_names == t->cap_names) {
        const u32 cap = t->cap_names ? t->cap_names * 2 : 64;
        qn_jstr *list = qn_arena_new(&t->mem, cap * sizeof *list, e);
        if (!list) return QN_NONE;
        if (t->n_names) memcpy(list, t->name_list, t->n_names * sizeof *list);
        t->name_list = list;
        t->cap_names = cap;
    }
    char *copy = qn_arena_strndup(&t->mem, p, n, e);
    if (!copy || qn_table_put(&t->names, copy, n, t->n_names, e) == QN_NONE) return QN_NONE;
    t->name_list[t->n_names] = (qn_jstr){ copy, NULL, n };
    return t->n_names++;
}

/* The source with \n for every kind of line end, and without the last one: as jinja2 sees it. */
static bool copy_source(qn_template *t, const char *src, size_t n, qn_err *e)
{
    char *p = qn_arena_new(&t->mem, n + 1, e);
    if (!p) return false;
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        const bool cr = src[i] == '\r';
        if (cr && i + 1 < n && src[i + 1] == '\n') i++;
        p[k++] = cr ? '\n' : src[i];
    }
    if (k && p[k - 1] == '\n') k--;
    t->src = p;
    t->n = k;
    return true;
}

static bool intern_specials(qn_template *t, qn_err *e)
{
    t->name_loop = qn_jname_put(t, "loop", 4, e);
    t->name_caller = qn_jname_put(t, "caller", 6, e);
    t->name_varargs = qn_jname_put(t, "varargs", 7, e);
    t->name_kwargs = qn_jname_put(t, "kwargs", 6, e);
    return t->name_loop != QN_NONE && t->name_caller != QN_NONE && t->name_varargs != QN_NONE && t->name_kwargs != QN_NONE;
}

qn_template *qn_template_open(const char *src, size_t n, const char *name, qn_err *e)
{
    *e = (qn_err){ 0 };
    if (n > QN_TEMPLATE_SOURCE) {
        qn_fail(e, QN_EFORMAT, "%s: %zu bytes, the limit is %u", name, n, QN_TEMPLATE_SOURCE);
        return NULL;
    }
    qn_template *t = qn_new(sizeof *t, e);
    if (t && (t->name = qn_arena_strndup(&t->mem, name, strlen(name), e)) && copy_source(t, src, n, e) &&
        intern_specials(t, e) && (t->root = qn_jparse_template(t, e)))
        return t;
    qn_template_close(t);
    return NULL;
}

void qn_template_close(qn_template *t)
{
    if (!t) return;
    qn_table_close(&t->names);
    qn_arena_close(&t->mem);
    qn_free(t);
}

/* Variables that the template never names are not even parsed. */
static bool set_vars(qn_jx *x, const qn_template_var *vars, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const u32 name = qn_table_get(&x->t->names, vars[i].name, strlen(vars[i].name));
        qn_jv v;
        if (name == QN_NONE) continue;
        if (!qn_jv_from_json(x, &vars[i], &v) || !qn_jx_assign(x, name, v)) return false;
    }
    return true;
}

static bool hand_over(const qn_jbuild *b, qn_buf *out, qn_buf *marks, qn_err *e)
{
    char *to = qn_buf_room(out, b->n), *to_marks = marks ? qn_buf_room(marks, b->n) : NULL;
    if (!to || (marks && !to_marks)) return qn_fail(e, QN_ENOMEM, "out of memory: %zu bytes asked for", b->n);
    qn_buf_put(out, b->p, b->n);
    if (marks) qn_buf_put(marks, b->marks, b->n);
    return true;
}

bool qn_template_render(const qn_template *t, const qn_template_var *vars, size_t n_vars, i64 now, qn_buf *out,
                        qn_buf *marks, qn_err *e)
{
    qn_jbuild text = { 0 };
    qn_jframe top = { 0 };
    qn_jx x = { .t = t, .frame = &top, .out = &text, .now = now, .e = e };
    *e = (qn_err){ 0 };
    const bool ok = set_vars(&x, vars, n_vars) && qn_jx_exec(&x, t->root) && (!text.n || hand_over(&text, out, marks, e));
    qn_arena_close(&x.mem);
    return ok;
}
