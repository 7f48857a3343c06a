/* list.h - a plan as lists for the persistent kernel: phases that all blocks walk, and the stages of weights that each block
 * takes in, made when the plan is loaded. */
#ifndef QN_CUDA_LIST_H
#define QN_CUDA_LIST_H

#include "kernel/cuda/program.h"

typedef struct qn_list_setup {
    const qn_plan *plan;
    const qn_cstep *steps;  /* [plan->n] operands on the device */
    u64 sent;               /* qn_lists_sent_bytes() bytes, zeroed, for values that blocks send each other */
    int n_blocks;
    size_t smem;            /* bytes a block may have */
} qn_list_setup;

typedef struct qn_lists {
    qn_phase *phases;       /* [n_phases] */
    qn_stage *stages;       /* [n_stages] block by block */
    u32 *stage_at;          /* [n_blocks + 1] */
    qn_task *tasks;         /* [n_tasks] warp by warp of each block */
    u32 *task_at;           /* [n_blocks * QN_P_WARPS + 1] */
    qn_att *atts;           /* [n_atts] */
    qn_wmat *tables;        /* [n_tables] */
    int n_blocks, n_phases, n_stages, n_tasks, n_atts, n_tables;
    size_t part_units;      /* of all parts of an attention */
    u32 x_bytes, form_bytes, ring_bytes;
    size_t smem;            /* of a block */
} qn_lists;

/* False without an error (e->code 0): this plan does not fit the persistent kernel; *why says what. */
bool qn_lists_make(qn_lists *l, const qn_list_setup *s, const char **why, qn_err *e);
void qn_lists_forget(qn_lists *l); /* stages and tasks, when the device has them: half a gigabyte for the largest models */
void qn_lists_close(qn_lists *l);
u64 qn_lists_sent_bytes(const qn_plan *plan);

#endif
