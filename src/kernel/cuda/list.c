/* list.c - from a plan's steps to instructions. Steps that touch one token's vectors element by element are merged into the
 * linears around them: a norm into the input of the next, an addition or a gate into the output of the one before, rotation and
 * cache into the attention. What remains are phases, and between two phases a wait. Then each phase's units are dealt out so that
 * no block has more than one above another, beginning at another block each time. */
#include "kernel/cuda/list.h"

#include <string.h>

#include "kernel/cuda/weights.h"

#define STAGE 4096u      /* bytes: 2 rows of 1,024 halves */
#define STATIC_SMEM 1280u /* what the kernel declares for itself, at most */
#define MOST_STAGES 4u

typedef struct proto { qn_ins i; u32 units; bool last; } proto; /* an instruction before it is dealt out; last of its phase */

typedef struct maker {
    const qn_list_setup *s;
    proto *at;
    qn_lists *l;
    int n, step;
    u16 phase;              /* counters so far */
    u32 arrivals;           /* of the newest phase */
    /* what is known of the residual stream */
    u64 x_buffer;           /* as the plan names it */
    u64 x;                  /* where it is now */
    bool embed;             /* not made yet: rows of table */
    u64 add, post;          /* still to be added: norm(add) * post */
    u64 picked;             /* another name of it */
    float factor;
    /* how the next input is made */
    u64 in_buffer;
    qn_ins in;
    u64 loaded;             /* what is in shared memory */
    /* the attention that is being put together */
    qn_att att;
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

/* ---- inputs */

static void describe_norm(maker *m, const qn_cnorm *a)
{
    m->in_buffer = a->y;
    m->in = (qn_ins){ .in = QN_IN_norm, .src = m->x, .norm = a->w, .eps = a->eps };
    if (m->embed) {
        m->in.in = QN_IN_embed;
        m->in.keep = m->x;
        m->in.factor = m->factor;
        m->embed = false;
    } else if (m->add) {
        m->in.in = QN_IN_post;
        m->in.add = m->add;
        m->in.post = m->post;
        m->x = m->x == m->s->spare ? m->x_buffer : m->s->spare; /* others may still read the old one */
        m->in.keep = m->x;
        m->add = 0;
    }
}

static bool take_norm(maker *m)
{
    const qn_cnorm *a = &args_at(m, 0)->norm;
    if (a->x == a->y) { /* a norm behind a block, and what it is added to */
        if (!is(m, 1, OP_add) || args_at(m, 1)->add.y != a->y || args_at(m, 1)->add.x != m->x_buffer || m->add)
            return refuse(m, "a norm in place that no addition follows");
        m->add = a->y;
        m->post = a->w;
        m->step += 2;
        return true;
    }
    if (a->x != m->x_buffer && a->x != m->picked) return refuse(m, "a norm of something else than the residual stream");
    describe_norm(m, a);
    m->step++;
    return true;
}

/* ---- linears */

static u32 step_cols(u32 kind) { return kind == QN_W_f32 ? 128 : kind <= QN_W_bf16 ? 256 : kind == QN_W_q8 ? 512 : 1024; }

static u32 planes(u32 kind, u32 cols, u32 *high, u32 *scale)
{
    const u32 values = kind == QN_W_f32 ? 4 * cols : kind <= QN_W_bf16 ? 2 * cols : kind == QN_W_q8 ? cols : cols / 2;
    const u32 a = (values + 15) & ~15u, h = kind == QN_W_q6 ? (cols / 4 + 15) & ~15u : 0;
    const u32 s = kind < QN_W_q8 ? 0 : ((kind == QN_W_q4m || kind == QN_W_q6 ? cols / 8 : cols / 16) + 15) & ~15u;
    *high = a;
    *scale = a + h;
    return a + h + s;
}

/* each: rows of a unit */
static void set_matrix(qn_ins *i, const qn_wmat *w, u32 each)
{
    u32 most = step_cols(w->kind), high, scale;
    while (planes(w->kind, most + step_cols(w->kind), &high, &scale) <= STAGE / each) most += step_cols(w->kind);
    i->each = (u8)each;
    i->kind = (u8)w->kind;
    i->rows = w->rows;
    i->cols = w->cols;
    i->span = most < w->cols ? most : w->cols;
    const u32 bytes = planes(w->kind, i->span, &i->s_high, &i->s_scale);
    i->row = i->span == w->cols && w->row_bytes * each <= STAGE ? w->row_bytes : 0;
    i->second = i->row ? i->row : bytes;
    i->high = w->high;
    i->scale = w->scale;
    i->wa = w->at;
    i->wb = w->at + w->row_bytes;
    i->stride = each * w->row_bytes;
}

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

static int set_output(maker *m, qn_ins *i, u32 *units) /* returns the steps that this took */
{
    const qn_clinear *a = &args_at(m, 0)->linear;
    i->dst = a->y;
    i->bias = a->bias;
    *units = (a->w.rows + i->each - 1) / i->each;
    if (is_gated(m)) {
        const qn_clinear *u = &args_at(m, 1)->linear;
        i->out = is(m, 2, OP_geglu) ? QN_OUT_gelu : QN_OUT_silu;
        i->bias2 = u->bias;
        i->wb = u->w.at;
        i->stride = a->w.row_bytes;
        *units = a->w.rows;
        return 3;
    }
    if (is(m, 1, OP_add) && args_at(m, 1)->add.y == a->y && args_at(m, 1)->add.x == m->x_buffer) {
        i->out = QN_OUT_add;
        i->dst = m->x;
        return 2;
    }
    i->out = step_at(m, 0)->logits ? QN_OUT_logits : QN_OUT_store;
    return 1;
}

static void set_input(maker *m, qn_ins *i, u64 x)
{
    if (m->loaded == x) {
        i->in = QN_IN_keep;
        return;
    }
    if (m->in_buffer == x) {
        i->in = m->in.in;
        i->src = m->in.src, i->norm = m->in.norm, i->add = m->in.add, i->post = m->in.post, i->keep = m->in.keep;
        i->eps = m->in.eps, i->factor = m->in.factor;
        m->in_buffer = 0;
    } else {
        i->in = QN_IN_copy;
        i->src = x;
    }
    i->wait = m->phase; /* counter m->phase - 1, plus one */
    i->wait_for = m->arrivals;
    m->loaded = x;
}

static bool take_linear(maker *m)
{
    const qn_clinear *a = &args_at(m, 0)->linear;
    proto *p = &m->at[m->n++];
    *p = (proto){ .i = { .op = QN_I_linear, .step = (u32)m->step } };
    const u32 warps = (u32)m->s->n_blocks * QN_P_WARPS;
    set_matrix(&p->i, &a->w, is_gated(m) || a->w.rows / 2 >= warps ? 2 : 1);
    set_input(m, &p->i, a->x);
    if (a->w.cols % 4) return refuse(m, "a width that is no multiple of 4");
    const int used = set_output(m, &p->i, &p->units);
    if (used == 2 && (m->embed || m->add)) return refuse(m, "an addition to a residual stream that is not there yet");
    m->step += used;
    const qn_step *next = step_at(m, 0);
    p->last = !next || next->op != OP_linear || args_at(m, 0)->linear.x != m->loaded || p->i.out != QN_OUT_store;
    if (!p->last) return true;
    p->i.signal = ++m->phase;
    m->arrivals = (u32)m->s->n_blocks;
    m->loaded = 0;
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

static bool take_attend(maker *m)
{
    if (!is(m, 1, OP_store) || !is(m, 2, OP_attend)) return refuse(m, "a rotation without attention");
    const qn_crope *r = &args_at(m, 0)->rope;
    const qn_cstore *s = &args_at(m, 1)->store;
    const qn_cattend *a = &args_at(m, 2)->attend;
    const int group = a->n_head / a->n_kv;
    if (a->type == QN_KVT_q8) return refuse(m, "a q8_0 KV cache");
    if (a->d_head > 256 || group > QN_P_WARPS - 2) return refuse(m, "heads too large or too many for one block");
    if (a->n_kv > m->s->n_blocks) return refuse(m, "more KV heads than multiprocessors");
    qn_att *t = &m->l->atts[m->l->n_atts];
    *t = m->att;
    t->q = a->q, t->k = s->k, t->v = s->v, t->y = a->y, t->angles = r->table, t->cache = a->cache, t->stride = a->stride;
    t->pages = a->at.pages;
    t->n_head = a->n_head, t->n_kv = a->n_kv, t->d_head = a->d_head, t->d_rot = r->d_rot, t->neox = r->neox;
    t->type = a->type, t->window = a->window, t->scale = a->scale;
    t->chunks = qn_mini(m->s->n_blocks / a->n_kv, 32);
    m->l->n_heads = qn_maxi(m->l->n_heads, a->n_kv);
    const size_t floats = (size_t)a->n_kv * (size_t)t->chunks * (size_t)group * ((size_t)a->d_head + 2);
    if (floats > m->l->part_floats) m->l->part_floats = floats;
    proto *p = &m->at[m->n++];
    *p = (proto){ .i = { .op = QN_I_attend, .unit = (u32)m->l->n_atts++, .step = (u32)m->step + 2, .wait = m->phase,
                         .wait_for = m->arrivals, .signal = (u16)(m->phase + 1) }, .last = true };
    m->phase++;
    m->arrivals = (u32)a->n_kv;
    m->att = (qn_att){ 0 };
    m->loaded = 0;
    m->step += 3;
    return true;
}

/* ---- the walk over the plan */

static bool take_step(maker *m)
{
    const qn_cargs *a = args_at(m, 0);
    switch (step_at(m, 0)->op) {
    case OP_embed:
        m->x_buffer = m->x = a->embed.y;
        m->embed = true;
        m->factor = a->embed.scale;
        m->l->tables[m->l->n_tables++] = a->embed.table;
        m->step++;
        return true;
    case OP_rmsnorm: return take_norm(m);
    case OP_headnorm: return take_head_norm(m);
    case OP_linear: return take_linear(m);
    case OP_rope: return take_attend(m);
    case OP_pick:
        if (a->pick.x != m->x_buffer) return refuse(m, "logits of something else than the residual stream");
        m->picked = a->pick.y;
        m->step++;
        return true;
    default: return refuse(m, "a step that it cannot merge");
    }
}

/* ---- forms, shared memory, dealing out */

static u32 form_of(u32 kind) { return kind < QN_W_q8 ? QN_FORM_float : QN_FORM_int; }

static u32 input_bytes(u32 forms, u32 cols)
{
    const u32 one = (cols + 31) / 32 * 128;
    return (forms & QN_FORM_float ? one : 0) + (forms & QN_FORM_int ? one : 0);
}

/* All linears of a phase see the input in the same forms. */
static u32 set_forms(maker *m)
{
    u32 most = 0;
    for (int i = 0, begin = 0; i < m->n; i++) {
        if (!m->at[i].last) continue;
        u8 forms = 0;
        for (int k = begin; k <= i; k++)
            if (m->at[k].i.op == QN_I_linear) forms |= (u8)form_of(m->at[k].i.kind);
        for (int k = begin; k <= i; k++) m->at[k].i.forms = forms;
        const u32 bytes = m->at[i].i.op == QN_I_linear ? input_bytes(forms, m->at[i].i.cols) : 0;
        most = bytes > most ? bytes : most;
        begin = i + 1;
    }
    for (int i = 0; i < m->l->n_atts; i++) {
        const qn_att *t = &m->l->atts[i];
        const u32 group = (u32)(t->n_head / t->n_kv), d = (u32)t->d_head;
        const u32 bytes = 4 * (group * d + 2 * d + QN_P_WARPS * group * (d + 2));
        most = bytes > most ? bytes : most;
    }
    return (most + 127) & ~127u;
}

static bool set_smem(maker *m)
{
    qn_lists *l = m->l;
    l->input_bytes = set_forms(m);
    l->stage_bytes = STAGE;
    for (l->n_stages = MOST_STAGES; l->n_stages >= 2; l->n_stages--) {
        l->smem = l->input_bytes + QN_P_WARPS * l->n_stages * (STAGE + 8) + QN_P_WINDOW * sizeof(qn_ins);
        if (l->smem + STATIC_SMEM <= m->s->smem) return true;
    }
    return refuse(m, "too little shared memory");
}

/* Block b's share of the phase at[begin..end]; *dealt counts the units it got so far, so that its warps take turns. */
static void deal(const maker *m, int begin, int end, int phase, int b, u32 *dealt)
{
    const u64 n = (u64)m->s->n_blocks, turn = ((u64)b + (u64)phase * 37) % n;
    u64 total = 0, before = 0;
    for (int k = begin; k <= end; k++) total += m->at[k].units;
    const u64 from = turn * total / n, to = (turn + 1) * total / n;
    for (int k = begin; k <= end; k++) {
        qn_ins *i = &m->l->ins[(size_t)b * (size_t)m->n + (size_t)k];
        *i = m->at[k].i;
        const u64 units = m->at[k].units, lo = from > before ? from - before : 0, hi = to > before ? to - before : 0;
        if (i->op == QN_I_linear) {
            i->unit = (u32)(lo < units ? lo : units);
            i->n_units = (u32)((hi < units ? hi : units) - i->unit);
            i->warp0 = (u16)(*dealt % QN_P_WARPS);
            *dealt += i->n_units;
        }
        before += units;
    }
}

static void deal_all(const maker *m)
{
    for (int b = 0; b < m->s->n_blocks; b++) {
        u32 dealt = 0;
        for (int i = 0, begin = 0, phase = 0; i < m->n; i++) {
            if (!m->at[i].last) continue;
            deal(m, begin, i, phase++, b, &dealt);
            begin = i + 1;
        }
    }
}

/* ---- what each warp fetches */

static qn_fetch fetch_of(const qn_ins *i, u32 j)
{
    const u64 first = (u64)(i->unit + j) * i->stride;
    return (qn_fetch){ .a = i->wa + first, .b = i->wb + first, .n = (i->n_units - j + QN_P_WARPS - 1) / QN_P_WARPS,
                       .step = i->stride * QN_P_WARPS, .cols = i->cols, .span = i->span, .kind = i->kind, .high = i->high,
                       .scale = i->scale, .s_high = i->s_high, .s_scale = i->s_scale, .each = i->each,
                       .row = i->row, .second = i->second };
}

static void list_fetches(const maker *m)
{
    qn_lists *l = m->l;
    for (int b = 0; b < l->n_blocks; b++)
        for (u32 w = 0; w < QN_P_WARPS; w++) {
            l->fetch_at[(u32)b * QN_P_WARPS + w] = (u32)l->n_fetches;
            for (int k = 0; k < l->n_ins; k++) {
                const qn_ins *i = &l->ins[(size_t)b * (size_t)l->n_ins + (size_t)k];
                const u32 j = (w + QN_P_WARPS - i->warp0) % QN_P_WARPS;
                if (i->op == QN_I_linear && j < i->n_units) l->fetches[l->n_fetches++] = fetch_of(i, j);
            }
        }
    l->fetch_at[l->n_blocks * QN_P_WARPS] = (u32)l->n_fetches;
}

static bool finish(maker *m, qn_err *e)
{
    qn_lists *l = m->l;
    if (m->n == 0 || m->at[0].i.in != QN_IN_embed) return refuse(m, "no embedding at its beginning");
    if (m->at[m->n - 1].i.out != QN_OUT_logits) return refuse(m, "no logits at its end");
    m->at[0].i.wait = m->phase; /* the token before */
    m->at[0].i.wait_for = m->arrivals;
    if (!set_smem(m)) return false;
    l->n_ins = m->n;
    l->n_counters = m->phase;
    const size_t n = (size_t)m->s->n_blocks;
    l->ins = qn_new_array(n * (size_t)m->n, sizeof *l->ins, e);
    l->fetch_at = l->ins ? qn_new_array(n * QN_P_WARPS + 1, sizeof *l->fetch_at, e) : NULL;
    l->fetches = l->fetch_at ? qn_new_array(n * QN_P_WARPS * (size_t)m->n, sizeof *l->fetches, e) : NULL;
    if (!l->fetches) return false;
    deal_all(m);
    list_fetches(m);
    return true;
}

bool qn_lists_make(qn_lists *l, const qn_list_setup *s, const char **why, qn_err *e)
{
    maker m = { .s = s, .l = l };
    const size_t n = (size_t)s->plan->n;
    *l = (qn_lists){ .n_blocks = s->n_blocks };
    *why = NULL;
    m.at = qn_new_array(n, sizeof *m.at, e);
    l->atts = m.at ? qn_new_array(n, sizeof *l->atts, e) : NULL;
    l->tables = l->atts ? qn_new_array(n, sizeof *l->tables, e) : NULL;
    bool ok = l->tables != NULL;
    while (ok && m.step < s->plan->n) ok = take_step(&m);
    ok = ok && finish(&m, e);
    qn_free(m.at);
    *why = m.why;
    if (!ok) qn_lists_close(l);
    return ok;
}

void qn_lists_close(qn_lists *l)
{
    qn_free(l->ins);
    qn_free(l->fetches);
    qn_free(l->fetch_at);
    qn_free(l->atts);
    qn_free(l->tables);
    *l = (qn_lists){ 0 };
}
