/* engine.h - the inside of an engine and its sessions. An engine owns what a pass through the plan needs: threads, scratch,
 * pages, the plan itself. A session owns a timeline of tokens and a row of each page table. */
#ifndef QN_ENGINE_H
#define QN_ENGINE_H

#include "engine/kvcache.h"
#include "model/decoder.h"
#include "model/repack.h"

enum { GROUP_global, GROUP_sliding, N_GROUPS };

struct qn_engine {
    const qn_model *m;
    qn_pool *pool;
    qn_plan plan;
    qn_packed packed;         /* weights in the order that the plan's kernels like */
    qn_buffers b;
    qn_cache kv[N_GROUPS];
    i32 *tables[N_GROUPS];    /* [n_seq, n_table] page of each QN_PAGE tokens; -1: none */
    i32 *firsts;              /* [n_batch] where each row's table begins; the same for both groups */
    int n_ctx, n_seq, n_batch, n_logits, n_table;
    u8 *scratch;
    size_t scratch_bytes;
    qn_session **sessions;    /* [n_seq] by slot; NULL: free */
    int turn;                 /* slot whose prompt goes first in the next pass */
    bool profile;
    atomic_int cancel;
};

struct qn_session {
    qn_engine *en;
    int slot;
    i32 *tokens;              /* [n_ctx] the timeline */
    u64 *keys;                /* [n_table] key of each full page of it */
    int n_tokens, n_done;     /* queued and computed; computed */
    int n_keys;               /* full pages with a key */
    bool all;                 /* every row asks for logits, not only the last */
    int n_rows, ask;          /* in the pass that runs: its rows, and the first of its logits rows (-1: none) */
    const float *logits;      /* of the newest token; NULL: not computed */
};

/* timeline.c: the part of a session that is about pages */
void qn_timeline_truncate(qn_session *s, int n);   /* forget what is behind the first n tokens */
void qn_timeline_adopt(qn_session *s);             /* take published pages for what is queued */
void qn_timeline_prepare(qn_session *s, int rows); /* pages for the next rows */
void qn_timeline_advance(qn_session *s, int rows); /* rows were computed: publish, free */

#endif
