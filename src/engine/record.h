/* record.h - what an engine says to a trace: header, plan, loading, memory, passes, requests. An engine that is not recorded has
 * no `rec`; calls do nothing then, but for sample and token, whose callers do not even look at the clock. */
#ifndef QN_RECORD_H
#define QN_RECORD_H

#include "engine/engine.h"
#include "trace/trace.h"

struct qn_recorder {
    qn_tracer *tracer;
    u64 *ns;                  /* [QN_CUDA_DECODE_MOST, steps] in a device's newest pass or tokens; NULL: not wanted */
    u64 made_ns[QN_CUDA_DECODE_MOST]; /* when the first tokens of the newest qn_session_decode were there */
    u64 mark_ns;              /* the end of the load phase before */
    u32 n_pass;
    i64 n_request;
    u64 kv_most;              /* bytes of pages in use, the most that were seen */
    bool steps, tokens;       /* what the level asks for */
};

bool qn_record_open(qn_engine *en, qn_trace *t, qn_err *e);
void qn_record_close(qn_engine *en); /* the last word on memory; then the ring goes */

/* Loading, phase by phase: each ends where the next begins. */
void qn_record_load(qn_engine *en, const char *phase, u64 bytes);
/* Everything is open: header, plan, memory. */
void qn_record_opened(qn_engine *en);

typedef struct qn_pass_mark { int rows, reading, seqs, logits; u64 begin, end; } qn_pass_mark; /* reading: rows of prompts */
/* What exec needs for the rows that were gathered. NULL: steps are not recorded. */
const qn_exec_trace *qn_record_begin_pass(qn_engine *en, const qn_pass_mark *m, qn_exec_trace *room);
/* On a device, which times its steps by itself: where the times go; NULL: they are not wanted. */
u64 *qn_record_device(const qn_engine *en);
void qn_record_device_steps(qn_engine *en, const qn_exec_trace *t, const qn_pass_mark *m, const u64 *ns);
/* Token i of a qn_session_decode is there. */
void qn_record_made(qn_engine *en, int i, u64 ns);
/* So are the n from the i-th on, the first of them behind position pos, which a device made at once: a pass each. */
void qn_record_decoded(qn_engine *en, int pos, int i, int n, u64 begin_ns);
void qn_record_pass(qn_engine *en, const qn_pass_mark *m);

/* One request; id is what begin returned. */
i64 qn_record_request(qn_engine *en, u64 begin_ns, const qn_request *r, size_t n_cached);
void qn_record_sample(qn_engine *en, i64 request, u64 begin_ns, u64 end_ns);
typedef struct qn_token_mark { i64 request; int index, pos; i32 id; u64 at_ns, since_ns, out_ns; } qn_token_mark;
void qn_record_token(qn_engine *en, const qn_token_mark *m);
void qn_record_done(qn_engine *en, i64 request, u64 begin_ns, const qn_result *r);

#endif
