/* shape.c - shapes to text and back, from one table of the sizes that each op has. */
#include "kernel/shape.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

typedef enum kind { KIND_int, KIND_bool, KIND_float, KIND_type, KIND_depth } kind;
typedef struct field { const char *name; size_t at; kind kind; int lo, dflt; } field;

#define FIELDS_MOST 12
#define SIZE_MOST (1 << 28)

#define I(op, member, name, dflt) { name, offsetof(qn_##op, member), KIND_int, 1, dflt }
#define I0(op, member, name) { name, offsetof(qn_##op, member), KIND_int, 0, 0 }
#define B(op, member, name) { name, offsetof(qn_##op, member), KIND_bool, 0, 0 }
#define R(op, member, name, dflt) { name, offsetof(qn_##op, member), KIND_float, 0, dflt }
#define T(op) { "type", offsetof(qn_##op, type), KIND_type, 0, 0 }
#define N(op) I(op, n, "n", 1)
#define VECTORS(op) [OP_##op] = { N(op), I(op, d, "d", 64) }
#define MATRIX(op) [OP_##op] = { T(op), N(op), I(op, rows, "rows", 64), I(op, cols, "cols", 256) }

/* The rows of a pass are called n, but m in matmul, where n is the other side as in BLAS. */
static const field fields[N_OPS][FIELDS_MOST] = {
    [OP_embed] = { T(embed), N(embed), I(embed, d, "d", 64) },
    VECTORS(rmsnorm), VECTORS(addnorm), VECTORS(swiglu), VECTORS(geglu), VECTORS(pick), VECTORS(quant), VECTORS(narrow),
    [OP_add] = { { "n", offsetof(qn_add_args, n), KIND_int, 1, 1 }, { "d", offsetof(qn_add_args, d), KIND_int, 1, 64 } },
    [OP_headnorm] = { N(headnorm), I(headnorm, n_head, "heads", 1), I(headnorm, d, "d", 64) },
    VECTORS(softmax), [OP_best] = { N(best), I(best, d, "d", 64), I(best, k, "k", 1) },
    MATRIX(linear), MATRIX(qlinear), MATRIX(blinear), MATRIX(plinear),
    [OP_rope] = { N(rope), I(rope, n_head, "heads", 1), I(rope, n_kv, "kv", 1), I(rope, d_head, "d", 64),
                  I(rope, d_rot, "rot", 64), B(rope, neox, "neox") },
    [OP_store] = { T(store), N(store), I(store, n_kv, "kv", 1), I(store, d_head, "d", 64) },
    [OP_attend] = { T(attend), N(attend), I(attend, n_head, "heads", 1), I(attend, n_kv, "kv", 1), I(attend, d_head, "d", 64),
                    I0(attend, window, "window"), { "depth", 0, KIND_depth, 0, 0 } },
    [OP_matmul] = { T(matmul), I(matmul, batch, "batch", 1), I(matmul, n, "m", 1), I(matmul, cols, "n", 64),
                    I(matmul, k, "k", 64), B(matmul, ta, "tA"), B(matmul, tb, "tB"), R(matmul, alpha, "alpha", 1),
                    R(matmul, beta, "beta", 0), B(matmul, biased, "bias") },
};

static int *int_at(qn_shape *s, const field *f) { return (int *)(void *)((u8 *)&s->args + f->at); }
static bool *bool_at(qn_shape *s, const field *f) { return (bool *)((u8 *)&s->args + f->at); }
static float *float_at(qn_shape *s, const field *f) { return (float *)(void *)((u8 *)&s->args + f->at); }
static qn_dtype *type_at(qn_shape *s, const field *f) { return (qn_dtype *)(void *)((u8 *)&s->args + f->at); }

static void copy_field(qn_shape *to, const qn_args *from, const field *f)
{
    static const size_t bytes[] = { sizeof(int), sizeof(bool), sizeof(float), sizeof(qn_dtype), 0 };
    memcpy((u8 *)&to->args + f->at, (const u8 *)from + f->at, bytes[f->kind]);
}

qn_shape qn_shape_of(qn_op op, const qn_args *args, int n, int depth)
{
    qn_shape s = { .op = op };
    memset(&s.args, 0, sizeof s.args); /* padding too: shapes are compared as bytes */
    for (const field *f = fields[op]; f->name; f++) {
        copy_field(&s, args, f);
        if (f->kind == KIND_depth) s.depth = depth;
    }
    s.args.n = n;
    return s;
}

void qn_shape_print(const qn_shape *s, bool with_op, char out[QN_SHAPE_TEXT])
{
    qn_shape copy = *s;
    size_t at = 0;
    out[0] = 0;
    if (with_op) at = (size_t)snprintf(out, QN_SHAPE_TEXT, "op=%s", qn_ops[s->op].name);
    for (const field *f = fields[s->op]; f->name && at < QN_SHAPE_TEXT; f++) {
        const bool rows = f->kind == KIND_int && f->at == 0;
        if (!with_op && (rows || f->kind == KIND_depth)) continue;
        const char *gap = at ? " " : "";
        char *p = out + at;
        const size_t room = QN_SHAPE_TEXT - at;
        int n = 0;
        switch (f->kind) {
        case KIND_int: n = snprintf(p, room, "%s%s=%d", gap, f->name, *int_at(&copy, f)); break;
        case KIND_bool: n = snprintf(p, room, "%s%s=%d", gap, f->name, *bool_at(&copy, f)); break;
        case KIND_float: n = snprintf(p, room, "%s%s=%g", gap, f->name, (double)*float_at(&copy, f)); break;
        case KIND_type: n = snprintf(p, room, "%s%s=%s", gap, f->name, qn_dtypes[*type_at(&copy, f)].token); break;
        case KIND_depth: n = snprintf(p, room, "%s%s=%d", gap, f->name, s->depth); break;
        }
        at += (size_t)n;
    }
}

/* ---- text to shape */

static bool set_field(qn_shape *s, const field *f, const char *value, qn_err *e)
{
    i64 v = 0;
    double d = 0;
    if (f->kind == KIND_type)
        return qn_dtype_from_name(value, type_at(s, f)) || qn_fail(e, QN_EUSAGE, "type=%.20s: there is no such type", value);
    if (f->kind == KIND_float) {
        if (!qn_parse_double(value, -1e30, 1e30, &d)) return qn_fail(e, QN_EUSAGE, "%s=%.20s: not a number", f->name, value);
        *float_at(s, f) = (float)d;
        return true;
    }
    const i64 most = f->kind == KIND_bool ? 1 : SIZE_MOST;
    if (!qn_parse_i64(value, f->lo, most, &v))
        return qn_fail(e, QN_EUSAGE, "%s=%.20s: not a whole number from %d to %lld", f->name, value, f->lo, (long long)most);
    if (f->kind == KIND_bool) *bool_at(s, f) = v != 0;
    else if (f->kind == KIND_depth) s->depth = (int)v;
    else *int_at(s, f) = (int)v;
    return true;
}

/* Reads the next word, name=value, of *text. False: there is none left, or it is too long or has no '='. */
static bool next_word(const char **text, char name[32], char value[32])
{
    const char *p = *text + strspn(*text, " |:\t\n");
    const size_t len = strcspn(p, " |:\t\n");
    const char *eq = memchr(p, '=', len);
    if (!eq || (size_t)(eq - p) >= 32 || len - (size_t)(eq - p) > 32) return false;
    *text = p + len;
    snprintf(name, 32, "%.*s", (int)(eq - p), p);
    snprintf(value, 32, "%.*s", (int)(p + len - eq - 1), eq + 1);
    return true;
}

static bool find_op(const char *value, qn_op *op)
{
    const size_t n = strcmp(value, "matmul_alpha_beta") && strcmp(value, "matmul_bias_add") ? strlen(value) : strlen("matmul");
    for (int i = 0; i < N_OPS; i++)
        if (strlen(qn_ops[i].name) == n && !memcmp(qn_ops[i].name, value, n)) return *op = (qn_op)i, true;
    return false;
}

static void set_defaults(qn_shape *s, const char *op_name)
{
    for (const field *f = fields[s->op]; f->name; f++) {
        if (f->kind == KIND_int) *int_at(s, f) = f->dflt;
        if (f->kind == KIND_float) *float_at(s, f) = (float)f->dflt;
    }
    if (!strcmp(op_name, "matmul_bias_add")) s->args.matmul.biased = true;
}

bool qn_shape_parse(const char *text, qn_shape *out, qn_err *e)
{
    char name[32], value[32];
    const char *rest = text;
    qn_op op = N_OPS;
    while (op == N_OPS && next_word(&rest, name, value)) {
        if (strcmp(name, "op")) continue;
        if (!find_op(value, &op)) return qn_fail(e, QN_EUSAGE, "op=%.31s: there is no such op", value);
        *out = (qn_shape){ .op = op };
        memset(&out->args, 0, sizeof out->args);
        set_defaults(out, value);
    }
    if (op == N_OPS) return qn_fail(e, QN_EUSAGE, "\"%.60s\" has no op=NAME", text);
    for (rest = text; next_word(&rest, name, value);) {
        if (!strcmp(name, "op")) continue;
        const field *f = fields[op];
        while (f->name && strcmp(f->name, name)) f++;
        if (!f->name) return qn_fail(e, QN_EUSAGE, "%s has no size called %.31s", qn_ops[op].name, name);
        if (!set_field(out, f, value, e)) return false;
    }
    rest += strspn(rest, " |:\t\n");
    if (*rest) return qn_fail(e, QN_EUSAGE, "\"%.40s\" is no NAME=VALUE", rest);
    return true;
}
