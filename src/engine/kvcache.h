/* kvcache.h - the paged KV cache. Memory is cut into pages of QN_PAGE tokens; a session's timeline is a table of pages. Full
 * pages are published under the hash of all tokens up to their end, so that any later timeline with the same beginning takes them
 * as they are. Pages are counted by their users; one that nobody uses keeps its content until it is the oldest of its kind
 * and somebody needs room.
 * Two groups: layers that see everything, and sliding ones, whose pages go back as soon as no window reaches them. */
#ifndef QN_KVCACHE_H
#define QN_KVCACHE_H

#include "base/mem.h"
#include "kernel/op.h"

typedef struct qn_page {
    int refs;                 /* timelines that hold it */
    int next, before;         /* in the list of unused pages; -1: end */
    int chain;                /* next page in the same bucket; -1: end */
    u64 key, parent;          /* hash of the tokens up to its end, and of those before it; key 0: not published */
    i32 tokens[QN_PAGE];      /* what it holds, once published */
} qn_page;

/* Pages that lie elsewhere, on a device: the cache keeps their books and never touches them. */
typedef struct qn_remote { void (*copy)(void *user, u8 *to, const u8 *from, size_t bytes); void *user; } qn_remote;

typedef struct qn_cache {
    int n_layers, n_pages;    /* layers of this group; 0 layers: the group is empty */
    int n_used;               /* pages that somebody holds */
    u8 *memory;               /* [n_pages, n_layers]: a new page touches fresh memory in one place and not in each layer's */
    qn_remote remote;         /* copy NULL: memory is here; else an address of the device, set by who has it */
    size_t bytes, layer_bytes, page_bytes; /* all; one layer's part of a page; a page */
    qn_page *pages;
    int *buckets, n_buckets;  /* power of two */
    int oldest, newest;       /* ends of the list of unused pages */
} qn_cache;

/* remote: NULL takes memory here. */
bool qn_cache_open(qn_cache *kv, int n_layers, int n_pages, size_t row_bytes, const qn_remote *remote, qn_err *e);
void qn_cache_close(qn_cache *kv);

/* An unused page, the oldest; it loses its content. Never fails: the engine has as many pages as its sessions may hold. */
int qn_cache_take(qn_cache *kv);
void qn_cache_hold(qn_cache *kv, int page);
void qn_cache_drop(qn_cache *kv, int page);

/* The page published under these tokens behind this parent; -1: none. */
int qn_cache_find(const qn_cache *kv, u64 parent, const i32 tokens[QN_PAGE]);
/* Publishes a full page that one timeline holds. Returns the page to hold from now on: where the content is known already,
 * the one that has it takes the place of `page`. */
int qn_cache_publish(qn_cache *kv, int page, u64 parent, const i32 tokens[QN_PAGE]);
/* A page that may be written to in the middle: the same if nobody else can see it, else a copy in its place. */
int qn_cache_own(qn_cache *kv, int page);

u64 qn_cache_key(u64 parent, const i32 tokens[QN_PAGE]); /* never 0 */

#endif
