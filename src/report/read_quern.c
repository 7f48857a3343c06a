/* read_quern.c - our own trace into a run. Every record is looked at once and nothing of it is kept but sums, one sample of 8
 * bytes a launch, and the lists of what comes once a token or less often; so ten million events take about 100 MB.
 * The kernel of a launch is not in its record: the plan and the choices say it once, by step and number of rows.
 * Leaves to others: what the figures mean (analysis), the text (trace/reader.c). */
#include <inttypes.h>
#include <string.h>

#include "report/cover.h"
#include "report/plan_names.h"
#include "report/run.h"
#include "trace/reader.h"

#define ROWS_MOST    4096    /* larger passes count as this: all of them use the kernel for many rows */
#define KEEP_MOST    ((size_t)1 << 20) /* passes, and tokens, kept one by one; then every second of them, and so on */
#define N_KINDS      3       /* of passes: prefill (and mixed), decode, neither */

/* The series of a step: index + 1; the first: no choice fits. */
typedef struct slots { u32 series[N_KINDS][QN_CHOICES_MOST + 1]; } slots;

struct qn_fill {
    qn_run *run;
    qn_plan_names names;
    QN_RUN_LIST(slots) slots; /* by step */
    qn_cover cover;
    i64 last;                /* end of the latest event */
    i64 pass;                /* the pass whose steps come now, 0: none */
    u64 pass_ns, pass_steps;
    bool keep_spans;
    u64 n_passes[N_KINDS];   /* seen by their steps */
    u64 rows_hist[N_KINDS][ROWS_MOST + 1], logits_hist[N_KINDS][ROWS_MOST + 1]; /* passes by rows */
    u64 token_skip, pass_skip; /* one in this many is kept */
    u64 n_tokens, n_pass_records;
    qn_table requests;       /* id to index */
    size_t n_notes;          /* of the trace itself */
    u64 orphans;             /* records about a request that never began */
};

static const qn_phase phase_of_kind[N_KINDS] = { PHASE_prefill, PHASE_decode, PHASE_other };

static int kind_of(qn_str phase)
{
    if (phase.n == 6 && !memcmp(phase.p, "decode", 6)) return 1;
    if ((phase.n == 7 && !memcmp(phase.p, "prefill", 7)) || (phase.n == 5 && !memcmp(phase.p, "mixed", 5))) return 0;
    return 2;
}

static int small(i64 v) { return v > INT32_MAX ? INT32_MAX : v < -1 ? -1 : (int)v; }

static bool keep(qn_fill *f, const char **out, qn_str s, qn_err *e)
{
    const char *copy = qn_run_text(f->run, s, e);
    if (copy) *out = copy;
    return copy != NULL;
}

/* ---- header and plan */

static bool add_trace(qn_fill *f, const qn_ev_trace *t, qn_err *e)
{
    qn_run *r = f->run;
    r->seed = t->seed;
    r->cores = t->cores;
    r->threads = t->threads;
    r->layers = t->layers;
    r->model_bytes = (u64)t->model_bytes;
    r->params = (u64)t->params;
    r->read_gbs = t->read_gbs;
    r->read_small_gbs = t->read_small_gbs;
    r->f32_gflops = t->f32_gflops;
    r->bf16_gflops = t->bf16_gflops;
    r->int8_gops = t->int8_gops;
    r->barrier_us = t->barrier_us;
    r->clock_ns = t->clock_ns;
    if (t->schema > QN_TRACE_SCHEMA) {
        if (!qn_run_note(r, e, "the trace has schema %" PRId64 ", newer than the %d known here: what is new in it is left out",
                         t->schema, QN_TRACE_SCHEMA)) return false;
        f->n_notes = r->notes.n;
    }
    return keep(f, &r->program, t->program, e) && keep(f, &r->commit, t->commit, e) && keep(f, &r->command, t->command, e)
        && keep(f, &r->started, t->started, e) && keep(f, &r->level, t->level, e) && keep(f, &r->host, t->host, e)
        && keep(f, &r->os, t->os, e) && keep(f, &r->cpu, t->cpu, e) && keep(f, &r->device, t->device, e)
        && keep(f, &r->isa, t->isa, e) && keep(f, &r->model, t->model, e) && keep(f, &r->model_path, t->path, e)
        && keep(f, &r->arch, t->arch, e) && keep(f, &r->type, t->type, e) && keep(f, &r->hash, t->hash, e)
        && keep(f, &r->plan_hash, t->plan_hash, e) && keep(f, &r->settings, t->settings, e);
}

/* A number that no plan has. */
static bool is_no_step(qn_fill *f, i64 number)
{
    const bool no = number < 0 || number >= QN_STEPS_MOST;
    f->run->ignored += no;
    return no;
}

static bool add_plan(qn_fill *f, const qn_event *ev, qn_err *e)
{
    return is_no_step(f, ev->plan.step) || qn_plan_names_add(&f->names, ev, e);
}

static bool add_choice(qn_fill *f, const qn_event *ev, qn_err *e)
{
    const qn_ev_choice *c = &ev->choice;
    if (is_no_step(f, c->step)) return true;
    const int known = qn_plan_names_get(&f->names, c->step)->n_choices;
    if (!qn_plan_names_add(&f->names, ev, e)) return false;
    const qn_plan_step *s = qn_plan_names_get(&f->names, c->step);
    f->run->ignored += s->n_choices == known;
    qn_run_choice *out = QN_RUN_PUSH(&f->run->choices, e);
    if (!out) return false;
    *out = (qn_run_choice){ .step = (int)c->step, .role = "", .op = "", .rows = "", .kernel = "", .reason = "", .rejected = "" };
    return keep(f, &out->role, qn_str_of(s->role), e) && keep(f, &out->op, qn_str_of(s->op), e)
        && keep(f, &out->rows, c->rows, e) && keep(f, &out->kernel, c->kernel, e) && keep(f, &out->reason, c->reason, e)
        && keep(f, &out->rejected, c->rejected, e);
}

/* ---- launches */

/* choice: -1 where none fits. */
static qn_series *series_at(qn_fill *f, i64 number, int kind, int choice, qn_err *e)
{
    while (f->slots.n <= (size_t)number)
        if (!QN_RUN_PUSH(&f->slots, e)) return NULL;
    u32 *slot = &f->slots.p[number].series[kind][choice + 1];
    if (*slot) return &f->run->series.p[*slot - 1];
    const qn_plan_step *s = qn_plan_names_get(&f->names, number);
    const char *kernel = choice < 0 ? "" : s->choice[choice].kernel;
    qn_series *made = qn_run_series(f->run, phase_of_kind[kind], kernel, s->op, s->role, s->type, s->layer, e);
    if (made) *slot = (u32)(made - f->run->series.p) + 1;
    return made;
}

/* Steps of the first prefill pass and of decode passes 1, 2, 4, 16, 64, ... are kept one by one, for drawings. */
static void begin_pass(qn_fill *f, i64 pass, int kind)
{
    const u64 n = ++f->n_passes[kind];
    f->pass = pass;
    f->pass_ns = f->pass_steps = 0;
    f->keep_spans = kind == 0 ? n == 1 : kind == 1 && (n <= 2 || ((n & (n - 1)) == 0 && __builtin_ctzll(n) % 2 == 0));
}

static bool add_span(qn_fill *f, const qn_event *ev, size_t series, qn_err *e)
{
    qn_run_span *sp = QN_RUN_PUSH(&f->run->spans, e);
    if (sp) *sp = (qn_run_span){ .t = ev->t, .ns = (u64)ev->step.ns, .series = (u32)series, .pass = (u32)ev->step.pass };
    return sp != NULL;
}

static bool add_step(qn_fill *f, const qn_event *ev, qn_err *e)
{
    const qn_ev_step *st = &ev->step;
    const int kind = kind_of(st->phase);
    if (is_no_step(f, st->step)) return true;
    const int choice = qn_plan_choice_for(qn_plan_names_get(&f->names, st->step), st->rows);
    qn_series *x = series_at(f, st->step, kind, choice, e);
    if (!x || !qn_series_add(x, (u64)st->ns, e)) return false;
    x->bytes += (double)st->bytes;
    x->flops += (double)st->flops;
    qn_fit_add(&x->fit, (double)st->pos, (double)st->ns);
    u64 waited = 0;
    for (size_t i = 0; i < st->busy.n; i++)
        if (st->busy.p[i] >= 0 && st->busy.p[i] < st->ns) waited += (u64)(st->ns - st->busy.p[i]);
    if (st->busy.n) x->wait_ns += waited / st->busy.n;
    if (st->pass != f->pass) begin_pass(f, st->pass, kind);
    f->pass_ns += (u64)st->ns;
    f->pass_steps++;
    return !f->keep_spans || add_span(f, ev, (size_t)(x - f->run->series.p), e);
}

/* ---- passes, tokens, requests */

/* Every second one goes: the rest still stands for all of them. */
#define HALVE(list) \
    do { \
        for (size_t i_ = 0; i_ < (list)->n / 2; i_++) (list)->p[i_] = (list)->p[2 * i_]; \
        (list)->n /= 2; \
    } while (0)

static bool add_pass(qn_fill *f, const qn_event *ev, qn_err *e)
{
    const qn_ev_pass *p = &ev->pass;
    const int kind = kind_of(p->phase);
    const bool mine = p->pass == f->pass;
    if (!mine) f->n_passes[kind]++; /* it has no steps in the trace */
    qn_cover_add(&f->cover, phase_of_kind[kind], ev->t, (u64)p->ns);
    f->run->phase_tokens[phase_of_kind[kind]] += (u64)p->rows;
    f->rows_hist[kind][p->rows < ROWS_MOST ? p->rows : ROWS_MOST]++;
    f->logits_hist[kind][p->logits < ROWS_MOST ? p->logits : ROWS_MOST]++;
    const u64 steps_ns = mine ? f->pass_ns : 0;
    f->pass = 0;
    if (f->n_pass_records++ % f->pass_skip) return true;
    if (f->run->passes.n == KEEP_MOST) {
        HALVE(&f->run->passes);
        f->pass_skip *= 2;
    }
    qn_run_pass *out = QN_RUN_PUSH(&f->run->passes, e);
    if (!out) return false;
    *out = (qn_run_pass){ .t = ev->t, .number = p->pass, .ns = (u64)p->ns, .steps_ns = steps_ns, .phase = phase_of_kind[kind],
                          .rows = small(p->rows), .seqs = small(p->seqs), .pos = p->pos };
    return true;
}

static bool add_token(qn_fill *f, const qn_event *ev, qn_err *e)
{
    if (f->n_tokens++ % f->token_skip) return true;
    if (f->run->tokens.n == KEEP_MOST) {
        HALVE(&f->run->tokens);
        f->token_skip *= 2;
    }
    const qn_ev_token *t = &ev->token;
    qn_run_token *out = QN_RUN_PUSH(&f->run->tokens, e);
    if (!out) return false;
    *out = (qn_run_token){ .t = ev->t, .ns = (u64)t->ns, .request = t->request, .index = t->index, .id = t->id, .pos = t->pos };
    return true;
}

/* What happened once in a while outside the plan: sampling, tokenising. */
static bool add_span_of(qn_fill *f, qn_phase phase, const char *op, i64 t, i64 ns, qn_err *e)
{
    qn_cover_add(&f->cover, phase, t, (u64)ns);
    qn_series *s = qn_run_series(f->run, phase, "", op, op, "", -1, e);
    return s && qn_series_add(s, (u64)ns, e);
}

static bool add_request(qn_fill *f, const qn_ev_request *q, qn_err *e)
{
    i64 *id = qn_arena_new(&f->run->arena, sizeof *id, e);
    if (!id) return false;
    *id = q->request;
    const u32 mine = (u32)f->run->requests.n, there = qn_table_put(&f->requests, (const char *)id, sizeof *id, mine, e);
    if (there == QN_NONE) return false;
    if (there != mine) {
        f->run->ignored++;
        return true;
    }
    qn_run_request *out = QN_RUN_PUSH(&f->run->requests, e);
    if (!out) return false;
    *out = (qn_run_request){ .id = q->request, .prompt = q->prompt, .cached = q->cached, .stop = "" };
    return true;
}

static bool add_done(qn_fill *f, const qn_ev_done *d, qn_err *e)
{
    const u32 at = qn_table_get(&f->requests, (const char *)&d->request, sizeof d->request);
    if (at == QN_NONE || f->run->requests.p[at].ns) {
        f->orphans++;
        f->run->ignored++;
        return true;
    }
    qn_run_request *out = &f->run->requests.p[at];
    out->prompt = d->prompt;
    out->cached = d->cached;
    out->tokens = d->tokens;
    out->first_ns = (u64)d->first_ns;
    out->prompt_ns = (u64)d->prompt_ns;
    out->decode_ns = (u64)d->decode_ns;
    out->ns = (u64)d->ns;
    return keep(f, &out->stop, d->stop, e);
}

/* ---- the rest */

static bool add_load(qn_fill *f, const qn_event *ev, qn_err *e)
{
    qn_run_load *out = QN_RUN_PUSH(&f->run->loads, e);
    if (!out) return false;
    *out = (qn_run_load){ .phase = "", .ns = (u64)ev->load.ns, .bytes = (u64)ev->load.bytes };
    qn_cover_add(&f->cover, PHASE_load, ev->t, (u64)ev->load.ns);
    return keep(f, &out->phase, ev->load.phase, e);
}

static bool add_memory(qn_fill *f, const qn_ev_memory *m, qn_err *e)
{
    qn_run_memory *out = QN_RUN_PUSH(&f->run->memory, e);
    if (!out) return false;
    *out = (qn_run_memory){ .when = "", .parts = "", .weights = (u64)m->weights, .kv = (u64)m->kv, .kv_used = (u64)m->kv_used,
                            .scratch = (u64)m->scratch, .resident = (u64)m->resident, .peak = (u64)m->peak };
    return keep(f, &out->when, m->when, e) && keep(f, &out->parts, m->parts, e);
}

static bool add_test(qn_fill *f, const qn_ev_test *t, qn_err *e)
{
    qn_run_test *out = QN_RUN_PUSH(&f->run->tests, e);
    if (!out) return false;
    *out = (qn_run_test){ .name = "", .rep = t->rep, .tokens = (u64)t->tokens, .ns = (u64)t->ns };
    return keep(f, &out->name, t->name, e);
}

/* A probe's record has figures and no samples: a series with totals alone. */
static bool add_probe(qn_fill *f, const qn_ev_probe *p, qn_err *e)
{
    const char *kernel, *spec, *op;
    size_t word = 0;
    const double total = p->p50_ns * (double)p->samples;
    if (!(p->p50_ns >= 0 && p->p50_ns < 1e15 && p->min_ns >= 0 && p->min_ns < 1e15 && total < 1e18)) {
        f->run->ignored++;
        return true;
    }
    while (word < p->spec.n && p->spec.p[word] != ' ') word++;
    if (!keep(f, &kernel, p->kernel, e) || !keep(f, &spec, p->spec, e) || !keep(f, &op, (qn_str){ p->spec.p, word }, e))
        return false;
    qn_series *s = qn_run_series(f->run, PHASE_other, kernel, op, spec, "", -1, e);
    if (!s) return false;
    s->n += (u64)p->samples;
    s->total_ns += (u64)total;
    if (!s->min_ns || p->min_ns < (double)s->min_ns) s->min_ns = (u64)p->min_ns;
    if (p->p50_ns > (double)s->max_ns) s->max_ns = (u64)p->p50_ns;
    s->bytes += (double)p->bytes * (double)p->samples;
    s->flops += (double)p->flops * (double)p->samples;
    return true;
}

static bool add_note(qn_fill *f, const qn_ev_note *n, qn_err *e)
{
    f->run->notes.n = f->n_notes; /* what finish said goes; it will say it again */
    if (n->text.n && !qn_run_note(f->run, e, "%.*s", (int)qn_minz(n->text.n, 300), n->text.p)) return false;
    f->n_notes = f->run->notes.n;
    return true;
}

static bool add_end(qn_fill *f, const qn_ev_end *d, qn_err *e)
{
    f->run->ended = true;
    f->run->lost = (u64)d->lost;
    f->run->events = (u64)d->events;
    f->run->writer_ns = (u64)d->writer_ns;
    if (d->ns > f->last) f->last = d->ns;
    return keep(f, &f->run->status, d->status, e);
}

/* Where an event ends: what lasted has ns. */
static i64 end_of(const qn_event *ev)
{
    switch (ev->kind) {
    case QN_EV_load: return ev->t + ev->load.ns;
    case QN_EV_tokenize: return ev->t + ev->tokenize.ns;
    case QN_EV_pass: return ev->t + ev->pass.ns;
    case QN_EV_step: return ev->t + ev->step.ns;
    case QN_EV_sample: return ev->t + ev->sample.ns;
    default: return ev->t;
    }
}

bool qn_fill_add(qn_fill *f, const qn_event *ev, qn_err *e)
{
    const i64 end = end_of(ev);
    if (end > f->last) f->last = end;
    switch (ev->kind) {
    case QN_EV_step: return add_step(f, ev, e);
    case QN_EV_pass: return add_pass(f, ev, e);
    case QN_EV_token: return add_token(f, ev, e);
    case QN_EV_sample:
        f->run->phase_tokens[PHASE_sample]++;
        return add_span_of(f, PHASE_sample, "sample", ev->t, ev->sample.ns, e);
    case QN_EV_tokenize:
        f->run->phase_tokens[PHASE_tokenize] += (u64)ev->tokenize.tokens;
        return add_span_of(f, PHASE_tokenize, "tokenize", ev->t, ev->tokenize.ns, e);
    case QN_EV_trace: return add_trace(f, &ev->trace, e);
    case QN_EV_plan: return add_plan(f, ev, e);
    case QN_EV_choice: return add_choice(f, ev, e);
    case QN_EV_load: return add_load(f, ev, e);
    case QN_EV_memory: return add_memory(f, &ev->memory, e);
    case QN_EV_request: return add_request(f, &ev->request, e);
    case QN_EV_done: return add_done(f, &ev->done, e);
    case QN_EV_test: return add_test(f, &ev->test, e);
    case QN_EV_probe: return add_probe(f, &ev->probe, e);
    case QN_EV_note: return add_note(f, &ev->note, e);
    case QN_EV_end: return add_end(f, &ev->end, e);
    case N_EV_KINDS: break;
    }
    return true;
}

/* ---- the end */

static u64 count_passes(const u64 *hist, i64 lo, i64 hi)
{
    u64 n = 0;
    for (i64 i = lo; i <= hi && i <= ROWS_MOST; i++) n += hist[i];
    return n;
}

static bool was_seen(const qn_fill *f, size_t step, int kind, int choice)
{
    return step < f->slots.n && f->slots.p[step].series[kind][choice + 1];
}

/* Every pass asks for every step once; steps behind the logits only where a row asked for them. A device may do a step's work in
 * another's launch: there, a step that was never seen has none of its own. */
static bool expect(qn_fill *f, qn_err *e)
{
    const bool device = *f->run->device && strcmp(f->run->device, "cpu") != 0;
    if (strcmp(f->run->level, "step") != 0) return true;
    for (size_t i = 0; i < f->run->series.n; i++) f->run->series.p[i].expected = 0;
    for (size_t i = 0; i < f->names.steps.n; i++) {
        const qn_plan_step *s = &f->names.steps.p[i];
        for (int c = 0; c < N_KINDS * s->n_choices; c++) {
            const int kind = c / s->n_choices, choice = c % s->n_choices;
            const u64 n = count_passes(s->logits ? f->logits_hist[kind] : f->rows_hist[kind], s->choice[choice].lo,
                                       s->choice[choice].hi);
            if (!n || (device && !was_seen(f, i, kind, choice))) continue;
            qn_series *x = series_at(f, (i64)i, kind, choice, e);
            if (!x) return false;
            x->expected += n;
        }
    }
    return true;
}

static bool say_what_was_wrong(qn_run *r, const qn_fill *f, const qn_reader_state *st, qn_err *e)
{
    bool ok = true;
    r->unknown = st->unknown;
    r->bad = st->bad;
    if (st->cut) ok = qn_run_note(r, e, "1 cut record at byte %" PRIu64, st->cut_at);
    if (ok && st->damage[0]) ok = qn_run_note(r, e, "%s; what came before it was used", st->damage);
    if (ok && st->bad)
        ok = qn_run_note(r, e, "%" PRIu64 " damaged record%s, the first at byte %" PRIu64 ": %s", st->bad,
                         st->bad == 1 ? "" : "s", st->bad_at, st->bad_why);
    if (ok && st->unknown)
        ok = qn_run_note(r, e, "%" PRIu64 " record%s of a kind that is not known here (%s)", st->unknown,
                         st->unknown == 1 ? "" : "s", st->unknown_kinds);
    if (ok && r->lost) ok = qn_run_note(r, e, "%" PRIu64 " events were lost while the trace was written", r->lost);
    if (ok && !r->ended) ok = qn_run_note(r, e, "no end record: the run was cut, or still goes on");
    if (ok && f->orphans)
        ok = qn_run_note(r, e, "%" PRIu64 " ends of requests that never began were left out", f->orphans);
    if (ok && f->cover.late)
        ok = qn_run_note(r, e, "time went back %" PRIu64 " times; those spans are in no phase", f->cover.late);
    if (ok && f->token_skip > 1)
        ok = qn_run_note(r, e, "%" PRIu64 " tokens: one in %" PRIu64 " is kept for percentiles", f->n_tokens, f->token_skip);
    return ok;
}

bool qn_fill_finish(qn_fill *f, const qn_reader_state *state, qn_err *e)
{
    qn_run *r = f->run;
    r->notes.n = f->n_notes;
    qn_cover_sum(&f->cover, r->phase_ns);
    u64 sum = 0;
    for (int i = 0; i < N_PHASES; i++) sum += r->phase_ns[i];
    r->wall_ns = (u64)f->last > sum ? (u64)f->last : sum;
    r->phase_ns[PHASE_other] += r->wall_ns - sum;
    return expect(f, e) && say_what_was_wrong(r, f, state, e);
}

qn_fill *qn_fill_open(qn_run *r, qn_err *e)
{
    qn_fill *f = qn_new(sizeof *f, e);
    if (!f) return NULL;
    f->run = r;
    f->token_skip = f->pass_skip = 1;
    return f;
}

void qn_fill_close(qn_fill *f)
{
    if (!f) return;
    qn_plan_names_close(&f->names);
    qn_free(f->slots.p);
    qn_table_close(&f->requests);
    qn_free(f);
}
