/* rival.c - the list of rivals: one row for each library. */
#include "probe/rival.h"

#include <stdio.h>

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
