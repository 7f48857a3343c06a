/* kernel.h - the registry. A row of kernels.def is a kernel: op, operand type, ISA level, variant; its name is
 * op_type_isa_variant and its function qn_<name>. Reference kernels (isa ref) take every type; DT_any stands for that. */
#ifndef QN_KERNEL_H
#define QN_KERNEL_H

#include "base/cpu.h"
#include "kernel/op.h"

typedef void (*qn_kernel_fn)(const void *args, qn_lane lane);

#define DT_any N_DTYPES
#define QN_NARROW_SLACK 0x1.0p+14 /* four eps of a float, 2^-21, becomes 2^-7: two operands rounded by 2^-9, in sum and divisor */

typedef struct qn_kernel {
    const char *name;       /* "linear_q4_k_avx2_gen" */
    qn_op op;
    int type;               /* qn_dtype of the weight, table or cache; DT_any */
    qn_isa isa;
    const char *variant;
    qn_kernel_fn fn;
    const char *(*needs)(const qn_args *a); /* what it misses in these sizes, in few words; or NULL. No function: takes all */
    double slack;           /* 1; QN_NARROW_SLACK: it rounds float operands to bf16, so the check allows it that much more */
} qn_kernel;

extern const qn_kernel qn_kernels[];
extern const int qn_n_kernels;

typedef struct qn_op_info {
    const char *name, *doc;
    qn_cost (*cost)(const qn_args *a, int ctx); /* ctx: tokens before the rows, for ops that look at the cache */
    const qn_args *cases;   /* sizes for the check, ended by n = 0; pointers are filled by the probe */
} qn_op_info;

extern const qn_op_info qn_ops[N_OPS];

/* Is there a kernel faster than the reference for this op and type at this level? */
bool qn_kernel_exists(qn_op op, qn_dtype type, qn_isa most);

/* The operand type that tells the kernels of an op apart: w, table or cache. DT_f32 for ops that only know floats. */
int qn_args_type(qn_op op, const qn_args *a);

#endif
