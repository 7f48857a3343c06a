/* doctor_device.c - `quern doctor --device cuda`: what the GPU is, how fast it is, what that means for models, in plain words. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/doctor.h"
#include "cli/tracing.h"
#include "probe/device.h"

#define EARLY_DRIVER 12030 /* kernels take their places before the one in front has ended */

typedef struct advice { char text[8][240]; int n; } advice;

static double spread(const qn_stats *s) { return s->p50 > 0 ? (s->hi - s->lo) / s->p50 : 0; }

static void advise(advice *a, const qn_device_figures *f, bool measured)
{
    char free_bytes[32], all[32];
    if (f->free < f->memory / 2)
        snprintf(a->text[a->n++], 240, "Only %s of %s are free: other programs use this device.",
                 qn_human_bytes(f->free, free_bytes), qn_human_bytes(f->memory, all));
    if (f->major < 8)
        snprintf(a->text[a->n++], 240, "Compute capability %d.%d is too old for the kernels of this program: they need 8.0.",
                 f->major, f->minor);
    else if (f->major != 9)
        snprintf(a->text[a->n++], 240, "The fastest kernels are for compute capability 9.0; %d.%d takes the portable ones.",
                 f->major, f->minor);
    if (f->driver < EARLY_DRIVER)
        snprintf(a->text[a->n++], 240, "The driver is for CUDA %d.%d; with 12.3 or later kernels start earlier.",
                 f->driver / 1000, f->driver % 1000 / 10);
    if (!measured) return;
    snprintf(a->text[a->n++], 240, "A token reads all weights once: at most %.0f tokens a second for each GB of a model; many "
             "sequences at once share one reading.", f->read.p50 / 1e9);
    snprintf(a->text[a->n++], 240, "Reading pays for up to %.0f operations a byte: below that memory is the limit, above it "
             "arithmetic.", f->tensor.p50 / f->read.p50);
    if (spread(&f->read) > 0.05 || spread(&f->tensor) > 0.05)
        snprintf(a->text[a->n++], 240, "The device is shared or changes its clocks: the medians may be off by %.0f %%.",
                 100 * (spread(&f->read) > spread(&f->tensor) ? spread(&f->read) : spread(&f->tensor)));
}

static void put_human(qn_buf *b, const qn_cli *c, const qn_device_figures *f, const advice *a, bool measured)
{
    char memory[32], free_bytes[32], bytes[32];
    qn_doctor_line(b, c, "GPU", "cuda:%d, %s", f->ordinal, f->name);
    qn_doctor_line(b, c, "capability", "%d.%d, %d multiprocessors", f->major, f->minor, f->n_sm);
    qn_doctor_line(b, c, "memory", "%s, %s free", qn_human_bytes(f->memory, memory), qn_human_bytes(f->free, free_bytes));
    qn_doctor_line(b, c, "driver", "for CUDA %d.%d", f->driver / 1000, f->driver % 1000 / 10);
    if (measured) {
        const struct { const char *name, *unit; double by; const qn_stats *s; const char *what; } rows[] = {
            { "", "GB/s", 1e9, &f->copy, "from pinned memory of the host" },
            { "arithmetic", "TFLOP/s", 1e12, &f->tensor, "f16 products with float sums, on the tensor cores" },
            { "", "TFLOP/s", 1e12, &f->f32, "f32 multiply and add" },
            { "launch", "us", 1e3, &f->launch_ns, "one kernel behind another" },
            { "", "us", 1e3, &f->trip_ns, "from the call until the host knows that it ran" },
        };
        qn_buf_puts(b, "\nMeasured: the median, its 95 % interval, samples\n");
        qn_doctor_line(b, c, "read", "%7.1f GB/s   %.1f to %.1f, %zu   %s of its memory", f->read.p50 / 1e9, f->read.lo / 1e9,
                       f->read.hi / 1e9, f->read.n, qn_human_bytes(f->bytes, bytes));
        for (size_t i = 0; i < QN_COUNT(rows); i++)
            qn_doctor_line(b, c, rows[i].name, "%7.1f %s   %.1f to %.1f, %zu   %s", rows[i].s->p50 / rows[i].by, rows[i].unit,
                           rows[i].s->lo / rows[i].by, rows[i].s->hi / rows[i].by, rows[i].s->n, rows[i].what);
    }
    qn_buf_puts(b, a->n ? "\nWorth knowing\n" : "\nNothing stands in the way.\n");
    for (int i = 0; i < a->n; i++) qn_buf_printf(b, "- %s\n", a->text[i]);
}

static void put_json(qn_buf *b, const qn_device_figures *f, const advice *a, bool measured)
{
    const struct { const char *name; const qn_stats *s; } rows[] = {
        { "read_bytes_s", &f->read }, { "copy_bytes_s", &f->copy }, { "f16_tensor_flop_s", &f->tensor },
        { "f32_flop_s", &f->f32 }, { "launch_ns", &f->launch_ns }, { "round_trip_ns", &f->trip_ns },
    };
    qn_buf_puts(b, "{\"device\":{");
    qn_doctor_json_text(b, "name", f->name);
    qn_buf_printf(b, ",\"ordinal\":%d,\"capability\":\"%d.%d\",\"multiprocessors\":%d,\"driver\":%d,\"memory_bytes\":%llu,"
                  "\"free_bytes\":%llu},\n \"ceilings\":", f->ordinal, f->major, f->minor, f->n_sm, f->driver,
                  (unsigned long long)f->memory, (unsigned long long)f->free);
    qn_buf_puts(b, measured ? "{" : "null");
    for (size_t i = 0; measured && i < QN_COUNT(rows); i++) {
        qn_buf_puts(b, i ? ",\n  " : "");
        qn_doctor_json_stats(b, rows[i].name, rows[i].s);
    }
    qn_buf_puts(b, measured ? "},\n \"advice\":[" : ",\n \"advice\":[");
    for (int i = 0; i < a->n; i++) {
        qn_buf_puts(b, i ? ",\n  " : "\n  ");
        qn_buf_json(b, a->text[i], strlen(a->text[i]));
    }
    qn_buf_puts(b, "]}\n");
}

static bool measure(qn_cli *c, const char *device, qn_device_figures *f, qn_err *e)
{
    qn_bar bar;
    qn_ceilings k;
    qn_bar_open(&bar, c);
    qn_interrupt_polled(true);
    const bool ok = qn_device_measure(device, &(qn_ceilings_opts){ .progress = qn_bar_show, .user = &bar }, f, e);
    qn_interrupt_polled(false);
    qn_bar_close(&bar);
    if (!ok) return false;
    qn_device_ceilings(f, &k);
    qn_cli_keep_ceilings(c, &k);
    return true;
}

int qn_doctor_device(qn_cli *c, const char *device, bool fast, bool json)
{
    qn_device_figures f;
    advice a = { .n = 0 };
    qn_err e = { 0 };
    qn_buf out = { 0 };
    if (!(fast ? qn_device_look(device, &f, &e) : measure(c, device, &f, &e))) return qn_cli_fail(c, &e);
    advise(&a, &f, !fast);
    if (json) put_json(&out, &f, &a, !fast);
    else put_human(&out, c, &f, &a, !fast);
    return qn_cli_finish(c, &out);
}
