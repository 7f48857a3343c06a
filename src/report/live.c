/* live.c - the sums behind `quern top` and their screen. The run itself is filled by report/read_quern.c; here are
 * the figures of the last seconds, which no run keeps, and the lines. */
#include "report/live.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "base/table.h"

enum { SECONDS = 60 };        /* of tokens a second, drawn as bars */
#define SECOND 1000000000
#define GAPS 256              /* latest times between tokens, for p50 and p95 of now */

struct qn_live {
    qn_run *run;
    qn_fill *fill;
    u32 per_second[SECONDS];  /* tokens handed out in second s of the trace, at s % SECONDS */
    i64 second;               /* the latest one that has a place there */
    i64 now;                  /* ns of the trace: the latest event */
    double gaps[GAPS];
    u64 n_gaps, n_tokens;
    i64 request, made, predict; /* the latest request: tokens so far, tokens asked for */
    i64 kv_used;              /* as of the latest pass */
};

typedef struct sum { const char *name; double ns, bytes, flops; u64 n; } sum; /* of one group */
typedef struct screen { qn_buf *out; int width, left; bool color; } screen;

qn_live *qn_live_open(const char *path, qn_err *e)
{
    qn_live *l = qn_new(sizeof *l, e);
    if (!l) return NULL;
    l->run = qn_run_new("quern", path, e);
    l->fill = l->run ? qn_fill_open(l->run, e) : NULL;
    if (l->fill) return l;
    qn_live_close(l);
    return NULL;
}

void qn_live_close(qn_live *l)
{
    if (!l) return;
    qn_fill_close(l->fill);
    qn_run_close(l->run);
    qn_free(l);
}

bool qn_live_ended(const qn_live *l) { return l->run->ended; }

static void count_token(qn_live *l, const qn_event *ev)
{
    const i64 s = ev->t / SECOND;
    if (s > l->second) {
        const i64 from = s - l->second > SECONDS ? s - SECONDS : l->second;
        for (i64 i = from + 1; i <= s; i++) l->per_second[i % SECONDS] = 0;
        l->second = s;
    }
    if (l->second - s < SECONDS) l->per_second[s % SECONDS]++;
    l->n_tokens++;
    l->made = ev->token.index + 1;
    if (ev->token.index > 0) l->gaps[l->n_gaps++ % GAPS] = (double)ev->token.ns;
}

bool qn_live_add(qn_live *l, const qn_event *ev, qn_err *e)
{
    if (ev->t > l->now) l->now = ev->t;
    if (ev->kind == QN_EV_token) count_token(l, ev);
    if (ev->kind == QN_EV_request) l->request = ev->request.request, l->predict = ev->request.predict, l->made = 0;
    if (ev->kind == QN_EV_pass) l->kv_used = ev->pass.kv_used;
    return qn_fill_add(l->fill, ev, e);
}

/* ---- lines */

/* One line, cut to the width: columns are characters here, which holds for what we print ourselves; texts of a
 * trace are made printable before. */
static void line(screen *s, const char *fmt, ...) QN_PRINTF(2, 3);
static void line(screen *s, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    if (s->left <= 0) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    size_t n = 0;
    for (int columns = 0; text[n] && columns < s->width; columns++) {
        u32 cp;
        const int k = qn_utf8_get(text + n, strlen(text + n), &cp);
        n += k ? (size_t)k : 1;
    }
    qn_buf_put(s->out, text, qn_minz(n, strlen(text)));
    qn_buf_putc(s->out, '\n');
    s->left--;
}

static void title(screen *s, const char *text)
{
    if (s->color) qn_buf_puts(s->out, "\033[1m");
    line(s, "%s", text);
    if (s->color) qn_buf_puts(s->out, "\033[0m");
}

static const char *clean(const char *text, char out[64]) { return qn_printable(text, strlen(text), 48, out, 64); }

static void draw_head(const qn_live *l, screen *s)
{
    const qn_run *r = l->run;
    char model[64], cpu[64], text[400];
    snprintf(text, sizeof text, "quern top  %s %s  %s%.1f s", clean(r->model[0] ? r->model : "a run", model), r->type,
             r->ended ? "ended after " : "", (double)l->now * 1e-9);
    title(s, text);
    line(s, "%s%s%lld threads%s%s", clean(r->cpu, cpu), r->cpu[0] ? ", " : "", (long long)r->threads,
         r->isa[0] ? ", " : "", r->isa);
}

/* Tokens of the last whole seconds, at most three; the running one is not over yet. */
static double rate_now(const qn_live *l)
{
    const i64 now = l->now / SECOND;
    double tokens = 0, seconds = 0;
    if (l->run->ended || l->n_tokens == 0) return 0;
    for (i64 i = now - 1; i >= 0 && i >= now - 3; i--) {
        if (i <= l->second && l->second - i < SECONDS) tokens += l->per_second[i % SECONDS];
        seconds++;
    }
    return seconds > 0 ? tokens / seconds : 0;
}

static void draw_bars(const qn_live *l, screen *s)
{
    static const char *const bars[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    char text[SECONDS * 3 + 1] = "";
    u32 most = 1;
    const i64 last = l->now / SECOND, first = last >= SECONDS ? last - SECONDS + 1 : 0;
    for (i64 i = first; i <= last && i <= l->second; i++)
        if (l->per_second[i % SECONDS] > most) most = l->per_second[i % SECONDS];
    for (i64 i = first; i <= last; i++) {
        const u32 v = i <= l->second && l->second - i < SECONDS ? l->per_second[i % SECONDS] : 0;
        strncat(text, bars[v ? 1 + v * 7 / most : 0], sizeof text - strlen(text) - 1);
    }
    line(s, "tokens a second, most %u  %s", most, text);
}

static double mean_rate(const qn_run *r, qn_phase phase)
{
    return r->phase_ns[phase] ? (double)r->phase_tokens[phase] * 1e9 / (double)r->phase_ns[phase] : 0;
}

static void draw_speed(const qn_live *l, screen *s)
{
    const qn_run *r = l->run;
    qn_stats gaps;
    double sorted[GAPS];
    const size_t n = (size_t)(l->n_gaps < GAPS ? l->n_gaps : GAPS);
    memcpy(sorted, l->gaps, n * sizeof *sorted);
    qn_stats_of(sorted, n, &gaps);
    line(s, "decode   %8.2f tok/s now, %.2f in all, %llu tokens; %.2f ms a token, p95 %.2f", rate_now(l),
         mean_rate(r, PHASE_decode), (unsigned long long)r->phase_tokens[PHASE_decode],
         gaps.p50 * 1e-6, gaps.p95 * 1e-6);
    line(s, "prefill  %8.2f tok/s, %llu tokens", mean_rate(r, PHASE_prefill),
         (unsigned long long)r->phase_tokens[PHASE_prefill]);
    if (l->request && l->predict > 0)
        line(s, "request  %lld: %lld of at most %lld tokens", (long long)l->request, (long long)l->made,
             (long long)l->predict);
    else if (l->request) line(s, "request  %lld: %lld tokens", (long long)l->request, (long long)l->made);
    draw_bars(l, s);
}

static void draw_phases(const qn_live *l, screen *s)
{
    char text[400] = "time     ";
    const double wall = l->run->wall_ns ? (double)l->run->wall_ns : 1;
    for (qn_phase f = 0; f < N_PHASES; f++) {
        char part[64];
        if (!l->run->phase_ns[f]) continue;
        snprintf(part, sizeof part, "%s %.1f%%  ", qn_phase_names[f], 100 * (double)l->run->phase_ns[f] / wall);
        strncat(text, part, sizeof text - strlen(text) - 1);
    }
    line(s, "%s", text);
}

static void draw_memory(const qn_live *l, screen *s)
{
    char weights[32], used[32], kv[32], resident[32], peak[32];
    if (!l->run->memory.n) return;
    const qn_run_memory *m = &l->run->memory.p[l->run->memory.n - 1];
    const u64 now = l->kv_used > 0 ? (u64)l->kv_used : 0; /* when all is over the run's own record says the most */
    line(s, "memory   weights %s, KV %s of %s, resident %s, peak %s", qn_human_bytes(m->weights, weights),
         qn_human_bytes(now > m->kv_used ? now : m->kv_used, used), qn_human_bytes(m->kv, kv),
         qn_human_bytes(m->resident, resident), qn_human_bytes(m->peak, peak));
}

/* ---- the hottest steps */

static const char *group_name(const qn_series *s, qn_by by, char layer[24])
{
    if (by == BY_layer && s->layer >= 0) return snprintf(layer, 24, "layer %d", s->layer), layer;
    if (by == BY_kernel && s->kernel[0]) return s->kernel;
    if (by == BY_role && s->role[0]) return qn_role_part(s->role);
    return s->op[0] ? s->op : s->kernel;
}

typedef struct sums { QN_RUN_LIST(sum) list; qn_table index; qn_arena names; double all; } sums;

static bool sum_up(const qn_run *r, qn_by by, sums *t, qn_err *e)
{
    for (size_t i = 0; i < r->series.n; i++) {
        const qn_series *s = &r->series.p[i];
        char layer[24];
        if (!s->n) continue;
        const char *name = group_name(s, by, layer);
        u32 at = qn_table_get(&t->index, name, strlen(name));
        if (at == QN_NONE) {
            sum *made = QN_RUN_PUSH(&t->list, e);
            at = (u32)(t->list.n - 1);
            if (!made || !(made->name = qn_arena_strndup(&t->names, name, strlen(name), e))
                || qn_table_put(&t->index, made->name, strlen(name), at, e) == QN_NONE) return false;
        }
        sum *x = &t->list.p[at];
        x->ns += (double)s->total_ns;
        x->bytes += s->bytes;
        x->flops += s->flops;
        x->n += s->n;
        t->all += (double)s->total_ns;
    }
    return true;
}

static int hottest_first(const void *a, const void *b)
{
    const double x = ((const sum *)a)->ns, y = ((const sum *)b)->ns;
    return (x < y) - (x > y);
}

static bool draw_steps(const qn_live *l, qn_by by, screen *s, qn_err *e)
{
    sums t = { 0 };
    char head[200];
    const bool ok = sum_up(l->run, by, &t, e);
    if (ok && t.list.n) {
        qsort(t.list.p, t.list.n, sizeof *t.list.p, hottest_first);
        line(s, "%s", "");
        snprintf(head, sizeof head, "%-34s %7s %11s %10s %10s %8s %9s", qn_by_names[by], "share", "ms", "launches",
                 "avg us", "GB/s", "GFLOP/s");
        title(s, head);
    }
    for (size_t i = 0; ok && i < t.list.n && s->left > 1; i++) {
        const sum *x = &t.list.p[i];
        char name[64];
        line(s, "%-34.34s %6.1f%% %11.2f %10llu %10.2f %8.2f %9.2f", clean(x->name, name), t.all > 0 ? 100 * x->ns / t.all : 0,
             x->ns * 1e-6, (unsigned long long)x->n, x->ns * 1e-3 / (double)x->n, x->ns > 0 ? x->bytes / x->ns : 0,
             x->ns > 0 ? x->flops / x->ns : 0);
    }
    qn_free(t.list.p);
    qn_table_close(&t.index);
    qn_arena_close(&t.names);
    return ok;
}

bool qn_live_draw(qn_live *l, const qn_reader_state *state, qn_by by, int width, int height, bool color, qn_buf *out, qn_err *e)
{
    screen s = { .out = out, .width = width, .left = height, .color = color };
    if (!qn_fill_finish(l->fill, state, e)) return false;
    draw_head(l, &s);
    draw_speed(l, &s);
    draw_phases(l, &s);
    draw_memory(l, &s);
    if (l->run->lost || l->run->bad)
        line(&s, "damage   %llu events lost, %llu damaged records", (unsigned long long)l->run->lost,
             (unsigned long long)l->run->bad);
    if (!draw_steps(l, by, &s, e)) return false;
    return !out->failed || qn_fail(e, QN_ENOMEM, "not enough memory for the screen");
}
