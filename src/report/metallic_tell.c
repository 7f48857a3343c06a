/* metallic_tell.c - a quern trace told in Metallic's words: a step is a GpuOpCompleted whose path is phase, block,
 * role and kernel; a pass is a command buffer (cb_wait: all of it, cb_gpu: its steps, dep_wait: threads that waited
 * for each other) and a forward_step_total with its blocks; a token is an iteration_total. Durations are rounded to
 * whole microseconds, as that log has them. Leaves the summing to metallic_sum.c and the file to the export. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "report/metallic.h"

enum { MOST_STEPS = 65536, MOST_LAYERS = 4096, RANGES = 4 };

typedef struct told_step {
    const char *op, *role, *type;
    int layer;
    struct { i64 lo, hi; const char *kernel; } range[RANGES];
    int n_ranges;
} told_step;

struct qn_teller {
    qn_metallic_fn fn;
    void *user;
    qn_arena arena;
    struct { told_step *p; size_t n, cap; } steps;
    u64 *layer_ns;              /* [MOST_LAYERS] of the pass that runs */
    int n_layers;
    u64 steps_ns, wait_ns;
    i64 pass;
    qn_buf name;
    told_step none;             /* what a number outside of any plan means */
};

static qn_str str(const char *s) { return (qn_str){ s, strlen(s) }; }

static u64 us_of(i64 ns) { return ns > 0 ? ((u64)ns + 500) / 1000 : 0; }

qn_teller *qn_teller_open(qn_metallic_fn fn, void *user, qn_err *e)
{
    qn_teller *t = qn_new(sizeof *t, e);
    if (!t) return NULL;
    t->fn = fn;
    t->user = user;
    t->layer_ns = qn_new_array(MOST_LAYERS, sizeof *t->layer_ns, e);
    if (t->layer_ns) return t;
    qn_teller_close(t);
    return NULL;
}

void qn_teller_close(qn_teller *t)
{
    if (!t) return;
    qn_buf_close(&t->name);
    qn_free(t->layer_ns);
    qn_free(t->steps.p);
    qn_arena_close(&t->arena);
    qn_free(t);
}

/* ---- the plan ------------------------------------------------------------------------------------------------------ */

static told_step *step_of(qn_teller *t, i64 number, qn_err *e)
{
    while (number >= 0 && number < MOST_STEPS && t->steps.n <= (size_t)number) {
        told_step *s = QN_RUN_PUSH(&t->steps, e);
        if (!s) return NULL;
        *s = (told_step){ .op = "", .role = "", .type = "", .layer = -1 };
    }
    t->none = (told_step){ .op = "", .role = "", .type = "", .layer = -1 };
    return number >= 0 && number < MOST_STEPS ? &t->steps.p[number] : &t->none;
}

static const char *keep(qn_teller *t, qn_str s, qn_err *e) { return qn_arena_strndup(&t->arena, s.p ? s.p : "", s.n, e); }

static bool add_plan(qn_teller *t, const qn_ev_plan *p, qn_err *e)
{
    told_step *s = step_of(t, p->step, e);
    if (!s || p->step < 0 || p->step >= MOST_STEPS) return s != NULL;
    const char *op = keep(t, p->op, e), *role = op ? keep(t, p->role, e) : NULL, *type = role ? keep(t, p->type, e) : NULL;
    if (!type) return false;
    s->op = op;
    s->role = qn_role_part(role);
    s->type = type;
    s->layer = p->layer >= 0 && p->layer < MOST_LAYERS ? (int)p->layer : -1;
    return true;
}

static bool add_choice(qn_teller *t, i64 when, const qn_ev_choice *c, qn_err *e)
{
    told_step *s = step_of(t, c->step, e);
    const char *kernel = s ? keep(t, c->kernel, e) : NULL;
    if (!kernel) return false;
    if (s->n_ranges < RANGES && c->step >= 0 && c->step < MOST_STEPS) {
        qn_rows_parse(c->rows, &s->range[s->n_ranges].lo, &s->range[s->n_ranges].hi);
        s->range[s->n_ranges++].kernel = kernel;
    }
    return t->fn(t->user, &(qn_metallic_event){ .t = when, .type = "KernelBackendSelected", .op = str(s->op), .backend =
                                                str(kernel),
                                                .reason = c->reason }, e);
}

static const char *kernel_of(const told_step *s, i64 rows)
{
    for (int i = 0; i < s->n_ranges; i++)
        if (rows >= s->range[i].lo && rows <= s->range[i].hi) return s->range[i].kernel;
    return *s->op ? s->op : "step";
}

/* ---- what happened ------------------------------------------------------------------------------------------------- */

static const char *scope_of(qn_str phase)
{
    return phase.n == 6 && !memcmp(phase.p, "decode", 6) ? "Generation Loop" : "Prompt Processing";
}

static bool tell_op(qn_teller *t, i64 when, qn_metallic_event *ev, i64 ns, qn_err *e)
{
    ev->t = when;
    ev->type = "GpuOpCompleted";
    ev->op = (qn_str){ t->name.p, t->name.n };
    if (!ev->backend.p) ev->backend = str("quern");
    ev->timed = true;
    ev->us = us_of(ns);
    return t->name.failed ? qn_fail(e, QN_ENOMEM, "out of memory: a name") : t->fn(t->user, ev, e);
}

static bool tell_span(qn_teller *t, i64 when, const char *parent, const char *kernel, i64 ns, qn_err *e)
{
    return t->fn(t->user, &(qn_metallic_event){ .t = when, .type = "InternalKernelCompleted", .parent = str(parent),
                                                .kernel = str(kernel),
                                                .timed = true, .us = us_of(ns) }, e);
}

static void pair(qn_metallic_event *ev, const char *key, const char *value)
{
    ev->data[ev->n_data].key = str(key);
    ev->data[ev->n_data++].value = str(value);
}

static bool add_step(qn_teller *t, i64 when, const qn_ev_step *p, qn_err *e)
{
    const told_step *s = step_of(t, p->step, e);
    qn_metallic_event ev = { 0 };
    char rows[24];
    if (!s) return false;
    if (p->ns < 0) return true;
    const char *kernel = kernel_of(s, p->rows);
    t->name.n = 0;
    qn_buf_printf(&t->name, "%s/", scope_of(p->phase));
    if (s->layer >= 0) qn_buf_printf(&t->name, "block_%d/%s_block_%d_op/", s->layer, s->role, s->layer);
    else qn_buf_printf(&t->name, "%s/", *s->role ? s->role : "step");
    qn_buf_puts(&t->name, kernel);
    if (qn_op_is_matmul(s->op)) {
        snprintf(rows, sizeof rows, "%lld", (long long)p->rows);
        pair(&ev, "op", "matmul");
        pair(&ev, "backend", kernel);
        pair(&ev, "batch", "1");
        pair(&ev, "m", rows);
        pair(&ev, "tA", "0");
        pair(&ev, "tB", "1");
        pair(&ev, "role", s->role);
        pair(&ev, "type", s->type);
    }
    ev.backend = str("quern");
    if (p->pass != t->pass) { /* steps of a pass that never ended */
        memset(t->layer_ns, 0, (size_t)t->n_layers * sizeof *t->layer_ns);
        t->steps_ns = t->wait_ns = 0;
        t->n_layers = 0;
        t->pass = p->pass;
    }
    double busy = 0;
    for (size_t i = 0; i < p->busy.n; i++) busy += (double)p->busy.p[i] / (double)p->busy.n;
    if (p->busy.n && busy >= 0 && busy < (double)p->ns) t->wait_ns += (u64)((double)p->ns - busy);
    t->steps_ns += (u64)p->ns;
    if (s->layer >= 0) {
        t->layer_ns[s->layer] += (u64)p->ns;
        t->n_layers = qn_maxi(t->n_layers, s->layer + 1);
    }
    return tell_op(t, when, &ev, p->ns, e);
}

static bool tell_buffer(qn_teller *t, i64 when, const char *scope, const char *what, i64 ns, qn_err *e)
{
    qn_metallic_event ev = { 0 };
    t->name.n = 0;
    qn_buf_printf(&t->name, "%s/%s", scope, what);
    return tell_op(t, when, &ev, ns, e);
}

static bool add_pass(qn_teller *t, i64 when, const qn_ev_pass *p, qn_err *e)
{
    const char *scope = scope_of(p->phase);
    char name[32];
    bool ok = p->ns < 0 || (tell_buffer(t, when, scope, "cb_wait", p->ns, e) &&
                            tell_span(t, when, "generation_loop", "forward_step_total", p->ns, e));
    if (ok && t->pass == p->pass && t->steps_ns) {
        ok = tell_buffer(t, when, scope, "cb_gpu", (i64)t->steps_ns, e) &&
             (!t->wait_ns || tell_buffer(t, when, scope, "dep_wait", (i64)t->wait_ns, e));
        for (int i = 0; ok && i < t->n_layers; i++) {
            snprintf(name, sizeof name, "block_%d_total", i);
            ok = !t->layer_ns[i] || tell_span(t, when, "generation_loop", name, (i64)t->layer_ns[i], e);
            t->layer_ns[i] = 0;
        }
        t->steps_ns = t->wait_ns = 0;
        t->n_layers = 0;
    }
    return ok;
}

static bool add_memory(qn_teller *t, i64 when, const qn_ev_memory *m, qn_err *e)
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

static bool add_header(qn_teller *t, const qn_ev_trace *h, qn_err *e)
{
    char text[48];
    snprintf(text, sizeof text, "\"size_bytes\":%lld", (long long)h->model_bytes);
    return t->fn(t->user, &(qn_metallic_event){ .type = "GgufFileMmap", .rest = str(text) }, e);
}

bool qn_teller_add(qn_teller *t, const qn_event *ev, qn_err *e)
{
    char name[48];
    switch (ev->kind) {
    case QN_EV_trace: return add_header(t, &ev->trace, e);
    case QN_EV_plan: return add_plan(t, &ev->plan, e);
    case QN_EV_choice: return add_choice(t, ev->t, &ev->choice, e);
    case QN_EV_memory: return add_memory(t, ev->t, &ev->memory, e);
    case QN_EV_step: return add_step(t, ev->t, &ev->step, e);
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

bool qn_teller_end(qn_teller *t, qn_err *e)
{
    char name[32];
    bool ok = true;
    for (int i = 0; ok && i < t->n_layers; i++) { /* a trace that was cut in a pass */
        snprintf(name, sizeof name, "block_%d_total", i);
        ok = !t->layer_ns[i] || tell_span(t, 0, "generation_loop", name, (i64)t->layer_ns[i], e);
    }
    return ok;
}

/* ---- runs of other programs ---------------------------------------------------------------------------------------- */

static bool tell_series(qn_teller *t, const qn_series *s, qn_err *e)
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

bool qn_teller_run(const qn_run *r, qn_metallic_fn fn, void *user, qn_err *e)
{
    qn_teller *t = qn_teller_open(fn, user, e);
    bool ok = t != NULL;
    for (size_t i = 0; ok && i < r->series.n; i++) ok = tell_series(t, &r->series.p[i], e);
    for (size_t i = 0; ok && i < r->passes.n; i++) {
        const bool decode = r->passes.p[i].phase == PHASE_decode;
        ok = tell_buffer(t, r->passes.p[i].t, decode ? "Generation Loop" : "Prompt Processing", "cb_wait",
                         (i64)r->passes.p[i].ns, e) &&
             tell_buffer(t, r->passes.p[i].t, decode ? "Generation Loop" : "Prompt Processing", "cb_gpu",
                         (i64)r->passes.p[i].steps_ns, e);
    }
    qn_teller_close(t);
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
