/* advice.c - what stands in the way of a model here, from what the machine says of itself and what was measured. */
#include "probe/advice.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

typedef struct state { const qn_machine *m; const qn_ceilings *c; qn_advice *out; } state;

static void advise(state *f, const char *fmt, ...) QN_PRINTF(2, 3);
static void advise(state *f, const char *fmt, ...)
{
    va_list ap;
    if (f->out->n == (int)QN_COUNT(f->out->at)) return;
    va_start(ap, fmt);
    vsnprintf(f->out->at[f->out->n++], sizeof f->out->at[0], fmt, ap);
    va_end(ap);
}

static void look_at_cores(state *f)
{
    const qn_machine *m = f->m;
    const qn_topology *t = &m->topo;
    if (t->quota_cpus > 0 && t->quota_cpus < t->cores)
        advise(f, "The cgroup grants %.1f CPUs of %d cores: more threads than that only wait for each other.", t->quota_cpus,
               t->cores);
    if (t->allowed_pus < t->pus)
        advise(f, "The affinity mask allows %d of %d hardware threads.", t->allowed_pus, t->pus);
    if (t->allowed_pus > t->cores)
        advise(f, "Each core has %d hardware threads (SMT siblings) that share its arithmetic: quern starts one thread per core.",
               t->allowed_pus / t->cores);
    if (t->numa_nodes > 1)
        advise(f, "Memory lies on %d nodes: a thread reads its own node fastest.", t->numa_nodes);
    if (m->isa < ISA_avx2)
        advise(f, "No AVX2 here: the portable kernels run, several times slower than AVX2 would be.");
    if (m->load > 0.5 * t->cores)
        advise(f, "The load average is %.1f on %d cores: other programs take their share.", m->load, t->cores);
    if (strcmp(m->governor, "powersave") == 0)
        advise(f, "The frequency governor is 'powersave': 'performance' or 'schedutil' may run faster.");
}

static void look_at_memory(state *f)
{
    const qn_machine *m = f->m;
    char a[32], b[32];
    const u64 room = m->limit && m->limit < m->available ? m->limit : m->available;
    if (m->limit)
        advise(f, "The cgroup limits memory to %s of %s.", qn_human_bytes(m->limit, a), qn_human_bytes(m->topo.memory, b));
    if (room && room < (u64)2 << 30)
        advise(f, "Only %s of memory is free: small models only.", qn_human_bytes(room, a));
    if (strcmp(m->huge_pages, "never") == 0)
        advise(f, "Huge pages are off: as root, echo madvise > /sys/kernel/mm/transparent_hugepage/enabled lets quern use them.");
    else if (f->c && f->c->huge_share < 0.5)
        advise(f, "Huge pages were asked for, and %.0f %% came: memory is short or fragmented.", 100 * f->c->huge_share);
}

static double spread(const qn_stats *s) { return s->p50 > 0 ? (s->hi - s->lo) / s->p50 : 0; }

static void look_at_figures(state *f)
{
    const qn_ceilings *c = f->c;
    double worst = spread(&c->read_small);
    if (spread(&c->read_huge) > worst) worst = spread(&c->read_huge);
    if (spread(&c->flops) > worst) worst = spread(&c->flops);
    const double tail = c->read_huge.p50 > 0 ? c->read_huge.p50 / c->read_huge.min : 1;
    if (worst > 0.05 || tail > 2)
        advise(f, "The machine is disturbed: the medians may be off by %.0f %%, and single reads took up to %.1f times as long.",
               100 * worst, tail);
    if (c->huge_share > 0.5 && c->read_huge.p50 > 1.1 * c->read_small.p50)
        advise(f, "Huge pages read %.0f %% faster than pages of 4 KiB: quern asks for them wherever it copies weights.",
               100 * (c->read_huge.p50 / c->read_small.p50 - 1));
    if (c->threads > 1 && c->barrier_ns.p50 > 20000)
        advise(f, "A barrier takes %.0f us: the %d threads do not run at the same time; fewer (-t) may be faster.",
               c->barrier_ns.p50 / 1e3, c->threads);
    if (c->clock_ns.p50 > 200)
        advise(f, "Reading the clock takes %.0f ns (source '%s'): timing every step will cost something here.", c->clock_ns.p50,
               f->m->clock_source);
}

void qn_advise(const qn_machine *m, const qn_ceilings *c, qn_advice *out)
{
    state s = { m, c, out };
    out->n = 0;
    look_at_cores(&s);
    look_at_memory(&s);
    if (c) look_at_figures(&s);
}
