/* run_open.c - whose log is this? Decided by the first 64 KiB of the text, unpacked if need be; then one reader takes it. What
 * no reader knows is refused with what it looks like. */
#include <string.h>

#include "base/file.h"
#include "report/import.h"
#include "trace/reader.h"

#define HEAD ((size_t)64 << 10)
#define TELL ((u64)4 << 20) /* bytes between two calls of the progress function */

/* ---- for the readers */

static qn_run *push(qn_runs *runs, qn_run *r, qn_err *e)
{
    qn_run **slot = r ? QN_RUN_PUSH(runs, e) : NULL;
    if (slot) return *slot = r;
    qn_run_close(r);
    return NULL;
}

qn_run *qn_import_run(qn_import *im, const char *source, qn_err *e)
{
    return push(im->runs, qn_run_new(source, im->path, e), e);
}

static bool tell(qn_run_progress_fn progress, void *user, u64 bytes, u64 size, qn_err *e)
{
    if (!progress || progress(user, size ? (double)bytes / (double)size : -1)) return true;
    return qn_fail(e, QN_ECANCELLED, "stopped");
}

bool qn_import_goes_on(qn_import *im, qn_err *e)
{
    u64 bytes, size;
    qn_stream_progress(im->text, &bytes, &size);
    if (bytes < im->asked + TELL) return true;
    im->asked = bytes;
    return tell(im->progress, im->user, bytes, size, e);
}

qn_got qn_import_line(qn_import *im, qn_line *line, qn_err *e)
{
    for (;;) {
        const qn_got got = qn_stream_line(im->text, line, e);
        if (got == QN_GOT_NOTHING_YET) im->asked = 0; /* ask at every turn while waiting */
        else if (got != QN_GOT_ONE) return got;
        if (!qn_import_goes_on(im, e)) return QN_GOT_ERROR;
        if (got == QN_GOT_ONE) return got;
    }
}

/* ---- our own */

static bool read_events(qn_reader *r, qn_fill *f, qn_run_progress_fn progress, void *user, qn_err *e)
{
    qn_event ev;
    qn_reader_state st;
    u64 n = 0;
    for (int got; (got = qn_reader_next(r, &ev, e)) != 0;) {
        if (got < 0 || (got == 1 && !qn_fill_add(f, &ev, e))) return false;
        if (got == 1 && ++n % 16384) continue;
        qn_reader_get_state(r, &st);
        if (!tell(progress, user, st.bytes, st.size, e)) return false;
    }
    qn_reader_get_state(r, &st);
    return qn_fill_finish(f, &st, e);
}

static bool read_quern(const char *path, qn_reader *r, qn_run_progress_fn progress, void *user, qn_runs *runs, qn_err *e)
{
    qn_run *run = r ? push(runs, qn_run_new("quern", path, e), e) : NULL;
    qn_fill *f = run ? qn_fill_open(run, e) : NULL;
    const bool ok = f && read_events(r, f, progress, user, e);
    qn_fill_close(f);
    qn_reader_close(r);
    return ok;
}

/* ---- whose is it? */

static bool has(qn_str text, const char *word)
{
    return memmem(text.p, text.n, word, strlen(word)) != NULL;
}

typedef struct kind { const char *name; bool (*is)(qn_str head); bool (*import)(qn_import *im, qn_err *e); } kind;

static char first_sign(qn_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!strchr(" \t\r\n", s.p[i]) && s.p[i]) return s.p[i];
    return 0;
}

static bool is_quern(qn_str s) { return first_sign(s) == '{' && has(s, "\"ev\"") && !has(s, "\"ph\""); }

static bool is_metallic(qn_str s)
{
    return first_sign(s) == '{' && has(s, "\"event\"") && has(s, "\"type\"") && !has(s, "\"ph\"");
}

static bool is_chrome(qn_str s)
{
    const char c = first_sign(s);
    return (c == '[' || c == '{') && (has(s, "\"ph\"") || has(s, "\"traceEvents\""));
}

static bool is_doppler(qn_str s)
{
    return has(s, "GPU Profile Report") || has(s, "ms][Profile]") || has(s, "[browser:") || has(s, "ms][Perf]")
        || has(s, "[metrics] ");
}

static bool is_mlc(qn_str s)
{
    return has(s, "Kernel Name") && (has(s, "Total Time (ms)") || has(s, "Total_Time_ms") || has(s, "Peak Time (ms)"));
}

static const kind kinds[] = {
    { "quern", is_quern, NULL },
    { "metallic", is_metallic, qn_import_metallic },
    { "chrome", is_chrome, qn_import_chrome },
    { "doppler", is_doppler, qn_import_doppler },
    { "mlc", is_mlc, qn_import_mlc },
};

static bool refuse(const char *path, qn_str head, qn_err *e)
{
    const char *name = qn_path_tail(path);
    if (!head.n) return qn_fail(e, QN_EFORMAT, "%s: is empty", name);
    if (!first_sign(head) && !memchr(head.p, 0, head.n))
        return qn_fail(e, QN_EFORMAT, "%s: holds nothing but blank lines", name);
    if (memchr(head.p, 0, head.n)) return qn_fail(e, QN_EFORMAT, "%s: binary data, no log that can be read here", name);
    return qn_fail(e, QN_EFORMAT, "%s: no log that is known here (quern, Metallic, Doppler, MLC, Chrome trace)", name);
}

/* Waits for the head of a pipe, or of a file that is followed and still empty. */
static bool get_head(qn_import *im, qn_str *head, qn_err *e)
{
    for (;;) {
        const qn_got got = qn_stream_peek(im->text, HEAD, head, e);
        if (got == QN_GOT_ERROR) return false;
        if (got == QN_GOT_END) *head = (qn_str){ "", 0 };
        if (got != QN_GOT_NOTHING_YET) return true;
        if (!tell(im->progress, im->user, 0, 0, e)) return false;
    }
}

static const kind *kind_of(qn_str head)
{
    for (size_t i = 0; i < QN_COUNT(kinds); i++)
        if (kinds[i].is(head)) return &kinds[i];
    return NULL;
}

static bool read_text(qn_import *im, bool follow, qn_err *e)
{
    qn_str head;
    if (!get_head(im, &head, e)) return false;
    const kind *k = kind_of(head);
    if (!k) return refuse(im->path, head, e);
    if (k->import) return k->import(im, e);
    qn_reader *r = qn_reader_open_stream(im->path, im->text, follow, e);
    im->text = NULL; /* the reader has it */
    return read_quern(im->path, r, im->progress, im->user, im->runs, e);
}

static bool read_all(qn_import *im, bool follow, qn_run ***runs, size_t *n, qn_err *e)
{
    qn_runs found = { 0 };
    im->runs = &found;
    *runs = NULL;
    *n = 0;
    const bool ok = im->text && read_text(im, follow, e);
    qn_stream_close(im->text);
    if (ok) {
        *runs = found.p;
        *n = found.n;
        return true;
    }
    for (size_t i = 0; i < found.n; i++) qn_run_close(found.p[i]);
    qn_free(found.p);
    return false;
}

bool qn_runs_open(const char *path, bool follow, qn_run_progress_fn progress, void *user, qn_run ***runs, size_t *n, qn_err *e)
{
    qn_import im = { .path = path, .text = qn_stream_open(path, follow, e), .progress = progress, .user = user };
    return read_all(&im, follow, runs, n, e);
}

bool qn_runs_open_bytes(const char *path, const void *p, size_t n, qn_run ***runs, size_t *n_runs, qn_err *e)
{
    qn_import im = { .path = path, .text = qn_stream_open_bytes(path, p, n, e) };
    return read_all(&im, false, runs, n_runs, e);
}
