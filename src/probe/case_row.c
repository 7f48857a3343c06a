/* case_row.c - a case seen as single rows, for the law of rows; and a case in words. */
#include <stdio.h>
#include <string.h>

#include "kernel/shape.h"
#include "probe/case.h"

static qn_rows rows_from(const qn_rows *all, int r) { return (qn_rows){ all->pos + r, all->first + r, all->pages }; }

/* Row r of the case's bytes and the line that stands for it alone: from one to the other. */
static void move_line(const qn_case *c, const qn_bytes *all, int d, int r, bool back)
{
    const qn_strand at = qn_bytes_row(c->args.n, r, d / 32);
    for (size_t b = 0; b < (size_t)d / 32; b++) {
        const size_t i = at.first + b * at.step, from = back ? b : i, to = back ? i : b;
        const qn_bytes *src = back ? &c->line : all, *dst = back ? all : &c->line;
        memcpy(dst->q + 32 * to, src->q + 32 * from, 32);
        dst->shift[to] = src->shift[from];
        dst->start[to] = src->start[from];
        memcpy(dst->start16 + 2 * to, src->start16 + 2 * from, 2 * sizeof(i32));
    }
    if (back) all->unit[r] = c->line.unit[0];
    else c->line.unit[0] = all->unit[r];
}

qn_args qn_case_row(const qn_case *c, int r, qn_rows *rows)
{
    qn_args a = c->args;
    const size_t i = (size_t)r;
    a.n = 1;
    switch (c->op) {
    case OP_embed: a.embed.y += i * (size_t)a.embed.d; a.embed.tokens += i; break;
    case OP_rmsnorm: a.rmsnorm.y += i * (size_t)a.rmsnorm.d; a.rmsnorm.x += i * (size_t)a.rmsnorm.d; break;
    case OP_headnorm: a.headnorm.x += i * (size_t)a.headnorm.n_head * (size_t)a.headnorm.d; break;
    case OP_linear: a.linear.y += i * (size_t)a.linear.rows; a.linear.x += i * (size_t)a.linear.cols; break;
    case OP_rope:
        a.rope.q += i * (size_t)a.rope.n_head * (size_t)a.rope.d_head;
        a.rope.k += i * (size_t)a.rope.n_kv * (size_t)a.rope.d_head;
        a.rope.pos += i;
        break;
    case OP_store:
        a.store.k += i * (size_t)a.store.n_kv * (size_t)a.store.d_head;
        a.store.v += i * (size_t)a.store.n_kv * (size_t)a.store.d_head;
        *rows = rows_from(a.store.at, r);
        a.store.at = rows;
        break;
    case OP_attend:
        a.attend.y += i * (size_t)a.attend.n_head * (size_t)a.attend.d_head;
        a.attend.q += i * (size_t)a.attend.n_head * (size_t)a.attend.d_head;
        *rows = rows_from(a.attend.at, r);
        a.attend.at = rows;
        break;
    case OP_add: a.add.x += i * (size_t)a.add.d; a.add.y += i * (size_t)a.add.d; break;
    case OP_addnorm:
        a.addnorm.y += i * (size_t)a.addnorm.d;
        a.addnorm.x += i * (size_t)a.addnorm.d;
        a.addnorm.add += i * (size_t)a.addnorm.d;
        break;
    case OP_swiglu: a.swiglu.gate += i * (size_t)a.swiglu.d; a.swiglu.up += i * (size_t)a.swiglu.d; break;
    case OP_geglu: a.geglu.gate += i * (size_t)a.geglu.d; a.geglu.up += i * (size_t)a.geglu.d; break;
    case OP_pick: a.pick.y += i * (size_t)a.pick.d; a.pick.rows += i; break;
    case OP_quant: a.quant.y = c->line; a.quant.x += i * (size_t)a.quant.d; break;
    case OP_qlinear:
        a.qlinear.y += i * (size_t)a.qlinear.rows;
        move_line(c, &a.qlinear.x, a.qlinear.cols, r, false);
        a.qlinear.x = c->line;
        break;
    case OP_narrow: a.narrow.y += i * (size_t)a.narrow.d; a.narrow.x += i * (size_t)a.narrow.d; break;
    case OP_blinear: a.blinear.y += i * (size_t)a.blinear.rows; a.blinear.x += i * (size_t)a.blinear.cols; break;
    case OP_plinear: a.plinear.y += i * (size_t)a.plinear.rows; a.plinear.x += i * (size_t)a.plinear.cols; break;
    case OP_softmax:
        a.softmax.y += i * (size_t)a.softmax.d;
        a.softmax.x += i * (size_t)a.softmax.d;
        a.softmax.log_sum += i;
        break;
    case OP_best:
        a.best.id += i * (size_t)a.best.k;
        a.best.v += i * (size_t)a.best.k;
        a.best.x += i * (size_t)a.best.d;
        break;
    case OP_matmul: /* row by row only where rows lie one behind the other: qn_case_has_rows */
        a.matmul.a = (const u8 *)a.matmul.a + i * qn_dtype_bytes(a.matmul.type, (size_t)a.matmul.k);
        a.matmul.y += i * (size_t)a.matmul.cols;
        break;
    case N_OPS: break;
    }
    return a;
}

void qn_case_row_end(const qn_case *c, int r)
{
    if (c->op == OP_quant) move_line(c, &c->args.quant.y, c->args.quant.d, r, true);
}

bool qn_case_has_rows(const qn_case *c) { return c->op != OP_matmul || (c->args.matmul.batch == 1 && !c->args.matmul.ta); }

void qn_case_print(const qn_case *c, char *out, size_t n)
{
    static const char *const moods[] = { "plain", "zero", "huge", "special" };
    char shape[QN_SHAPE_TEXT];
    const qn_shape s = qn_shape_of(c->op, &c->args, c->args.n, 0);
    qn_shape_print(&s, true, shape);
    snprintf(out, n, "%s, %s", shape, moods[c->mood]);
}
