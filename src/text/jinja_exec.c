/* jinja_exec.c - runs statements: loops, branches, assignments, macros; and keeps the limits (steps, depth, memory). Output
 * goes to the builder that x->out points at; capturing is pointing it elsewhere for a while.
 * Scopes: a loop and a macro open a frame, a branch does not; a name is looked up from the innermost frame outwards. */
#include "text/jinja.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 400 /* statements and expressions within each other, macro calls included */

/* ---- limits */

bool qn_jx_fail(qn_jx *x, const char *fmt, ...)
{
    char what[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return qn_jfail_at(x->t, x->at ? x->at->pos : 0, QN_EFORMAT, x->e, what);
}

bool qn_jx_step(qn_jx *x, size_t n)
{
    x->steps += n;
    return x->steps <= QN_TEMPLATE_STEPS || qn_jx_fail(x, "stopped after %u steps", QN_TEMPLATE_STEPS);
}

void *qn_jx_new(qn_jx *x, size_t bytes)
{
    if (bytes > QN_TEMPLATE_MEMORY - x->bytes) {
        qn_jx_fail(x, "needs more than %u MiB of memory", QN_TEMPLATE_MEMORY >> 20);
        return NULL;
    }
    x->bytes += bytes;
    return qn_arena_new(&x->mem, bytes, x->e);
}

bool qn_jx_enter(qn_jx *x) { return ++x->depth <= MAX_DEPTH || qn_jx_fail(x, "nested too deeply"); }
void qn_jx_leave(qn_jx *x) { x->depth--; }

/* ---- variables */

static qn_jv *find_var(qn_jframe *f, u32 name)
{
    for (u32 i = 0; i < f->n; i++)
        if (f->vars[i].name == name) return &f->vars[i].v;
    return NULL;
}

qn_jv *qn_jx_lookup(qn_jx *x, u32 name)
{
    for (qn_jframe *f = x->frame; f; f = f->up) {
        qn_jv *v = find_var(f, name);
        if (v) return v;
    }
    return NULL;
}

bool qn_jx_assign(qn_jx *x, u32 name, qn_jv v)
{
    qn_jframe *f = x->frame;
    qn_jv *old = find_var(f, name);
    if (old) {
        *old = v;
        return true;
    }
    if (f->n == f->cap) {
        const u32 cap = f->cap ? f->cap * 2 : 8;
        qn_jvar *vars = qn_jx_new(x, cap * sizeof *vars);
        if (!vars) return false;
        if (f->n) memcpy(vars, f->vars, f->n * sizeof *vars);
        f->vars = vars;
        f->cap = cap;
    }
    f->vars[f->n++] = (qn_jvar){ name, v };
    return true;
}

static qn_jframe *push_frame(qn_jx *x, qn_jframe *up)
{
    qn_jframe *f = qn_jx_new(x, sizeof *f);
    if (f) f->up = up;
    return f;
}

static bool assign_attr(qn_jx *x, const qn_jnode *target, qn_jv v)
{
    const qn_jv *ns = qn_jx_lookup(x, target->a->name);
    qn_jv key;
    if (!ns || ns->type != JT_ns) return qn_jx_fail(x, "cannot assign an attribute on what is not a namespace");
    return qn_jv_str(x, x->t->name_list[target->name], &key) && qn_jdict_put(x, ns->d, key, v);
}

/* One target, or a tuple of them that v is unpacked into. */
static bool assign_target(qn_jx *x, const qn_jnode *target, qn_jv v)
{
    if (target->kind == JN_name) return qn_jx_assign(x, target->name, v);
    if (target->kind == JN_attr) return assign_attr(x, target, v);
    qn_jlist *items;
    size_t want = 0;
    if (!qn_jv_items(x, v, &items)) return false;
    for (const qn_jnode *n = target->a; n; n = n->next) want++;
    if (items->n != want) return qn_jx_fail(x, "cannot unpack %zu values into %zu names", items->n, want);
    const qn_jv *at = items->at;
    for (const qn_jnode *n = target->a; n; n = n->next)
        if (!assign_target(x, n, *at++)) return false;
    return true;
}

/* ---- capturing */

/* Runs body in a frame of its own below `up` and takes what it prints. */
static bool capture(qn_jx *x, const qn_jnode *body, qn_jframe *frame, qn_jv *out)
{
    qn_jbuild text = { 0 }, *const was_out = x->out;
    qn_jframe *const was_frame = x->frame;
    x->out = &text;
    x->frame = frame;
    const bool ok = qn_jx_exec(x, body);
    x->out = was_out;
    x->frame = was_frame;
    return ok && qn_jbuild_value(x, &text, out);
}

/* Captures n->c and sends it through the filters of n->b, if any. */
static bool capture_filtered(qn_jx *x, const qn_jnode *n, qn_jv *out)
{
    qn_jframe *f = push_frame(x, x->frame);
    if (!f || !capture(x, n->c, f, out)) return false;
    if (!n->b) return true;
    const qn_jv was = x->captured;
    x->captured = *out;
    const bool ok = qn_jx_eval(x, n->b, out);
    x->captured = was;
    return ok;
}

/* ---- loops */

static bool run_item(qn_jx *x, const qn_jnode *n, qn_jv item, qn_jloop *loop, bool *go_on)
{
    const qn_jv self = { .type = JT_loop, .loop = loop };
    x->frame->n = 0;
    if (!qn_jx_step(x, 1) || !assign_target(x, n->a, item)) return false;
    if (n->loops && !qn_jx_assign(x, x->t->name_loop, self)) return false;
    if (!qn_jx_exec(x, n->c)) return false;
    *go_on = x->jump != JN_break;
    x->jump = 0;
    return true;
}

static bool passes(qn_jx *x, const qn_jnode *n, qn_jv item, bool *yes)
{
    qn_jv v;
    *yes = true;
    if (!n->b->next) return true;
    x->frame->n = 0;
    if (!qn_jx_step(x, 1) || !assign_target(x, n->a, item) || !qn_jx_eval(x, n->b->next, &v)) return false;
    *yes = qn_jv_truth(v);
    return true;
}

/* `loop` knows its length, so with a filter the items that pass are found before the first of them runs. */
static bool filter_items(qn_jx *x, const qn_jnode *n, qn_jlist **items)
{
    qn_jv kept;
    if (!qn_jv_list(x, JT_list, (*items)->n, &kept)) return false;
    size_t k = 0;
    for (size_t i = 0; i < (*items)->n; i++) {
        bool yes;
        if (!passes(x, n, (*items)->at[i], &yes)) return false;
        if (yes) kept.l->at[k++] = (*items)->at[i];
    }
    kept.l->n = k;
    *items = kept.l;
    return true;
}

static bool run_items(qn_jx *x, const qn_jnode *n, qn_jlist *items, i64 depth, bool *any)
{
    qn_jloop *loop = qn_jx_new(x, sizeof *loop);
    if (!loop) return false;
    const bool early = n->loops && n->b->next;
    if (early && !filter_items(x, n, &items)) return false;
    *loop = (qn_jloop){ .node = n, .items = items, .depth = depth };
    bool go_on = true, yes = true;
    for (size_t i = 0; i < items->n && go_on; i++) {
        loop->i = i;
        if (!early && !passes(x, n, items->at[i], &yes)) return false;
        if (!yes) continue;
        *any = true;
        if (!run_item(x, n, items->at[i], loop, &go_on)) return false;
    }
    return true;
}

bool qn_jx_run_loop(qn_jx *x, const qn_jnode *n, qn_jv iter, i64 depth)
{
    qn_jlist *items;
    bool any = false;
    qn_jframe *const was = x->frame, *f = push_frame(x, was);
    if (!f || !qn_jv_items(x, iter, &items)) return false;
    x->frame = f;
    bool ok = run_items(x, n, items, depth, &any);
    x->frame = was;
    if (ok && !any && n->d) ok = (x->frame = push_frame(x, was)) && qn_jx_exec(x, n->d);
    x->frame = was;
    return ok;
}

static bool exec_for(qn_jx *x, const qn_jnode *n)
{
    qn_jv iter;
    return qn_jx_eval(x, n->b, &iter) && qn_jx_run_loop(x, n, iter, 1);
}

/* ---- macros */

static const qn_jkw *find_kw(const qn_jargs *args, qn_jstr name)
{
    for (size_t i = 0; i < args->n_kw; i++)
        if (args->kw[i].name.n == name.n && memcmp(args->kw[i].name.p, name.p, name.n) == 0) return &args->kw[i];
    return NULL;
}

/* The parameters of m in the current frame, from the arguments or their defaults. *n: how many parameters there are. */
static bool bind_params(qn_jx *x, const qn_jmacro *m, const qn_jargs *args, size_t *n, size_t *n_named)
{
    *n = *n_named = 0;
    for (const qn_jnode *p = m->node->b; p; p = p->next, ++*n) {
        const qn_jstr name = x->t->name_list[p->name];
        const qn_jkw *kw = find_kw(args, name);
        qn_jv v;
        if (kw && *n < args->n)
            return qn_jx_fail(x, "two values for the parameter '%.*s'", (int)qn_minz(name.n, 60), name.p);
        *n_named += kw != NULL;
        if (*n < args->n) v = args->pos[*n];
        else if (kw) v = kw->v;
        else if (p->a ? !qn_jx_eval(x, p->a, &v)
                      : !qn_jv_undef(x, &v, "parameter '%.*s' was not provided", (int)qn_minz(name.n, 60), name.p))
            return false;
        if (!qn_jx_assign(x, p->name, v)) return false;
    }
    return true;
}

/* What no parameter took: varargs, kwargs and caller, for macros that mention them; an error for others. */
static bool bind_rest(qn_jx *x, const qn_jmacro *m, const qn_jargs *args, size_t n, size_t n_named)
{
    const qn_jstr name = x->t->name_list[m->node->name];
    const qn_jkw *caller = find_kw(args, x->t->name_list[x->t->name_caller]);
    qn_jv v;
    if (m->node->op & QN_JSAW_CALLER) {
        n_named += caller != NULL;
        if (caller ? (v = caller->v, false) : !qn_jv_undef(x, &v, "no caller defined")) return false;
        if (!qn_jx_assign(x, x->t->name_caller, v)) return false;
    }
    if (m->node->op & QN_JSAW_VARARGS) {
        const size_t rest = args->n > n ? args->n - n : 0;
        if (!qn_jv_list(x, JT_tuple, rest, &v)) return false;
        for (size_t i = 0; i < rest; i++) v.l->at[i] = args->pos[n + i];
        if (!qn_jx_assign(x, x->t->name_varargs, v)) return false;
    } else if (args->n > n) {
        return qn_jx_fail(x, "macro '%.*s' takes not more than %zu arguments", (int)qn_minz(name.n, 60), name.p, n);
    }
    if (!(m->node->op & QN_JSAW_KWARGS)) {
        return n_named == args->n_kw || qn_jx_fail(x, "macro '%.*s' was given a named argument that it does not have",
                                                   (int)qn_minz(name.n, 60), name.p);
    }
    if (!qn_jv_dict(x, JT_dict, args->n_kw, &v)) return false;
    for (size_t i = 0; i < args->n_kw; i++) {
        qn_jv key;
        const u32 id = qn_table_get(&x->t->names, args->kw[i].name.p, args->kw[i].name.n);
        if (&args->kw[i] == caller || (id != QN_NONE && find_var(x->frame, id))) continue;
        if (!qn_jv_str(x, args->kw[i].name, &key) || !qn_jdict_put(x, v.d, key, args->kw[i].v)) return false;
    }
    return qn_jx_assign(x, x->t->name_kwargs, v);
}

bool qn_jx_call_macro(qn_jx *x, const qn_jmacro *m, const qn_jargs *args, qn_jv *out)
{
    size_t n, n_named;
    if (x->calls >= QN_TEMPLATE_CALLS) return qn_jx_fail(x, "more than %d macro calls within each other", QN_TEMPLATE_CALLS);
    qn_jframe *const was = x->frame, *f = push_frame(x, m->frame);
    if (!f) return false;
    x->frame = f;
    x->calls++;
    const bool ok =
        bind_params(x, m, args, &n, &n_named) && bind_rest(x, m, args, n, n_named) && capture(x, m->node->c, f, out);
    x->calls--;
    x->frame = was;
    return ok;
}

static bool new_macro(qn_jx *x, const qn_jnode *n, qn_jv *out)
{
    qn_jmacro *m = qn_jx_new(x, sizeof *m);
    if (!m) return false;
    *m = (qn_jmacro){ .node = n, .frame = x->frame };
    *out = (qn_jv){ .type = JT_macro, .macro = m };
    return true;
}

static bool exec_macro(qn_jx *x, const qn_jnode *n)
{
    qn_jv m;
    return new_macro(x, n, &m) && qn_jx_assign(x, n->name, m);
}

static bool exec_call_block(qn_jx *x, const qn_jnode *n)
{
    qn_jv caller, v;
    if (!new_macro(x, n, &caller)) return false;
    const qn_jkw extra = { x->t->name_list[x->t->name_caller], caller };
    return qn_jx_eval_call(x, n->a, &extra, &v) && qn_jv_print(x, x->out, v);
}

/* ---- the rest */

static bool exec_body(qn_jx *x, const qn_jnode *n)
{
    for (n = n->a; n && !x->jump; n = n->next)
        if (!qn_jx_exec(x, n)) return false;
    return true;
}

static bool exec_if(qn_jx *x, const qn_jnode *n)
{
    for (n = n->a; n; n = n->next) {
        qn_jv v;
        if (n->a && !qn_jx_eval(x, n->a, &v)) return false;
        if (!n->a || qn_jv_truth(v)) return qn_jx_exec(x, n->b);
    }
    return true;
}

static bool exec_set(qn_jx *x, const qn_jnode *n)
{
    qn_jv v;
    return (n->kind == JN_set ? qn_jx_eval(x, n->b, &v) : capture_filtered(x, n, &v)) && assign_target(x, n->a, v);
}

static bool exec_filter_block(qn_jx *x, const qn_jnode *n)
{
    qn_jv v;
    return capture_filtered(x, n, &v) && qn_jv_print(x, x->out, v);
}

/* The values are of the outer scope: with a=1, b=a does not see the new a. */
static bool exec_with(qn_jx *x, const qn_jnode *n)
{
    qn_jframe *const was = x->frame, *f = push_frame(x, was);
    bool ok = f != NULL;
    for (const qn_jnode *s = n->a; ok && s; s = s->next) {
        qn_jv v;
        x->frame = was;
        ok = qn_jx_eval(x, s->b, &v);
        x->frame = f;
        ok = ok && assign_target(x, s->a, v);
    }
    x->frame = f;
    ok = ok && qn_jx_exec(x, n->c);
    x->frame = was;
    return ok;
}

static bool exec_print(qn_jx *x, const qn_jnode *n)
{
    qn_jv v;
    return qn_jx_eval(x, n->a, &v) && qn_jv_print(x, x->out, v);
}

static bool exec(qn_jx *x, const qn_jnode *n)
{
    switch (n->kind) {
    case JN_body: return exec_body(x, n);
    case JN_data: return qn_jbuild_put(x, x->out, *n->value.s);
    case JN_print: return exec_print(x, n);
    case JN_for: return exec_for(x, n);
    case JN_if: return exec_if(x, n);
    case JN_set:
    case JN_setblock: return exec_set(x, n);
    case JN_macro: return exec_macro(x, n);
    case JN_callblock: return exec_call_block(x, n);
    case JN_filterblock: return exec_filter_block(x, n);
    case JN_with: return exec_with(x, n);
    default: x->jump = n->kind; return true; /* JN_break, JN_continue */
    }
}

bool qn_jx_exec(qn_jx *x, const qn_jnode *n)
{
    const qn_jnode *const was = x->at;
    x->at = n;
    if (!qn_jx_step(x, 1) || !qn_jx_enter(x) || !exec(x, n)) return false;
    qn_jx_leave(x);
    x->at = was;
    return true;
}
