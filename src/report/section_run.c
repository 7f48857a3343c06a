/* section_run.c - what ran, on what, and how fast that machine can be: three lines. */
#include <stdio.h>
#include <string.h>

#include "report/sections.h"

const char *qn_run_label(const qn_run *r, char out[96])
{
    const char *slash = strrchr(r->path, '/');
    if (*r->model) snprintf(out, 96, "%s%s%s", r->model, *r->type ? " " : "", r->type);
    else snprintf(out, 96, "%s", slash ? slash + 1 : r->path);
    return out;
}

static const char *or(const char *s, const char *other) { return *s ? s : other; }

static void put_facts(const qn_run *r, qn_doc *d)
{
    const struct { const char *key, *text; } texts[] = {
        { "source", r->source }, { "path", r->path }, { "program", r->program }, { "commit", r->commit },
            { "command", r->command },
        { "started", r->started }, { "level", r->level }, { "status", r->status }, { "host", r->host }, { "os", r->os },
        { "cpu", r->cpu }, { "device", r->device }, { "isa", r->isa }, { "model", r->model },
            { "model_path", r->model_path },
        { "arch", r->arch }, { "type", r->type }, { "hash", r->hash }, { "plan_hash", r->plan_hash } };
    const struct { const char *key; double value; } numbers[] = {
        { "seed", (double)r->seed }, { "cores", (double)r->cores }, { "threads", (double)r->threads },
            { "layers", (double)r->layers },
        { "model_bytes", (double)r->model_bytes }, { "params", (double)r->params }, { "read_gbs", r->read_gbs },
        { "read_small_gbs", r->read_small_gbs }, { "f32_gflops", r->f32_gflops }, { "bf16_gflops", r->bf16_gflops },
        { "int8_gops", r->int8_gops }, { "barrier_us", r->barrier_us }, { "clock_ns", r->clock_ns }, { "ended", r->ended },
        { "lost", (double)r->lost }, { "unknown", (double)r->unknown }, { "bad", (double)r->bad },
            { "ignored", (double)r->ignored } };
    for (size_t i = 0; i < QN_COUNT(texts); i++) qn_doc_fact(d, texts[i].key, texts[i].text);
    for (size_t i = 0; i < QN_COUNT(numbers); i++) qn_doc_number(d, numbers[i].key, numbers[i].value);
}

static void put_ceilings(const qn_ceilings_of *c, const qn_run *r, qn_doc *d)
{
    char text[240] = "";
    size_t n = 0;
    const struct { const char *before; int decimals; const char *after; double value; } parts[] = {
        { "reads ", 1, " GB/s", c->read_gbs },   { "(", 1, " through 4 KiB pages)", r->read_small_gbs },
        { "f32 ", 0, " GFLOP/s", c->f32 },       { "bf16 ", 0, " GFLOP/s", c->bf16 },
        { "int8 ", 0, " GOP/s", c->int8 },       { "a barrier ", 2, " us", r->barrier_us } };
    for (size_t i = 0; i < QN_COUNT(parts) && n + 48 < sizeof text; i++) {
        if (!(parts[i].value > 0)) continue;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s%.*f%s", n ? (parts[i].before[0] == '(' ? " " : ", ") : "",
                              parts[i].before, parts[i].decimals, parts[i].value, parts[i].after);
    }
    if (n) qn_doc_line(d, "ceilings: %s", text);
    else qn_doc_line(d, "ceilings: not known; --bandwidth gives one");
}

void qn_section_run(const qn_analysis *a, const qn_report_options *o, qn_doc *d)
{
    const qn_run *r = a->run;
    char label[96], size[32], count[32], threads[48] = "", ended[80] = "";
    (void)o;
    if (r->threads > 0) snprintf(threads, sizeof threads, ", %lld of %lld cores", (long long)r->threads,
                                 (long long)r->cores);
    if (!strcmp(r->source, "quern") && !r->ended) snprintf(ended, sizeof ended, "; the trace has no end");
    else if (*r->status && strcmp(r->status, "ok")) snprintf(ended, sizeof ended, "; %.60s", r->status);
    put_facts(r, d);
    qn_doc_line(d, "%s%s%s%s%s: %s%s%s%s%s%s%s", or(r->program, r->source), *r->commit ? " (" : "", r->commit, *r->commit
                ? ")" : "", ended,
                qn_run_label(r, label), r->model_bytes ? ", " : "", r->model_bytes ? qn_human_bytes(r->model_bytes, size)
                    : "",
                r->params ? ", " : "", r->params ? qn_human_count(r->params, count) : "", r->params ? " weights" : "",
                *r->command ? "" : ".");
    if (*r->command) qn_doc_line(d, "command: %s", r->command);
    if (*r->cpu || *r->device)
        qn_doc_line(d, "machine: %s%s%s%s%s%s%s%s", or(r->cpu, r->device), *r->isa ? ", " : "", r->isa, threads,
                    *r->cpu && *r->device && strcmp(r->device, "cpu") ? ", device " : "",
                    *r->cpu && strcmp(r->device, "cpu") ? r->device : "", *r->os ? ", " : "", r->os);
    put_ceilings(&a->ceilings, r, d);
    if (r->writer_ns) qn_doc_number(d, "writer_ns", (double)r->writer_ns);
    for (size_t i = 0; i < a->remarks.n; i++) qn_doc_line(d, "%s", a->remarks.p[i].text);
}
