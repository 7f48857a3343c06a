/* cmd_plan.c - quern plan: every step that one pass through a model takes, the kernel chosen for it, why, and what it costs. */
#include <limits.h>
#include <string.h>

#include "base/cpu.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/command.h"

typedef struct plan_args { qn_engine_args engine; int rows, depth; bool json; } plan_args;

static const qn_opt options[] = {
    { "rows", "b", NULL, OPT_int, QN_AT(plan_args, rows, int), "N", "1", "cost of a pass over N new tokens", 1, 1 << 20 },
    { "depth", "d", NULL, OPT_int, QN_AT(plan_args, depth, int), "N", "0", "behind N tokens already in the cache", 0, INT_MAX },
    { "ctx-size", "c", NULL, OPT_int, QN_AT(plan_args, engine.n_ctx, int), "N", NULL, "tokens of context; 0: the model's own",
      0, INT_MAX },
    { "threads", "t", NULL, OPT_int, QN_AT(plan_args, engine.threads, int), "N", NULL, "threads; 0: all cores", 0, 1024 },
    { "isa", NULL, NULL, OPT_choice, QN_AT(plan_args, engine.isa, int), QN_ISA_CHOICES, "auto",
      "highest instruction set the kernels may use", 0, 0 },
    { "kv", NULL, NULL, OPT_choice, QN_AT(plan_args, engine.kv, int), "f16|f32|q8_0", "f16", "type of the KV cache", 0, 0 },
    { "kernel", NULL, NULL, OPT_text, QN_AT(plan_args, engine.kernel, const char *), "OP=NAME", NULL,
      "use this kernel for every step of that op; several apart by commas", 0, 0 },
    { "no-tuning", NULL, NULL, OPT_flag, QN_AT(plan_args, engine.no_tuning, bool), NULL, NULL,
      "do not use what `quern probe --tune` found out", 0, 0 },
    { "device", NULL, NULL, OPT_text, QN_AT(plan_args, engine.device, const char *), "DEVICE", "auto", QN_DEVICE_HELP, 0, 0 },
    { "json", NULL, NULL, OPT_flag, QN_AT(plan_args, json, bool), NULL, NULL, "print one JSON object", 0, 0 },
    { 0 },
};

static const qn_opt_group groups[] = { { "Options", options, 0 }, { 0 } };

static int bucket_of(int rows) { return rows == 1 ? 0 : rows <= 8 ? 1 : 2; }

static void put_string(qn_buf *b, const char *s)
{
    if (s) qn_buf_json(b, s, strlen(s));
    else qn_buf_puts(b, "null");
}

static void put_three(qn_buf *b, const char *name, const char *const of[3])
{
    qn_buf_printf(b, ", \"%s\": [", name);
    for (int i = 0; i < 3; i++) {
        if (i) qn_buf_puts(b, ", ");
        put_string(b, of[i]);
    }
    qn_buf_putc(b, ']');
}

static void put_json(qn_buf *b, const qn_engine *en, const plan_args *a)
{
    qn_buf_printf(b, "{\"rows\": %d, \"depth\": %d, \"threads\": %d, \"isa\": \"%s\", \"buckets\": [\"1\", \"2..8\", \"more\"], "
                  "\"steps\": [", a->rows, a->depth, qn_engine_threads(en), qn_engine_isa(en));
    for (int i = 0; i < qn_engine_n_steps(en); i++) {
        qn_step_info s;
        qn_engine_get_step(en, i, a->rows, a->depth, &s);
        qn_buf_printf(b, "%s\n{\"op\": \"%s\", \"role\": \"%s\", \"layer\": %d", i ? "," : "", s.op, s.role, s.layer);
        qn_buf_printf(b, ", \"shape\": \"%s\"", s.shape);
        put_three(b, "kernel", s.kernel);
        put_three(b, "reason", s.reason);
        put_three(b, "rejected", s.rejected);
        qn_buf_printf(b, ", \"bytes\": %llu, \"flops\": %llu}", (unsigned long long)s.bytes, (unsigned long long)s.flops);
    }
    qn_buf_puts(b, "\n]}\n");
}

static void put_table(qn_buf *b, const qn_cli *c, const qn_engine *en, const plan_args *a)
{
    const int n = qn_engine_n_steps(en), k = bucket_of(a->rows);
    u64 bytes = 0, flops = 0;
    char hb[32], hf[32];
    qn_buf_printf(b, "%s%4s  %-12s %-24s %10s %10s  %-32s %s%s\n", qn_cli_color(c, 1, QN_BOLD), "step", "op", "role", "bytes",
                  "flops", "kernel", "why", qn_cli_color(c, 1, QN_PLAIN));
    for (int i = 0; i < n; i++) {
        qn_step_info s;
        qn_engine_get_step(en, i, a->rows, a->depth, &s);
        qn_buf_printf(b, "%4d  %-12s %-24s %10s %10s  %-32s %s\n", i, s.op, s.role, qn_human_bytes(s.bytes, hb),
                      qn_human_count(s.flops, hf), s.kernel[k] ? s.kernel[k] : "-", s.reason[k] ? s.reason[k] : "");
        if (c->verbose && s.rejected[k] && *s.rejected[k]) qn_buf_printf(b, "%*s not: %s\n", 78, "", s.rejected[k]);
        bytes += s.bytes;
        flops += s.flops;
    }
    qn_buf_printf(b, "%d steps; %d new token%s behind %d: %s read and written, %s flops\n", n, a->rows, a->rows == 1 ? "" : "s",
                  a->depth, qn_human_bytes(bytes, hb), qn_human_count(flops, hf));
}

static void put_memory(const qn_cli *c, const qn_engine *en)
{
    qn_memory m;
    char weights[32], kv[32], scratch[32];
    qn_engine_get_memory(en, &m);
    qn_cli_note(c, "memory: weights %s, KV cache %s, scratch %s; %d threads, %s", qn_human_bytes(m.weights, weights),
                qn_human_bytes(m.kv, kv), qn_human_bytes(m.scratch, scratch), qn_engine_threads(en), qn_engine_isa(en));
}

static int run(qn_cli *c, void *values)
{
    const plan_args *a = values;
    qn_model *m = NULL;
    qn_engine *en = NULL;
    qn_err e = { 0 };
    qn_buf b = { 0 };
    int code;
    if (!qn_cli_open(c, c->n_args ? c->args[0] : NULL, &a->engine, &m, &en, &e)) return qn_cli_fail(c, &e);
    if (a->json) put_json(&b, en, a);
    else put_table(&b, c, en, a);
    code = qn_cli_finish(c, &b);
    if (!a->json) put_memory(c, en);
    qn_cli_close(m, en, true);
    return code;
}

const qn_command qn_command_plan = {
    .name = "plan",
    .args = "[MODEL]",
    .summary = "Print the plan of a model: steps, kernels, reasons, costs",
    .about = "A plan is what a pass through the model does, step by step. For each step this prints its op, its place in the "
             "model, the bytes it moves and the flops it makes for -b new tokens behind -d cached ones, the kernel that will "
             "run and why it was chosen; -v adds what was rejected. --json has the kernels of all three buckets of rows.",
    .examples = "quern plan model.gguf\tdecoding one token\nquern plan model.gguf -b 512\treading a prompt\n",
    .min_args = 0,
    .max_args = 1,
    .groups = groups,
    .values_bytes = sizeof(plan_args),
    .run = run,
};
