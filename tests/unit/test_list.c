/* test_list.c - the persistent kernel's lists, run on the host: blocks take turns in a random order, a phase or a stage at a time,
 * and wait where a value they need has not been sent yet. The logits must be those of the CPU's plan, the same for every order;
 * nobody may wait for ever; every row is dealt out once; a stage never overwrites one that is still to be used.
 * The device's memory is memory here, under a driver of this file; the ring is filled as far ahead as the lists allow. */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
/* cmocka wants these first */
#include <cmocka.h>

#include "base/rng.h"
#include "device_plan.h"
#include "device_row.h"
#include "engine/engine.h"
#include "fake_driver.h"
#include "files.h"
#include "kernel/cuda/deal.h"
#include "kernel/cuda/weights.h"

#define BLOCKS 5
#define BLOCKS_MOST 70 /* more than any phase of a small model has tasks */
#define TOKENS 20 /* more than a page, more than gemma's window */

/* ---- a driver whose device is this process */

static int cooperative;
static int n_allocs, fails_at = INT_MAX; /* so many until now; from which on there is no memory */

static int f_attr(int *v, int attribute, int device)
{
    (void)device;
    *v = attribute == CU_ATTR_SM ? BLOCKS : attribute == CU_ATTR_SMEM_BLOCK ? 232448 : attribute == CU_ATTR_COOPERATIVE ? cooperative : 9;
    return 0;
}

static int f_launch(void *fn, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned smem, void *stream,
                    void **args, void **extra)
{
    (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)smem, (void)stream, (void)extra;
    (void)fn; /* loading a plan starts no other kernel */
    do_angles(args[0]);
    return 0;
}

static int f_done2(void *a, void *b) { return (void)a, (void)b, 0; }
static int f_fset(void *fn, int attribute, int value) { return (void)fn, (void)attribute, (void)value, 0; }
static int f_fit(int *blocks, void *fn, int threads, size_t smem) { return (void)fn, (void)threads, (void)smem, *blocks = 1, 0; }
static int f_alloc(u64 *at, size_t bytes)
{
    *at = n_allocs++ >= fails_at ? 0 : (u64)(uintptr_t)qn_new(bytes, NULL);
    return *at ? 0 : CU_OUT_OF_MEMORY;
}
static int f_free(u64 at) { return qn_free((void *)(uintptr_t)at), 0; }
static int f_host(void **p, size_t bytes, unsigned flags) { return (void)flags, *p = qn_new(bytes, NULL), *p ? 0 : CU_OUT_OF_MEMORY; }
static int f_host_free(void *p) { return qn_free(p), 0; }
static int f_up(u64 to, const void *from, size_t n, void *s) { return (void)s, memcpy((void *)(uintptr_t)to, from, n), 0; }
static int f_fill(u64 to, unsigned char v, size_t n, void *s) { return (void)s, memset((void *)(uintptr_t)to, v, n), 0; }

static const qn_driver driver = {
    FAKE_DRIVER, .device_attr = f_attr, .mem_alloc = f_alloc, .mem_free = f_free, .host_alloc = f_host, .host_free = f_host_free,
    .copy_up = f_up, .fill = f_fill, .stream_wait = f_done, .event_create = f_handle2, .event_record = f_done2,
    .event_wait = f_done, .launch = f_launch, .function_set = f_fset, .occupancy = f_fit,
};

/* ---- the interpreter */

typedef struct block {
    int token, phase;         /* phase n_phases: at the token's end */
    bool told;                /* the others, that it is there */
    u32 filled, used;         /* stages of all tokens */
    u32 next[QN_P_WARPS];     /* each warp's next task of this token */
    float *x, *in;
    u8 *ring;
} block;

typedef struct machine {
    const qn_lists *l;
    block blocks[BLOCKS_MOST];
    int n_blocks;
    int told[TOKENS];         /* blocks that are at a token's end */
    const i32 *tokens;
    int first;
    float *logits;            /* [TOKENS, n_vocab] */
    int n_vocab;
} machine;

static float *floats(u64 at) { return (float *)(uintptr_t)at; }
static u64 *units(u64 at) { return (u64 *)(uintptr_t)at; }
static u32 tag_of(const machine *m, int token, u32 phase) { return ((u32)token * (u32)m->l->n_phases + phase + 1) & 0xFFFF; }

static u32 bits_of(float v)
{
    u32 u;
    memcpy(&u, &v, 4);
    return u;
}

static float float_of(u32 u)
{
    float v;
    memcpy(&v, &u, 4);
    return v;
}

/* See abi.h: a unit of two sent values. */
static void send(u64 to, u32 i, float v, u32 tag)
{
    u64 *u = units(to) + i / 2;
    const u32 r = bits_of(v) + 0x80;
    if (i % 2 == 0) *u = (*u & 0xFFFF0000000000FFull) | (r & 0xFFFFFF00u) | (u64)tag << 32;
    else *u = (*u & 0x0000FFFFFFFFFF00ull) | (r >> 8 & 0xFF) | (u64)(r & 0xFFFF0000u) << 32;
}

static float sent(u64 from, u32 i)
{
    const u64 u = units(from)[i / 2];
    return float_of(i % 2 == 0 ? (u32)u & 0xFFFFFF00u : ((u32)(u >> 32) & 0xFFFF0000u) | ((u32)u & 0xFF) << 8);
}

static bool all_sent(u64 from, u32 first, u32 n, u32 tag)
{
    for (u32 i = first / 2; i < (first + n + 1) / 2; i++)
        if ((units(from)[i] >> 32 & 0xFFFF) != tag) return false;
    return true;
}

static float rms(const float *x, u32 d, float eps)
{
    double ss = 0;
    for (u32 i = 0; i < d; i++) ss += (double)x[i] * (double)x[i];
    return (float)(1 / sqrt(ss / d + (double)eps));
}

static void bring(machine *m, block *k, const qn_phase *p)
{
    const u32 d = p->cols;
    if (p->in == QN_IN_embed) {
        const qn_wmat *w = &m->l->tables[p->index];
        const u8 *row = (const u8 *)(uintptr_t)w->at + (size_t)m->tokens[k->token] * w->row_bytes;
        for (u32 c = 0; c < d; c++) k->x[c] = row_weight(w->kind, w->high, w->scale, row, c) * p->factor;
    } else {
        for (u32 c = 0; c < d; c++) k->in[c] = sent(p->src, c);
    }
    if (p->in == QN_IN_copy) return;
    const float post = p->in == QN_IN_post ? rms(k->in, d, p->eps) : 1;
    for (u32 c = 0; c < d && p->in != QN_IN_embed; c++) k->x[c] += k->in[c] * (p->in == QN_IN_post ? post * floats(p->post)[c] : 1);
    const float s = rms(k->x, d, p->eps);
    for (u32 c = 0; c < d; c++) k->in[c] = k->x[c] * s * floats(p->norm)[c];
}

static const qn_stage *stage_at(const machine *m, const block *k, u32 seq)
{
    const size_t b = (size_t)(k - m->blocks);
    const u32 n = m->l->stage_at[b + 1] - m->l->stage_at[b];
    return &m->l->stages[m->l->stage_at[b] + seq % n];
}

static void copy(block *k, u32 to, u64 from, u32 bytes) { memcpy(k->ring + to, (const u8 *)(uintptr_t)from, bytes); }

/* A copy waits for one that began before it, so that not too much is on its way: less than else where a phase ends soon. */
static void check_flight(const machine *m, const block *k, const qn_stage *s)
{
    u32 bytes = s->bytes, left = 0;
    assert_in_range(s->after, 1, QN_P_SLOTS - 1);
    if (s->after == 1 || k->filled < s->back || k->filled < s->after) return; /* the first token begins with an empty ring */
    for (u32 i = 1; i < s->after; i++) bytes += stage_at(m, k, k->filled - i)->bytes;
    const u32 used = k->filled - s->back, end = used + s->back;
    for (u32 i = used; i < end && stage_at(m, k, i + 1)->phase == stage_at(m, k, used)->phase; i++) left += stage_at(m, k, i + 1)->bytes;
    assert_true(bytes <= (left > QN_CALM ? QN_FLIGHT_MOST : QN_FLIGHT));
}

/* What copies do, as early as they may. */
static void fill(const machine *m, block *k)
{
    const size_t b = (size_t)(k - m->blocks);
    const u32 n = m->l->stage_at[b + 1] - m->l->stage_at[b];
    for (; k->filled < n * TOKENS; k->filled++) {
        const qn_stage *s = stage_at(m, k, k->filled);
        if (k->used + s->back < k->filled + 1) return;
        assert_true(s->back <= QN_P_SLOTS);
        check_flight(m, k, s);
        const u32 rows = s->b ? 2u * s->rows : s->rows;
        assert_true(s->to % 16 == 0 && s->to + rows * s->pitch <= m->l->ring_bytes);
        u32 bytes = 0;
        for (u32 r = 0; r < rows; r++) {
            const u64 row = r < s->rows ? s->a + (u64)r * s->row_bytes : s->b + (u64)(r - s->rows) * s->row_bytes;
            const u32 to = s->to + r * s->pitch;
            assert_true(row % 16 == 0 && s->pitch % 16 == 0);
            if (s->n_value == 0) {
                copy(k, to, row, s->row_bytes);
                bytes += s->row_bytes;
                continue;
            }
            copy(k, to, row, s->n_value);
            copy(k, to + s->high_at, row + s->high, s->n_high);
            copy(k, to + s->scale_at, row + s->scale, s->n_scale);
            bytes += (u32)s->n_value + s->n_high + s->n_scale;
            assert_true((s->n_value | s->n_high | s->n_scale) % 16 == 0 && (row + s->high) % 16 == 0 && (row + s->scale) % 16 == 0);
        }
        assert_int_equal(bytes, s->bytes);
    }
}

static float act(float x, bool gelu)
{
    return gelu ? 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x))) : x / (1 + expf(-x));
}

static u32 piece_cols(u32 kind) { return kind == QN_W_f32 ? 4 : kind <= QN_W_bf16 ? 8 : 32; }

/* What the warps of a block have of the rows at hand: a task's rows, then those of `up`. */
typedef double sums_of[QN_P_WARPS][16];

static void add_task(const block *k, const qn_task *t, u32 cols, double sums[16])
{
    const u32 each = piece_cols(t->kind), first = t->piece * each;
    const u32 begin = t->begin * each, left = cols - first, end = t->end * each < left ? t->end * each : left;
    for (u32 r = 0; r < (t->up ? 2u * t->rows : t->rows); r++) {
        const u8 *row = k->ring + t->at + 16u * (r < t->rows ? r * t->pitch : t->up + (r - t->rows) * t->pitch);
        for (u32 c = begin; c < end; c++)
            sums[r < t->rows ? r : 8 + r - t->rows] += (double)row_weight(t->kind, t->high, t->scale, row, c) * (double)k->in[first + c];
    }
}

/* The rows of a task, from the sums of all that have parts of them. */
static void put_rows(machine *m, const block *k, const qn_phase *p, const qn_task *t, double (*sums)[16])
{
    for (u32 r = 0; r < t->rows; r++) {
        double a = 0, b = 0;
        for (u32 q = 0; q < 1u << p->parts; q++) a += sums[q][r], b += sums[q][8 + r];
        float v = (float)a + (t->bias ? floats(t->bias)[r] : 0);
        if (t->up) v = act(v, p->out == QN_OUT_gelu) * ((float)b + (t->bias2 ? floats(t->bias2)[r] : 0));
        if (p->out == QN_OUT_logits) m->logits[(size_t)k->token * (size_t)m->n_vocab + t->row + r] = v;
        else send(p->dst, t->row + r, v, tag_of(m, k->token, (u32)k->phase));
    }
}

static const qn_task *task_at(const qn_lists *l, size_t b, u32 w, u32 i)
{
    const u32 first = l->task_at[b * QN_P_WARPS + w], n = l->task_at[b * QN_P_WARPS + w + 1] - first;
    return i < n ? &l->tasks[first + i] : NULL;
}

/* Warp w's task of the stage, if it has one. */
static const qn_task *task_of(const machine *m, const block *k, u32 w, u32 stage)
{
    const qn_task *t = task_at(m->l, (size_t)(k - m->blocks), w, k->next[w]);
    return t && t->phase == k->phase && t->stage == stage ? t : NULL;
}

/* Warps enough have the stage, units of two rows have one sender, parts are neighbours. */
static void check_task(const qn_phase *p, const qn_stage *s, const qn_task *t, u32 w)
{
    const u32 rows = t->up ? 2u * t->rows : t->rows;
    assert_true(t->rows > 0 && t->rows <= 1u << p->rows && rows <= 8 && t->row % 2 == 0 && t->begin <= t->end);
    assert_int_equal(t->part, w & ((1u << p->parts) - 1));
    assert_true(t->at >= s->to && t->at + 16u * (t->up + (t->rows - 1u) * t->pitch) < s->to + s->pitch * s->rows * (s->b ? 2 : 1));
    assert_true((t->up != 0) == (p->out == QN_OUT_silu || p->out == QN_OUT_gelu));
}

static void use_stage(machine *m, block *k, const qn_phase *p, u32 stage, sums_of sums)
{
    const qn_stage *s = stage_at(m, k, k->used);
    const qn_task *at_hand[QN_P_WARPS];
    u32 uses = 0;
    assert_true(k->used < k->filled);
    for (u32 w = 0; w < QN_P_WARPS; w++) {
        const qn_task *t = at_hand[w] = task_of(m, k, w, stage);
        if (!t) continue;
        check_task(p, s, t, w);
        if (t->flags & QN_T_begins) memset(sums[w], 0, sizeof sums[w]);
        add_task(k, t, p->cols, sums[w]);
        uses += t->weight;
        k->next[w]++;
        const qn_task *next = task_at(m->l, (size_t)(k - m->blocks), w, k->next[w]);
        assert_true(!(t->flags & QN_T_last) == (next && next->phase == k->phase));
    }
    assert_int_equal(uses, QN_T_USES);
    for (u32 w = 0; w < QN_P_WARPS; w++)
        if (at_hand[w] && at_hand[w]->flags & QN_T_ends && !at_hand[w]->part) put_rows(m, k, p, at_hand[w], sums + w);
    memset(k->ring + s->to, 0xFF, (size_t)s->pitch * s->rows * (s->b ? 2 : 1)); /* whoever still needs it will see */
    k->used++;
}

static u32 stages_of(const machine *m, const block *k) { return m->l->stage_at[k - m->blocks + 1] - m->l->stage_at[k - m->blocks]; }

static void linear(machine *m, block *k, const qn_phase *p)
{
    sums_of sums = { 0 };
    const u32 n = stages_of(m, k);
    for (u32 stage = n ? k->used % n : 0; k->used - (u32)k->token * n < n && stage_at(m, k, k->used)->phase == k->phase; stage++) {
        fill(m, k);
        use_stage(m, k, p, stage, sums);
    }
}

static void turn(const qn_att *t, u32 from, u64 norm, int pos, float *to)
{
    const int half = t->d_rot / 2;
    float raw[256];
    for (int i = 0; i < t->d_head; i++) raw[i] = sent(t->qkv, from + (u32)i);
    const float s = norm ? rms(raw, (u32)t->d_head, t->eps) : 1;
    for (int i = 0; i < t->d_head; i++) to[i] = raw[i] * s * (norm ? floats(norm)[i] : 1);
    for (int i = 0; i < half; i++) {
        const float *angle = floats(t->angles) + 2 * ((size_t)pos * (size_t)half + (size_t)i);
        float *x = to + (t->neox ? i : 2 * i), *y = t->neox ? x + half : x + 1;
        const float x0 = *x, y0 = *y;
        *x = x0 * angle[0] - y0 * angle[1];
        *y = x0 * angle[1] + y0 * angle[0];
    }
}

/* Block b has KV head b: so short a context is one part. The cache is f32 here. */
static void attend(const machine *m, int b, const qn_att *t, int pos, u32 tag)
{
    const int d = t->d_head, group = t->n_head / t->n_kv, from = t->window && pos >= t->window ? pos - t->window + 1 : 0;
    const int *pages = (const int *)(uintptr_t)t->pages + m->first;
    const size_t row = (size_t)t->n_kv * (size_t)d;
    float q[256], score[TOKENS], y[256];
    for (int p = from; p <= pos; p++) assert_true(pages[p / QN_PAGE] >= 0);
#define KV(p, part) (floats(t->cache + (u64)pages[(p) / QN_PAGE] * t->stride) + (size_t)((part) * QN_PAGE + (p) % QN_PAGE) * row + b * d)
    turn(t, t->k_at + (u32)(b * d), t->k_norm, pos, KV(pos, 0));
    for (int i = 0; i < d; i++) KV(pos, 1)[i] = sent(t->qkv, t->v_at + (u32)(b * d + i));
    for (int g = 0; g < group; g++) {
        float top = -INFINITY, sum = 0;
        turn(t, t->q_at + (u32)((b * group + g) * d), t->q_norm, pos, q);
        for (int p = from; p <= pos; p++) {
            score[p] = 0;
            for (int i = 0; i < d; i++) score[p] += q[i] * KV(p, 0)[i] * t->scale;
            top = fmaxf(top, score[p]);
        }
        memset(y, 0, (size_t)d * sizeof *y);
        for (int p = from; p <= pos; p++) {
            const float w = expf(score[p] - top);
            sum += w;
            for (int i = 0; i < d; i++) y[i] += w * KV(p, 1)[i];
        }
        for (int i = 0; i < d; i++) send(t->y, (u32)((b * group + g) * d + i), y[i] / sum, tag);
    }
#undef KV
}

/* Whether what this block needs for its phase has been sent. */
static bool is_there(const machine *m, int b, const qn_phase *p)
{
    const block *k = &m->blocks[b];
    const u32 tag = tag_of(m, k->token, (u32)k->phase - p->back);
    if (p->op == QN_I_attend) {
        const qn_att *t = &m->l->atts[p->index];
        const u32 d = (u32)t->d_head, group = (u32)(t->n_head / t->n_kv);
        return b >= t->n_kv || (all_sent(t->qkv, t->q_at + (u32)b * group * d, group * d, tag) &&
                                all_sent(t->qkv, t->k_at + (u32)b * d, d, tag) && all_sent(t->qkv, t->v_at + (u32)b * d, d, tag));
    }
    return p->in == QN_IN_embed || all_sent(p->src, 0, p->cols, tag);
}

/* One phase of block b; false: it has to wait. */
static bool turn_of(machine *m, int b)
{
    block *k = &m->blocks[b];
    if (k->phase == m->l->n_phases) {
        if (!k->told) m->told[k->token]++, k->told = true;
        if (m->told[k->token] < m->n_blocks) return false;
        k->token++, k->phase = 0, k->told = false;
        memset(k->next, 0, sizeof k->next);
        return true;
    }
    const qn_phase *p = &m->l->phases[k->phase];
    if (!is_there(m, b, p)) return false;
    if (p->op == QN_I_attend) {
        const qn_att *t = &m->l->atts[p->index];
        if (b < t->n_kv) attend(m, b, t, k->token, tag_of(m, k->token, (u32)k->phase));
    } else {
        bring(m, k, p);
        linear(m, k, p);
    }
    k->phase++;
    return true;
}

static void run_all(machine *m, u64 seed)
{
    for (u64 n = 0, stuck = 0;;) {
        int left[BLOCKS_MOST], n_left = 0;
        for (int b = 0; b < m->n_blocks; b++)
            if (m->blocks[b].token < TOKENS) left[n_left++] = b;
        if (n_left == 0) return;
        stuck = turn_of(m, left[qn_rng_at(seed, n++) % (u64)n_left]) ? 0 : stuck + 1;
        if (stuck < 1000) continue;
        for (int k = 0; k < n_left; k++)
            if (turn_of(m, left[k])) stuck = 0;
        if (stuck) fail_msg("every block waits: block %d in phase %d", left[0], m->blocks[left[0]].phase);
    }
}

/* ---- what must hold of the lists themselves: every row of a phase's output is made once */

static void check_dealing(const qn_lists *l)
{
    static u32 seen[1 << 16];
    for (int k = 0; k < l->n_phases; k++) {
        const qn_phase *p = &l->phases[k];
        u32 rows = 0, most = 0, pieces = 0;
        if (p->op != QN_I_linear) continue;
        memset(seen, 0, sizeof seen);
        for (int i = 0; i < l->n_tasks; i++) {
            const qn_task *t = &l->tasks[i];
            if (t->phase != k) continue;
            assert_true(p->forms & (t->kind <= QN_W_bf16 ? QN_FORM_float : QN_FORM_int));
            for (u32 r = 0; r < t->rows; r++) {
                rows += t->flags & QN_T_begins && !t->part;
                seen[t->row + r] += t->end - t->begin; /* each piece of it once */
                most = t->row + r + 1 > most ? t->row + r + 1 : most;
            }
            pieces = t->piece + t->end > (int)pieces ? t->piece + t->end : pieces;
        }
        assert_int_equal(rows, most);
        assert_true(pieces > 0);
        for (u32 r = 0; r < most; r++) assert_int_equal(seen[r], pieces);
    }
}

/* What a device relies on and one host thread does not see: neighbouring inputs lie apart, every block sends a part of what
 * attention and `down` make, so that nobody falls a layer behind, and a warp has a task at least. */
static void check_walk(const qn_lists *l)
{
    static u8 sends[BLOCKS_MOST];
    for (int k = 0, before = -1; k < l->n_phases; k++) {
        const qn_phase *p = &l->phases[k];
        if (p->op != QN_I_linear) continue;
        assert_true(p->room < l->form_bytes && (before < 0 || l->phases[before].room != p->room));
        assert_true(before < 0 || before + 1 == k || l->phases[before + 1].room == p->room); /* an attention between them */
        before = k;
        if (p->in != QN_IN_copy) continue;
        memset(sends, 0, sizeof sends);
        for (int w = 0; w < l->n_blocks * QN_P_WARPS; w++)
            for (u32 t = l->task_at[w]; t < l->task_at[w + 1]; t++) sends[w / QN_P_WARPS] |= l->tasks[t].phase == k;
        for (int b = 0; b < l->n_blocks; b++) assert_true(sends[b]);
    }
    for (int w = 0; w < l->n_blocks * QN_P_WARPS; w++) assert_true(l->task_at[w] < l->task_at[w + 1]); /* one at least: abi.h */
}

/* How a phase of one matrix, as `down` of Llama 1B, is dealt to an H200's blocks. */
static void check_manner(qn_dtype type, u32 rows, u32 parts)
{
    qn_err e = { 0 };
    const char *why = NULL;
    qn_phase phase = { .op = QN_I_linear, .in = QN_IN_copy, .cols = 8192, .forms = type == DT_f16 ? QN_FORM_float : QN_FORM_int };
    const qn_part part = { .a = qn_wmat_of(type, 2048, 8192) };
    qn_lists l = { .phases = &phase, .n_phases = 1, .n_blocks = 132, .x_bytes = 8192, .form_bytes = 24576 };
    if (!qn_deal(&l, &part, 1, 232448, &why, &e)) fail_msg("%s", why ? why : e.msg);
    check_dealing(&l);
    assert_int_equal(1u << phase.rows, rows);
    assert_int_equal(1u << phase.parts, parts);
    qn_lists_forget(&l);
}

/* More tasks than warps become tasks of more rows, where these fit a stage. */
static void long_rows(void **state)
{
    (void)state;
    check_manner(DT_q8_0, 4, 4);
    check_manner(DT_q6_k, 4, 4);
    check_manner(DT_f16, 2, 4); /* longer than the ring */
}

/* ---- a model, on the CPU and through its lists */

static void open_device(qn_cuda *c, qn_engine *en)
{
    u8 *kv[2];
    qn_err e = { 0 };
    const qn_cuda_need need = { .scratch = en->scratch, .scratch_bytes = en->scratch_bytes, .logits = (const u8 *)en->b.logits,
                                .rows = (const u8 *)en->b.tokens, .tables = (const u8 *)en->tables[0], .tokens = en->b.tokens,
                                .pos = en->b.pos, .first = en->firsts, .n_vocab = en->m->n_vocab, .n_ctx = en->n_ctx };
    const qn_cuda_load l = { .plan = &en->plan, .pool = en->pool, .path = "test" };
    c->gpu.d = driver;
    assert_true(qn_gpu_open(&c->gpu, 0, false, &e));
    assert_true(qn_cuda_reserve(c, &need, kv, &e));
    if (!qn_cuda_load_plan(c, &l, &e)) fail_msg("%s", e.msg);
}

static void run_lists(const qn_lists *l, qn_cuda *c, qn_engine *en, const i32 *tokens, u64 seed, float *logits, u64 sent_at,
                      u64 sent_bytes)
{
    machine m = { .l = l, .n_blocks = l->n_blocks, .tokens = tokens, .logits = logits, .n_vocab = en->m->n_vocab };
    const size_t tables = (size_t)((const u8 *)en->tables[0] - en->scratch);
    memcpy((u8 *)(uintptr_t)c->scratch + tables, en->tables[0], en->scratch_bytes - tables);
    for (int b = 0; b < m.n_blocks; b++) {
        m.blocks[b].in = qn_new_array(65536, sizeof(float), NULL);
        m.blocks[b].x = qn_new_array(65536, sizeof(float), NULL);
        m.blocks[b].ring = qn_new(l->ring_bytes, NULL);
    }
    memset((void *)(uintptr_t)sent_at, 0, sent_bytes);
    run_all(&m, seed);
    for (int b = 0; b < m.n_blocks; b++) {
        assert_int_equal(m.blocks[b].used, (l->stage_at[b + 1] - l->stage_at[b]) * TOKENS);
        qn_free(m.blocks[b].in);
        qn_free(m.blocks[b].x);
        qn_free(m.blocks[b].ring);
    }
}

/* Whether rows come in several stages. */
static bool is_cut(const qn_lists *l)
{
    for (int i = 0; i < l->n_tasks; i++)
        if (l->tasks[i].phase != QN_NO_PHASE && !(l->tasks[i].flags & QN_T_begins)) return true;
    return false;
}

static qn_engine *open_engine(const char *path, qn_model **m)
{
    qn_err e = { 0 };
    qn_options o = QN_OPTIONS_DEFAULT;
    o.device = "cpu";
    o.kv = QN_KV_F32;
    o.no_repack = true;
    o.n_ctx = 64;
    o.threads = 1;
    *m = qn_model_open(path, &e);
    qn_engine *en = *m ? qn_engine_open(*m, &o, &e) : NULL;
    if (!en) fail_msg("%s: %s", path, e.msg);
    return en;
}

/* Returns whether rows come in several stages. */
static bool check_model(const char *path, int n_blocks, size_t smem, float tolerance)
{
    qn_err e = { 0 };
    qn_model *m;
    qn_engine *en = open_engine(path, &m);
    qn_session *s = qn_session_open(en, &e);
    const size_t row = (size_t)m->n_vocab, n = row * TOKENS;
    float *want = qn_new_array(n, sizeof *want, &e), *got = qn_new_array(n, sizeof *got, &e);
    i32 tokens[TOKENS];
    for (int t = 0; t < TOKENS; t++) {
        tokens[t] = (i32)(qn_rng_at(3, (u64)t) % row);
        assert_true(qn_session_push(s, tokens[t], &e) && qn_engine_step(en, NULL, &e));
        memcpy(want + (size_t)t * row, qn_session_logits(s), row * sizeof *want);
    }
    qn_session_rewind(s, 0); /* sliding pages went back while it ran: take all anew, as one pass would */
    for (int t = 0; t < TOKENS; t++) assert_true(qn_session_push(s, tokens[t], &e));
    qn_timeline_prepare(s, TOKENS);
    assert_true(plan_for_device(en, &e));
    qn_cuda *c = qn_new(sizeof *c, &e);
    open_device(c, en);
    qn_lists l;
    const char *why = NULL;
    const u64 bytes = qn_lists_sent_bytes(&en->plan);
    u8 *room = qn_new(bytes, &e);
    const u64 at = (u64)(uintptr_t)room;
    const qn_list_setup setup = { .plan = &en->plan, .steps = c->steps, .sent = at, .n_blocks = n_blocks, .smem = smem };
    if (!qn_lists_make(&l, &setup, &why, &e)) fail_msg("%s: %s", path, why ? why : e.msg);
    check_dealing(&l);
    check_walk(&l);
    const bool cut = is_cut(&l);
    run_lists(&l, c, en, tokens, 1, got, at, bytes);
    float most = 0, off = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmaxf(most, fabsf(want[i]));
        off = fmaxf(off, fabsf(want[i] - got[i]));
    }
    if (!(off <= tolerance * most)) fail_msg("%s: off by %g of %g", path, (double)off, (double)most);
    float *other = qn_new_array(n, sizeof *other, &e);
    run_lists(&l, c, en, tokens, 2, other, at, bytes);
    assert_memory_equal(got, other, n * sizeof *got); /* whatever the order */
    qn_lists_close(&l);
    qn_cuda_close(c);
    qn_free(other);
    qn_free(want);
    qn_free(got);
    qn_free(room);
    qn_session_close(s);
    qn_engine_close(en);
    qn_model_close(m);
    return cut;
}

static void lists_are_the_plan(void **state)
{
    (void)state;
    static const char *const names[] = { "llama", "llama3", "mistral", "qwen2", "qwen3", "gemma3" };
    for (size_t i = 0; i < QN_COUNT(names); i++) {
        char path[256];
        snprintf(path, sizeof path, "tests/data/models/%s/model.gguf", names[i]);
        check_model(path, BLOCKS, 232448, 1e-4f);
        check_model(path, BLOCKS_MOST, 232448, 1e-4f); /* warps without a task, fewer blocks than asked for */
        check_model(path, BLOCKS, 40 << 10, 1e-4f); /* a ring that comes round often */
    }
    check_model("models/quern-tiny.gguf", BLOCKS, 232448, 1e-4f); /* Q8_0 */
    assert_true(check_model("models/quern-tiny.gguf", BLOCKS, 19840, 1e-4f)); /* a ring so short that rows come in parts */
}

/* Weights of 4 bits want sums of the input. */
static void lists_of_four_bits(void **state)
{
    (void)state;
    static const char *const types[] = { "Q4_0", "Q4_1" };
    char path[96];
    for (size_t i = 0; i < QN_COUNT(types); i++) {
        qn_err e = { 0 };
        const qn_options o = QN_OPTIONS_DEFAULT;
        snprintf(path, sizeof path, "%s/%s.gguf", test_dir, types[i]);
        if (!qn_quantize("models/quern-tiny.gguf", path, types[i], &o, &e)) fail_msg("%s", e.msg);
        check_model(path, BLOCKS, 232448, 5e-4f); /* 1.8e-4: logits of so coarse weights are large */
    }
}

/* Without memory for the lists the plan runs all the same, kernel by kernel, and it is said why. */
static void no_room_for_lists(void **state)
{
    (void)state;
    qn_err e = { 0 };
    qn_model *m;
    qn_engine *en = open_engine("tests/data/models/llama/model.gguf", &m);
    qn_session *s = qn_session_open(en, &e);
    assert_true(s && qn_session_push(s, 1, &e));
    qn_timeline_prepare(s, 1);
    assert_true(plan_for_device(en, &e));
    cooperative = 1;
    for (int fails = 0, taken = 0; fails <= 2; fails++) { /* none; the lists; what blocks send each other */
        qn_cuda *c = qn_new(sizeof *c, &e);
        fails_at = fails ? taken - fails : INT_MAX;
        n_allocs = 0;
        open_device(c, en);
        taken = fails ? taken : n_allocs;
        if (fails) assert_string_equal(qn_cuda_why_not(c), "too little memory for its lists");
        else assert_null(qn_cuda_why_not(c));
        assert_int_equal(c->persist == NULL, fails > 0);
        qn_cuda_close(c);
    }
    cooperative = 0;
    fails_at = INT_MAX;
    qn_session_close(s);
    qn_engine_close(en);
    qn_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(long_rows), cmocka_unit_test(lists_are_the_plan),
                                        cmocka_unit_test(lists_of_four_bits), cmocka_unit_test(no_room_for_lists) };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
