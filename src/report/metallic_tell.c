/* metallic_tell.c - a quern trace told in Metallic's words: a step is a GpuOpCompleted whose path is phase, block,
 * role and kernel; a pass is a command buffer (cb_wait: all of it, cb_gpu: its steps, dep_wait: threads that waited
 * for each other) and a forward_step_total with its blocks; a token is an iteration_total. Durations are rounded to
 * whole microseconds, as that log has them. Leaves the summing to metallic_sum.c and the file to the export. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "report/metallic.h"
#include "report/plan_names.h"

enum { MOST_LAYERS = 4096, MOST_KEPT = 8192 };
#define MATMUL_PAIRS 8

/* A launch as it is told every time, but for its time: by step, phase and choice. */
typedef struct spot {
    i64 rows;
    qn_metallic_event ev;
    qn_metallic_place place;
    qn_metallic_pair data[MATMUL_PAIRS];
    char m[24];
} spot;
typedef struct spots { spot *at[2][QN_CHOICES_MOST + 1]; } spots;

typedef struct teller {
    qn_metallic_fn fn;
    void *user;
    qn_arena arena;
    QN_RUN_LIST(spots) spots;   /* by step */
    spot passing;               /* of a step far outside any plan: made anew each time */
    u64 *layer_ns;              /* [MOST_LAYERS] of the pass that runs */
    int n_layers;
    u64 steps_ns, wait_ns;
    i64 pass;
    qn_buf name;
} teller;

static u64 us_of(i64 ns) { return ns > 0 ? ((u64)ns + 500) / 1000 : 0; }

static void close_teller(teller *t)
{
    qn_buf_close(&t->name);
    qn_free(t->layer_ns);
    qn_free(t->spots.p);
    qn_arena_close(&t->arena);
}

/* ---- what happened ------------------------------------------------------------------------------------------------- */

static bool is_decode(qn_str phase) { return phase.n == 6 && !memcmp(phase.p, "decode", 6); }
static const char *scope_of(qn_str phase) { return is_decode(phase) ? "Generation Loop" : "Prompt Processing"; }

static bool tell_op(teller *t, i64 when, qn_metallic_event *ev, i64 ns, qn_err *e)
{
    ev->t = when;
    ev->type = "GpuOpCompleted";
    ev->op = (qn_str){ t->name.p, t->name.n };
    if (!ev->backend.p) ev->backend = qn_str_of("quern");
    ev->timed = true;
    ev->us = us_of(ns);
    return t->name.failed ? qn_fail(e, QN_ENOMEM, "out of memory: a name") : t->fn(t->user, ev, e);
}

static bool tell_span(teller *t, i64 when, const char *parent, const char *kernel, i64 ns, qn_err *e)
{
    return t->fn(t->user, &(qn_metallic_event){ .t = when, .type = "InternalKernelCompleted", .parent = qn_str_of(parent),
                                                .kernel = qn_str_of(kernel),
                                                .timed = true, .us = us_of(ns) }, e);
}

static void describe_matmul(spot *w, const qn_plan_step *s, const char *kernel, i64 rows)
{
    const char *const pairs[MATMUL_PAIRS][2] = { { "op", "matmul" }, { "backend", kernel }, { "batch", "1" }, { "m", w->m },
                                                 { "tA", "0" }, { "tB", "1" }, { "role", qn_role_part(s->role) },
                                                 { "type", s->type } };
    snprintf(w->m, sizeof w->m, "%lld", (long long)rows);
    for (int i = 0; i < MATMUL_PAIRS; i++) w->data[i] = (qn_metallic_pair){ qn_str_of(pairs[i][0]), qn_str_of(pairs[i][1]) };
    w->ev.data = w->data;
    w->ev.n_data = MATMUL_PAIRS;
}

static bool describe(teller *t, spot *w, const qn_plan_step *s, const qn_ev_step *p, int choice, qn_err *e)
{
    const char *kernel = choice >= 0 ? s->choice[choice].kernel : *s->op ? s->op : "step", *role = qn_role_part(s->role);
    t->name.n = 0;
    qn_buf_printf(&t->name, "%s/", scope_of(p->phase));
    if (s->layer >= 0) qn_buf_printf(&t->name, "block_%d/%s_block_%d_op/", s->layer, role, s->layer);
    else qn_buf_printf(&t->name, "%s/", *role ? role : "step");
    qn_buf_puts(&t->name, kernel);
    if (t->name.failed) return qn_fail(e, QN_ENOMEM, "out of memory: a name");
    *w = (spot){ .rows = p->rows, .ev = { .type = "GpuOpCompleted", .backend = qn_str_of("quern"), .timed = true } };
    w->ev.op = (qn_str){ t->name.p, t->name.n };
    if (w != &t->passing) {
        w->ev.op.p = qn_arena_strndup(&t->arena, t->name.p, t->name.n, e);
        w->ev.place = &w->place;
    }
    if (qn_op_is_matmul(s->op)) describe_matmul(w, s, kernel, p->rows);
    return w->ev.op.p != NULL;
}

/* The spot of a launch, made or made anew if need be; NULL: no memory. */
static spot *spot_of(teller *t, const qn_plan_step *s, const qn_ev_step *p, qn_err *e)
{
    const int choice = qn_plan_choice_for(s, p->rows);
    spot *passing = &t->passing, **at = &passing;
    if (p->step >= 0 && p->step < MOST_KEPT) {
        while (t->spots.n <= (size_t)p->step)
            if (!QN_RUN_PUSH(&t->spots, e)) return NULL;
        at = &t->spots.p[p->step].at[is_decode(p->phase)][choice + 1];
        if (!*at && !(*at = qn_arena_new(&t->arena, sizeof **at, e))) return NULL;
    }
    const bool known = (*at)->ev.type && *at != passing && ((*at)->rows == p->rows || !(*at)->ev.n_data);
    return known || describe(t, *at, s, p, choice, e) ? *at : NULL;
}

static void begin_pass(teller *t, i64 pass)
{
    memset(t->layer_ns, 0, (size_t)t->n_layers * sizeof *t->layer_ns); /* of a pass that never ended */
    t->steps_ns = t->wait_ns = 0;
    t->n_layers = 0;
    t->pass = pass;
}

static bool add_step(teller *t, const qn_plan_names *names, i64 when, const qn_ev_step *p, qn_err *e)
{
    const qn_plan_step *s = qn_plan_names_get(names, p->step);
    spot *w = p->ns < 0 ? NULL : spot_of(t, s, p, e);
    if (!w) return p->ns < 0;
    if (p->pass != t->pass) begin_pass(t, p->pass);
    double busy = 0;
    for (size_t i = 0; i < p->busy.n; i++) busy += (double)p->busy.p[i] / (double)p->busy.n;
    if (p->busy.n && busy >= 0 && busy < (double)p->ns) t->wait_ns += (u64)((double)p->ns - busy);
    t->steps_ns += (u64)p->ns;
    if (s->layer >= 0 && s->layer < MOST_LAYERS) {
        t->layer_ns[s->layer] += (u64)p->ns;
        t->n_layers = qn_maxi(t->n_layers, s->layer + 1);
    }
    w->ev.t = when;
    w->ev.us = us_of(p->ns);
    return t->fn(t->user, &w->ev, e);
}

static bool tell_buffer(teller *t, i64 when, const char *scope, const char *what, i64 ns, qn_err *e)
{
    qn_metallic_event ev = { 0 };
    t->name.n = 0;
    qn_buf_printf(&t->name, "%s/%s", scope, what);
    return tell_op(t, when, &ev, ns, e);
}

static bool tell_blocks(teller *t, i64 when, qn_err *e)
{
    char name[32];
    bool ok = true;
    for (int i = 0; ok && i < t->n_layers; i++) {
        snprintf(name, sizeof name, "block_%d_total", i);
        ok = !t->layer_ns[i] || tell_span(t, when, "generation_loop", name, (i64)t->layer_ns[i], e);
    }
    return ok;
}

static bool add_pass(teller *t, i64 when, const qn_ev_pass *p, qn_err *e)
{
    const char *scope = scope_of(p->phase);
    bool ok = p->ns < 0 || (tell_buffer(t, when, scope, "cb_wait", p->ns, e) &&
                            tell_span(t, when, "generation_loop", "forward_step_total", p->ns, e));
    if (ok && t->pass == p->pass && t->steps_ns) {
        ok = tell_buffer(t, when, scope, "cb_gpu", (i64)t->steps_ns, e) &&
             (!t->wait_ns || tell_buffer(t, when, scope, "dep_wait", (i64)t->wait_ns, e));
        ok = ok && tell_blocks(t, when, e);
        begin_pass(t, t->pass);
    }
    return ok;
}

static bool add_memory(teller *t, i64 when, const qn_ev_memory *m, qn_err *e)
{
    qn_buf b = { 0 };
    bool ok = true;
    if (m->when.n == 6 && !memcmp(m->when.p, "loaded", 6)) {
        qn_buf_printf(&b, "\"total_bytes\":%lld,\"breakdown\":", (long long)m->weights);
        if (m->parts.n) qn_buf_put(&b, m->parts.p, m->parts.n);
        else qn_buf_puts(&b, "{}");
        ok = t->fn(t->user, &(qn_metallic_event){ .t = when, .type = "ModelWeights", .rest = { b.p, b.n } }, e);
    }
    b.n = 0;
    qn_buf_printf(&b, "\"total_bytes\":%lld,\"tensor_pool_reserved_bytes\":%lld,\"tensor_pool_used_bytes\":%lld,",
                  (long long)m->resident,
                  (long long)m->scratch, (long long)m->scratch);
    qn_buf_printf(&b, "\"kv_pool_reserved_bytes\":%lld,\"kv_pool_used_bytes\":%lld,\"forward_pass_breakdown\":{}",
                  (long long)m->kv,
                  (long long)m->kv_used);
    ok = ok && (!b.failed || qn_fail(e, QN_ENOMEM, "out of memory: an event")) &&
         t->fn(t->user, &(qn_metallic_event){ .t = when, .type = "HostMemory", .rest = { b.p, b.n } }, e);
    qn_buf_close(&b);
    return ok;
}

static bool add_choice(teller *t, const qn_plan_names *names, i64 when, const qn_ev_choice *c, qn_err *e)
{
    const char *op = qn_plan_names_get(names, c->step)->op;
    const qn_metallic_event ev = { .t = when, .type = "KernelBackendSelected", .op = qn_str_of(op),
                                   .backend = c->kernel.p ? c->kernel : qn_str_of(""), .reason = c->reason };
    return t->fn(t->user, &ev, e);
}

static bool add_header(teller *t, const qn_ev_trace *h, qn_err *e)
{
    char text[48];
    snprintf(text, sizeof text, "\"size_bytes\":%lld", (long long)h->model_bytes);
    return t->fn(t->user, &(qn_metallic_event){ .type = "GgufFileMmap", .rest = qn_str_of(text) }, e);
}

static bool add_event(void *user, const qn_plan_names *names, const qn_event *ev, qn_err *e)
{
    teller *t = user;
    char name[48];
    switch (ev->kind) {
    case QN_EV_trace: return add_header(t, &ev->trace, e);
    case QN_EV_choice: return add_choice(t, names, ev->t, &ev->choice, e);
    case QN_EV_memory: return add_memory(t, ev->t, &ev->memory, e);
    case QN_EV_step: return add_step(t, names, ev->t, &ev->step, e);
    case QN_EV_pass: return add_pass(t, ev->t, &ev->pass, e);
    case QN_EV_load:
        snprintf(name, sizeof name, "%.*s", (int)qn_minz(ev->load.phase.n, 40), ev->load.phase.p ? ev->load.phase.p : "");
        return tell_span(t, ev->t, "model_load", name, ev->load.ns, e);
    case QN_EV_tokenize: return tell_span(t, ev->t, "tokenization", "encode", ev->tokenize.ns, e);
    case QN_EV_sample: return tell_span(t, ev->t, "sampling", "next_token_ready_latency", ev->sample.ns, e);
    case QN_EV_token: return tell_span(t, ev->t, "generation_loop", "iteration_total", ev->token.ns, e);
    default: return true;
    }
}

bool qn_metallic_tell_trace(const char *path, qn_metallic_fn fn, void *user, qn_err *e)
{
    teller t = { .fn = fn, .user = user, .layer_ns = qn_new_array(MOST_LAYERS, sizeof *t.layer_ns, e) };
    const bool ok = t.layer_ns && qn_trace_each(path, add_event, &t, e) && tell_blocks(&t, 0, e); /* the last: cut in a pass */
    close_teller(&t);
    return ok;
}

/* ---- runs of other programs ---------------------------------------------------------------------------------------- */

static bool tell_series(teller *t, const qn_series *s, qn_err *e)
{
    const char *scope = s->phase == PHASE_decode ? "Generation Loop" : s->phase == PHASE_prefill ? "Prompt Processing"
        : "Unscoped";
    const char *last = *s->kernel ? s->kernel : *s->op ? s->op : "kernel";
    bool ok = true;
    t->name.n = 0;
    qn_buf_printf(&t->name, "%s/", scope);
    if (s->layer >= 0) qn_buf_printf(&t->name, "block_%d/", s->layer);
    if (*s->role) qn_buf_printf(&t->name, "%s/", qn_role_part(s->role));
    qn_buf_puts(&t->name, last);
    for (u64 i = 0; ok && i < s->n_samples; i++) {
        qn_metallic_event ev = { 0 };
        ok = tell_op(t, 0, &ev, (i64)s->ns[i], e);
    }
    if (ok && !s->n_samples && s->n) { /* only totals are known: all launches as one */
        qn_metallic_event ev = { 0 };
        ok = tell_op(t, 0, &ev, (i64)s->total_ns, e);
    }
    return ok;
}

bool qn_metallic_tell_run(const qn_run *r, qn_metallic_fn fn, void *user, qn_err *e)
{
    teller told = { .fn = fn, .user = user }, *t = &told;
    bool ok = true;
    for (size_t i = 0; ok && i < r->series.n; i++) ok = tell_series(t, &r->series.p[i], e);
    for (size_t i = 0; ok && i < r->passes.n; i++) {
        const bool decode = r->passes.p[i].phase == PHASE_decode;
        ok = tell_buffer(t, r->passes.p[i].t, decode ? "Generation Loop" : "Prompt Processing", "cb_wait",
                         (i64)r->passes.p[i].ns, e) &&
             tell_buffer(t, r->passes.p[i].t, decode ? "Generation Loop" : "Prompt Processing", "cb_gpu",
                         (i64)r->passes.p[i].steps_ns, e);
    }
    close_teller(t);
    return ok;
}

/* ---- as a line ----------------------------------------------------------------------------------------------------- */

static void put_member(qn_buf *out, bool *first, const char *key, qn_str value)
{
    if (!value.p) return;
    qn_buf_printf(out, "%s\"%s\":", *first ? "" : ",", key);
    qn_buf_json(out, value.p, value.n);
    *first = false;
}

static void put_time(qn_buf *out, const char *started, i64 t)
{
    struct tm tm = { .tm_year = 70, .tm_mday = 1 };
    int y, mo, d, h, mi, s;
    if (sscanf(started, "%4d-%2d-%2dT%2d:%2d:%2d", &y, &mo, &d, &h, &mi, &s) == 6)
        tm = (struct tm){ .tm_year = y - 1900, .tm_mon = mo - 1, .tm_mday = d, .tm_hour = h, .tm_min = mi, .tm_sec = s };
    const i64 ns = t > 0 ? t : 0;
    const time_t at = timegm(&tm) + (time_t)(ns / 1000000000);
    struct tm utc;
    if (!gmtime_r(&at, &utc)) utc = (struct tm){ .tm_year = 70, .tm_mday = 1 };
    qn_buf_printf(out, "%04d-%02d-%02dT%02d:%02d:%02d.%09dZ", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                  utc.tm_hour, utc.tm_min,
                  utc.tm_sec, (int)(ns % 1000000000));
}

void qn_metallic_line(qn_buf *out, const qn_metallic_event *ev, const char *started)
{
    bool first = true;
    qn_buf_puts(out, "{\"timestamp\":\"");
    put_time(out, started, ev->t);
    qn_buf_puts(out, "\",\"span_id\":null,\"parent_span_id\":null,\"span_name\":null,");
    qn_buf_printf(out, "\"event\":{\"type\":\"%s\",\"data\":{", ev->type);
    put_member(out, &first, "parent_op_name", ev->parent);
    put_member(out, &first, "internal_kernel_name", ev->kernel);
    put_member(out, &first, "op_name", ev->op);
    put_member(out, &first, "backend", ev->backend);
    put_member(out, &first, "reason", ev->reason);
    if (ev->timed) qn_buf_printf(out, "%s\"duration_us\":%llu", first ? "" : ",", (unsigned long long)ev->us), first = false;
    if (ev->rest.n) {
        qn_buf_puts(out, first ? "" : ",");
        qn_buf_put(out, ev->rest.p, ev->rest.n);
        first = false;
    }
    for (int i = 0; i < ev->n_data; i++) {
        qn_buf_puts(out, i ? "," : first ? "\"data\":{" : ",\"data\":{");
        qn_buf_json(out, ev->data[i].key.p, ev->data[i].key.n);
        qn_buf_putc(out, ':');
        qn_buf_json(out, ev->data[i].value.p, ev->data[i].value.n);
    }
    qn_buf_puts(out, ev->n_data ? "}}}}\n" : "}}}\n");
}
