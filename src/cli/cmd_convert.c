/* cmd_convert.c - quern convert: a Hugging Face folder as one GGUF file. */
#include "cli/command.h"
#include "base/mem.h"

typedef struct convert_args { const char *type; int threads; } convert_args;

static const qn_opt options[] = {
    { "type", NULL, "outtype", OPT_text, QN_AT(convert_args, type, const char *), "TYPE", NULL,
      "type of the matrices: F32 F16 BF16 Q8_0 Q4_0 ... or a mix such as Q4_K_M; as stored unless told", 0, 0 },
    { "threads", "t", NULL, OPT_int, QN_AT(convert_args, threads, int), "N", NULL, "threads; 0: all cores", 0, 1024 },
    { 0 },
};

static const qn_opt_group groups[] = { { "Options", options, 0 }, { 0 } };

static int run(qn_cli *c, void *values)
{
    const convert_args *a = values;
    qn_options o = QN_OPTIONS_DEFAULT;
    qn_bar bar;
    qn_err e = { 0 };
    char *path = NULL;
    qn_bar_open(&bar, c);
    o.threads = a->threads;
    o.progress = qn_bar_show;
    o.progress_user = &bar;
    const bool ok = qn_cli_find_model(c, c->args[0], &path, &e) && qn_convert(path, c->args[1], a->type, &o, &e);
    qn_bar_close(&bar);
    qn_free(path);
    if (ok) qn_cli_note(c, "wrote %s", c->args[1]);
    return ok ? QN_EXIT_OK : qn_cli_fail(c, &e);
}

const qn_command qn_command_convert = {
    .name = "convert",
    .args = "DIR OUT.gguf",
    .summary = "Write a Hugging Face folder as a GGUF file",
    .about = "Reads safetensors, config.json, the tokenizer and the chat template from DIR and writes one GGUF file, which other "
             "programs read too. The file appears whole or not at all.",
    .examples = "quern convert ./SmolLM2-135M-Instruct smollm2.gguf --type Q8_0\tconvert and quantise\n",
    .min_args = 2,
    .max_args = 2,
    .groups = groups,
    .values_bytes = sizeof(convert_args),
    .run = run,
};
