/* file.c - files in and out. Reading refuses everything that is not a plain file before it can block; writing goes to a
 * temporary beside the target and is renamed over it when it is whole. The one idea that is not obvious: a mapped file can be
 * cut short by another process, and reading behind its new end raises SIGBUS on whatever thread reads. All maps stand in a
 * table that the signal handler may read; it puts zeros under the damaged rest and marks the map; who read it asks qn_maps_whole.
 * Formats and folders of models are none of its business. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

const char *qn_path_tail(const char *path)
{
    enum { MOST = 96 };
    const size_t n = strlen(path);
    if (n <= MOST) return path;
    const char *p = path + n - MOST;
    const char *slash = strchr(p, '/');
    if (slash && slash[1]) return slash + 1;
    while ((*p & 0xC0) == 0x80) p++; /* not into the middle of a character */
    return p;
}

/* ---- maps ---- */

enum { MOST_MAPS = 4096 };

/* begin 0: free, 1: being filled. A slot's bytes are set before begin, so the handler never sees half of one. */
static struct slot { _Atomic uintptr_t begin; _Atomic size_t bytes; _Atomic bool broken; } slots[MOST_MAPS];
static _Atomic int n_broken;
static struct sigaction before; /* what SIGBUS did until we came */

static bool enter_map(const void *p, size_t bytes)
{
    for (int i = 0; i < MOST_MAPS; i++) {
        uintptr_t none = 0;
        if (!atomic_compare_exchange_strong(&slots[i].begin, &none, 1)) continue;
        atomic_store(&slots[i].bytes, bytes);
        atomic_store(&slots[i].broken, false);
        atomic_store(&slots[i].begin, (uintptr_t)p);
        return true;
    }
    return false;
}

static void leave_map(const void *p)
{
    for (int i = 0; i < MOST_MAPS; i++) {
        if (atomic_load(&slots[i].begin) != (uintptr_t)p) continue;
        if (atomic_exchange(&slots[i].broken, false)) atomic_fetch_sub(&n_broken, 1);
        atomic_store(&slots[i].begin, 0);
        return;
    }
}

/* The slot of the map that holds this address; -1: none. */
static int slot_of(uintptr_t at)
{
    for (int i = 0; i < MOST_MAPS; i++) {
        const uintptr_t begin = atomic_load(&slots[i].begin);
        if (begin > 1 && at >= begin && at - begin < atomic_load(&slots[i].bytes)) return i;
    }
    return -1;
}

/* Runs in the handler. Everything behind the first page that is gone is gone too, so one mapping of zeros covers the rest. */
static bool mend(uintptr_t at)
{
    const int i = slot_of(at);
    if (i < 0) return false;
    const uintptr_t page = at & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    const uintptr_t end = atomic_load(&slots[i].begin) + atomic_load(&slots[i].bytes);
    if (!atomic_exchange(&slots[i].broken, true)) atomic_fetch_add(&n_broken, 1);
    return mmap((void *)page, end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static void on_bus(int sig, siginfo_t *info, void *context)
{
    const int saved = errno;
    const bool ours = info->si_addr && mend((uintptr_t)info->si_addr);
    errno = saved;
    if (ours) return;
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(sig, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(sig);
    } else {
        signal(SIGBUS, SIG_DFL); /* returning repeats the access, which now ends the process as it would have */
    }
}

/* With every map again: a library that came later may have put its own handler in place. Only the first one that we found is
 * ever called from ours, so that two handlers never call each other in turns. */
static void install(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool found;
    struct sigaction act = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART };
    sigemptyset(&act.sa_mask);
    pthread_mutex_lock(&lock);
    if (!found) sigaction(SIGBUS, NULL, &before);
    found = true;
    sigaction(SIGBUS, &act, NULL);
    pthread_mutex_unlock(&lock);
}

bool qn_bytes_whole(const void *p, const char *what, qn_err *e)
{
    if (!atomic_load(&n_broken)) return true;
    const int i = slot_of((uintptr_t)p);
    if (i < 0 || !atomic_load(&slots[i].broken)) return true;
    return qn_fail(e, QN_EIO, "%s: a file was cut short or became unreadable while in use", what);
}

bool qn_maps_whole(const qn_map *maps, int n, const char *what, qn_err *e)
{
    for (int i = 0; i < n && atomic_load(&n_broken); i++)
        if (maps[i].bytes && !qn_bytes_whole(maps[i].p, what, e)) return false;
    return true;
}

/* ---- in ---- */

static const char *kind_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR: return "a folder";
    case S_IFIFO: return "a pipe";
    case S_IFSOCK: return "a socket";
    case S_IFBLK: case S_IFCHR: return "a device";
    default: return "something else";
    }
}

/* stat comes first because opening some devices has effects; fstat comes after because the name may have changed hands. */
static int open_plain(const char *path, u64 *bytes, qn_err *e)
{
    struct stat st;
    int fd = -1;
    if (stat(path, &st)) goto refused;
    if (S_ISREG(st.st_mode)) {
        fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        if (fd < 0 || fstat(fd, &st)) goto refused;
    }
    if (!S_ISREG(st.st_mode)) {
        qn_fail(e, QN_EIO, "%s: is %s, not a plain file", qn_path_tail(path), kind_of(st.st_mode));
        if (fd >= 0) close(fd);
        return -1;
    }
    *bytes = (u64)st.st_size;
    return fd;
refused:
    qn_fail_errno(e, "%s", qn_path_tail(path));
    if (fd >= 0) close(fd);
    return -1;
}

bool qn_map_open(qn_map *m, const char *path, qn_err *e)
{
    *m = (qn_map){ 0 };
    u64 bytes;
    const int fd = open_plain(path, &bytes, e);
    if (fd < 0) return false;
    if (bytes == 0) {
        close(fd);
        m->p = (const u8 *)"";
        return true;
    }
    void *p = bytes > SIZE_MAX ? MAP_FAILED : mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) {
        qn_fail_errno(e, "%s: cannot map %llu bytes", qn_path_tail(path), (unsigned long long)bytes);
        close(fd);
        return false;
    }
    close(fd);
    if (!enter_map(p, (size_t)bytes)) {
        munmap(p, (size_t)bytes);
        return qn_fail(e, QN_EFAIL, "%s: more than %d files are mapped", qn_path_tail(path), MOST_MAPS);
    }
    install();
    *m = (qn_map){ .p = p, .bytes = bytes };
    return true;
}

void qn_map_close(qn_map *m)
{
    if (m->bytes) {
        leave_map(m->p);
        munmap((void *)(uintptr_t)m->p, (size_t)m->bytes);
    }
    *m = (qn_map){ 0 };
}

void qn_map_drop(const void *p, size_t n)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)p;
    const uintptr_t from = (at + page - 1) & ~(page - 1), to = (at + n) & ~(page - 1); /* whole pages only */
    if (from < to && slot_of(at) >= 0 && slot_of(at) == slot_of(at + n - 1)) madvise((void *)from, to - from, MADV_DONTNEED);
}

static bool read_all(int fd, char *p, size_t n, size_t *got)
{
    *got = 0;
    while (*got < n) {
        const ssize_t r = read(fd, p + *got, n - *got);
        if (r < 0 && errno == EINTR) continue;
        if (r < 0) return false;
        if (r == 0) break;
        *got += (size_t)r;
    }
    return true;
}

/* Files of /proc say that they have 0 bytes, so the size only guides: reading goes on until there is no more. */
bool qn_file_read(const char *path, size_t most, char **out, size_t *n, qn_err *e)
{
    *out = NULL;
    *n = 0;
    u64 bytes;
    const int fd = open_plain(path, &bytes, e);
    if (fd < 0) return false;
    char *p = NULL;
    size_t cap = 0, used = 0, got;
    do {
        if (bytes > most || used > most) {
            qn_fail(e, QN_EFORMAT, "%s: larger than the %zu bytes it may have", qn_path_tail(path), most);
            goto failed;
        }
        cap = used ? 2 * cap : (size_t)bytes + 2; /* one byte to see the end, one for the NUL */
        char *wider = qn_resize(p, cap, e);
        if (!wider) goto failed;
        p = wider;
        if (!read_all(fd, p + used, cap - 1 - used, &got)) {
            qn_fail_errno(e, "%s: cannot read", qn_path_tail(path));
            goto failed;
        }
        used += got;
    } while (used == cap - 1);
    close(fd);
    p[used] = 0;
    *out = p;
    *n = used;
    return true;
failed:
    close(fd);
    qn_free(p);
    return false;
}

bool qn_is_dir(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

bool qn_is_file(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISREG(st.st_mode);
}

/* ---- out ---- */

/* "dir/" of "dir/name" with a short name of our own behind it, so that a long name does not become too long. */
static char *temp_name(const char *path, unsigned attempt, qn_err *e)
{
    const char *slash = strrchr(path, '/');
    const size_t dir = slash ? (size_t)(slash + 1 - path) : 0;
    const size_t cap = dir + 48;
    char *temp = qn_alloc(cap, e);
    if (!temp) return NULL;
    memcpy(temp, path, dir);
    snprintf(temp + dir, cap - dir, ".quern-%x-%llx-%x", (unsigned)getpid(), (unsigned long long)qn_now_ns(), attempt);
    return temp;
}

/* A link is followed to the file it names, which is what gets replaced. */
static bool target_of(const char *path, char **out, qn_err *e)
{
    char real[PATH_MAX];
    struct stat st;
    const bool there = !stat(path, &st);
    if (there && !S_ISREG(st.st_mode))
        return qn_fail(e, QN_EIO, "%s: is %s, cannot be replaced by a file", qn_path_tail(path), kind_of(st.st_mode));
    if (!there && errno != ENOENT) return qn_fail_errno(e, "%s: cannot be written", qn_path_tail(path));
    const char *target = there && realpath(path, real) ? real : path;
    *out = qn_strdup(target, e);
    return *out != NULL;
}

bool qn_out_open(qn_out *o, const char *path, qn_err *e)
{
    *o = (qn_out){ .fd = -1 };
    if (!target_of(path, &o->path, e)) return false;
    for (unsigned attempt = 0; attempt < 100; attempt++) {
        qn_free(o->temp);
        o->temp = temp_name(o->path, attempt, e);
        if (!o->temp) break;
        o->fd = open(o->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (o->fd >= 0) return true;
        if (errno == EEXIST) continue;
        qn_fail_errno(e, "%s: cannot be written", qn_path_tail(path));
        break;
    }
    qn_free(o->temp);
    o->temp = NULL;
    qn_out_close(o);
    return false;
}

bool qn_out_write_at(qn_out *o, u64 offset, const void *p, size_t n, qn_err *e)
{
    const char *at = p;
    while (n) {
        const ssize_t w = pwrite(o->fd, at, n, (off_t)offset);
        if (w < 0 && errno == EINTR) continue;
        if (w == 0) errno = EIO;
        if (w <= 0) return qn_fail_errno(e, "%s: cannot write", qn_path_tail(o->path));
        at += w;
        n -= (size_t)w;
        offset += (u64)w;
    }
    return true;
}

bool qn_out_write(qn_out *o, const void *p, size_t n, qn_err *e)
{
    if (!qn_out_write_at(o, o->bytes, p, n, e)) return false;
    o->bytes += n;
    return true;
}

static void sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash ? qn_strndup(path, (size_t)(slash + 1 - path), NULL) : qn_strdup(".", NULL);
    const int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fsync(fd); /* some file systems refuse this for folders; the rename has happened all the same */
        close(fd);
    }
    qn_free(dir);
}

bool qn_out_commit(qn_out *o, qn_err *e)
{
    if (fsync(o->fd)) return qn_fail_errno(e, "%s: cannot write", qn_path_tail(o->path));
    const int fd = o->fd;
    o->fd = -1;
    if (close(fd)) return qn_fail_errno(e, "%s: cannot write", qn_path_tail(o->path));
    if (rename(o->temp, o->path)) return qn_fail_errno(e, "%s: cannot be replaced", qn_path_tail(o->path));
    qn_free(o->temp);
    o->temp = NULL;
    sync_folder(o->path);
    return true;
}

void qn_out_close(qn_out *o)
{
    if (!o->path) return;
    if (o->fd >= 0) close(o->fd);
    if (o->temp) unlink(o->temp);
    qn_free(o->temp);
    qn_free(o->path);
    *o = (qn_out){ .fd = -1 };
}

/* ---- paths ---- */

char *qn_path_join(const char *dir, const char *name, qn_err *e)
{
    const size_t nd = strlen(dir), nn = strlen(name);
    const bool slash = nd > 0 && dir[nd - 1] != '/';
    char *p = qn_alloc(nd + slash + nn + 1, e);
    if (!p) return NULL;
    memcpy(p, dir, nd);
    if (slash) p[nd] = '/';
    memcpy(p + nd + slash, name, nn + 1);
    return p;
}

/* Whether a real path lies below a real folder. */
static bool is_below(const char *path, const char *dir, size_t n_dir)
{
    return !strncmp(path, dir, n_dir) && (path[n_dir] == '/' || (n_dir == 1 && dir[0] == '/'));
}

/* dir is .../snapshots/REV and path is below .../blobs */
static bool is_blob(const char *path, const char *dir)
{
    const char *rev = strrchr(dir, '/');
    static const char snapshots[] = "/snapshots", blobs[] = "/blobs";
    if (!rev || rev - dir < (ptrdiff_t)sizeof snapshots) return false;
    const size_t repo = (size_t)(rev - dir) - (sizeof snapshots - 1);
    return !strncmp(dir + repo, snapshots, sizeof snapshots - 1) && !strncmp(path, dir, repo)
           && is_below(path + repo, blobs, sizeof blobs - 1);
}

char *qn_path_within(const char *dir, const char *name, qn_err *e)
{
    char real[PATH_MAX], folder[PATH_MAX];
    if (!*name || strpbrk(name, "/\\:") || !strcmp(name, ".") || !strcmp(name, "..")) {
        qn_fail(e, QN_EFORMAT, "%s: file name %.100s leads out of the folder", qn_path_tail(dir), name);
        return NULL;
    }
    char *joined = qn_path_join(dir, name, e);
    if (!joined) return NULL;
    if (!realpath(dir, folder) || !realpath(joined, real)) qn_fail_errno(e, "%s", qn_path_tail(joined));
    else if (is_below(real, folder, strlen(folder)) || is_blob(real, folder)) return joined;
    else qn_fail(e, QN_EFORMAT, "%s: a link that leads out of its folder", qn_path_tail(joined));
    qn_free(joined);
    return NULL;
}

bool qn_mkdirs(const char *path, qn_err *e)
{
    char *p = qn_strdup(path, e);
    if (!p) return false;
    bool ok = true;
    for (char *c = p + (*p == '/'); ok; c++) {
        if (*c && *c != '/') continue;
        const char was = *c;
        *c = 0;
        if (*p && mkdir(p, 0777) && errno != EEXIST) ok = qn_fail_errno(e, "%s: cannot make the folder", qn_path_tail(p));
        *c = was;
        if (!was) break;
    }
    if (ok && !qn_is_dir(path)) ok = qn_fail(e, QN_EIO, "%s: is not a folder", qn_path_tail(path));
    qn_free(p);
    return ok;
}

bool qn_mkdirs_for(const char *path, qn_err *e)
{
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path) return true;
    char *folder = qn_strndup(path, (size_t)(slash - path), e);
    const bool ok = folder && (qn_is_dir(folder) || qn_mkdirs(folder, e));
    qn_free(folder);
    return ok;
}
