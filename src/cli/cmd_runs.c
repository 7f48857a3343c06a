/* cmd_runs.c - `quern runs`: the store of runs, listed, shown, added to and cleared out. */
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/shelf.h"
#include "report/report.h"

typedef struct runs_args { bool json, all; const char *label, *output; int format, most; } runs_args;

static const qn_opt options[] = {
    { "json", NULL, NULL, OPT_flag, QN_AT(runs_args, json, bool), NULL, NULL, "print JSON", 0, 0 },
    { "most", "n", NULL, OPT_int, QN_AT(runs_args, most, int), "N", "20", "list: the newest N; 0: all", 0, 1 << 30 },
    { "label", NULL, NULL, OPT_text, QN_AT(runs_args, label, const char *), "NAME", NULL, "add: a name for @NAME", 0, 0 },
    { "format", "f", NULL, OPT_choice, QN_AT(runs_args, format, int), "text|markdown|json|html", "text",
      "show: how it looks", 0, 0 },
    { "output", "o", NULL, OPT_text, QN_AT(runs_args, output, const char *), "FILE", NULL, "show: write to a file", 0, 0 },
    { "all", NULL, NULL, OPT_flag, QN_AT(runs_args, all, bool), NULL, NULL, "rm: every run", 0, 0 },
    { 0 },
};

static void put_json(qn_buf *b, const qn_store_list *l)
{
    qn_buf_putc(b, '[');
    for (size_t i = 0; i < l->n; i++) {
        const qn_store_entry *x = &l->at[i];
        const struct { const char *key, *value; } texts[] = {
            { "label", x->label }, { "started", x->started }, { "model", x->model }, { "type", x->type },
            { "device", x->device }, { "program", x->program }, { "path", x->path }, { "status", x->status },
        };
        qn_buf_printf(b, "%s\n {\"id\":%lld,\"added\":%lld,\"threads\":%lld,\"prompt_tokens\":%llu,"
                      "\"tokens\":%llu,\"wall_ns\":%llu,"
                      "\"prefill_tok_s\":%.6g,\"decode_tok_s\":%.6g", i ? "," : "", (long long)x->id, (long long)x->added,
                      (long long)x->threads, (unsigned long long)x->prompt_tokens, (unsigned long long)x->tokens,
                      (unsigned long long)x->wall_ns, x->prefill_tok_s, x->decode_tok_s);
        for (size_t k = 0; k < QN_COUNT(texts); k++) {
            qn_buf_printf(b, ",\"%s\":", texts[k].key);
            qn_buf_json(b, texts[k].value, strlen(texts[k].value));
        }
        qn_buf_putc(b, '}');
    }
    qn_buf_puts(b, l->n ? "\n]\n" : "]\n");
}

static void put_table(qn_buf *b, const qn_store_list *l)
{
    qn_buf_printf(b, "%-6s %-16s %-28s %-8s %3s %7s %7s %9s %9s  %s\n", "RUN", "ADDED", "MODEL", "TYPE", "THR",
                  "PROMPT", "TOKENS", "PREFILL", "DECODE", "LABEL");
    for (size_t i = 0; i < l->n; i++) {
        const qn_store_entry *x = &l->at[i];
        char when[32] = "", model[64], label[64], type[32];
        struct tm tm;
        const time_t t = (time_t)x->added;
        if (localtime_r(&t, &tm)) strftime(when, sizeof when, "%Y-%m-%d %H:%M", &tm);
        qn_buf_printf(b, "@%-5lld %-16s %-28s %-8s %3lld %7llu %7llu %9.2f %9.2f  %s\n", (long long)x->id, when,
                      qn_printable(x->model, strlen(x->model), 24, model, sizeof model),
                      qn_printable(x->type, strlen(x->type), 8, type, sizeof type), (long long)x->threads,
                      (unsigned long long)x->prompt_tokens, (unsigned long long)x->tokens, x->prefill_tok_s, x->decode_tok_s,
                      qn_printable(x->label, strlen(x->label), 40, label, sizeof label));
    }
}

static int list(qn_cli *c, const runs_args *a, qn_store *s)
{
    qn_store_list l;
    qn_err e = { 0 };
    qn_buf out = { 0 };
    if (!qn_store_list_open(s, (size_t)a->most, &l, &e)) return qn_cli_fail(c, &e);
    if (a->json) put_json(&out, &l);
    else if (l.n) put_table(&out, &l);
    else qn_cli_note(c, "no runs yet; every run with --trace is added, and `quern runs add TRACE` adds one");
    qn_store_list_close(&l);
    return qn_cli_finish(c, &out);
}

static int show(qn_cli *c, const runs_args *a, qn_store *s)
{
    static const qn_format formats[] = { FORMAT_text, FORMAT_markdown, FORMAT_json, FORMAT_html };
    qn_report_options o = QN_REPORT_DEFAULT;
    qn_err e = { 0 };
    qn_buf out = { 0 };
    i64 id = 0;
    o.format = a->json ? FORMAT_json : formats[a->format];
    o.width = a->output ? 0 : qn_cli_width();
    o.color = !a->output && *qn_cli_color(c, 1, QN_BOLD);
    qn_run *r = qn_store_find(s, c->n_args > 1 ? c->args[1] : "@last", NULL, &id, &e) ? qn_store_get(s, id, &e) : NULL;
    const bool ok = r && qn_report_write((const qn_run *const[]){ r }, 1, &o, &out, &e);
    qn_run_close(r);
    if (ok) return qn_cli_deliver(c, &out, a->output);
    qn_buf_close(&out);
    return qn_cli_fail(c, &e);
}

static int add(qn_cli *c, const runs_args *a, qn_store *s)
{
    qn_err e = { 0 };
    if (c->n_args < 2) {
        qn_fail(&e, QN_EUSAGE, "runs add: say which trace");
        return qn_cli_fail(c, &e);
    }
    for (int i = 1; i < c->n_args; i++) {
        qn_shelf runs = { 0 };
        i64 id = 0;
        bool ok = qn_shelf_add(c, &runs, c->args[i], &e);
        for (size_t k = 0; ok && k < runs.n; k++) {
            ok = qn_store_add(s, runs.p[k], a->label, &id, &e);
            if (ok) qn_cli_printf("@%lld\n", (long long)id);
        }
        qn_shelf_close(&runs);
        if (!ok) return qn_cli_fail(c, &e);
    }
    return QN_EXIT_OK;
}

static bool remove_all(qn_store *s, qn_err *e)
{
    qn_store_list l;
    if (!qn_store_list_open(s, 0, &l, e)) return false;
    bool ok = true;
    for (size_t i = 0; ok && i < l.n; i++) ok = qn_store_remove(s, l.at[i].id, e);
    qn_store_list_close(&l);
    return ok;
}

static int rm(qn_cli *c, const runs_args *a, qn_store *s)
{
    qn_err e = { 0 };
    i64 id = 0;
    bool ok = a->all || c->n_args > 1 || qn_fail(&e, QN_EUSAGE, "runs rm: say which run, or --all");
    if (ok && a->all) ok = remove_all(s, &e);
    for (int i = 1; ok && !a->all && i < c->n_args; i++)
        ok = qn_store_find(s, c->args[i], NULL, &id, &e) && qn_store_remove(s, id, &e);
    return ok ? QN_EXIT_OK : qn_cli_fail(c, &e);
}

static int run(qn_cli *c, void *values)
{
    static const struct { const char *name; int (*run)(qn_cli *c, const runs_args *a, qn_store *s); } verbs[] = {
        { "list", list }, { "show", show }, { "add", add }, { "rm", rm },
    };
    const char *verb = c->n_args ? c->args[0] : "list";
    qn_err e = { 0 };
    for (size_t i = 0; i < QN_COUNT(verbs); i++) {
        if (strcmp(verb, verbs[i].name)) continue;
        qn_store *s = qn_shelf_store(c, &e);
        if (!s) return qn_cli_fail(c, &e);
        const int code = verbs[i].run(c, values, s);
        qn_store_close(s);
        return code;
    }
    qn_fail(&e, QN_EUSAGE, "runs: there is no %.40s; say list, show, add or rm", verb);
    return qn_cli_fail(c, &e);
}

const qn_command qn_command_runs = {
    .name = "runs",
    .args = "[list|show|add|rm] [RUN|TRACE...]",
    .summary = "List past runs, show, add and remove them",
    .about = "Every run with --trace (run, bench, profile) is kept here when it ends: what ran and where, its "
             "phases, and for each step its "
             "figures and samples, so that `quern compare @1w @last` can hold today's run against last week's when "
             "the traces are "
             "long gone. `quern runs add` keeps another trace, or another program's log.\n\n"
             "A run is named @last, @-2 (the second before the last), @17, @1w, @3d, @12h (the newest that is at "
             "least that old) or "
             "@NAME for a label.\n\n"
             "The store is one SQLite file, $XDG_STATE_HOME/quern/runs.sqlite ($QUERN_HOME/state/runs.sqlite). One "
             "that is damaged "
             "is set aside as runs.sqlite.old, with a note.",
    .examples = "quern runs\tthe newest runs\n"
                "quern runs show @-1 --format html -o run.html\tthe report of the run before the last\n"
                "quern runs add run.jsonl --label baseline\tkeep it as @baseline\n"
                "quern runs rm @17\tforget a run\n",
    .min_args = 0,
    .max_args = 1000,
    .groups = (const qn_opt_group[]){ { "Options", options, 0 }, { NULL, NULL, 0 } },
    .values_bytes = sizeof(runs_args),
    .run = run,
};
