/* stream.h - a log's text in order, whatever it is stored in: a file or a pipe, plain or zstd, finished or still being written.
 * Memory is one window of the text. Offsets are of the text (after unpacking), because that is what an editor shows. */
#ifndef QN_STREAM_H
#define QN_STREAM_H

#include "base/str.h"

#define QN_LINE_MOST ((size_t)1 << 20) /* bytes of one line (docs/TRACE.md); a longer one is handed out cut */

typedef struct qn_stream qn_stream;

/* "-" is standard input. follow: at the end wait for more. Folders, devices and packed files other than zstd are refused with
 * one sentence. */
qn_stream *qn_stream_open(const char *path, bool follow, qn_err *e);
/* The same over bytes that the caller keeps; path is for messages. */
qn_stream *qn_stream_open_bytes(const char *path, const void *p, size_t n, qn_err *e);
void qn_stream_close(qn_stream *s);

typedef enum qn_got { QN_GOT_ERROR = -1, QN_GOT_END, QN_GOT_ONE, QN_GOT_NOTHING_YET } qn_got; /* the last: following, or a pipe */

typedef struct qn_line {
    qn_str text;            /* without its end, a CR before it, and a BOM at the start of the text */
    u64 at;                 /* its first byte */
    bool whole;             /* it had an end */
    bool cut;               /* longer than QN_LINE_MOST: only its beginning is here */
} qn_line;

/* The next line, blank ones too; lives until the next call. NOTHING_YET comes after 100 ms of waiting. */
qn_got qn_stream_line(qn_stream *s, qn_line *out, qn_err *e);
/* For texts without lines: the bytes from here, at least `want` (<= QN_LINE_MOST) unless the text ends. Nothing is taken. */
qn_got qn_stream_peek(qn_stream *s, size_t want, qn_str *out, qn_err *e);
void qn_stream_take(qn_stream *s, size_t n); /* n bytes that peek showed */
u64 qn_stream_at(const qn_stream *s);        /* of the text: the next byte to take */
/* Of the file as it is stored: bytes read, and its size (0: not known). */
void qn_stream_progress(const qn_stream *s, u64 *bytes, u64 *size);
/* Packed data that broke off or is damaged ends the text; this says where, or NULL. */
const char *qn_stream_damage(const qn_stream *s);
void qn_stream_stop_following(qn_stream *s); /* the end has come: what is there is read, then END */

#endif
