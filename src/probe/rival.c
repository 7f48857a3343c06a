/* rival.c - the list of rivals: one row for each library. */
#include "probe/rival.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe/machine.h"

void qn_rivals_open(qn_rivals *r, int threads)
{
    static const struct { bool (*open)(qn_rivals *, int, const char *); const char *absent; } rows[] = {
        { qn_rival_blas, "OpenBLAS (libopenblas.so.0) is not here: no baseline by it" },
        { qn_rival_dnn, "oneDNN (libdnnl.so.3 or .2) is not here: no baseline by it" },
    };
    qn_machine m = { 0 };
    *r = (qn_rivals){ 0 };
    qn_machine_look_libraries(&m); /* in the order of rows */
    for (size_t i = 0; i < QN_COUNT(rows); i++)
        if (!rows[i].open(r, threads, m.libraries[i].detail)) snprintf(r->absent[i], sizeof r->absent[i], "%s", rows[i].absent);
}

void qn_rivals_close(qn_rivals *r)
{
    qn_rival_blas_close(r);
    qn_rival_dnn_close(r);
    r->n = 0;
}

/* Threads of ours have one core each and keep it. */
static void leave(pid_t thread, int cpu)
{
    cpu_set_t mask;
    if (sched_getaffinity(thread, sizeof mask, &mask) || CPU_COUNT(&mask) < 2) return;
    CPU_CLR((size_t)cpu, &mask);
    sched_setaffinity(thread, sizeof mask, &mask);
}

void qn_rivals_leave(int cpu)
{
    DIR *tasks = opendir("/proc/self/task");
    const long self = syscall(SYS_gettid);
    for (const struct dirent *t; tasks && (t = readdir(tasks));) {
        const long id = strtol(t->d_name, NULL, 10);
        if (id > 0 && id != self) leave((pid_t)id, cpu);
    }
    if (tasks) closedir(tasks);
}
