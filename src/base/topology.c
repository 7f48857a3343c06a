/* topology.c - threads and places from hwloc, within affinity mask and cgroup quota. */
#include <hwloc.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>

#include "base/cpu.h"

/* CPUs' worth of time that the cgroup grants; 0: no limit. Version 2 has "max 100000", version 1 two files. */
static double quota_cpus(void)
{
    long long quota = -1, period = 0;
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (f) {
        if (fscanf(f, "%lld %lld", &quota, &period) != 2) quota = -1;
        fclose(f);
        return quota > 0 && period > 0 ? (double)quota / (double)period : 0;
    }
    FILE *q = fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "re"), *p = fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "re");
    const bool ok = q && p && fscanf(q, "%lld", &quota) == 1 && fscanf(p, "%lld", &period) == 1;
    if (q) fclose(q);
    if (p) fclose(p);
    return ok && quota > 0 && period > 0 ? (double)quota / (double)period : 0;
}

/* Read once: that takes 2 ms, and a recorded run asks four times. What the process may use is asked anew each time. */
static hwloc_topology_t machine;
static bool known;

static void load_machine(void)
{
    if (hwloc_topology_init(&machine)) return;
    known = hwloc_topology_load(machine) == 0;
    if (!known) hwloc_topology_destroy(machine);
}

/* hwloc's own allowed set already honours cgroup cpusets; the affinity mask of the process narrows it. NULL: unknown. */
static hwloc_cpuset_t find_allowed(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_machine);
    hwloc_cpuset_t allowed = known ? hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(machine)) : NULL;
    hwloc_cpuset_t mask = hwloc_bitmap_alloc();
    if (allowed && mask && hwloc_get_cpubind(machine, mask, HWLOC_CPUBIND_PROCESS) == 0) hwloc_bitmap_and(allowed, allowed, mask);
    hwloc_bitmap_free(mask);
    return allowed;
}

static int count_allowed(hwloc_topology_t t, hwloc_const_cpuset_t allowed, hwloc_obj_type_t type)
{
    int n = 0;
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(t, type, o));) n += hwloc_bitmap_intersects(o->cpuset, allowed);
    return n;
}

static void describe(hwloc_topology_t t, hwloc_const_cpuset_t allowed, qn_topology *out)
{
    out->packages = qn_maxi(1, hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PACKAGE));
    out->cores = qn_maxi(1, count_allowed(t, allowed, HWLOC_OBJ_CORE));
    out->pus = qn_maxi(1, hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PU));
    out->numa_nodes = qn_maxi(1, hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_NUMANODE));
    out->allowed_pus = qn_maxi(1, hwloc_bitmap_weight(allowed));
    const hwloc_obj_t l2 = hwloc_get_obj_by_type(t, HWLOC_OBJ_L2CACHE, 0), l3 = hwloc_get_obj_by_type(t, HWLOC_OBJ_L3CACHE, 0);
    if (l2) out->l2 = l2->attr->cache.size;
    if (l3) out->l3 = l3->attr->cache.size;
    out->memory = hwloc_get_root_obj(t)->total_memory;
}

static void list_cores(hwloc_topology_t t, hwloc_const_cpuset_t allowed, qn_places *p)
{
    hwloc_cpuset_t set = hwloc_bitmap_alloc();
    for (hwloc_obj_t core = NULL; set && p->n < QN_PLACES && (core = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_CORE, core));) {
        hwloc_bitmap_and(set, core->cpuset, allowed);
        if (hwloc_bitmap_first(set) >= 0) p->cpu[p->n++] = hwloc_bitmap_first(set);
    }
    hwloc_bitmap_free(set);
}

static void look(qn_topology *out, qn_places *p)
{
    *out = (qn_topology){ .packages = 1, .cores = 1, .pus = 1, .numa_nodes = 1, .allowed_pus = 1, .quota_cpus = quota_cpus() };
    p->n = 0;
    const hwloc_cpuset_t allowed = find_allowed();
    if (allowed) {
        describe(machine, allowed, out);
        list_cores(machine, allowed, p);
        hwloc_bitmap_free(allowed);
    }
    p->threads = qn_mini(out->cores, out->allowed_pus);
    if (out->quota_cpus > 0) p->threads = qn_mini(p->threads, (int)ceil(out->quota_cpus));
    p->threads = qn_maxi(1, p->threads);
}

void qn_cpu_topology(qn_topology *out)
{
    qn_places p;
    look(out, &p);
}

void qn_cpu_places(qn_places *p)
{
    qn_topology t;
    look(&t, p);
}

int qn_cpu_threads(void)
{
    qn_places p;
    qn_cpu_places(&p);
    return p.threads;
}

int qn_cpu_here(void) { return sched_getcpu(); }

void qn_cpu_pin(pthread_t thread, int cpu)
{
    cpu_set_t one;
    if (cpu < 0) return;
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    pthread_setaffinity_np(thread, sizeof one, &one);
}
