/* reader.h - a trace file as a stream of events. Takes JSONL, plain or zstd. Bounded memory: one record at a time, whatever the
 * file's size. Forgiving where a run may have been cut, exact about where a file is damaged: every complaint has its byte. */
#ifndef QN_READER_H
#define QN_READER_H

#include "trace/event.h"

typedef struct qn_reader qn_reader;

typedef struct qn_reader_state {
    u64 bytes, size;        /* read so far (of the file as stored); size 0: not known (a pipe) */
    u64 records;            /* good ones */
    u64 unknown;            /* of a kind that events.def does not have: counted, never used; the first kinds: */
    char unknown_kinds[96];
    u64 bad;                /* lines that are no record, or whose numbers make no sense; the first one: */
    u64 bad_at;             /* its byte in the text */
    char bad_why[120];
    bool cut;               /* the last line had no end and was no record; cut_at is its byte */
    u64 cut_at;
    char damage[128];       /* packed data that broke off or is damaged: where; "": none */
} qn_reader_state;

/* follow: at the end of the file wait for more until an `end` record came. Refuses what is no trace of ours with one sentence. */
qn_reader *qn_reader_open(const char *path, bool follow, qn_err *e);
/* The same over a text that is open already, which the reader takes over, even when it fails; path is for messages. */
struct qn_stream;
qn_reader *qn_reader_open_stream(const char *path, struct qn_stream *text, bool follow, qn_err *e);
/* The next good record; texts and lists in it live until the next call. 1: there is one; 0: the end; -1: *e says what broke;
 * 2: nothing for 100 ms, but more may come (following, or a pipe): call again or stop. */
int qn_reader_next(qn_reader *r, qn_event *out, qn_err *e);
void qn_reader_get_state(const qn_reader *r, qn_reader_state *out);
void qn_reader_close(qn_reader *r);

#endif
