/* list.c - from a plan's steps to phases. Steps that touch one token's vectors element by element are merged into the
 * linears around them: an addition and a norm into the input of the next, a gate into the output of the one before, rotation and
 * cache into the attention. What remains are phases, and between two phases values that blocks send each other. Then the rows of
 * each phase are dealt out, two, four or eight at a time, so that no block has more than that above another, beginning at another
 * block each time; they come in stages that fit a ring in shared memory, and are tasks of warps. deal.c does that. */
#include "kernel/cuda/list.h"

#include <string.h>

#include "kernel/cuda/deal.h"

/* a buffer of the plan that is sent between blocks: where, from which value on, by which phase */
typedef struct sent { u64 buffer, at; u32 first, from; } sent;

typedef struct maker {
    const qn_list_setup *s;
    qn_lists *l;
    qn_part *parts;         /* matrices, phase by phase */
    int n_parts, step;
    u64 free;               /* of the room for sent values */
    u64 shared[3];          /* vectors that every layer uses again: what an attention reads, what it makes, gated values */
    u32 shared_rows[3];
    sent known[4];          /* the newest first */
    /* what is known of the residual stream */
    u64 x_buffer, picked;   /* as the plan names it; another name of it */
    bool embed;             /* not made yet: rows of the table */
    u64 add, post;          /* buffer still to be added, as it is or norm(add) * post */
    float factor;
    /* how the next input is made */
    u64 in_buffer;
    qn_phase in;
    u32 in_from;            /* the phase that sends what is added */
    u64 loaded;             /* what the newest phase multiplies; 0: that phase is complete */
    qn_att att;             /* the attention that is being put together */
    const char *why;
} maker;

static const qn_step *step_at(const maker *m, int i)
{
    return m->step + i < m->s->plan->n ? &m->s->plan->steps[m->step + i] : NULL;
}

static const qn_cargs *args_at(const maker *m, int i) { return &m->s->steps[m->step + i].args; }
static bool is(const maker *m, int i, qn_op op) { return step_at(m, i) && step_at(m, i)->op == op; }

static bool refuse(maker *m, const char *why)
{
    m->why = why;
    return false;
}

/* ---- sent values */

static u64 sent_room(u64 rows) { return (4 * rows + 255) & ~(u64)255; }

u64 qn_lists_sent_bytes(const qn_plan *plan)
{
    u64 bytes = 0;
    for (int i = 0; i < plan->n; i++) {
        const qn_step *s = &plan->steps[i];
        if (s->op == OP_linear) bytes += 3 * sent_room((u64)s->args.linear.rows); /* three in one vector, at most */
        if (s->op == OP_attend) bytes += sent_room((u64)s->args.attend.n_head * (u64)s->args.attend.d_head);
    }
    return bytes;
}

static u64 take_room(maker *m, u32 rows)
{
    const u64 at = m->s->sent + m->free;
    m->free += sent_room(rows);
    return at;
}

enum { FOR_attention, OF_attention, GATED };

static u64 shared_room(maker *m, int which, u32 rows)
{
    if (m->shared_rows[which] < rows) {
        m->shared[which] = take_room(m, rows);
        m->shared_rows[which] = rows;
    }
    return m->shared[which];
}

static void remember(maker *m, u64 buffer, u64 at, u32 first)
{
    memmove(m->known + 1, m->known, 3 * sizeof *m->known);
    m->known[0] = (sent){ .buffer = buffer, .at = at, .first = first, .from = (u32)m->l->n_phases - 1 };
}

static const sent *recall(const maker *m, u64 buffer)
{
    for (size_t i = 0; i < QN_COUNT(m->known); i++)
        if (m->known[i].buffer == buffer) return &m->known[i];
    return NULL;
}

/* ---- the residual stream */

/* What a linear made is added: now, where all blocks have it, when the next norm is made. */
static bool take_add(maker *m)
{
    const qn_cadd *a = &args_at(m, 0)->add;
    if (a->x != m->x_buffer || m->add || m->embed || !recall(m, a->y)) return refuse(m, "an addition to something else");
    m->add = a->y;
    m->step++;
    return true;
}

static bool take_norm(maker *m)
{
    const qn_cnorm *a = &args_at(m, 0)->norm;
    if (a->x == a->y) { /* a norm behind a block, and what it is added to */
        if (!is(m, 1, OP_add) || args_at(m, 1)->add.y != a->y || args_at(m, 1)->add.x != m->x_buffer || m->add || m->embed ||
            !recall(m, a->y)) return refuse(m, "a norm in place that no addition follows");
        m->add = a->y;
        m->post = a->w;
        m->step += 2;
        return true;
    }
    if (a->x != m->x_buffer && a->x != m->picked) return refuse(m, "a norm of something else than the residual stream");
    if (!m->embed && !m->add) return refuse(m, "two norms of the same residual stream");
    m->in_buffer = a->y;
    m->in = (qn_phase){ .in = QN_IN_embed, .norm = a->w, .eps = a->eps, .factor = m->factor, .cols = (u32)a->d };
    if (!m->embed) {
        const sent *v = recall(m, m->add);
        if (v->first) return refuse(m, "an addition of a part of a vector");
        m->in.in = m->post ? QN_IN_post : QN_IN_add;
        m->in.post = m->post;
        m->in.src = v->at;
        m->in_from = v->from;
    }
    m->embed = false;
    m->add = m->post = 0;
    m->step++;
    return true;
}

/* ---- linears */

static bool same_shape(const qn_wmat *a, const qn_wmat *b)
{
    return a->kind == b->kind && a->rows == b->rows && a->cols == b->cols && a->row_bytes == b->row_bytes;
}

/* Gate and up with what joins them. */
static bool is_gated(const maker *m)
{
    if (!is(m, 1, OP_linear) || !(is(m, 2, OP_swiglu) || is(m, 2, OP_geglu))) return false;
    const qn_clinear *g = &args_at(m, 0)->linear, *u = &args_at(m, 1)->linear;
    const qn_cglu *j = &args_at(m, 2)->glu;
    return g->x == u->x && j->gate == g->y && j->up == u->y && same_shape(&g->w, &u->w);
}

/* Rows of this linear and of those behind it that have the same input. */
static u32 rows_together(const maker *m)
{
    u32 rows = 0;
    const u64 x = args_at(m, 0)->linear.x;
    for (int i = 0; is(m, i, OP_linear) && args_at(m, i)->linear.x == x; i++) rows += args_at(m, i)->linear.w.rows;
    return rows;
}

static u32 form_of(u32 kind)
{
    return kind <= QN_W_bf16 ? QN_FORM_float : QN_FORM_int;
}

/* The phase's input and where its results go. */
static bool begin_phase(maker *m, const qn_clinear *a)
{
    qn_phase *p = &m->l->phases[m->l->n_phases++];
    if (m->in_buffer == a->x) {
        *p = m->in;
        p->back = (u16)(m->l->n_phases - 1 - (int)m->in_from);
        m->in_buffer = 0;
    } else {
        const sent *v = recall(m, a->x);
        if (!v || v->first) return refuse(m, "a linear of something that was not sent");
        *p = (qn_phase){ .in = QN_IN_copy, .src = v->at, .back = (u16)(m->l->n_phases - 1 - (int)v->from) };
    }
    p->op = QN_I_linear;
    p->cols = a->w.cols;
    p->inverse = 1 / (float)a->w.cols;
    p->step = (u16)m->step;
    m->loaded = a->x;
    if (is_gated(m)) {
        p->out = is(m, 2, OP_geglu) ? QN_OUT_gelu : QN_OUT_silu;
        p->dst = shared_room(m, GATED, a->w.rows);
    } else if (step_at(m, 0)->logits) {
        p->out = QN_OUT_logits;
        p->dst = a->y;
    } else {
        const bool alone = is(m, 1, OP_add) || is(m, 1, OP_rmsnorm); /* read by all, also late */
        p->out = QN_OUT_send;
        p->dst = alone ? take_room(m, a->w.rows) : shared_room(m, FOR_attention, rows_together(m));
    }
    return true;
}

static bool take_linear(maker *m)
{
    const qn_clinear *a = &args_at(m, 0)->linear;
    const bool gated = is_gated(m);
    if (a->w.cols % 4) return refuse(m, "a width that is no multiple of 4");
    const bool more = m->loaded == a->x;
    if (more && (gated || m->l->phases[m->l->n_phases - 1].out != QN_OUT_send))
        return refuse(m, "linears that do not go together");
    if (!more && !begin_phase(m, a)) return false;
    qn_phase *p = &m->l->phases[m->l->n_phases - 1];
    u32 first = 0;
    for (int i = m->n_parts; more && i-- > 0 && m->parts[i].phase == m->l->n_phases - 1;) first += m->parts[i].a.rows;
    p->forms |= (u8)form_of(a->w.kind);
    m->parts[m->n_parts++] = (qn_part){ .a = a->w, .bias = a->bias, .phase = m->l->n_phases - 1, .first = first,
                                        .gated = gated, .b = gated ? args_at(m, 1)->linear.w.at : 0,
                                        .bias2 = gated ? args_at(m, 1)->linear.bias : 0 };
    if (p->out != QN_OUT_logits) remember(m, gated ? args_at(m, 2)->glu.gate : a->y, p->dst, first);
    m->step += gated ? 3 : 1;
    const bool goes_on = p->out == QN_OUT_send && is(m, 0, OP_linear) && args_at(m, 0)->linear.x == m->loaded;
    if (!goes_on) m->loaded = 0;
    return true;
}

/* ---- attention */

static bool take_head_norm(maker *m)
{
    const qn_cnorm *a = &args_at(m, 0)->norm;
    if (!m->att.q_norm) m->att.q_norm = a->w;
    else m->att.k_norm = a->w;
    m->att.eps = a->eps;
    m->step++;
    return true;
}

/* Bytes of shared memory: what warps made of their tokens; the parts of a head. attend.cuh */
static u32 attend_bytes(const qn_att *t)
{
    const u32 group = (u32)t->group, d = (u32)t->d_head, stripes = QN_P_WARPS / ((group + 1) / 2);
    return 4 * (stripes * group * (d + 2) + (u32)t->chunks * (d + 2));
}

static bool take_attend(maker *m)
{
    if (!is(m, 1, OP_store) || !is(m, 2, OP_attend)) return refuse(m, "a rotation without attention");
    const qn_crope *r = &args_at(m, 0)->rope;
    const qn_cstore *s = &args_at(m, 1)->store;
    const qn_cattend *a = &args_at(m, 2)->attend;
    const sent *q = recall(m, a->q), *k = recall(m, s->k), *v = recall(m, s->v);
    if (a->type == QN_KVT_q8) return refuse(m, "a q8_0 KV cache");
    if (a->d_head > 256 || a->d_head % 8 || a->n_head / a->n_kv > QN_P_WARPS - 2)
        return refuse(m, "heads too large or too many for one block");
    if (r->d_rot % (r->neox ? 16 : 8)) return refuse(m, "rotations of parts of eight values");
    if (a->n_kv > m->l->n_blocks) return refuse(m, "more KV heads than multiprocessors");
    if (!q || !k || !v || q->at != k->at || q->at != v->at)
        return refuse(m, "queries, keys and values that do not come together");
    qn_att *t = &m->l->atts[m->l->n_atts];
    *t = m->att;
    t->qkv = q->at, t->q_at = q->first, t->k_at = k->first, t->v_at = v->first;
    t->angles = r->table, t->cache = a->cache, t->stride = a->stride, t->pages = a->at.pages;
    t->n_head = a->n_head, t->n_kv = a->n_kv, t->group = a->n_head / a->n_kv;
    t->d_head = a->d_head, t->d_rot = r->d_rot, t->neox = r->neox;
    t->type = a->type, t->window = a->window, t->scale = a->scale;
    t->chunks = qn_mini(m->l->n_blocks / a->n_kv, 32);
    t->y = shared_room(m, OF_attention, (u32)(a->n_head * a->d_head));
    const size_t units = (size_t)a->n_head * (size_t)t->chunks * ((size_t)a->d_head + 2);
    if (units > m->l->part_units) m->l->part_units = units;
    m->l->phases[m->l->n_phases - 1].att = (u16)(m->l->n_atts + 1);
    m->l->phases[m->l->n_phases] = (qn_phase){ .op = QN_I_attend, .index = (u16)m->l->n_atts++, .step = (u16)(m->step + 2),
                                               .back = (u16)(m->l->n_phases - (int)q->from) };
    m->l->n_phases++;
    remember(m, a->y, t->y, 0);
    m->att = (qn_att){ 0 };
    m->loaded = 0;
    m->step += 3;
    return true;
}

/* ---- the walk over the plan */

/* No more blocks than have rows of attention's output and of `down`, both as wide as the residual stream: who sends nothing is
 * waited for by nobody, and what such a block has not read yet would be written over a layer later. */
static int blocks_of(const maker *m, u32 d_model) { return qn_maxi(qn_mini(m->s->n_blocks, (int)d_model / 2), 1); }

static bool take_step(maker *m)
{
    const qn_cargs *a = args_at(m, 0);
    switch (step_at(m, 0)->op) {
    case OP_embed:
        m->l->n_blocks = blocks_of(m, a->embed.table.cols);
        m->x_buffer = a->embed.y;
        m->embed = true;
        m->factor = a->embed.scale;
        m->l->tables[m->l->n_tables++] = a->embed.table;
        m->step++;
        return true;
    case OP_rmsnorm: return take_norm(m);
    case OP_headnorm: return take_head_norm(m);
    case OP_linear: return take_linear(m);
    case OP_rope: return take_attend(m);
    case OP_add: return take_add(m);
    case OP_pick:
        if (a->pick.x != m->x_buffer) return refuse(m, "logits of something else than the residual stream");
        m->picked = a->pick.y;
        m->step++;
        return true;
    default: return refuse(m, "a step that it cannot merge");
    }
}

/* Where the planes of a phase's input lie is products.cuh's business; how much they take is said here. */
static u32 room_bytes(const qn_lists *l, const qn_phase *p)
{
    if (p->op == QN_I_attend) return attend_bytes(&l->atts[p->index]);
    const u32 cols = (p->cols + 127) & ~127u;
    const u32 bytes = (p->forms & QN_FORM_float ? 4 * cols : 0) + (p->forms & QN_FORM_int ? cols / 32 * 72 : 0);
    return p->in == QN_IN_post && bytes < 4 * cols ? 4 * cols : bytes;
}

/* Inputs take turns in two rooms, so that a warp may bring one while others still multiply the one before. An attention is at
 * work between two linears, in the room of the second: not all blocks have a part in it. */
static bool place_inputs(maker *m)
{
    qn_lists *l = m->l;
    u32 most[2] = { 0 };
    for (int i = 0, turn = 0; i < l->n_phases; turn ^= l->phases[i++].op == QN_I_linear)
        most[turn] = (u32)qn_maxi((int)most[turn], (int)((room_bytes(l, &l->phases[i]) + 127) & ~127u));
    if (most[0] > UINT16_MAX) return refuse(m, "rows too long for shared memory");
    for (int i = 0, turn = 0; i < l->n_phases; turn ^= l->phases[i++].op == QN_I_linear)
        l->phases[i].room = (u16)(turn ? most[0] : 0);
    l->form_bytes = most[0] + most[1];
    return true;
}

static bool finish(maker *m, qn_err *e)
{
    qn_lists *l = m->l;
    if (l->n_phases == 0 || l->phases[0].in != QN_IN_embed) return refuse(m, "no embedding at its beginning");
    if (l->phases[l->n_phases - 1].out != QN_OUT_logits) return refuse(m, "no logits at its end");
    if (!place_inputs(m)) return false;
    l->x_bytes = (4 * l->phases[0].cols + 127) & ~127u;
    return qn_deal(l, m->parts, m->n_parts, m->s->smem, &m->why, e);
}

bool qn_lists_make(qn_lists *l, const qn_list_setup *s, const char **why, qn_err *e)
{
    maker m = { .s = s, .l = l };
    const size_t n = (size_t)s->plan->n;
    *l = (qn_lists){ 0 };
    *why = NULL;
    m.parts = qn_new_array(n, sizeof *m.parts, e);
    l->phases = m.parts ? qn_new_array(n, sizeof *l->phases, e) : NULL;
    l->atts = l->phases ? qn_new_array(n, sizeof *l->atts, e) : NULL;
    l->tables = l->atts ? qn_new_array(n, sizeof *l->tables, e) : NULL;
    bool ok = l->tables != NULL;
    while (ok && m.step < s->plan->n) ok = take_step(&m);
    ok = ok && finish(&m, e);
    qn_free(m.parts);
    *why = m.why;
    if (!ok) qn_lists_close(l);
    return ok;
}

void qn_lists_forget(qn_lists *l)
{
    qn_free(l->stages);
    qn_free(l->stage_at);
    qn_free(l->tasks);
    qn_free(l->task_at);
    l->stages = NULL, l->stage_at = NULL, l->tasks = NULL, l->task_at = NULL;
}

void qn_lists_close(qn_lists *l)
{
    qn_lists_forget(l);
    qn_free(l->phases);
    qn_free(l->atts);
    qn_free(l->tables);
    *l = (qn_lists){ 0 };
}
