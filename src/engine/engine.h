/* engine.h - the inside of an engine and its sessions. An engine owns what a pass through the plan needs: threads, scratch,
 * pages, the plan itself. A session owns a timeline of tokens and a row of each page table. */
#ifndef QN_ENGINE_H
#define QN_ENGINE_H

#include "engine/kvcache.h"
#include "kernel/cuda/cuda.h"
#include "kernel/cuda/where.h"
#include "kernel/tuned.h"
#include "model/decoder.h"
#include "model/repack.h"

typedef struct qn_recorder qn_recorder;

enum { GROUP_global, GROUP_sliding, N_GROUPS };

struct qn_engine {
    const qn_model *m;
    qn_pool *pool;
    qn_tuned tuned;           /* which kernels the plan was told to take */
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
    qn_cuda *cuda;            /* NULL: the plan runs on the CPU */
    char device[128];         /* "cuda:0 (NVIDIA H200)" */
    char note[240];           /* on the device; "": nothing to say */
    struct qn_recorder *rec;  /* NULL: nothing is recorded */
    atomic_int cancel;
};

struct qn_session {
    qn_engine *en;
    int slot;
    i32 *tokens;              /* [n_ctx] the timeline */
    u64 *keys;                /* [n_table] key of each full page of it */
    int n_tokens, n_done;     /* queued and computed; computed */
    int n_prompt;             /* the first so many tokens were set, not pushed one by one */
    int n_keys;               /* full pages with a key */
    bool all;                 /* every row asks for logits, not only the last */
    int n_rows, ask;          /* in the pass that runs: its rows, and the first of its logits rows (-1: none) */
    const float *logits;      /* of the newest token; NULL: not computed */
};

/* device.c: what opening an engine on a device does besides */
bool qn_device_reserve(qn_engine *en, qn_err *e);                   /* memory for KV and scratch; tells the caches */
bool qn_device_load(qn_engine *en, const qn_options *o, qn_err *e); /* weights */
extern const qn_remote qn_device_pages;                             /* how pages there are copied; user is the qn_cuda */
/* Logits of the newest pass are in b.logits: on a device they stay there until somebody wants them. */
bool qn_device_fetch(qn_engine *en, qn_err *e);

/* ahead.c: whether a device would make tokens of this timeline without asking back; and n of them (at most QN_CUDA_DECODE_MOST,
 * and as many as fit) drawn by p, which qn_sampler_few allows for QN_CUDA_BEST and whose typical_p is 1. As qn_session_decode. */
bool qn_session_ahead(const qn_session *s);
bool qn_session_draw(qn_session *s, int n, const qn_sampling *p, u64 n_drawn, i32 *ids, qn_err *e);

/* timeline.c: the part of a session that is about pages */
void qn_timeline_truncate(qn_session *s, int n);   /* forget what is behind the first n tokens */
void qn_timeline_adopt(qn_session *s);             /* take published pages for what is queued */
void qn_timeline_prepare(qn_session *s, int rows); /* pages for the next rows */
void qn_timeline_advance(qn_session *s, int rows); /* rows were computed: publish, free */

#endif
