/* record.c - fills events from an engine. Strings of a plan are borrowed: a line is made before the call returns. */
#include "engine/record.h"

#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/sha256.h"

static qn_str text(const char *s) { return (qn_str){ s ? s : "", s ? strlen(s) : 0 }; }

static qn_event event(const qn_engine *en, qn_ev_kind kind, u64 now_ns)
{
    return (qn_event){ .kind = kind, .t = qn_trace_time(qn_tracer_trace(en->rec->tracer), now_ns) };
}

bool qn_record_open(qn_engine *en, qn_trace *t, qn_err *e)
{
    if (!t) return true;
    en->rec = qn_new(sizeof *en->rec, e);
    if (!en->rec) return false;
    en->rec->mark_ns = qn_now_ns();
    en->rec->steps = qn_trace_wants(t, QN_TRACE_STEP);
    en->rec->tokens = qn_trace_wants(t, QN_TRACE_TOKEN);
    en->rec->tracer = qn_tracer_open(t, e);
    return en->rec->tracer != NULL;
}

/* ---- memory */

static u64 used_bytes(const qn_cache *kv) { return (u64)kv->n_used * kv->page_bytes; }

enum { PART_embedding, PART_attention, PART_ffn, PART_output, PART_norms, N_PARTS };
static const char *const part_names[N_PARTS] = { "embedding", "attention", "feed-forward", "output", "norms" };

static int part_of(const char *tensor)
{
    if (strstr(tensor, "norm")) return PART_norms;
    if (strstr(tensor, ".attn_")) return PART_attention;
    if (strstr(tensor, ".ffn_")) return PART_ffn;
    return strncmp(tensor, "output", 6) == 0 ? PART_output : PART_embedding;
}

static void put_memory(qn_engine *en, const char *when)
{
    qn_event ev = event(en, QN_EV_memory, qn_now_ns());
    u64 parts[N_PARTS] = { 0 };
    qn_memory m;
    char json[256];
    int n = 0;
    qn_engine_get_memory(en, &m);
    for (size_t i = 0; i < en->m->src->n_tensors; i++)
        parts[part_of(en->m->src->tensors[i].name)] += en->m->src->tensors[i].bytes;
    for (int i = 0; i < N_PARTS; i++)
        n += snprintf(json + n, sizeof json - (size_t)n, "%c\"%s\":%llu%s", i ? ',' : '{', part_names[i],
                      (unsigned long long)parts[i], i + 1 < N_PARTS ? "" : "}");
    ev.memory = (qn_ev_memory){ .when = text(when), .weights = (i64)m.weights, .kv = (i64)m.kv, .scratch = (i64)m.scratch,
                                .kv_used = (i64)en->rec->kv_most,
                                .resident = (i64)m.resident, .peak = (i64)m.peak };
    ev.memory.parts = (qn_str){ json, (size_t)n };
    qn_tracer_put(en->rec->tracer, &ev);
}

void qn_record_close(qn_engine *en)
{
    qn_recorder *r = en->rec;
    if (!r) return;
    if (r->tracer && en->sessions && en->plan.n) put_memory(en, "end");
    qn_tracer_close(r->tracer);
    qn_free(r->ns);
    qn_free(r);
    en->rec = NULL;
}

/* ---- loading */

void qn_record_load(qn_engine *en, const char *phase, u64 bytes)
{
    if (!en->rec) return;
    const u64 now = qn_now_ns();
    qn_event ev = event(en, QN_EV_load, en->rec->mark_ns);
    ev.load = (qn_ev_load){ .phase = text(phase), .ns = (i64)(now - en->rec->mark_ns), .bytes = (i64)bytes };
    qn_tracer_put(en->rec->tracer, &ev);
    en->rec->mark_ns = now;
}

static void put_plan(qn_engine *en)
{
    static const char *const rows[N_BUCKETS] = { "1", "2-8", "9+" };
    for (int i = 0; i < en->plan.n; i++) {
        const qn_step *s = &en->plan.steps[i];
        qn_step_info info; /* knows the kernels of every device */
        char shape[QN_SHAPE_TEXT];
        const qn_shape sizes = qn_shape_of(s->op, &s->args, 1, 0);
        qn_args one = s->args;
        one.n = 1;
        const qn_cost cost = qn_ops[s->op].cost(&one, 0), next = qn_ops[s->op].cost(&one, 1);
        qn_event ev = event(en, QN_EV_plan, en->rec->mark_ns);
        qn_engine_get_step(en, i, 1, 0, &info);
        qn_shape_print(&sizes, false, shape);
        ev.plan = (qn_ev_plan){ .step = i, .layer = s->layer, .op = text(qn_ops[s->op].name), .role = text(s->role),
                                .type = text(qn_step_type(s)), .shape = text(shape), .logits = s->logits,
                                .bytes = (i64)cost.bytes,
                                .flops = (i64)cost.flops, .pos_bytes = (i64)(next.bytes - cost.bytes) };
        qn_tracer_put(en->rec->tracer, &ev);
        for (int b = 0; b < N_BUCKETS; b++) {
            ev.kind = QN_EV_choice;
            ev.choice = (qn_ev_choice){ .step = i, .rows = text(rows[b]), .kernel = text(info.kernel[b]),
                                        .reason = text(info.reason[b]), .rejected = text(info.rejected[b]) };
            qn_tracer_put(en->rec->tracer, &ev);
        }
        if (i % 512 == 511) qn_tracer_settle(en->rec->tracer);
    }
}

static void hash_plan(const qn_engine *en, char hex[65])
{
    qn_sha256 h;
    qn_sha256_begin(&h);
    for (int i = 0; i < en->plan.n; i++) {
        qn_step_info s;
        qn_engine_get_step(en, i, 1, 0, &s);
        qn_sha256_add(&h, s.op, strlen(s.op) + 1);
        qn_sha256_add(&h, s.role, strlen(s.role) + 1);
        for (int b = 0; b < N_BUCKETS; b++) qn_sha256_add(&h, s.kernel[b], strlen(s.kernel[b]) + 1);
    }
    qn_sha256_end(&h, hex);
}

/* What stands before the first tensor of each file: metadata and the table of tensors. */
static void hash_header(const qn_source *src, char hex[65])
{
    qn_sha256 h;
    qn_sha256_begin(&h);
    for (int k = 0; k < src->n_maps; k++) {
        size_t n = src->maps[k].bytes;
        for (size_t i = 0; i < src->n_tensors; i++)
            if (src->tensors[i].file == k && src->tensors[i].data >= src->maps[k].p)
                n = qn_minz(n, (size_t)(src->tensors[i].data - src->maps[k].p));
        if (n < src->maps[k].bytes) qn_sha256_add(&h, src->maps[k].p, n);
    }
    qn_sha256_end(&h, hex);
}

static void put_header(qn_engine *en)
{
    qn_trace *t = qn_tracer_trace(en->rec->tracer);
    char hash[65], plan_hash[65];
    qn_model_info info;
    qn_event ev = { .kind = QN_EV_trace, .trace = *qn_trace_head(t) };
    qn_ev_trace *h = &ev.trace;
    qn_model_get_info(en->m, &info);
    hash_header(en->m->src, hash);
    hash_plan(en, plan_hash);
    h->device = text(en->device);
    h->isa = text(qn_engine_isa(en));
    h->threads = qn_engine_threads(en);
    h->model = text(info.name);
    h->path = text(info.path);
    h->arch = text(info.arch);
    h->type = text(info.type);
    h->model_bytes = (i64)info.n_bytes;
    h->params = (i64)info.n_params;
    h->layers = info.n_layer;
    h->hash = text(hash);
    h->plan_hash = text(plan_hash);
    qn_trace_put(t, &ev);
}

void qn_record_opened(qn_engine *en)
{
    if (!en->rec) return;
    if (en->cuda && en->rec->tokens)
        en->rec->ns = qn_new_array(QN_CUDA_DECODE_MOST * (size_t)en->plan.n, sizeof *en->rec->ns, NULL);
    put_header(en);
    put_plan(en);
    put_memory(en, "loaded");
    qn_record_load(en, "describe", 0);
}

/* ---- passes */

static int phase_of(const qn_pass_mark *m)
{
    return m->reading == m->rows ? QN_PASS_PREFILL : m->reading ? QN_PASS_MIXED : QN_PASS_DECODE;
}

/* Costs are linear in what each row sees: rows of several sequences cost as much as as many rows of one would behind the
 * mean of what is before them. */
static int context_of(const qn_engine *en, int rows)
{
    i64 sum = 0;
    for (int i = 0; i < rows; i++) sum += en->b.pos[i];
    return (int)qn_maxi(0, (int)((2 * sum - (i64)rows * (rows - 1)) / (2 * (i64)rows)));
}

const qn_exec_trace *qn_record_begin_pass(qn_engine *en, const qn_pass_mark *m, qn_exec_trace *room)
{
    qn_recorder *r = en->rec;
    if (!r) return NULL;
    r->n_pass++;
    if (!r->steps) return NULL;
    *room = (qn_exec_trace){ .tracer = r->tracer, .pass = r->n_pass, .phase = phase_of(m),
                             .pos = en->b.pos[0], .ctx = context_of(en, m->rows) };
    return room;
}

u64 *qn_record_device(const qn_engine *en) { return en->rec ? en->rec->ns : NULL; }

/* One behind the other from the pass's begin on. */
void qn_record_device_steps(qn_engine *en, const qn_exec_trace *t, const qn_pass_mark *m, const u64 *ns)
{
    u64 at = m->begin;
    for (int i = 0; t && ns && i < en->plan.n; i++) {
        const qn_step *s = &en->plan.steps[i];
        qn_args args = s->args;
        args.n = s->logits ? m->logits : m->rows;
        if (ns[i] == 0) continue;
        const qn_cost c = qn_ops[s->op].cost(&args, t->ctx);
        const qn_step_mark step = { .pass = t->pass, .step = (u32)i, .phase = t->phase, .rows = args.n, .pos = t->pos,
                                    .begin = at, .end = at + ns[i], .bytes = c.bytes, .flops = c.flops };
        qn_tracer_step(t->tracer, &step);
        at += ns[i];
    }
}

void qn_record_made(qn_engine *en, int i, u64 ns)
{
    if (en->rec && i < QN_CUDA_DECODE_MOST) en->rec->made_ns[i] = ns;
}

/* The last was there when the launch ended; those before it as much earlier as the steps behind them took. */
void qn_record_decoded(qn_engine *en, int pos, int i, int n, u64 begin_ns)
{
    const qn_recorder *r = en->rec;
    const size_t steps = (size_t)en->plan.n;
    if (!r) return;
    u64 took = 0, end = begin_ns;
    const u64 last = qn_now_ns();
    for (size_t k = steps; r->ns && k < (size_t)n * steps; k++) took += r->ns[k]; /* behind the first token */
    for (int t = 0; t < n; t++) {
        const u64 *ns = r->ns ? r->ns + (size_t)t * steps : NULL;
        qn_exec_trace room;
        qn_pass_mark m = { .rows = 1, .seqs = 1, .logits = 1, .begin = end };
        m.end = end = last - took > end ? last - took : end;
        en->b.pos[0] = pos + t;
        const qn_exec_trace *trace = qn_record_begin_pass(en, &m, &room);
        qn_record_device_steps(en, trace, &m, ns);
        qn_record_pass(en, &m);
        qn_record_made(en, i + t, end);
        for (size_t k = 0; ns && t + 1 < n && k < steps; k++) took -= ns[steps + k];
    }
}

void qn_record_pass(qn_engine *en, const qn_pass_mark *m)
{
    if (!en->rec) return;
    const u64 used = used_bytes(&en->kv[0]) + used_bytes(&en->kv[1]);
    if (used > en->rec->kv_most) en->rec->kv_most = used;
    if (!en->rec->tokens) return;
    qn_event ev = event(en, QN_EV_pass, m->begin);
    ev.pass = (qn_ev_pass){ .pass = en->rec->n_pass, .phase = text(qn_pass_names[phase_of(m)]), .rows = m->rows, .seqs = m->seqs,
                            .pos = en->b.pos[0], .logits = m->logits, .kv_used = (i64)used, .ns = (i64)(m->end - m->begin) };
    qn_tracer_put(en->rec->tracer, &ev);
}

/* ---- requests */

i64 qn_record_request(qn_engine *en, u64 begin_ns, const qn_request *r, size_t n_cached)
{
    if (!en->rec) return 0;
    const qn_sampling *p = &r->sampling;
    char sampling[320];
    qn_event ev = event(en, QN_EV_request, begin_ns);
    const int n = snprintf(sampling, sizeof sampling, "{\"temp\":%.6g,\"top_k\":%d,\"top_p\":%.6g,\"min_p\":%.6g,"
                           "\"typical_p\":%.6g,\"repeat_penalty\":%.6g,\"presence_penalty\":%.6g,\"frequency_penalty\":%.6g,"
                           "\"repeat_last_n\":%d,\"seed\":%llu,\"n_bias\":%d}", (double)p->temp, p->top_k, (double)p->top_p,
                           (double)p->min_p, (double)p->typical_p, (double)p->repeat_penalty, (double)p->presence_penalty,
                           (double)p->frequency_penalty, p->repeat_last_n, (unsigned long long)p->seed, p->n_bias);
    ev.request = (qn_ev_request){ .request = ++en->rec->n_request, .prompt = (i64)r->n_ids, .cached = (i64)n_cached,
                                  .predict = r->n_predict };
    if (n > 0 && n < (int)sizeof sampling) ev.request.sampling = (qn_str){ sampling, (size_t)n };
    qn_tracer_put(en->rec->tracer, &ev);
    return en->rec->n_request;
}

void qn_record_sample(qn_engine *en, i64 request, u64 begin_ns, u64 end_ns)
{
    qn_event ev = event(en, QN_EV_sample, begin_ns);
    ev.sample = (qn_ev_sample){ .request = request, .pass = en->rec->n_pass, .ns = (i64)(end_ns - begin_ns) };
    qn_tracer_put(en->rec->tracer, &ev);
}

void qn_record_token(qn_engine *en, const qn_token_mark *m)
{
    qn_event ev = event(en, QN_EV_token, m->at_ns);
    ev.token = (qn_ev_token){ .request = m->request, .index = m->index, .id = m->id, .pos = m->pos,
                              .ns = (i64)(m->at_ns - m->since_ns), .out_ns = (i64)m->out_ns };
    qn_tracer_put(en->rec->tracer, &ev);
}

void qn_record_done(qn_engine *en, i64 request, u64 begin_ns, const qn_result *r)
{
    static const char *const stops[] = { "failed", "end", "length", "string", "context", "caller", "cancelled" };
    if (!en->rec) return;
    const u64 now = qn_now_ns();
    qn_event ev = event(en, QN_EV_done, now);
    ev.done = (qn_ev_done){ .request = request, .stop = text(stops[r->stop]), .prompt = r->n_prompt, .cached = r->n_cached,
                            .tokens = r->n_new, .first_ns = (i64)r->first_ns, .prompt_ns = (i64)r->prompt_ns,
                            .decode_ns = (i64)r->decode_ns, .ns = (i64)(now - begin_ns) };
    qn_tracer_put(en->rec->tracer, &ev);
}
