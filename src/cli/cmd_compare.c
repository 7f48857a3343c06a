/* cmd_compare.c - `quern compare`: runs held against the first of them. Figures are report/compare.c's; here are
 * names, options and the exit status that a script wants. */
#include <string.h>

#include "base/mem.h"
#include "cli/shelf.h"
#include "report/compare.h"

typedef struct compare_args {
    int by, format, top;
    double threshold;
    const char *output;
    bool force, json;
} compare_args;

static const qn_opt options[] = {
    { "by", NULL, NULL, OPT_choice, QN_AT(compare_args, by, int), "kernel|op|role|layer", "role",
      "what the steps are grouped by", 0, 0 },
    { "threshold", NULL, NULL, OPT_real, QN_AT(compare_args, threshold, double), "PCT", "5",
      "a phase or a test that is slower by more than this and by more than noise is a regression: exit status 3", 0, 1000 },
    { "force", NULL, NULL, OPT_flag, QN_AT(compare_args, force, bool), NULL, NULL,
      "compare runs of other models, machines, threads or work too", 0, 0 },
    { "format", "f", NULL, OPT_choice, QN_AT(compare_args, format, int), "text|markdown|json|html", "text",
      "how the comparison looks", 0, 0 },
    { "json", NULL, NULL, OPT_flag, QN_AT(compare_args, json, bool), NULL, NULL, "short for --format json", 0, 0 },
    { "top", NULL, NULL, OPT_int, QN_AT(compare_args, top, int), "N", "15", "rows of steps in text; -1: all", -1, 1000000 },
    { "output", "o", NULL, OPT_text, QN_AT(compare_args, output, const char *), "FILE", NULL, "write to a file", 0, 0 },
    { 0 },
};

/* One name of the store: the run before it that is like it comes first. */
static bool add_base(const qn_cli *c, qn_shelf *s, const char *name, qn_err *e)
{
    char base[32];
    i64 id = 0, before = 0;
    qn_buf b = { 0 };
    qn_store *store = qn_shelf_store(c, e);
    const bool ok = store && qn_store_find(store, name, NULL, &id, e) && qn_store_before(store, id, &before, e);
    qn_store_close(store);
    if (!ok) return false;
    qn_buf_printf(&b, "@%lld", (long long)before);
    memcpy(base, b.failed ? "@last" : b.p, qn_minz(b.failed ? 6 : b.n + 1, sizeof base));
    qn_buf_close(&b);
    return qn_shelf_add(c, s, base, e);
}

static int run(qn_cli *c, void *values)
{
    const compare_args *a = values;
    const qn_compare_options o = { .by = (qn_by)a->by, .threshold = a->threshold / 100, .force = a->force };
    const qn_compare_format format = a->json ? COMPARE_json : (qn_compare_format)a->format;
    qn_compare cmp = { 0 };
    qn_shelf runs = { 0 };
    qn_buf out = { 0 };
    qn_err e = { 0 };
    bool ok = c->n_args > 1 || c->args[0][0] != '@' || add_base(c, &runs, c->args[0], &e);
    for (int i = 0; ok && i < c->n_args; i++) ok = qn_shelf_add(c, &runs, c->args[i], &e);
    if (ok && runs.n < 2) ok = qn_fail(&e, QN_EUSAGE, "compare: %s holds one run; say what to compare it with", c->args[0]);
    const bool color = !a->output && *qn_cli_color(c, 1, QN_BOLD);
    ok = ok && qn_compare_open(&cmp, (const qn_run *const *)runs.p, runs.n, &o, &e)
      && qn_compare_write(&cmp, format, a->top, a->output ? 0 : qn_cli_width(), color, &out, &e);
    const bool regressed = cmp.regressed;
    qn_compare_close(&cmp);
    qn_shelf_close(&runs);
    if (!ok) {
        qn_buf_close(&out);
        return qn_cli_fail(c, &e);
    }
    const int code = qn_cli_deliver(c, &out, a->output);
    if (code == QN_EXIT_OK && regressed) qn_cli_note(c, "slower than before by more than %g %%", a->threshold);
    return code == QN_EXIT_OK && regressed ? QN_EXIT_REGRESSION : code;
}

const qn_command qn_command_compare = {
    .name = "compare",
    .args = "A B...",
    .summary = "Hold runs against each other: what became slower or faster, and what it costs",
    .about = "Holds runs against the first one: each phase and each group of steps, the time of a token in both, the "
             "difference with "
             "its 95 % interval, and what it comes to over the whole run; what costs most stands first. Runs of the "
             "same work are "
             "compared pass by pass, others by their medians; a difference whose interval holds zero is noise.\n\n"
             "A run is a trace, another program's log (a file may hold several runs, as MLC's tables of three "
             "precisions do), or a "
             "run of the store: @last, @-2 (the second before the last), @17 (as `quern runs` numbers them), @1w, "
             "@3d, @12h (the "
             "newest that is at least that old and like the first), or @NAME for a label. One such name alone is "
             "compared with the "
             "run before it that is like it.\n\n"
             "Runs of other models, devices, thread counts, prompts or plans are refused unless --force is given; "
             "other kernels, "
             "types of weights and versions of the program are what comparisons are for.\n\n"
             "Exit status 3: a phase that makes tokens, or a benchmark's test, became slower by more than "
             "--threshold and by more "
             "than noise.",
    .examples = "quern compare before.jsonl after.jsonl\ttwo traces\n"
                "quern compare @last\tthe last run with the one before it that is like it\n"
                "quern compare @1w @last --threshold 3\tthe last run with last week's\n"
                "quern compare mlc.md --by role\tthe tables in one file\n"
                "quern compare a.jsonl b.jsonl --format html -o diff.html\tas a page\n",
    .min_args = 1,
    .max_args = 32,
    .groups = (const qn_opt_group[]){ { "Options", options, 0 }, { NULL, NULL, 0 } },
    .values_bytes = sizeof(compare_args),
    .run = run,
};
