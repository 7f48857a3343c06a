/* cmd_quantize.c - quern quantize: a GGUF file with its matrices in another type. */
#include "cli/command.h"

typedef struct quantize_args { int threads; } quantize_args;

static const qn_opt options[] = {
    { "threads", "t", NULL, OPT_int, QN_AT(quantize_args, threads, int), "N", NULL, "threads; 0: all cores", 0, 1024 },
    { 0 },
};

static const qn_opt_group groups[] = { { "Options", options, 0 }, { 0 } };

static int run(qn_cli *c, void *values)
{
    const quantize_args *a = values;
    return qn_cli_rewrite(c, qn_quantize, c->args[2], a->threads);
}

const qn_command qn_command_quantize = {
    .name = "quantize",
    .args = "IN OUT TYPE",
    .summary = "Write a GGUF file with its matrices in another type",
    .about = "TYPE is one of F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q4_K Q5_K Q6_K, or a mix that spends more bits where they count: "
             "Q4_K_S Q4_K_M Q5_K_S Q5_K_M. Everything else in the file is kept. OUT appears whole or not at all.",
    .examples = "quern quantize model-f16.gguf model-q4.gguf Q4_K_M\tfour and a half bits a weight\n",
    .min_args = 3,
    .max_args = 3,
    .groups = groups,
    .values_bytes = sizeof(quantize_args),
    .run = run,
};
