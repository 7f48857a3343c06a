/* cmd_probe.c - quern probe: checks every kernel that this machine runs against its reference. The walk is src/probe's. */
#include <string.h>

#include "base/cpu.h"
#include "cli/command.h"
#include "probe/probe.h"

typedef struct probe_args { const char *op, *type; int isa, timeout_s; u64 seed; bool check, json; } probe_args;

static const qn_opt options[] = {
    { "check", NULL, NULL, OPT_flag, QN_AT(probe_args, check, bool), NULL, NULL, "compare kernels with their references", 0, 0 },
    { "op", NULL, NULL, OPT_text, QN_AT(probe_args, op, const char *), "OP", NULL, "only this op's kernels", 0, 0 },
    { "type", NULL, NULL, OPT_text, QN_AT(probe_args, type, const char *), "TYPE", NULL, "only kernels of this type", 0, 0 },
    { "isa", NULL, NULL, OPT_choice, QN_AT(probe_args, isa, int), QN_ISA_CHOICES, "auto",
      "only this instruction set; auto: all that this machine runs", 0, 0 },
    { "seed", "s", NULL, OPT_u64, QN_AT(probe_args, seed, u64), "N", "0", "seed of the data; 0: from the clock", 0, 0 },
    { "timeout", NULL, NULL, OPT_int, QN_AT(probe_args, timeout_s, int), "S", "60", "a kernel that takes longer has failed", 1,
      86400 },
    { "json", NULL, NULL, OPT_flag, QN_AT(probe_args, json, bool), NULL, NULL, "one JSON object per kernel and line", 0, 0 },
    { 0 },
};

static const qn_opt_group groups[] = { { "Options", options, 0 }, { 0 } };

typedef struct walk { const qn_cli *cli; bool json; int n; } walk;

static void put_json(qn_buf *b, const qn_probe_result *r)
{
    qn_buf_printf(b, "{\"kernel\": \"%s\", \"op\": \"%s\", \"isa\": \"%s\", \"passed\": %s, \"cases\": %d, \"seed\": %llu, "
                  "\"max_abs\": %.6g, \"max_rel\": %.6g, \"nmse\": %.6g, \"worst\": %.6g, \"at\": ", r->kernel->name,
                  qn_ops[r->kernel->op].name, qn_isa_name(r->kernel->isa), r->passed ? "true" : "false", r->cases,
                  (unsigned long long)r->seed, r->max_abs, r->max_rel, r->nmse, r->worst);
    qn_buf_json(b, r->at, strlen(r->at));
    qn_buf_puts(b, ", \"why\": ");
    qn_buf_json(b, r->why, strlen(r->why));
    qn_buf_puts(b, "}\n");
}

static void put_line(qn_buf *b, const qn_cli *c, const qn_probe_result *r)
{
    qn_buf_printf(b, "%s%-6s%s %-36s %4d cases  nmse %8.2g  worst %5.2f of its bound\n",
                  qn_cli_color(c, 1, r->passed ? QN_GREEN : QN_RED), r->passed ? "ok" : "FAILED", qn_cli_color(c, 1, QN_PLAIN),
                  r->kernel->name, r->cases, r->nmse, r->worst);
    if (!r->passed)
        qn_buf_printf(b, "       %s\n       in case %s, seed %llu\n", r->why, r->at, (unsigned long long)r->seed);
}

static bool take_result(void *user, const qn_probe_result *r)
{
    walk *w = user;
    qn_buf b = { 0 };
    if (w->json) put_json(&b, r);
    else put_line(&b, w->cli, r);
    const bool ok = !b.failed && qn_cli_write(b.p, b.n) && qn_cli_flush();
    qn_buf_close(&b);
    w->n++;
    return ok && !qn_interrupted();
}

static bool read_filters(const probe_args *a, qn_probe_opts *o, qn_err *e)
{
    if (a->op) {
        for (int i = 0; i < N_OPS; i++)
            if (!strcmp(qn_ops[i].name, a->op)) o->op = i;
        if (o->op < 0) return qn_fail(e, QN_EUSAGE, "--op: there is no op %.40s", a->op);
    }
    if (a->type) {
        qn_dtype t;
        if (!qn_dtype_from_name(a->type, &t)) return qn_fail(e, QN_EUSAGE, "--type: there is no type %.40s", a->type);
        o->type = (int)t;
    }
    o->isa = a->isa;
    o->seed = a->seed;
    o->timeout_s = a->timeout_s;
    if (a->isa > (int)qn_cpu_isa())
        return qn_fail(e, QN_EUNSUPPORTED, "--isa: this machine runs %s at most", qn_isa_name(qn_cpu_isa()));
    return true;
}

static int run(qn_cli *c, void *values)
{
    const probe_args *a = values;
    qn_probe_opts o = QN_PROBE_DEFAULT;
    qn_err e = { 0 };
    walk w = { c, a->json, 0 };
    int failed = 0;
    if (!a->check) {
        qn_fail(&e, QN_EUSAGE, "probe: say --check");
        return qn_cli_fail(c, &e);
    }
    qn_interrupt_polled(true);
    const bool ok = read_filters(a, &o, &e) && qn_probe_check(&o, take_result, &w, &failed, &e);
    qn_interrupt_polled(false);
    if (!ok && e.code == QN_ECANCELLED && !qn_interrupted()) return QN_EXIT_OK; /* the reader left */
    if (!ok) return qn_cli_fail(c, &e);
    qn_cli_note(c, "%d kernels checked, %d failed", w.n, failed);
    return failed ? QN_EXIT_FAIL : QN_EXIT_OK;
}

const qn_command qn_command_probe = {
    .name = "probe",
    .args = "",
    .summary = "Check the kernels of this machine",
    .about = "With --check, runs every kernel that this machine can run against its plain reference: odd sizes, poisoned "
             "outputs, guarded buffers, one to several lanes. A kernel that crashes or hangs fails by its name. Exit status 1 "
             "if one failed.",
    .examples = "quern probe --check\tall of them\nquern probe --check --op linear --isa avx2\tsome of them\n",
    .min_args = 0,
    .max_args = 0,
    .groups = groups,
    .values_bytes = sizeof(probe_args),
    .run = run,
};
