/* cmd_tokenize.c - quern tokenize: text to ids and back, without running anything. */
#include <string.h>

#include "base/mem.h"
#include "cli/command.h"

typedef struct tokenize_args { const char *prompt, *file; bool special, decode, no_parse; } tokenize_args;

static const qn_opt options[] = {
    { "prompt", "p", NULL, OPT_text, QN_AT(tokenize_args, prompt, const char *), "TEXT", NULL,
      "the text (or ids) instead of stdin", 0, 0 },
    { "file", "f", NULL, OPT_text, QN_AT(tokenize_args, file, const char *), "FILE", NULL,
      "read the text (or ids) from a file; -: stdin", 0, 0 },
    { "special", NULL, NULL, OPT_flag, QN_AT(tokenize_args, special, bool), NULL, NULL,
      "add the special tokens that the model wants around a text; with --decode, print control tokens too", 0, 0 },
    { "decode", NULL, NULL, OPT_flag, QN_AT(tokenize_args, decode, bool), NULL, NULL, "ids to text", 0, 0 },
    { "no-parse-special", NULL, NULL, OPT_flag, QN_AT(tokenize_args, no_parse, bool), NULL, NULL,
      "control tokens spelled out in the text stay text", 0, 0 },
    { 0 },
};

static const qn_opt_group groups[] = { { "Options", options, 0 }, { 0 } };

static int encode(const qn_cli *c, const qn_tokenizer *t, const tokenize_args *a, const char *text, size_t n)
{
    qn_err e = { 0 };
    qn_buf b = { 0 };
    int32_t *ids = NULL;
    size_t n_ids = 0;
    const unsigned flags = (a->special ? QN_TOK_ADD_SPECIAL : 0u) | (a->no_parse ? 0u : QN_TOK_PARSE_SPECIAL);
    if (!qn_tokenize(t, text, n, NULL, flags, &ids, &n_ids, &e)) return qn_cli_fail(c, &e);
    qn_buf_putc(&b, '[');
    for (size_t i = 0; i < n_ids; i++) qn_buf_printf(&b, "%s%d", i ? ", " : "", ids[i]);
    qn_buf_puts(&b, "]\n");
    qn_free(ids);
    return qn_cli_finish(c, &b);
}

static int decode(const qn_cli *c, const qn_tokenizer *t, const tokenize_args *a, const char *text, size_t n)
{
    qn_err e = { 0 };
    int32_t *ids = NULL;
    char *out = NULL;
    size_t n_ids = 0, n_out = 0;
    const bool ok = qn_cli_parse_ids(text, n, qn_tokenizer_n_vocab(t), &ids, &n_ids, &e) &&
                    qn_detokenize(t, ids, n_ids, a->special, &out, &n_out, &e);
    if (ok) qn_cli_write(out, n_out);
    qn_free(ids);
    qn_free(out);
    return ok ? QN_EXIT_OK : qn_cli_fail(c, &e);
}

static int run(qn_cli *c, void *values)
{
    const tokenize_args *a = values;
    qn_err e = { 0 };
    char *path = NULL, *text = NULL;
    size_t n = 0;
    qn_tokenizer *t = NULL;
    int code = QN_EXIT_FAIL;
    bool ok = qn_cli_find_model(c, c->args[0], &path, &e) && (t = qn_tokenizer_open(path, &e)) != NULL;
    if (ok && a->prompt) ok = (text = qn_strndup(a->prompt, n = strlen(a->prompt), &e)) != NULL;
    else ok = ok && qn_cli_read(a->file ? a->file : "-", &text, &n, &e);
    if (!ok) code = qn_cli_fail(c, &e);
    else code = a->decode ? decode(c, t, a, text, n) : encode(c, t, a, text, n);
    qn_free(text);
    qn_free(path);
    qn_tokenizer_close(t);
    return code;
}

const qn_command qn_command_tokenize = {
    .name = "tokenize",
    .args = "MODEL",
    .summary = "Turn text into token ids, or ids into text",
    .about = "Reads text from stdin and prints its token ids as a JSON array. Nothing is added unless --special asks for it; "
             "control tokens spelled out in the text become their ids. With --decode, reads ids (a JSON array or numbers) and "
             "prints their text. MODEL may be a tokenizer.json, the folder that holds one, or a GGUF file.",
    .examples = "echo -n \"Hello\" | quern tokenize model.gguf\tids of a text\n"
                "echo \"[1, 2, 3]\" | quern tokenize model.gguf --decode\ttext of ids\n",
    .min_args = 1,
    .max_args = 1,
    .groups = groups,
    .values_bytes = sizeof(tokenize_args),
    .run = run,
};
