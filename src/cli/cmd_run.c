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
    OPT("model", "m", NULL, OPT_text, model, const char *, "MODEL", NULL,
        "the model; the first argument is the prompt then", 0, 0),
    OPT("prompt", "p", NULL, OPT_text, prompt, const char *, "TEXT", NULL, "the prompt; -: from stdin", 0, 0),
    OPT("file", "f", NULL, OPT_text, file, const char *, "FILE", NULL, "read the prompt from a file; -: stdin", 0, 0),
    OPT("system-prompt", "sys", "system", OPT_text, system, const char *, "TEXT", NULL, "a system message before the first", 0,
        0),
    OPT("predict", "n", "n-predict", OPT_int, n_predict, int, "N", "-1",
        "most tokens to make; -1: until the model or the context ends", -1, INT_MAX),
    OPT("raw", NULL, NULL, OPT_flag, raw, bool, NULL, NULL, "no chat template: continue the prompt as it stands", 0, 0),
    OPT("stop", "r", "reverse-prompt", OPT_list, stop, qn_list, "TEXT", NULL, "end the answer before this text", 0, 0),
    OPT("ignore-eos", NULL, NULL, OPT_flag, ignore_eos, bool, NULL, NULL, "go on past the model's end tokens", 0, 0),
    OPT("conversation", "cnv", "chat", OPT_flag, chat, bool, NULL, NULL, "chat, also when a prompt is given or stdin is no "
        "terminal", 0, 0),
    OPT("n-probs", NULL, NULL, OPT_int, n_probs, int, "N", "0", "with --json: the N likeliest candidates of each token", 0, 20),
    OPT("profile", NULL, NULL, OPT_flag, profile, bool, NULL, NULL, "after the answer, where the time went, by op", 0, 0),
    OPT("json", NULL, NULL, OPT_flag, json, bool, NULL, NULL, "print one JSON object instead of the text", 0, 0),
    { 0 },
};
#undef OPT

static const qn_opt_group groups[] = {
    { "Prompt and answer", options, 0 },
    { "Sampling", qn_sampling_opts, offsetof(qn_run_args, sampling) },
    { "Engine", qn_engine_opts, offsetof(qn_run_args, engine) },
    { 0 },
};

static void print_json(const qn_talk *t, const qn_answer *a, qn_buf *b)
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
    if (t->args->profile) {
        qn_buf_puts(b, ", \"profile\": ");
        qn_profile_json(t, a, b);
    }
    qn_buf_puts(b, "}\n");
}

static int print_answer(const qn_talk *t, const qn_answer *a)
{
    qn_buf b = { 0 };
    int code = QN_EXIT_OK;
    if (t->args->json) {
        print_json(t, a, &b);
        code = qn_cli_finish(t->cli, &b);
        b = (qn_buf){ 0 };
    } else if (!a->broken && (a->text.n == 0 || a->text.p[a->text.n - 1] != '\n')) {
        /* for the eye only: a file or a pipe gets what the model said, byte for byte */
        if (!isatty(1)) qn_cli_note(t->cli, "%s", "");
        else if (qn_cli_write("\n", 1)) qn_cli_flush();
    }
    qn_answer_figures(t->cli, a);
    if (t->args->profile && !t->args->json) {
        qn_profile_print(t->cli, t, a, &b);
        if (b.p) fwrite(b.p, 1, b.n, stderr);
        qn_buf_close(&b);
    }
    return code;
}

static int answer_once(qn_talk *t, const char *prompt, size_t n)
{
    qn_err e = { 0 };
    qn_answer a = { .stream = !t->args->json };
    const bool ok = qn_talk_say(t, prompt, n, &a, &e);
    int code = QN_EXIT_OK;
    if (ok || e.code == QN_ECANCELLED) code = print_answer(t, &a);
    if (!ok) code = qn_cli_fail(t->cli, &e);
    else if (qn_interrupted()) code = QN_EXIT_SIGINT;
    qn_answer_close(&a);
    return code;
}

/* The prompt, from wherever it comes; *text stays NULL when there is none: chat. */
static bool find_prompt(const qn_cli *c, const qn_run_args *a, char **text, size_t *n, qn_err *e)
{
    const int given = a->model ? 0 : 1; /* arguments before the prompt */
    const char *typed = c->n_args > given ? c->args[given] : NULL;
    if ((typed != NULL) + (a->prompt != NULL) + (a->file != NULL) > 1)
        return qn_fail(e, QN_EUSAGE, "run: the prompt is given twice");
    if (c->n_args > given + 1) return qn_fail(e, QN_EUSAGE, "run: one argument too many: \"%.80s\"", c->args[given + 1]);
    if (a->prompt) typed = a->prompt;
    if (a->file) return qn_cli_read(a->file, text, n, e);
    if (typed && !strcmp(typed, "-")) return qn_cli_read("-", text, n, e);
    if (!typed && !a->chat && !isatty(0)) return qn_cli_read("-", text, n, e);
    if (!typed) return true;
    *n = strlen(typed);
    *text = qn_strndup(typed, *n, e);
    return *text != NULL;
}

static int run(qn_cli *c, void *values)
{
    const qn_run_args *a = values;
    const char *model = a->model ? a->model : c->n_args > 0 ? c->args[0] : NULL;
    qn_err e = { 0 };
    qn_talk t = { 0 };
    char *prompt = NULL;
    size_t n = 0;
    int code;
    if (!find_prompt(c, a, &prompt, &n, &e) || !qn_talk_open(&t, c, a, model, &e)) code = qn_cli_fail(c, &e);
    else if (prompt && !a->chat) code = answer_once(&t, prompt, n);
    else code = qn_chat(&t, prompt, n);
    qn_free(prompt);
    qn_talk_close(&t, code == QN_EXIT_OK);
    if (a->engine.trace && code == QN_EXIT_OK) qn_shelf_record(c, a->engine.trace);
    return code;
}

const qn_command qn_command_run = {
    .name = "run",
    .args = "[MODEL] [PROMPT]",
    .summary = "Answer a prompt, or chat",
    .about = "MODEL is a GGUF file, a Hugging Face folder or a name that `quern pull` fetched; without one the default model "
             "runs. With a PROMPT (or -p, -f, or text on stdin) there is one answer, printed as it is made. Without one, on a "
             "terminal, there is a chat: /help lists its commands, Ctrl-C stops an answer, a second Ctrl-C leaves.\n\n"
             "If the model has a chat template, the prompt is a user's message in it; text inside a message never becomes a "
             "control token. --raw, or a model without a template, continues the prompt as it stands.\n\n"
             "The same model, prompt, seed and options give the same answer whatever the number of threads. The last line on "
             "stderr says how many tokens were made, when the first came, and the speed of reading the prompt and of decoding.",
    .examples = "quern run smollm2 \"Why is the sky blue?\"\tone answer\n"
                "quern run model.gguf\tchat on the terminal\n"
                "quern run model.gguf --raw -p \"Once upon a time\" -n 100 --temp 0\tcontinue a text, always the same\n"
                "git diff | quern run model.gguf -sys \"Write a commit message.\" -\tthe prompt from stdin\n",
    .min_args = 0,
    .max_args = 2,
    .groups = groups,
    .values_bytes = sizeof(qn_run_args),
    .run = run,
};
