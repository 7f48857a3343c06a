/* one_core.c - topology.c where there is no hwloc: one core, and threads that float. */
#include "base/cpu.h"

void qn_cpu_topology(qn_topology *out)
{
    *out = (qn_topology){ .packages = 1, .cores = 1, .pus = 1, .numa_nodes = 1, .allowed_pus = 1 };
}

void qn_cpu_places(qn_places *p) { *p = (qn_places){ .threads = 1 }; }
int qn_cpu_threads(void) { return 1; }
void qn_cpu_pin(pthread_t thread, int cpu) { (void)thread, (void)cpu; }
int qn_cpu_here(void) { return -1; }
