/* read_quern.c - our own trace into a run. Every record is looked at once and nothing of it is kept but sums, one sample of 8
 * bytes a launch, and the lists of what comes once a token or less often; so ten million events take about 100 MB.
 * The kernel of a launch is not in its record: the plan and the choices say it once, by step and number of rows.
 * Leaves to others: what the figures mean (analysis), the text (trace/reader.c). */
#include <inttypes.h>
#include <string.h>

#include "report/cover.h"
#include "report/disturb.h"
#include "report/run.h"
#include "trace/reader.h"

#define STEPS_MOST   65536   /* steps of a plan: 1024 layers of 20 and then some */
#define CHOICES_MOST 4       /* ranges of rows that one step has kernels for */
#define ROWS_MOST    4096    /* larger passes count as this: all of them use the kernel for many rows */
#define KEEP_MOST    ((size_t)1 << 20) /* passes, and tokens, kept one by one; then every second of them, and so on */
#define N_KINDS      3       /* of passes: prefill (and mixed), decode, neither */

typedef struct step {
    const char *op, *role, *type;
    int layer;
    bool known, logits;
    int n_choices;
    struct { int lo, hi; const char *kernel; } choice[CHOICES_MOST];
    u32 series[N_KINDS][CHOICES_MOST + 1]; /* index + 1; the last: no choice fits */
} step;

struct qn_fill {
    qn_run *run;
    QN_RUN_LIST(step) steps;
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

/* The step of that number, made if need be; NULL with no error: a number that no plan has. */
static step *step_at(qn_fill *f, i64 number, qn_err *e)
{
    if (number < 0 || number >= STEPS_MOST) {
        f->run->ignored++;
        return NULL;
    }
    while (f->steps.n <= (size_t)number) {
        step *s = QN_RUN_PUSH(&f->steps, e);
        if (!s) return NULL;
        s->op = s->role = s->type = "";
        s->layer = -1;
    }
    return &f->steps.p[number];
}

static bool add_plan(qn_fill *f, const qn_ev_plan *p, qn_err *e)
{
    step *s = step_at(f, p->step, e);
    if (!s) return e->code == QN_OK;
    s->layer = small(p->layer);
    s->logits = p->logits != 0;
    s->known = true;
    return keep(f, &s->op, p->op, e) && keep(f, &s->role, p->role, e) && keep(f, &s->type, p->type, e);
}

/* "1", "2-8", "9+" */
static bool parse_rows(qn_str s, int *lo, int *hi)
{
    i64 v[2] = { 0, 0 };
    int n = 0;
    size_t i = 0;
    for (; i < s.n && n < 2; i++) {
        if (s.p[i] >= '0' && s.p[i] <= '9' && v[n] < 1000000) v[n] = v[n] * 10 + (s.p[i] - '0');
        else if (s.p[i] == '-' && i) n++;
        else break;
    }
    *lo = (int)v[0];
    *hi = i < s.n && s.p[i] == '+' ? INT32_MAX : n == 1 ? (int)v[1] : (int)v[0];
    return *lo > 0 && *hi >= *lo;
}

static bool add_choice(qn_fill *f, const qn_ev_choice *c, qn_err *e)
{
    step *s = step_at(f, c->step, e);
    if (!s) return e->code == QN_OK;
    qn_run_choice *out = QN_RUN_PUSH(&f->run->choices, e);
    if (!out) return false;
    *out = (qn_run_choice){ .step = (int)c->step, .role = s->role, .op = s->op, .rows = "", .kernel = "", .reason = "",
                            .rejected = "" };
    int lo, hi;
    if (!keep(f, &out->rows, c->rows, e) || !keep(f, &out->kernel, c->kernel, e) || !keep(f, &out->reason, c->reason, e)
        || !keep(f, &out->rejected, c->rejected, e)) return false;
    if (s->n_choices == CHOICES_MOST || !parse_rows(c->rows, &lo, &hi)) {
        f->run->ignored++;
        return true;
    }
    s->choice[s->n_choices].lo = lo;
    s->choice[s->n_choices].hi = hi;
    s->choice[s->n_choices++].kernel = out->kernel;
    return true;
}

/* ---- launches */

static qn_series *series_at(qn_fill *f, size_t number, int kind, int choice, qn_err *e)
{
    step *s = &f->steps.p[number];
    u32 *slot = &s->series[kind][choice];
    if (*slot) return &f->run->series.p[*slot - 1];
    const char *kernel = choice < s->n_choices ? s->choice[choice].kernel : "";
    qn_series *made = qn_run_series(f->run, phase_of_kind[kind], kernel, s->op, s->role, s->type, s->layer, e);
    if (made) *slot = (u32)(made - f->run->series.p) + 1;
    return made;
}

static int choice_for(const step *s, i64 rows)
{
    for (int i = 0; i < s->n_choices; i++)
        if (rows >= s->choice[i].lo && rows <= s->choice[i].hi) return i;
    return CHOICES_MOST;
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
    step *s = (size_t)st->step < f->steps.n ? &f->steps.p[st->step] : step_at(f, st->step, e);
    if (!s) return e->code == QN_OK;
    qn_series *x = series_at(f, (size_t)st->step, kind, choice_for(s, st->rows), e);
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
    case QN_EV_plan: return add_plan(f, &ev->plan, e);
    case QN_EV_choice: return add_choice(f, &ev->choice, e);
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

static u64 count_passes(const u64 *hist, int lo, int hi)
{
    u64 n = 0;
    for (int i = lo; i <= hi && i <= ROWS_MOST; i++) n += hist[i];
    return n;
}

/* Every pass asks for every step once; steps behind the logits only where a row asked for them. */
static bool expect(qn_fill *f, qn_err *e)
{
    if (strcmp(f->run->level, "step") != 0) return true;
    for (size_t i = 0; i < f->run->series.n; i++) f->run->series.p[i].expected = 0;
    for (size_t i = 0; i < f->steps.n; i++) {
        const step *s = &f->steps.p[i];
        for (int c = 0; c < N_KINDS * s->n_choices; c++) {
            const int kind = c / s->n_choices, choice = c % s->n_choices;
            const u64 n = count_passes(s->logits ? f->logits_hist[kind] : f->rows_hist[kind], s->choice[choice].lo,
                                       s->choice[choice].hi);
            qn_series *x = n ? series_at(f, i, kind, choice, e) : NULL;
            if (n && !x) return false;
            if (x) x->expected += n;
            s = &f->steps.p[i];
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
    if (!expect(f, e) || !say_what_was_wrong(r, f, state, e)) return false;
    qn_run_mark_disturbed(r);
    return true;
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
    qn_free(f->steps.p);
    qn_table_close(&f->requests);
    qn_free(f);
}
