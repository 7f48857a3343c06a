/* check_kernels.c - `quern probe --check` for a machine that has none of quern's libraries: the same walk over the registry, one
 * line per kernel. check_kernels SEED [op type isa]...: "-" is every one; without triples, everything. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/probe.h"

static bool show(void *user, const qn_probe_result *r)
{
    (void)user;
    printf("%-6s %-28s %3d cases  worst %.2f of its bound%s%s\n", r->passed ? "ok" : "FAILED", r->kernel->name, r->cases, r->off.worst,
           r->passed ? "" : ": ", r->passed ? "" : r->why);
    fflush(stdout);
    return true;
}

static int op_named(const char *name)
{
    for (int i = 0; i < N_OPS; i++)
        if (!strcmp(qn_ops[i].name, name)) return i;
    return -1;
}

static int type_named(const char *name)
{
    qn_dtype type;
    return qn_dtype_from_name(name, &type) ? (int)type : -1;
}

int main(int argc, char **argv)
{
    int failed = 0, all_failed = 0;
    qn_err e;
    printf("level %s\n", qn_isa_name(qn_cpu_isa()));
    for (int i = 2; i == 2 || i + 2 < argc; i += 3) {
        qn_probe_opts o = QN_PROBE_DEFAULT;
        o.seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
        o.timeout_s = 120;
        if (i + 2 < argc) {
            o.op = op_named(argv[i]);
            o.type = type_named(argv[i + 1]);
            qn_isa_parse(argv[i + 2], &o.isa);
        }
        if (!qn_probe_check(&o, show, NULL, &failed, &e)) return fprintf(stderr, "%s\n", e.msg), 2;
        all_failed += failed;
    }
    return all_failed ? 1 : 0;
}
