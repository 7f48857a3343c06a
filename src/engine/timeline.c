/* timeline.c - a session's tokens and the pages behind them: truncating, taking over published pages, growing, giving back.
 * Invariants between passes: pages of the global group cover tokens 0..n_done; pages of the sliding group cover at least the
 * window before n_done; keys[i] belongs to every page i that is full and done. */
#include "engine/engine.h"

static i32 *table(const qn_session *s, int g) { return s->en->tables[g] + (size_t)s->slot * (size_t)s->en->n_table; }
static u64 parent(const qn_session *s, int i) { return i ? s->keys[i - 1] : 0; }
static const i32 *tokens_of(const qn_session *s, int i) { return s->tokens + (size_t)i * QN_PAGE; }
static bool used(const qn_session *s, int g) { return s->en->kv[g].n_layers > 0; }

static int find(const qn_session *s, int g, int i) { return qn_cache_find(&s->en->kv[g], parent(s, i), tokens_of(s, i)); }

static void let_go(qn_session *s, int g, int i)
{
    i32 *t = table(s, g);
    if (t[i] < 0) return;
    qn_cache_drop(&s->en->kv[g], t[i]);
    t[i] = -1;
}

/* The first page of group g that the next row behind n tokens can see. */
static int first_seen(const qn_session *s, int g, int n)
{
    const int window = s->en->m->window;
    return g == GROUP_global || n < window ? 0 : (n - window + 1) / QN_PAGE;
}

/* Is every page that the row behind n tokens can see in its table? Fetches published ones that went missing. */
static bool complete(qn_session *s, int g, int n)
{
    i32 *t = table(s, g);
    for (int i = first_seen(s, g, n); i * QN_PAGE < n; i++) {
        if (t[i] >= 0) continue;
        const int p = i < s->n_keys ? find(s, g, i) : -1;
        if (p < 0) return false;
        qn_cache_hold(&s->en->kv[g], p);
        t[i] = p;
    }
    return true;
}

void qn_timeline_truncate(qn_session *s, int n)
{
    if (n >= s->n_tokens) return;
    s->n_tokens = n;
    s->logits = NULL;
    int keep = qn_mini(n, s->n_done);
    for (int g = 0; g < N_GROUPS; g++)
        if (used(s, g) && !complete(s, g, keep)) keep = 0; /* a window's pages are gone: everything is computed again */
    const int pages = (keep + QN_PAGE - 1) / QN_PAGE;
    for (int g = 0; g < N_GROUPS; g++) {
        if (!used(s, g)) continue;
        i32 *t = table(s, g);
        for (int i = s->en->n_table - 1; i >= pages; i--) let_go(s, g, i); /* the end first: it is evicted first */
        if (keep % QN_PAGE) t[pages - 1] = qn_cache_own(&s->en->kv[g], t[pages - 1]);
    }
    s->n_done = keep;
    s->n_keys = qn_mini(s->n_keys, keep / QN_PAGE);
}

static bool published(const qn_session *s, int g, int from, int to)
{
    for (int i = from; i < to; i++)
        if (find(s, g, i) < 0) return false;
    return true;
}

static void take_over(qn_session *s, int g, int from, int to)
{
    i32 *t = table(s, g);
    for (int i = 0; i < from; i++) let_go(s, g, i);
    for (int i = from; i < to; i++) {
        const int p = find(s, g, i);
        if (p < 0 || t[i] == p) continue; /* p < 0: ours holds the same, its published twin was evicted */
        qn_cache_hold(&s->en->kv[g], p);
        let_go(s, g, i);
        t[i] = p;
    }
}

void qn_timeline_adopt(qn_session *s)
{
    /* the last token is always computed, so that there are logits */
    const int most = (s->n_tokens - 1) / QN_PAGE;
    int n = s->n_done / QN_PAGE;
    for (; n < most && (!used(s, GROUP_global) || find(s, GROUP_global, n) >= 0); n++)
        s->keys[n] = qn_cache_key(parent(s, n), tokens_of(s, n));
    if (used(s, GROUP_sliding))
        while (n * QN_PAGE > s->n_done && !published(s, GROUP_sliding, first_seen(s, GROUP_sliding, n * QN_PAGE), n)) n--;
    if (n * QN_PAGE <= s->n_done) return;
    for (int g = 0; g < N_GROUPS; g++)
        if (used(s, g)) take_over(s, g, first_seen(s, g, n * QN_PAGE), n);
    s->n_done = n * QN_PAGE;
    s->n_keys = n;
}

void qn_timeline_prepare(qn_session *s, int rows)
{
    for (int g = 0; g < N_GROUPS; g++) {
        if (!used(s, g)) continue;
        i32 *t = table(s, g);
        for (int i = s->n_done / QN_PAGE; i * QN_PAGE < s->n_done + rows; i++)
            if (t[i] < 0) t[i] = qn_cache_take(&s->en->kv[g]);
    }
}

void qn_timeline_advance(qn_session *s, int rows)
{
    s->n_done += rows;
    for (; (s->n_keys + 1) * QN_PAGE <= s->n_done; s->n_keys++) {
        const int i = s->n_keys;
        s->keys[i] = qn_cache_key(parent(s, i), tokens_of(s, i));
        for (int g = 0; g < N_GROUPS; g++) {
            i32 *page = &table(s, g)[i];
            if (used(s, g) && *page >= 0) *page = qn_cache_publish(&s->en->kv[g], *page, parent(s, i), tokens_of(s, i));
        }
    }
    if (!used(s, GROUP_sliding)) return;
    const i32 *t = table(s, GROUP_sliding);
    for (int i = first_seen(s, GROUP_sliding, s->n_done) - 1; i >= 0 && t[i] >= 0; i--) let_go(s, GROUP_sliding, i);
}
