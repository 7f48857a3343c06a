/* tracing.c - what the program adds to a trace: its command line, its options, the machine and how fast it can be. Ceilings are
 * not measured here, that would delay a run by seconds: they are those that `quern doctor` kept, or none with a note. */
#include "cli/tracing.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "hub/hub.h"
#include "probe/ceiling_store.h"
#include "probe/device.h"

#ifndef QN_COMMIT
#define QN_COMMIT ""
#endif

static qn_str text(const char *s) { return (qn_str){ s, strlen(s) }; }

/* The file that keeps them, yours to free; NULL: there is no place for it. */
static char *ceilings_path(qn_err *e)
{
    char *dir = qn_place_path(QN_PLACE_CACHE, e);
    char *path = dir ? qn_path_join(dir, "ceilings.db", e) : NULL;
    qn_free(dir);
    return path;
}

/* ---- the header */

/* The words of the command line as a shell would need them. */
static void put_command(qn_buf *b, const qn_cli *c)
{
    qn_buf_puts(b, "quern");
    for (int i = 1; i < c->argc; i++) {
        const char *s = c->argv[i];
        const bool plain = *s && s[strcspn(s, " \t\n'\"\\$`!*?[]{}()<>|&;~#")] == 0;
        qn_buf_putc(b, ' ');
        if (!plain) qn_buf_putc(b, '\'');
        for (; *s; s++) {
            if (*s == '\'') qn_buf_puts(b, "'\\''");
            else qn_buf_putc(b, *s);
        }
        if (!plain) qn_buf_putc(b, '\'');
    }
}

static void set_ceilings(qn_ev_trace *h, const qn_ceilings *c)
{
    h->read_gbs = (c->read_huge.p50 > c->read_small.p50 ? c->read_huge.p50 : c->read_small.p50) / 1e9;
    h->read_small_gbs = c->read_small.p50 / 1e9;
    h->f32_gflops = c->flops.p50 / 1e9;
    h->bf16_gflops = c->bf16.p50 / 1e9;
    h->int8_gops = c->int8.p50 / 1e9;
    h->barrier_us = c->barrier_ns.p50 / 1e3;
    h->clock_ns = c->clock_ns.p50;
}

bool qn_cli_kept_ceilings(const qn_engine_args *a, qn_ceilings *out, char note[240])
{
    qn_err e = { 0 };
    char *path = ceilings_path(&e), device[96];
    qn_device_name(a->device, device);
    const bool found = path && qn_ceilings_load(path, device, a->isa ? (qn_isa)a->isa : qn_cpu_isa(),
                                                a->threads ? a->threads : qn_cpu_threads(), out, note, &e);
    qn_free(path);
    return found;
}

/* The ceilings that the command measured, or those that are kept. False: there are none. */
static bool find_ceilings(const qn_engine_args *a, qn_ev_trace *h, char why[240])
{
    qn_ceilings kept;
    if (a->ceilings) return set_ceilings(h, a->ceilings), true;
    const bool found = qn_cli_kept_ceilings(a, &kept, why);
    if (found) set_ceilings(h, &kept);
    else if (!why[0])
        snprintf(why, 240, "no ceilings are known for this machine and these threads: `quern doctor` measures and keeps them");
    return found;
}

void qn_cli_keep_ceilings(const qn_cli *c, const qn_ceilings *k)
{
    char note[240] = "";
    qn_err e = { 0 };
    char *path = ceilings_path(&e);
    if (!path || !qn_ceilings_save(path, k, note, &e)) qn_cli_note(c, "the ceilings cannot be kept: %s", e.msg);
    if (note[0]) qn_cli_note(c, "%s", note);
    qn_free(path);
}

bool qn_cli_measure_ceilings(const char *device, const qn_ceilings_opts *o, qn_ceilings *out, qn_err *e)
{
    qn_device_figures f;
    char name[96];
    qn_device_name(device, name);
    if (!name[0]) return qn_ceilings_measure(out, o, e);
    if (!qn_device_measure(device, o, &f, e)) return false;
    qn_device_ceilings(&f, out);
    return true;
}

bool qn_cli_need_ceilings(const qn_cli *c, const qn_engine_args *a, qn_err *e)
{
    qn_ev_trace unused;
    qn_ceilings k;
    qn_bar bar;
    char why[240] = "";
    if (find_ceilings(a, &unused, why)) return true;
    const qn_ceilings_opts o = { .threads = a->threads, .isa = a->isa, .progress = qn_bar_show, .user = &bar };
    qn_bar_open(&bar, c);
    qn_interrupt_polled(true);
    const bool ok = qn_cli_measure_ceilings(a->device, &o, &k, e);
    qn_interrupt_polled(false);
    qn_bar_close(&bar);
    if (ok) qn_cli_keep_ceilings(c, &k);
    return ok;
}

static void put_note(qn_trace *t, const char *s)
{
    const qn_event ev = { .kind = QN_EV_note, .t = qn_trace_time(t, qn_now_ns()), .note = { .text = text(s) } };
    qn_trace_put(t, &ev);
}

static void fill_head(qn_tracing *t, const qn_cli *c, const qn_engine_args *a, qn_ev_trace *h)
{
    static const char *const levels[] = { "request", "token", "step" };
    const time_t now = time(NULL);
    struct tm utc;
    qn_machine_look(&t->machine);
    if (gethostname(t->host, sizeof t->host - 1)) t->host[0] = 0;
    if (gmtime_r(&now, &utc)) strftime(t->started, sizeof t->started, "%Y-%m-%dT%H:%M:%SZ", &utc);
    put_command(&t->command, c);
    qn_options_json(c, &t->settings);
    *h = (qn_ev_trace){
        .schema = QN_TRACE_SCHEMA, .program = text("quern " QN_VERSION), .commit = text(QN_COMMIT),
        .command = { t->command.p, t->command.failed ? 0 : t->command.n }, .started = text(t->started),
        .level = text(levels[a->trace_level]), .seed = (i64)a->seed, .host = text(t->host), .os = text(t->machine.kernel),
        .cpu = text(t->machine.cpu), .cores = t->machine.topo.cores, .clock = text("CLOCK_MONOTONIC"),
        .clock_source = text(t->machine.clock_source), .governor = text(t->machine.governor),
        .load = t->machine.load > 0 ? t->machine.load : 0,
        .settings = { t->settings.p, t->settings.failed ? 0 : t->settings.n },
    };
}

bool qn_tracing_open(qn_tracing *t, const qn_cli *c, const qn_engine_args *a, qn_err *e)
{
    qn_ev_trace head;
    char why[240] = "";
    *t = (qn_tracing){ 0 };
    if (!a || !a->trace) return true;
    fill_head(t, c, a, &head);
    const bool known = find_ceilings(a, &head, why);
    t->trace = qn_trace_open(a->trace, a->trace_level, e);
    if (!t->trace) return qn_tracing_release(t), false;
    qn_trace_set_head(t->trace, &head);
    if (!known || why[0]) put_note(t->trace, why);
    return true;
}

void qn_tracing_release(qn_tracing *t)
{
    qn_buf_close(&t->command);
    qn_buf_close(&t->settings);
}

/* ---- events of the program's own */

void qn_tracing_load(qn_trace *t, const char *phase, u64 begin_ns, u64 bytes)
{
    if (!t) return;
    const qn_event ev = { .kind = QN_EV_load, .t = qn_trace_time(t, begin_ns),
                          .load = { .phase = text(phase), .ns = (i64)(qn_now_ns() - begin_ns), .bytes = (i64)bytes } };
    qn_trace_put(t, &ev);
}

void qn_tracing_tokenize(qn_trace *t, u64 begin_ns, size_t bytes, size_t tokens)
{
    if (!t) return;
    const qn_event ev = { .kind = QN_EV_tokenize, .t = qn_trace_time(t, begin_ns),
                          .tokenize = { .bytes = (i64)bytes, .tokens = (i64)tokens, .ns = (i64)(qn_now_ns() - begin_ns) } };
    qn_trace_put(t, &ev);
}

void qn_tracing_test(qn_trace *t, const char *name, int rep, u64 tokens, u64 begin_ns, u64 ns)
{
    if (!t) return;
    const qn_event ev = { .kind = QN_EV_test, .t = qn_trace_time(t, begin_ns),
                          .test = { .name = text(name), .rep = rep, .tokens = (i64)tokens, .ns = (i64)ns } };
    qn_trace_put(t, &ev);
}

void qn_tracing_end(qn_trace *t, int code)
{
    qn_trace_sum sum;
    if (!t) return;
    qn_trace_close(t, code == QN_EXIT_SIGINT ? "cancelled" : code == QN_EXIT_OK ? "ok" : "failed", &sum);
    if (sum.lost)
        fprintf(stderr, "quern: the trace lacks %llu of %llu events: %s\n", (unsigned long long)sum.lost,
                (unsigned long long)(sum.lost + sum.events), sum.why);
}
