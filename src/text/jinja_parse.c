/* jinja_parse.c - expressions, by precedence climbing, into nodes. The grammar is jinja2's, its oddities included: filters
 * bind tighter than any operator, `is` takes one bare argument, `**` goes from left to right.
 * Depth is counted while parsing and height is kept in each node, so neither the parser nor the evaluator can be driven
 * deep into the stack. Statements are in jinja_stmt.c. */
#include "text/jinja.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 400 /* a bracket costs 2, a block 2 */

/* ---- what both parsers use */

bool qn_jparse_fail(qn_jparse *p, size_t pos, const char *fmt, ...)
{
    char what[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return qn_jfail_at(p->t, pos, QN_EFORMAT, p->e, what);
}

bool qn_jparse_advance(qn_jparse *p)
{
    p->cur = p->ahead;
    return p->cur.type == JK_eof || qn_jlex_next(&p->lex, &p->ahead, p->e);
}

bool qn_jparse_enter(qn_jparse *p, int by)
{
    p->depth += by;
    return p->depth <= MAX_DEPTH || qn_jparse_fail(p, p->cur.pos, "nested too deeply");
}

qn_jnode *qn_jparse_node(qn_jparse *p, qn_jkind kind, size_t pos)
{
    if (p->t->n_nodes++ >= QN_JNODES) {
        qn_jparse_fail(p, pos, "more than %d nodes in one template", QN_JNODES);
        return NULL;
    }
    qn_jnode *n = qn_arena_new(&p->t->mem, sizeof *n, p->e);
    if (!n) return NULL;
    n->kind = (u8)kind;
    n->height = 1;
    n->pos = (u32)pos;
    return n;
}

bool qn_jparse_raise(qn_jparse *p, qn_jnode *n, const qn_jnode *child)
{
    for (; child; child = child->next) {
        if (child->height >= QN_JHEIGHT) return qn_jparse_fail(p, n->pos, "nested too deeply");
        if (n->height <= child->height) n->height = (u16)(child->height + 1);
    }
    return true;
}

void qn_jparse_push(qn_jlist_of *l, qn_jnode *n)
{
    if (l->last) l->last->next = n;
    else l->first = n;
    l->last = n;
}

bool qn_jparse_is_op(const qn_jparse *p, u16 op) { return p->cur.type == JK_op && p->cur.op == op; }

static bool tok_is(const qn_jtok *t, const char *name)
{
    return t->type == JK_name && strlen(name) == t->n && memcmp(t->p, name, t->n) == 0;
}

bool qn_jparse_is_name(const qn_jparse *p, const char *name) { return tok_is(&p->cur, name); }

static const char *show(const qn_jtok *t, char out[80])
{
    static const char *const names[] = { [JK_eof] = "end of the template", [JK_data] = "text", [JK_print] = "'{{'",
        [JK_print_end] = "'}}'", [JK_block] = "'{%'", [JK_block_end] = "'%}'", [JK_string] = "a string" };
    if (t->type == JK_op && t->op < 256) snprintf(out, 80, "'%c'", (char)t->op);
    else if (t->type == JK_op) snprintf(out, 80, "'%c%c'", (char)(t->op >> 8), (char)(t->op & 255));
    else if (t->type == JK_name || t->type == JK_int || t->type == JK_float)
        snprintf(out, 80, "'%.*s'", (int)qn_minz(t->n, 60), t->p);
    else snprintf(out, 80, "%s", names[t->type]);
    return out;
}

bool qn_jparse_unexpected(qn_jparse *p, const char *wanted)
{
    char what[80];
    return qn_jparse_fail(p, p->cur.pos, "unexpected %s%s%s", show(&p->cur, what), wanted ? ", expected " : "",
                          wanted ? wanted : "");
}

bool qn_jparse_expect_op(qn_jparse *p, u16 op)
{
    char what[80];
    const qn_jtok want = { .type = JK_op, .op = op };
    return qn_jparse_is_op(p, op) ? qn_jparse_advance(p) : qn_jparse_unexpected(p, show(&want, what));
}

/* ---- primaries */

static qn_jnode *parse_list(qn_jparse *p)
{
    qn_jnode *n = qn_jparse_node(p, JN_list, p->cur.pos);
    qn_jlist_of items = { 0 };
    if (!n || !qn_jparse_advance(p)) return NULL;
    while (!qn_jparse_is_op(p, ']')) {
        if (items.last && !qn_jparse_expect_op(p, ',')) return NULL;
        if (qn_jparse_is_op(p, ']')) break;
        qn_jnode *item = qn_jparse_expr(p);
        if (!item) return NULL;
        qn_jparse_push(&items, item);
    }
    n->a = items.first;
    return qn_jparse_raise(p, n, n->a) && qn_jparse_advance(p) ? n : NULL;
}

static qn_jnode *parse_dict(qn_jparse *p)
{
    qn_jnode *n = qn_jparse_node(p, JN_dict, p->cur.pos);
    qn_jlist_of items = { 0 };
    if (!n || !qn_jparse_advance(p)) return NULL;
    while (!qn_jparse_is_op(p, '}')) {
        if (items.last && !qn_jparse_expect_op(p, ',')) return NULL;
        if (qn_jparse_is_op(p, '}')) break;
        qn_jnode *pair = qn_jparse_node(p, JN_pair, p->cur.pos);
        if (!pair || !(pair->a = qn_jparse_expr(p)) || !qn_jparse_expect_op(p, ':')) return NULL;
        if (!(pair->b = qn_jparse_expr(p))) return NULL;
        if (!qn_jparse_raise(p, pair, pair->a) || !qn_jparse_raise(p, pair, pair->b)) return NULL;
        qn_jparse_push(&items, pair);
    }
    n->a = items.first;
    return qn_jparse_raise(p, n, n->a) && qn_jparse_advance(p) ? n : NULL;
}

static qn_jnode *parse_name(qn_jparse *p)
{
    static const struct { const char *name; qn_jv v; } constants[] = {
        { "true", { .type = JT_bool, .b = true } }, { "True", { .type = JT_bool, .b = true } },
        { "false", { .type = JT_bool } }, { "False", { .type = JT_bool } },
        { "none", { .type = JT_none } }, { "None", { .type = JT_none } } };
    qn_jnode *n = qn_jparse_node(p, JN_name, p->cur.pos);
    if (!n) return NULL;
    for (size_t i = 0; i < QN_COUNT(constants); i++) {
        if (!qn_jparse_is_name(p, constants[i].name)) continue;
        n->kind = JN_const;
        n->value = constants[i].v;
        return qn_jparse_advance(p) ? n : NULL;
    }
    n->name = qn_jname_put(p->t, p->cur.p, p->cur.n, p->e);
    if (n->name == QN_NONE) return NULL;
    p->saw_loop |= n->name == p->t->name_loop;
    if (n->name == p->t->name_caller) p->saw |= QN_JSAW_CALLER;
    if (n->name == p->t->name_varargs) p->saw |= QN_JSAW_VARARGS;
    if (n->name == p->t->name_kwargs) p->saw |= QN_JSAW_KWARGS;
    return qn_jparse_advance(p) ? n : NULL;
}

qn_jnode *qn_jparse_primary(qn_jparse *p)
{
    switch (p->cur.type) {
    case JK_name: return parse_name(p);
    case JK_string: return qn_jparse_string(p);
    case JK_int:
    case JK_float: return qn_jparse_number(p);
    default: break;
    }
    if (qn_jparse_is_op(p, '[')) return parse_list(p);
    if (qn_jparse_is_op(p, '{')) return parse_dict(p);
    if (!qn_jparse_is_op(p, '(')) {
        qn_jparse_unexpected(p, NULL);
        return NULL;
    }
    if (!qn_jparse_advance(p)) return NULL;
    qn_jnode *n;
    if (qn_jparse_is_op(p, ')')) n = qn_jparse_node(p, JN_tuple, p->cur.pos);
    else n = qn_jparse_tuple(p, true);
    return n && qn_jparse_expect_op(p, ')') ? n : NULL;
}

/* ---- behind a primary: attributes, subscripts, calls, filters, tests */

static bool starts_expr(const qn_jparse *p)
{
    if (p->cur.type == JK_op)
        return p->cur.op == '(' || p->cur.op == '[' || p->cur.op == '{' || p->cur.op == '-' || p->cur.op == '+';
    return p->cur.type == JK_name || p->cur.type == JK_string || p->cur.type == JK_int || p->cur.type == JK_float;
}

/* One part of a subscript: an expression, or start:stop:step with any of them left out. */
static qn_jnode *parse_subscript(qn_jparse *p)
{
    qn_jnode *part[3] = { 0 };
    const size_t pos = p->cur.pos;
    int n_colons = 0;
    for (;;) {
        if (qn_jparse_is_op(p, ':') && n_colons < 2) {
            n_colons++;
            if (!qn_jparse_advance(p)) return NULL;
            continue;
        }
        if (qn_jparse_is_op(p, ']') || qn_jparse_is_op(p, ',') || part[n_colons]) break;
        if (!(part[n_colons] = qn_jparse_expr(p))) return NULL;
    }
    if (!n_colons && part[0]) return part[0];
    qn_jnode *n = n_colons ? qn_jparse_node(p, JN_slice, pos) : NULL;
    if (!n_colons) qn_jparse_unexpected(p, NULL);
    if (!n) return NULL;
    n->a = part[0];
    n->b = part[1];
    n->c = part[2];
    return qn_jparse_raise(p, n, n->a) && qn_jparse_raise(p, n, n->b) && qn_jparse_raise(p, n, n->c) ? n : NULL;
}

static qn_jnode *parse_item(qn_jparse *p, qn_jnode *of)
{
    qn_jnode *n = qn_jparse_node(p, JN_item, p->cur.pos);
    if (!n || !qn_jparse_advance(p)) return NULL;
    n->a = of;
    if (!(n->b = parse_subscript(p))) return NULL;
    if (qn_jparse_is_op(p, ',')) { /* a[1, 2]: the key is a tuple */
        qn_jnode *tuple = qn_jparse_node(p, JN_tuple, n->pos);
        qn_jlist_of items = { 0 };
        if (!tuple) return NULL;
        qn_jparse_push(&items, n->b);
        while (qn_jparse_is_op(p, ',')) {
            qn_jnode *more = qn_jparse_advance(p) ? parse_subscript(p) : NULL;
            if (!more) return NULL;
            qn_jparse_push(&items, more);
        }
        tuple->a = items.first;
        if (!qn_jparse_raise(p, tuple, tuple->a)) return NULL;
        n->b = tuple;
    }
    return qn_jparse_raise(p, n, of) && qn_jparse_raise(p, n, n->b) && qn_jparse_expect_op(p, ']') ? n : NULL;
}

static qn_jnode *parse_attr(qn_jparse *p, qn_jnode *of)
{
    qn_jnode *n = qn_jparse_node(p, JN_attr, p->cur.pos);
    if (!n || !qn_jparse_advance(p)) return NULL;
    n->a = of;
    if (p->cur.type == JK_int) { /* a.0 is a[0] */
        n->kind = JN_item;
        n->b = qn_jparse_number(p);
        return n->b && qn_jparse_raise(p, n, of) ? n : NULL;
    }
    if (p->cur.type != JK_name) {
        qn_jparse_unexpected(p, "a name");
        return NULL;
    }
    n->name = qn_jname_put(p->t, p->cur.p, p->cur.n, p->e);
    return n->name != QN_NONE && qn_jparse_raise(p, n, of) && qn_jparse_advance(p) ? n : NULL;
}

static qn_jnode *parse_arg(qn_jparse *p)
{
    const u16 op = p->cur.type == JK_op ? p->cur.op : 0;
    const bool keyword = p->cur.type == JK_name && p->ahead.type == JK_op && p->ahead.op == '=';
    if (op != '*' && op != QN_JOP2('*', '*') && !keyword) return qn_jparse_expr(p);
    qn_jnode *n = qn_jparse_node(p, keyword ? JN_kwarg : op == '*' ? JN_star : JN_starstar, p->cur.pos);
    if (!n) return NULL;
    if (keyword) {
        n->name = qn_jname_put(p->t, p->cur.p, p->cur.n, p->e);
        if (n->name == QN_NONE || !qn_jparse_advance(p)) return NULL;
    }
    if (!qn_jparse_advance(p) || !(n->a = qn_jparse_expr(p))) return NULL;
    return qn_jparse_raise(p, n, n->a) ? n : NULL;
}

/* ( ... ), with the parenthesis as the current token. */
bool qn_jparse_args(qn_jparse *p, qn_jlist_of *out)
{
    bool named = false;
    if (!qn_jparse_expect_op(p, '(')) return false;
    while (!qn_jparse_is_op(p, ')')) {
        if (out->last && !qn_jparse_expect_op(p, ',')) return false;
        if (out->last && qn_jparse_is_op(p, ')')) break;
        qn_jnode *arg = parse_arg(p);
        if (!arg) return false;
        const bool plain = arg->kind != JN_kwarg && arg->kind != JN_star && arg->kind != JN_starstar;
        if (plain && named) return qn_jparse_fail(p, arg->pos, "a positional argument behind a named one");
        named |= arg->kind == JN_kwarg || arg->kind == JN_starstar;
        qn_jparse_push(out, arg);
    }
    return qn_jparse_advance(p);
}

static qn_jnode *parse_call(qn_jparse *p, qn_jnode *f)
{
    qn_jnode *n = qn_jparse_node(p, JN_call, p->cur.pos);
    qn_jlist_of args = { 0 };
    if (!n || !qn_jparse_args(p, &args)) return NULL;
    n->a = f;
    n->b = args.first;
    return qn_jparse_raise(p, n, f) && qn_jparse_raise(p, n, n->b) ? n : NULL;
}

static bool parse_row_name(qn_jparse *p, qn_jnode *n, const char *what)
{
    if (p->cur.type != JK_name) return qn_jparse_unexpected(p, what);
    n->name = qn_jname_put(p->t, p->cur.p, p->cur.n, p->e);
    return n->name != QN_NONE && qn_jparse_advance(p);
}

/* An unknown filter or test is an error at once, or, inside a branch, when it is reached: as in jinja2. */
static bool known(qn_jparse *p, const qn_jnode *n, const char *what)
{
    const qn_jstr name = p->t->name_list[n->name];
    if (n->row || p->n_branches) return true;
    return qn_jparse_fail(p, n->pos, "no %s named '%.*s'", what, (int)qn_minz(name.n, 60), name.p);
}

/* | name, | name(args); start_inline: the name comes at once, without the bar. */
qn_jnode *qn_jparse_filters(qn_jparse *p, qn_jnode *of, bool start_inline)
{
    while (start_inline || qn_jparse_is_op(p, '|')) {
        if (!start_inline && !qn_jparse_advance(p)) return NULL;
        start_inline = false;
        qn_jnode *n = qn_jparse_node(p, JN_filter, p->cur.pos);
        qn_jlist_of args = { 0 };
        if (!n || !parse_row_name(p, n, "the name of a filter")) return NULL;
        if (qn_jparse_is_op(p, '(') && !qn_jparse_args(p, &args)) return NULL;
        n->a = of;
        n->b = args.first;
        n->row = qn_jfilter_find(p->t->name_list[n->name]);
        if (!known(p, n, "filter") || !qn_jparse_raise(p, n, of) || !qn_jparse_raise(p, n, n->b)) return NULL;
        of = n;
    }
    return of;
}

static bool test_takes_bare_arg(const qn_jparse *p)
{
    if (p->cur.type == JK_op && (p->cur.op == '-' || p->cur.op == '+')) return false;
    return starts_expr(p) && !qn_jparse_is_name(p, "else") && !qn_jparse_is_name(p, "or") && !qn_jparse_is_name(p, "and");
}

static qn_jnode *parse_test(qn_jparse *p, qn_jnode *of)
{
    qn_jnode *n = qn_jparse_node(p, JN_test, p->cur.pos);
    qn_jlist_of args = { 0 };
    if (!n || !qn_jparse_advance(p)) return NULL;
    n->flag = qn_jparse_is_name(p, "not");
    if (n->flag && !qn_jparse_advance(p)) return NULL;
    if (!parse_row_name(p, n, "the name of a test")) return NULL;
    if (qn_jparse_is_op(p, '(')) {
        if (!qn_jparse_args(p, &args)) return NULL;
    } else if (test_takes_bare_arg(p)) {
        if (qn_jparse_is_name(p, "is")) {
            qn_jparse_fail(p, p->cur.pos, "tests cannot be chained with is");
            return NULL;
        }
        qn_jnode *arg = qn_jparse_primary(p);
        arg = arg ? qn_jparse_postfix(p, arg, false) : NULL;
        if (!arg) return NULL;
        qn_jparse_push(&args, arg);
    }
    n->a = of;
    n->b = args.first;
    n->row = qn_jrow_find(qn_jtests, p->t->name_list[n->name]);
    return known(p, n, "test") && qn_jparse_raise(p, n, of) && qn_jparse_raise(p, n, n->b) ? n : NULL;
}

/* .name [item] (call), and with filters also | and is. */
qn_jnode *qn_jparse_postfix(qn_jparse *p, qn_jnode *n, bool filters)
{
    bool plain = true; /* before the first filter or test; behind one only calls may follow, as in jinja2 */
    while (n) {
        if (plain && qn_jparse_is_op(p, '.')) n = parse_attr(p, n);
        else if (plain && qn_jparse_is_op(p, '[')) n = parse_item(p, n);
        else if (qn_jparse_is_op(p, '(')) n = parse_call(p, n);
        else if (filters && qn_jparse_is_op(p, '|')) n = qn_jparse_filters(p, n, false), plain = false;
        else if (filters && qn_jparse_is_name(p, "is")) n = parse_test(p, n), plain = false;
        else break;
    }
    return n;
}

/* ---- operators */

static qn_jnode *parse_unary(qn_jparse *p, bool filters)
{
    qn_jnode *n;
    if (!qn_jparse_enter(p, 1)) return NULL;
    if (qn_jparse_is_op(p, '-') || qn_jparse_is_op(p, '+')) {
        n = qn_jparse_node(p, qn_jparse_is_op(p, '-') ? JN_neg : JN_pos, p->cur.pos);
        if (!n || !qn_jparse_advance(p) || !(n->a = parse_unary(p, false)) || !qn_jparse_raise(p, n, n->a)) return NULL;
    } else {
        n = qn_jparse_primary(p);
    }
    n = n ? qn_jparse_postfix(p, n, filters) : NULL;
    p->depth--;
    return n;
}

enum { L_or = 1, L_and, L_not, L_compare, L_add, L_concat, L_mul, L_pow, L_unary };

static int level_of(const qn_jparse *p)
{
    if (p->cur.type == JK_name) {
        if (qn_jparse_is_name(p, "or")) return L_or;
        if (qn_jparse_is_name(p, "and")) return L_and;
        if (qn_jparse_is_name(p, "in") || (qn_jparse_is_name(p, "not") && tok_is(&p->ahead, "in"))) return L_compare;
        return 0;
    }
    if (p->cur.type != JK_op) return 0;
    switch (p->cur.op) {
    case '<': case '>': case QN_JOP2('=', '='): case QN_JOP2('!', '='): case QN_JOP2('<', '='): case QN_JOP2('>', '='):
        return L_compare;
    case '+': case '-': return L_add;
    case '~': return L_concat;
    case '*': case '/': case '%': case QN_JOP2('/', '/'): return L_mul;
    case QN_JOP2('*', '*'): return L_pow;
    default: return 0;
    }
}

static qn_jnode *parse_level(qn_jparse *p, int least);

/* a < b <= c: node a, then a list of operands with their operators. */
static qn_jnode *parse_compare(qn_jparse *p, qn_jnode *left)
{
    qn_jnode *n = qn_jparse_node(p, JN_compare, p->cur.pos);
    qn_jlist_of rest = { 0 };
    if (!n) return NULL;
    while (level_of(p) == L_compare) {
        qn_jnode *o = qn_jparse_node(p, JN_operand, p->cur.pos);
        if (!o) return NULL;
        o->op = p->cur.op;
        if (p->cur.type == JK_name) {
            const bool negated = qn_jparse_is_name(p, "not");
            o->op = negated ? QN_JOP2('!', 'i') : 'i';
            if (negated && !qn_jparse_advance(p)) return NULL;
        }
        if (!qn_jparse_advance(p) || !(o->a = parse_level(p, L_add)) || !qn_jparse_raise(p, o, o->a)) return NULL;
        qn_jparse_push(&rest, o);
    }
    n->a = left;
    n->b = rest.first;
    return qn_jparse_raise(p, n, left) && qn_jparse_raise(p, n, n->b) ? n : NULL;
}

static qn_jnode *parse_concat(qn_jparse *p, qn_jnode *left)
{
    qn_jnode *n = qn_jparse_node(p, JN_concat, p->cur.pos);
    qn_jlist_of parts = { 0 };
    if (!n) return NULL;
    qn_jparse_push(&parts, left);
    while (qn_jparse_is_op(p, '~')) {
        qn_jnode *more = qn_jparse_advance(p) ? parse_level(p, L_mul) : NULL;
        if (!more) return NULL;
        qn_jparse_push(&parts, more);
    }
    n->a = parts.first;
    return qn_jparse_raise(p, n, n->a) ? n : NULL;
}

static qn_jnode *parse_binary(qn_jparse *p, qn_jnode *left, int level)
{
    qn_jnode *n = qn_jparse_node(p, level == L_or ? JN_or : level == L_and ? JN_and : JN_binary, p->cur.pos);
    if (!n) return NULL;
    n->op = p->cur.op;
    n->a = left;
    if (!qn_jparse_advance(p) || !(n->b = parse_level(p, level + 1))) return NULL;
    return qn_jparse_raise(p, n, left) && qn_jparse_raise(p, n, n->b) ? n : NULL;
}

static qn_jnode *parse_level(qn_jparse *p, int least)
{
    qn_jnode *n;
    if (least >= L_unary) return parse_unary(p, true);
    if (!qn_jparse_enter(p, 1)) return NULL;
    if (least <= L_not && qn_jparse_is_name(p, "not")) {
        n = qn_jparse_node(p, JN_not, p->cur.pos);
        if (!n || !qn_jparse_advance(p) || !(n->a = parse_level(p, L_not)) || !qn_jparse_raise(p, n, n->a)) return NULL;
    } else {
        n = parse_unary(p, true);
    }
    for (int level; n && (level = level_of(p)) >= least && level;) {
        if (level == L_compare) n = parse_compare(p, n);
        else if (level == L_concat) n = parse_concat(p, n);
        else n = parse_binary(p, n, level);
    }
    p->depth--;
    return n;
}

qn_jnode *qn_jparse_or(qn_jparse *p) { return parse_level(p, L_or); }

/* a if b else c; the else may be missing. */
qn_jnode *qn_jparse_expr(qn_jparse *p)
{
    qn_jnode *n = parse_level(p, L_or);
    while (n && qn_jparse_is_name(p, "if")) {
        qn_jnode *cond = qn_jparse_node(p, JN_cond, p->cur.pos);
        if (!cond || !qn_jparse_advance(p) || !(cond->a = parse_level(p, L_or))) return NULL;
        cond->b = n;
        if (qn_jparse_is_name(p, "else")) {
            if (!qn_jparse_enter(p, 1) || !qn_jparse_advance(p) || !(cond->c = qn_jparse_expr(p))) return NULL;
            p->depth--;
        }
        if (!qn_jparse_raise(p, cond, cond->a) || !qn_jparse_raise(p, cond, cond->b) ||
            !qn_jparse_raise(p, cond, cond->c))
            return NULL;
        n = cond;
    }
    return n;
}

qn_jnode *qn_jparse_commas(qn_jparse *p, qn_jnode *(*parse)(qn_jparse *p, bool how), bool how, bool (*more)(const qn_jparse *p))
{
    const size_t pos = p->cur.pos;
    qn_jnode *first = parse(p, how);
    if (!first || !qn_jparse_is_op(p, ',')) return first;
    qn_jnode *n = qn_jparse_node(p, JN_tuple, pos);
    qn_jlist_of items = { 0 };
    if (!n) return NULL;
    qn_jparse_push(&items, first);
    while (qn_jparse_is_op(p, ',')) {
        if (!qn_jparse_advance(p)) return NULL;
        if (!more(p) || qn_jparse_is_name(p, "in")) break;
        qn_jnode *item = parse(p, how);
        if (!item) return NULL;
        qn_jparse_push(&items, item);
    }
    n->a = items.first;
    return qn_jparse_raise(p, n, n->a) ? n : NULL;
}

static qn_jnode *parse_one(qn_jparse *p, bool with_cond) { return with_cond ? qn_jparse_expr(p) : qn_jparse_or(p); }

qn_jnode *qn_jparse_tuple(qn_jparse *p, bool with_cond) { return qn_jparse_commas(p, parse_one, with_cond, starts_expr); }
