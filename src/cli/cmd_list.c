/* cmd_list.c - `quern list`: the models that are here, by the names that other commands take. */
#include "cli/command.h"

#include <string.h>
#include <time.h>

#include "base/str.h"
#include "hub/hub.h"

typedef struct args { bool json; } args;

static const qn_opt own[] = {
    { .name = "json", .type = OPT_flag, .at = QN_AT(args, json, bool), .help = "print a JSON array" },
    { .name = NULL },
};

static void put_json(qn_buf *b, const qn_hub_list *l)
{
    qn_buf_putc(b, '[');
    for (size_t i = 0; i < l->n; i++) {
        const qn_hub_model *m = &l->at[i];
        qn_buf_puts(b, i ? ",\n {\"name\":" : "\n {\"name\":");
        qn_buf_json(b, m->name, strlen(m->name));
        qn_buf_puts(b, ",\"path\":");
        qn_buf_json(b, m->path, strlen(m->path));
        qn_buf_printf(b, ",\"kind\":\"%s\",\"from\":\"%s\",\"bytes\":%llu,\"mtime\":%lld}", m->kind, m->from,
                      (unsigned long long)m->bytes, (long long)m->mtime);
    }
    qn_buf_puts(b, l->n ? "\n]\n" : "]\n");
}

static void put_table(qn_buf *b, const qn_hub_list *l)
{
    size_t width = 4;
    char name[256]; /* made printable: a file may be called anything */
    for (size_t i = 0; i < l->n; i++) {
        const size_t n = strlen(qn_printable(l->at[i].name, strlen(l->at[i].name), 200, name, sizeof name));
        width = n > width ? n : width;
    }
    qn_buf_printf(b, "%-*s  %9s  %-11s  %-8s  %s\n", (int)width, "NAME", "SIZE", "KIND", "FROM", "CHANGED");
    for (size_t i = 0; i < l->n; i++) {
        const qn_hub_model *m = &l->at[i];
        char bytes[32], when[32] = "";
        struct tm tm;
        const time_t t = (time_t)m->mtime;
        if (localtime_r(&t, &tm)) strftime(when, sizeof when, "%Y-%m-%d %H:%M", &tm);
        qn_buf_printf(b, "%-*s  %9s  %-11s  %-8s  %s\n", (int)width,
                      qn_printable(m->name, strlen(m->name), 200, name, sizeof name),
                      qn_human_bytes(m->bytes, bytes), m->kind, m->from, when);
    }
}

static int run(qn_cli *c, void *values)
{
    const args *a = values;
    qn_hub_list l;
    qn_err e = { 0 };
    qn_buf out = { 0 };
    if (!qn_hub_list_open(&l, &e)) return qn_cli_fail(c, &e);
    if (a->json) put_json(&out, &l);
    else if (l.n) put_table(&out, &l);
    else qn_cli_note(c, "no models here yet; `quern pull smollm2` brings one");
    qn_hub_list_close(&l);
    return qn_cli_finish(c, &out);
}

const qn_command qn_command_list = {
    .name = "list",
    .args = "",
    .summary = "Show the models that are here",
    .about = "Lists the model that came with quern, the files of the models folder and what is in the Hugging Face cache, by the "
             "names that `quern run` takes.",
    .examples = "quern list --json\tthe same with paths, for programs\n",
    .min_args = 0,
    .max_args = 0,
    .groups = (const qn_opt_group[]){ { "Options", own, 0 }, { NULL, NULL, 0 } },
    .values_bytes = sizeof(args),
    .run = run,
};
