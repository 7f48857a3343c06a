/* deal.h - who reads which rows when: the matrices of a plan's phases as stages for every block. */
#ifndef QN_CUDA_DEAL_H
#define QN_CUDA_DEAL_H

#include "kernel/cuda/list.h"

/* Bytes on their way to a block, about, or one stage: at most; when fewer than so many are left of a phase. */
enum { QN_FLIGHT_MOST = 131072, QN_FLIGHT = 45056, QN_CALM = 98304 };

/* A matrix of a phase. */
typedef struct qn_part {
    qn_wmat a;
    u64 b;                  /* gated: row 0 of `up`, of the same shape */
    u64 bias, bias2;        /* 0: none */
    int phase;
    u32 first;              /* row 0 in the phase's output */
    bool gated;
} qn_part;

/* Fills stages, stage_at, counts and the sizes of shared memory; phases and the bytes of x and input are known. */
bool qn_deal(qn_lists *l, const qn_part *parts, int n_parts, size_t smem, const char **why, qn_err *e);

#endif
