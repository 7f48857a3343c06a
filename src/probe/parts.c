/* parts.c - a case for each fused op. */
#include "probe/parts.h"

/* Scores of all tokens, their softmax, the weighted sum: heads that share keys are rows of one product. */
static int parts_of_attend(const qn_attend *a, int depth, qn_shape out[QN_PARTS])
{
    const int tokens = depth + a->n, rows = a->n * a->n_head / a->n_kv;
    const qn_dtype type = a->type == DT_f32 ? DT_f32 : DT_f16;
    const qn_args scores = { .matmul = { .n = rows, .cols = tokens, .k = a->d_head, .batch = a->n_kv, .tb = true, .alpha = 1,
                                         .type = type } };
    const qn_args weights = { .softmax = { .n = a->n * a->n_head, .d = tokens } };
    const qn_args values = { .matmul = { .n = rows, .cols = a->d_head, .k = tokens, .batch = a->n_kv, .alpha = 1,
                                         .type = type } };
    out[0] = qn_shape_of(OP_matmul, &scores, rows, 0);
    out[1] = qn_shape_of(OP_softmax, &weights, weights.n, 0);
    out[2] = qn_shape_of(OP_matmul, &values, rows, 0);
    return 3;
}

static int parts_of_addnorm(const qn_addnorm *a, qn_shape out[QN_PARTS])
{
    const qn_args add = { .add = { .n = a->n, .d = a->d } }, norm = { .rmsnorm = { .n = a->n, .d = a->d } };
    out[0] = qn_shape_of(OP_add, &add, a->n, 0);
    out[1] = qn_shape_of(OP_rmsnorm, &norm, a->n, 0);
    return 2;
}

bool qn_fused_by_plans(qn_op op) { return op == OP_addnorm; }

int qn_shape_parts(const qn_shape *s, qn_shape out[QN_PARTS])
{
    switch (s->op) {
    case OP_attend: return parts_of_attend(&s->args.attend, s->depth, out);
    case OP_addnorm: return parts_of_addnorm(&s->args.addnorm, out);
    default: return 0;
    }
}
