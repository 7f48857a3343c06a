/* machine.c - reads what the system says about itself. Every source may be absent (containers, other systems): then its field
 * stays empty and nobody is told off. */
#include "probe/machine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/str.h"

/* The first line of a small file, without its end; "" when it cannot be read. */
static void read_line(const char *path, char *out, size_t cap)
{
    FILE *f = fopen(path, "re");
    if (!f || !fgets(out, (int)cap, f)) out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    if (f) fclose(f);
}

/* The choice in brackets: "always [madvise] never" */
static void read_chosen(const char *path, char *out, size_t cap)
{
    char line[128];
    read_line(path, line, sizeof line);
    const char *open = strchr(line, '['), *shut = open ? strchr(open, ']') : NULL;
    snprintf(out, cap, "%.*s", shut ? (int)(shut - open - 1) : 0, shut ? open + 1 : "");
}

static u64 read_bytes(const char *path)
{
    char line[64];
    u64 n;
    read_line(path, line, sizeof line);
    return qn_parse_u64(line, &n) && n < (u64)1 << 60 ? n : 0; /* version 1 says "no limit" with a huge number */
}

/* A line of /proc/meminfo, in bytes; 0: it is not there. */
static u64 read_meminfo(const char *name)
{
    FILE *f = fopen("/proc/meminfo", "re");
    const size_t n = strlen(name);
    char line[128];
    unsigned long long kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, name, n) == 0 && sscanf(line + n, ": %llu kB", &kib) == 1) break;
    if (f) fclose(f);
    return (u64)kib << 10;
}

u64 qn_machine_available(void) { return read_meminfo("MemAvailable"); }

void qn_machine_look(qn_machine *m)
{
    char line[128];
    struct utsname u;
    *m = (qn_machine){ .isa = qn_cpu_isa(), .threads = qn_cpu_threads(), .available = qn_machine_available(), .load = -1 };
    snprintf(m->cpu, sizeof m->cpu, "%s", qn_cpu_name());
    qn_cpu_topology(&m->topo);
    if (read_meminfo("MemTotal")) m->topo.memory = read_meminfo("MemTotal"); /* hwloc misses memory that was plugged in later */
    m->limit = read_bytes("/sys/fs/cgroup/memory.max");
    if (!m->limit) m->limit = read_bytes("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    if (m->limit >= m->topo.memory) m->limit = 0;
    read_chosen("/sys/kernel/mm/transparent_hugepage/enabled", m->huge_pages, sizeof m->huge_pages);
    read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", m->governor, sizeof m->governor);
    read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", m->clock_source, sizeof m->clock_source);
    if (uname(&u) == 0) snprintf(m->kernel, sizeof m->kernel, "%.30s %.60s", u.sysname, u.release);
    read_line("/proc/loadavg", line, sizeof line);
    line[strcspn(line, " ")] = '\0';
    if (!qn_parse_double(line, 0, 1e6, &m->load)) m->load = -1;
}

/* ---- libraries: opened, asked, closed. The CUDA driver stays: it does not like to be unloaded. */

static void ask_openblas(void *lib, qn_library *l)
{
    char *(*config)(void) = (char *(*)(void))dlsym(lib, "openblas_get_config");
    if (config) snprintf(l->detail, sizeof l->detail, "%.90s", config());
}

static void ask_onednn(void *lib, qn_library *l)
{
    typedef struct version { int major, minor, patch; } version;
    const version *(*get)(void) = (const version *(*)(void))dlsym(lib, "dnnl_version");
    const version *v = get ? get() : NULL;
    if (v) snprintf(l->detail, sizeof l->detail, "version %d.%d.%d", v->major, v->minor, v->patch);
}

static void ask_cuda(void *lib, qn_library *l)
{
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(lib, "cuInit");
    int (*version)(int *) = (int (*)(int *))dlsym(lib, "cuDriverGetVersion");
    int (*count)(int *) = (int (*)(int *))dlsym(lib, "cuDeviceGetCount");
    int (*name)(char *, int, int) = (int (*)(char *, int, int))dlsym(lib, "cuDeviceGetName");
    int v = 0, n = 0;
    char first[64] = "";
    if (!init || !version || !count || !name) return;
    if (init(0) != 0 || count(&n) != 0) {
        snprintf(l->detail, sizeof l->detail, "the driver does not start: no usable GPU");
        return;
    }
    version(&v);
    if (n > 0) name(first, sizeof first, 0);
    snprintf(l->detail, sizeof l->detail, "driver for CUDA %d.%d, %d GPU%s%s%.48s", v / 1000, v % 1000 / 10, n, n == 1 ? "" : "s",
             first[0] ? ": " : "", first);
}

void qn_machine_look_libraries(qn_machine *m)
{
    static const struct { const char *name, *what, *files[3]; void (*ask)(void *, qn_library *); bool keep; } rows[] = {
        { "OpenBLAS", "matrix products", { "libopenblas.so.0", "libopenblas.so" }, ask_openblas, false },
        { "oneDNN", "matrix products", { "libdnnl.so.3", "libdnnl.so.2" }, ask_onednn, false },
        { "CUDA driver", "NVIDIA GPUs", { "libcuda.so.1" }, ask_cuda, true },
    };
    static_assert(QN_COUNT(rows) == QN_COUNT(m->libraries), "one entry each");
    for (size_t i = 0; i < QN_COUNT(rows); i++) {
        qn_library *l = &m->libraries[i];
        void *lib = NULL;
        *l = (qn_library){ .name = rows[i].name, .what = rows[i].what };
        for (size_t k = 0; !lib && k < QN_COUNT(rows[i].files) && rows[i].files[k]; k++)
            lib = dlopen(rows[i].files[k], RTLD_NOW | RTLD_LOCAL);
        if (!lib) continue;
        l->present = true;
        rows[i].ask(lib, l);
        if (!rows[i].keep) dlclose(lib);
    }
}
