/* cmd_analyze.c - `quern analyze`: traces in, a report out. Reading is report/run_open.c's, figures
 * report/analysis.c's, looks belong to report/formats.def; here are options, the terminal and the file to write to. */
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/command.h"
#include "report/report.h"

typedef struct analyze_args {
    int by, format, phase, top, kernel_top, batch;
    const char *sections, *output, *kernel_filter;
    double bandwidth, params;
    bool follow, json, include_kernel_totals;
} analyze_args;

static const qn_opt options[] = {
    { "by", NULL, NULL, OPT_choice, QN_AT(analyze_args, by, int), "kernel|op|role|layer|phase", "kernel",
      "what the steps are grouped by", 0, 0 },
    { "format", "f", NULL, OPT_choice, QN_AT(analyze_args, format, int), qn_format_choices + 1, "text",
      "how the report looks", 0, 0 },
    { "json", NULL, NULL, OPT_flag, QN_AT(analyze_args, json, bool), NULL, NULL, "short for --format json", 0, 0 },
    { "phase", NULL, NULL, OPT_choice, QN_AT(analyze_args, phase, int), "all|load|tokenize|prefill|decode|sample|other",
      "all",
      "only the steps of this phase", 0, 0 },
    { "section", NULL, NULL, OPT_text, QN_AT(analyze_args, sections, const char *), "NAMES", NULL,
      "only these sections, with commas between: run, phases, steps, implied, growth, disturbed, tests, memory, choices, advice, "
      "notes, across", 0, 0 },
    { "top", NULL, NULL, OPT_int, QN_AT(analyze_args, top, int), "N", NULL,
      "rows of each table; 0: as many as the format likes, "
      "-1: all", -1, 1000000 },
    { "bandwidth", NULL, NULL, OPT_real, QN_AT(analyze_args, bandwidth, double), "GB/S", NULL,
      "the memory's speed, for logs that do not say it", 0, 1e6 },
    { "params", NULL, NULL, OPT_real, QN_AT(analyze_args, params, double), "N", NULL,
      "weights that a token reads, for logs that do not say it", 0, 1e15 },
    { "output", "o", NULL, OPT_text, QN_AT(analyze_args, output, const char *), "FILE", NULL,
      "write the report to a file", 0, 0 },
    { "follow", NULL, NULL, OPT_flag, QN_AT(analyze_args, follow, bool), NULL, NULL,
      "the trace is still being written: wait for its end", 0, 0 },
    { 0 },
};

static const qn_opt foreign[] = {
    { "kernel-top", NULL, NULL, OPT_int, QN_AT(analyze_args, kernel_top, int), "N", "50",
      "metallic: rows of the kernel aggregate", 1,
      1000000 },
    { "kernel-filter", NULL, NULL, OPT_text, QN_AT(analyze_args, kernel_filter, const char *), "TEXT", NULL,
      "metallic: only kernels whose name has this in it", 0, 0 },
    { "include-kernel-totals", NULL, NULL, OPT_flag, QN_AT(analyze_args, include_kernel_totals, bool), NULL, NULL,
      "metallic: sums of other kernels among the kernels too", 0, 0 },
    { "batch", NULL, NULL, OPT_int, QN_AT(analyze_args, batch, int), "N", "1", "doppler: decode passes in one table", 1,
      1000000 },
    { 0 },
};

static const qn_opt_group groups[] = { { "Options", options, 0 }, { "Formats of other programs", foreign, 0 }, { 0 } };

typedef struct found { qn_run **p; size_t n; } found;

static void close_runs(found *f)
{
    for (size_t i = 0; i < f->n; i++) qn_run_close(f->p[i]);
    qn_free(f->p);
}

static bool progress(void *bar, double share) { return qn_bar_show(bar, "reading", share < 0 ? 0 : share); }

static bool add_runs(found *all, const char *path, bool follow, qn_bar *bar, qn_err *e)
{
    qn_run **runs = NULL;
    size_t n = 0, bytes;
    if (!qn_runs_open(path, follow, progress, bar, &runs, &n, e)) return false;
    qn_run **more = qn_mul(all->n + n, sizeof *more, &bytes) ? qn_resize(all->p, bytes + 1, e) : NULL;
    if (!more) {
        close_runs(&(found){ runs, n });
        return false;
    }
    memcpy(more + all->n, runs, n * sizeof *runs);
    qn_free(runs);
    all->p = more;
    all->n += n;
    return true;
}

static qn_report_options report_options(const qn_cli *c, const analyze_args *a)
{
    struct winsize w;
    qn_report_options o = QN_REPORT_DEFAULT;
    o.format = a->json ? FORMAT_json : (qn_format)a->format;
    o.analysis = (qn_analysis_options){ .by = (qn_by)a->by, .bandwidth_gbs = a->bandwidth, .params = a->params };
    o.top = a->top;
    o.phase = a->phase - 1;
    o.sections = a->sections;
    o.kernel_top = a->kernel_top;
    o.kernel_filter = a->kernel_filter;
    o.include_kernel_totals = a->include_kernel_totals;
    o.batch = a->batch;
    if (a->output) return o;
    o.color = *qn_cli_color(c, 1, QN_BOLD) != 0;
    if (isatty(1) && ioctl(1, TIOCGWINSZ, &w) == 0 && w.ws_col >= 40) o.width = w.ws_col;
    return o;
}

static bool write_report(const found *all, qn_report_options *o, const char *path, qn_err *e)
{
    qn_out file = { 0 };
    qn_buf out = { 0 };
    o->write = qn_cli_put;
    o->user = path ? &file : NULL;
    const bool ok = (!path || qn_out_open(&file, path, e)) &&
                    qn_report_write((const qn_run *const *)all->p, all->n, o, &out, e) &&
                    o->write(o->user, out.p, out.n, e) && (!path || qn_out_commit(&file, e));
    qn_out_close(&file);
    qn_buf_close(&out);
    return ok;
}

static int run(qn_cli *c, void *values)
{
    const analyze_args *a = values;
    qn_report_options o = report_options(c, a);
    found all = { 0 };
    qn_err e = { 0 };
    qn_bar bar;
    bool ok = true;
    qn_bar_open(&bar, c);
    for (int i = 0; ok && i < c->n_args; i++) ok = add_runs(&all, c->args[i], a->follow, &bar, &e);
    qn_bar_close(&bar);
    ok = ok && write_report(&all, &o, a->output, &e);
    close_runs(&all);
    return qn_cli_end(c, ok, &e);
}

const qn_command qn_command_analyze = {
    .name = "analyze",
    .args = "TRACE...",
    .summary = "Say where the time of a run went, from its trace or from another program's log",
    .about = "Reads traces of quern (`--trace`, plain or zstd), Metallic's JSONL, Doppler's console log, MLC's kernel "
             "tables and traces in Chrome's format (PyTorch, ONNX Runtime), and says: what ran and on what; how the wall "
             "time divides into phases, with what nothing explains; every step with its launches, times, GB/s, GFLOP/s "
             "and its share of what the machine can do; how time grows with position; which tokens were disturbed; "
             "memory; which kernels were chosen and why; and what to try.\n\n"
             "The ceiling of a step is the time that memory or arithmetic would need for it at the speeds in the trace's "
             "header. A share above 100 % means that the data came from a cache.\n\n"
             "`--format metallic`, `doppler` and `mlc` print what those programs print, by their rules.",
    .examples = "quern analyze run.jsonl\tthe report\n"
                "quern analyze run.jsonl --by role --phase decode\tdecoding, by part of the model\n"
                "quern analyze a.jsonl b.jsonl --json\ttwo runs, for a program\n"
                "quern analyze mlc.md --bandwidth 100\tan MLC profile on a machine with 100 GB/s\n"
                "quern analyze run.jsonl --format metallic --kernel-filter attend\tas Metallic's analyser prints it\n",
    .min_args = 1,
    .max_args = 1000,
    .groups = groups,
    .values_bytes = sizeof(analyze_args),
    .run = run,
};
