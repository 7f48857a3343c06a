/* stream.c - one window over the text, filled by read() or by the unpacker. Lines and peeks are cut from the window; when less
 * than is asked for lies in it, the rest moves to its front and more is read behind it. Plain read() and not a mapping: a file
 * that another process cuts or writes while it is read cannot hurt. */
#include "trace/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/file.h"
#include "base/mem.h"

#define WINDOW  (QN_LINE_MOST + ((size_t)1 << 20)) /* a longest line, and as much again to be read at once */
#define PACKED  ((size_t)256 << 10)
#define WAIT_MS 100
#define MAGIC   4 /* bytes that tell packed from plain */

struct qn_stream {
    char *path;
    int fd;                  /* -1: bytes in memory */
    bool follow, waits;      /* waits: a pipe, whose end is not the end while a writer has it open */
    bool looked, ended, first, skipping;
    u64 size, got;           /* of the file as stored */
    u64 at;                  /* of the text, at window + begin */
    char *window;
    size_t begin, end;
    const u8 *bytes;         /* what is in memory instead of a file */
    size_t n_bytes;
    ZSTD_DStream *unpack;
    u8 *packed;
    ZSTD_inBuffer in;
    size_t more;             /* what the unpacker wants next; 0: a frame is complete */
    char damage[128];
};

/* ---- opening */

static bool refuse_packed(const qn_stream *s, const u8 *p, size_t n, qn_err *e)
{
    static const struct { const char *magic; size_t n; const char *what, *how; } known[] = {
        { "\037\213", 2, "gzip", "gunzip" }, { "BZh", 3, "bzip2", "bunzip2" }, { "\3757zXZ", 5, "xz", "unxz" },
        { "PK\003\004", 4, "a zip archive", "unzip" },
    };
    for (size_t i = 0; i < QN_COUNT(known); i++)
        if (n >= known[i].n && !memcmp(p, known[i].magic, known[i].n))
            return qn_fail(e, QN_EFORMAT, "%s: packed with %s; plain text or zstd can be read, so unpack it first (%s)",
                           qn_path_tail(s->path), known[i].what, known[i].how);
    return true;
}

static bool open_file(qn_stream *s, qn_err *e)
{
    struct stat st;
    const bool standard = !strcmp(s->path, "-");
    s->fd = standard ? dup(STDIN_FILENO) : open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (s->fd < 0) return qn_fail_errno(e, "cannot open %s", qn_path_tail(s->path));
    if (fstat(s->fd, &st)) return qn_fail_errno(e, "cannot look at %s", qn_path_tail(s->path));
    if (S_ISDIR(st.st_mode)) return qn_fail(e, QN_EFORMAT, "%s: is a folder, not a log", qn_path_tail(s->path));
    if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode) && !standard)
        return qn_fail(e, QN_EFORMAT, "%s: neither a file nor a pipe", qn_path_tail(s->path));
    s->waits = !S_ISREG(st.st_mode);
    s->size = S_ISREG(st.st_mode) ? (u64)st.st_size : 0;
    return true;
}

static qn_got fill(qn_stream *s, qn_err *e);

static bool begin_unpacking(qn_stream *s, qn_err *e)
{
    s->unpack = ZSTD_createDStream();
    if (!s->unpack) return qn_fail(e, QN_ENOMEM, "%s: no memory to unpack it", qn_path_tail(s->path));
    s->packed = qn_alloc(WINDOW, e);
    if (!s->packed) return false;
    memcpy(s->packed, s->window, s->end); /* the window held packed bytes; from now on it holds text */
    s->in = (ZSTD_inBuffer){ .src = s->packed, .size = s->end };
    s->end = 0;
    return true;
}

/* Is it packed? Asked once there are enough bytes to tell; ONE: asked and answered. */
static qn_got look_inside(qn_stream *s, qn_err *e)
{
    while (s->end < MAGIC && !s->ended) {
        const qn_got got = fill(s, e);
        if (got == QN_GOT_ERROR || got == QN_GOT_NOTHING_YET) return got;
    }
    s->looked = true;
    if (!refuse_packed(s, (const u8 *)s->window, s->end, e)) return QN_GOT_ERROR;
    if (s->end < MAGIC || memcmp(s->window, "\050\265\057\375", MAGIC)) return QN_GOT_ONE;
    return begin_unpacking(s, e) ? QN_GOT_ONE : QN_GOT_ERROR;
}

static qn_stream *make(const char *path, qn_err *e)
{
    qn_stream *s = qn_new(sizeof *s, e);
    if (!s) return NULL;
    s->fd = -1;
    s->first = true;
    s->path = qn_strdup(path, e);
    s->window = s->path ? qn_alloc(WINDOW, e) : NULL;
    if (s->window) return s;
    qn_stream_close(s);
    return NULL;
}

qn_stream *qn_stream_open(const char *path, bool follow, qn_err *e)
{
    qn_stream *s = make(path, e);
    if (!s) return NULL;
    s->follow = follow;
    if (open_file(s, e) && look_inside(s, e) != QN_GOT_ERROR) return s;
    qn_stream_close(s);
    return NULL;
}

qn_stream *qn_stream_open_bytes(const char *path, const void *p, size_t n, qn_err *e)
{
    qn_stream *s = make(path, e);
    if (!s) return NULL;
    s->bytes = p;
    s->n_bytes = n;
    s->size = n;
    if (look_inside(s, e) != QN_GOT_ERROR) return s;
    qn_stream_close(s);
    return NULL;
}

void qn_stream_close(qn_stream *s)
{
    if (!s) return;
    if (s->fd >= 0) close(s->fd);
    ZSTD_freeDStream(s->unpack);
    qn_free(s->packed);
    qn_free(s->window);
    qn_free(s->path);
    qn_free(s);
}

/* ---- filling */

static qn_got wait_for_more(const qn_stream *s)
{
    struct pollfd p = { .fd = s->waits ? s->fd : -1, .events = POLLIN }; /* a file is always readable: plain waiting */
    poll(&p, 1, WAIT_MS);
    return QN_GOT_NOTHING_YET;
}

/* Up to n bytes as they are stored. ONE: *got > 0. */
static qn_got read_stored(qn_stream *s, void *p, size_t n, size_t *got, qn_err *e)
{
    *got = 0;
    if (s->fd < 0) {
        *got = qn_minz(n, s->n_bytes - (size_t)s->got);
        if (*got) memcpy(p, s->bytes + s->got, *got);
    } else {
        ssize_t k;
        do k = read(s->fd, p, n);
        while (k < 0 && errno == EINTR);
        if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return wait_for_more(s);
        if (k < 0) {
            qn_fail_errno(e, "cannot read %s", qn_path_tail(s->path));
            return QN_GOT_ERROR;
        }
        *got = (size_t)k;
    }
    s->got += *got;
    if (s->size && s->got > s->size) s->size = s->got; /* it grew */
    if (*got) return QN_GOT_ONE;
    return s->follow && s->fd >= 0 ? wait_for_more(s) : QN_GOT_END;
}

/* Packed bytes that end within a frame: a run that was cut, unless it still goes on. */
static qn_got end_packed(qn_stream *s)
{
    s->ended = true;
    if (s->more)
        snprintf(s->damage, sizeof s->damage, "the packed data breaks off at byte %" PRIu64 " of the file", s->got);
    return QN_GOT_END;
}

static qn_got fill_unpacked(qn_stream *s, qn_err *e)
{
    ZSTD_outBuffer out = { .dst = s->window + s->end, .size = WINDOW - s->end };
    for (;;) {
        const size_t before = s->in.pos;
        const size_t more = ZSTD_decompressStream(s->unpack, &out, &s->in);
        if (ZSTD_isError(more)) {
            snprintf(s->damage, sizeof s->damage, "the packed data is damaged near byte %" PRIu64 " of the file: %s",
                     s->got - (s->in.size - s->in.pos), ZSTD_getErrorName(more));
            s->ended = true;
            s->end += out.pos;
            return out.pos ? QN_GOT_ONE : QN_GOT_END;
        }
        if (out.pos || s->in.pos > before) s->more = more; /* asked with nothing, it wants the next frame's head */
        if (out.pos) {
            s->end += out.pos;
            return QN_GOT_ONE;
        }
        if (s->in.pos < s->in.size) continue;
        size_t got;
        const qn_got status = read_stored(s, s->packed, PACKED, &got, e);
        if (status == QN_GOT_END) return end_packed(s);
        if (status != QN_GOT_ONE) return status;
        s->in = (ZSTD_inBuffer){ .src = s->packed, .size = got };
    }
}

/* More text behind what the window has. There must be room. */
static qn_got fill(qn_stream *s, qn_err *e)
{
    if (s->ended) return QN_GOT_END;
    if (s->begin && WINDOW - s->end < WINDOW / 2) {
        memmove(s->window, s->window + s->begin, s->end - s->begin);
        s->end -= s->begin;
        s->begin = 0;
    }
    if (s->unpack) return fill_unpacked(s, e);
    size_t got;
    const qn_got status = read_stored(s, s->window + s->end, WINDOW - s->end, &got, e);
    s->end += got;
    s->ended = status == QN_GOT_END;
    return status;
}

/* ---- handing out */

void qn_stream_take(qn_stream *s, size_t n)
{
    s->begin += n;
    s->at += n;
    s->first = false;
}

static void skip_bom(qn_stream *s)
{
    if (s->first && s->end - s->begin >= 3 && !memcmp(s->window + s->begin, "\xEF\xBB\xBF", 3)) qn_stream_take(s, 3);
}

qn_got qn_stream_peek(qn_stream *s, size_t want, qn_str *out, qn_err *e)
{
    assert(want <= QN_LINE_MOST);
    const qn_got looked = s->looked ? QN_GOT_ONE : look_inside(s, e);
    if (looked != QN_GOT_ONE) return looked;
    while (s->end - s->begin < want + (s->first ? 3 : 0)) {
        const qn_got got = fill(s, e);
        if (got == QN_GOT_END) break;
        if (got != QN_GOT_ONE) return got;
    }
    skip_bom(s);
    *out = (qn_str){ s->window + s->begin, s->end - s->begin };
    return out->n ? QN_GOT_ONE : QN_GOT_END;
}

static void hand_out(qn_stream *s, qn_line *out, size_t n, bool whole)
{
    const char *p = s->window + s->begin;
    *out = (qn_line){ { p, n }, s->at, .whole = whole };
    if (whole && n && p[n - 1] == '\r') out->text.n--;
    qn_stream_take(s, n + whole);
}

/* A line too long for the window: its beginning, and the rest is passed over by the next call. */
static void hand_out_cut(qn_stream *s, qn_line *out)
{
    *out = (qn_line){ { s->window + s->begin, QN_LINE_MOST }, s->at, .whole = true, .cut = true };
    qn_stream_take(s, QN_LINE_MOST);
    s->skipping = true;
}

static qn_got pass_over(qn_stream *s, qn_err *e)
{
    for (;;) {
        const char *p = s->window + s->begin, *nl = memchr(p, '\n', s->end - s->begin);
        qn_stream_take(s, nl ? (size_t)(nl - p) + 1 : s->end - s->begin);
        if (nl) break;
        const qn_got got = fill(s, e);
        if (got != QN_GOT_ONE) return got;
    }
    s->skipping = false;
    return QN_GOT_ONE;
}

qn_got qn_stream_line(qn_stream *s, qn_line *out, qn_err *e)
{
    const qn_got ready = !s->looked ? look_inside(s, e) : s->skipping ? pass_over(s, e) : QN_GOT_ONE;
    if (ready != QN_GOT_ONE) return ready;
    for (size_t seen = 0;;) {
        skip_bom(s);
        const char *p = s->window + s->begin;
        const size_t n = s->end - s->begin;
        const char *nl = n > seen ? memchr(p + seen, '\n', n - seen) : NULL;
        if (nl ? (size_t)(nl - p) > QN_LINE_MOST : n > QN_LINE_MOST) {
            hand_out_cut(s, out);
            return QN_GOT_ONE;
        }
        if (nl) {
            hand_out(s, out, (size_t)(nl - p), true);
            return QN_GOT_ONE;
        }
        seen = s->first ? 0 : n; /* a BOM may still be taken off */
        const qn_got got = fill(s, e);
        if (got == QN_GOT_END && n) {
            hand_out(s, out, n, false);
            return QN_GOT_ONE;
        }
        if (got != QN_GOT_ONE) return got;
    }
}

u64 qn_stream_at(const qn_stream *s) { return s->at; }

void qn_stream_progress(const qn_stream *s, u64 *bytes, u64 *size)
{
    *bytes = s->unpack ? s->got - (s->in.size - s->in.pos) : s->got - (s->end - s->begin);
    *size = s->size;
}

const char *qn_stream_damage(const qn_stream *s) { return s->damage[0] ? s->damage : NULL; }
void qn_stream_stop_following(qn_stream *s) { s->follow = false; }
