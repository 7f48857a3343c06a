/* device.h - a GPU as the probe sees it: what it is, and how fast it is at what a plan there is made of. */
#ifndef QN_PROBE_DEVICE_H
#define QN_PROBE_DEVICE_H

#include "probe/ceilings.h"

typedef struct qn_device_figures {
    char name[96];
    int ordinal, major, minor, n_sm, driver; /* driver: 13000 is CUDA 13.0 */
    u64 memory, free;         /* bytes */
    u64 bytes;                /* that were read */
    qn_stats read;            /* bytes per second from the device's memory */
    qn_stats copy;            /* the same from pinned memory of the host */
    qn_stats tensor, f32;     /* operations per second: f16 products with float sums; floats; a multiply-add counts as two */
    qn_stats launch_ns;       /* one kernel behind another */
    qn_stats trip_ns;         /* from the call until the host knows that it ran */
} qn_device_figures;

/* The name of the device that --device `word` would run on, without opening it; "": the processor. Never fails. */
void qn_device_name(const char *word, char name[96]);

/* What it is. Says in one sentence why not. word: "cuda" or "cuda:N". */
bool qn_device_look(const char *word, qn_device_figures *out, qn_err *e);
/* How fast it is: about two seconds. o: seconds, progress and user count. */
bool qn_device_measure(const char *word, const qn_ceilings_opts *o, qn_device_figures *out, qn_err *e);
/* The same as ceilings of plans: weights of all types are multiplied as f16 there. */
void qn_device_ceilings(const qn_device_figures *f, qn_ceilings *out);

#endif
