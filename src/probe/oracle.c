/* oracle.c - what the outputs must be, in double, and how far off a float kernel may be. Written apart from the references, in
 * the shape of the formulas, so that the references answer to something too. The bound of a sum is some eps times the sum of
 * the magnitudes that go into it: it knows when the sum cancels. */
#include <float.h>
#include <math.h>

#include "base/half.h"
#include "base/mem.h"
#include "kernel/fpanel.h"
#include "kernel/kvpage.h"
#include "probe/case.h"

#define EPS ((double)FLT_EPSILON)
#define TINY ((double)FLT_MIN)   /* results below it may be flushed */
#define SUM_EPS 4                /* long sums: cases stay below 2^12 terms, whose rounding errors mostly cancel; 1.7 was seen */
#define OP_EPS 4                 /* a handful of operations */

static void linear_row(const qn_linear *a, int r, double *y, double *bound)
{
    float w[256];
    const qn_dtype_info *t = &qn_dtypes[a->type];
    const u8 *row = (const u8 *)a->w + (size_t)r * qn_dtype_bytes(a->type, (size_t)a->cols);
    for (int j = 0; j < a->n; j++) {
        const float *x = a->x + (size_t)j * (size_t)a->cols;
        double s = 0, mag = 0;
        for (int c = 0; c < a->cols; c++) {
            if (c % 256 == 0) t->decode(row + qn_dtype_bytes(a->type, (size_t)c), w, (size_t)qn_mini(256, a->cols - c));
            s += (double)w[c % 256] * (double)x[c];
            mag += fabs((double)w[c % 256] * (double)x[c]);
        }
        const size_t at = (size_t)j * (size_t)a->rows + (size_t)r;
        const double bias = a->bias ? (double)a->bias[r] : 0;
        y[at] = s + bias;
        bound[at] = SUM_EPS * EPS * (mag + fabs(bias)) + TINY;
    }
}

/* Types with a minimum add it apart from the rest, and the two may cancel: what goes into the sum is not the weight but
 * parts that can each be as large as the range of the block. */
static double range_of(const float *w, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++) most = fmax(most, fabs((double)w[i]));
    return 4 * most;
}

static void qlinear_row(const qn_qlinear *a, int r, double *y, double *bound)
{
    float w[32];
    for (int j = 0; j < a->n; j++) {
        const qn_strand row = qn_bytes_row(a->n, j, a->cols / 32);
        double s = 0, mag = 0, range = 0;
        for (int c = 0; c < a->cols; c++) {
            if (c % 32 == 0) {
                qn_panel_part(a->type, a->panels, a->cols, r, c, 32, w);
                range = range_of(w, 32);
            }
            const size_t at = row.first + (size_t)(c / 32) * row.step;
            const double x = ldexp((double)a->x.q[32 * at + (size_t)(c % 32)], a->x.shift[at]) * (double)a->x.unit[j];
            s += (double)w[c % 32] * x;
            mag += range * fabs(x);
        }
        const size_t at = (size_t)j * (size_t)a->rows + (size_t)r;
        const double bias = a->bias ? (double)a->bias[r] : 0;
        y[at] = s + bias;
        bound[at] = SUM_EPS * EPS * (mag + fabs(bias)) + TINY;
    }
}

static void blinear_row(const qn_blinear *a, int r, double *y, double *bound)
{
    float w[32];
    for (int j = 0; j < a->n; j++) {
        double s = 0, mag = 0;
        for (int c = 0; c < a->cols; c++) {
            if (c % 32 == 0) qn_panel_part(a->type, a->panels, a->cols, r, c, 32, w);
            const double p = (double)w[c % 32] * (double)qn_bf16_f32(a->x[(size_t)j * (size_t)a->cols + (size_t)c]);
            s += p;
            mag += fabs(p);
        }
        const size_t at = (size_t)j * (size_t)a->rows + (size_t)r;
        const double bias = a->bias ? (double)a->bias[r] : 0;
        y[at] = s + bias;
        /* one chain over all columns, where others have a chain in each lane of a vector: 1.1 of the plain bound was seen;
         * and the instruction flushes what is tiny */
        bound[at] = 4 * SUM_EPS * EPS * (mag + fabs(bias)) + a->cols * TINY;
    }
}

static double plain(const void *p, qn_dtype type, size_t i)
{
    if (type == DT_f32) return (double)((const float *)p)[i];
    const u16 h = ((const u16 *)p)[i];
    return (double)(type == DT_f16 ? qn_f16_f32(h) : qn_bf16_f32(h));
}

static void matmul(const qn_matmul *m, const float *was, double *y, double *bound)
{
    const size_t n = (size_t)m->n, cols = (size_t)m->cols, k = (size_t)m->k;
    for (size_t at = 0; at < (size_t)m->batch * n * cols; at++) {
        const size_t b = at / (n * cols), i = at / cols % n, j = at % cols;
        double s = 0, mag = 0;
        for (size_t p = 0; p < k; p++) {
            const double t = plain(m->a, m->type, b * n * k + (m->ta ? p * n + i : i * k + p)) *
                             plain(m->b, m->type, b * k * cols + (m->tb ? j * k + p : p * cols + j));
            s += t;
            mag += fabs(t);
        }
        const double bias = m->biased ? (double)m->bias[j] : 0, old = m->beta != 0 ? (double)m->beta * (double)was[at] : 0;
        y[at] = (double)m->alpha * s + bias + old;
        /* as blinear: one chain over all of k, and bf16 instructions flush what is tiny */
        bound[at] = 4 * SUM_EPS * EPS * (fabs((double)m->alpha) * mag + fabs(bias) + fabs(old)) + (double)k * TINY;
    }
}

static void plinear_row(const qn_plinear *a, int r, double *y, double *bound)
{
    const qn_dtype_info *t = &qn_dtypes[a->type];
    for (int j = 0; j < a->n; j++) {
        const float *x = a->x + (size_t)j * (size_t)a->cols;
        double s = 0, mag = 0;
        for (int c = 0; c < a->cols; c++) {
            float w;
            t->decode(a->panels + qn_fpanel_at(a->cols, r, c) * t->block_bytes, &w, 1);
            s += (double)w * (double)x[c];
            mag += fabs((double)w * (double)x[c]);
        }
        const size_t at = (size_t)j * (size_t)a->rows + (size_t)r;
        const double bias = a->bias ? (double)a->bias[r] : 0;
        y[at] = s + bias;
        bound[at] = 4 * SUM_EPS * EPS * (mag + fabs(bias)) + TINY; /* as blinear: one chain over all columns */
    }
}

static void norm_row(const float *x, const float *w, int d, double eps, double *y, double *bound)
{
    double ss = 0;
    for (int i = 0; i < d; i++) ss += (double)x[i] * (double)x[i];
    for (int i = 0; i < d; i++) {
        y[i] = (double)x[i] * (double)w[i] / sqrt(ss / d + eps);
        bound[i] = OP_EPS * EPS * fabs(y[i]) + TINY;
    }
}

/* The sums are rounded once, as an addition is; the norm is that of what they are then. */
static void addnorm(const qn_case *c, int operand, double *y, double *bound)
{
    const qn_addnorm *a = &c->args.addnorm;
    const float *was = NULL;
    const bool sums = (const void *)c->operand[operand].p == (const void *)a->x;
    for (int i = 0; i < c->n_operands; i++)
        if ((const void *)c->operand[i].p == (const void *)a->x) was = (const float *)(const void *)c->operand[i].saved;
    for (size_t r = 0, at = 0; r < (size_t)a->n; r++, at += (size_t)a->d) {
        double ss = 0;
        for (size_t i = at; i < at + (size_t)a->d; i++) {
            const float x = was[i] + a->add[i];
            ss += (double)x * (double)x;
            y[i] = (double)x;
            bound[i] = 0;
        }
        for (size_t i = at; !sums && i < at + (size_t)a->d; i++) {
            y[i] = y[i] * (double)a->w[i - at] / sqrt(ss / a->d + (double)a->eps);
            bound[i] = OP_EPS * EPS * fabs(y[i]) + TINY;
        }
    }
}

/* x is what a head was before; y, bound what it must become */
static void rope_head(const qn_rope *a, const float *x, int pos, double *y, double *bound)
{
    const int half = a->d_rot / 2;
    for (int i = a->d_rot; i < a->d_head; i++) {
        y[i] = (double)x[i];
        bound[i] = 0;
    }
    for (int i = 0; i < half; i++) {
        const int p = a->neox ? i : 2 * i, q = a->neox ? i + half : 2 * i + 1;
        const double angle = (double)pos * (double)a->freq[i], m = (double)a->mscale, u = (double)x[p], v = (double)x[q];
        y[p] = m * (u * cos(angle) - v * sin(angle));
        y[q] = m * (v * cos(angle) + u * sin(angle));
        bound[p] = bound[q] = OP_EPS * EPS * m * (fabs(u) + fabs(v)) + TINY;
    }
}

static void glu(const float *gate, const float *up, size_t n, bool gelu, double *y, double *bound)
{
    for (size_t i = 0; i < n; i++) {
        const double g = (double)gate[i], u = (double)up[i];
        const double t = gelu ? 2 * sqrt(2 / M_PI) * (g + 0.044715 * g * g * g) : g; /* gelu is g * sigmoid(t) */
        y[i] = g / (1 + exp(-t)) * u;
        /* an error of eps in t is one of eps * |t| in exp(-t); both die away together where sigmoid is flat */
        bound[i] = OP_EPS * EPS * (fabs(y[i]) * (1 + fmin(fabs(t), 100)) + fabs(g * u) * 0x1.0p-20) + TINY;
    }
}

/* y: the operand asked for, the probabilities or the logarithms of their sums */
static void softmax(const qn_softmax *a, const void *operand, double *y, double *bound)
{
    const double scale = (double)a->scale;
    for (int t = 0; t < a->n; t++) {
        const size_t at = (size_t)t * (size_t)a->d;
        const float *x = a->x + at;
        double top = -INFINITY, sum = 0;
        for (int i = 0; i < a->d; i++) top = (double)x[i] > top ? (double)x[i] : top;
        for (int i = 0; i < a->d; i++) sum += exp(scale * ((double)x[i] - top));
        if (operand == (const void *)a->log_sum) {
            y[t] = scale * top + log(sum);
            bound[t] = OP_EPS * EPS * (fabs(scale * top) + fabs(log(sum)) + 1);
            continue;
        }
        for (int i = 0; i < a->d; i++) { /* an error in what is raised is one in the result; far below the top both die away */
            const double below = scale * (top - (double)x[i]);
            y[at + (size_t)i] = exp(-below) / sum;
            bound[at + (size_t)i] = OP_EPS * EPS * y[at + (size_t)i] * (1 + fmin(below, 110)) + TINY;
        }
    }
}

/* ---- attention: all scores of a head at once, as the formula has it */

typedef struct view { const qn_attend *a; int row, kv; } view;

static void token(const view *v, int t, int part, float *out)
{
    const qn_attend *a = v->a;
    const u8 *page = a->cache + (size_t)a->at->pages[a->at->first[v->row] + t / QN_PAGE] * a->page_stride;
    const u8 *head = page + qn_kv_head_at(a->type, a->d_head, v->kv);
    const size_t d = (size_t)a->d_head;
    if (part == 0) qn_kv_get_k(a->type, head, t % QN_PAGE, out, a->d_head);
    else qn_dtypes[a->type].decode(head + qn_dtype_bytes(a->type, d * (size_t)(QN_PAGE + t % QN_PAGE)), out, d);
}

#define CONTEXT_MOST 1024 /* cases.c makes no longer ones */
#define HEAD_MOST 512

static void attend_head(const view *v, const float *q, double *y, double *bound)
{
    const qn_attend *a = v->a;
    const int last = a->at->pos[v->row], first = a->window && last >= a->window ? last - a->window + 1 : 0;
    double score[CONTEXT_MOST], top = -INFINITY, cond = 0, sum = 0;
    float x[HEAD_MOST];
    assert(last < CONTEXT_MOST && a->d_head <= HEAD_MOST);
    for (int t = first; t <= last; t++) {
        double s = 0, mag = 0;
        token(v, t, 0, x);
        for (int i = 0; i < a->d_head; i++) s += (double)q[i] * (double)x[i], mag += fabs((double)q[i] * (double)x[i]);
        score[t] = s * (double)a->scale;
        cond = fmax(cond, mag * (double)a->scale);
        top = isnan(s) ? s : fmax(top, score[t]);
    }
    for (int i = 0; i < a->d_head; i++) y[i] = bound[i] = 0;
    for (int t = first; t <= last; t++) {
        const double p = exp(score[t] - top);
        sum += p;
        token(v, t, 1, x);
        for (int i = 0; i < a->d_head; i++) y[i] += p * (double)x[i], bound[i] += p * fabs((double)x[i]);
    }
    for (int i = 0; i < a->d_head; i++) {
        y[i] /= sum;
        /* an error in a score is one in the weight of its token */
        bound[i] = EPS * (SUM_EPS + OP_EPS * cond) * bound[i] / sum + TINY;
    }
}

static void attend(const qn_attend *a, double *y, double *bound)
{
    for (int i = 0; i < a->n * a->n_head; i++) {
        const size_t at = (size_t)i * (size_t)a->d_head;
        const view v = { a, i / a->n_head, i % a->n_head / (a->n_head / a->n_kv) };
        attend_head(&v, a->q + at, y + at, bound + at);
    }
}

static void rope(const qn_case *c, int operand, double *y, double *bound)
{
    const qn_rope *a = &c->args.rope;
    const float *x = (const float *)(const void *)c->operand[operand].saved;
    const int heads = (const void *)c->operand[operand].p == (const void *)a->q ? a->n_head : a->n_kv;
    for (int i = 0; i < a->n * heads; i++) {
        const size_t at = (size_t)i * (size_t)a->d_head;
        rope_head(a, x + at, a->pos[i / heads], y + at, bound + at);
    }
}

bool qn_oracle(const qn_case *c, int operand, double *y, double *bound)
{
    const qn_args *a = &c->args;
    const float *was = (const float *)(const void *)c->operand[operand].saved;
    const size_t values = c->operand[operand].bytes / sizeof(float);
    switch (c->op) {
    case OP_linear:
        for (int r = 0; r < a->linear.rows; r++) linear_row(&a->linear, r, y, bound);
        return true;
    case OP_qlinear:
        for (int r = 0; r < a->qlinear.rows; r++) qlinear_row(&a->qlinear, r, y, bound);
        return true;
    case OP_plinear:
        for (int r = 0; r < a->plinear.rows; r++) plinear_row(&a->plinear, r, y, bound);
        return true;
    case OP_blinear:
        for (int r = 0; r < a->blinear.rows; r++) blinear_row(&a->blinear, r, y, bound);
        return true;
    case OP_rmsnorm:
        for (size_t i = 0; i < values; i += (size_t)a->rmsnorm.d)
            norm_row(a->rmsnorm.x + i, a->rmsnorm.w, a->rmsnorm.d, (double)a->rmsnorm.eps, y + i, bound + i);
        return true;
    case OP_headnorm:
        for (size_t i = 0; i < values; i += (size_t)a->headnorm.d)
            norm_row(was + i, a->headnorm.w, a->headnorm.d, (double)a->headnorm.eps, y + i, bound + i);
        return true;
    case OP_addnorm: addnorm(c, operand, y, bound); return true;
    case OP_matmul: matmul(&a->matmul, was, y, bound); return true;
    case OP_rope: rope(c, operand, y, bound); return true;
    case OP_softmax: softmax(&a->softmax, c->operand[operand].p, y, bound); return true;
    case OP_attend: attend(&a->attend, y, bound); return true;
    case OP_swiglu: glu(was, a->swiglu.up, values, false, y, bound); return true;
    case OP_geglu: glu(was, a->geglu.up, values, true, y, bound); return true;
    default: return false; /* copies, and one addition */
    }
}
