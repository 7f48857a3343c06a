/* cpu.c - ISA level by cpuid (through the compiler's run-time, which also asks the system whether it saves the registers) or by
 * what the kernel says of an Arm processor. How many there are is topology.c's business. */
#include "base/cpu.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const char *const isa_names[] = { "auto", "ref", "base", "avx2", "avxvnni", "avx512", "avx512vnni", "avx512bf16",
                                         "neondot", "neoni8mm" };

#if defined(__x86_64__)
#include <cpuid.h>

/* Not every compiler's run-time knows this one by name. Needs no registers beyond those of AVX. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool has_avxvnni(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4);
}

static qn_isa best_isa(void)
{
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
                      has_f16c();
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni"), bf16 = vnni && __builtin_cpu_supports("avx512bf16");
    return bf16 ? ISA_avx512bf16 : vnni ? ISA_avx512vnni : avx512 ? ISA_avx512
           : avx2 && has_avxvnni() ? ISA_avxvnni : avx2 ? ISA_avx2 : ISA_base;
}
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>

static bool has_avxvnni(void) { return false; }

static qn_isa best_isa(void)
{
    const bool dot = getauxval(AT_HWCAP) & HWCAP_ASIMDDP, i8mm = dot && (getauxval(AT_HWCAP2) & HWCAP2_I8MM);
    return i8mm ? ISA_neoni8mm : dot ? ISA_neondot : ISA_base;
}
#else
static bool has_avxvnni(void) { return false; }
static qn_isa best_isa(void) { return ISA_base; }
#endif

/* Asked once: under a hypervisor an answer takes tens of microseconds. */
qn_isa qn_cpu_isa(void)
{
    static _Atomic int known;
    const int before = atomic_load_explicit(&known, memory_order_relaxed);
    if (before) return (qn_isa)before;
    const qn_isa isa = best_isa();
    atomic_store_explicit(&known, (int)isa, memory_order_relaxed);
    return isa;
}

bool qn_cpu_runs(qn_isa isa) { return isa <= qn_cpu_isa() && (isa != ISA_avxvnni || has_avxvnni()); }

const char *qn_isa_name(qn_isa isa) { return isa_names[isa]; }

bool qn_isa_parse(const char *s, int *isa)
{
    for (size_t i = 0; i < QN_COUNT(isa_names); i++) {
        if (strcmp(s, isa_names[i])) continue;
        *isa = (int)i;
        return true;
    }
    return false;
}

/* The value of a line of /proc/cpuinfo if it is about `what`, else NULL. */
static const char *value_of(char *line, const char *what)
{
    char *colon = strchr(line, ':');
    const size_t n = strlen(what);
    if (!colon || colon[1] != ' ' || strncmp(line, what, n) || (line[n] != '\t' && line[n] != ':')) return NULL;
    colon[strcspn(colon, "\n")] = 0;
    return colon + 2;
}

/* Some hosts tell their guests a name without a number, "AMD EPYC", which Zen 4 and Zen 5 share: what was measured on one is not
 * true of the other, so such a name is completed. */
static void read_name(char *name, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[256], said[96] = "", family[16] = "", model[16] = "";
    const char *v;
    while (f && !said[0] && fgets(line, sizeof line, f)) {
        if ((v = value_of(line, "cpu family"))) snprintf(family, sizeof family, "%.15s", v);
        else if ((v = value_of(line, "model"))) snprintf(model, sizeof model, "%.15s", v);
        else if ((v = value_of(line, "model name"))) snprintf(said, sizeof said, "%.95s", v);
    }
    if (f) fclose(f);
    if (!said[0]) snprintf(name, size, "unknown CPU");
    else if (strpbrk(said, "0123456789") || !family[0] || !model[0]) snprintf(name, size, "%s", said);
    else snprintf(name, size, "%s (family %s, model %s)", said, family, model);
}

const char *qn_cpu_name(void)
{
    static char name[160]; /* filled once; a race writes the same bytes */
    if (!name[0]) read_name(name, sizeof name);
    return name;
}
