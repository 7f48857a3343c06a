/* doppler_print.c - `--format doppler`: a run as Doppler's debug command prints it. For prefill and for every batch
 * of decode passes a table of labels, summed over the batch; then [Perf], [ok] and [metrics]. Our own traces are read
 * again, step by step, because a run keeps no table for every pass; logs of Doppler itself have one sample a batch in
 * each series. Its rules are kept where one may wonder about them: [Perf] divides by the tokens after the first,
 * [metrics] by all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/table.h"
#include "report/import.h"
#include "report/report.h"
#include "trace/reader.h"

enum { MOST_STEPS = 65536, RANGES = 4 };
#define RULE_5 "\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80"
#define RULE RULE_5 RULE_5 RULE_5 RULE_5 RULE_5 RULE_5 RULE_5 RULE_5 RULE_5 RULE_5

/* ---- one table ----------------------------------------------------------------------------------------------------- */

typedef struct label { const char *name; double ns; u32 order; } label;
typedef struct sheet {
    struct { label *p; size_t n, cap; } labels;
    qn_table seen;
    qn_arena arena;
} sheet;

static void close_sheet(sheet *s)
{
    qn_free(s->labels.p);
    qn_table_close(&s->seen);
    qn_arena_close(&s->arena);
    *s = (sheet){ 0 };
}

static bool add_time(sheet *s, const char *name, double ns, qn_err *e)
{
    u32 at = qn_table_get(&s->seen, name, strlen(name));
    if (at == QN_NONE) {
        const char *copy = qn_arena_strndup(&s->arena, name, strlen(name), e);
        label *l = copy ? QN_RUN_PUSH(&s->labels, e) : NULL;
        if (!l) return false;
        at = (u32)(s->labels.n - 1);
        *l = (label){ .name = copy, .order = at };
        if (qn_table_put(&s->seen, copy, strlen(copy), at, e) == QN_NONE) return false;
    }
    s->labels.p[at].ns += ns;
    return true;
}

static int by_time(const void *x, const void *y)
{
    const label *a = x, *b = y;
    if (a->ns != b->ns) return a->ns < b->ns ? 1 : -1;
    return a->order < b->order ? -1 : 1;
}

static void put_sheet(sheet *s, const char *title, double at_ms, qn_buf *out)
{
    double total = 0;
    for (size_t i = 0; i < s->labels.n; i++) total += s->labels.p[i].ns;
    if (s->labels.n) qsort(s->labels.p, s->labels.n, sizeof *s->labels.p, by_time);
    qn_buf_printf(out, "[browser:warning] [%.1fms][Profile] %s:\n", at_ms, title);
    qn_buf_printf(out, "[browser:warning] [%.1fms][Profile] GPU Profile Report\n", at_ms);
    qn_buf_printf(out, RULE "\n%-25s%12s%8s\n" RULE "\n", "Kernel", "Time (ms)", "%");
    for (size_t i = 0; i < s->labels.n; i++) {
        const label *l = &s->labels.p[i];
        qn_buf_printf(out, "%-25s%12.2f%8.1f\n", l->name, l->ns / 1e6, total > 0 ? 100 * l->ns / total : 0);
    }
    qn_buf_printf(out, RULE "\n%-25s%12.2f%8.1f\n\n", "TOTAL", total / 1e6, total > 0 ? 100.0 : 0);
    close_sheet(s);
}

/* ---- labels -------------------------------------------------------------------------------------------------------- */

static const char *doppler_role(const char *role)
{
    static const char *const names[][2] = { { "attn_q", "q_proj" },        { "attn_k", "k_proj" },  { "attn_v", "v_proj" },
                                            { "attn_output", "o_proj" },   { "output", "lm_head" },
                                                { "attn_qkv", "qkv_proj" } };
    for (size_t i = 0; i < QN_COUNT(names); i++)
        if (!strcmp(role, names[i][0])) return names[i][1];
    return role;
}

/* Products by weights are told apart by role and layer, everything else is summed over the layers. */
static void make_label(const char *op, const char *role, int layer, char out[128])
{
    const char *name = strstr(op, "linear") ? "matmul" : !strcmp(op, "attend") ? "attention" : !strcmp(op, "embed")
        ? "gather" : op;
    const char *part = doppler_role(qn_role_part(role));
    if (strcmp(name, "matmul") || !*part) snprintf(out, 128, "%s", *name ? name : *part ? part : "step");
    else if (layer < 0) snprintf(out, 128, "%s:%s", name, part);
    else snprintf(out, 128, "%s:%s:L%d", name, part, layer);
}

/* ---- from our own trace -------------------------------------------------------------------------------------------- */

typedef struct told { char *label; const char *op, *kernel[RANGES], *reason[RANGES]; i64 lo[RANGES],
                      hi[RANGES]; int n; } told;
typedef struct teller {
    const qn_report_options *o;
    qn_buf *out;
    qn_arena arena;
    struct { told *p; size_t n, cap; } steps;
    sheet now;
    qn_table selected;          /* op and kernel that were told of */
    i64 pass;                   /* whose steps are in the sheet; 0: none */
    i64 done;                   /* decode passes in the sheet that are complete */
    i64 rows;
    bool decode;
    double end_ms;
} teller;

static told *step_at(teller *t, i64 number, qn_err *e)
{
    if (number < 0 || number >= MOST_STEPS) return NULL;
    while (t->steps.n <= (size_t)number)
        if (!QN_RUN_PUSH(&t->steps, e)) return NULL;
    return &t->steps.p[number];
}

static bool tell_plan(teller *t, const qn_ev_plan *p, qn_err *e)
{
    char text[128];
    told *s = step_at(t, p->step, e);
    if (!s) return p->step < 0 || p->step >= MOST_STEPS;
    char *op = qn_arena_strndup(&t->arena, p->op.p ? p->op.p : "", p->op.n, e);
    char *role = op ? qn_arena_strndup(&t->arena, p->role.p ? p->role.p : "", p->role.n, e) : NULL;
    if (!role) return false;
    make_label(op, role, p->layer > INT32_MAX ? -1 : (int)p->layer, text);
    s->op = op;
    s->label = qn_arena_strndup(&t->arena, text, strlen(text), e);
    return s->label != NULL;
}

static bool tell_choice(teller *t, const qn_ev_choice *c, qn_err *e)
{
    told *s = step_at(t, c->step, e);
    if (!s) return c->step < 0 || c->step >= MOST_STEPS;
    if (s->n == RANGES) return true;
    qn_rows_parse(c->rows, &s->lo[s->n], &s->hi[s->n]);
    s->kernel[s->n] = qn_arena_strndup(&t->arena, c->kernel.p ? c->kernel.p : "", c->kernel.n, e);
    s->reason[s->n] = s->kernel[s->n] ? qn_arena_strndup(&t->arena, c->reason.p ? c->reason.p : "", c->reason.n, e) : NULL;
    return s->reason[s->n++] != NULL;
}

static void flush(teller *t)
{
    char title[48];
    if (!t->now.labels.n) return;
    if (t->decode) snprintf(title, sizeof title, "Batch decode (N=%lld)", (long long)t->rows);
    else snprintf(title, sizeof title, "Prefill (prefill)");
    put_sheet(&t->now, title, t->end_ms, t->out);
    t->done = t->rows = 0;
}

static bool tell_selected(teller *t, const told *s, i64 rows, double ms, qn_err *e)
{
    for (int i = 0; i < s->n; i++) {
        if (rows < s->lo[i] || rows > s->hi[i]) continue;
        const size_t n = strlen(s->op) + strlen(s->kernel[i]) + 2;
        char *key = qn_arena_new(&t->arena, n, e);
        if (!key) return false;
        snprintf(key, n, "%s %s", s->op, s->kernel[i]);
        if (qn_table_get(&t->selected, key, n - 1) != QN_NONE) return true;
        if (qn_table_put(&t->selected, key, n - 1, 1, e) == QN_NONE) return false;
        qn_buf_printf(t->out, "[browser:log] [%.1fms][KernelSelect] %s variant=%s reason=%s\n", ms, s->op, s->kernel[i],
                      s->reason[i]);
        return true;
    }
    return true;
}

static bool tell_step(teller *t, i64 when, const qn_ev_step *p, qn_err *e)
{
    const bool decode = p->phase.n == 6 && !memcmp(p->phase.p, "decode", 6);
    const i64 batch = t->o->batch > 1 ? t->o->batch : 1;
    if (p->ns < 0) return true;
    if (p->pass != t->pass) {
        if (t->decode != decode || !decode || t->done >= batch) flush(t);
        t->pass = p->pass;
        t->decode = decode;
    }
    const told *s = p->step >= 0 && (size_t)p->step < t->steps.n ? &t->steps.p[p->step] : NULL;
    if (s && s->op && !tell_selected(t, s, p->rows, (double)when / 1e6, e)) return false;
    t->end_ms = (double)(when + p->ns) / 1e6;
    return add_time(&t->now, s && s->label ? s->label : "step", (double)p->ns, e);
}

static bool tell_event(teller *t, const qn_event *ev, qn_err *e)
{
    switch (ev->kind) {
    case QN_EV_plan: return tell_plan(t, &ev->plan, e);
    case QN_EV_choice: return tell_choice(t, &ev->choice, e);
    case QN_EV_step: return tell_step(t, ev->t, &ev->step, e);
    case QN_EV_pass:
        if (ev->pass.pass == t->pass && t->now.labels.n) t->done++, t->rows += ev->pass.rows;
        return true;
    case QN_EV_sample:
        if (ev->sample.pass != t->pass || !t->now.labels.n || ev->sample.ns < 0) return true;
        t->end_ms = (double)(ev->t + ev->sample.ns) / 1e6;
        return add_time(&t->now, "sample", (double)ev->sample.ns, e);
    default: return true;
    }
}

static bool from_trace(const qn_run *r, const qn_report_options *o, qn_buf *out, qn_err *e)
{
    teller t = { .o = o, .out = out };
    qn_reader *reader = qn_reader_open(r->path, false, e);
    qn_event ev;
    bool ok = reader != NULL;
    for (int got; ok && (got = qn_reader_next(reader, &ev, e)) != 0;) ok = got == 1 && tell_event(&t, &ev, e);
    if (ok) flush(&t);
    close_sheet(&t.now);
    qn_free(t.steps.p);
    qn_table_close(&t.selected);
    qn_arena_close(&t.arena);
    qn_reader_close(reader);
    return ok;
}

/* ---- from a run ---------------------------------------------------------------------------------------------------- */

static const char *series_label(const qn_series *s, bool doppler, char out[128])
{
    if (doppler) qn_doppler_label(s, out, 128); /* its own label, whole */
    else make_label(*s->op ? s->op : s->kernel, s->role, s->layer, out);
    return out;
}

/* One sample for every pass of its phase in all series: sample i is pass i's. */
static bool has_passes(const qn_run *r, qn_phase phase, u64 *passes)
{
    u64 n = 0;
    for (size_t i = 0; i < r->passes.n; i++) n += r->passes.p[i].phase == phase;
    for (size_t i = 0; i < r->series.n; i++)
        if (r->series.p[i].phase == phase && r->series.p[i].n_samples != n) return false;
    if (n) *passes = n;
    return n > 0;
}

static bool put_phase(const qn_run *r, qn_phase phase, qn_buf *out, qn_err *e)
{
    u64 passes = 1;
    const bool each = has_passes(r, phase, &passes), doppler = !strcmp(r->source, "doppler");
    size_t pass = 0;
    bool ok = true;
    for (u64 k = 0; ok && k < passes; k++) {
        sheet s = { 0 };
        char title[48], room[128];
        u64 rows = r->phase_tokens[phase];
        double ms = (double)r->wall_ns / 1e6;
        for (; each && pass < r->passes.n && r->passes.p[pass].phase != phase; pass++) {}
        if (each && pass < r->passes.n) {
            rows = (u64)r->passes.p[pass].rows;
            ms = (double)(r->passes.p[pass].t + (i64)r->passes.p[pass].ns) / 1e6;
            pass++;
        }
        for (size_t i = 0; ok && i < r->series.n; i++) {
            const qn_series *one = &r->series.p[i];
            if (one->phase == phase) ok = add_time(&s, series_label(one, doppler, room), each ? (double)one->ns[k]
                                                   : (double)one->total_ns, e);
        }
        if (phase == PHASE_decode) snprintf(title, sizeof title, "Batch decode (N=%llu)", (unsigned long long)rows);
        else snprintf(title, sizeof title, "Prefill (prefill)");
        if (ok && s.labels.n) put_sheet(&s, title, ms, out);
        close_sheet(&s);
    }
    return ok;
}

/* ---- the closing lines --------------------------------------------------------------------------------------------- */

static double rate(double n, double ns) { return ns > 0 ? n * 1e9 / ns : 0; }

static void put_request(const qn_run *r, const qn_run_request *q, qn_buf *out)
{
    const double after = q->tokens > 0 ? (double)q->tokens - 1 : 0, fresh = (double)(q->prompt - q->cached);
    const bool good = !*r->status || !strcmp(r->status, "ok");
    qn_buf_printf(out, "[browser:log] [%.1fms][Perf] TTFT: %.0fms | Prefill: %.0fms | Decode: %.0fms "
                  "(%.0f tokens @ %.1f tok/s)\n",
                  (double)r->wall_ns / 1e6, (double)q->first_ns / 1e6, (double)q->prompt_ns / 1e6,
                      (double)q->decode_ns / 1e6, after,
                  rate(after, (double)q->decode_ns));
    qn_buf_printf(out, "[browser:log] [%.1fms][Pipeline] Unloaded\n", (double)r->wall_ns / 1e6);
    qn_buf_printf(out, "[%s] debug model=%s passed=%d failed=%d duration=%.1fms\n", good ? "ok" : "fail", r->model, good,
                  !good,
                  (double)r->wall_ns / 1e6);
    qn_buf_printf(out, "[metrics] prompt=\"(%lld tokens)\"\n", (long long)q->prompt);
    qn_buf_printf(out, "[metrics] load=%.1fms prefillTokens=%.0f decodeTokens=%lld maxTokens=%lld\n",
                  (double)r->phase_ns[PHASE_load] / 1e6,
                  fresh, (long long)q->tokens, (long long)q->tokens);
    qn_buf_printf(out, "[metrics] ttft=%.1fms prefill=%.1fms decode=%.1fms total=%.1fms\n", (double)q->first_ns / 1e6,
                  (double)q->prompt_ns / 1e6, (double)q->decode_ns / 1e6, (double)q->ns / 1e6);
    qn_buf_printf(out, "[metrics] tok/s total=%.2f prefill=%.2f decode=%.2f\n", rate((double)q->tokens, (double)q->ns),
                  rate(fresh, (double)q->prompt_ns), rate((double)q->tokens, (double)q->decode_ns));
}

bool qn_format_doppler(const qn_run *const *runs, size_t n, const qn_report_options *o, qn_buf *out, qn_err *e)
{
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        const qn_run *r = runs[i];
        if (!strcmp(r->source, "quern") && qn_is_file(r->path)) ok = from_trace(r, o, out, e);
        else ok = put_phase(r, PHASE_prefill, out, e) && put_phase(r, PHASE_decode, out, e);
        for (size_t k = 0; ok && k < r->requests.n; k++) put_request(r, &r->requests.p[k], out);
    }
    return ok;
}
