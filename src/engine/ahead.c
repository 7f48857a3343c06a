/* ahead.c - several tokens at once, each the likeliest behind the one before, or drawn. A device makes them without asking back;
 * elsewhere it is a loop of passes. Generation on a device and the benchmark go through here. */
#include "base/rng.h"
#include "engine/record.h"

static i32 likeliest(const float *logits, int n)
{
    i32 best = 0;
    for (i32 i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i; /* a tie goes to the lower id, as everywhere */
    return best;
}

/* One pass, then the likeliest token. */
static bool one(qn_session *s, i32 *id, qn_err *e)
{
    while (!s->logits)
        if (!qn_engine_step(s->en, NULL, e)) return false;
    if (!qn_device_fetch(s->en, e)) return false;
    *id = likeliest(s->logits, s->en->m->n_vocab);
    return true;
}

static bool alone(const qn_session *s)
{
    for (int i = 0; i < s->en->n_seq; i++) {
        const qn_session *o = s->en->sessions[i];
        if (o && o != s && o->n_tokens > o->n_done) return false; /* somebody else waits for a pass: share it */
    }
    return s->n_tokens - s->n_done == 1 && !s->all;
}

/* Tokens by the device, the at-th of a call and on: the likeliest, or drawn by these rules; n_drawn: before the at-th. */
typedef struct burst { int at, n; const qn_sampling *rules; u64 n_drawn; } burst;

static bool make(qn_session *s, const burst *r, i32 *ids, qn_err *e)
{
    const qn_engine *en = s->en;
    const qn_sampling *p = r->rules;
    double u[QN_CUDA_DECODE_MOST];
    if (!p) return qn_cuda_decode(en->cuda, r->n, ids, qn_record_device(en), e);
    const qn_cuda_rules rules = { .top_k = p->top_k, .temp = p->temp, .top_p = p->top_p, .min_p = p->min_p };
    for (int i = 0; i < r->n; i++) u[i] = qn_rng_unit(p->seed, r->n_drawn + (u64)i);
    return qn_cuda_draw(en->cuda, r->n, &rules, u, ids, qn_record_device(en), e);
}

/* They go into ids[at]..; all but the last of them become part of the timeline. */
static bool some(qn_session *s, const burst *r, i32 *ids, qn_err *e)
{
    qn_engine *en = s->en;
    qn_timeline_prepare(s, r->n);
    en->b.tokens[0] = s->tokens[s->n_done];
    en->b.pos[0] = s->n_done;
    en->firsts[0] = s->slot * en->n_table;
    const u64 begin = en->rec ? qn_now_ns() : 0;
    if (!make(s, r, ids + r->at, e)) return false;
    qn_record_decoded(en, s->n_done, r->at, r->n, begin);
    for (int i = 0; i < r->n - 1; i++) s->tokens[s->n_tokens++] = ids[r->at + i];
    qn_timeline_advance(s, r->n);
    for (int i = 0; i < en->n_seq; i++)
        if (en->sessions[i]) en->sessions[i]->logits = NULL; /* written over */
    s->logits = en->b.logits;
    return true;
}

bool qn_session_ahead(const qn_session *s) { return s->en->cuda && qn_cuda_can_decode(s->en->cuda) && alone(s); }

bool qn_session_draw(qn_session *s, int n, const qn_sampling *p, u64 n_drawn, i32 *ids, qn_err *e)
{
    assert(n <= QN_CUDA_DECODE_MOST && s->n_tokens + n - 1 <= s->en->n_ctx);
    if (atomic_exchange(&s->en->cancel, 0)) return qn_fail(e, QN_ECANCELLED, "stopped");
    return some(s, &(burst){ .n = n, .rules = p, .n_drawn = n_drawn }, ids, e);
}

bool qn_session_decode(qn_session *s, int n, int32_t *ids, qn_err *e)
{
    qn_engine *en = s->en;
    if (n < 1 || s->n_tokens == 0) return qn_fail(e, QN_EUSAGE, "nothing to decode: %d tokens behind %d", n, s->n_tokens);
    if (s->n_tokens + n - 1 > en->n_ctx)
        return qn_fail(e, QN_ECONTEXT, "%d tokens do not fit into the context of %d", s->n_tokens + n - 1, en->n_ctx);
    for (int at = 0; at < n;) {
        if (at > 0 && !qn_session_push(s, ids[at - 1], e)) return false;
        if (atomic_exchange(&en->cancel, 0)) return qn_fail(e, QN_ECANCELLED, "stopped");
        const int now = qn_session_ahead(s) ? qn_mini(n - at, QN_CUDA_DECODE_MOST) : 1;
        if (now == 1 ? !one(s, &ids[at], e) : !some(s, &(burst){ .at = at, .n = now }, ids, e)) return false;
        if (now == 1 && en->rec) qn_record_made(en, at, qn_now_ns());
        at += now;
    }
    return true;
}
