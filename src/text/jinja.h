/* jinja.h - what the files jinja_*.c share: values, nodes, and the state of a rendering. Nobody else includes it; the
 * interface is template.h.
 *
 * Everything that a rendering makes lives in one arena with a budget and dies with it, so no value is ever freed alone and
 * no failure path has anything to undo. Values are immutable (but for namespaces), so they are shared freely.
 * A function that can fail returns false after qn_jx_fail; the error carries the place of the node that was running. */
#ifndef QN_JINJA_H
#define QN_JINJA_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/table.h"
#include "text/template.h"

/* ---- values ------------------------------------------------------------------------------------------------------- */

typedef enum qn_jtype {
    JT_missing,                                     /* an argument that was not given; never seen by a template */
    JT_undef, JT_none, JT_bool, JT_int, JT_float,
    JT_big,                                         /* an integer past 64 bits: its digits, to be printed again */
    JT_str, JT_list, JT_tuple,
    JT_gen,                                         /* what Python returns as a generator: iterable once, no length */
    JT_view,                                        /* dict.keys() and its kin: iterable, has a length, no index */
    JT_range, JT_dict, JT_ns, JT_func, JT_method, JT_macro, JT_loop
} qn_jtype;

/* Text and where it came from: marks has a 1 for each byte from a marked variable; NULL means none is marked. */
typedef struct qn_jstr { const char *p; const u8 *marks; size_t n; } qn_jstr;

typedef struct qn_jv {
    u8 type;
    bool marked; /* a number, bool, none or container that came out of a marked variable: what it prints is marked */
    u8 sub;      /* JT_undef: 1 = made by the sandbox, which calls it a security matter; JT_view: which */
    union {
        bool b;
        i64 i;
        double f;
        const qn_jstr *s;              /* JT_str, JT_big; JT_undef: the message, or NULL */
        struct qn_jlist *l;            /* JT_list, JT_tuple, JT_gen, JT_view */
        struct qn_jdict *d;            /* JT_dict, JT_ns */
        const struct qn_jrange *r;
        const struct qn_jrow *row;     /* JT_func */
        const struct qn_jmethod *m;
        const struct qn_jmacro *macro;
        struct qn_jloop *loop;
    };
} qn_jv;

typedef struct qn_jlist {
    qn_jv *at;
    size_t n;
    bool used;  /* JT_gen: was iterated, is empty now */
    bool group; /* a tuple of groupby: has .grouper and .list */
} qn_jlist;
typedef struct qn_jdict { qn_jv *keys, *vals; size_t n, cap; } qn_jdict;
typedef struct qn_jrange { i64 start, stop, step; size_t n; } qn_jrange;
typedef struct qn_jmethod { qn_jv self; const struct qn_jrow *row; } qn_jmethod;

typedef struct qn_jkw { qn_jstr name; qn_jv v; } qn_jkw;
typedef struct qn_jargs { const qn_jv *pos; size_t n; const qn_jkw *kw; size_t n_kw; } qn_jargs;

typedef struct qn_jx qn_jx;

/* A function of the language: filter, test, method or global. a: the arguments bound to the names of the row, JT_missing
 * where none was given; with a '/' at the end of the names none of them can be given by name. A row without names gets
 * them raw and a is NULL. self is what the filter or method applies to. */
typedef bool (*qn_jfn)(qn_jx *x, qn_jv self, const qn_jargs *raw, const qn_jv *a, qn_jv *out);
typedef struct qn_jrow { const char *name; qn_jfn fn; const char *params; int required; } qn_jrow;
#define QN_JARGS 6 /* the most that a row names */

extern const qn_jrow qn_jfilters_text[], qn_jfilters_list[], qn_jtests[], qn_jglobals[]; /* end with a NULL name */
extern const qn_jrow qn_jmethods_str[], qn_jmethods_dict[], qn_jmethods_list[], qn_jmethods_loop[];
const qn_jrow *qn_jrow_find(const qn_jrow *rows, qn_jstr name);
const qn_jrow *qn_jfilter_find(qn_jstr name);

/* ---- nodes -------------------------------------------------------------------------------------------------------- */

typedef enum qn_jkind {
    JN_const, JN_name, JN_list, JN_tuple, JN_dict, JN_pair, JN_attr, JN_item, JN_slice, JN_call, JN_kwarg, JN_star,
    JN_starstar, JN_filter, JN_test, JN_not, JN_neg, JN_pos, JN_and, JN_or, JN_binary, JN_compare, JN_operand, JN_concat,
    JN_cond,
    JN_captured, /* what a block captured, as the input of its filters */
    JN_body, JN_data, JN_print, JN_for, JN_if, JN_branch, JN_set, JN_setblock, JN_macro, JN_param, JN_callblock,
    JN_filterblock, JN_with, JN_break, JN_continue
} qn_jkind;

/* Which child is which, for each kind, stands beside its case in jinja_eval.c and jinja_exec.c; lists hang on next. */
typedef struct qn_jnode {
    u8 kind;
    bool flag;   /* JN_for: recursive; JN_test: negated */
    u16 height;  /* of the tree below */
    u16 op;      /* an operator: its character, or two of them as QN_JOP2; JN_macro: QN_JSAW_* */
    bool loops;  /* JN_for: its body mentions `loop` */
    u32 pos;     /* byte in the source */
    u32 name;    /* interned */
    qn_jv value;
    const qn_jrow *row;
    struct qn_jnode *a, *b, *c, *d, *next;
} qn_jnode;

#define QN_JOP2(a, b) ((u16)((u16)(a) << 8 | (u16)(b)))
#define QN_JHEIGHT 200
#define QN_JNODES 100000

struct qn_template {
    char *name;
    qn_arena mem;
    const char *src; /* lines end in \n, the last newline is gone, as jinja2 has it */
    size_t n;
    qn_table names;  /* text -> index in name_list */
    qn_jstr *name_list;
    u32 n_names, cap_names;
    u32 n_nodes;
    u32 name_loop, name_caller, name_varargs, name_kwargs;
    qn_jnode *root;
};

/* Interns; QN_NONE: no memory. */
u32 qn_jname_put(qn_template *t, const char *p, size_t n, qn_err *e);
/* Sets e with the place of byte pos. */
bool qn_jfail_at(const qn_template *t, size_t pos, int code, qn_err *e, const char *what);
qn_jnode *qn_jparse_template(qn_template *t, qn_err *e);

/* ---- tokens ------------------------------------------------------------------------------------------------------- */

typedef enum qn_jtoken { JK_eof, JK_data, JK_print, JK_print_end, JK_block, JK_block_end, JK_name, JK_string, JK_int,
                         JK_float, JK_op } qn_jtoken;
typedef struct qn_jtok { u8 type; u16 op; size_t pos; const char *p; size_t n; } qn_jtok;

typedef struct qn_jlex {
    const qn_template *t;
    size_t at;
    u8 mode;        /* JK_data, JK_print or JK_block: what we are in */
    int n_open;
    char open[256]; /* brackets that wait for their partner */
} qn_jlex;
bool qn_jlex_next(qn_jlex *l, qn_jtok *out, qn_err *e);
/* The parser: statements call expressions. */
typedef struct qn_jparse {
    qn_template *t;
    qn_jlex lex;
    qn_jtok cur, ahead;
    int depth, n_loops, n_branches;
    bool saw_loop;
    u16 saw; /* QN_JSAW_*: special names met in this macro */
    qn_err *e;
} qn_jparse;
enum { QN_JSAW_CALLER = 1, QN_JSAW_VARARGS = 2, QN_JSAW_KWARGS = 4 };
typedef struct qn_jlist_of { qn_jnode *first, *last; } qn_jlist_of; /* nodes as they come */

bool qn_jparse_fail(qn_jparse *p, size_t pos, const char *fmt, ...) QN_PRINTF(3, 4);
bool qn_jparse_advance(qn_jparse *p);
bool qn_jparse_enter(qn_jparse *p, int by);
qn_jnode *qn_jparse_node(qn_jparse *p, qn_jkind kind, size_t pos);
/* Makes n at least one higher than child and what hangs on its next. */
bool qn_jparse_raise(qn_jparse *p, qn_jnode *n, const qn_jnode *child);
void qn_jparse_push(qn_jlist_of *l, qn_jnode *n);
bool qn_jparse_is_op(const qn_jparse *p, u16 op);
bool qn_jparse_is_name(const qn_jparse *p, const char *name);
bool qn_jparse_expect_op(qn_jparse *p, u16 op);
qn_jnode *qn_jparse_expr(qn_jparse *p);                          /* with inline if */
qn_jnode *qn_jparse_or(qn_jparse *p);                            /* without it */
/* What parse makes, or where commas follow a tuple of them; more: does another begin behind the comma? */
qn_jnode *qn_jparse_commas(qn_jparse *p, qn_jnode *(*parse)(qn_jparse *p, bool how), bool how, bool (*more)(const qn_jparse *p));
qn_jnode *qn_jparse_tuple(qn_jparse *p, bool with_cond);         /* an expression, or several with commas */
qn_jnode *qn_jparse_primary(qn_jparse *p);
qn_jnode *qn_jparse_string(qn_jparse *p);
qn_jnode *qn_jparse_number(qn_jparse *p);
bool qn_jparse_unexpected(qn_jparse *p, const char *wanted);      /* fails at the current token */
qn_jnode *qn_jparse_postfix(qn_jparse *p, qn_jnode *n, bool filters);
bool qn_jparse_args(qn_jparse *p, qn_jlist_of *out);
qn_jnode *qn_jparse_filters(qn_jparse *p, qn_jnode *n, bool start_inline);

/* ---- a rendering -------------------------------------------------------------------------------------------------- */

/* Text that grows in the arena of a rendering. */
typedef struct qn_jbuild { char *p; u8 *marks; size_t n, cap; bool any; } qn_jbuild;

typedef struct qn_jvar { u32 name; qn_jv v; } qn_jvar;
typedef struct qn_jframe { struct qn_jframe *up; qn_jvar *vars; u32 n, cap; } qn_jframe;
typedef struct qn_jmacro { const qn_jnode *node; qn_jframe *frame; bool is_caller; } qn_jmacro;
typedef struct qn_jloop {
    const qn_jnode *node;
    qn_jlist *items;
    size_t i;
    i64 depth;
    qn_jv last_changed;
    bool has_changed;
} qn_jloop;

struct qn_jx {
    const qn_template *t;
    qn_arena mem;
    size_t bytes;
    u64 steps;
    int depth, calls;
    qn_jframe *frame;
    qn_jbuild *out;
    qn_jbuild cat;      /* the last long concatenation: appending to it again extends it in place */
    const qn_jnode *at; /* what runs */
    qn_jv captured;     /* for JN_captured */
    u8 jump;            /* JN_break or JN_continue on its way to its loop */
    i64 now;
    qn_err *e;
};

bool qn_jx_fail(qn_jx *x, const char *fmt, ...) QN_PRINTF(2, 3);
bool qn_jx_step(qn_jx *x, size_t n);
void *qn_jx_new(qn_jx *x, size_t bytes);
bool qn_jx_enter(qn_jx *x);
void qn_jx_leave(qn_jx *x);
bool qn_jx_eval(qn_jx *x, const qn_jnode *n, qn_jv *out);
bool qn_jx_exec(qn_jx *x, const qn_jnode *n);
/* A JN_call, with one more named argument if extra is not NULL. */
bool qn_jx_eval_call(qn_jx *x, const qn_jnode *n, const qn_jkw *extra, qn_jv *out);
/* Calls anything callable. */
bool qn_jx_call(qn_jx *x, qn_jv f, const qn_jargs *args, qn_jv *out);
bool qn_jx_call_row(qn_jx *x, const qn_jrow *row, qn_jv self, const qn_jargs *args, qn_jv *out);
bool qn_jx_call_macro(qn_jx *x, const qn_jmacro *m, const qn_jargs *args, qn_jv *out);
bool qn_jx_run_loop(qn_jx *x, const qn_jnode *n, qn_jv iter, i64 depth);
bool qn_jx_attr(qn_jx *x, qn_jv v, qn_jstr name, qn_jv *out);  /* v.name */
bool qn_jx_item(qn_jx *x, qn_jv v, qn_jv key, qn_jv *out);     /* v[key] */
bool qn_jx_slice(qn_jx *x, qn_jv v, const qn_jv part[3], qn_jv *out);
bool qn_jx_attr_only(qn_jx *x, qn_jv v, qn_jstr name, qn_jv *out); /* never an item */
bool qn_jx_path(qn_jx *x, qn_jv v, qn_jv path, qn_jv instead, qn_jv *out); /* "a.b.0", as filters take attributes */
bool qn_jx_binary(qn_jx *x, u16 op, qn_jv a, qn_jv b, qn_jv *out);
bool qn_jx_compare(qn_jx *x, u16 op, qn_jv a, qn_jv b, bool *out);
bool qn_jx_concat(qn_jx *x, qn_jstr a, qn_jstr b, qn_jv *out);
qn_jv *qn_jx_lookup(qn_jx *x, u32 name);
bool qn_jx_assign(qn_jx *x, u32 name, qn_jv v);

/* ---- making and reading values ------------------------------------------------------------------------------------- */

#define QN_JLIT(s) ((qn_jstr){ s, NULL, sizeof(s) - 1 })
static inline qn_jv qn_jv_none(void) { return (qn_jv){ .type = JT_none }; }
static inline qn_jv qn_jv_bool(bool b) { return (qn_jv){ .type = JT_bool, .b = b }; }
static inline qn_jv qn_jv_int(i64 i) { return (qn_jv){ .type = JT_int, .i = i }; }
static inline qn_jv qn_jv_float(double f) { return (qn_jv){ .type = JT_float, .f = f }; }
static inline bool qn_jv_given(qn_jv v) { return v.type != JT_missing; }
static inline bool qn_jv_is_undef(qn_jv v) { return v.type == JT_undef || v.type == JT_missing; }
static inline bool qn_jv_is_seq(qn_jv v) { return v.type == JT_list || v.type == JT_tuple; }

const char *qn_jv_type_name(qn_jv v);
bool qn_jv_undef(qn_jx *x, qn_jv *out, const char *fmt, ...) QN_PRINTF(3, 4);
bool qn_jv_str(qn_jx *x, qn_jstr s, qn_jv *out);           /* borrows the bytes: they must live as long as the rendering */
bool qn_jv_list(qn_jx *x, qn_jtype type, size_t n, qn_jv *out); /* n places to fill */
bool qn_jv_dict(qn_jx *x, qn_jtype type, size_t cap, qn_jv *out);
bool qn_jv_truth(qn_jv v);
bool qn_jv_equal(qn_jx *x, qn_jv a, qn_jv b, bool *out);
bool qn_jv_order(qn_jx *x, qn_jv a, qn_jv b, int *out);    /* <0, 0, >0; fails for what Python cannot order */
bool qn_jv_contains(qn_jx *x, qn_jv box, qn_jv v, bool *out);
bool qn_jv_length(qn_jx *x, qn_jv v, size_t *out);
bool qn_jv_items(qn_jx *x, qn_jv v, qn_jlist **out);       /* what iterating v gives */
bool qn_jv_number(qn_jv v, double *out);                   /* int, float, bool */
bool qn_jv_integer(qn_jv v, i64 *out);                     /* int, bool */
bool qn_jdict_get(qn_jx *x, const qn_jdict *d, qn_jv key, qn_jv **out); /* *out NULL: not there */
bool qn_jdict_put(qn_jx *x, qn_jdict *d, qn_jv key, qn_jv v);
bool qn_jv_hashable(qn_jx *x, qn_jv key);
bool qn_jv_from_json(qn_jx *x, const qn_template_var *var, qn_jv *out);

/* Printing as Python's str() and repr(), and json.dumps. */
bool qn_jv_text(qn_jx *x, qn_jv v, qn_jstr *out);
bool qn_jv_print(qn_jx *x, qn_jbuild *b, qn_jv v);
bool qn_jv_repr(qn_jx *x, qn_jbuild *b, qn_jv v);
typedef struct qn_jjson { bool ascii, sort, pretty; qn_jstr indent, comma, colon; } qn_jjson;
bool qn_jv_json(qn_jx *x, qn_jbuild *b, qn_jv v, const qn_jjson *how);
int qn_jfloat_text(double f, char out[40]);                /* Python's repr of a float */

/* ---- text --------------------------------------------------------------------------------------------------------- */

bool qn_jbuild_put(qn_jx *x, qn_jbuild *b, qn_jstr s);
bool qn_jbuild_bytes(qn_jx *x, qn_jbuild *b, const char *p, size_t n, bool marked);
bool qn_jbuild_value(qn_jx *x, const qn_jbuild *b, qn_jv *out);
qn_jstr qn_jbuild_str(const qn_jbuild *b);

qn_jstr qn_jstr_part(qn_jstr s, size_t from, size_t to);
bool qn_jstr_marked(qn_jstr s); /* any byte */
bool qn_jstr_is(qn_jstr s, const char *lit);
size_t qn_jstr_find(qn_jstr s, qn_jstr what, size_t from);  /* (size_t)-1: nowhere */
bool qn_jstr_rfind(qn_jx *x, qn_jstr s, qn_jstr what, size_t end, size_t *out);
size_t qn_jstr_chars(qn_jstr s);
size_t qn_jstr_offset(qn_jstr s, size_t chars);             /* the byte where character number `chars` begins */
size_t qn_jchar(const char *p, size_t n, u32 *cp);          /* length >= 1; a broken byte counts as one character */
size_t qn_jchar_before(const char *p, size_t n, u32 *cp);   /* of the last character of p[0..n) */
bool qn_jchar_space(u32 cp);
bool qn_jchar_line(u32 cp);                                 /* ends a line for splitlines */
enum { QN_JSTRIP_LEFT = 1, QN_JSTRIP_RIGHT = 2 };
qn_jstr qn_jstr_strip(qn_jstr s, const qn_jstr *chars, int sides);
typedef enum qn_jcase { JC_upper, JC_lower, JC_title, JC_capitalize, JC_swap, JC_words } qn_jcase;
bool qn_jstr_case(qn_jx *x, qn_jstr s, qn_jcase how, qn_jv *out);
bool qn_jstr_replace(qn_jx *x, qn_jstr s, qn_jstr old, qn_jstr with, i64 most, qn_jv *out);
bool qn_jstr_lines(qn_jx *x, qn_jstr s, bool keep_ends, qn_jv *out);
bool qn_jstr_split(qn_jx *x, qn_jstr s, const qn_jstr *sep, i64 most, bool from_right, qn_jv *out);
bool qn_jformat_percent(qn_jx *x, qn_jstr fmt, qn_jv args, qn_jv *out);
bool qn_jformat_braces(qn_jx *x, qn_jstr fmt, const qn_jargs *args, qn_jv *out);
bool qn_jtime_text(qn_jx *x, qn_jstr fmt, qn_jv *out);

#endif
