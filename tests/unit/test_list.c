/* test_list.c - the persistent kernel's instruction lists, run on the host: blocks take turns in a random order, an instruction at a
 * time, and wait where the list says so. The logits must be those of the CPU's plan, the same for every order; nobody may wait
 * for ever; every unit is dealt out once, every arrival counted, every row fetched by the warp that uses it.
 * The device's memory is memory here, under a driver of this file. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
/* cmocka wants these first */
#include <cmocka.h>

#include "base/rng.h"
#include "device_row.h"
#include "engine/engine.h"
#include "kernel/cuda/list.h"

#define BLOCKS 5
#define TOKENS 20 /* more than a page, more than gemma's window */
#define VOCAB 4096

/* ---- a driver whose device is this process */

static int f_attr(int *v, int attribute, int device)
{
    (void)device;
    *v = attribute == CU_ATTR_SM ? BLOCKS : attribute == CU_ATTR_SMEM_BLOCK ? 232448 : attribute == CU_ATTR_COOPERATIVE ? 0 : 9;
    return 0;
}

static int f_angles(const qn_cangles *a)
{
    float *out = (float *)(uintptr_t)a->table;
    const float *freq = (const float *)(uintptr_t)a->freq;
    for (int i = 0; i < a->n_pos * a->n_pair; i++) {
        const double angle = (double)(i / a->n_pair) * (double)freq[i % a->n_pair];
        out[2 * i] = (float)(cos(angle) * (double)a->mscale);
        out[2 * i + 1] = (float)(sin(angle) * (double)a->mscale);
    }
    return 0;
}

static int f_launch(void *fn, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned smem, void *stream,
                    void **args, void **extra)
{
    (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)smem, (void)stream, (void)extra;
    (void)fn; /* loading a plan starts no other kernel */
    return f_angles(args[0]);
}

static int f_init(unsigned flags) { return (void)flags, 0; }
static int f_version(int *v) { return *v = 13000, 0; }
static int f_error(int error, const char **name) { return (void)error, *name = "CUDA_ERROR_TEST", 0; }
static int f_count(int *n) { return *n = 1, 0; }
static int f_get(int *device, int ordinal) { return *device = ordinal, 0; }
static int f_name(char *name, int cap, int device) { return (void)device, snprintf(name, (size_t)cap, "Fake GPU"), 0; }
static int f_bytes(size_t *n, int device) { return (void)device, *n = (size_t)1 << 40, 0; }
static int f_handle(void **out, int device) { return (void)device, *out = (void *)(uintptr_t)4096, 0; }
static int f_handle2(void **out, unsigned flags) { return (void)flags, *out = (void *)(uintptr_t)4096, 0; }
static int f_done(void *p) { return (void)p, 0; }
static int f_done2(void *a, void *b) { return (void)a, (void)b, 0; }
static int f_release(int device) { return (void)device, 0; }
static int f_info(size_t *have, size_t *all) { return *have = *all = (size_t)1 << 40, 0; }
static int f_alloc(u64 *at, size_t bytes) { return *at = (u64)(uintptr_t)qn_new(bytes, NULL), *at ? 0 : CU_OUT_OF_MEMORY; }
static int f_free(u64 at) { return qn_free((void *)(uintptr_t)at), 0; }
static int f_host(void **p, size_t bytes, unsigned flags) { return (void)flags, *p = qn_new(bytes, NULL), *p ? 0 : CU_OUT_OF_MEMORY; }
static int f_host_free(void *p) { return qn_free(p), 0; }
static int f_pin(void *p, size_t bytes, unsigned flags) { return (void)p, (void)bytes, (void)flags, 1; }
static int f_up(u64 to, const void *from, size_t n, void *s) { return (void)s, memcpy((void *)(uintptr_t)to, from, n), 0; }
static int f_fill(u64 to, unsigned char v, size_t n, void *s) { return (void)s, memset((void *)(uintptr_t)to, v, n), 0; }

static const qn_driver driver = {
    .init = f_init, .version = f_version, .error_name = f_error, .device_count = f_count, .device_get = f_get, .device_name = f_name,
    .device_attr = f_attr, .device_bytes = f_bytes, .ctx_retain = f_handle, .ctx_release = f_release, .ctx_set = f_done,
    .mem_info = f_info, .mem_alloc = f_alloc, .mem_free = f_free, .host_alloc = f_host, .host_free = f_host_free, .host_pin = f_pin,
    .copy_up = f_up, .fill = f_fill, .stream_create = f_handle2, .stream_destroy = f_done, .stream_wait = f_done,
    .event_create = f_handle2, .event_destroy = f_done, .event_record = f_done2, .event_wait = f_done, .launch = f_launch,
};

/* ---- the interpreter */

typedef struct block { int token, at; float *in; } block; /* in: what is in its shared memory */

typedef struct machine {
    const qn_lists *l;
    block blocks[BLOCKS];
    u32 *counters;
    const i32 *tokens;
    int first;
    float *logits;            /* [TOKENS, n_vocab] */
    int n_vocab;
} machine;

static float *floats(u64 at) { return (float *)(uintptr_t)at; }

static float rms(const float *x, u32 d, float eps)
{
    double ss = 0;
    for (u32 i = 0; i < d; i++) ss += (double)x[i] * (double)x[i];
    return (float)(1 / sqrt(ss / d + (double)eps));
}

static void bring(machine *m, int b, const qn_ins *i)
{
    float *in = m->blocks[b].in;
    const u32 d = i->cols;
    if (i->in == QN_IN_embed) {
        const qn_wmat *w = &m->l->tables[i->table];
        const u8 *row = (const u8 *)(uintptr_t)w->at + (size_t)m->tokens[m->blocks[b].token] * w->row_bytes;
        for (u32 c = 0; c < d; c++) in[c] = row_weight(w->kind, w->high, w->scale, row, c) * i->factor;
    } else {
        memcpy(in, floats(i->src), d * sizeof *in);
    }
    if (i->in == QN_IN_post) {
        const float s = rms(floats(i->add), d, i->eps);
        for (u32 c = 0; c < d; c++) in[c] += floats(i->add)[c] * s * floats(i->post)[c];
    }
    if (i->keep && b == 0) memcpy(floats(i->keep), in, d * sizeof *in);
    if (i->in == QN_IN_copy) return;
    const float s = rms(in, d, i->eps);
    for (u32 c = 0; c < d; c++) in[c] *= s * floats(i->norm)[c];
}

static float product(const qn_ins *i, u64 row, const float *in)
{
    double s = 0;
    for (u32 c = 0; c < i->cols; c++)
        s += (double)row_weight(i->kind, i->high, i->scale, (const u8 *)(uintptr_t)row, c) * (double)in[c];
    return (float)s;
}

static float act(float x, bool gelu)
{
    return gelu ? 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x))) : x / (1 + expf(-x));
}

static void linear(machine *m, int b, const qn_ins *i)
{
    if (i->in != QN_IN_keep) bring(m, b, i);
    for (u32 u = i->unit; u < i->unit + i->n_units; u++) {
        float v[2] = { product(i, i->wa + (u64)u * i->stride, m->blocks[b].in), 0 };
        const bool gated = i->out == QN_OUT_silu || i->out == QN_OUT_gelu;
        const u32 r = gated ? u : i->each * u;
        if (i->each == 2 && (gated || r + 1 < i->rows)) v[1] = product(i, i->wb + (u64)u * i->stride, m->blocks[b].in);
        if (gated) {
            floats(i->dst)[u] = act(v[0] + (i->bias ? floats(i->bias)[u] : 0), i->out == QN_OUT_gelu) *
                                (v[1] + (i->bias2 ? floats(i->bias2)[u] : 0));
            continue;
        }
        for (u32 k = 0; k < i->each && r + k < i->rows; k++) {
            float y = v[k] + (i->bias ? floats(i->bias)[r + k] : 0);
            if (i->out == QN_OUT_add) y += floats(i->dst)[r + k];
            floats(i->dst)[r + k] = y;
            if (i->out == QN_OUT_logits) m->logits[(size_t)m->blocks[b].token * (size_t)m->n_vocab + r + k] = y;
        }
    }
}

static void turn(const qn_att *t, const float *from, u64 norm, int pos, float *to)
{
    const int half = t->d_rot / 2;
    const float s = norm ? rms(from, (u32)t->d_head, t->eps) : 1;
    for (int i = 0; i < t->d_head; i++) to[i] = from[i] * s * (norm ? floats(norm)[i] : 1);
    for (int i = 0; i < half; i++) {
        const float *angle = floats(t->angles) + 2 * ((size_t)pos * (size_t)half + (size_t)i);
        float *x = to + (t->neox ? i : 2 * i), *y = t->neox ? x + half : x + 1;
        const float x0 = *x, y0 = *y;
        *x = x0 * angle[0] - y0 * angle[1];
        *y = x0 * angle[1] + y0 * angle[0];
    }
}

/* Block b has KV head b; the cache is f32 here. */
static void attend(const machine *m, int b, const qn_att *t, int pos)
{
    const int d = t->d_head, group = t->n_head / t->n_kv, from = t->window && pos >= t->window ? pos - t->window + 1 : 0;
    const int *pages = (const int *)(uintptr_t)t->pages + m->first;
    const size_t row = (size_t)t->n_kv * (size_t)d;
    float q[256], score[TOKENS];
    for (int p = from; p <= pos; p++) assert_true(pages[p / QN_PAGE] >= 0);
#define KV(p, part) (floats(t->cache + (u64)pages[(p) / QN_PAGE] * t->stride) + (size_t)((part) * QN_PAGE + (p) % QN_PAGE) * row + b * d)
    turn(t, floats(t->k) + b * d, t->k_norm, pos, KV(pos, 0));
    memcpy(KV(pos, 1), floats(t->v) + b * d, (size_t)d * sizeof(float));
    for (int g = 0; g < group; g++) {
        float *y = floats(t->y) + (b * group + g) * d, top = -INFINITY, sum = 0;
        turn(t, floats(t->q) + (b * group + g) * d, t->q_norm, pos, q);
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
        for (int i = 0; i < d; i++) y[i] /= sum;
    }
#undef KV
}

/* One instruction of block b; false: it has to wait. */
static bool turn_of(machine *m, int b)
{
    block *k = &m->blocks[b];
    const qn_ins *i = &m->l->ins[(size_t)b * (size_t)m->l->n_ins + (size_t)k->at];
    const u32 tokens = (u32)k->token + (i->in == QN_IN_embed && i->op == QN_I_linear ? 0 : 1);
    const bool idle = i->op == QN_I_attend && b >= m->l->atts[i->unit].n_kv;
    if (!idle && i->wait && m->counters[i->wait - 1] < tokens * i->wait_for) return false;
    if (i->op == QN_I_linear) linear(m, b, i);
    else if (!idle) attend(m, b, &m->l->atts[i->unit], k->token);
    if (i->signal && !idle) m->counters[i->signal - 1]++;
    if (++k->at == m->l->n_ins) k->at = 0, k->token++;
    return true;
}

static void run_all(machine *m, u64 seed)
{
    for (u64 n = 0, stuck = 0;;) {
        int left[BLOCKS], n_left = 0;
        for (int b = 0; b < BLOCKS; b++)
            if (m->blocks[b].token < TOKENS) left[n_left++] = b;
        if (n_left == 0) return;
        stuck = turn_of(m, left[qn_rng_at(seed, n++) % (u64)n_left]) ? 0 : stuck + 1;
        if (stuck < 1000) continue;
        for (int k = 0; k < n_left; k++)
            if (turn_of(m, left[k])) stuck = 0;
        if (stuck) fail_msg("every block waits: block %d at instruction %d", left[0], m->blocks[left[0]].at);
    }
}

/* ---- what must hold of the lists themselves */

static void check_dealing(const qn_lists *l)
{
    for (int k = 0; k < l->n_ins; k++) {
        const qn_ins *first = &l->ins[k];
        if (first->op != QN_I_linear) continue;
        const bool gated = first->out == QN_OUT_silu || first->out == QN_OUT_gelu;
        const u32 units = gated ? first->rows : (first->rows + first->each - 1) / first->each;
        u32 total = 0;
        for (int b = 0; b < l->n_blocks; b++) {
            const qn_ins *i = &l->ins[(size_t)b * (size_t)l->n_ins + (size_t)k];
            assert_true(i->unit + i->n_units <= units);
            total += i->n_units;
            for (int o = 0; o < b; o++) { /* no unit twice */
                const qn_ins *j = &l->ins[(size_t)o * (size_t)l->n_ins + (size_t)k];
                assert_true(j->n_units == 0 || i->n_units == 0 || j->unit + j->n_units <= i->unit || i->unit + i->n_units <= j->unit);
            }
        }
        assert_int_equal(total, units);
    }
}

static void check_fetches(const qn_lists *l)
{
    for (int b = 0; b < l->n_blocks; b++)
        for (u32 w = 0; w < QN_P_WARPS; w++) {
            u32 at = l->fetch_at[(u32)b * QN_P_WARPS + w];
            for (int k = 0; k < l->n_ins; k++) {
                const qn_ins *i = &l->ins[(size_t)b * (size_t)l->n_ins + (size_t)k];
                const u32 j = (w + QN_P_WARPS - i->warp0) % QN_P_WARPS;
                if (i->op != QN_I_linear || j >= i->n_units) continue;
                const qn_fetch *f = &l->fetches[at++];
                assert_true(f->a == i->wa + (u64)(i->unit + j) * i->stride && f->b == i->wb + (u64)(i->unit + j) * i->stride);
                assert_int_equal(f->n, (i->n_units - j + QN_P_WARPS - 1) / QN_P_WARPS);
                assert_int_equal(f->step, QN_P_WARPS * i->stride);
            }
            assert_int_equal(at, l->fetch_at[(u32)b * QN_P_WARPS + w + 1]);
        }
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

static void run_lists(const qn_lists *l, qn_cuda *c, qn_engine *en, const i32 *tokens, u64 seed, float *logits)
{
    machine m = { .l = l, .tokens = tokens, .logits = logits, .n_vocab = en->m->n_vocab };
    const size_t tables = (size_t)((const u8 *)en->tables[0] - en->scratch);
    memcpy((u8 *)(uintptr_t)c->scratch + tables, en->tables[0], en->scratch_bytes - tables);
    m.counters = qn_new_array((size_t)l->n_counters, sizeof *m.counters, NULL);
    for (int b = 0; b < BLOCKS; b++) m.blocks[b].in = qn_new_array(65536, sizeof(float), NULL);
    run_all(&m, seed);
    for (int k = 0; k < l->n_ins; k++) { /* every arrival is counted, and waited for by somebody */
        const qn_ins *i = &l->ins[k];
        if (!i->signal) continue;
        const u32 each = i->op == QN_I_attend ? (u32)l->atts[i->unit].n_kv : BLOCKS;
        assert_int_equal(m.counters[i->signal - 1], each * TOKENS);
        const qn_ins *next = &l->ins[(k + 1) % l->n_ins];
        assert_int_equal(next->wait, i->signal);
        assert_int_equal(next->wait_for, each);
    }
    for (int b = 0; b < BLOCKS; b++) qn_free(m.blocks[b].in);
    qn_free(m.counters);
}

static void check_model(const char *path, float tolerance)
{
    qn_err e = { 0 };
    qn_options o = QN_OPTIONS_DEFAULT;
    o.device = "cpu";
    o.kv = QN_KV_F32;
    o.no_repack = true;
    o.n_ctx = 64;
    o.threads = 1;
    qn_model *m = qn_model_open(path, &e);
    qn_engine *en = m ? qn_engine_open(m, &o, &e) : NULL;
    if (!en) fail_msg("%s: %s", path, e.msg);
    qn_session *s = qn_session_open(en, &e);
    const size_t row = (size_t)m->n_vocab, n = row * TOKENS;
    float *want = qn_new_array(n, sizeof *want, &e), *got = qn_new_array(n, sizeof *got, &e), *again = qn_new_array(n, sizeof *again, &e);
    i32 tokens[TOKENS];
    for (int t = 0; t < TOKENS; t++) {
        tokens[t] = (i32)(qn_rng_at(3, (u64)t) % row);
        assert_true(qn_session_push(s, tokens[t], &e) && qn_engine_step(en, NULL, &e));
        memcpy(want + (size_t)t * row, qn_session_logits(s), row * sizeof *want);
    }
    qn_session_rewind(s, 0); /* sliding pages went back while it ran: take all anew, as one pass would */
    for (int t = 0; t < TOKENS; t++) assert_true(qn_session_push(s, tokens[t], &e));
    qn_timeline_prepare(s, TOKENS);
    qn_cuda *c = qn_new(sizeof *c, &e);
    open_device(c, en);
    qn_lists l;
    const char *why = NULL;
    const qn_list_setup setup = { .plan = &en->plan, .steps = c->steps, .spare = (u64)(uintptr_t)again, .n_blocks = BLOCKS,
                                  .smem = 232448 };
    if (!qn_lists_make(&l, &setup, &why, &e)) fail_msg("%s: %s", path, why ? why : e.msg);
    check_dealing(&l);
    check_fetches(&l);
    run_lists(&l, c, en, tokens, 1, got);
    float most = 0, off = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmaxf(most, fabsf(want[i]));
        off = fmaxf(off, fabsf(want[i] - got[i]));
    }
    if (!(off <= tolerance * most)) fail_msg("%s: off by %g of %g", path, (double)off, (double)most);
    float *other = qn_new_array(n, sizeof *other, &e);
    run_lists(&l, c, en, tokens, 2, other);
    assert_memory_equal(got, other, n * sizeof *got); /* whatever the order */
    qn_lists_close(&l);
    qn_cuda_close(c);
    qn_free(other);
    qn_free(want);
    qn_free(got);
    qn_free(again);
    qn_session_close(s);
    qn_engine_close(en);
    qn_model_close(m);
}

static void lists_are_the_plan(void **state)
{
    (void)state;
    static const char *const names[] = { "llama", "llama3", "mistral", "qwen2", "qwen3", "gemma3" };
    for (size_t i = 0; i < QN_COUNT(names); i++) {
        char path[256];
        snprintf(path, sizeof path, "tests/data/models/%s/model.gguf", names[i]);
        check_model(path, 1e-4f);
    }
    check_model("models/quern-tiny.gguf", 1e-4f); /* Q8_0 */
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(lists_are_the_plan) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
