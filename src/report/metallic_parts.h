/* metallic_parts.h - the sums of metallic_sum.c as metallic_print.c walks them. */
#ifndef QN_METALLIC_PARTS_H
#define QN_METALLIC_PARTS_H

#include "base/table.h"
#include "report/metallic.h"

/* What the analyser sums by; the order in which it prints. */
typedef enum qn_msum {
    SUM_type, SUM_backend, SUM_reason, SUM_op_backend, SUM_parent, SUM_parent_op, SUM_kernel, SUM_gpu, SUM_gpu_kind,
        SUM_foundry,
    SUM_mm_backend, SUM_mm_op, SUM_shape, SUM_shape_backend, SUM_wait, SUM_cb_gpu, SUM_sync, N_SUMS
} qn_msum;

/* How often each duration came: whole microseconds repeat, so ten million of them are a few thousand counts. */
typedef struct qn_mcount { u32 us, n; } qn_mcount;                          /* n 0: an empty place */
typedef struct qn_mcounts { qn_mcount *p; size_t n, cap; } qn_mcounts;      /* n different ones; cap: a power of two */
typedef struct qn_mgroup {
    const char *title;
    u32 order;                  /* first seen */
    u32 parent;                 /* of SUM_shape_backend: the group of its shape */
    u64 count;                  /* events; of counters, what they count */
    u64 n, total_us, min_us, max_us;
    qn_mcounts us;              /* longer than an hour: the longest that fits */
} qn_mgroup;

struct qn_metallic {
    qn_arena arena;
    struct { qn_mgroup *p; size_t n, cap; } groups[N_SUMS];
    qn_table tables[N_SUMS];
    u64 events, dispatches;
};

#endif
