/* export.c - the formats that are a few lines each (folded stacks, Metallic's log), and the way out for all. */
#include "report/export.h"

#include <inttypes.h>
#include <string.h>

#include "report/metallic.h"

#define MUCH ((size_t)1 << 20)

bool qn_export_flush(qn_export *x, bool all, qn_err *e)
{
    if (x->out.failed) return qn_fail(e, QN_ENOMEM, "out of memory: the text of an event");
    if (!all && x->out.n < MUCH) return true;
    const bool ok = x->out.n == 0 || x->fn(x->user, x->out.p, x->out.n, e);
    x->out.n = 0;
    return ok;
}

/* ---- folded stacks: one line a stack, frames with ; between, then its own time in ns */

/* A frame may have neither ; nor a line's end in it. */
static void put_frame(qn_buf *b, const char *s)
{
    for (; *s; s++) qn_buf_putc(b, *s == ';' || (unsigned char)*s < ' ' ? '_' : *s);
}

static bool put_series(qn_export *x, const qn_series *s, qn_err *e)
{
    qn_buf *b = &x->out;
    if (!s->total_ns) return true;
    put_frame(b, qn_phase_names[s->phase]);
    if (s->layer >= 0) qn_buf_printf(b, ";layer %d", s->layer);
    const char *const frames[] = { s->role, s->kernel[0] ? s->kernel : s->op };
    for (size_t i = 0; i < QN_COUNT(frames); i++) {
        if (!frames[i][0] || (i && !strcmp(frames[i], frames[0]))) continue;
        qn_buf_putc(b, ';');
        put_frame(b, frames[i]);
    }
    qn_buf_printf(b, " %" PRIu64 "\n", s->total_ns);
    return qn_export_flush(x, false, e);
}

static bool write_folded(qn_export *x, qn_err *e)
{
    const qn_run *r = x->run;
    u64 told[N_PHASES] = { 0 };
    for (size_t i = 0; i < r->series.n; i++) {
        told[r->series.p[i].phase] += r->series.p[i].total_ns;
        if (!put_series(x, &r->series.p[i], e)) return false;
    }
    for (int i = 0; i < N_PHASES; i++) { /* what no launch explains: the phase's own time */
        if (r->phase_ns[i] > told[i])
            qn_buf_printf(&x->out, "%s;(between) %" PRIu64 "\n", qn_phase_names[i], r->phase_ns[i] - told[i]);
    }
    return true;
}

/* ---- Metallic's log */

static bool put_metallic(void *user, const qn_metallic_event *ev, qn_err *e)
{
    qn_export *x = user;
    qn_metallic_line(&x->out, ev, x->run->started);
    return qn_export_flush(x, false, e);
}

static bool write_metallic(qn_export *x, qn_err *e)
{
    if (strcmp(x->run->source, "quern") != 0) return qn_metallic_tell_run(x->run, put_metallic, x, e);
    return qn_metallic_tell_trace(x->run->path, put_metallic, x, e);
}

bool qn_export_write(const qn_run *run, qn_export_to to, qn_export_fn fn, void *user, qn_err *e)
{
    qn_export x = { .run = run, .fn = fn, .user = user, .counters = to == EXPORT_perfetto };
    bool ok = false;
    switch (to) {
    case EXPORT_chrome:
    case EXPORT_perfetto: ok = qn_export_chrome(&x, e); break;
    case EXPORT_folded: ok = write_folded(&x, e); break;
    case EXPORT_metallic: ok = write_metallic(&x, e); break;
    case EXPORT_csv: ok = qn_export_csv(&x, e); break;
    case N_EXPORTS: break;
    }
    ok = ok && qn_export_flush(&x, true, e);
    qn_buf_close(&x.out);
    return ok;
}
