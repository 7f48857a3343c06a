/* blob.c - brings one file's bytes. They are appended to ETAG.incomplete, the name that every Hugging Face program resumes from,
 * under the lock that every one of them takes; the file gets its real name when size and hash are right, not before. The hash is
 * computed while the bytes pass; what an earlier run left is read once more for it. */
#include "hub/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"

#define TRIES 5                     /* in a row, each without a useful amount of bytes */
#define USEFUL_BYTES ((u64)1 << 20)

typedef struct partial {
    qn_blob *b;
    qn_net *net;
    char *dir, *path, *final, *lock; /* blobs/, ETAG.incomplete, ETAG, ETAG.lock */
    int fd, lock_fd;
    u64 have;                        /* bytes in the file */
    u64 base;                        /* net->done before this file */
    bool begun;                      /* of one answer: its first bytes were looked at */
    bool misplaced;                  /* of one answer: not from where it was asked for */
    bool hopeless;                   /* of one answer: another one would not help, and e says all */
    qn_sha256 sha;
} partial;

bool qn_status_fail(const qn_answer *a, const qn_net *n, const char *where, const char *file, qn_err *e)
{
    const char *hint = n->auth ? "or HF_TOKEN may not read it" : "or it is private and needs HF_TOKEN";
    if (strcmp(a->problem, "GatedRepo") == 0)
        return qn_fail(e, QN_EIO, "%s is gated (%ld): accept its terms at %s/%s, then set HF_TOKEN", where, a->status,
                       n->endpoint, where);
    if (a->status == 401 || a->status == 403)
        return qn_fail(e, QN_EIO, "%s: the server refuses (%ld): it does not exist, %s", where, a->status, hint);
    if (a->status == 404 && strcmp(a->problem, "RevisionNotFound") == 0)
        return qn_fail(e, QN_EIO, "%s: there is no such revision (404)", where);
    if (a->status == 404 && file) return qn_fail(e, QN_EIO, "%s: no file named %s is there (404)", where, qn_path_tail(file));
    if (a->status == 404) return qn_fail(e, QN_EIO, "%s: not at %s (404): it does not exist, %s", where, n->endpoint, hint);
    if (a->status == 429) return qn_fail(e, QN_EIO, "%s: the server asks us to wait (429): try again later", where);
    return qn_fail(e, QN_EIO, "%s: the server answered with status %ld", file ? qn_path_tail(file) : where, a->status);
}

bool qn_blob_ask(qn_blob *b, qn_net *n, const char *where, qn_err *e)
{
    qn_answer a;
    if (!qn_net_head(n, b->url, &a, e)) return e->code == QN_ECANCELLED ? false : qn_fail_within(e, qn_path_tail(b->file));
    if (!a.redirect && a.status / 100 != 2) return qn_status_fail(&a, n, where, b->file, e);
    const char *etag = a.linked_etag[0] ? a.linked_etag : a.etag;
    if (!etag[0]) return qn_fail(e, QN_EFORMAT, "%s: the server gives no ETag for %s, so it is no Hugging Face hub", where,
                                  qn_path_tail(b->file));
    if (etag[0] == '.' || strchr(etag, '/') || !qn_utf8_valid(etag, strlen(etag)) || qn_ends_with(etag, ".incomplete"))
        return qn_fail(e, QN_EFORMAT, "%s: the server's ETag '%.60s' for %s cannot name a file", where, etag,
                       qn_path_tail(b->file));
    memcpy(b->etag, etag, strlen(etag) + 1);
    b->size = a.linked_size >= 0 ? a.linked_size : a.redirect ? -1 : a.size;
    return true;
}

/* ---- opening: folder, lock, what is there */

static bool name_paths(partial *p, const qn_repo_dir *d, qn_err *e)
{
    qn_buf a = { 0 }, b = { 0 }, c = { 0 };
    qn_buf_printf(&a, "%s/blobs/%s", d->dir, p->b->etag);
    qn_buf_printf(&b, "%s/blobs/%s.incomplete", d->dir, p->b->etag);
    qn_buf_printf(&c, "%s/.locks/%s/%s.lock", d->cache, d->folder, p->b->etag);
    const bool ok = qn_buf_take(&a, &p->final, NULL, e), ok2 = qn_buf_take(&b, &p->path, NULL, e);
    const bool ok3 = qn_buf_take(&c, &p->lock, NULL, e); /* all three, so that nothing is left in a buffer */
    return ok && ok2 && ok3 && (p->dir = qn_path_join(d->dir, "blobs", e));
}

static bool is_here(const char *path, i64 size)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (size < 0 || (i64)st.st_size == size);
}

bool qn_blob_is_here(const qn_blob *b, const qn_repo_dir *d)
{
    qn_buf path = { 0 };
    qn_buf_printf(&path, "%s/blobs/%s", d->dir, b->etag);
    const bool here = !path.failed && is_here(path.p, b->size);
    qn_buf_close(&path);
    return here;
}

/* Another process may be bringing the same file: wait for it, then see that it is there. */
static bool take_lock(partial *p, const qn_repo_dir *d, qn_err *e)
{
    char *locks = qn_path_join(d->cache, ".locks", e), *dir = locks ? qn_path_join(locks, d->folder, e) : NULL;
    const bool made = dir && qn_mkdirs(dir, e);
    qn_free(locks);
    qn_free(dir);
    if (!made) return false;
    p->lock_fd = open(p->lock, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (p->lock_fd < 0) return qn_fail_errno(e, "%s: cannot open", p->lock);
    while (flock(p->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) return qn_fail_errno(e, "%s: cannot lock", p->lock);
        if (!qn_net_wait(p->net, 100, e)) return false;
    }
    return true;
}

static bool restart(partial *p, qn_err *e)
{
    p->have = 0;
    p->net->done = p->base;
    qn_sha256_begin(&p->sha);
    if (ftruncate(p->fd, 0) != 0 || lseek(p->fd, 0, SEEK_SET) != 0) return qn_fail_errno(e, "%s: cannot empty", p->path);
    return true;
}

/* Reads what an earlier run left, for the hash. Leaves the file's position at its end. */
static bool take_up(partial *p, qn_err *e)
{
    const size_t step = (size_t)1 << 20;
    u8 *chunk = qn_alloc(step, e);
    bool ok = chunk != NULL;
    for (ssize_t n = 1; ok && n > 0;) {
        n = read(p->fd, chunk, step);
        if (n < 0) ok = qn_fail_errno(e, "%s: cannot read", p->path);
        if (n <= 0) break;
        qn_sha256_add(&p->sha, chunk, (size_t)n);
        p->have += (u64)n;
        p->net->done = p->base + p->have;
        ok = qn_net_tick(p->net, e);
    }
    qn_free(chunk);
    return ok;
}

static bool open_partial(partial *p, qn_err *e)
{
    struct stat st;
    p->fd = open(p->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (p->fd < 0 || fstat(p->fd, &st) != 0) return qn_fail_errno(e, "%s: cannot open", qn_path_tail(p->path));
    if (!S_ISREG(st.st_mode)) return qn_fail(e, QN_EIO, "%s: not a plain file", p->path);
    qn_sha256_begin(&p->sha);
    return p->b->size >= 0 && st.st_size > p->b->size ? restart(p, e) : take_up(p, e);
}

static bool has_room(const partial *p, qn_err *e)
{
    struct statvfs v;
    char need[32], have[32];
    if (p->b->size < 0 || statvfs(p->dir, &v) != 0) return true;
    const char *file = qn_path_tail(p->b->file);
    const u64 want = (u64)p->b->size - p->have, room = (u64)v.f_bavail * (u64)v.f_frsize;
    if (want <= room) return true;
    return qn_fail(e, QN_EIO, "%s needs %s more, and the disk of %s has %s", file, qn_human_bytes(want, need),
                   qn_path_tail(p->dir), qn_human_bytes(room, have));
}

/* ---- bytes */

static const char *of_all(const partial *p, char *out, size_t cap)
{
    char have[32], size[32];
    qn_human_bytes(p->have, have);
    if (p->b->size < 0) snprintf(out, cap, "%s", have);
    else snprintf(out, cap, "%s of %s", have, qn_human_bytes((u64)p->b->size, size));
    return out;
}

static bool write_all(partial *p, const u8 *at, size_t n, qn_err *e)
{
    char how_far[80];
    while (n) {
        const ssize_t w = write(p->fd, at, n);
        if (w < 0 && errno == EINTR) continue;
        if (w < 0 && (errno == ENOSPC || errno == EDQUOT))
            return qn_fail(e, QN_EIO, "%s: the disk is full after %s; that much is kept, make room and run it again",
                           qn_path_tail(p->b->file), of_all(p, how_far, sizeof how_far));
        if (w < 0) return qn_fail_errno(e, "%s: cannot write", p->path);
        qn_sha256_add(&p->sha, at, (size_t)w);
        p->have += (u64)w;
        at += w;
        n -= (size_t)w;
    }
    p->net->done = p->base + p->have;
    return true;
}

/* The sink. Before an answer's first bytes are kept it must be sure where in the file they belong. */
static bool append(void *user, const qn_answer *a, const void *bytes, size_t n, qn_err *e)
{
    partial *p = user;
    if (!p->begun) {
        p->begun = true;
        if (a->status != 206 && p->have && !restart(p, e)) return false; /* it did not care for the range: all over again */
        if (a->status == 206 && a->range_from != (i64)p->have) {
            p->misplaced = true;
            return qn_fail(e, QN_EIO, "the server sent another range than it was asked for");
        }
    }
    p->b->fetched += n;
    if (p->b->size >= 0 && n > (u64)p->b->size - p->have) {
        p->hopeless = true;
        unlink(p->path); /* whatever this is, it is not the file that was announced */
        return qn_fail(e, QN_EFORMAT, "%s: the server sends more than the %lld bytes that it announced",
                       qn_path_tail(p->b->file), (long long)p->b->size);
    }
    p->hopeless = !write_all(p, bytes, n, e);
    return !p->hopeless;
}

/* After an answer that was not the whole rest: is there a point in going on? */
static bool can_go_on(partial *p, bool answered, const qn_answer *a, qn_err *e)
{
    if (p->hopeless) return false;
    if (p->misplaced || (answered && a->status == 416)) return restart(p, e);
    if (!answered) return a->again ? true : e->code == QN_EIO ? qn_fail_within(e, qn_path_tail(p->b->file)) : false;
    if (a->status / 100 != 2) return a->again ? true : qn_status_fail(a, p->net, qn_path_tail(p->b->file), NULL, e);
    return qn_fail(e, QN_EIO, "the server sent too little") || true;
}

static bool bring_bytes(partial *p, qn_err *e)
{
    char how_far[80];
    for (int tries = 0; p->b->size < 0 || p->have < (u64)p->b->size;) {
        qn_answer a;
        const u64 before = p->have;
        p->begun = p->misplaced = p->hopeless = false;
        const bool answered = qn_net_get(p->net, p->b->url, p->have, append, p, &a, e);
        if (!answered && e->code == QN_ECANCELLED)
            return qn_fail(e, QN_ECANCELLED, "%s: cancelled at %s; that much is kept, run it again to go on",
                           qn_path_tail(p->b->file), of_all(p, how_far, sizeof how_far));
        if (answered && a.status / 100 == 2 && (p->b->size < 0 || p->have == (u64)p->b->size)) return true;
        if (!can_go_on(p, answered, &a, e)) return false;
        tries = p->have > before && p->have - before >= USEFUL_BYTES ? 0 : tries + 1;
        if (tries == TRIES) {
            char why[sizeof e->msg];
            snprintf(why, sizeof why, "%.100s", answered && a.status / 100 != 2 ? "the server is in trouble" : e->msg);
            return qn_fail(e, QN_EIO, "%s: given up at %s after %d tries (%s); that much is kept, run it again to go on",
                           qn_path_tail(p->b->file), of_all(p, how_far, sizeof how_far), TRIES, why);
        }
        if (!qn_net_wait(p->net, 100 << tries, e)) return false;
    }
    return true;
}

/* ---- the end of it */

static bool is_right(partial *p, qn_err *e)
{
    char hex[65];
    if (!qn_is_sha256(p->b->etag)) return true; /* a small file of git's: its size was checked */
    qn_sha256_end(&p->sha, hex);
    if (strcasecmp(hex, p->b->etag) == 0) return true;
    unlink(p->path);
    return qn_fail(e, QN_EFORMAT, "%s: what came has SHA-256 %.16s..., not %.16s...; it was removed, run it again",
                   qn_path_tail(p->b->file), hex, p->b->etag);
}

static bool settle(const partial *p, qn_err *e)
{
    if (fsync(p->fd) != 0) return qn_fail_errno(e, "%s: cannot write", p->path);
    if (rename(p->path, p->final) != 0) return qn_fail_errno(e, "%s: cannot rename", p->path);
    const int dir = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0) {
        fsync(dir); /* best effort: the file itself is safe */
        close(dir);
    }
    return true;
}

static void close_partial(partial *p)
{
    if (p->fd >= 0) close(p->fd);
    if (p->lock_fd >= 0) close(p->lock_fd); /* which unlocks it */
    qn_free(p->dir);
    qn_free(p->path);
    qn_free(p->final);
    qn_free(p->lock);
}

bool qn_blob_bring(qn_blob *b, qn_net *n, const qn_repo_dir *d, qn_err *e)
{
    partial p = { .b = b, .net = n, .fd = -1, .lock_fd = -1, .base = n->done };
    n->what = strrchr(b->file, '/') ? strrchr(b->file, '/') + 1 : b->file;
    bool ok = name_paths(&p, d, e);
    const bool here = ok && is_here(p.final, b->size);
    if (ok && !here) ok = qn_mkdirs(p.dir, e) && take_lock(&p, d, e);
    if (ok && !here && !is_here(p.final, b->size)) /* nobody else brought it while we waited */
        ok = open_partial(&p, e) && has_room(&p, e) && bring_bytes(&p, e) && is_right(&p, e) && settle(&p, e);
    if (ok && b->size >= 0) n->done = p.base + (u64)b->size;
    close_partial(&p);
    return ok;
}
