/* export_chrome.c - Chrome's trace JSON, which Perfetto's page, speedscope and chrome://tracing open. Process 1 is the run: one
 * track with passes and their steps inside them, one with loading, tokenising and sampling. Process 2 has two tracks for each
 * request that goes on at a time (spans of one track must not overlap): the whole of it, in it the prompt and the making of
 * tokens; and its tokens. A track that is free is taken by the next request. With counters: memory, tok/s.
 * Times are microseconds with three decimals, so every nanosecond stays. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/export.h"
#include "report/plan_names.h"

enum { RUN = 1, REQUESTS = 2 };                     /* pid */
enum { STEPS = 1, AROUND = 2 };                     /* tid of RUN */

static void put_us(qn_buf *b, i64 ns)
{
    qn_buf_printf(b, "%" PRId64 ".%03d", ns / 1000, (int)(ns % 1000));
}

/* Where a span ends at the very moment at which the next begins, viewers may take the beginning first and nest the one in the
 * other (speedscope does): every span is told a nanosecond shorter. */
static i64 told(i64 ns) { return ns > 1 ? ns - 1 : ns; }

/* The head of an event, its object left open. */
static void begin(qn_export *x, const char *ph, int pid, i64 tid, qn_str name, const char *cat)
{
    qn_buf *b = &x->out;
    qn_buf_puts(b, x->comma ? ",\n" : "\n");
    x->comma = true;
    qn_buf_printf(b, "{\"ph\":\"%s\",\"pid\":%d,\"tid\":%" PRId64 ",\"name\":", ph, pid, tid);
    qn_buf_json(b, name.p ? name.p : "", name.n);
    if (*cat) qn_buf_printf(b, ",\"cat\":\"%s\"", cat);
}

static void begin_span(qn_export *x, int pid, i64 tid, qn_str name, const char *cat, i64 t, i64 ns)
{
    begin(x, "X", pid, tid, name, cat);
    qn_buf_puts(&x->out, ",\"ts\":");
    put_us(&x->out, t);
    qn_buf_puts(&x->out, ",\"dur\":");
    put_us(&x->out, told(ns));
}

static void put_text(qn_buf *b, const char *key, const char *value)
{
    qn_buf_printf(b, ",\"%s\":", key);
    qn_buf_json(b, value, strlen(value));
}

static void begin_args(qn_export *x, const char *key, i64 value)
{
    qn_buf_printf(&x->out, ",\"args\":{\"%s\":%" PRId64, key, value);
}

static void put_int(qn_export *x, const char *key, i64 value) { qn_buf_printf(&x->out, ",\"%s\":%" PRId64, key, value); }

static bool end(qn_export *x, const char *tail, qn_err *e)
{
    qn_buf_puts(&x->out, tail);
    return qn_export_flush(x, false, e);
}

static bool name_track(qn_export *x, const char *what, int pid, i64 tid, const char *name, qn_err *e)
{
    begin(x, "M", pid, tid, qn_str_of(what), "");
    qn_buf_puts(&x->out, ",\"args\":{\"name\":");
    qn_buf_json(&x->out, name, strlen(name));
    return end(x, "}}", e);
}

static bool begin_file(qn_export *x, qn_err *e)
{
    const qn_run *r = x->run;
    qn_buf *b = &x->out;
    qn_buf_puts(b, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"source\":");
    qn_buf_json(b, r->source, strlen(r->source));
    put_text(b, "program", r->program);
    put_text(b, "command", r->command);
    put_text(b, "started", r->started);
    put_text(b, "model", r->model);
    put_text(b, "device", r->device);
    put_text(b, "cpu", r->cpu);
    qn_buf_puts(b, "},\"traceEvents\":[");
    return name_track(x, "process_name", RUN, 0, *r->model ? r->model : r->source, e)
        && name_track(x, "process_name", REQUESTS, 0, "requests", e)
        && name_track(x, "thread_name", RUN, STEPS, "passes and steps", e)
        && name_track(x, "thread_name", RUN, AROUND, "load, tokenize, sample", e);
}

/* ---- tracks of requests */

/* The lane of a request, taken if it has none; the tracks of a new lane get their names. */
static bool lane_of(qn_export *x, i64 request, int *lane, qn_err *e)
{
    char name[2][40];
    int at = 0, open = -1;
    for (; at < x->n_lanes && x->lanes[at] != request; at++)
        if (!x->lanes[at] && open < 0) open = at;
    if (at == x->n_lanes) at = open >= 0 ? open : at < QN_EXPORT_LANES ? at : (int)((u64)request % QN_EXPORT_LANES);
    *lane = at;
    x->lanes[at] = request;
    if (at < x->n_lanes) return true;
    x->n_lanes++;
    snprintf(name[0], sizeof name[0], at ? "requests, lane %d" : "requests", at + 1);
    snprintf(name[1], sizeof name[1], at ? "tokens, lane %d" : "tokens", at + 1);
    return name_track(x, "thread_name", REQUESTS, 2 * at + 1, name[0], e) &&
           name_track(x, "thread_name", REQUESTS, 2 * at + 2, name[1], e);
}

/* ---- our own trace */

static bool put_step(qn_export *x, const qn_plan_names *names, const qn_event *ev, qn_err *e)
{
    const qn_ev_step *s = &ev->step;
    const qn_plan_step *p = qn_plan_names_get(names, s->step);
    begin_span(x, RUN, STEPS, qn_str_of(*p->role ? p->role : *p->op ? p->op : "step"), "step", ev->t, s->ns);
    begin_args(x, "step", s->step);
    put_int(x, "layer", p->layer);
    put_int(x, "rows", s->rows);
    put_int(x, "pos", s->pos);
    put_int(x, "bytes", s->bytes);
    put_int(x, "flops", s->flops);
    put_text(&x->out, "op", p->op);
    put_text(&x->out, "kernel", qn_plan_kernel(p, s->rows));
    if (s->ns > 0) qn_buf_printf(&x->out, ",\"GB/s\":%.3f", (double)s->bytes / (double)s->ns);
    return end(x, "}}", e);
}

static bool put_number(qn_export *x, i64 t, const char *name, const char *unit, double value, qn_err *e)
{
    if (!x->counters) return true;
    begin(x, "C", RUN, 0, qn_str_of(name), "");
    qn_buf_puts(&x->out, ",\"ts\":");
    put_us(&x->out, t);
    qn_buf_printf(&x->out, ",\"args\":{\"%s\":%.12g", unit, value);
    return end(x, "}}", e);
}

static bool put_pass(qn_export *x, const qn_event *ev, qn_err *e)
{
    const qn_ev_pass *p = &ev->pass;
    begin_span(x, RUN, STEPS, p->phase, "pass", ev->t, p->ns);
    begin_args(x, "pass", p->pass);
    put_int(x, "rows", p->rows);
    put_int(x, "seqs", p->seqs);
    put_int(x, "pos", p->pos);
    return end(x, "}}", e) && (!p->ns || put_number(x, ev->t, "speed", "tok/s", 1e9 * (double)p->rows / (double)p->ns, e));
}

static bool put_plain(qn_export *x, i64 tid, qn_str name, const char *cat, i64 t, i64 ns, qn_err *e)
{
    begin_span(x, RUN, tid, name, cat, t, ns);
    return end(x, "}", e);
}

/* A token's span is the time since the one before it. */
static bool put_token(qn_export *x, i64 t, i64 ns, i64 request, i64 index, i64 id, i64 pos, qn_err *e)
{
    int lane;
    if (!lane_of(x, request, &lane, e)) return false;
    begin_span(x, REQUESTS, 2 * lane + 2, qn_str_of("token"), "token", t - ns > 0 ? t - ns : 0, t - ns > 0 ? ns : t);
    begin_args(x, "request", request);
    put_int(x, "index", index);
    put_int(x, "id", id);
    put_int(x, "pos", pos);
    return end(x, "}}", e);
}

static bool put_request(qn_export *x, i64 t_end, const qn_ev_done *d, qn_err *e)
{
    const i64 t = t_end > d->ns ? t_end - d->ns : 0;
    int lane;
    if (!lane_of(x, d->request, &lane, e)) return false;
    const i64 track = 2 * lane + 1;
    x->lanes[lane] = 0;
    begin_span(x, REQUESTS, track, qn_str_of("request"), "request", t, t_end - t);
    begin_args(x, "request", d->request);
    put_int(x, "prompt", d->prompt);
    put_int(x, "cached", d->cached);
    put_int(x, "tokens", d->tokens);
    put_int(x, "first_ns", d->first_ns);
    qn_buf_puts(&x->out, ",\"stop\":");
    qn_buf_json(&x->out, d->stop.p ? d->stop.p : "", d->stop.n);
    if (!end(x, "}}", e)) return false;
    const i64 prompt = d->prompt_ns < t_end - t ? d->prompt_ns : t_end - t, rest = t_end - t - prompt;
    begin_span(x, REQUESTS, track, qn_str_of("its prompt"), "request", t, prompt);
    if (!end(x, "}", e)) return false;
    const i64 tokens = d->decode_ns < rest ? d->decode_ns : rest;
    begin_span(x, REQUESTS, track, qn_str_of("its tokens"), "request", t_end - tokens, told(tokens)); /* inside in doubles too */
    return end(x, "}", e);
}

static bool put_note(qn_export *x, const qn_event *ev, qn_err *e)
{
    begin(x, "i", RUN, STEPS, ev->note.text, "note");
    qn_buf_puts(&x->out, ",\"s\":\"g\",\"ts\":");
    put_us(&x->out, ev->t);
    return end(x, "}", e);
}

static bool put_event(void *user, const qn_plan_names *names, const qn_event *ev, qn_err *e)
{
    qn_export *x = user;
    switch (ev->kind) {
    case QN_EV_step: return put_step(x, names, ev, e);
    case QN_EV_pass: return put_pass(x, ev, e);
    case QN_EV_sample: return put_plain(x, AROUND, qn_str_of("sample"), "sample", ev->t, ev->sample.ns, e);
    case QN_EV_tokenize: return put_plain(x, AROUND, qn_str_of("tokenize"), "tokenize", ev->t, ev->tokenize.ns, e);
    case QN_EV_load: {
        char name[80];
        const qn_str phase = ev->load.phase;
        const int n = snprintf(name, sizeof name, "load: %.*s", (int)qn_minz(phase.n, 60), phase.p ? phase.p : "");
        return put_plain(x, AROUND, (qn_str){ name, (size_t)n }, "load", ev->t, ev->load.ns, e);
    }
    case QN_EV_token:
        return put_token(x, ev->t, ev->token.ns, ev->token.request, ev->token.index, ev->token.id, ev->token.pos, e);
    case QN_EV_request: {
        int lane;
        return lane_of(x, ev->request.request, &lane, e);
    }
    case QN_EV_done: return put_request(x, ev->t, &ev->done, e);
    case QN_EV_memory:
        return put_number(x, ev->t, "resident", "bytes", (double)ev->memory.resident, e)
            && put_number(x, ev->t, "KV in use", "bytes", (double)ev->memory.kv_used, e);
    case QN_EV_note: return put_note(x, ev, e);
    default: return true;
    }
}

/* ---- runs of other programs: passes, and in them what the run has of their launches */

static bool put_launch(qn_export *x, const qn_series *s, i64 t, u64 ns, qn_err *e)
{
    const char *name = *s->kernel ? s->kernel : *s->op ? s->op : "launch";
    begin_span(x, RUN, STEPS, qn_str_of(name), "step", t, (i64)ns);
    begin_args(x, "layer", s->layer);
    put_text(&x->out, "op", s->op);
    put_text(&x->out, "role", s->role);
    return end(x, "}}", e);
}

/* Sums without a place in time are laid end to end from t on: series of that phase, sample k of each, or their totals. */
static bool lay_out(qn_export *x, qn_phase phase, size_t k, bool totals, i64 *t, qn_err *e)
{
    for (size_t i = 0; i < x->run->series.n; i++) {
        const qn_series *s = &x->run->series.p[i];
        if (s->phase != phase || (!totals && k >= s->n_samples)) continue;
        const u64 ns = totals ? s->total_ns : s->ns[k];
        if (!put_launch(x, s, *t, ns, e)) return false;
        *t += (i64)ns;
    }
    return true;
}

static bool sums_by_pass(const qn_run *r)
{
    size_t n[N_PHASES] = { 0 };
    for (size_t i = 0; i < r->passes.n; i++) n[r->passes.p[i].phase]++;
    for (size_t i = 0; i < r->series.n; i++)
        if (r->series.p[i].n_samples != n[r->series.p[i].phase]) return false;
    return r->passes.n > 0;
}

static bool write_run(qn_export *x, qn_err *e)
{
    const qn_run *r = x->run;
    size_t seen[N_PHASES] = { 0 };
    const bool each = !r->spans.n && sums_by_pass(r);
    i64 t = 0;
    for (size_t i = 0; i < r->passes.n; i++) {
        const qn_run_pass *p = &r->passes.p[i];
        i64 at = p->t;
        begin_span(x, RUN, STEPS, qn_str_of(qn_phase_names[p->phase]), "pass", p->t, (i64)p->ns);
        begin_args(x, "pass", p->number);
        put_int(x, "rows", p->rows);
        put_int(x, "pos", p->pos);
        if (!end(x, "}}", e) || (each && !lay_out(x, p->phase, seen[p->phase]++, false, &at, e))) return false;
    }
    for (size_t i = 0; i < r->spans.n; i++)
        if (!put_launch(x, &r->series.p[r->spans.p[i].series], r->spans.p[i].t, r->spans.p[i].ns, e)) return false;
    for (size_t i = 0; i < r->tokens.n; i++) {
        const qn_run_token *k = &r->tokens.p[i];
        if (!put_token(x, k->t, (i64)k->ns, k->request, k->index, k->id, k->pos, e)) return false;
    }
    for (int phase = 0; !r->spans.n && !r->passes.n && phase < N_PHASES; phase++)
        if (!lay_out(x, (qn_phase)phase, 0, true, &t, e)) return false;
    return true;
}

bool qn_export_chrome(qn_export *x, qn_err *e)
{
    const bool ours = !strcmp(x->run->source, "quern");
    if (!begin_file(x, e) || !(ours ? qn_trace_each(x->run->path, put_event, x, e) : write_run(x, e))) return false;
    qn_buf_puts(&x->out, "\n]}\n");
    return true;
}
