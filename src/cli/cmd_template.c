/* cmd_template.c - quern template: what a conversation looks like once the model's chat template has rendered it. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/command.h"

typedef struct template_args { const char *messages, *tools; bool no_generation_prompt; } template_args;

static const qn_opt options[] = {
    { "messages", NULL, NULL, OPT_text, QN_AT(template_args, messages, const char *), "FILE", NULL,
      "JSON array of {role, content}; -: from stdin", 0, 0 },
    { "tools", NULL, NULL, OPT_text, QN_AT(template_args, tools, const char *), "FILE", NULL, "JSON array of tools", 0, 0 },
    { "no-generation-prompt", NULL, NULL, OPT_flag, QN_AT(template_args, no_generation_prompt, bool), NULL, NULL,
      "do not open the assistant's turn at the end", 0, 0 },
    { 0 },
};

static const qn_opt_group groups[] = { { "Options", options, 0 }, { 0 } };

/* A GGUF carries its template inside; a folder or a tokenizer_config.json is a template that comes alone. */
static bool render(const char *path, const char *messages, const char *tools, unsigned flags, char **out, size_t *n, qn_err *e)
{
    if (!qn_ends_with(path, ".gguf")) return qn_chat_render_path(path, messages, tools, flags, out, n, e);
    qn_model *m = qn_model_open(path, e);
    const bool ok = m && qn_chat_render(m, messages, tools, flags, out, n, NULL, e);
    qn_model_close(m);
    return ok;
}

static int run(qn_cli *c, void *values)
{
    const template_args *a = values;
    qn_err e = { 0 };
    char *path = NULL, *messages = NULL, *tools = NULL, *out = NULL;
    size_t n = 0, n_out = 0;
    const unsigned flags = a->no_generation_prompt ? 0u : QN_CHAT_GENERATION_PROMPT;
    bool ok = a->messages || qn_fail(&e, QN_EUSAGE, "template: --messages FILE is missing");
    ok = ok && qn_cli_find_model(c, c->args[0], &path, &e) && qn_cli_read(a->messages, &messages, &n, &e) &&
         (!a->tools || qn_cli_read(a->tools, &tools, &n, &e)) &&
         render(path, messages, tools, flags, &out, &n_out, &e);
    if (ok) qn_cli_write(out, n_out);
    qn_free(path);
    qn_free(messages);
    qn_free(tools);
    qn_free(out);
    return ok ? QN_EXIT_OK : qn_cli_fail(c, &e);
}

const qn_command qn_command_template = {
    .name = "template",
    .args = "MODEL",
    .summary = "Print a conversation as the model's chat template renders it",
    .about = "Reads messages (a JSON array of objects with role and content) and prints the prompt that the model would be "
             "given, byte for byte. MODEL may be a GGUF file, a Hugging Face folder or a tokenizer_config.json.",
    .examples = "quern template model.gguf --messages chat.json\tthe rendered prompt\n",
    .min_args = 1,
    .max_args = 1,
    .groups = groups,
    .values_bytes = sizeof(template_args),
    .run = run,
};
