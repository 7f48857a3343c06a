/* cmd_doctor.c - `quern doctor`: what this machine is, how fast it is at what a model needs, and what stands in the way, in plain
 * words. Facts come from probe/machine.c, figures from probe/ceilings.c, the
 * advice from both by probe/advice.c. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/str.h"
#include "cli/doctor.h"
#include "cli/tracing.h"
#include "probe/advice.h"
#include "probe/ceilings.h"
#include "probe/machine.h"

typedef struct doctor_args { const char *device; bool json, fast; int threads, isa; } doctor_args;

static const qn_opt options[] = {
    { "device", NULL, NULL, OPT_text, QN_AT(doctor_args, device, const char *), "DEVICE", "cpu",
      "cpu: this machine; cuda or cuda:N: a GPU in it", 0, 0 },
    { "threads", "t", NULL, OPT_int, QN_AT(doctor_args, threads, int), "N", NULL,
      "threads to measure with; 0: as many as a run would start", 0, 1024 },
    { "isa", NULL, NULL, OPT_choice, QN_AT(doctor_args, isa, int), QN_ISA_CHOICES, "auto",
      "highest instruction set to measure with", 0, 0 },
    { "fast", NULL, NULL, OPT_flag, QN_AT(doctor_args, fast, bool), NULL, NULL, "measure nothing, look only", 0, 0 },
    { "json", NULL, NULL, OPT_flag, QN_AT(doctor_args, json, bool), NULL, NULL, "everything, as one JSON object", 0, 0 },
    { 0 },
};

static const qn_opt_group groups[] = { { "Options", options, 0 }, { 0 } };

typedef struct findings {
    qn_machine m;
    qn_ceilings c;
    bool measured;
    qn_advice advice;
} findings;

/* ---- for people ---------------------------------------------------------------------------------------------------- */

void qn_doctor_line(qn_buf *b, const qn_cli *c, const char *name, const char *fmt, ...)
{
    char text[320];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    qn_buf_printf(b, "%s%-12s%s %s\n", qn_cli_color(c, 1, QN_BOLD), name, qn_cli_color(c, 1, QN_PLAIN), text);
}

static void put_machine(qn_buf *b, const qn_cli *c, const qn_machine *m)
{
    char l2[32], l3[32], memory[32], available[32], quota[48] = "no quota";
    const qn_topology *t = &m->topo;
    if (t->quota_cpus > 0) snprintf(quota, sizeof quota, "a quota of %.1f CPUs", t->quota_cpus);
    qn_doctor_line(b, c, "CPU", "%s", m->cpu);
    qn_doctor_line(b, c, "instructions", "%s", qn_isa_name(m->isa));
    qn_doctor_line(b, c, "cores", "%d of %d package%s, %d of %d hardware threads allowed, %s; a run starts %d thread%s", t->cores,
             t->packages, t->packages == 1 ? "" : "s", t->allowed_pus, t->pus, quota, m->threads, m->threads == 1 ? "" : "s");
    qn_doctor_line(b, c, "caches", "L2 %s, L3 %s", t->l2 ? qn_human_bytes(t->l2, l2) : "unknown",
             t->l3 ? qn_human_bytes(t->l3, l3) : "unknown");
    qn_doctor_line(b, c, "memory", "%s, %s available, %d node%s", qn_human_bytes(t->memory, memory),
             qn_human_bytes(m->available, available), t->numa_nodes, t->numa_nodes == 1 ? "" : "s");
    qn_doctor_line(b, c, "huge pages", "%s", m->huge_pages[0] ? m->huge_pages : "unknown");
    qn_doctor_line(b, c, "system", "%s, clock %s, load %.2f%s%s", m->kernel, m->clock_source[0] ? m->clock_source : "unknown",
             m->load < 0 ? 0 : m->load, m->governor[0] ? ", governor " : "", m->governor);
}

static void put_figures(qn_buf *b, const qn_cli *c, const qn_ceilings *k)
{
    char bytes[32];
    qn_buf_printf(b, "\nMeasured with %d thread%s and %s: the median, its 95 %% interval, samples\n", k->threads,
                  k->threads == 1 ? "" : "s", qn_isa_name(k->isa));
    qn_doctor_line(b, c, "read", "%6.1f GB/s   %.1f to %.1f, %zu   %s on pages of 4 KiB", k->read_small.p50 / 1e9,
             k->read_small.lo / 1e9, k->read_small.hi / 1e9, k->read_small.n, qn_human_bytes(k->bytes, bytes));
    qn_doctor_line(b, c, "", "%6.1f GB/s   %.1f to %.1f, %zu   the same, %.0f %% of it on huge pages", k->read_huge.p50 / 1e9,
             k->read_huge.lo / 1e9, k->read_huge.hi / 1e9, k->read_huge.n, 100 * k->huge_share);
    qn_doctor_line(b, c, "arithmetic", "%6.0f GFLOP/s   %.0f to %.0f, %zu   f32 multiply and add", k->flops.p50 / 1e9,
             k->flops.lo / 1e9, k->flops.hi / 1e9, k->flops.n);
    qn_doctor_line(b, c, "", "%6.0f GOP/s   %.0f to %.0f, %zu   dot products of bytes", k->int8.p50 / 1e9, k->int8.lo / 1e9,
             k->int8.hi / 1e9, k->int8.n);
    if (k->bf16.n)
        qn_doctor_line(b, c, "", "%6.0f GFLOP/s   %.0f to %.0f, %zu   dot products of bfloat16", k->bf16.p50 / 1e9,
                       k->bf16.lo / 1e9, k->bf16.hi / 1e9, k->bf16.n);
    qn_doctor_line(b, c, "barrier", "%6.2f us   %.2f to %.2f, %zu   one step in twenty takes %.2f us or more",
                   k->barrier_ns.p50 / 1e3, k->barrier_ns.lo / 1e3, k->barrier_ns.hi / 1e3, k->barrier_ns.n,
                   k->barrier_ns.p95 / 1e3);
    qn_doctor_line(b, c, "clock", "%6.0f ns   %.0f to %.0f, %zu   one reading", k->clock_ns.p50, k->clock_ns.lo, k->clock_ns.hi,
             k->clock_ns.n);
}

static void put_human(qn_buf *b, const qn_cli *c, const findings *f)
{
    put_machine(b, c, &f->m);
    if (f->measured) put_figures(b, c, &f->c);
    qn_buf_puts(b, "\nOptional libraries\n");
    for (size_t i = 0; i < QN_COUNT(f->m.libraries); i++) {
        const qn_library *l = &f->m.libraries[i];
        qn_doctor_line(b, c, l->name, "%s (%s)%s%s", l->present ? "present" : "absent", l->what,
                       l->detail[0] ? ": " : "", l->detail);
    }
    qn_buf_puts(b, f->advice.n ? "\nWorth knowing\n" : "\nNothing stands in the way.\n");
    for (int i = 0; i < f->advice.n; i++) qn_buf_printf(b, "- %s\n", f->advice.at[i]);
}

/* ---- for programs -------------------------------------------------------------------------------------------------- */

void qn_doctor_json_text(qn_buf *b, const char *name, const char *text)
{
    qn_buf_printf(b, "\"%s\":", name);
    qn_buf_json(b, text, strlen(text));
}

void qn_doctor_json_stats(qn_buf *b, const char *name, const qn_stats *s)
{
    qn_buf_printf(b, "\"%s\":{\"n\":%zu,\"median\":%.6g,\"lo\":%.6g,\"hi\":%.6g,", name, s->n, s->p50, s->lo, s->hi);
    qn_buf_printf(b, "\"min\":%.6g,\"max\":%.6g,\"p95\":%.6g,\"p99\":%.6g}", s->min, s->max, s->p95, s->p99);
}

static void json_machine(qn_buf *b, const qn_machine *m)
{
    const qn_topology *t = &m->topo;
    qn_doctor_json_text(b, "cpu", m->cpu);
    qn_buf_printf(b, ",\"isa\":\"%s\",\"packages\":%d,\"cores\":%d,\"pus\":%d,\"allowed_pus\":%d,\"numa_nodes\":%d,",
                  qn_isa_name(m->isa), t->packages, t->cores, t->pus, t->allowed_pus, t->numa_nodes);
    qn_buf_printf(b, "\"quota_cpus\":%.6g,\"threads\":%d,\"l2_bytes\":%llu,\"l3_bytes\":%llu,", t->quota_cpus, m->threads,
                  (unsigned long long)t->l2, (unsigned long long)t->l3);
    qn_buf_printf(b, "\"memory_bytes\":%llu,\"available_bytes\":%llu,\"limit_bytes\":%llu,", (unsigned long long)t->memory,
                  (unsigned long long)m->available, (unsigned long long)m->limit);
    qn_doctor_json_text(b, "huge_pages", m->huge_pages);
    qn_buf_putc(b, ',');
    qn_doctor_json_text(b, "governor", m->governor);
    qn_buf_putc(b, ',');
    qn_doctor_json_text(b, "clock_source", m->clock_source);
    qn_buf_putc(b, ',');
    qn_doctor_json_text(b, "kernel", m->kernel);
    qn_buf_printf(b, ",\"load\":%.6g", m->load);
}

static void json_figures(qn_buf *b, const qn_ceilings *c)
{
    qn_buf_printf(b, "{\"threads\":%d,\"isa\":\"%s\",\"bytes\":%llu,\"huge_share\":%.4g,\n  ", c->threads, qn_isa_name(c->isa),
                  (unsigned long long)c->bytes, c->huge_share);
    qn_doctor_json_stats(b, "read_small_bytes_s", &c->read_small);
    qn_buf_puts(b, ",\n  ");
    qn_doctor_json_stats(b, "read_huge_bytes_s", &c->read_huge);
    qn_buf_puts(b, ",\n  ");
    qn_doctor_json_stats(b, "f32_flop_s", &c->flops);
    qn_buf_puts(b, ",\n  ");
    qn_doctor_json_stats(b, "int8_op_s", &c->int8);
    qn_buf_puts(b, ",\n  ");
    qn_doctor_json_stats(b, "bf16_flop_s", &c->bf16);
    qn_buf_puts(b, ",\n  ");
    qn_doctor_json_stats(b, "barrier_ns", &c->barrier_ns);
    qn_buf_puts(b, ",\n  ");
    qn_doctor_json_stats(b, "clock_ns", &c->clock_ns);
    qn_buf_putc(b, '}');
}

static void put_json(qn_buf *b, const findings *f)
{
    qn_buf_puts(b, "{\"machine\":{");
    json_machine(b, &f->m);
    qn_buf_puts(b, "},\n \"ceilings\":");
    if (f->measured) json_figures(b, &f->c);
    else qn_buf_puts(b, "null");
    qn_buf_puts(b, ",\n \"libraries\":[");
    for (size_t i = 0; i < QN_COUNT(f->m.libraries); i++) {
        const qn_library *l = &f->m.libraries[i];
        qn_buf_puts(b, i ? "," : "");
        qn_buf_puts(b, "{");
        qn_doctor_json_text(b, "name", l->name);
        qn_buf_printf(b, ",\"present\":%s,", l->present ? "true" : "false");
        qn_doctor_json_text(b, "detail", l->detail);
        qn_buf_puts(b, "}");
    }
    qn_buf_puts(b, "],\n \"advice\":[");
    for (int i = 0; i < f->advice.n; i++) {
        qn_buf_puts(b, i ? ",\n  " : "\n  ");
        qn_buf_json(b, f->advice.at[i], strlen(f->advice.at[i]));
    }
    qn_buf_puts(b, "]}\n");
}

/* ---- the command --------------------------------------------------------------------------------------------------- */

static bool measure(qn_cli *c, const doctor_args *a, findings *f, qn_err *e)
{
    qn_bar bar;
    qn_bar_open(&bar, c);
    qn_interrupt_polled(true);
    const qn_ceilings_opts o = { .threads = a->threads, .isa = a->isa, .progress = qn_bar_show, .user = &bar };
    f->measured = qn_ceilings_measure(&f->c, &o, e);
    qn_interrupt_polled(false);
    qn_bar_close(&bar);
    if (f->measured) qn_cli_keep_ceilings(c, &f->c);
    return f->measured;
}

static int run(qn_cli *c, void *values)
{
    const doctor_args *a = values;
    findings f = { 0 };
    qn_err e = { 0 };
    qn_buf out = { 0 };
    if (strcmp(a->device, "cpu") && strcmp(a->device, "auto")) return qn_doctor_device(c, a->device, a->fast, a->json);
    qn_machine_look(&f.m); /* before measuring: the load average is that of the others */
    if (!a->fast && !measure(c, a, &f, &e)) return qn_cli_fail(c, &e);
    qn_machine_look_libraries(&f.m);
    qn_advise(&f.m, f.measured ? &f.c : NULL, &f.advice);
    if (a->json) put_json(&out, &f);
    else put_human(&out, c, &f);
    return qn_cli_finish(c, &out);
}

const qn_command qn_command_doctor = {
    .name = "doctor",
    .args = "",
    .summary = "Say what this machine is, how fast it is, what stands in the way",
    .about = "Prints the processor, its cores as far as this process may use them, memory and pages; measures for about two "
             "seconds how fast memory is read, how fast numbers are multiplied and added, what a barrier of the "
             "threads and a reading of the clock cost; and says in plain words what slows a model down here.\n\n"
             "Decoding one token reads all weights once: read speed divided by the model's size is the most tokens per second "
             "that this machine can give. What was measured is kept, so that traces can say how near a step came to it.\n\n"
             "With --device cuda the same for a GPU: reading its memory, multiplying on its tensor cores, starting kernels.",
    .examples = "quern doctor\tlook and measure\n"
                "quern doctor -t 1 --json\tone thread, for a program\n"
                "quern doctor --device cuda\tthe GPU\n",
    .min_args = 0,
    .max_args = 0,
    .groups = groups,
    .values_bytes = sizeof(doctor_args),
    .run = run,
};
