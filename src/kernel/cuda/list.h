/* list.h - a plan as instruction lists for the persistent kernel: one list for each block, made when the plan is loaded. */
#ifndef QN_CUDA_LIST_H
#define QN_CUDA_LIST_H

#include "kernel/cuda/program.h"

typedef struct qn_list_setup {
    const qn_plan *plan;
    const qn_cstep *steps;  /* [plan->n] operands on the device */
    u64 spare;              /* [d_model] floats: a second residual stream, for norms behind the blocks */
    int n_blocks;
    size_t smem;            /* bytes a block may have */
} qn_list_setup;

typedef struct qn_lists {
    qn_ins *ins;            /* [n_blocks, n_ins] */
    qn_fetch *fetches;      /* [n_fetches] warp by warp */
    u32 *fetch_at;          /* [n_blocks * QN_P_WARPS + 1] */
    qn_att *atts;           /* [n_atts] */
    qn_wmat *tables;        /* [n_tables] */
    int n_blocks, n_ins, n_fetches, n_atts, n_tables, n_counters, n_heads;
    size_t part_floats;     /* of all parts of an attention */
    u32 input_bytes, stage_bytes, n_stages;
    size_t smem;            /* of a block */
} qn_lists;

/* False without an error (e->code 0): this plan does not fit the persistent kernel; *why says what. */
bool qn_lists_make(qn_lists *l, const qn_list_setup *s, const char **why, qn_err *e);
void qn_lists_close(qn_lists *l);

#endif
