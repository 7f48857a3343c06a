/* cases.c - the operands of a case, from a seed. Weights are random blocks: of whatever the type can hold where the data is
 * plain, of raw random bytes that decode to sane numbers elsewhere; so a new type needs nothing here. Sequences have block
 * tables in shuffled order, and what no row may see is NaN or no page at all. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "base/rng.h"
#include "kernel/fpanel.h"
#include "kernel/kvpage.h"
#include "kernel/ref/ref.h"
#include "kernel/shape.h"
#include "probe/case.h"

static double draw(qn_case *c) { return qn_rng_unit(c->seed, c->draws++); }
static int draw_int(qn_case *c, int below) { return (int)(draw(c) * below); }

static float value(qn_case *c)
{
    const float v = (float)(2 * draw(c) - 1);
    if (c->mood == MOOD_zero && draw(c) < 0.5) return 0;
    return c->mood == MOOD_huge ? v * 1e4f : v;
}

static float *floats(qn_case *c, const char *name, size_t n, qn_use use)
{
    float *p = qn_case_operand(c, name, n, sizeof *p, use);
    for (size_t i = 0; p && i < n; i++) p[i] = value(c);
    return p;
}

static i32 *ints(qn_case *c, const char *name, int n, int below)
{
    i32 *p = qn_case_operand(c, name, (size_t)n, sizeof *p, USE_in);
    for (int i = 0; p && i < n; i++) p[i] = draw_int(c, below);
    return p;
}

/* In the special mood row 0 holds infinities and NaN: they must come out where they belong, and in no other row. */
static void spoil(qn_case *c, float *row, int d)
{
    static const float odd[] = { INFINITY, -INFINITY, NAN };
    if (!row || c->mood != MOOD_special) return;
    row[draw_int(c, d)] = odd[c->seed % 3];
}

/* ---- blocks */

#define BLOCK_MOST 256

static bool sane(const float *w, int n, double lo, double hi)
{
    double most = 0;
    for (int i = 0; i < n; i++) {
        if (!isfinite(w[i])) return false;
        most = fmax(most, fabs((double)w[i]));
    }
    return most >= lo && most <= hi;
}

/* Random bytes until they decode to numbers of the wanted size; a block that never does stays zero. */
static void raw_block(qn_case *c, const qn_dtype_info *t, u8 *b)
{
    float w[BLOCK_MOST];
    const bool huge = c->mood == MOOD_huge;
    for (int tries = 0; tries < 200; tries++) {
        for (size_t i = 0; i < t->block_bytes; i += 8) {
            const u64 bits = qn_rng_at(c->seed, c->draws++);
            memcpy(b + i, &bits, qn_minz(8, t->block_bytes - i));
        }
        t->decode(b, w, (size_t)t->block);
        if (sane(w, t->block, huge ? 1e2 : 1e-5, huge ? 1e12 : 1e2)) return;
    }
    memset(b, 0, t->block_bytes);
}

static void make_block(qn_case *c, const qn_dtype_info *t, u8 *b)
{
    if (c->mood == MOOD_zero && draw(c) < 0.5) {
        memset(b, 0, t->block_bytes);
    } else if (t->encode && c->mood == MOOD_plain) {
        float w[BLOCK_MOST];
        for (int i = 0; i < t->block; i++) w[i] = (float)(2 * draw(c) - 1);
        t->encode(w, b, (size_t)t->block);
    } else {
        raw_block(c, t, b);
    }
}

/* n blocks. Random ones are slow to make, and no clock sees that they repeat: a timed case has some hundred kinds, and where a
 * large matrix is checked they repeat too. */
static void make_blocks(qn_case *c, const qn_dtype_info *t, u8 *p, size_t n)
{
    const size_t own = qn_minz(n, c->timed ? 509 : 65537); /* primes: rows are not all alike */
    for (size_t i = 0; i < own; i++) make_block(c, t, p + i * t->block_bytes);
    for (size_t done = own; done < n; done += qn_minz(done, n - done))
        memcpy(p + done * t->block_bytes, p, qn_minz(done, n - done) * t->block_bytes);
}

static u8 *blocks(qn_case *c, const char *name, qn_dtype type, size_t rows, int cols, qn_use use)
{
    const qn_dtype_info *t = &qn_dtypes[type];
    const size_t n = rows * (size_t)(cols / t->block);
    u8 *p = qn_case_operand(c, name, n, t->block_bytes, use);
    if (p) make_blocks(c, t, p, n);
    return p;
}

/* ---- sequences and pages */

#define SEQUENCES 3
#define START_MOST 100 /* a sequence has up to this many tokens before the rows; where chunks matter, LONG_MOST */
#define LONG_MOST 700

/* Rows that go to one sequence: a third; all of them where the clock runs. */
static int rows_of_one(const qn_case *c, int n) { return c->timed ? n : (n + SEQUENCES - 1) / SEQUENCES; }

/* Rows of up to three sequences, each going on at some position; block tables over shuffled pages. Pages before the window of
 * every row are -1. Returns the number of pages, some of them nobody's. */
static int sequences(qn_case *c, int n, int start_most, int window, i32 *last_of)
{
    const int per = rows_of_one(c, n), most = (c->timed ? c->depth : start_most) + per, tables = (most + QN_PAGE) / QN_PAGE;
    const int n_pages = SEQUENCES * tables + 2;
    i32 *pos = ints(c, "at.pos", n, 1), *first = ints(c, "at.first", n, 1), *pages = ints(c, "at.pages", SEQUENCES * tables, 1);
    if (!pos || !first || !pages) return 0;
    i32 start[SEQUENCES];
    for (int s = 0; s < SEQUENCES; s++) start[s] = c->timed ? c->depth : draw_int(c, start_most);
    for (int r = 0; r < n; r++) {
        const int s = r / per;
        pos[r] = start[s] + r % per;
        first[r] = s * tables;
        last_of[s] = pos[r];
    }
    for (int i = 0; i < SEQUENCES * tables; i++) { /* a random permutation, grown one by one */
        const int j = draw_int(c, i + 1);
        pages[i] = pages[j];
        pages[j] = i + 1;
    }
    for (int s = 0; s < SEQUENCES; s++) {
        const int seen = window ? qn_maxi(0, start[s] - window + 1) / QN_PAGE : 0;
        for (int i = 0; i < seen; i++) pages[s * tables + i] = -1;
    }
    c->rows = (qn_rows){ .pos = pos, .first = first, .pages = pages };
    return n_pages;
}

/* Fills what the rows may see: tokens 0..last of each sequence; the rest of every page stays NaN. */
static void fill_cache(qn_case *c, const qn_attend *a, u8 *cache, const i32 *last_of)
{
    const qn_dtype_info *t = &qn_dtypes[a->type];
    const size_t row_bytes = qn_dtype_bytes(a->type, (size_t)a->d_head), part = qn_kv_part_bytes(a->type, a->d_head);
    const int per = rows_of_one(c, a->n);
    u8 row[QN_KV_HEAD_MOST * sizeof(float)];
    float k[QN_KV_HEAD_MOST];
    for (int s = 0; s * per < a->n; s++) {
        const i32 *pages = c->rows.pages + c->rows.first[s * per];
        for (i32 tok = 0; tok <= last_of[s]; tok++) {
            if (pages[tok / QN_PAGE] < 0) continue;
            u8 *page = cache + (size_t)pages[tok / QN_PAGE] * a->page_stride;
            for (int h = 0; h < a->n_kv; h++) {
                u8 *head = page + qn_kv_head_at(a->type, a->d_head, h), *v = head + part + (size_t)(tok % QN_PAGE) * row_bytes;
                for (size_t i = 0; i < row_bytes; i += t->block_bytes) make_block(c, t, row + i);
                t->decode(row, k, (size_t)a->d_head);
                qn_kv_put_k(a->type, head, tok % QN_PAGE, k, a->d_head);
                for (size_t i = 0; i < row_bytes; i += t->block_bytes) make_block(c, t, v + i);
            }
        }
    }
}

/* A packed matrix of random blocks. */
static u8 *panels(qn_case *c, qn_dtype type, int rows, int cols)
{
    const qn_dtype_info *t = &qn_dtypes[type];
    const size_t n = (size_t)rows * (size_t)(cols / t->block), bytes = qn_panel_bytes(type, rows, cols);
    u8 *w = qn_alloc(n * t->block_bytes, NULL), *out = qn_case_operand(c, "panels", bytes / 32, 32, USE_in);
    if (w) make_blocks(c, t, w, n);
    if (w && out) qn_panel_pack(type, w, rows, cols, 0, (rows + QN_PANEL - 1) / QN_PANEL, out);
    c->failed = c->failed || !w;
    qn_free(w);
    return out;
}

/* ---- one function per op: operands in the order of its struct */

static void fill_embed(qn_case *c, qn_embed *a)
{
    a->y = floats(c, "y", (size_t)a->n * (size_t)a->d, USE_out);
    a->packed = a->packed && qn_panel_bytes(a->type, 11, a->d) > 0;
    a->table = a->packed ? panels(c, a->type, 11, a->d) : blocks(c, "table", a->type, 11, a->d, USE_in);
    a->tokens = ints(c, "tokens", a->n, 11);
    a->scale = c->mood == MOOD_plain ? 1 : 13.25f;
}

static void fill_rmsnorm(qn_case *c, qn_rmsnorm *a)
{
    float *x = floats(c, "x", (size_t)a->n * (size_t)a->d, USE_in);
    spoil(c, x, a->d);
    a->y = floats(c, "y", (size_t)a->n * (size_t)a->d, USE_out);
    a->x = x;
    a->w = floats(c, "w", (size_t)a->d, USE_in);
    a->eps = 1e-5f;
}

static void fill_addnorm(qn_case *c, qn_addnorm *a)
{
    const size_t values = (size_t)a->n * (size_t)a->d;
    a->y = floats(c, "y", values, USE_out);
    a->x = floats(c, "x", values, USE_inout);
    spoil(c, a->x, a->d);
    a->add = floats(c, "add", values, USE_in);
    a->w = floats(c, "w", (size_t)a->d, USE_in);
    a->eps = 1e-5f;
}

static void fill_headnorm(qn_case *c, qn_headnorm *a)
{
    a->x = floats(c, "x", (size_t)a->n * (size_t)a->n_head * (size_t)a->d, USE_inout);
    spoil(c, a->x, a->d);
    a->w = floats(c, "w", (size_t)a->d, USE_in);
    a->eps = 1e-6f;
}

static void fill_linear(qn_case *c, qn_linear *a)
{
    float *x = floats(c, "x", (size_t)a->n * (size_t)a->cols, USE_in);
    spoil(c, x, a->cols);
    a->y = floats(c, "y", (size_t)a->n * (size_t)a->rows, USE_out);
    a->x = x;
    a->w = blocks(c, "w", a->type, (size_t)a->rows, a->cols, USE_in);
    a->bias = c->mood == MOOD_plain ? NULL : floats(c, "bias", (size_t)a->rows, USE_in);
}

static qn_bytes byte_operands(qn_case *c, int n, int d, qn_use use)
{
    const size_t blocks = (size_t)n * (size_t)(d / 32);
    return (qn_bytes){ .q = qn_case_operand(c, "q", 32 * blocks, 1, use),
                       .shift = qn_case_operand(c, "shift", blocks, sizeof(i32), use),
                       .start = qn_case_operand(c, "start", blocks, sizeof(i32), use),
                       .start16 = qn_case_operand(c, "start16", 2 * blocks, sizeof(i32), use),
                       .unit = qn_case_operand(c, "unit", (size_t)n, sizeof(float), use) };
}

static qn_bytes byte_rows(qn_case *c, int n, int d, qn_use use)
{
    c->line = byte_operands(c, 1, d, USE_scratch);
    return byte_operands(c, n, d, use);
}

static void fill_quant(qn_case *c, qn_quant *a)
{
    const size_t values = (size_t)a->n * (size_t)a->d;
    float *x = floats(c, "x", values, USE_in);
    spoil(c, x, a->d);
    a->x = x;
    a->y = byte_rows(c, a->n, a->d, USE_out);
}

static void fill_qlinear(qn_case *c, qn_qlinear *a)
{
    const size_t values = (size_t)a->n * (size_t)a->cols;
    float *x = qn_alloc(values * sizeof *x, NULL);
    for (size_t i = 0; x && i < values; i++) x[i] = value(c);
    spoil(c, x, a->cols);
    a->x = byte_rows(c, a->n, a->cols, USE_in);
    c->failed = c->failed || !x;
    if (!c->failed) qn_quant_ref(&(qn_quant){ .n = a->n, .d = a->cols, .y = a->x, .x = x }, lane_of(0, 1));
    qn_free(x);
    a->y = floats(c, "y", (size_t)a->n * (size_t)a->rows, USE_out);
    a->panels = panels(c, a->type, a->rows, a->cols);
    a->bias = c->mood == MOOD_plain ? NULL : floats(c, "bias", (size_t)a->rows, USE_in);
}

static void fill_narrow(qn_case *c, qn_narrow *a)
{
    float *x = floats(c, "x", (size_t)a->n * (size_t)a->d, USE_in);
    spoil(c, x, a->d);
    a->x = x;
    a->y = qn_case_operand(c, "y", (size_t)a->n * (size_t)a->d, sizeof *a->y, USE_out);
}

static void fill_blinear(qn_case *c, qn_blinear *a)
{
    const size_t values = (size_t)a->n * (size_t)a->cols;
    u16 *x = qn_case_operand(c, "x", values, sizeof *x, USE_in);
    for (size_t i = 0; x && i < values; i++) x[i] = qn_f32_bf16(value(c));
    if (x && c->mood == MOOD_special) x[draw_int(c, a->cols)] = 0x7FC0; /* NaN */
    a->x = x;
    a->y = floats(c, "y", (size_t)a->n * (size_t)a->rows, USE_out);
    a->panels = panels(c, a->type, a->rows, a->cols);
    a->bias = c->mood == MOOD_plain ? NULL : floats(c, "bias", (size_t)a->rows, USE_in);
}

static void fill_plinear(qn_case *c, qn_plinear *a)
{
    const size_t size = qn_dtypes[a->type].block_bytes, n = (size_t)a->rows * (size_t)a->cols;
    float *x = floats(c, "x", (size_t)a->n * (size_t)a->cols, USE_in);
    spoil(c, x, a->cols);
    a->y = floats(c, "y", (size_t)a->n * (size_t)a->rows, USE_out);
    a->x = x;
    u8 *w = qn_alloc(n * size, NULL);
    u8 *out = qn_case_operand(c, "panels", qn_fpanel_bytes(a->type, a->rows, a->cols) / size, size, USE_in);
    if (w) make_blocks(c, &qn_dtypes[a->type], w, n);
    if (w && out) qn_fpanel_pack(a->type, w, a->rows, a->cols, 0, (a->rows + QN_PANEL - 1) / QN_PANEL, out);
    c->failed = c->failed || !w;
    qn_free(w);
    a->panels = out;
    a->bias = c->mood == MOOD_plain ? NULL : floats(c, "bias", (size_t)a->rows, USE_in);
}

static void fill_rope(qn_case *c, qn_rope *a)
{
    a->q = floats(c, "q", (size_t)a->n * (size_t)a->n_head * (size_t)a->d_head, USE_inout);
    a->k = floats(c, "k", (size_t)a->n * (size_t)a->n_kv * (size_t)a->d_head, USE_inout);
    spoil(c, a->q, a->d_head);
    a->pos = ints(c, "pos", a->n, 100000);
    float *freq = floats(c, "freq", (size_t)a->d_rot / 2, USE_in);
    for (int i = 0; freq && i < a->d_rot / 2; i++) freq[i] = (float)pow(10000, -2.0 * i / a->d_rot);
    a->freq = freq;
    a->mscale = c->mood == MOOD_plain ? 1 : 1.1386f;
}

static void fill_store(qn_case *c, qn_store *a)
{
    const size_t values = (size_t)a->n * (size_t)a->n_kv * (size_t)a->d_head;
    i32 last_of[SEQUENCES] = { 0 };
    a->k = floats(c, "k", values, USE_in);
    a->v = floats(c, "v", values, USE_in);
    const int n_pages = sequences(c, a->n, START_MOST, 0, last_of);
    a->page_stride = 2 * QN_PAGE * qn_kv_row_bytes(a->type, a->n_kv, a->d_head) + 64;
    a->cache = qn_case_operand(c, "cache", (size_t)n_pages, a->page_stride, USE_out);
    a->at = &c->rows;
}

#define SPLIT_ROWS 8 /* fewer than some cases have, more than others */

static void fill_attend(qn_case *c, qn_attend *a)
{
    const size_t values = (size_t)a->n * (size_t)a->n_head * (size_t)a->d_head;
    i32 last_of[SEQUENCES] = { 0 };
    float *q = floats(c, "q", values, USE_in);
    spoil(c, q, a->d_head);
    a->y = floats(c, "y", values, USE_out);
    a->q = q;
    const int n_pages = sequences(c, a->n, c->mood == MOOD_plain ? LONG_MOST : START_MOST, a->window, last_of);
    a->page_stride = 2 * QN_PAGE * qn_kv_row_bytes(a->type, a->n_kv, a->d_head) + 64;
    u8 *cache = qn_case_operand(c, "cache", (size_t)n_pages, a->page_stride, USE_in);
    a->cache = cache;
    a->at = &c->rows;
    a->scale = (float)(1 / sqrt(a->d_head));
    const size_t heads = (size_t)SPLIT_ROWS * (size_t)a->n_head, most = (size_t)(c->timed ? c->depth : LONG_MOST);
    const size_t chunks = (most + (size_t)a->n) / QN_CHUNK + 1;
    a->parts = (qn_parts){ .n_split = SPLIT_ROWS, .n_chunks = (int)chunks };
    a->parts.sums = qn_case_operand(c, "parts", heads * chunks * (size_t)(a->d_head + 2), sizeof(float), USE_scratch);
    a->parts.ended = qn_case_operand(c, "ended", heads, sizeof(i32), USE_scratch);
    if (c->failed) return;
    memset(a->parts.ended, 0, heads * sizeof(i32));
    memset(cache, 0xFF, (size_t)n_pages * a->page_stride);
    fill_cache(c, a, cache, last_of);
}

static void fill_pair(qn_case *c, const char *name, float **x, const float **y, int n, int d)
{
    *x = floats(c, name, (size_t)n * (size_t)d, USE_inout);
    spoil(c, *x, d);
    *y = floats(c, "other", (size_t)n * (size_t)d, USE_in);
}

static void fill_pick(qn_case *c, qn_pick *a)
{
    a->y = floats(c, "y", (size_t)a->n * (size_t)a->d, USE_out);
    a->x = floats(c, "x", (size_t)(a->n + 3) * (size_t)a->d, USE_in);
    a->rows = ints(c, "rows", a->n, a->n + 3);
}

static void fill_softmax(qn_case *c, qn_softmax *a)
{
    float *x = floats(c, "x", (size_t)a->n * (size_t)a->d, USE_in);
    spoil(c, x, a->d);
    a->x = x;
    a->y = floats(c, "y", (size_t)a->n * (size_t)a->d, USE_out);
    a->log_sum = floats(c, "log_sum", (size_t)a->n, USE_out);
    a->scale = c->mood == MOOD_plain ? 1 : 1.25f;
}

static void fill_best(qn_case *c, qn_best *a)
{
    float *x = floats(c, "x", (size_t)a->n * (size_t)a->d, USE_in);
    spoil(c, x, a->d);
    a->x = x;
    a->v = floats(c, "v", (size_t)a->n * (size_t)a->k, USE_out);
    a->id = qn_case_operand(c, "id", (size_t)a->n * (size_t)a->k, sizeof *a->id, USE_out);
}

static void fill_matmul(qn_case *c, qn_matmul *a)
{
    const size_t batch = (size_t)a->batch, n = (size_t)a->n, cols = (size_t)a->cols, k = (size_t)a->k;
    a->a = blocks(c, "a", a->type, 1, (int)(batch * n * k), USE_in);
    a->b = blocks(c, "b", a->type, 1, (int)(batch * k * cols), USE_in);
    a->y = floats(c, "y", batch * n * cols, a->beta != 0 ? USE_inout : USE_out);
    a->bias = a->biased ? floats(c, "bias", cols, USE_in) : NULL;
}

static void fill(qn_case *c)
{
    qn_args *a = &c->args;
    switch (c->op) {
    case OP_embed: fill_embed(c, &a->embed); break;
    case OP_rmsnorm: fill_rmsnorm(c, &a->rmsnorm); break;
    case OP_addnorm: fill_addnorm(c, &a->addnorm); break;
    case OP_headnorm: fill_headnorm(c, &a->headnorm); break;
    case OP_linear: fill_linear(c, &a->linear); break;
    case OP_rope: fill_rope(c, &a->rope); break;
    case OP_store: fill_store(c, &a->store); break;
    case OP_attend: fill_attend(c, &a->attend); break;
    case OP_add: fill_pair(c, "x", &a->add.x, &a->add.y, a->n, a->add.d); break;
    case OP_swiglu: fill_pair(c, "gate", &a->swiglu.gate, &a->swiglu.up, a->n, a->swiglu.d); break;
    case OP_geglu: fill_pair(c, "gate", &a->geglu.gate, &a->geglu.up, a->n, a->geglu.d); break;
    case OP_pick: fill_pick(c, &a->pick); break;
    case OP_quant: fill_quant(c, &a->quant); break;
    case OP_qlinear: fill_qlinear(c, &a->qlinear); break;
    case OP_narrow: fill_narrow(c, &a->narrow); break;
    case OP_blinear: fill_blinear(c, &a->blinear); break;
    case OP_plinear: fill_plinear(c, &a->plinear); break;
    case OP_softmax: fill_softmax(c, &a->softmax); break;
    case OP_best: fill_best(c, &a->best); break;
    case OP_matmul: fill_matmul(c, &a->matmul); break;
    case N_OPS: break;
    }
}

/* Values that must come in whole blocks: a row, or a head in the cache. 0: no type to fit. */
static int blocked(qn_op op, qn_args *a, qn_dtype type)
{
    switch (op) {
    case OP_embed: a->embed.type = type; return a->embed.d;
    case OP_linear: a->linear.type = type; return a->linear.cols;
    case OP_qlinear: a->qlinear.type = type; return a->qlinear.cols;
    case OP_blinear: a->blinear.type = type; return a->blinear.cols;
    case OP_plinear: a->plinear.type = type; return a->plinear.cols;
    case OP_matmul: a->matmul.type = type; return 0;
    case OP_store: a->store.type = type; return a->store.d_head;
    case OP_attend: a->attend.type = type; return a->attend.d_head;
    default: return 0;
    }
}

/* Sets the type. */
static bool fits(qn_op op, qn_args *a, qn_dtype type)
{
    if (blocked(op, a, type) % qn_dtypes[type].block) return false;
    switch (op) {
    case OP_qlinear: return qn_panel_of(type) == PANEL_int8;
    case OP_blinear: return qn_panel_of(type) == PANEL_bf16 && qn_panel_bytes(type, 1, a->blinear.cols) > 0;
    case OP_plinear: return qn_fpanel_bytes(type, 1, a->plinear.cols) > 0;
    case OP_store:
    case OP_attend: return type == DT_f16 || type == DT_f32 || type == DT_q8_0;
    case OP_matmul: return type == DT_f16 || type == DT_f32 || type == DT_bf16;
    default: return true;
    }
}

bool qn_case_fits(const qn_shape *s)
{
    qn_args args = s->args;
    return fits(s->op, &args, (qn_dtype)qn_args_type(s->op, &args));
}

static bool open_made(qn_case *c, int type, qn_err *e)
{
    e->code = QN_OK; /* false without a code: no such case */
    if (!fits(c->op, &c->args, (qn_dtype)type)) return false;
    fill(c);
    for (int i = 0; i < c->n_operands && !c->timed; i++) memcpy(c->operand[i].saved, c->operand[i].p, c->operand[i].bytes);
    if (!c->failed) return true;
    qn_case_close(c);
    return qn_fail(e, QN_ENOMEM, "no memory for the operands of %s", qn_ops[c->op].name);
}

bool qn_case_open(qn_case *c, qn_op op, const qn_args *sizes, int type, qn_mood mood, u64 seed, qn_err *e)
{
    *c = (qn_case){ .op = op, .args = *sizes, .mood = mood, .seed = seed, .flush = mood % 2 == 0 };
    return open_made(c, type, e);
}

bool qn_case_open_timed(qn_case *c, const qn_shape *s, u64 seed, qn_err *e)
{
    *c = (qn_case){ .op = s->op, .args = s->args, .mood = MOOD_plain, .seed = seed, .timed = true, .depth = s->depth };
    if (open_made(c, qn_args_type(s->op, &s->args), e)) return true;
    return e->code || qn_fail(e, QN_EUSAGE, "%s: " QN_CASE_MISFIT, qn_ops[s->op].name);
}
