/* tuned.c - the winners file in and out, and the look-up. */
#include "kernel/tuned.h"

#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "kernel/plan.h"

#define FILE_MOST ((size_t)8 << 20)

static const char *const buckets[N_BUCKETS] = { "1", "2-8", "9+" };
#define APART "apart" /* in a kernel's place; then for any number of rows: */
#define ALL_ROWS "all"

static const char *rows_of(const qn_tuned_row *r) { return r->bucket < 0 ? ALL_ROWS : buckets[r->bucket]; }
static const char *name_of(const qn_tuned_row *r) { return r->kernel ? r->kernel->name : APART; }

static int find_op(const char *name, size_t n)
{
    for (int i = 0; i < N_OPS; i++)
        if (strlen(qn_ops[i].name) == n && !memcmp(qn_ops[i].name, name, n)) return i;
    return -1;
}

static const qn_kernel *find_kernel(const char *name)
{
    for (int i = 0; i < qn_n_kernels; i++)
        if (!strcmp(qn_kernels[i].name, name)) return &qn_kernels[i];
    return NULL;
}

bool qn_tuned_add(qn_tuned *t, const qn_tuned_row *row, qn_err *e)
{
    if (t->n == t->cap) {
        const size_t cap = t->cap ? 2 * t->cap : 64;
        qn_tuned_row *at = qn_resize(t->at, cap * sizeof *at, e);
        if (!at) return false;
        t->at = at;
        t->cap = cap;
    }
    qn_tuned_row *r = &t->at[t->n];
    *r = *row;
    if (row->shape) r->shape = qn_arena_strndup(&t->arena, row->shape, strlen(row->shape), e);
    if (row->date) r->date = qn_arena_strndup(&t->arena, row->date, qn_minz(strlen(row->date), 10), e);
    if (row->cpu) r->cpu = qn_arena_strndup(&t->arena, row->cpu, strlen(row->cpu), e);
    if ((row->shape && !r->shape) || (row->date && !r->date) || (row->cpu && !r->cpu)) return false;
    t->n++;
    return true;
}

/* ---- in */

static const char *text_of(yyjson_val *o, const char *name)
{
    const char *s = yyjson_get_str(yyjson_obj_get(o, name));
    return s ? s : "";
}

static bool for_here(yyjson_val *o, int threads)
{
    return !strcmp(text_of(o, "cpu"), qn_cpu_name()) && yyjson_get_int(yyjson_obj_get(o, "threads")) == threads;
}

static int bucket_of(const char *rows)
{
    for (int b = 0; b < N_BUCKETS; b++)
        if (!strcmp(rows, buckets[b])) return b;
    return -1;
}

/* What a row is about: a kernel of an op for a bucket, or a fused op that is left apart. False: neither is known here. */
static bool place(qn_tuned_row *r, const char *op, const char *rows, const char *kernel)
{
    const int of = find_op(op, strlen(op));
    r->bucket = bucket_of(rows);
    r->kernel = find_kernel(kernel);
    if (of < 0 || (r->kernel && ((int)r->kernel->op != of || !qn_cpu_runs(r->kernel->isa)))) return false;
    r->op = (qn_op)of;
    return r->kernel ? r->bucket >= 0 : !strcmp(kernel, APART) && !strcmp(rows, ALL_ROWS);
}

static bool take_line(qn_tuned *t, yyjson_val *o, int threads, qn_err *e)
{
    qn_tuned_row row = { .shape = text_of(o, "shape"), .over_parts = yyjson_get_num(yyjson_obj_get(o, "over_parts")),
                               .lanes = (int)yyjson_get_int(yyjson_obj_get(o, "lanes")),
                               .gain = yyjson_get_num(yyjson_obj_get(o, "gain")),
                               .error = yyjson_get_num(yyjson_obj_get(o, "error")), .date = text_of(o, "date") };
    if (place(&row, text_of(o, "op"), text_of(o, "rows"), text_of(o, "kernel")) && for_here(o, threads))
        return qn_tuned_add(t, &row, e);
    t->passed_over++;
    return true;
}

bool qn_tuned_read(qn_tuned *t, const char *path, int threads, qn_err *e)
{
    char *text = NULL;
    size_t n = 0;
    if (!qn_is_file(path)) return true;
    if (!qn_file_read(path, FILE_MOST, &text, &n, e)) return false;
    bool ok = true;
    for (const char *p = text; ok && p < text + n;) {
        const char *end = memchr(p, '\n', (size_t)(text + n - p));
        const size_t len = end ? (size_t)(end - p) : (size_t)(text + n - p);
        qn_err bad = { 0 };
        yyjson_doc *doc = len ? qn_json_parse(p, len, 0, path, &bad) : NULL;
        if (doc) ok = take_line(t, yyjson_doc_get_root(doc), threads, e);
        else if (bad.code == QN_ENOMEM) ok = qn_fail(e, QN_ENOMEM, "%s", bad.msg);
        else if (len) t->passed_over++;
        yyjson_doc_free(doc);
        p += len + 1;
    }
    qn_free(text);
    return ok;
}

/* ---- the table */

typedef struct winner {
    const char *cpu, *isa;
    int threads;
    const char *op, *shape, *rows, *kernel;
    int lanes;
    double gain, error;
    const char *date;
} winner;

static const winner winners[] = {
#define WINNER(...) { __VA_ARGS__ },
#include "kernel/winners.def"
#undef WINNER
    { 0 },
};

bool qn_tuned_add_table(qn_tuned *t, int threads, qn_err *e)
{
    for (const winner *w = winners; w->cpu; w++) {
        qn_tuned_row row = { .shape = w->shape, .lanes = w->lanes, .gain = w->gain, .error = w->error, .date = w->date,
                             .cpu = w->cpu };
        if (w->threads != threads || strcmp(w->isa, qn_isa_name(qn_cpu_isa()))) continue;
        if (!place(&row, w->op, w->rows, w->kernel)) continue;
        if (!qn_tuned_add(t, &row, e)) return false;
    }
    return true;
}

static void print_winner(qn_buf *b, const winner *w)
{
    qn_buf_puts(b, "WINNER(");
    qn_buf_json(b, w->cpu, strlen(w->cpu));
    qn_buf_printf(b, ", \"%s\", %d, \"%s\", \"%s\", \"%s\",\n       \"%s\", %d, %.3f, %.3f, \"%s\")\n", w->isa, w->threads, w->op,
                  w->shape, w->rows, w->kernel, w->lanes, w->gain, w->error, w->date);
}

static bool measured_anew(const winner *w, const qn_tuned *anew, int threads)
{
    if (w->threads != threads || strcmp(w->cpu, qn_cpu_name())) return false;
    for (size_t i = 0; i < anew->n; i++)
        if (!strcmp(qn_ops[anew->at[i].op].name, w->op) && !strcmp(anew->at[i].shape, w->shape)) return true;
    return false;
}

void qn_tuned_print_table(qn_buf *b, const qn_tuned *anew, int threads)
{
    qn_buf_puts(b, "/* winners.def - what the probe found on the processors that it has seen, for machines that were not tuned\n"
                   " * themselves. Made by `quern probe MODEL --tune --builtin -o src/kernel/winners.def`; lines of other\n"
                   " * processors stay as they are. Not to be edited. WINNER(processor, its level, threads, op, sizes, rows,\n"
                   " * kernel, threads it runs on (0: as always), gain, +-, date) */\n");
    for (const winner *w = winners; w->cpu; w++)
        if (!measured_anew(w, anew, threads)) print_winner(b, w);
    for (size_t i = 0; i < anew->n; i++) {
        const qn_tuned_row *r = &anew->at[i];
        if (r->gain <= 1) continue; /* what is chosen anyway */
        print_winner(b, &(winner){ qn_cpu_name(), qn_isa_name(qn_cpu_isa()), threads, qn_ops[r->op].name, r->shape,
                                   rows_of(r), name_of(r), r->lanes, r->gain, r->error, r->date });
    }
}

static bool add_override(qn_tuned *t, const char *text, size_t n, qn_err *e)
{
    const char *eq = memchr(text, '=', n);
    if (!eq) return qn_fail(e, QN_EUSAGE, "--kernel %.*s: say OP=KERNEL", (int)qn_minz(n, 60), text);
    char *name = qn_arena_strndup(&t->arena, eq + 1, (size_t)(text + n - eq - 1), e);
    if (!name) return false;
    const qn_kernel *k = find_kernel(name);
    const int fused = find_op(text, (size_t)(eq - text));
    if (!strcmp(name, APART) && fused >= 0)
        return qn_tuned_add(t, &(qn_tuned_row){ .op = (qn_op)fused, .bucket = -1 }, e);
    if (!k) return qn_fail(e, QN_EUSAGE, "--kernel: there is no kernel %.60s", name);
    const char *op = qn_ops[k->op].name;
    if (strlen(op) != (size_t)(eq - text) || memcmp(op, text, strlen(op)))
        return qn_fail(e, QN_EUSAGE, "--kernel: %.60s is a kernel of %s, not of %.*s", name, op,
                       (int)qn_minz((size_t)(eq - text), 40), text);
    if (!qn_cpu_runs(k->isa))
        return qn_fail(e, QN_EUNSUPPORTED, "--kernel: %.60s needs %s, this machine has %s", name, qn_isa_name(k->isa),
                       qn_isa_name(qn_cpu_isa()));
    return qn_tuned_add(t, &(qn_tuned_row){ .op = k->op, .bucket = -1, .kernel = k }, e);
}

bool qn_tuned_override(qn_tuned *t, const char *text, qn_err *e)
{
    for (const char *p = text;; p++) {
        const size_t n = strcspn(p, ",");
        if (!add_override(t, p, n, e)) return false;
        p += n;
        if (!*p) return true;
    }
}

void qn_tuned_close(qn_tuned *t)
{
    qn_free(t->at);
    qn_arena_close(&t->arena);
    *t = (qn_tuned){ 0 };
}

/* ---- looking up */

static bool fits(const qn_tuned_row *r, qn_op op, const char *shape, const qn_args *args, int bucket)
{
    if (!r->kernel || r->op != op || (r->bucket >= 0 && r->bucket != bucket)) return false;
    if (r->shape && strcmp(r->shape, shape)) return false;
    const int type = qn_args_type(op, args);
    return (r->kernel->type == type || r->kernel->type == (int)DT_any) && !(r->kernel->needs && r->kernel->needs(args));
}

static int rank(const qn_tuned_row *r) { return !r->date ? 0 : !r->cpu ? 1 : 2; }

const qn_tuned_row *qn_tuned_find(const qn_tuned *t, qn_op op, const qn_args *args, int bucket)
{
    char shape[QN_SHAPE_TEXT];
    const qn_shape s = qn_shape_of(op, args, 1, 0);
    qn_shape_print(&s, false, shape);
    for (int pass = 0; pass < 3; pass++) /* overrides, this machine's winners, the table; the newest first */
        for (size_t i = t->n; i-- > 0;)
            if (rank(&t->at[i]) == pass && fits(&t->at[i], op, shape, args, bucket)) return &t->at[i];
    return NULL;
}

const qn_tuned_row *qn_tuned_apart(const qn_tuned *t, qn_op fused, const qn_args *args)
{
    char shape[QN_SHAPE_TEXT];
    const qn_shape s = qn_shape_of(fused, args, 1, 0);
    qn_shape_print(&s, false, shape);
    for (int pass = 0; pass < 3; pass++) /* who comes first decides: a kernel for the fused op is a vote for fusing */
        for (size_t i = t->n; i-- > 0;) {
            const qn_tuned_row *r = &t->at[i];
            if (rank(r) == pass && r->op == fused && (!r->shape || !strcmp(r->shape, shape))) return r->kernel ? NULL : r;
        }
    return NULL;
}

bool qn_tuned_asked(const qn_tuned *t, qn_op op)
{
    for (size_t i = 0; i < t->n; i++)
        if (rank(&t->at[i]) == 0 && t->at[i].op == op) return true;
    return false;
}

/* ---- out */

void qn_tuned_print(qn_buf *b, const qn_tuned_row *r, int threads)
{
    qn_buf_puts(b, "{\"cpu\": ");
    qn_buf_json(b, qn_cpu_name(), strlen(qn_cpu_name()));
    qn_buf_printf(b, ", \"threads\": %d, \"op\": \"%s\", \"shape\": \"%s\", \"rows\": \"%s\", \"kernel\": \"%s\", "
                  "\"lanes\": %d, \"gain\": %.3f, \"error\": %.3f, \"over_parts\": %.3f, \"date\": \"%s\"}\n", threads,
                  qn_ops[r->op].name, r->shape, rows_of(r), name_of(r), r->lanes, r->gain, r->error, r->over_parts, r->date);
}
