/* device.c - measures a GPU's limits with the kernels of kernel/cuda/ceiling.cu, timed by the device's own events: each figure is
 * the median of many short samples. */
#include "probe/device.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kernel/cuda/abi.h"
#include "kernel/cuda/cuda.h"
#include "kernel/cuda/fatbin.h"
#include "kernel/cuda/gpu.h"
#include "kernel/cuda/where.h"

#define LIBRARY "libcuda.so.1"
#define MOST_SAMPLES 2048
#define READ_BYTES ((u64)2 << 30)   /* far more than a second cache holds */
#define COPY_BYTES ((size_t)64 << 20)
#define LAUNCHES 200                /* in a sample */

void qn_device_name(const char *word, char name[96])
{
    qn_where w;
    qn_err e = { 0 };
    qn_driver d;
    int device = 0;
    name[0] = 0;
    if (qn_n_fatbins == 0 || !qn_where_parse(word, &w, &e) || !w.cuda || !qn_driver_open(&d, LIBRARY, &e)) return;
    if (d.init(0) != 0 || d.device_get(&device, w.ordinal) != 0 || d.device_name(name, 96, device) != 0) name[0] = 0;
    qn_driver_close(&d);
}

static bool ordinal_of(const char *word, int *ordinal, qn_err *e)
{
    qn_where w;
    if (!qn_where_parse(word, &w, e)) return false;
    *ordinal = w.ordinal;
    return w.cuda || qn_fail(e, QN_EUSAGE, "%s is no device of its own", word);
}

bool qn_device_look(const char *word, qn_device_figures *out, qn_err *e)
{
    int ordinal = 0;
    qn_cuda_info i;
    *out = (qn_device_figures){ 0 };
    if (!ordinal_of(word, &ordinal, e) || !qn_cuda_look(ordinal, &i, e)) return false;
    out->ordinal = i.ordinal, out->major = i.major, out->minor = i.minor, out->n_sm = i.n_sm, out->driver = i.driver;
    out->memory = i.memory, out->free = i.free;
    memcpy(out->name, i.name, sizeof out->name);
    return true;
}

/* ---- sampling */

typedef struct bench {
    qn_gpu gpu;
    qn_device_figures *out;
    const qn_ceilings_opts *o;
    qn_cmeasure args;
    void *begin, *end;       /* events */
    void *pinned;            /* [COPY_BYTES] */
    double *samples;         /* [MOST_SAMPLES] */
} bench;

typedef bool sample_fn(bench *b, double *sample, qn_err *e);

static bool measure(bench *b, const char *what, double share, sample_fn *take, qn_stats *s, qn_err *e)
{
    const u64 span = (u64)((b->o->seconds > 0 ? b->o->seconds : 0.3) * 1e9);
    size_t n = 0;
    double unused;
    if (b->o->progress && !b->o->progress(b->o->user, what, share)) return qn_fail(e, QN_ECANCELLED, "cancelled");
    for (int i = 0; i < 3; i++) /* clocks rise */
        if (!take(b, &unused, e)) return false;
    const u64 end = qn_now_ns() + span;
    while (n < MOST_SAMPLES && (n < 5 || qn_now_ns() < end))
        if (!take(b, &b->samples[n++], e)) return false;
    qn_stats_of(b->samples, n, s);
    return true;
}

/* What `times` launches take by the device's clock, in seconds. */
static bool time_launches(bench *b, int fn, qn_grid g, int times, double *seconds, qn_err *e)
{
    const qn_driver *d = &b->gpu.d;
    float ms = 0;
    if (!qn_driver_ok(d, d->event_record(b->begin, b->gpu.stream), "recording an event", e)) return false;
    for (int i = 0; i < times; i++)
        if (!qn_gpu_launch(&b->gpu, fn, g, &b->args, e)) return false;
    if (!qn_driver_ok(d, d->event_record(b->end, b->gpu.stream), "recording an event", e) || !qn_gpu_wait(&b->gpu, e) ||
        !qn_driver_ok(d, d->event_ms(&ms, b->begin, b->end), "reading an event", e)) return false;
    *seconds = (double)ms * 1e-3;
    return ms > 0 || qn_fail(e, QN_EFAIL, "the device's clock stands still");
}

static bool take_read(bench *b, double *out, qn_err *e)
{
    const qn_grid g = { 4 * (unsigned)b->out->n_sm, 1, 512, 0 };
    if (!time_launches(b, FN_read_all, g, 1, out, e)) return false;
    *out = (double)b->args.bytes / *out;
    return true;
}

static bool take_tensor(bench *b, double *out, qn_err *e)
{
    const qn_grid g = { 2 * (unsigned)b->out->n_sm, 1, 256, 0 };
    b->args.rounds = 2000;
    if (!time_launches(b, FN_tensor_rate, g, 1, out, e)) return false;
    *out = (double)g.x * 2000 * (double)(1 << 21) / *out;
    return true;
}

static bool take_float(bench *b, double *out, qn_err *e)
{
    const qn_grid g = { 8 * (unsigned)b->out->n_sm, 1, 256, 0 };
    b->args.rounds = 1000;
    if (!time_launches(b, FN_float_rate, g, 1, out, e)) return false;
    *out = (double)g.x * 1000 * (double)(1 << 16) / *out;
    return true;
}

static bool take_launch(bench *b, double *out, qn_err *e)
{
    if (!time_launches(b, FN_nothing, (qn_grid){ 1, 1, 32, 0 }, LAUNCHES, out, e)) return false;
    *out *= 1e9 / LAUNCHES;
    return true;
}

static bool take_trip(bench *b, double *out, qn_err *e)
{
    const u64 begin = qn_now_ns();
    if (!qn_gpu_launch(&b->gpu, FN_nothing, (qn_grid){ 1, 1, 32, 0 }, &b->args, e) || !qn_gpu_wait(&b->gpu, e)) return false;
    *out = (double)(qn_now_ns() - begin);
    return true;
}

static bool take_copy(bench *b, double *out, qn_err *e)
{
    const qn_driver *d = &b->gpu.d;
    const u64 begin = qn_now_ns();
    if (!qn_driver_ok(d, d->copy_up(b->args.at, b->pinned, COPY_BYTES, b->gpu.stream), "copying", e) ||
        !qn_gpu_wait(&b->gpu, e)) return false;
    *out = (double)COPY_BYTES * 1e9 / (double)(qn_now_ns() - begin);
    return true;
}

/* ---- all of it */

static bool prepare(bench *b, qn_err *e)
{
    const qn_driver *d = &b->gpu.d;
    const u64 round = 8 * 16 * 512 * 4 * (u64)b->out->n_sm; /* of read_all */
    const u64 room = b->out->free / 4 < READ_BYTES ? b->out->free / 4 : READ_BYTES;
    b->args.bytes = b->out->bytes = room / round * round;
    if (b->args.bytes < COPY_BYTES)
        return qn_fail(e, QN_ENOMEM, "not enough memory on cuda:%d to measure it: %llu bytes are free", b->out->ordinal,
                       (unsigned long long)b->out->free);
    return qn_gpu_take(&b->gpu, "measuring", b->args.bytes, &b->args.at, e) && qn_gpu_take(&b->gpu, "measuring", 64,
                                                                                           &b->args.sink, e) &&
           qn_driver_ok(d, d->fill(b->args.at, 0x5A, b->args.bytes, b->gpu.stream), "clearing memory", e) &&
           qn_driver_ok(d, d->event_create(&b->begin, 0), "making an event", e) &&
           qn_driver_ok(d, d->event_create(&b->end, 0), "making an event", e) &&
           qn_driver_ok(d, d->host_alloc(&b->pinned, COPY_BYTES, 0), "taking pinned memory", e);
}

bool qn_device_measure(const char *word, const qn_ceilings_opts *o, qn_device_figures *out, qn_err *e)
{
    bench b = { .out = out, .o = o };
    if (!qn_device_look(word, out, e)) return false;
    if (qn_n_fatbins == 0)
        return qn_fail(e, QN_EUNSUPPORTED, "this build holds no CUDA kernels; `make CUDA=1` makes one that does");
    b.samples = qn_new_array(MOST_SAMPLES, sizeof *b.samples, e);
    const bool ok = b.samples && qn_driver_open(&b.gpu.d, LIBRARY, e) && qn_gpu_open(&b.gpu, out->ordinal, true, e) &&
                    prepare(&b, e) && measure(&b, "reading", 0.0, take_read, &out->read, e) &&
                    measure(&b, "tensor cores", 0.2, take_tensor, &out->tensor, e) &&
                    measure(&b, "floats", 0.4, take_float, &out->f32, e) &&
                    measure(&b, "launches", 0.6, take_launch, &out->launch_ns, e) &&
                    measure(&b, "round trips", 0.7, take_trip, &out->trip_ns, e) &&
                    measure(&b, "copying", 0.85, take_copy, &out->copy, e);
    if (b.begin) b.gpu.d.event_destroy(b.begin);
    if (b.end) b.gpu.d.event_destroy(b.end);
    if (b.pinned) b.gpu.d.host_free(b.pinned);
    qn_gpu_close(&b.gpu);
    qn_free(b.samples);
    return ok;
}

void qn_device_ceilings(const qn_device_figures *f, qn_ceilings *out)
{
    *out = (qn_ceilings){ .bytes = f->bytes, .read_huge = f->read, .flops = f->f32, .int8 = f->tensor, .bf16 = f->tensor,
                          .barrier_ns = f->launch_ns, .clock_ns = f->trip_ns };
    snprintf(out->device, sizeof out->device, "%s", f->name);
}
