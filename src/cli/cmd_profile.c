/* cmd_profile.c - quern profile: an answer made for its times. What run does, recorded step by step, and then what analyze
 * prints; the ceilings that the report holds times against are measured once on a machine and kept. */
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/prompt.h"
#include "cli/shelf.h"
#include "cli/tracing.h"

#define PREDICT 128 /* tokens, unless told: enough for percentiles, over in seconds */
static const char usual_prompt[] = "Explain in two or three sentences why the sky is blue.";

typedef struct profile_args {
    qn_run_args run;
    int by, format, top;
    const char *sections;
} profile_args;

static const qn_opt options[] = {
    { "by", NULL, NULL, OPT_choice, QN_AT(profile_args, by, int), "kernel|op|role|layer|phase", "kernel",
      "what the steps are grouped by", 0, 0 },
    { "format", NULL, NULL, OPT_choice, QN_AT(profile_args, format, int), qn_format_choices + 1, "text",
      "how the report looks", 0, 0 },
    { "section", NULL, NULL, OPT_text, QN_AT(profile_args, sections, const char *), "NAMES", NULL,
      "only these sections, with commas between", 0, 0 },
    { "top", NULL, NULL, OPT_int, QN_AT(profile_args, top, int), "N", NULL, "rows of each table; -1: all", -1, 1000000 },
    { 0 },
};

static const qn_opt_group groups[] = {
    { "Report", options, 0 },
    { "Prompt", qn_prompt_opts, offsetof(profile_args, run) },
    { "Sampling", qn_sampling_opts, offsetof(profile_args, run) + offsetof(qn_run_args, sampling) },
    { "Engine", qn_engine_opts, offsetof(profile_args, run) + offsetof(qn_run_args, engine) },
    { 0 },
};

static qn_report_options report_options(const qn_cli *c, const profile_args *a)
{
    struct winsize w;
    qn_report_options o = QN_REPORT_DEFAULT;
    o.format = (qn_format)a->format;
    o.analysis.by = (qn_by)a->by;
    o.sections = a->sections;
    o.top = a->top;
    o.color = *qn_cli_color(c, 1, QN_BOLD) != 0;
    if (isatty(1) && ioctl(1, TIOCGWINSZ, &w) == 0 && w.ws_col >= 40) o.width = w.ws_col;
    return o;
}

/* The answer, told on stderr: the report is the result here. */
static bool answer(qn_talk *t, const char *prompt, size_t n, qn_err *e)
{
    qn_answer a = { 0 };
    const bool ok = qn_talk_say(t, prompt, n, &a, e);
    if (ok || e->code == QN_ECANCELLED) {
        qn_cli_note(t->cli, "%.*s", (int)qn_minz(a.text.n, 1 << 20), a.text.p ? a.text.p : "");
        qn_answer_figures(t->cli, &a);
    }
    qn_answer_close(&a);
    return ok;
}

static int run(qn_cli *c, void *values)
{
    profile_args *a = values;
    const qn_report_options o = report_options(c, a);
    qn_err e = { 0 };
    qn_talk t = { 0 };
    qn_profile p = { .fd = -1 };
    qn_buf out = { 0 };
    char *prompt = NULL;
    const char *model = NULL;
    size_t n = 0;
    if (a->run.n_predict < 0) a->run.n_predict = PREDICT;
    bool ok = qn_prompt_find(c, &a->run, usual_prompt, &model, &prompt, &n, &e) &&
              qn_cli_need_ceilings(c, &a->run.engine, &e) && qn_profile_open(&p, &a->run.engine, &e);
    ok = ok && qn_talk_open(&t, c, &a->run, model, &e) && answer(&t, prompt, n, &e);
    qn_talk_close(&t, ok);
    qn_free(prompt);
    if (ok && p.fd < 0) qn_shelf_record(c, p.trace);
    ok = ok && qn_profile_report(&p, &o, &out, &e);
    qn_profile_close(&p);
    if (ok) return qn_cli_finish(c, &out);
    qn_buf_close(&out);
    return qn_cli_fail(c, &e);
}

const qn_command qn_command_profile = {
    .name = "profile",
    .args = "[MODEL] [PROMPT]",
    .summary = "Answer a prompt and say where every microsecond went",
    .about = "Runs MODEL on PROMPT (a usual one if none is given) with every step recorded, then prints the report that `quern "
             "analyze` would print on that trace. The report goes to stdout, the answer to stderr. --trace FILE keeps the "
             "trace.\n\n"
             "Times are held against what this machine can do. That is measured once, for about two seconds, and kept; `quern "
             "doctor` measures it again.",
    .examples = "quern profile smollm2\tthe usual prompt\n"
                "quern profile model.gguf \"Why is the sky blue?\" --by role\tby part of the model\n"
                "quern profile model.gguf -n 500 --trace run.jsonl --format html > run.html\ta page, and the trace\n",
    .min_args = 0,
    .max_args = 2,
    .groups = groups,
    .values_bytes = sizeof(profile_args),
    .run = run,
};
