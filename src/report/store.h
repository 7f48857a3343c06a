/* store.h - a shelf of runs in one SQLite file, so that today's run can be held against last week's: who, where and how
 * fast, and for each series its figures and samples, packed. A run that comes back is a qn_run again; tokens, spans and
 * choices stay in the trace.
 *
 * A run is named by
 *   @last         the newest              @-2    the second before it       @17   run number 17
 *   @1w @3d @12h  the newest that is at least that old                      @name the newest with that label
 * Names by age look only at runs like a given one, where there is one. */
#ifndef QN_STORE_H
#define QN_STORE_H

#include "report/run.h"

typedef struct qn_store qn_store;

typedef struct qn_store_entry {
    i64 id, added;              /* seconds since 1970 */
    char *label, *started, *model, *type, *device, *program, *path, *status; /* "" where not known */
    i64 threads;
    u64 prompt_tokens, tokens, wall_ns;
    double prefill_tok_s, decode_tok_s;
} qn_store_entry;
typedef struct qn_store_list { qn_store_entry *at; size_t n; } qn_store_list;

/* Opens or makes the file. One that is damaged or not ours is set aside, and note says so ("" otherwise). */
qn_store *qn_store_open(const char *path, char note[240], qn_err *e);
void qn_store_close(qn_store *s);

/* Adds a run, whole or not at all; *id is its number. A run that is there already (same start, host and wall time)
 * keeps its number; label: NULL or "" for none. */
bool qn_store_add(qn_store *s, const qn_run *r, const char *label, i64 *id, qn_err *e);
/* Newest first, at most `most` (0: all). */
bool qn_store_list_open(qn_store *s, size_t most, qn_store_list *l, qn_err *e);
void qn_store_list_close(qn_store_list *l);
/* The number behind a name as above; like: NULL, or a run that relative names must be like. */
bool qn_store_find(qn_store *s, const char *name, const qn_run *like, i64 *id, qn_err *e);
/* The newest run before `id` that is like it; false with QN_EFORMAT if there is none. */
bool qn_store_before(qn_store *s, i64 id, i64 *before, qn_err *e);
qn_run *qn_store_get(qn_store *s, i64 id, qn_err *e);
bool qn_store_remove(qn_store *s, i64 id, qn_err *e);

#endif
