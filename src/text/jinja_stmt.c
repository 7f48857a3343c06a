/* jinja_stmt.c - statements of a template into nodes: bodies, loops, branches, assignments, macros. Which statements
 * exist is the table at the end. Expressions are in jinja_parse.c. */
#include "text/jinja.h"

#include <string.h>

static qn_jnode *parse_body(qn_jparse *p, const char *const *ends);

static bool block_end(qn_jparse *p)
{
    return p->cur.type == JK_block_end ? qn_jparse_advance(p) : qn_jparse_unexpected(p, "'%}'");
}

/* A body up to one of `ends`; the block with it is entered: its name is the current token. */
static qn_jnode *body_until(qn_jparse *p, const char *const *ends)
{
    qn_jnode *n = parse_body(p, ends);
    return n && qn_jparse_advance(p) ? n : NULL; /* past {% */
}

/* %} body {% end %} */
static qn_jnode *whole_body(qn_jparse *p, const char *end)
{
    const char *const ends[] = { end, NULL };
    qn_jnode *n = block_end(p) ? body_until(p, ends) : NULL;
    return n && qn_jparse_advance(p) ? n : NULL;
}

static bool expect_name(qn_jparse *p, const char *name)
{
    return qn_jparse_is_name(p, name) ? qn_jparse_advance(p) : qn_jparse_unexpected(p, name);
}

static bool take_name(qn_jparse *p, u32 *out)
{
    if (p->cur.type != JK_name) return qn_jparse_unexpected(p, "a name");
    *out = qn_jname_put(p->t, p->cur.p, p->cur.n, p->e);
    return *out != QN_NONE && qn_jparse_advance(p);
}

/* ---- targets of an assignment */

static qn_jnode *parse_target(qn_jparse *p, bool attributes);

static qn_jnode *parse_one_target(qn_jparse *p, bool attributes)
{
    if (qn_jparse_is_op(p, '(')) {
        if (!qn_jparse_enter(p, 2) || !qn_jparse_advance(p)) return NULL;
        qn_jnode *inner = parse_target(p, attributes);
        p->depth -= 2;
        return inner && qn_jparse_expect_op(p, ')') ? inner : NULL;
    }
    qn_jnode *n = qn_jparse_node(p, JN_name, p->cur.pos);
    if (!n || !take_name(p, &n->name)) return NULL;
    if (!attributes || !qn_jparse_is_op(p, '.')) return n;
    qn_jnode *attr = qn_jparse_node(p, JN_attr, p->cur.pos);
    if (!attr || !qn_jparse_advance(p) || !take_name(p, &attr->name)) return NULL;
    attr->a = n;
    attr->height = 2;
    return attr;
}

static bool starts_target(const qn_jparse *p) { return p->cur.type == JK_name || qn_jparse_is_op(p, '('); }

/* a   a, b   (a, b), c   ns.a */
static qn_jnode *parse_target(qn_jparse *p, bool attributes)
{
    return qn_jparse_commas(p, parse_one_target, attributes, starts_target);
}

/* ---- statements; each begins at its name and ends behind its last %} */

/* JN_for: a target, b what to loop over, c body, d else; the filter is the node behind b on next. */
static bool parse_for_head(qn_jparse *p, qn_jnode *n)
{
    if (!qn_jparse_advance(p) || !(n->a = parse_target(p, false)) || !expect_name(p, "in")) return false;
    if (!(n->b = qn_jparse_tuple(p, false))) return false;
    if (qn_jparse_is_name(p, "if")) {
        if (!qn_jparse_advance(p) || !(n->b->next = qn_jparse_expr(p))) return false;
    }
    n->flag = qn_jparse_is_name(p, "recursive");
    if (n->flag && !qn_jparse_advance(p)) return false;
    return qn_jparse_raise(p, n, n->a) && qn_jparse_raise(p, n, n->b) && block_end(p);
}

static qn_jnode *parse_for(qn_jparse *p)
{
    static const char *const ends[] = { "else", "endfor", NULL }, *const end[] = { "endfor", NULL };
    qn_jnode *n = qn_jparse_node(p, JN_for, p->cur.pos);
    if (!n || !parse_for_head(p, n)) return NULL;
    const bool saw = p->saw_loop; /* in its head, `loop` is that of the loop around it */
    p->saw_loop = false;
    p->n_loops++;
    n->c = body_until(p, ends);
    p->n_loops--;
    n->loops = p->saw_loop || n->flag;
    p->saw_loop |= saw;
    if (!n->c) return NULL;
    if (qn_jparse_is_name(p, "else")) {
        if (!qn_jparse_advance(p) || !block_end(p) || !(n->d = body_until(p, end))) return NULL;
    }
    if (!qn_jparse_raise(p, n, n->c) || !qn_jparse_raise(p, n, n->d)) return NULL;
    return qn_jparse_advance(p) && block_end(p) ? n : NULL;
}

/* JN_if: a list of JN_branch in a, each with its condition in a (NULL: else) and its body in b. */
static qn_jnode *parse_if(qn_jparse *p)
{
    static const char *const ends[] = { "elif", "else", "endif", NULL }, *const end[] = { "endif", NULL };
    qn_jnode *n = qn_jparse_node(p, JN_if, p->cur.pos);
    qn_jlist_of branches = { 0 };
    if (!n) return NULL;
    p->n_branches++;
    for (bool more = true; more;) {
        qn_jnode *b = qn_jparse_node(p, JN_branch, p->cur.pos);
        const bool is_else = qn_jparse_is_name(p, "else");
        if (!b || !qn_jparse_advance(p)) return NULL;
        if (!is_else && !(b->a = qn_jparse_tuple(p, false))) return NULL;
        if (!block_end(p) || !(b->b = body_until(p, is_else ? end : ends))) return NULL;
        if (!qn_jparse_raise(p, b, b->a) || !qn_jparse_raise(p, b, b->b)) return NULL;
        qn_jparse_push(&branches, b);
        more = !qn_jparse_is_name(p, "endif");
    }
    p->n_branches--;
    n->a = branches.first;
    return qn_jparse_raise(p, n, n->a) && qn_jparse_advance(p) && block_end(p) ? n : NULL;
}

/* JN_set: a target, b value. JN_setblock: a target, b filters over JN_captured or NULL, c body. */
static qn_jnode *parse_set(qn_jparse *p)
{
    qn_jnode *n = qn_jparse_node(p, JN_set, p->cur.pos);
    if (!n || !qn_jparse_advance(p) || !(n->a = parse_target(p, true))) return NULL;
    if (qn_jparse_is_op(p, '=')) {
        if (!qn_jparse_advance(p) || !(n->b = qn_jparse_tuple(p, true))) return NULL;
        return qn_jparse_raise(p, n, n->b) && block_end(p) ? n : NULL;
    }
    n->kind = JN_setblock;
    if (qn_jparse_is_op(p, '|')) {
        qn_jnode *in = qn_jparse_node(p, JN_captured, p->cur.pos);
        if (!in || !(n->b = qn_jparse_filters(p, in, false))) return NULL;
    }
    n->c = whole_body(p, "endset");
    return n->c && qn_jparse_raise(p, n, n->b) && qn_jparse_raise(p, n, n->c) && block_end(p) ? n : NULL;
}

/* (a, b=1): JN_param with its default in a. */
static bool parse_params(qn_jparse *p, qn_jlist_of *out)
{
    bool optional = false;
    if (!qn_jparse_expect_op(p, '(')) return false;
    while (!qn_jparse_is_op(p, ')')) {
        if (out->last && !qn_jparse_expect_op(p, ',')) return false;
        if (out->last && qn_jparse_is_op(p, ')')) break;
        qn_jnode *n = qn_jparse_node(p, JN_param, p->cur.pos);
        if (!n || !take_name(p, &n->name)) return false;
        if (qn_jparse_is_op(p, '=')) {
            if (!qn_jparse_advance(p) || !(n->a = qn_jparse_expr(p)) || !qn_jparse_raise(p, n, n->a)) return false;
            optional = true;
        } else if (optional) {
            return qn_jparse_fail(p, n->pos, "a parameter without default behind one with it");
        }
        qn_jparse_push(out, n);
    }
    return qn_jparse_advance(p);
}

/* The body of a macro: outside of any loop, with special names of its own. */
static qn_jnode *macro_body(qn_jparse *p, qn_jnode *n, const char *end)
{
    const u16 saw = p->saw;
    const int n_loops = p->n_loops;
    p->saw = 0;
    p->n_loops = 0;
    n->c = whole_body(p, end);
    n->op = p->saw;
    p->saw = saw;
    p->n_loops = n_loops;
    return n->c && qn_jparse_raise(p, n, n->b) && qn_jparse_raise(p, n, n->c) ? n : NULL;
}

/* JN_macro: name, b parameters, c body. */
static qn_jnode *parse_macro(qn_jparse *p)
{
    qn_jnode *n = qn_jparse_node(p, JN_macro, p->cur.pos);
    qn_jlist_of params = { 0 };
    if (!n || !qn_jparse_advance(p) || !take_name(p, &n->name) || !parse_params(p, &params)) return NULL;
    n->b = params.first;
    return macro_body(p, n, "endmacro") && block_end(p) ? n : NULL;
}

/* JN_callblock: a the call, b parameters of caller, c body. */
static qn_jnode *parse_call_block(qn_jparse *p)
{
    qn_jnode *n = qn_jparse_node(p, JN_callblock, p->cur.pos);
    qn_jlist_of params = { 0 };
    if (!n || !qn_jparse_advance(p)) return NULL;
    if (qn_jparse_is_op(p, '(') && !parse_params(p, &params)) return NULL;
    n->name = p->t->name_caller;
    n->b = params.first;
    if (!(n->a = qn_jparse_expr(p))) return NULL;
    if (n->a->kind != JN_call) {
        qn_jparse_fail(p, n->a->pos, "expected a call");
        return NULL;
    }
    return qn_jparse_raise(p, n, n->a) && macro_body(p, n, "endcall") && block_end(p) ? n : NULL;
}

/* JN_filterblock: b filters over JN_captured, c body. */
static qn_jnode *parse_filter_block(qn_jparse *p)
{
    qn_jnode *n = qn_jparse_node(p, JN_filterblock, p->cur.pos);
    qn_jnode *in = n && qn_jparse_advance(p) ? qn_jparse_node(p, JN_captured, p->cur.pos) : NULL;
    if (!in || !(n->b = qn_jparse_filters(p, in, true)) || !(n->c = whole_body(p, "endfilter"))) return NULL;
    return qn_jparse_raise(p, n, n->b) && qn_jparse_raise(p, n, n->c) && block_end(p) ? n : NULL;
}

/* JN_with: a list of JN_set, c body. */
static qn_jnode *parse_with(qn_jparse *p)
{
    qn_jnode *n = qn_jparse_node(p, JN_with, p->cur.pos);
    qn_jlist_of sets = { 0 };
    if (!n || !qn_jparse_advance(p)) return NULL;
    while (p->cur.type != JK_block_end) {
        if (sets.last && !qn_jparse_expect_op(p, ',')) return NULL;
        qn_jnode *s = qn_jparse_node(p, JN_set, p->cur.pos);
        if (!s || !(s->a = parse_one_target(p, false)) || !qn_jparse_expect_op(p, '=')) return NULL;
        if (!(s->b = qn_jparse_expr(p)) || !qn_jparse_raise(p, s, s->b)) return NULL;
        qn_jparse_push(&sets, s);
    }
    n->a = sets.first;
    n->c = whole_body(p, "endwith");
    return n->c && qn_jparse_raise(p, n, n->a) && qn_jparse_raise(p, n, n->c) && block_end(p) ? n : NULL;
}

/* {% generation %}: marks the assistant's part for training; here it is a scope, no more. */
static qn_jnode *parse_generation(qn_jparse *p)
{
    qn_jnode *n = qn_jparse_node(p, JN_with, p->cur.pos);
    if (!n || !qn_jparse_advance(p) || !(n->c = whole_body(p, "endgeneration"))) return NULL;
    return qn_jparse_raise(p, n, n->c) && block_end(p) ? n : NULL;
}

static qn_jnode *parse_jump(qn_jparse *p)
{
    qn_jnode *n = qn_jparse_node(p, qn_jparse_is_name(p, "break") ? JN_break : JN_continue, p->cur.pos);
    if (n && !p->n_loops) {
        qn_jparse_fail(p, p->cur.pos, "break and continue belong inside a loop");
        return NULL;
    }
    return n && qn_jparse_advance(p) && block_end(p) ? n : NULL;
}

static qn_jnode *parse_statement(qn_jparse *p)
{
    static const struct { const char *name; qn_jnode *(*parse)(qn_jparse *p); } statements[] = {
        { "for", parse_for }, { "if", parse_if }, { "set", parse_set }, { "macro", parse_macro },
        { "call", parse_call_block }, { "filter", parse_filter_block }, { "with", parse_with },
        { "generation", parse_generation }, { "break", parse_jump }, { "continue", parse_jump } };
    for (size_t i = 0; i < QN_COUNT(statements); i++)
        if (qn_jparse_is_name(p, statements[i].name)) return statements[i].parse(p);
    if (p->cur.type != JK_name) qn_jparse_unexpected(p, "the name of a tag");
    else qn_jparse_fail(p, p->cur.pos, "unknown tag '%.*s'", (int)qn_minz(p->cur.n, 60), p->cur.p);
    return NULL;
}

static qn_jnode *parse_data(qn_jparse *p)
{
    qn_jnode *n = qn_jparse_node(p, JN_data, p->cur.pos);
    qn_jstr *s = n ? qn_arena_new(&p->t->mem, sizeof *s, p->e) : NULL;
    if (!s) return NULL;
    *s = (qn_jstr){ p->cur.p, NULL, p->cur.n };
    n->value = (qn_jv){ .type = JT_str, .s = s };
    return qn_jparse_advance(p) ? n : NULL;
}

static qn_jnode *parse_print(qn_jparse *p)
{
    qn_jnode *n = qn_jparse_node(p, JN_print, p->cur.pos);
    if (!n || !qn_jparse_advance(p) || !(n->a = qn_jparse_tuple(p, true))) return NULL;
    if (p->cur.type != JK_print_end) {
        qn_jparse_unexpected(p, "'}}'");
        return NULL;
    }
    return qn_jparse_raise(p, n, n->a) && qn_jparse_advance(p) ? n : NULL;
}

static bool at_end(const qn_jparse *p, const char *const *ends)
{
    if (p->cur.type != JK_block || p->ahead.type != JK_name) return false;
    for (; ends && *ends; ends++)
        if (strlen(*ends) == p->ahead.n && memcmp(*ends, p->ahead.p, p->ahead.n) == 0) return true;
    return false;
}

/* JN_body: a list of statements in a. Stops before a block with one of `ends`; without ends at the end of the source. */
static qn_jnode *parse_body(qn_jparse *p, const char *const *ends)
{
    qn_jnode *n = qn_jparse_node(p, JN_body, p->cur.pos);
    qn_jlist_of items = { 0 };
    if (!n || !qn_jparse_enter(p, 2)) return NULL;
    while (!at_end(p, ends)) {
        qn_jnode *item = NULL;
        if (p->cur.type == JK_eof && !ends) break;
        if (p->cur.type == JK_eof) qn_jparse_fail(p, p->cur.pos, "the template ends where %s was expected", ends[0]);
        else if (p->cur.type == JK_data) item = parse_data(p);
        else if (p->cur.type == JK_print) item = parse_print(p);
        else if (qn_jparse_advance(p)) item = parse_statement(p);
        if (!item) return NULL;
        qn_jparse_push(&items, item);
    }
    p->depth -= 2;
    n->a = items.first;
    return qn_jparse_raise(p, n, n->a) ? n : NULL;
}

qn_jnode *qn_jparse_template(qn_template *t, qn_err *e)
{
    qn_jparse p = { .t = t, .lex = { .t = t, .mode = JK_data }, .e = e };
    if (!qn_jlex_next(&p.lex, &p.cur, e)) return NULL;
    if (p.cur.type != JK_eof && !qn_jlex_next(&p.lex, &p.ahead, e)) return NULL;
    return parse_body(&p, NULL);
}
