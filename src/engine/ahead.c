/* ahead.c - several tokens at once, each the likeliest behind the one before. A device makes them without asking back; elsewhere
 * it is a loop of passes. Greedy generation and the benchmark go through here. */
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

/* n tokens by the device into ids[at]..; the first n - 1 of them become part of the timeline. */
static bool some(qn_session *s, int n, int at, i32 *ids, qn_err *e)
{
    qn_engine *en = s->en;
    qn_timeline_prepare(s, n);
    en->b.tokens[0] = s->tokens[s->n_done];
    en->b.pos[0] = s->n_done;
    en->firsts[0] = s->slot * en->n_table;
    const u64 begin = en->rec ? qn_now_ns() : 0;
    if (!qn_cuda_decode(en->cuda, n, ids + at, qn_record_device(en), e)) return false;
    qn_record_decoded(en, s->n_done, at, n, begin);
    for (int i = 0; i < n - 1; i++) s->tokens[s->n_tokens++] = ids[at + i];
    qn_timeline_advance(s, n);
    for (int i = 0; i < en->n_seq; i++)
        if (en->sessions[i]) en->sessions[i]->logits = NULL; /* written over */
    s->logits = en->b.logits;
    return true;
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
        const bool ahead = en->cuda && qn_cuda_can_decode(en->cuda) && alone(s);
        const int now = ahead ? qn_mini(n - at, QN_CUDA_DECODE_MOST) : 1;
        if (now == 1 ? !one(s, &ids[at], e) : !some(s, now, at, ids, e)) return false;
        if (now == 1 && en->rec) qn_record_made(en, at, qn_now_ns());
        at += now;
    }
    return true;
}
