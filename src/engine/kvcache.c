/* kvcache.c - pages, their users, and the table by which content is found. */
#include "engine/kvcache.h"

#include <string.h>

#include "base/table.h"

u64 qn_cache_key(u64 parent, const i32 tokens[QN_PAGE])
{
    const u64 key = qn_hash(tokens, QN_PAGE * sizeof *tokens, parent);
    return key ? key : 1;
}

/* ---- the list of unused pages, oldest first */

static void unlink_page(qn_cache *kv, int p)
{
    const qn_page *g = &kv->pages[p];
    if (g->before >= 0) kv->pages[g->before].next = g->next;
    else kv->oldest = g->next;
    if (g->next >= 0) kv->pages[g->next].before = g->before;
    else kv->newest = g->before;
}

static void append_page(qn_cache *kv, int p)
{
    kv->pages[p].before = kv->newest;
    kv->pages[p].next = -1;
    if (kv->newest >= 0) kv->pages[kv->newest].next = p;
    else kv->oldest = p;
    kv->newest = p;
}

static void prepend_page(qn_cache *kv, int p)
{
    kv->pages[p].next = kv->oldest;
    kv->pages[p].before = -1;
    if (kv->oldest >= 0) kv->pages[kv->oldest].before = p;
    else kv->newest = p;
    kv->oldest = p;
}

/* ---- the table of published pages */

static int *bucket(const qn_cache *kv, u64 key) { return &kv->buckets[key & (u64)(kv->n_buckets - 1)]; }

static void unpublish(qn_cache *kv, int p)
{
    if (kv->pages[p].key == 0) return;
    int *at = bucket(kv, kv->pages[p].key);
    while (*at != p) at = &kv->pages[*at].chain;
    *at = kv->pages[p].chain;
    kv->pages[p].key = 0;
}

int qn_cache_find(const qn_cache *kv, u64 parent, const i32 tokens[QN_PAGE])
{
    const u64 key = qn_cache_key(parent, tokens);
    for (int p = *bucket(kv, key); p >= 0; p = kv->pages[p].chain) {
        const qn_page *g = &kv->pages[p];
        if (g->key == key && g->parent == parent && !memcmp(g->tokens, tokens, sizeof g->tokens)) return p;
    }
    return -1;
}

int qn_cache_publish(qn_cache *kv, int page, u64 parent, const i32 tokens[QN_PAGE])
{
    qn_page *g = &kv->pages[page];
    if (g->key != 0) return page;
    const int twin = qn_cache_find(kv, parent, tokens);
    if (twin >= 0) {
        qn_cache_hold(kv, twin);
        qn_cache_drop(kv, page);
        return twin;
    }
    g->key = qn_cache_key(parent, tokens);
    g->parent = parent;
    memcpy(g->tokens, tokens, sizeof g->tokens);
    int *at = bucket(kv, g->key);
    g->chain = *at;
    *at = page;
    return page;
}

/* ---- users */

int qn_cache_take(qn_cache *kv)
{
    const int p = kv->oldest;
    assert(p >= 0);
    unlink_page(kv, p);
    unpublish(kv, p);
    kv->pages[p].refs = 1;
    kv->n_used++;
    return p;
}

void qn_cache_hold(qn_cache *kv, int page)
{
    if (kv->pages[page].refs++ > 0) return;
    unlink_page(kv, page);
    kv->n_used++;
}

void qn_cache_drop(qn_cache *kv, int page)
{
    assert(kv->pages[page].refs > 0);
    if (--kv->pages[page].refs > 0) return;
    kv->n_used--;
    if (kv->pages[page].key) append_page(kv, page);
    else prepend_page(kv, page); /* nothing in it that anybody could find: the first to be taken */
}

int qn_cache_own(qn_cache *kv, int page)
{
    if (kv->pages[page].refs == 1) {
        unpublish(kv, page);
        return page;
    }
    const int mine = qn_cache_take(kv);
    u8 *to = kv->memory + (size_t)mine * kv->page_bytes;
    const u8 *from = kv->memory + (size_t)page * kv->page_bytes;
    if (kv->remote.copy) kv->remote.copy(kv->remote.user, to, from, kv->page_bytes);
    else memcpy(to, from, kv->page_bytes);
    qn_cache_drop(kv, page);
    return mine;
}

/* ---- life */

bool qn_cache_open(qn_cache *kv, int n_layers, int n_pages, size_t row_bytes, const qn_remote *remote, qn_err *e)
{
    *kv = (qn_cache){ .n_layers = n_layers, .n_pages = n_pages, .oldest = -1, .newest = -1, .n_buckets = 16 };
    if (remote) kv->remote = *remote;
    if (n_layers == 0) return true;
    while (kv->n_buckets < n_pages) kv->n_buckets *= 2;
    kv->layer_bytes = 2 * QN_PAGE * row_bytes;
    kv->page_bytes = (size_t)n_layers * kv->layer_bytes;
    if (!qn_mul(kv->page_bytes, (size_t)n_pages, &kv->bytes))
        return qn_fail(e, QN_ENOMEM, "a KV cache of %d pages of %zu bytes is too large", n_pages, kv->page_bytes);
    kv->pages = qn_new_array((size_t)n_pages, sizeof *kv->pages, e);
    kv->buckets = kv->pages ? qn_new_array((size_t)kv->n_buckets, sizeof *kv->buckets, e) : NULL;
    if (!kv->buckets) return false;
    if (!remote && !(kv->memory = qn_pages_new(kv->bytes, e))) return false;
    memset(kv->buckets, 0xFF, (size_t)kv->n_buckets * sizeof *kv->buckets);
    for (int p = 0; p < n_pages; p++) append_page(kv, p);
    return true;
}

void qn_cache_close(qn_cache *kv)
{
    if (kv->memory && !kv->remote.copy) qn_pages_free(kv->memory, kv->bytes);
    qn_free(kv->buckets);
    qn_free(kv->pages);
    *kv = (qn_cache){ 0 };
}
