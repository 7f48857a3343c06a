/* engine.c - opens an engine: takes all memory that running will need, once, and has the decoder write the plan over it. */
#include "engine/record.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/sweep.h"
#include "engine/warm.h"
#include "model/describe.h"
#include "model/fuse.h"

#define PARTS_BYTES ((size_t)4 << 20)   /* room for sums of attention by chunks: 8 rows of 14 heads of 64 in 17,000 tokens */
#define SPLIT_MOST 8                    /* more rows than that are enough work for all lanes without cutting positions */
#define LOGITS_BYTES ((size_t)64 << 20) /* room for the logits of one pass: 340 rows of 49,152, 110 of 151,936 */

static bool check_options(const qn_engine *en, const qn_options *o, qn_err *e)
{
    const qn_model *m = en->m;
    if (o->threads < 0 || o->threads > 1024) return qn_fail(e, QN_EUSAGE, "threads %d is not between 1 and 1024", o->threads);
    if (o->n_ctx < 0 || o->n_seq < 0 || o->n_batch < 0)
        return qn_fail(e, QN_EUSAGE, "context, sessions and batch cannot be negative");
    if (o->n_seq > 4096) return qn_fail(e, QN_EUSAGE, "%d sessions; at most 4096 may be open at once", o->n_seq);
    if (o->n_batch > 65536) return qn_fail(e, QN_EUSAGE, "batch of %d rows; at most 65536", o->n_batch);
    if (o->isa < 0 || o->isa > (int)ISA_neoni8mm) return qn_fail(e, QN_EUSAGE, "unknown ISA level %d", o->isa);
    if (o->isa && !qn_cpu_runs((qn_isa)o->isa))
        return qn_fail(e, QN_EUNSUPPORTED, "this processor has no %s; its highest level is %s", qn_isa_name((qn_isa)o->isa),
                       qn_isa_name(qn_cpu_isa()));
    if (o->kv < QN_KV_F16 || o->kv > QN_KV_Q8_0) return qn_fail(e, QN_EUSAGE, "unknown KV type %d", o->kv);
    if (o->kv == QN_KV_Q8_0 && m->d_head % 32)
        return qn_fail(e, QN_EUNSUPPORTED, "a q8_0 KV cache needs heads of a multiple of 32 values; this model's have %d",
                       m->d_head);
    return true;
}

static void set_sizes(qn_engine *en, const qn_options *o)
{
    en->n_ctx = o->n_ctx ? o->n_ctx : qn_mini(en->m->n_ctx_train, 8192);
    en->n_seq = o->n_seq ? o->n_seq : 1;
    const i64 most = (i64)en->n_ctx * en->n_seq; /* all there can be to compute */
    en->n_batch = (int)qn_minz((size_t)(o->n_batch ? o->n_batch : 512), (size_t)most);
    en->n_batch = qn_maxi(en->n_batch, en->n_seq); /* a token of every session fits into one pass */
    en->n_table = (int)(((i64)en->n_ctx + QN_PAGE - 1) / QN_PAGE);
    const int rows = (int)qn_minz(LOGITS_BYTES / ((size_t)en->m->n_vocab * sizeof(float)), (size_t)en->n_batch);
    en->n_logits = qn_maxi(rows, en->n_seq);
    const size_t chunks = ((size_t)en->n_ctx + QN_CHUNK - 1) / QN_CHUNK;
    const size_t row_bytes = chunks * (size_t)en->m->n_head * (size_t)(en->m->d_head + 2) * sizeof(float);
    en->b.parts.n_chunks = (int)chunks;
    en->b.parts.n_split = qn_maxi(1, (int)qn_minz(PARTS_BYTES / row_bytes, SPLIT_MOST));
}

/* Pages of one session in a group: all of its context, or what a window and one pass reach. */
static int pages_per_session(const qn_engine *en, int g)
{
    if (g == GROUP_global) return en->n_table;
    const i64 reach = ((i64)en->m->window + en->n_batch) / QN_PAGE + 2;
    return (int)(reach < en->n_table ? reach : en->n_table);
}

typedef struct need { void **at; size_t n, size; } need;

/* Everything a pass writes to, in one mapping; each part begins on a cache line. */
static size_t list_scratch(qn_engine *en, need *out)
{
    const qn_model *m = en->m;
    qn_buffers *b = &en->b;
    const size_t n = (size_t)en->n_batch, q = (size_t)m->n_head * (size_t)m->d_head, kv = (size_t)m->n_kv * (size_t)m->d_head;
    const size_t d = (size_t)m->d_model, ff = (size_t)m->d_ff, nl = (size_t)en->n_logits, f = sizeof(float);
    size_t wide = d > q ? d : q;
    if (ff > wide) wide = ff;
    const size_t w32 = (wide + 31) / 32, heads = (size_t)b->parts.n_split * (size_t)m->n_head;
    const need all[] = {
        { (void **)&b->bytes.q, n * w32 * 32, 1 }, { (void **)&b->bytes.shift, n * w32, sizeof(i32) },
        { (void **)&b->bytes.start, n * w32, sizeof(i32) }, { (void **)&b->bytes.start16, n * w32 * 2, sizeof(i32) },
        { (void **)&b->bytes.unit, n, f },
        { (void **)&b->narrow, n * wide, sizeof(u16) },
        { (void **)&b->x, n * d, f }, { (void **)&b->h, n * d, f }, { (void **)&b->q, n * q, f }, { (void **)&b->a, n * q, f },
        { (void **)&b->k, n * kv, f }, { (void **)&b->v, n * kv, f },
        { (void **)&b->gate, n * ff, f }, { (void **)&b->up, n * ff, f },
        { (void **)&b->last, nl * d, f }, { (void **)&b->normed, nl * d, f }, { (void **)&b->logits, nl * (size_t)m->n_vocab, f },
        { (void **)&b->parts.sums, heads * (size_t)b->parts.n_chunks * (size_t)(m->d_head + 2), f },
        { (void **)&b->parts.ended, heads, sizeof(i32) },
        { (void **)&b->tokens, n, sizeof(i32) }, { (void **)&b->pos, n, sizeof(i32) }, { (void **)&b->asking, nl, sizeof(i32) },
        { (void **)&en->firsts, n, sizeof(i32) }, { (void **)&b->cache, (size_t)m->n_layer, sizeof(u8 *) },
        { (void **)&en->tables[0], (size_t)en->n_seq * (size_t)en->n_table, sizeof(i32) },
        { (void **)&en->tables[1], (size_t)en->n_seq * (size_t)en->n_table, sizeof(i32) },
    };
    memcpy(out, all, sizeof all);
    return QN_COUNT(all);
}

/* False: more than can be counted. */
static bool kv_bytes(const qn_engine *en, size_t row_bytes, const int layers[N_GROUPS], size_t *out)
{
    size_t one, all;
    *out = 0;
    for (int g = 0; g < N_GROUPS; g++) {
        const i64 pages = (i64)pages_per_session(en, g) * en->n_seq;
        if (pages > INT_MAX || !qn_mul((size_t)layers[g] * 2 * QN_PAGE, row_bytes, &one) || !qn_mul(one, (size_t)pages, &all) ||
            !qn_add(*out, all, out)) return false;
    }
    return true;
}

static bool check_memory(const qn_engine *en, size_t scratch, size_t row_bytes, const int layers[N_GROUPS], qn_err *e)
{
    size_t kv, all;
    if (!kv_bytes(en, row_bytes, layers, &kv) || !qn_add(kv, scratch, &all))
        return qn_fail(e, QN_ENOMEM, "a context of %d tokens for each of %d sessions is more than can be addressed; lower -c",
                       en->n_ctx, en->n_seq);
    const u64 have = qn_mem_available();
    if (en->cuda || have == 0 || all <= have) return true; /* on a device: looked at there */
    return qn_fail(e, QN_ENOMEM, "not enough memory for a context of %d tokens: need %llu bytes (KV %llu, scratch %llu), "
                   "have %llu; lower -c or use --kv q8_0", en->n_ctx, (unsigned long long)all, (unsigned long long)kv,
                   (unsigned long long)scratch, (unsigned long long)have);
}

static bool take_scratch(qn_engine *en, const int layers[N_GROUPS], size_t row_bytes, qn_err *e)
{
    need parts[32];
    const size_t n = list_scratch(en, parts);
    size_t total = 0;
    for (size_t i = 0; i < n; i++) total += (parts[i].n * parts[i].size + 63) & ~(size_t)63;
    if (!check_memory(en, total, row_bytes, layers, e)) return false;
    en->scratch = qn_pages_new(total, e);
    if (!en->scratch) return false;
    en->scratch_bytes = total;
    for (size_t i = 0, at = 0; i < n; i++) {
        *parts[i].at = en->scratch + at;
        at += (parts[i].n * parts[i].size + 63) & ~(size_t)63;
    }
    return true;
}

static bool take_memory(qn_engine *en, int kv, qn_err *e)
{
    const qn_model *m = en->m;
    const qn_dtype type = qn_kv_dtype(kv);
    const size_t row_bytes = qn_kv_row_bytes(type, m->n_kv, m->d_head);
    int layers[N_GROUPS] = { 0 };
    for (int i = 0; i < m->n_layer; i++) layers[m->layers[i].sliding]++;
    if (!take_scratch(en, layers, row_bytes, e)) return false;
    for (int g = 0; g < N_GROUPS; g++) {
        const qn_remote remote = { .copy = qn_device_pages.copy, .user = en->cuda };
        if (!qn_cache_open(&en->kv[g], layers[g], pages_per_session(en, g) * en->n_seq, row_bytes, en->cuda ? &remote : NULL, e))
            return false;
        memset(en->tables[g], 0xFF, (size_t)en->n_seq * (size_t)en->n_table * sizeof(i32));
        en->b.rows[g] = (qn_rows){ .pos = en->b.pos, .first = en->firsts, .pages = en->tables[g] };
        en->b.page_stride[g] = en->kv[g].page_bytes;
    }
    if (en->cuda && !qn_device_reserve(en, e)) return false;
    en->b.kv_type = type;
    for (int i = 0, at[N_GROUPS] = { 0 }; i < m->n_layer; i++) {
        const int g = m->layers[i].sliding;
        en->b.cache[i] = en->kv[g].memory + (size_t)at[g]++ * en->kv[g].layer_bytes;
    }
    qn_record_load(en, "memory", en->scratch_bytes + en->kv[0].bytes + en->kv[1].bytes);
    en->sessions = qn_new_array((size_t)en->n_seq, sizeof(qn_session *), e);
    return en->sessions != NULL;
}

static bool warm(qn_engine *en, const qn_options *o, qn_err *e)
{
    u64 bytes = 0;
    if (!qn_warm(en->m->src, o->progress, o->progress_user, e)) return false;
    for (int i = 0; i < en->m->src->n_maps; i++) bytes += en->m->src->maps[i].bytes;
    qn_record_load(en, "warm", bytes);
    return true;
}

static bool start(qn_engine *en, const qn_options *o, qn_err *e)
{
    en->pool = qn_pool_open(o->threads, e);
    if (!en->pool) return false;
    qn_record_load(en, "threads", 0);
    en->plan.isa = o->isa ? (qn_isa)o->isa : qn_cpu_isa();
    en->plan.tuned = &en->tuned;
    if (o->tuning && (!qn_tuned_read(&en->tuned, o->tuning, qn_pool_n(en->pool), e) ||
                      !qn_tuned_add_table(&en->tuned, qn_pool_n(en->pool), e))) return false;
    if (o->kernel && !qn_tuned_override(&en->tuned, o->kernel, e)) return false;
    if (!qn_decoder_plan(en->m, &en->b, &en->plan, e)) return false;
    qn_record_load(en, "plan", 0);
    if (en->cuda) {
        if (!qn_device_load(en, o, e)) return false;
        qn_record_load(en, "device", en->scratch_bytes);
        return true;
    }
    if (!o->no_repack) {
        const qn_repack r = { .plan = &en->plan, .pool = en->pool, .b = &en->b, .path = en->m->src->path,
                              .progress = o->progress, .user = o->progress_user };
        if (!qn_repack_run(&r, &en->packed, e)) return false;
        qn_record_load(en, "repack", en->packed.bytes);
    }
    return qn_fuse_run(&en->plan, e) && (en->packed.bytes || warm(en, o, e)) &&
           qn_plan_finish(&en->plan, qn_pool_n(en->pool), e);
}

/* ordinal -1: the CPU */
static qn_engine *open_on(const qn_model *m, const qn_options *o, int ordinal, qn_err *e)
{
    qn_engine *en = qn_new(sizeof *en, e);
    if (!en) return NULL;
    en->m = m;
    snprintf(en->device, sizeof en->device, "cpu");
    if (check_options(en, o, e) && qn_record_open(en, o->trace, e)) {
        set_sizes(en, o);
        if (ordinal >= 0) en->cuda = qn_cuda_open(ordinal, e);
        if ((ordinal < 0 || en->cuda) && take_memory(en, o->kv, e) && start(en, o, e)) {
            qn_record_opened(en);
            return en;
        }
    }
    qn_engine_close(en);
    return NULL;
}

qn_engine *qn_engine_open(const qn_model *m, const qn_options *o, qn_err *e)
{
    qn_where where;
    if (!qn_where_parse(o->device, &where, e)) return NULL;
    qn_engine *en = where.cuda ? open_on(m, o, where.ordinal, e) : NULL;
    if (en || where.must || (where.cuda && e->code == QN_ECANCELLED)) return en;
    const qn_err why = *e;
    *e = (qn_err){ 0 };
    en = open_on(m, o, -1, e);
    if (en && where.cuda) snprintf(en->note, sizeof en->note, "%s", why.msg);
    return en;
}

void qn_engine_close(qn_engine *en)
{
    if (!en) return;
    qn_record_close(en);
    qn_pool_close(en->pool);
    qn_cuda_close(en->cuda); /* before the plan and the scratch: it borrows both */
    qn_plan_close(&en->plan);
    qn_tuned_close(&en->tuned);
    qn_packed_close(&en->packed);
    for (int g = 0; g < N_GROUPS; g++) qn_cache_close(&en->kv[g]);
    qn_pages_free(en->scratch, en->scratch_bytes);
    qn_free(en->sessions);
    qn_free(en);
}

double qn_engine_sweep(qn_engine *en)
{
    u64 sink = 0;
    const size_t bytes = en->packed.bytes / QN_SWEEP_PAGE * QN_SWEEP_PAGE;
    const u64 ns = bytes ? qn_sweep(en->pool, en->packed.memory, bytes, &sink) : 0;
    return ns ? (double)bytes * 1e9 / (double)ns : 0;
}

void qn_engine_cancel(qn_engine *en) { atomic_store(&en->cancel, 1); }
int qn_engine_threads(const qn_engine *en) { return qn_pool_n(en->pool); }
const char *qn_engine_isa(const qn_engine *en) { return qn_isa_name(en->plan.isa); }
const char *qn_engine_device(const qn_engine *en) { return en->device; }
const char *qn_engine_device_note(const qn_engine *en) { return en->note[0] ? en->note : NULL; }
qn_trace *qn_engine_trace(const qn_engine *en) { return en->rec ? qn_tracer_trace(en->rec->tracer) : NULL; }
int qn_engine_n_steps(const qn_engine *en) { return en->plan.n; }

void qn_engine_get_step(const qn_engine *en, int i, int rows, int ctx, qn_step_info *out)
{
    const qn_step *s = &en->plan.steps[i];
    qn_args args = s->args;
    args.n = s->logits ? qn_mini(rows, 1) : rows;
    const qn_cost c = qn_ops[s->op].cost(&args, ctx);
    *out = (qn_step_info){ .op = qn_ops[s->op].name, .role = s->role, .type = qn_step_type(s), .layer = s->layer,
                           .bytes = c.bytes, .flops = c.flops };
    const qn_shape shape = qn_shape_of(s->op, &args, args.n, ctx);
    qn_shape_print(&shape, true, out->shape);
    for (int b = 0; b < N_BUCKETS; b++) {
        out->kernel[b] = en->cuda ? qn_cuda_kernel(en->cuda, i, b) : s->choice[b].kernel->name;
        out->reason[b] = en->cuda ? qn_cuda_reason(en->cuda, i, b) : s->choice[b].reason;
        out->rejected[b] = en->cuda ? "" : s->choice[b].rejected;
    }
}

void qn_engine_get_memory(const qn_engine *en, qn_memory *out)
{
    *out = (qn_memory){ .kv = en->kv[0].bytes + en->kv[1].bytes, .scratch = en->scratch_bytes };
    for (size_t i = 0; i < en->m->src->n_tensors; i++) out->weights += en->m->src->tensors[i].bytes;
    if (en->cuda) out->device = qn_cuda_taken(en->cuda);
    qn_mem_process(&out->resident, &out->peak);
}
