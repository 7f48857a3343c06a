/* plan.c - a growing list of steps; their names and reasons live in the plan's arena. */
#include "kernel/plan.h"

#include <limits.h>
#include <string.h>

#include "kernel/fpanel.h"

static bool make_room(qn_plan *p, qn_err *e)
{
    if (p->n < p->cap) return true;
    const int cap = p->cap ? p->cap * 2 : 64;
    qn_step *steps = qn_resize(p->steps, (size_t)cap * sizeof *steps, e);
    if (!steps) return false;
    p->steps = steps;
    p->cap = cap;
    return true;
}

/* Waking the lanes and waiting for them costs 1 to 3 us on a quiet machine and a time slice on a busy one; 32 KiB out of the
 * cache take about 1 us. Attention grows with the context, which nobody knows here: it always gets all lanes. */
#define ALONE_BYTES 32768u

int qn_rows_alone(qn_op op, const qn_args *args)
{
    if (op == OP_softmax || op == OP_best) return INT_MAX; /* the sampler's own: it has no other lanes */
    qn_args one = *args;
    one.n = 1;
    const u64 bytes = qn_ops[op].cost(&one, 0).bytes;
    if (bytes == 0 || qn_ops[op].cost(&one, 1000).bytes != bytes) return 0;
    return (int)(ALONE_BYTES / bytes);
}

qn_step *qn_plan_add(qn_plan *p, qn_op op, int layer, const char *role, const qn_args *args, qn_err *e)
{
    if (!make_room(p, e)) return NULL;
    qn_step *s = &p->steps[p->n];
    *s = (qn_step){ .op = op, .layer = layer, .args = *args, .alone = qn_rows_alone(op, args) };
    s->role = qn_arena_strndup(&p->arena, role, strlen(role), e);
    if (!s->role) return NULL;
    for (int b = 0; b < N_BUCKETS; b++)
        if (!qn_choose(op, args, p->isa, b, p->tuned, &p->arena, &s->choice[b], e)) return NULL;
    p->n++;
    return s;
}

/* A product of activations and a matrix: what it reads, and how many outputs it has. rows 0: the step is none. */
typedef struct product { const void *x; int rows; } product;

static product product_of(qn_op op, const qn_args *a)
{
    switch (op) {
    case OP_linear: return (product){ a->linear.x, a->linear.rows };
    case OP_qlinear: return (product){ a->qlinear.x.q, a->qlinear.rows };
    case OP_blinear: return (product){ a->blinear.x, a->blinear.rows };
    case OP_plinear: return (product){ a->plinear.x, a->plinear.rows };
    default: return (product){ 0 };
    }
}

/* Is a lane's share with one row at least 64 KiB of weights? Less is not worth another ticket. */
#define STREAM_BYTES 65536u
#define CUTS_FEW 4

static bool streams(qn_op op, const qn_args *args, int lanes)
{
    qn_args one = *args;
    one.n = 1;
    return product_of(op, args).rows && qn_ops[op].cost(&one, 0).bytes >= (u64)lanes * STREAM_BYTES;
}

static qn_soon in_units(const void *at, size_t bytes, size_t each) { return (qn_soon){ at, (int)(bytes / each), each }; }

/* Weights by the unit in which lanes share them: a row that lies as in the file, a panel, a twin of panels. */
static qn_soon weights_of(qn_op op, const qn_args *args)
{
    const qn_linear *l = &args->linear;
    const qn_qlinear *q = &args->qlinear;
    const qn_blinear *b = &args->blinear;
    const qn_plinear *p = &args->plinear;
    switch (op) {
    case OP_linear: return (qn_soon){ l->w, l->rows, qn_dtype_bytes(l->type, (size_t)l->cols) };
    case OP_qlinear: return in_units(q->panels, qn_panel_bytes(q->type, q->rows, q->cols), qn_panel_bytes(q->type, 1, q->cols));
    case OP_blinear: return in_units(b->panels, qn_panel_bytes(b->type, b->rows, b->cols), qn_panel_bytes(b->type, 1, b->cols));
    case OP_plinear: return in_units(p->panels, qn_fpanel_bytes(p->type, p->rows, p->cols), qn_fpanel_bytes(p->type, 1, p->cols));
    default: return (qn_soon){ 0 };
    }
}

/* With many rows a step takes milliseconds, and a lane that is held up for a time slice must not keep 1/8 of that: 16 pieces a
 * lane instead of 4 took 4 % from a prompt of 512 (Qwen2.5-0.5B Q8_0, 2 lanes). Tiles make 32 outputs at a time: pieces of whole
 * tiles, of one size but the last. A matrix of bytes with fewer tiles than lanes is cut by its kernel along the other side
 * too. */
#define CUTS_MANY 16
#define TILE 32

static int cut_many(qn_op op, const qn_args *args, int lanes)
{
    const product p = product_of(op, args);
    const int most = CUTS_MANY * lanes, tiles = (p.rows + TILE - 1) / TILE;
    if (!p.rows) return op == OP_attend ? most : CUTS_FEW * lanes;
    if (tiles < lanes) return CUTS_FEW * lanes;
    const int each = (tiles + most - 1) / most;
    return (tiles + each - 1) / each;
}

int qn_pieces(qn_op op, const qn_args *args, int bucket, int lanes)
{
    if (op == OP_matmul) return lanes; /* each piece packs all of a; it is in no model's plan */
    if (bucket == BUCKET_many) return cut_many(op, args, lanes);
    return op == OP_attend ? CUTS_FEW * lanes : lanes;
}

/* Twice around: behind the last step comes the first one of the next token. */
static void say_what_comes(qn_plan *p)
{
    qn_soon soon = { 0 };
    for (int i = 2 * p->n - 1; i >= 0; i--) {
        qn_step *s = &p->steps[i % p->n];
        s->soon = soon;
        if (s->streams) soon = weights_of(s->op, &s->args);
    }
}

bool qn_plan_finish(qn_plan *p, int lanes, qn_err *e)
{
    for (qn_step *s = p->steps; s < p->steps + p->n; s++) {
        for (int b = 0; b < N_BUCKETS; b++) s->pieces[b] = qn_pieces(s->op, &s->args, b, lanes);
        s->streams = streams(s->op, &s->args, lanes);
    }
    say_what_comes(p);
    for (int i = 0, run = 1; i + 1 < p->n; i++) {
        qn_step *s = &p->steps[i];
        const void *x = product_of(s->op, &s->args).x, *next = product_of(s[1].op, &s[1].args).x;
        s->with_next = run < QN_TOGETHER && x && x == next; /* none writes where another reads: x is not y */
        run = s->with_next ? run + 1 : 1;
    }
    p->times = qn_new_array((size_t)lanes * QN_TOGETHER, sizeof *p->times, e);
    return p->times != NULL;
}

void qn_plan_close(qn_plan *p)
{
    qn_free(p->times);
    qn_free(p->steps);
    qn_arena_close(&p->arena);
    *p = (qn_plan){ 0 };
}

const char *qn_step_type(const qn_step *s)
{
    const int type = qn_args_type(s->op, &s->args);
    return type < (int)N_DTYPES ? qn_dtypes[type].name : "";
}
