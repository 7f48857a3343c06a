/* machine.h - what the system says about the machine: processor, memory, pages, frequency, load, libraries. Nothing is measured
 * here; see ceilings.h. */
#ifndef QN_MACHINE_H
#define QN_MACHINE_H

#include "base/cpu.h"

typedef struct qn_library { const char *name, *what; bool present; char detail[96]; } qn_library;

typedef struct qn_machine {
    char cpu[128];
    qn_isa isa;
    qn_topology topo;
    int threads;              /* that the engine would start */
    u64 available, limit;     /* bytes of memory; limit: the cgroup's, 0: none */
    char huge_pages[16];      /* "always", "madvise", "never"; "": unknown */
    char governor[32];        /* of the first CPU's frequency; "": unknown */
    char clock_source[32];    /* "tsc"; "": unknown */
    char kernel[96];          /* "Linux 6.1.0" */
    double load;              /* runnable threads, average of a minute; -1: unknown */
    qn_library libraries[3];  /* OpenBLAS, oneDNN, CUDA */
} qn_machine;

/* Never fails: what cannot be learned is left empty. */
void qn_machine_look(qn_machine *m);
u64 qn_machine_available(void); /* bytes that could be taken without swapping; 0: unknown */
/* Loads each optional library to see whether it is there and what it says of itself. */
void qn_machine_look_libraries(qn_machine *m);

#endif
