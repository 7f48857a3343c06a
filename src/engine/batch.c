/* batch.c - one pass: which rows of which sessions go through the plan together. Sessions with a single queued token come
 * first (they are waiting for their next word), then prompts, the first place among them rotating. A row's result does not
 * depend on its company, so this order is about fairness alone. */
#include "base/file.h"
#include "engine/record.h"

typedef struct pass {
    int n, n_ask;
    int n_seqs, n_reading;    /* sequences; rows of prompts */
} pass;

static int queued(const qn_session *s) { return s ? s->n_tokens - s->n_done : 0; }

static void add_rows(qn_engine *en, pass *p, qn_session *s)
{
    int rows = qn_mini(queued(s), en->n_batch - p->n);
    if (s->all) rows = qn_mini(rows, en->n_logits - p->n_ask);
    const bool last = rows == queued(s);
    if (last && !s->all && p->n_ask == en->n_logits) rows--; /* its last row waits for a place among the logits */
    if (rows <= 0) return;
    qn_timeline_prepare(s, rows);
    p->n_seqs++;
    if (queued(s) > 1 || s->n_done < s->n_prompt) p->n_reading += rows;
    s->n_rows = rows;
    for (int i = 0; i < rows; i++) {
        const int r = p->n++;
        en->b.tokens[r] = s->tokens[s->n_done + i];
        en->b.pos[r] = s->n_done + i;
        en->firsts[r] = s->slot * en->n_table;
        if (!s->all && s->n_done + i + 1 < s->n_tokens) continue;
        if (s->ask < 0) s->ask = p->n_ask;
        en->b.asking[p->n_ask++] = r;
    }
}

static void gather(qn_engine *en, pass *p)
{
    for (int i = 0; i < en->n_seq; i++) {
        qn_session *s = en->sessions[i];
        if (!s) continue;
        s->n_rows = 0;
        s->ask = -1;
        if (queued(s) == 1) add_rows(en, p, s);
    }
    for (int k = 0; k < en->n_seq; k++) {
        const int slot = (en->turn + k) % en->n_seq;
        if (queued(en->sessions[slot]) > 1) add_rows(en, p, en->sessions[slot]);
    }
    en->turn = (en->turn + 1) % en->n_seq;
}

static void finish(qn_engine *en, size_t *left)
{
    for (int i = 0; i < en->n_seq; i++) {
        qn_session *s = en->sessions[i];
        if (!s) continue;
        if (s->n_rows) {
            qn_timeline_advance(s, s->n_rows);
            const int last = s->ask < 0 ? -1 : s->all ? s->ask + s->n_rows - 1 : s->ask;
            s->logits = queued(s) || last < 0 ? NULL : en->b.logits + (size_t)last * (size_t)en->m->n_vocab;
        } else {
            s->logits = NULL; /* the pass wrote over them */
        }
        if (left) *left += (size_t)queued(s);
    }
}

bool qn_engine_step(qn_engine *en, size_t *left, qn_err *e)
{
    pass p = { 0 };
    qn_exec_trace room;
    bool done;                /* not cancelled */
    const u64 begin = en->rec ? qn_now_ns() : 0;
    if (left) *left = 0;
    gather(en, &p);
    if (p.n == 0) return true;
    qn_pass_mark mark = { .rows = p.n, .reading = p.n_reading, .seqs = p.n_seqs, .logits = p.n_ask, .begin = begin };
    const qn_exec_trace *trace = qn_record_begin_pass(en, &mark, &room);
    if (en->cuda) { /* a pass there takes milliseconds: it is stopped between two */
        done = !atomic_load(&en->cancel);
        u64 *ns = trace ? qn_record_device(en) : NULL;
        if (done && !qn_cuda_run(en->cuda, p.n, p.n_ask, ns, e)) return false;
        if (done) qn_record_device_steps(en, trace, &mark, ns);
    } else {
        done = qn_plan_run(&en->plan, en->pool, p.n, p.n_ask, trace, &en->cancel);
        if (!qn_maps_whole(en->m->src->maps, en->m->src->n_maps, en->m->src->path, e)) return false;
    }
    if (!done) {
        atomic_store(&en->cancel, 0); /* heard: the next pass may run */
        return qn_fail(e, QN_ECANCELLED, "stopped");
    }
    finish(en, left);
    mark.end = en->rec ? qn_now_ns() : 0;
    qn_record_pass(en, &mark);
    return true;
}

static bool eval_pass(qn_session *s, qn_logits_fn each, void *user, qn_err *e)
{
    const int pos = s->n_done;
    if (!qn_engine_step(s->en, NULL, e) || !qn_device_fetch(s->en, e)) return false;
    for (int i = 0; each && s->ask >= 0 && i < s->n_rows; i++)
        if (!each(user, pos + i, s->en->b.logits + (size_t)(s->ask + i) * (size_t)s->en->m->n_vocab))
            return qn_fail(e, QN_ECANCELLED, "stopped");
    return true;
}

bool qn_session_eval(qn_session *s, const int32_t *ids, size_t n, qn_logits_fn each, void *user, qn_err *e)
{
    const int before = s->n_tokens;
    for (size_t i = 0; i < n; i++) {
        if (qn_session_push(s, ids[i], e)) continue;
        s->n_tokens = before;
        return false;
    }
    s->all = each != NULL;
    bool ok = true;
    while (ok && queued(s)) ok = eval_pass(s, each, user, e);
    s->all = false;
    return ok;
}
