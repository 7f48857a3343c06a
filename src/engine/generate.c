/* generate.c - one request on a session: prompt in, pieces out. Owns everything that grows with the answer; the passes
 * themselves allocate nothing. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "engine/record.h"
#include "engine/sampler.h"
#include "engine/stop.h"

typedef struct job {
    qn_session *s;
    const qn_request *r;
    qn_result *out;
    qn_sampler sampler;
    qn_decoder *decoder;      /* NULL: the model has no vocabulary */
    qn_stop stop;
    qn_buf text;              /* of the token at hand */
    u64 begin;                /* when the call began */
    i64 request;              /* its number in the trace */
    u64 last_ns;              /* when the token before was there */
    int most;                 /* tokens to make */
    bool few;                 /* the best QN_CUDA_BEST logits are enough, and a device lists them */
} job;

static bool check(const job *j, qn_err *e)
{
    const qn_request *r = j->r;
    const int n_ctx = j->s->en->n_ctx;
    if (r->n_ids == 0) return qn_fail(e, QN_EUSAGE, "the prompt is empty: at least one token is needed");
    if (r->n_ids > (size_t)n_ctx)
        return qn_fail(e, QN_ECONTEXT, "the prompt has %zu tokens, the context holds %d", r->n_ids, n_ctx);
    if (r->n_predict < -1) return qn_fail(e, QN_EUSAGE, "n_predict is %d; it must be -1 or more", r->n_predict);
    return qn_stop_check(r->stop, r->n_stop, e) && qn_sampling_check(&r->sampling, j->s->en->m->n_vocab, e);
}

static bool open_job(job *j, qn_err *e)
{
    const qn_model *m = j->s->en->m;
    const int room = j->s->en->n_ctx - (int)j->r->n_ids + 1; /* the last token made needs no place of its own */
    j->most = j->r->n_predict < 0 ? room : qn_mini(j->r->n_predict, room);
    j->stop = (qn_stop){ .strings = j->r->stop, .n = j->r->n_stop };
    j->out->ids = qn_new_array((size_t)qn_maxi(j->most, 1), sizeof *j->out->ids, e);
    if (!j->out->ids || !qn_sampler_open(&j->sampler, m->n_vocab, j->s->en->plan.isa,
                                             &j->s->en->tuned, e)) return false;
    if (!m->tok) return true;
    j->decoder = qn_decoder_open(m->tok, false, e);
    return j->decoder != NULL;
}

static void close_job(job *j)
{
    qn_sampler_close(&j->sampler);
    qn_decoder_close(j->decoder);
    qn_stop_close(&j->stop);
    qn_buf_close(&j->text);
}

static bool run_prompt(job *j, qn_err *e)
{
    size_t cached;
    if (!qn_session_set(j->s, j->r->ids, j->r->n_ids, &cached, e)) return false;
    j->out->n_cached = (int)cached;
    j->out->n_prompt = (int)j->r->n_ids;
    j->request = qn_record_request(j->s->en, j->begin, j->r, cached);
    j->last_ns = j->begin;
    while (!j->s->logits)
        if (!qn_engine_step(j->s->en, NULL, e)) return false;
    j->out->prompt_ns = qn_now_ns() - j->begin;
    return true;
}

/* Hands a piece to the caller. False: the caller wants no more. */
static bool show(job *j, i32 id, float logprob, const char *text, size_t n)
{
    const int n_probs = qn_mini(j->r->sampling.n_probs, j->sampler.n_vocab);
    const qn_piece piece = { .id = id, .text = text, .n_text = n, .logprob = logprob, .probs = j->sampler.probs,
                             .n_probs = n_probs };
    return !j->r->each || j->r->each(j->r->user, &piece);
}

static bool is_end(const job *j, i32 id)
{
    const qn_tokenizer *t = j->s->en->m->tok;
    return t && !j->r->ignore_end && qn_token_is_end(t, id);
}

/* One token that is no end: its text through decoder and stop strings to the caller. Returns a QN_STOP_*; NONE: go on. */
static int take(job *j, i32 id, float logprob, qn_err *e)
{
    const char *text = "";
    size_t n = 0;
    j->text.n = 0;
    if (j->decoder && !qn_decoder_push(j->decoder, id, &j->text, e)) return -1;
    qn_stop_push(&j->stop, j->text.p ? j->text.p : "", j->text.n, &text, &n);
    if (j->text.failed || j->stop.held.failed) {
        qn_fail(e, QN_ENOMEM, "out of memory for the text of the answer");
        return -1;
    }
    if (!show(j, id, logprob, text, n)) return QN_STOP_CALLER;
    return j->stop.hit ? QN_STOP_STRING : QN_STOP_NONE;
}

/* What decoder and stop strings still hold back. */
static bool finish(job *j, qn_err *e)
{
    const char *text;
    size_t n;
    j->text.n = 0;
    if (j->out->stop == QN_STOP_CALLER) return true;
    if (j->decoder && !j->stop.hit && !qn_decoder_flush(j->decoder, &j->text, e)) return false;
    qn_stop_push(&j->stop, j->text.p ? j->text.p : "", j->text.n, &text, &n);
    if (n && !show(j, -1, 0, text, n)) return true;
    qn_stop_flush(&j->stop, &text, &n);
    if (n) show(j, -1, 0, text, n);
    return true;
}

static bool recorded(const job *j) { return j->s->en->rec && j->s->en->rec->tokens; }

/* The next token, chosen. */
static i32 draw(job *j, float *logprob)
{
    const qn_session *s = j->s;
    qn_result *out = j->out;
    const u64 begin = recorded(j) ? qn_now_ns() : 0;
    const i32 id = qn_sampler_draw(&j->sampler, s->logits, &j->r->sampling, s->tokens, (size_t)s->n_tokens, (u64)out->n_new,
                                   logprob);
    if (out->n_new == 0) out->first_ns = qn_now_ns() - j->begin;
    out->ids[out->n_new++] = id;
    if (recorded(j)) qn_record_sample(s->en, j->request, begin, qn_now_ns());
    return id;
}

typedef struct made { i32 id; int pos; float logprob; u64 ns; } made; /* ns: when it was there; 0: now */

/* The token's text to the caller, unless it is an end; returns as take does. */
static int hand_out(job *j, const made *t, qn_err *e)
{
    if (!recorded(j)) return is_end(j, t->id) ? QN_STOP_END : take(j, t->id, t->logprob, e);
    const u64 now = qn_now_ns();
    const int stop = is_end(j, t->id) ? QN_STOP_END : take(j, t->id, t->logprob, e);
    const qn_token_mark m = { .request = j->request, .index = j->out->n_new - 1, .pos = t->pos, .id = t->id,
                              .at_ns = t->ns ? t->ns : now, .since_ns = j->last_ns, .out_ns = qn_now_ns() - now };
    qn_record_token(j->s->en, &m);
    j->last_ns = m.at_ns;
    return stop;
}

/* Only the likeliest token is ever wanted, and nobody looks at the others. */
static bool is_plain_greedy(const qn_sampling *p)
{
    return (p->temp <= 0 || p->top_k == 1) && p->n_probs == 0 && p->n_bias == 0 && !qn_sampling_penalises(p);
}

#define AHEAD 16 /* tokens at once: what is made behind an end is thrown away */
static_assert(AHEAD <= QN_CUDA_DECODE_MOST, "each has a place in made_ns");

/* One token, from the best logits alone where these are all that came down. */
static bool draw_few(job *j, i32 *id, qn_err *e)
{
    qn_session *s = j->s;
    const qn_sampling *p = &j->r->sampling;
    i32 ids[QN_CUDA_BEST];
    float values[QN_CUDA_BEST];
    while (!s->logits)
        if (!qn_engine_step(s->en, NULL, e)) return false;
    const i64 row = (s->logits - s->en->b.logits) / s->en->m->n_vocab;
    const int n = qn_cuda_best(s->en->cuda, (int)row, ids, values);
    const u64 n_drawn = (u64)j->out->n_new;
    if (n == 0 && !qn_device_fetch(s->en, e)) return false;
    *id = n ? qn_sampler_draw_few(&j->sampler, ids, values, n, p, n_drawn)
            : qn_sampler_draw(&j->sampler, s->logits, p, s->tokens, (size_t)s->n_tokens, n_drawn, NULL);
    if (recorded(j)) qn_record_made(s->en, 0, qn_now_ns());
    return true;
}

/* At most n tokens behind the timeline; returns how many, 0: failed. */
static int next_tokens(job *j, int n, i32 *ids, qn_err *e)
{
    const qn_sampling *p = &j->r->sampling;
    if (!j->few) return qn_session_decode(j->s, n, ids, e) ? n : 0;
    if (n == 1 || p->typical_p < 1 || !qn_session_ahead(j->s)) return draw_few(j, ids, e);
    return qn_session_draw(j->s, n, p, (u64)j->out->n_new, ids, e) ? n : 0;
}

static bool run_ahead(job *j, qn_err *e)
{
    qn_session *s = j->s;
    qn_result *out = j->out;
    i32 ids[AHEAD];
    int n = next_tokens(j, 1, ids, e); /* from the prompt's logits */
    if (n == 0) return false;
    out->first_ns = qn_now_ns() - j->begin;
    for (;;) {
        const int before = s->n_tokens - n + 1; /* of the timeline, without what this round made */
        for (int i = 0; i < n; i++) {
            const made t = { ids[i], before + i, NAN, recorded(j) ? s->en->rec->made_ns[i] : 0 };
            out->ids[out->n_new++] = ids[i];
            const int stop = hand_out(j, &t, e);
            if (stop < 0) return false;
            out->stop = stop;
            if (stop == QN_STOP_NONE && out->n_new < j->most) continue;
            qn_session_rewind(s, before + i);
            return true;
        }
        const i32 last = ids[n - 1];
        n = qn_session_push(s, last, e) ? next_tokens(j, qn_mini(AHEAD, j->most - out->n_new), ids, e) : 0;
        if (n == 0) return false;
    }
}

static void name_stop(const job *j)
{
    qn_result *out = j->out;
    const bool enough = j->r->n_predict >= 0 && out->n_new >= j->r->n_predict;
    if (out->stop == QN_STOP_NONE) out->stop = enough ? QN_STOP_LENGTH : QN_STOP_CONTEXT;
}

static bool run_tokens(job *j, qn_err *e)
{
    if (j->most > 0 && j->s->en->cuda && (j->few || is_plain_greedy(&j->r->sampling))) {
        if (!run_ahead(j, e)) return false;
        name_stop(j);
        return true;
    }
    qn_session *s = j->s;
    qn_result *out = j->out;
    while (out->n_new < j->most) {
        float logprob;
        if (!qn_device_fetch(s->en, e)) return false;
        const i32 id = draw(j, &logprob);
        const int stop = hand_out(j, &(made){ id, s->n_tokens, logprob, 0 }, e);
        if (stop < 0) return false;
        out->stop = stop;
        if (stop == QN_STOP_END) return true;
        if (stop != QN_STOP_NONE || out->n_new == j->most) break;
        if (!qn_session_push(s, id, e)) return false;
        while (!s->logits)
            if (!qn_engine_step(s->en, NULL, e)) return false;
    }
    name_stop(j);
    return true;
}

bool qn_generate(qn_session *s, const qn_request *r, qn_result *out, qn_err *e)
{
    job j = { .s = s, .r = r, .out = out, .begin = qn_now_ns() };
    *out = (qn_result){ 0 };
    bool ok = check(&j, e) && open_job(&j, e);
    j.few = ok && s->en->cuda && !is_plain_greedy(&r->sampling) && qn_sampler_few(&r->sampling, QN_CUDA_BEST);
    if (j.few) qn_cuda_list_best(s->en->cuda, true);
    ok = ok && run_prompt(&j, e);
    if (ok) {
        const u64 begin = qn_now_ns();
        ok = run_tokens(&j, e) && finish(&j, e);
        out->decode_ns = qn_now_ns() - begin;
    }
    if (j.few) qn_cuda_list_best(s->en->cuda, false);
    if (!ok && e->code == QN_ECANCELLED) out->stop = QN_STOP_CANCELLED;
    atomic_store(&s->en->cancel, 0); /* one that came behind the last pass was meant for this answer, not for the next */
    if (j.request) qn_record_done(s->en, j.request, j.begin, out);
    if (!ok && e->code != QN_ECANCELLED) {
        qn_free(out->ids);
        out->ids = NULL;
        out->n_new = 0;
    }
    close_job(&j);
    return ok;
}
