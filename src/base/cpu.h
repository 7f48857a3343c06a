/* cpu.h - what this processor can do, and how many threads are worth starting on it. */
#ifndef QN_CPU_H
#define QN_CPU_H

#include <pthread.h>

#include "base/types.h"

/* The ISA ladder, lowest first, one processor's rungs behind the other's; tokens are those of kernels.def rows and of --isa. */
typedef enum qn_isa {
    ISA_ref = 1, ISA_base, ISA_avx2, ISA_avxvnni, ISA_avx512, ISA_avx512vnni, ISA_avx512bf16, ISA_neondot, ISA_neoni8mm
} qn_isa; /* equal to QN_ISA_* of quern.h */

#define QN_ISA_CHOICES "auto|ref|base|avx2|avxvnni|avx512|avx512vnni|avx512bf16|neondot|neoni8mm"

qn_isa qn_cpu_isa(void);                 /* highest level this machine runs (and the system saves the registers of) */
bool qn_cpu_runs(qn_isa isa);            /* this level too? Most processors with AVX-512 lack avxvnni, a rung beside the ladder */
const char *qn_isa_name(qn_isa isa);     /* "avx2" */
bool qn_isa_parse(const char *s, int *isa); /* "auto" gives 0 */
const char *qn_cpu_name(void);           /* "AMD EPYC 9654", for headers and cache keys */

int qn_cpu_threads(void);                /* physical cores within affinity mask and cgroup quota; at least 1 */
/* Where lanes should run, from one look at the machine: how many threads are worth starting, and the first processing unit of
 * each of the n allowed cores. */
#define QN_PLACES 1024
typedef struct qn_places { int threads, n, cpu[QN_PLACES]; } qn_places;
void qn_cpu_places(qn_places *p);
void qn_cpu_pin(pthread_t thread, int cpu); /* -1: it may run anywhere. Best effort. */
int qn_cpu_here(void);                      /* where the calling thread runs; -1: nobody knows */

typedef struct qn_topology {
    int packages, cores, pus, numa_nodes, allowed_pus;
    double quota_cpus; /* 0: none */
    u64 l2, l3, memory;
} qn_topology;
void qn_cpu_topology(qn_topology *t);

/* May what is limited to level `most` use this one? */
static inline bool qn_isa_within(qn_isa isa, qn_isa most) { return isa == most || (isa < most && isa != ISA_avxvnni); }

#endif
