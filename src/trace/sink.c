/* sink.c - writes pieces of whole lines. A piece that does not fit (full disk, size limit) is cut back to the last line that did;
 * from then on lines are only counted. Compressed pieces are frames of their own: the file is a row of whole frames at any time,
 * for 5 to 10 % more bytes than one long frame. */
#define ZSTD_STATIC_LINKING_ONLY /* for an allocator of our own */
#include "trace/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#define LEVEL 1 /* 400 MB/s a core, a tenth of the bytes; level 3 saves another tenth of that and takes twice as long */

static const char first_bytes[] = "{\"ev\":\"trace\""; /* of every trace */

static void *z_alloc(void *ctx, size_t n) { (void)ctx; return qn_alloc(n, NULL); }
static void z_free(void *ctx, void *p) { (void)ctx; qn_free(p); }

/* Whoever names a model or a letter by mistake keeps it. */
static bool may_overwrite(const char *path, qn_err *e)
{
    static const unsigned char zstd[4] = { 0x28, 0xB5, 0x2F, 0xFD };
    char head[sizeof first_bytes - 1];
    struct stat st;
    if (stat(path, &st) || !S_ISREG(st.st_mode) || st.st_size == 0) return true; /* open says what is wrong with others */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t n = fd < 0 ? 0 : read(fd, head, sizeof head);
    if (fd >= 0) close(fd);
    if (n == (ssize_t)sizeof head && (!memcmp(head, first_bytes, sizeof head) || !memcmp(head, zstd, sizeof zstd))) return true;
    return qn_fail(e, QN_EUSAGE, "%s holds something that is no trace: quern does not write over it", qn_path_tail(path));
}

static bool open_file(qn_sink *s, const char *path, qn_err *e)
{
    struct stat st;
    if (!may_overwrite(path, e)) return false;
    s->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    if (s->fd < 0 && errno == ENXIO) return qn_fail(e, QN_EIO, "%s: nobody reads from it", qn_path_tail(path));
    if (s->fd < 0) return qn_fail_errno(e, "cannot write the trace %s", qn_path_tail(path));
    s->regular = fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode);
    if (s->regular && ftruncate(s->fd, 0)) return qn_fail_errno(e, "cannot empty %s", qn_path_tail(path));
    return true;
}

bool qn_sink_open(qn_sink *s, const char *path, const atomic_ullong *give_up_ns, qn_err *e)
{
    *s = (qn_sink){ .fd = -1, .give_up_ns = give_up_ns };
    if (!qn_buf_room(&s->text, QN_SINK_PIECE + QN_LINE_MOST)) return qn_fail(e, QN_ENOMEM, "no memory for a trace");
    if (qn_ends_with(path, ".zst")) {
        s->z = ZSTD_createCCtx_advanced((ZSTD_customMem){ z_alloc, z_free, NULL });
        s->packed_cap = ZSTD_compressBound(QN_SINK_PIECE + QN_LINE_MOST);
        s->packed = s->z ? qn_alloc(s->packed_cap, e) : NULL;
        if (!s->packed) return qn_fail(e, QN_ENOMEM, "no memory to compress a trace");
        ZSTD_CCtx_setParameter(s->z, ZSTD_c_compressionLevel, LEVEL);
        ZSTD_CCtx_setParameter(s->z, ZSTD_c_checksumFlag, 1);
    }
    return open_file(s, path, e);
}

void qn_sink_close(qn_sink *s)
{
    if (s->fd >= 0 && close(s->fd) && !s->error) s->error = errno;
    s->fd = -1;
    ZSTD_freeCCtx(s->z);
    qn_free(s->packed);
    qn_buf_close(&s->text);
    s->z = NULL;
    s->packed = NULL;
}

/* A pipe that is full: waits for its reader. False: no longer. */
static bool wait_for_reader(const qn_sink *s)
{
    struct pollfd p = { .fd = s->fd, .events = POLLOUT };
    const u64 until = atomic_load(s->give_up_ns);
    if (until && qn_now_ns() > until) return false;
    poll(&p, 1, 50);
    return true;
}

/* Bytes that went out; fewer than n: s->error. */
static size_t write_some(qn_sink *s, const char *p, size_t n)
{
    size_t done = 0;
    while (done < n) {
        const ssize_t got = write(s->fd, p + done, n - done);
        if (got > 0) {
            done += (size_t)got;
        } else if (got < 0 && errno == EAGAIN) {
            if (wait_for_reader(s)) continue;
            s->error = ETIMEDOUT;
            break;
        } else if (got == 0 || errno != EINTR) {
            s->error = got == 0 ? EIO : errno;
            break;
        }
    }
    return done;
}

static u64 count_lines(const char *p, size_t n)
{
    u64 lines = 0;
    for (const char *end = p + n; p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++) lines++;
    return lines;
}

/* What of a piece stays in the file: whole lines of text, nothing of a frame. */
static void cut_back(qn_sink *s, size_t done)
{
    const char *last = s->z || done == 0 ? NULL : memrchr(s->text.p, '\n', done);
    const size_t keep = last ? (size_t)(last - s->text.p) + 1 : 0;
    const u64 kept = count_lines(s->text.p, keep);
    s->bytes += keep;
    s->lines += kept;
    s->lost += s->waiting - kept;
    if (s->regular && ftruncate(s->fd, (off_t)s->bytes)) return; /* the disk is beyond help: s->error says so already */
}

void qn_sink_flush(qn_sink *s)
{
    if (s->text.n == 0) return;
    const char *p = s->text.p;
    size_t n = s->text.n, done = 0;
    if (s->z && !s->error) {
        n = ZSTD_compress2(s->z, s->packed, s->packed_cap, s->text.p, s->text.n);
        if (ZSTD_isError(n)) s->error = ENOMEM; /* its only way to fail here: it allocates with the first piece */
        p = s->packed;
    }
    if (!s->error) done = write_some(s, p, n);
    if (!s->error) {
        s->bytes += n;
        s->lines += s->waiting;
    } else {
        cut_back(s, done);
    }
    s->text.n = 0;
    s->waiting = 0;
}
