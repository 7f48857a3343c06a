/* registry.c - the tables of ops and kernels, made from ops.def and kernels.def. */
#include <string.h>

#include "kernel/kernel.h"
#include "kernel/ref/ref.h"

#define REF(op)
#define KERNEL(op, type, isa, variant) void qn_##op##_##type##_##isa##_##variant(const void *args, qn_lane lane);
#define LIMITED(op, type, isa, variant) \
    KERNEL(op, type, isa, variant) \
    const char *qn_##op##_##type##_##isa##_##variant##_needs(const qn_args *a);
#define NARROWED(op, type, isa, variant) LIMITED(op, type, isa, variant)
#include "kernel/kernels.def"
#undef REF
#undef KERNEL
#undef LIMITED
#undef NARROWED

const qn_kernel qn_kernels[] = {
#define REF(op) { #op "_ref", OP_##op, DT_any, ISA_ref, "ref", qn_##op##_ref, NULL, 1 },
#define ROW(op, type, isa, variant, needs, slack) \
    { #op "_" #type "_" #isa "_" #variant, OP_##op, DT_##type, ISA_##isa, #variant, \
      qn_##op##_##type##_##isa##_##variant, needs, slack },
#define KERNEL(op, type, isa, variant) ROW(op, type, isa, variant, NULL, 1)
#define LIMITED(op, type, isa, variant) \
    ROW(op, type, isa, variant, qn_##op##_##type##_##isa##_##variant##_needs, 1)
#define NARROWED(op, type, isa, variant) \
    ROW(op, type, isa, variant, qn_##op##_##type##_##isa##_##variant##_needs, QN_NARROW_SLACK)
#include "kernel/kernels.def"
#undef REF
#undef ROW
#undef KERNEL
#undef LIMITED
#undef NARROWED
};
const int qn_n_kernels = (int)QN_COUNT(qn_kernels);

const qn_op_info qn_ops[N_OPS] = {
#define OP(name, doc) { #name, doc, qn_##name##_cost, qn_##name##_cases },
#include "kernel/ops.def"
#undef OP
};

bool qn_kernel_exists(qn_op op, qn_dtype type, qn_isa most)
{
    for (int i = 0; i < qn_n_kernels; i++) {
        const qn_kernel *k = &qn_kernels[i];
        if (k->op == op && k->type == (int)type && k->isa > ISA_ref && qn_isa_within(k->isa, most)) return true;
    }
    return false;
}

int qn_args_type(qn_op op, const qn_args *a)
{
    switch (op) {
    case OP_embed: return (int)a->embed.type;
    case OP_linear: return (int)a->linear.type;
    case OP_store: return (int)a->store.type;
    case OP_attend: return (int)a->attend.type;
    case OP_qlinear: return (int)a->qlinear.type;
    case OP_blinear: return (int)a->blinear.type;
    case OP_plinear: return (int)a->plinear.type;
    case OP_matmul: return (int)a->matmul.type;
    default: return (int)DT_f32;
    }
}
