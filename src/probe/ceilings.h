/* ceilings.h - how fast this machine is at the few things that decode and prefill are made of: reading memory, multiplying and
 * adding, meeting at a barrier, asking for the time. Measured as the engine would use it: the same pool, threads and pages. */
#ifndef QN_CEILINGS_H
#define QN_CEILINGS_H

#include "base/cpu.h"
#include "base/err.h"
#include "base/stats.h"

typedef struct qn_ceilings_opts {
    int threads;             /* 0: as many as the engine would take */
    int isa;                 /* qn_isa; 0: the highest of this machine */
    double seconds;          /* for each measurement; 0: 0.3 */
    u64 bytes;               /* to read; 0: four times the last cache, 64 to 512 MiB, at most an eighth of the free memory */
    qn_progress_fn progress; /* may be NULL */
    void *user;
} qn_ceilings_opts;

typedef struct qn_ceilings {
    char device[96];         /* "NVIDIA H200"; "": the processor's */
    int threads;
    qn_isa isa;
    u64 bytes;               /* of the memory that was read */
    qn_stats read_small;     /* bytes per second from pages of 4 KiB, all threads together */
    qn_stats read_huge;      /* the same from huge pages, as far as the system gave them: */
    double huge_share;       /* 0..1 */
    qn_stats flops;          /* f32 operations per second; a multiply-add counts as two */
    qn_stats int8;           /* operations per second on bytes that are multiplied and added up, counted likewise */
    qn_stats bf16;           /* the same on bfloat16; n = 0: no instruction for it here */
    qn_stats barrier_ns;     /* an empty job on all lanes, from call to return */
    qn_stats clock_ns;       /* one reading of the clock */
} qn_ceilings;

bool qn_ceilings_measure(qn_ceilings *c, const qn_ceilings_opts *o, qn_err *e);

/* ---- ceiling_loops.c: the loops that are timed (reading: base/sweep.h) */

/* Does n rounds of multiply-adds on registers alone with what isa has; returns the operations done. *sink keeps them alive. */
u64 qn_loop_fma(qn_isa isa, u64 n, float *sink);

/* ---- ceiling_dots.c: the same for dot products of bytes and of bfloat16. 0: this machine has no instruction for it. */

u64 qn_loop_dot8(qn_isa isa, u64 n, float *sink);
u64 qn_loop_bf16(qn_isa isa, u64 n, float *sink);

#endif
