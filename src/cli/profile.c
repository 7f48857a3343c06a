/* profile.c - where an answer's time went: the engine's steps, summed by op, for the prompt and for decoding apart. Bytes and
 * flops come from each step's own cost at the rows and the middle of the contexts that ran; costs are linear in the context,
 * so the middle stands for the mean. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/prompt.h"

struct qn_snapshot { int n; u64 calls_ns[][2]; };

typedef struct line { const char *op; u64 calls, ns; double bytes, flops; } line; /* one op, summed */
typedef struct table { line at[48]; int n; u64 ns; } table;

struct qn_snapshot *qn_snapshot_open(const qn_engine *en)
{
    const int n = qn_engine_n_steps(en);
    struct qn_snapshot *s = qn_new(sizeof *s + (size_t)n * sizeof s->calls_ns[0], NULL);
    if (!s) return NULL; /* the table then counts everything as decoding */
    s->n = n;
    for (int i = 0; i < n; i++) {
        qn_step_info step;
        qn_engine_get_step(en, i, 1, 0, &step);
        s->calls_ns[i][0] = step.calls;
        s->calls_ns[i][1] = step.ns;
    }
    return s;
}

void qn_snapshot_close(struct qn_snapshot *s) { qn_free(s); }

static line *line_of(table *t, const char *op)
{
    for (int i = 0; i < t->n; i++)
        if (!strcmp(t->at[i].op, op)) return &t->at[i];
    if (t->n == (int)QN_COUNT(t->at)) return &t->at[t->n - 1];
    t->at[t->n].op = op;
    return &t->at[t->n++];
}

static void sort_by_time(table *t)
{
    for (int i = 1; i < t->n; i++) {
        const line l = t->at[i];
        int j = i;
        for (; j > 0 && t->at[j - 1].ns < l.ns; j--) t->at[j] = t->at[j - 1];
        t->at[j] = l;
    }
}

/* The steps between two moments: `from` to `to`, either NULL for the beginning and for now. */
static void sum_steps(const qn_engine *en, const struct qn_snapshot *from, const struct qn_snapshot *to, int rows, int ctx,
                      table *t)
{
    *t = (table){ 0 };
    const int n = qn_engine_n_steps(en);
    for (int i = 0; i < n; i++) {
        qn_step_info s;
        qn_engine_get_step(en, i, rows, ctx, &s);
        u64 calls = to ? to->calls_ns[i][0] : s.calls, ns = to ? to->calls_ns[i][1] : s.ns;
        if (from) calls -= from->calls_ns[i][0], ns -= from->calls_ns[i][1];
        if (!calls) continue;
        line *l = line_of(t, s.op);
        l->calls += calls;
        l->ns += ns;
        l->bytes += (double)calls * (double)s.bytes;
        l->flops += (double)calls * (double)s.flops;
        t->ns += ns;
    }
    sort_by_time(t);
}

static void both_tables(const qn_talk *t, const qn_answer *a, table *prompt, table *decode)
{
    const qn_result *r = &a->result;
    const int batch = t->args->engine.n_batch > 0 ? t->args->engine.n_batch : 512;
    const int fresh = qn_maxi(r->n_prompt - r->n_cached, 1);
    const int passes = (fresh + batch - 1) / batch;
    sum_steps(t->engine, NULL, a->after_prompt, fresh / passes, r->n_cached + (fresh - fresh / passes) / 2, prompt);
    if (a->after_prompt) sum_steps(t->engine, a->after_prompt, NULL, 1, r->n_prompt + r->n_new / 2, decode);
    else *decode = (table){ 0 };
}

static void print_table(const qn_cli *c, const char *title, const table *t, qn_buf *out)
{
    const char *bold = qn_cli_color(c, 2, QN_BOLD), *plain = qn_cli_color(c, 2, QN_PLAIN);
    if (!t->n) return;
    qn_buf_printf(out, "\n%s%-16s %10s %12s %8s %9s %10s%s\n", bold, title, "calls", "ms", "share", "GB/s", "GFLOP/s", plain);
    for (int i = 0; i < t->n; i++) {
        const line *l = &t->at[i];
        const double ns = l->ns > 0 ? (double)l->ns : 1;
        qn_buf_printf(out, "%-16s %10llu %12.3f %7.1f%% %9.2f %10.2f\n", l->op, (unsigned long long)l->calls,
                      (double)l->ns * 1e-6, t->ns ? 100.0 * (double)l->ns / (double)t->ns : 0, l->bytes / ns, l->flops / ns);
    }
    qn_buf_printf(out, "%-16s %10s %12.3f %7.1f%%\n", "all steps", "", (double)t->ns * 1e-6, 100.0);
}

void qn_profile_print(const qn_cli *c, const qn_talk *t, const qn_answer *a, qn_buf *out)
{
    table prompt, decode;
    both_tables(t, a, &prompt, &decode);
    print_table(c, "prompt", &prompt, out);
    print_table(c, "decode", &decode, out);
}

static void put_json(const char *name, const table *t, qn_buf *out)
{
    qn_buf_printf(out, "\"%s\": [", name);
    for (int i = 0; i < t->n; i++) {
        const line *l = &t->at[i];
        qn_buf_printf(out, "%s{\"op\": \"%s\", \"calls\": %llu, \"ns\": %llu, \"bytes\": %.0f, \"flops\": %.0f}", i ? ", " : "",
                      l->op, (unsigned long long)l->calls, (unsigned long long)l->ns, l->bytes, l->flops);
    }
    qn_buf_putc(out, ']');
}

void qn_profile_json(const qn_talk *t, const qn_answer *a, qn_buf *out)
{
    table prompt, decode;
    both_tables(t, a, &prompt, &decode);
    qn_buf_putc(out, '{');
    put_json("prompt", &prompt, out);
    qn_buf_puts(out, ", ");
    put_json("decode", &decode, out);
    qn_buf_putc(out, '}');
}
