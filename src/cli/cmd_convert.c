/* cmd_convert.c - quern convert: a Hugging Face folder as one GGUF file. */
#include "cli/command.h"

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
    return qn_cli_rewrite(c, qn_convert, a->type, a->threads);
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
