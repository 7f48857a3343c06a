/* shelf.c - where commands get runs from. A run's trace is read back after it ended: what the store has is what a
 * report would have said, and nothing is measured twice. */
#include "cli/shelf.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "hub/hub.h"

qn_store *qn_shelf_store(const qn_cli *c, qn_err *e)
{
    char note[240] = "";
    char *dir = qn_place_path(QN_PLACE_STATE, e);
    char *path = dir ? qn_path_join(dir, "runs.sqlite", e) : NULL;
    qn_store *s = path ? qn_store_open(path, note, e) : NULL;
    if (note[0]) qn_cli_note(c, "%s", note);
    qn_free(path);
    qn_free(dir);
    return s;
}

static bool push(qn_shelf *s, qn_run **runs, size_t n, qn_err *e)
{
    size_t bytes;
    qn_run **more = qn_mul(s->n + n, sizeof *more, &bytes) ? qn_resize(s->p, bytes + 1, e) : NULL;
    if (!more) return false;
    memcpy(more + s->n, runs, n * sizeof *runs);
    s->p = more;
    s->n += n;
    return true;
}

static bool progress(void *bar, double share) { return qn_bar_show(bar, "reading", share < 0 ? 0 : share); }

static bool add_file(const qn_cli *c, qn_shelf *s, const char *path, qn_err *e)
{
    qn_shelf got = { 0 };
    qn_bar bar;
    qn_bar_open(&bar, c);
    bool ok = qn_runs_open(path, false, progress, &bar, &got.p, &got.n, e);
    qn_bar_close(&bar);
    if (ok && !(ok = push(s, got.p, got.n, e))) qn_shelf_close(&got);
    if (ok) qn_free(got.p);
    return ok;
}

bool qn_shelf_add(const qn_cli *c, qn_shelf *s, const char *name, qn_err *e)
{
    i64 id = 0;
    if (name[0] != '@') return add_file(c, s, name, e);
    qn_store *store = qn_shelf_store(c, e);
    qn_run *r = store && qn_store_find(store, name, s->n ? s->p[0] : NULL, &id, e) ? qn_store_get(store, id, e) : NULL;
    qn_store_close(store);
    if (r && push(s, &r, 1, e)) return true;
    qn_run_close(r);
    return false;
}

void qn_shelf_close(qn_shelf *s)
{
    for (size_t i = 0; i < s->n; i++) qn_run_close(s->p[i]);
    qn_free(s->p);
    *s = (qn_shelf){ 0 };
}

void qn_shelf_record(const qn_cli *c, const char *trace_path)
{
    qn_shelf runs = { 0 };
    qn_err e = { 0 };
    i64 id = 0;
    if (!qn_is_file(trace_path)) return; /* a pipe: who reads it may add it */
    qn_store *store = qn_shelf_store(c, &e);
    bool ok = store && add_file(c, &runs, trace_path, &e);
    for (size_t i = 0; ok && i < runs.n; i++) ok = qn_store_add(store, runs.p[i], NULL, &id, &e);
    if (ok && id) qn_cli_debug(c, "run @%lld", (long long)id);
    else if (!ok) qn_cli_note(c, "the run is not in the store: %s", e.msg);
    qn_shelf_close(&runs);
    qn_store_close(store);
}

int qn_cli_width(void)
{
    struct winsize w;
    return isatty(1) && ioctl(1, TIOCGWINSZ, &w) == 0 && w.ws_col >= 40 ? w.ws_col : 0;
}

int qn_cli_deliver(const qn_cli *c, qn_buf *b, const char *path)
{
    qn_out out = { 0 };
    qn_err e = { 0 };
    if (!path || b->failed) return qn_cli_finish(c, b);
    const bool ok = qn_out_open(&out, path, &e) && qn_out_write(&out, b->p, b->n, &e) && qn_out_commit(&out, &e);
    qn_out_close(&out);
    qn_buf_close(b);
    return ok ? QN_EXIT_OK : qn_cli_fail(c, &e);
}
