/* ceilings.c - measures the machine's limits. Each figure is the median of many short samples of the pool doing one loop; the
 * spread says how far it can be trusted. Both kinds of pages are measured because the difference is what huge pages are worth. */
#include "probe/ceilings.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/sweep.h"
#include "probe/machine.h"

#define MOST_SAMPLES 4096

typedef struct bench {
    qn_ceilings *out;
    const qn_ceilings_opts *o;
    qn_pool *pool;
    double *samples;             /* [MOST_SAMPLES] */
    size_t n;
    u64 end_ns;                  /* of the measurement that runs */
    u8 *memory;                  /* [out->bytes] */
    u64 rounds;                  /* of multiply-adds in a sample */
    u64 (*loop)(qn_isa, u64, float *);
    struct lane_sink { u64 flops; float sum; char pad[52]; } *sinks; /* [threads], a cache line each */
} bench;

static_assert(sizeof(struct lane_sink) == 64, "two lanes on one line would slow each other");

/* ---- sampling */

static bool begin(bench *b, const char *what, double share, qn_err *e)
{
    b->n = 0;
    b->end_ns = qn_now_ns() + (u64)((b->o->seconds > 0 ? b->o->seconds : 0.3) * 1e9);
    if (b->o->progress && !b->o->progress(b->o->user, what, share)) return qn_fail(e, QN_ECANCELLED, "cancelled");
    return true;
}

static bool wants_more(const bench *b) { return b->n < MOST_SAMPLES && (b->n < 5 || qn_now_ns() < b->end_ns); }

static void finish(bench *b, qn_stats *s) { qn_stats_of(b->samples, b->n, s); }

/* ---- reading memory */

static void touch(const void *args, qn_lane lane)
{
    const bench *b = args;
    const int parts = (int)(b->out->bytes / QN_SWEEP_PAGE);
    const size_t from = (size_t)lane_begin(parts, lane) * QN_SWEEP_PAGE, to = (size_t)lane_end(parts, lane) * QN_SWEEP_PAGE;
    memset(b->memory + from, lane.i + 1, to - from);
}

/* Bytes of [p, p + n) that lie on huge pages, as the system tells it. */
static u64 huge_bytes(const u8 *p, u64 n)
{
    FILE *f = fopen("/proc/self/smaps", "re");
    char line[256];
    unsigned long long lo, hi, kib;
    bool inside = false;
    u64 sum = 0;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%llx-%llx ", &lo, &hi) == 2) inside = lo < (uintptr_t)p + n && hi > (uintptr_t)p;
        else if (inside && sscanf(line, "AnonHugePages: %llu kB", &kib) == 1) sum += (u64)kib << 10;
    }
    if (f) fclose(f);
    return sum;
}

static bool measure_read(bench *b, bool huge, const char *what, double share, qn_stats *s, qn_err *e)
{
    if (!begin(b, what, share, e)) return false;
    b->memory = qn_pages_new(b->out->bytes, e);
    if (!b->memory) return false;
    if (!huge) madvise(b->memory, b->out->bytes, MADV_NOHUGEPAGE); /* nothing is touched yet, so it takes hold */
    qn_pool_run(b->pool, touch, b);
    begin(b, what, share, e); /* the clock starts after the pages are there */
    while (wants_more(b)) {
        u64 sink = 0;
        const u64 ns = qn_sweep(b->pool, b->memory, b->out->bytes, &sink);
        b->samples[b->n++] = (double)b->out->bytes * 1e9 / (double)ns;
    }
    finish(b, s);
    if (huge) b->out->huge_share = (double)huge_bytes(b->memory, b->out->bytes) / (double)b->out->bytes;
    qn_pages_free(b->memory, b->out->bytes);
    b->memory = NULL;
    return true;
}

/* ---- arithmetic, barrier, clock */

static void multiply(const void *args, qn_lane lane)
{
    const bench *b = args;
    b->sinks[lane.i].flops = b->loop(b->out->isa, b->rounds, &b->sinks[lane.i].sum);
}

static bool measure_flops(bench *b, u64 (*loop)(qn_isa, u64, float *), double share, qn_stats *s, qn_err *e)
{
    float sink = 0;
    if (!begin(b, "arithmetic", share, e)) return false;
    b->loop = loop;
    if (loop(b->out->isa, 1, &sink) == 0) return true; /* not on this machine */
    b->rounds = 40000; /* about 0.1 ms: long beside the barrier, short beside a time slice */
    while (wants_more(b)) {
        const u64 start = qn_now_ns();
        qn_pool_run(b->pool, multiply, b);
        const double ns = (double)(qn_now_ns() - start);
        u64 flops = 0;
        for (int i = 0; i < b->out->threads; i++) flops += b->sinks[i].flops;
        b->samples[b->n++] = (double)flops * 1e9 / ns;
    }
    finish(b, s);
    return true;
}

static void nothing(const void *args, qn_lane lane) { (void)args, (void)lane; }

static bool measure_barrier(bench *b, double share, qn_err *e)
{
    if (!begin(b, "barrier", share, e)) return false;
    while (wants_more(b)) {
        const u64 start = qn_now_ns();
        qn_pool_run(b->pool, nothing, b);
        b->samples[b->n++] = (double)(qn_now_ns() - start);
    }
    finish(b, &b->out->barrier_ns);
    return true;
}

static bool measure_clock(bench *b, double share, qn_err *e)
{
    const int calls = 100;
    if (!begin(b, "clock", share, e)) return false;
    while (b->n < 1000 && wants_more(b)) {
        const u64 start = qn_now_ns();
        u64 now = start;
        for (int i = 0; i < calls; i++) now = qn_now_ns();
        b->samples[b->n++] = (double)(now - start) / calls;
    }
    finish(b, &b->out->clock_ns);
    return true;
}

/* ---- all of it */

static u64 choose_bytes(void)
{
    qn_topology t;
    qn_cpu_topology(&t);
    const u64 mib = (u64)1 << 20, room = qn_machine_available() / 8;
    u64 bytes = 4 * t.l3;
    bytes = bytes < 64 * mib ? 64 * mib : bytes > 512 * mib ? 512 * mib : bytes;
    if (room && bytes > room) bytes = room;
    return bytes < 8 * mib ? 8 * mib : bytes;
}

bool qn_ceilings_measure(qn_ceilings *c, const qn_ceilings_opts *o, qn_err *e)
{
    *c = (qn_ceilings){ .isa = qn_cpu_isa() };
    if (o->isa > 0 && (qn_isa)o->isa < c->isa) c->isa = (qn_isa)o->isa;
    bench b = { .out = c, .o = o, .pool = qn_pool_open(o->threads, e) };
    if (!b.pool) return false;
    c->threads = qn_pool_n(b.pool);
    c->bytes = (o->bytes ? o->bytes : choose_bytes()) / QN_SWEEP_PAGE * QN_SWEEP_PAGE;
    b.samples = qn_new_array(MOST_SAMPLES, sizeof *b.samples, e);
    b.sinks = b.samples ? qn_new_array((size_t)c->threads, sizeof *b.sinks, e) : NULL;
    bool ok = b.sinks && (c->bytes > 0 || qn_fail(e, QN_EUSAGE, "nothing to read: fewer bytes than a page"));
    ok = ok && measure_read(&b, false, "reading 4 KiB pages", 0.0, &c->read_small, e)
        && measure_read(&b, true, "reading huge pages", 0.25, &c->read_huge, e)
        && measure_flops(&b, qn_loop_fma, 0.5, &c->flops, e) && measure_flops(&b, qn_loop_dot8, 0.6, &c->int8, e)
        && measure_flops(&b, qn_loop_bf16, 0.7, &c->bf16, e)
        && measure_barrier(&b, 0.8, e) && measure_clock(&b, 0.95, e);
    qn_free(b.samples);
    qn_free(b.sinks);
    qn_pool_close(b.pool);
    return ok;
}
