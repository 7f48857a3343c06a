/* session.c - a timeline as its user sees it: opened in a free slot, set to a list of tokens, extended, rewound. */
#include <string.h>

#include "engine/record.h"

qn_session *qn_session_open(qn_engine *en, qn_err *e)
{
    int slot = 0;
    while (slot < en->n_seq && en->sessions[slot]) slot++;
    if (slot == en->n_seq) {
        qn_fail(e, QN_EFAIL, "all %d sessions of this engine are open", en->n_seq);
        return NULL;
    }
    qn_session *s = qn_new(sizeof *s, e);
    if (!s) return NULL;
    s->tokens = qn_new_array((size_t)en->n_ctx, sizeof *s->tokens, e);
    s->keys = s->tokens ? qn_new_array((size_t)en->n_table, sizeof *s->keys, e) : NULL;
    if (!s->keys) {
        qn_session_close(s);
        return NULL;
    }
    s->en = en;
    s->slot = slot;
    en->sessions[slot] = s;
    return s;
}

void qn_session_close(qn_session *s)
{
    if (!s) return;
    if (s->en) {
        qn_timeline_truncate(s, 0);
        s->en->sessions[s->slot] = NULL;
    }
    qn_free(s->keys);
    qn_free(s->tokens);
    qn_free(s);
}

int qn_session_pos(const qn_session *s) { return s->n_done; }
int qn_session_n_ctx(const qn_session *s) { return s->en->n_ctx; }

/* A device that was lost since gives none; the next pass says so. */
const float *qn_session_logits(const qn_session *s)
{
    qn_err ignored = { 0 };
    return s->logits && qn_device_fetch(s->en, &ignored) ? s->logits : NULL;
}

void qn_session_rewind(qn_session *s, int n)
{
    qn_timeline_truncate(s, qn_maxi(n, 0));
}

static bool check_ids(const qn_session *s, const i32 *ids, size_t n, qn_err *e)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= s->en->m->n_vocab)
            return qn_fail(e, QN_EUSAGE, "token %d at position %zu is not between 0 and %d", ids[i], i, s->en->m->n_vocab - 1);
    return true;
}

static bool check_room(const qn_session *s, size_t n, qn_err *e)
{
    if (n <= (size_t)s->en->n_ctx) return true;
    return qn_fail(e, QN_ECONTEXT, "%zu tokens do not fit into the context of %d", n, s->en->n_ctx);
}

bool qn_session_set(qn_session *s, const int32_t *ids, size_t n, size_t *n_cached, qn_err *e)
{
    if (!check_room(s, n, e) || !check_ids(s, ids, n, e)) return false;
    size_t same = 0;
    const size_t most = n ? qn_minz(n - 1, (size_t)s->n_tokens) : 0;
    while (same < most && s->tokens[same] == ids[same]) same++;
    qn_timeline_truncate(s, (int)same);
    memcpy(s->tokens + same, ids + same, (n - same) * sizeof *ids);
    s->n_tokens = s->n_prompt = (int)n;
    s->logits = NULL;
    qn_timeline_adopt(s);
    if (n_cached) *n_cached = (size_t)s->n_done;
    return true;
}

bool qn_session_push(qn_session *s, int32_t id, qn_err *e)
{
    if (!check_room(s, (size_t)s->n_tokens + 1, e) || !check_ids(s, &id, 1, e)) return false;
    s->tokens[s->n_tokens++] = id;
    s->logits = NULL;
    return true;
}
