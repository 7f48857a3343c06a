/* cmd_info.c - quern info: what a person wants to know about a model file before running it. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/command.h"

typedef struct info_args { bool json; } info_args;

static const qn_opt options[] = {
    { "json", NULL, NULL, OPT_flag, QN_AT(info_args, json, bool), NULL, NULL, "everything, as one JSON object", 0, 0 },
    { 0 },
};

static const qn_opt_group groups[] = { { "Options", options, 0 }, { 0 } };

static void put_line(qn_buf *b, const qn_cli *c, const char *name, const char *value)
{
    qn_buf_printf(b, "%s%-14s%s %s\n", qn_cli_color(c, 1, QN_BOLD), name, qn_cli_color(c, 1, QN_PLAIN), value);
}

/* "Q4_1 90.1 MiB (210 tensors), F32 140 KiB (61)" from the description's list. */
static void put_types(qn_buf *b, const qn_cli *c, const char *json, size_t n)
{
    qn_err e = { 0 };
    qn_buf line = { 0 };
    char bytes[32];
    yyjson_doc *doc = qn_json_parse(json, n, 0, "description", &e);
    yyjson_val *types = yyjson_obj_get(yyjson_doc_get_root(doc), "types"), *item, *key;
    yyjson_obj_iter it = yyjson_obj_iter_with(types);
    while ((key = yyjson_obj_iter_next(&it))) {
        item = yyjson_obj_iter_get_val(key);
        const long long tensors = yyjson_get_sint(yyjson_obj_get(item, "tensors"));
        qn_buf_printf(&line, "%s%s %s in %lld tensor%s", line.n ? ", " : "", yyjson_get_str(key),
                      qn_human_bytes(yyjson_get_uint(yyjson_obj_get(item, "bytes")), bytes), tensors, tensors == 1 ? "" : "s");
    }
    if (line.n) put_line(b, c, "types", line.p);
    qn_buf_close(&line);
    yyjson_doc_free(doc);
}

static void put_memory(qn_buf *b, const qn_cli *c, const qn_model *m, const qn_model_info *i)
{
    static const int contexts[] = { 512, 2048, 8192, 32768, 131072 };
    char f16[32], q8[32], all[32], line[160];
    qn_buf_printf(b, "%smemory%s         for one session of\n", qn_cli_color(c, 1, QN_BOLD), qn_cli_color(c, 1, QN_PLAIN));
    for (size_t k = 0; k < QN_COUNT(contexts); k++) {
        if (contexts[k] > i->n_ctx_train && k > 0) break;
        const u64 kv = qn_model_kv_bytes(m, contexts[k], QN_KV_F16);
        snprintf(line, sizeof line, "%7d tokens: KV cache %s as f16, %s as q8_0; with the weights %s", contexts[k],
                 qn_human_bytes(kv, f16), qn_human_bytes(qn_model_kv_bytes(m, contexts[k], QN_KV_Q8_0), q8),
                 qn_human_bytes(kv + i->n_bytes, all));
        put_line(b, c, "", line);
    }
}

static void put_shape(qn_buf *b, const qn_cli *c, const qn_model_info *i)
{
    char line[160];
    snprintf(line, sizeof line, "%d layers, width %d, %d heads of %d (%d for keys and values), feed-forward %d", i->n_layer,
             i->d_model, i->n_head, i->d_head, i->n_kv, i->d_ff);
    put_line(b, c, "shape", line);
    snprintf(line, sizeof line, "%d tokens", i->n_ctx_train);
    if (i->sliding_window > 0)
        snprintf(line, sizeof line, "%d tokens, sliding window of %d", i->n_ctx_train, i->sliding_window);
    put_line(b, c, "context", line);
    snprintf(line, sizeof line, "%s, %d tokens", i->tokenizer_kind ? i->tokenizer_kind : "none", i->n_vocab);
    put_line(b, c, "tokenizer", line);
}

static int print_human(const qn_cli *c, const qn_model *m, const char *json, size_t n)
{
    qn_model_info i;
    qn_buf b = { 0 };
    char params[32], bytes[32], line[200];
    qn_model_get_info(m, &i);
    put_line(&b, c, "file", i.path);
    if (i.name && *i.name) put_line(&b, c, "name", i.name);
    put_line(&b, c, "architecture", i.arch);
    snprintf(line, sizeof line, "%s parameters, %s, mostly %s (%.2f bits a weight)", qn_human_count(i.n_params, params),
             qn_human_bytes(i.n_bytes, bytes), i.type, i.n_params ? 8.0 * (double)i.n_bytes / (double)i.n_params : 0.0);
    put_line(&b, c, "size", line);
    put_types(&b, c, json, n);
    put_shape(&b, c, &i);
    snprintf(line, sizeof line, "%zu bytes of Jinja", i.chat_template ? strlen(i.chat_template) : 0);
    put_line(&b, c, "chat template", i.chat_template ? line : "none: prompts are continued as they stand");
    put_memory(&b, c, m, &i);
    return qn_cli_finish(c, &b);
}

static int run(qn_cli *c, void *values)
{
    const info_args *a = values;
    qn_err e = { 0 };
    qn_model *m = NULL;
    char *json = NULL;
    size_t n = 0;
    int code;
    if (!qn_cli_open(c, c->n_args ? c->args[0] : NULL, NULL, &m, NULL, &e) || !qn_model_describe(m, &json, &n, &e)) {
        code = qn_cli_fail(c, &e);
    } else if (a->json) {
        qn_cli_write(json, n);
        if (n == 0 || json[n - 1] != '\n') qn_cli_write("\n", 1);
        code = QN_EXIT_OK;
    } else {
        code = print_human(c, m, json, n);
    }
    qn_free(json);
    qn_model_close(m);
    return code;
}

const qn_command qn_command_info = {
    .name = "info",
    .args = "[MODEL]",
    .summary = "Say what a model is, and what memory it needs",
    .about = "Prints architecture, size by type, shape, tokenizer, chat template and the memory that contexts of several lengths "
             "need. --json prints everything that the file says. No weights are read.",
    .examples = "quern info model.gguf\tat a glance\nquern info ./hf-folder --json\tall of it\n",
    .min_args = 0,
    .max_args = 1,
    .groups = groups,
    .values_bytes = sizeof(info_args),
    .run = run,
};
