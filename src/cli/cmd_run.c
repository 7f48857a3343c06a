/* cmd_run.c - quern run: one answer to one prompt, or a chat when there is no prompt and a terminal to chat on. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/prompt.h"
#include "cli/shelf.h"

#define OPT(name, brief, alias, type, field, ctype, arg, preset, help, lo, hi) \
    { name, brief, alias, type, QN_AT(qn_run_args, field, ctype), arg, preset, help, lo, hi }
static const qn_opt options[] = {
    OPT("conversation", "cnv", "chat", OPT_flag, chat, bool, NULL, NULL, "chat, also when a prompt is given or stdin is no "
        "terminal", 0, 0),
    OPT("n-probs", NULL, NULL, OPT_int, n_probs, int, "N", "0", "with --json: the N likeliest candidates of each token", 0, 20),
    OPT("profile", NULL, NULL, OPT_flag, profile, bool, NULL, NULL,
        "after the answer, where the time went, by op; `quern profile` says more", 0, 0),
    OPT("json", NULL, NULL, OPT_flag, json, bool, NULL, NULL, "print one JSON object instead of the text", 0, 0),
    { 0 },
};
#undef OPT

static const qn_opt_group groups[] = {
    { "Prompt", qn_prompt_opts, 0 },
    { "Answer", options, 0 },
    { "Sampling", qn_sampling_opts, offsetof(qn_run_args, sampling) },
    { "Engine", qn_engine_opts, offsetof(qn_run_args, engine) },
    { 0 },
};

/* The answer as a JSON object, without its last brace. */
static void put_json(const qn_talk *t, const qn_answer *a, qn_buf *b)
{
    const qn_result *r = &a->result;
    qn_buf_puts(b, "{\"model\": ");
    qn_buf_json(b, t->info.path, strlen(t->info.path));
    qn_buf_puts(b, ", \"text\": ");
    qn_buf_json(b, a->text.p ? a->text.p : "", a->text.n);
    qn_buf_puts(b, ", \"tokens\": [");
    for (int i = 0; i < r->n_new; i++) qn_buf_printf(b, "%s%d", i ? ", " : "", r->ids[i]);
    qn_buf_printf(b, "], \"stop\": \"%s\", \"n_prompt\": %d, \"n_cached\": %d, \"n_new\": %d, \"first_ns\": %llu, "
                  "\"prompt_ns\": %llu, \"decode_ns\": %llu, \"threads\": %d, \"isa\": \"%s\", \"seed\": %llu",
                  qn_stop_name(r->stop), r->n_prompt, r->n_cached, r->n_new, (unsigned long long)r->first_ns,
                  (unsigned long long)r->prompt_ns, (unsigned long long)r->decode_ns, qn_engine_threads(t->engine),
                  qn_engine_isa(t->engine), (unsigned long long)t->sampling.seed);
    if (a->probs.n) {
        qn_buf_puts(b, ", \"probs\": [");
        qn_buf_put(b, a->probs.p, a->probs.n);
        qn_buf_putc(b, ']');
    }
}

static void end_answer(const qn_talk *t, const qn_answer *a, qn_buf *json)
{
    if (t->args->json) {
        put_json(t, a, json);
    } else if (!a->broken && (a->text.n == 0 || a->text.p[a->text.n - 1] != '\n')) {
        /* for the eye only: a file or a pipe gets what the model said, byte for byte */
        if (!isatty(1)) qn_cli_note(t->cli, "%s", "");
        else if (qn_cli_write("\n", 1)) qn_cli_flush();
    }
    qn_answer_figures(t->cli, a);
}

static int answer_once(qn_talk *t, const char *prompt, size_t n, qn_buf *json)
{
    qn_err e = { 0 };
    qn_answer a = { .stream = !t->args->json };
    const bool ok = qn_talk_say(t, prompt, n, &a, &e);
    int code = QN_EXIT_OK;
    if (ok || e.code == QN_ECANCELLED) end_answer(t, &a, json);
    if (!ok) code = qn_cli_fail(t->cli, &e);
    else if (qn_interrupted()) code = QN_EXIT_SIGINT;
    qn_answer_close(&a);
    return code;
}

/* Where the time went, once the trace is closed: into the JSON object, or on stderr. */
static bool add_profile(const qn_cli *c, const qn_profile *p, qn_buf *json, qn_err *e)
{
    qn_report_options o = QN_REPORT_DEFAULT;
    qn_buf b = { 0 };
    if (json->n) {
        o.format = FORMAT_json;
        qn_buf_puts(json, ", \"profile\": ");
        return qn_profile_report(p, &o, json, e);
    }
    o.analysis.by = BY_op;
    o.sections = "phases,steps";
    o.color = *qn_cli_color(c, 2, QN_BOLD) != 0;
    const bool ok = qn_profile_report(p, &o, &b, e);
    if (b.p && ok) fprintf(stderr, "\n%s", b.p);
    qn_buf_close(&b);
    return ok;
}

/* What there is to say when everything is closed. Returns the exit code. */
static int finish(const qn_cli *c, const qn_profile *p, qn_buf *json, int code)
{
    qn_err e = { 0 };
    const bool answered = code == QN_EXIT_OK || code == QN_EXIT_SIGINT;
    if (p->trace && answered && !add_profile(c, p, json, &e)) {
        qn_buf_close(json);
        return qn_cli_fail(c, &e);
    }
    if (!json->n) return code;
    qn_buf_puts(json, "}\n");
    const int written = qn_cli_finish(c, json);
    return code == QN_EXIT_OK ? written : code;
}

static int run(qn_cli *c, void *values)
{
    qn_run_args *a = values;
    const char *model = NULL;
    qn_err e = { 0 };
    qn_talk t = { 0 };
    qn_profile p = { .fd = -1 };
    qn_buf json = { 0 };
    char *prompt = NULL;
    size_t n = 0;
    int code;
    if (!qn_prompt_find(c, a, NULL, &model, &prompt, &n, &e) || (a->profile && !qn_profile_open(&p, &a->engine, &e)) ||
        !qn_talk_open(&t, c, a, model, &e)) code = qn_cli_fail(c, &e);
    else if (prompt && !a->chat) code = answer_once(&t, prompt, n, &json);
    else code = qn_chat(&t, prompt, n);
    qn_free(prompt);
    qn_talk_close(&t, code == QN_EXIT_OK);
    if (a->engine.trace && p.fd < 0 && code == QN_EXIT_OK) qn_shelf_record(c, a->engine.trace);
    code = finish(c, &p, &json, code);
    qn_profile_close(&p);
    return code;
}

const qn_command qn_command_run = {
    .name = "run",
    .args = "[MODEL] [PROMPT]",
    .summary = "Answer a prompt, or chat",
    .about = "MODEL is a GGUF file, a Hugging Face folder or a name that `quern pull` fetched; without one the default model "
             "runs, also where the one argument is several words and no model's name: it is the prompt then. "
             "With a PROMPT (or -p, -f, or text on stdin) there is one answer, printed as it is made. Without one, on a "
             "terminal, there is a chat: /help lists its commands, Ctrl-C stops an answer, a second Ctrl-C leaves.\n\n"
             "If the model has a chat template, the prompt is a user's message in it; text inside a message never becomes a "
             "control token. --raw, or a model without a template, continues the prompt as it stands.\n\n"
             "The same model, prompt, seed and options give the same answer whatever the number of threads. The last line on "
             "stderr says how many tokens were made, when the first came, and the speed of reading the prompt and of decoding.",
    .examples = "quern run smollm2 \"Why is the sky blue?\"\tone answer\n"
                "quern run \"Tell me a story.\"\tthe default model answers\n"
                "quern run model.gguf\tchat on the terminal\n"
                "quern run model.gguf --raw -p \"Once upon a time\" -n 100 --temp 0\tcontinue a text, always the same\n"
                "git diff | quern run model.gguf -sys \"Write a commit message.\" -\tthe prompt from stdin\n",
    .min_args = 0,
    .max_args = 2,
    .groups = groups,
    .values_bytes = sizeof(qn_run_args),
    .run = run,
};
