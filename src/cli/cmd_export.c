/* cmd_export.c - `quern export`: a trace, or another program's log, as a file for other tools. The formats are those of
 * report/export*.c; here are the options and the file, which is written whole or not at all. */
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/command.h"
#include "report/export.h"

typedef struct export_args { int to; const char *output; } export_args;

static const qn_opt options[] = {
    { "to", "t", NULL, OPT_choice, QN_AT(export_args, to, int), "chrome|perfetto|folded|metallic|csv", "chrome",
      "the format to write", 0, 0 },
    { "output", "o", NULL, OPT_text, QN_AT(export_args, output, const char *), "FILE", NULL, "write to a file", 0, 0 },
    { 0 },
};
static const qn_opt_group groups[] = { { "Options", options, 0 }, { 0 } };

static bool progress(void *bar, double share) { return qn_bar_show(bar, "reading", share < 0 ? 0 : share); }

static bool write_runs(qn_run *const *runs, size_t n, const export_args *a, qn_err *e)
{
    qn_out out = { 0 };
    bool ok = !a->output || qn_out_open(&out, a->output, e);
    /* a file of several runs (MLC's tables) gives several documents; only those that are lines can stand in one file */
    if (ok && n > 1 && a->to != EXPORT_folded && a->to != EXPORT_metallic)
        ok = qn_fail(e, QN_EUNSUPPORTED, "%s: holds %zu runs, and this format can have one; use --to folded", runs[0]->path, n);
    for (size_t i = 0; ok && i < n; i++)
        ok = qn_export_write(runs[i], (qn_export_to)a->to, qn_cli_put, a->output ? &out : NULL, e);
    ok = ok && (!a->output || qn_out_commit(&out, e));
    qn_out_close(&out);
    return ok;
}

static int run(qn_cli *c, void *values)
{
    const export_args *a = values;
    qn_err e = { 0 };
    qn_run **runs = NULL;
    size_t n = 0;
    qn_bar bar;
    if (!strcmp(c->args[0], "-")) {
        qn_fail(&e, QN_EUSAGE, "export reads a trace twice, so it must be a file");
        return qn_cli_fail(c, &e);
    }
    qn_bar_open(&bar, c);
    bool ok = qn_runs_open(c->args[0], false, progress, &bar, &runs, &n, &e);
    qn_bar_close(&bar);
    ok = ok && write_runs(runs, n, a, &e);
    for (size_t i = 0; i < n; i++) qn_run_close(runs[i]);
    qn_free(runs);
    return qn_cli_end(c, ok, &e);
}

const qn_command qn_command_export = {
    .name = "export",
    .args = "TRACE",
    .summary = "Write a trace for other tools: Perfetto, speedscope, flame graphs, Metallic's analyser, tables",
    .about = "Reads what `quern analyze` reads and writes it for other programs. `chrome` and `perfetto` are the JSON that "
             "ui.perfetto.dev, speedscope and chrome://tracing open: passes with their steps inside, tokens, requests, loading "
             "and sampling on tracks of their own; `perfetto` has memory and speed as counters too. `folded` is one line a "
             "stack (phase, layer, role, kernel, nanoseconds) for flame graphs. `metallic` is the log of Metallic: its analysers "
             "print what `quern analyze --format metallic` prints. `csv` is one row an event.",
    .examples = "quern export run.jsonl --to perfetto -o run.json\tto be opened in ui.perfetto.dev\n"
                "quern export run.jsonl --to folded | flamegraph.pl > run.svg\ta flame graph\n"
                "quern export run.jsonl.zst --to csv -o run.csv\tfor a spreadsheet\n",
    .min_args = 1,
    .max_args = 1,
    .groups = groups,
    .values_bytes = sizeof(export_args),
    .run = run,
};
