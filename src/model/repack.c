/* repack.c - which linear steps get panels, and the packing itself: once, at load, on all lanes,
 * into memory of huge pages, giving back the mapped pages of each piece as soon as it is packed,
 * so that memory does not hold both. */
#include "model/repack.h"

#include <stdio.h>

#include "base/file.h"
#include "kernel/fpanel.h"

/* The op that a linear step becomes; OP_linear: it stays. */
static qn_op target(const qn_plan *p, const qn_step *s)
{
    if (s->op != OP_linear) return s->op;
    const qn_linear *a = &s->args.linear;
    const bool dots = a->cols % 32 == 0 && qn_panel_bytes(a->type, a->rows, a->cols) > 0;
    const qn_op op = qn_panel_of(a->type) == PANEL_int8 ? OP_qlinear : OP_blinear;
    if (dots && qn_kernel_exists(op, a->type, p->isa)) return op;
    return qn_kernel_exists(OP_plinear, a->type, p->isa) ? OP_plinear : OP_linear;
}

static size_t align64(size_t n) { return (n + 63) & ~(size_t)63; }

static size_t matrix_bytes(qn_op op, const qn_linear *a)
{
    return align64(op == OP_plinear ? qn_fpanel_bytes(a->type, a->rows, a->cols) : qn_panel_bytes(a->type, a->rows, a->cols));
}

static size_t packed_bytes(const qn_plan *p)
{
    size_t total = 0;
    for (int i = 0; i < p->n; i++) {
        const qn_op op = target(p, &p->steps[i]);
        if (p->steps[i].op == OP_linear && op != OP_linear) total += matrix_bytes(op, &p->steps[i].args.linear);
    }
    return total;
}

/* ---- packing */

typedef struct packing {
    const qn_linear *a;
    qn_op op;
    u8 *out;
} packing;

#define PIECE ((size_t)4 << 20) /* packed at a time: memory holds so much of the file's pages for each lane */

static size_t row_bytes(const qn_linear *a) { return qn_dtype_bytes(a->type, (size_t)a->cols); }

static void pack_piece(const void *args, qn_lane lane)
{
    const packing *p = args;
    const qn_linear *a = p->a;
    const int n = (a->rows + QN_PANEL - 1) / QN_PANEL, first = lane_begin(n, lane), last = lane_end(n, lane);
    const int row = first * QN_PANEL, end = qn_mini(last * QN_PANEL, a->rows);
    if (p->op == OP_plinear) qn_fpanel_pack(a->type, a->w, a->rows, a->cols, first, last, p->out);
    else qn_panel_pack(a->type, a->w, a->rows, a->cols, first, last, p->out);
    if (row < end) qn_map_drop((const u8 *)a->w + (size_t)row * row_bytes(a), (size_t)(end - row) * row_bytes(a));
}

static bool pack(const qn_repack *r, const qn_linear *a, qn_op op, u8 *out, qn_err *e)
{
    const packing p = { a, op, out };
    const size_t pieces = (size_t)a->rows * row_bytes(a) / PIECE;
    qn_pool_share(r->pool, pack_piece, &p, qn_pool_n(r->pool) + (int)pieces);
    return qn_bytes_whole(a->w, r->path, e);
}

/* ---- rewriting */

typedef struct writer {
    const qn_repack *r;
    qn_plan to;
    const float *ready;
    qn_op ready_for;
    u8 *at;
} writer;

/* The step that turns x into what `op` reads, unless the step before wanted the same. */
static bool prepare(writer *w, const qn_step *s, qn_op op, qn_err *e)
{
    const qn_linear *a = &s->args.linear;
    char role[96];
    if (op == OP_plinear || (w->ready == a->x && w->ready_for == op)) return true;
    snprintf(role, sizeof role, "%s.x", s->role);
    const qn_args quant = { .quant = { .d = a->cols, .y = w->r->b->bytes, .x = a->x } };
    const qn_args narrow = { .narrow = { .d = a->cols, .y = w->r->b->narrow, .x = a->x } };
    qn_step *made = op == OP_qlinear ? qn_plan_add(&w->to, OP_quant, s->layer, role, &quant, e)
                                     : qn_plan_add(&w->to, OP_narrow, s->layer, role, &narrow, e);
    if (!made) return false;
    made->logits = s->logits;
    w->ready = a->x;
    w->ready_for = op;
    return true;
}

/* A matrix that is the table of embeddings too is read from its panels: random rows of the file, each with the 15 pages
 * around it, would bring it all into memory a second time (a quarter of the file for models of 0.5 to 1 billion weights).
 * Bytes come back as they were; bf16 would be rounded, and is small. */
static void share_table(const writer *w, const qn_linear *a)
{
    for (int i = 0; i < w->to.n; i++) {
        qn_step *s = &w->to.steps[i];
        if (s->op == OP_embed && s->args.embed.table == a->w) s->args.embed.table = w->at, s->args.embed.packed = true;
    }
}

static bool rewrite(writer *w, const qn_step *s, qn_err *e)
{
    const qn_op op = target(w->r->plan, s);
    const qn_linear *a = &s->args.linear;
    qn_args args = s->args;
    if (op == s->op || op == OP_plinear) w->ready = NULL; /* it may write to what was prepared */
    if (op != s->op) {
        if (!prepare(w, s, op, e) || !pack(w->r, a, op, w->at, e)) return false;
        if (op == OP_qlinear)
            args.qlinear = (qn_qlinear){ .rows = a->rows,
                                         .cols = a->cols,
                                         .y = a->y,
                                         .x = w->r->b->bytes,
                                         .panels = w->at,
                                         .bias = a->bias,
                                         .type = a->type };
        else if (op == OP_plinear)
            args.plinear = (qn_plinear){ .rows = a->rows, .cols = a->cols, .y = a->y, .x = a->x, .panels = w->at,
                                         .bias = a->bias, .type = a->type };
        else
            args.blinear = (qn_blinear){ .rows = a->rows,
                                         .cols = a->cols,
                                         .y = a->y,
                                         .x = w->r->b->narrow,
                                         .panels = w->at,
                                         .bias = a->bias,
                                         .type = a->type };
        if (op == OP_qlinear) share_table(w, a);
        w->at += matrix_bytes(op, a);
    }
    qn_step *made = qn_plan_add(&w->to, op, s->layer, s->role, &args, e);
    if (made) made->logits = s->logits;
    return made != NULL;
}

bool qn_repack_run(const qn_repack *r, qn_packed *out, qn_err *e)
{
    const size_t bytes = packed_bytes(r->plan);
    const u64 have = qn_mem_available();
    if (bytes == 0 || (have && bytes > have)) return true; /* mapped weights can be paged out, packed ones cannot */
    out->memory = qn_pages_new(bytes, e);
    if (!out->memory) return false;
    out->bytes = bytes;
    writer w = { .r = r, .to = { .isa = r->plan->isa, .tuned = r->plan->tuned }, .at = out->memory };
    for (int i = 0; i < r->plan->n; i++) {
        const bool go = !r->progress || r->progress(r->user, "loading",
                                                    (double)(w.at - out->memory) / (double)bytes);
        if (go && rewrite(&w, &r->plan->steps[i], e)) continue;
        if (!go) qn_fail(e, QN_ECANCELLED, "loading was stopped");
        qn_plan_close(&w.to);
        return false;
    }
    qn_plan_close(r->plan);
    *r->plan = w.to;
    return true;
}

void qn_packed_close(qn_packed *p)
{
    if (p->memory) qn_pages_free(p->memory, p->bytes);
    *p = (qn_packed){ 0 };
}
