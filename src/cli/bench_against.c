/* bench_against.c - one sample from another engine: starts its llama-bench for a single repetition of one test on our file with
 * our number of threads, and reads tokens per second from its JSON. No shell is involved: the command is cut at spaces. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/bench.h"

#define MOST_ADDED 24            /* words behind the command's own */
#define MOST_OUTPUT ((size_t)16 << 20)

extern char **environ;

/* ---- the command ---------------------------------------------------------------------------------------------------- */

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int cut_words(char *text, char **argv) /* argv NULL: only counts */
{
    int n = 0;
    for (char *p = text; *p;) {
        while (*p == ' ') p++;
        if (!*p) break;
        if (argv) argv[n] = p;
        n++;
        while (*p && *p != ' ') p++;
        if (argv && *p) *p++ = 0;
    }
    return n;
}

bool qn_rival_open(qn_rival *v, const char *text, qn_err *e)
{
    if (sched_getaffinity(0, sizeof v->allowed, &v->allowed)) return qn_fail_errno(e, "the affinity of this process");
    const size_t n_label = strcspn(text, "=/ ");
    const bool labelled = n_label > 0 && text[n_label] == '=';
    v->command = labelled ? text + n_label + 1 : text;
    v->words = qn_strdup(v->command, e);
    if (!v->words) return false;
    v->argc = cut_words(v->words, NULL);
    if (v->argc == 0) return qn_fail(e, QN_EUSAGE, "--against: an empty command");
    v->argv = qn_new_array((size_t)v->argc + MOST_ADDED, sizeof *v->argv, e);
    if (!v->argv) return false;
    cut_words(v->words, v->argv);
    v->label = labelled ? qn_strndup(text, n_label, e) : qn_strdup(file_name(v->argv[0]), e);
    return v->label != NULL;
}

void qn_rival_close(qn_rival *v)
{
    qn_free(v->label);
    qn_free(v->words);
    qn_free(v->argv);
    *v = (qn_rival){ 0 };
}

typedef struct words { char **at; char numbers[8][16]; int n, n_numbers; } words; /* numbers: room for those that are added */

static void add(words *w, const char *name, const char *value)
{
    w->at[w->n++] = (char *)(uintptr_t)name; /* posix_spawn promises not to write to them */
    w->at[w->n++] = (char *)(uintptr_t)value;
}

static void add_number(words *w, const char *name, int v)
{
    char *text = w->numbers[w->n_numbers++];
    snprintf(text, sizeof w->numbers[0], "%d", v);
    add(w, name, text);
}

/* Options that not every llama-bench knows are given only where the test needs them. behind: a depth as -gp, generating behind a
 * prompt, which ik_llama.cpp's has where others have -d. */
static void add_options(words *w, const qn_bench_setup *s, const qn_bench_test *t, bool behind, char pair[32])
{
    const bool both = t->n_prompt && t->n_gen, paired = both || behind;
    add(w, "-m", s->info.path);
    add_number(w, "-p", paired ? 0 : t->n_prompt);
    add_number(w, "-n", paired ? 0 : t->n_gen);
    if (paired) {
        snprintf(pair, 32, "%d,%d", both ? t->n_prompt : t->n_depth, t->n_gen);
        add(w, both ? "-pg" : "-gp", pair);
    }
    if (t->n_depth && !behind) add_number(w, "-d", t->n_depth);
    add_number(w, "-t", qn_engine_threads(s->engine));
    if (s->args.kv != QN_KV_F16) {
        add(w, "-ctk", s->kv);
        add(w, "-ctv", s->kv);
    }
    add(w, "-r", "1");
    add(w, "-o", "json");
    w->at[w->n] = NULL;
}

/* ---- the process ---------------------------------------------------------------------------------------------------- */

typedef struct child { pid_t pid; int out, err; } child; /* err: a file in memory */

/* Threads of an engine may be bound to cores; what we start must not inherit that. */
static int spawn_unbound(const qn_rival *v, pid_t *pid, const posix_spawn_file_actions_t *a, const posix_spawnattr_t *attr)
{
    cpu_set_t own;
    const bool known = sched_getaffinity(0, sizeof own, &own) == 0;
    sched_setaffinity(0, sizeof v->allowed, &v->allowed);
    const int failed = posix_spawnp(pid, v->argv[0], a, attr, v->argv, environ);
    if (known) sched_setaffinity(0, sizeof own, &own);
    return failed;
}

/* What is ignored here (a reader that left) must not be ignored there. */
static int spawn_with(const qn_rival *v, child *c, int out)
{
    posix_spawn_file_actions_t a;
    posix_spawnattr_t attr;
    sigset_t usual;
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    sigaddset(&usual, SIGXFSZ);
    int failed = posix_spawn_file_actions_init(&a);
    if (failed) return failed;
    failed = posix_spawnattr_init(&attr);
    if (!failed) {
        failed = posix_spawn_file_actions_addopen(&a, 0, "/dev/null", O_RDONLY, 0);
        if (!failed) failed = posix_spawn_file_actions_adddup2(&a, out, 1);
        if (!failed) failed = posix_spawn_file_actions_adddup2(&a, c->err, 2);
        if (!failed) failed = posix_spawnattr_setsigdefault(&attr, &usual);
        if (!failed) failed = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
        if (!failed) failed = spawn_unbound(v, &c->pid, &a, &attr);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&a);
    return failed;
}

static bool start(const qn_rival *v, child *c, qn_err *e)
{
    int ends[2];
    *c = (child){ .pid = -1, .out = -1, .err = memfd_create("stderr", MFD_CLOEXEC) };
    if (c->err < 0) return qn_fail_errno(e, "a file for the other engine's messages");
    if (pipe2(ends, O_CLOEXEC)) return qn_fail_errno(e, "a pipe to the other engine");
    c->out = ends[0];
    const int failed = spawn_with(v, c, ends[1]);
    close(ends[1]);
    return !failed || qn_fail(e, QN_EFAIL, "--against: cannot run %.100s: %s", v->argv[0], strerror(failed));
}

static void end(child *c)
{
    if (c->pid > 0) {
        kill(c->pid, SIGKILL);
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR) {}
    }
    if (c->out >= 0) close(c->out);
    if (c->err >= 0) close(c->err);
}

static bool read_all(const child *c, const char *label, qn_buf *b, qn_err *e)
{
    for (;;) {
        char *room = qn_buf_room(b, 4096);
        if (!room) return qn_fail(e, QN_ENOMEM, "no memory for the output of %s", label);
        const ssize_t got = read(c->out, room, 4096);
        if (qn_interrupted()) return qn_fail(e, QN_ECANCELLED, "interrupted");
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return qn_fail_errno(e, "the other engine's output");
        if (got == 0) return true;
        b->n += (size_t)got;
        b->p[b->n] = 0;
        if (b->n > MOST_OUTPUT) return qn_fail(e, QN_EFAIL, "--against: %s prints without end", label);
    }
}

/* The last line that is not empty of what it said on stderr. */
static const char *last_words(const child *c, char *out, size_t cap)
{
    char tail[1024];
    const off_t size = lseek(c->err, 0, SEEK_END);
    const off_t from = size > (off_t)sizeof tail ? size - (off_t)sizeof tail : 0;
    const ssize_t got = pread(c->err, tail, sizeof tail, from);
    size_t stop = got > 0 ? (size_t)got : 0;
    while (stop && (tail[stop - 1] == '\n' || tail[stop - 1] == ' ' || tail[stop - 1] == '\r')) stop--;
    size_t begin = stop;
    while (begin && tail[begin - 1] != '\n') begin--;
    return stop > begin ? qn_printable(tail + begin, stop - begin, 120, out, cap) : "it said nothing";
}

static bool wait_for(child *c, const char *label, qn_err *e)
{
    int status = 0;
    char said[160];
    while (waitpid(c->pid, &status, 0) < 0) {
        if (errno != EINTR) return qn_fail_errno(e, "waiting for the other engine");
        if (qn_interrupted()) return qn_fail(e, QN_ECANCELLED, "interrupted");
    }
    c->pid = -1;
    if (WIFSIGNALED(status)) return qn_fail(e, QN_EFAIL, "--against: %s was killed by signal %d", label, WTERMSIG(status));
    if (WEXITSTATUS(status) == 0) return true;
    return qn_fail(e, QN_EFAIL, "--against: %s ended with status %d: %s", label, WEXITSTATUS(status),
                   last_words(c, said, sizeof said));
}

/* ---- its answer ----------------------------------------------------------------------------------------------------- */

/* Some builds talk before the array; it begins a line. */
static const char *find_array(const qn_buf *b)
{
    for (const char *p = b->p; p && *p; p = strchr(p, '\n'), p = p ? p + 1 : NULL)
        if (*p == '[') return p;
    return NULL;
}

static bool read_answer(const qn_buf *b, const char *label, int n_prompt, int n_gen, double *ts, qn_err *e)
{
    const char *array = find_array(b);
    if (!array) return qn_fail(e, QN_EFORMAT, "--against: %s printed no JSON array", label);
    yyjson_doc *doc = qn_json_parse(array, b->n - (size_t)(array - b->p), 0, label, e);
    if (!doc) return false;
    yyjson_val *row = yyjson_arr_get_first(yyjson_doc_get_root(doc));
    yyjson_val *v = yyjson_obj_get(row, "avg_ts"), *p = yyjson_obj_get(row, "n_prompt"), *g = yyjson_obj_get(row, "n_gen");
    const bool same = (!p || yyjson_get_int(p) == n_prompt) && (!g || yyjson_get_int(g) == n_gen);
    *ts = yyjson_get_num(v);
    const bool known = yyjson_is_num(v) && isfinite(*ts) && *ts > 0;
    yyjson_doc_free(doc);
    if (!known) return qn_fail(e, QN_EFORMAT, "--against: %s gives no avg_ts above 0", label);
    return same || qn_fail(e, QN_EFORMAT, "--against: %s ran another test than it was asked for", label);
}

static bool ask(const qn_rival *v, const qn_bench_setup *s, const qn_bench_test *t, bool behind, double *ts, qn_err *e)
{
    words w = { .at = v->argv, .n = v->argc };
    char pair[32];
    child c;
    qn_buf b = { 0 };
    add_options(&w, s, t, behind, pair);
    const bool ok = start(v, &c, e) && read_all(&c, v->label, &b, e) && wait_for(&c, v->label, e) &&
                    read_answer(&b, v->label, behind ? t->n_depth : t->n_prompt, t->n_gen, ts, e);
    end(&c);
    qn_buf_close(&b);
    return ok;
}

bool qn_rival_sample(qn_rival *v, const qn_bench_setup *s, const qn_bench_test *t, double *ts, qn_err *e)
{
    const bool can = t->n_depth && t->n_gen && !t->n_prompt;
    if (ask(v, s, t, can && v->behind, ts, e)) return v->knows_depth = v->knows_depth || (t->n_depth && !v->behind), true;
    qn_err other = { 0 };
    if (!can || v->behind || v->knows_depth || qn_interrupted() || !ask(v, s, t, true, ts, &other)) return false;
    v->behind = true;
    *e = (qn_err){ 0 };
    return true;
}
