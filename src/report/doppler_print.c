/* doppler_print.c - `--format doppler`: a run as Doppler's debug command prints it. For prefill and for every batch
 * of decode passes a table of labels, summed over the batch; then [Perf], [ok] and [metrics]. Our own traces are read
 * again, step by step, because a run keeps no table for every pass; logs of Doppler itself have one sample a batch in
 * each series. Its rules are kept where one may wonder about them: [Perf] divides by the tokens after the first,
 * [metrics] by all. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/table.h"
#include "report/import.h"
#include "report/plan_names.h"
#include "report/report.h"

#define RULE_5 "\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80"
#define RULE RULE_5 RULE_5 RULE_5 RULE_5 RULE_5 RULE_5 RULE_5 RULE_5 RULE_5 RULE_5

/* ---- one table ----------------------------------------------------------------------------------------------------- */

/* Labels stay from table to table; those of the table that is being made have their place in `now`. */
typedef struct label { const char *name; double ns; bool used; } label;
typedef struct sheet {
    QN_RUN_LIST(label) labels;
    QN_RUN_LIST(u32) now;       /* in the order in which they came */
    qn_table seen;
    qn_arena arena;
} sheet;

static void close_sheet(sheet *s)
{
    qn_free(s->labels.p);
    qn_free(s->now.p);
    qn_table_close(&s->seen);
    qn_arena_close(&s->arena);
}

/* The label of that name; QN_NONE: no memory. */
static u32 label_of(sheet *s, const char *name, qn_err *e)
{
    const u32 at = qn_table_get(&s->seen, name, strlen(name));
    if (at != QN_NONE) return at;
    const char *copy = qn_arena_strndup(&s->arena, name, strlen(name), e);
    label *l = copy ? QN_RUN_PUSH(&s->labels, e) : NULL;
    if (!l) return QN_NONE;
    l->name = copy;
    return qn_table_put(&s->seen, copy, strlen(copy), (u32)(s->labels.n - 1), e);
}

static bool add_time(sheet *s, u32 at, double ns, qn_err *e)
{
    if (at == QN_NONE) return false;
    label *l = &s->labels.p[at];
    u32 *place = l->used ? NULL : QN_RUN_PUSH(&s->now, e);
    if (place) *place = at;
    else if (!l->used) return false;
    l->used = true;
    l->ns += ns;
    return true;
}

/* Longest first, those of equal times in the order in which they came: few labels, and mostly in order from the table before. */
static void sort_by_time(sheet *s)
{
    for (size_t i = 1; i < s->now.n; i++) {
        const u32 at = s->now.p[i];
        size_t k = i;
        for (; k && s->labels.p[s->now.p[k - 1]].ns < s->labels.p[at].ns; k--) s->now.p[k] = s->now.p[k - 1];
        s->now.p[k] = at;
    }
}

static void put_sheet(sheet *s, const char *title, double at_ms, qn_buf *out)
{
    double total = 0;
    for (size_t i = 0; i < s->now.n; i++) total += s->labels.p[s->now.p[i]].ns;
    sort_by_time(s);
    qn_buf_printf(out, "[browser:warning] [%.1fms][Profile] %s:\n", at_ms, title);
    qn_buf_printf(out, "[browser:warning] [%.1fms][Profile] GPU Profile Report\n", at_ms);
    qn_buf_printf(out, RULE "\n%-25s%12s%8s\n" RULE "\n", "Kernel", "Time (ms)", "%");
    for (size_t i = 0; i < s->now.n; i++) {
        label *l = &s->labels.p[s->now.p[i]];
        qn_buf_printf(out, "%-25s%12.2f%8.1f\n", l->name, l->ns / 1e6, total > 0 ? 100 * l->ns / total : 0);
        l->ns = 0;
        l->used = false;
    }
    qn_buf_printf(out, RULE "\n%-25s%12.2f%8.1f\n\n", "TOTAL", total / 1e6, total > 0 ? 100.0 : 0);
    s->now.n = 0;
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

typedef struct told { u32 label; u32 selected; } told; /* label + 1, 0: not made yet; a bit for each choice that was told of */
typedef struct teller {
    const qn_report_options *o;
    qn_buf *out;
    QN_RUN_LIST(told) steps;
    sheet now;
    qn_arena arena;
    qn_table selected;          /* op and kernel that were told of */
    i64 pass;                   /* whose steps are in the sheet; 0: none */
    i64 done;                   /* decode passes in the sheet that are complete */
    i64 rows;
    bool decode;
    double end_ms;
} teller;

static bool flush(teller *t, qn_err *e)
{
    char title[48];
    if (!t->now.now.n) return true;
    if (t->decode) snprintf(title, sizeof title, "Batch decode (N=%lld)", (long long)t->rows);
    else snprintf(title, sizeof title, "Prefill (prefill)");
    put_sheet(&t->now, title, t->end_ms, t->out);
    t->done = t->rows = 0;
    return qn_report_flush(t->o, t->out, e);
}

/* A kernel is told of when it is first used for an op. */
static bool tell_selected(teller *t, told *w, const qn_plan_step *s, i64 rows, double ms, qn_err *e)
{
    const int i = qn_plan_choice_for(s, rows);
    if (i < 0 || w->selected & 1u << i) return true;
    w->selected |= 1u << i;
    const size_t n = strlen(s->op) + strlen(s->choice[i].kernel) + 2;
    char *key = qn_arena_new(&t->arena, n, e);
    if (!key) return false;
    snprintf(key, n, "%s %s", s->op, s->choice[i].kernel);
    if (qn_table_get(&t->selected, key, n - 1) != QN_NONE) return true;
    if (qn_table_put(&t->selected, key, n - 1, 1, e) == QN_NONE) return false;
    qn_buf_printf(t->out, "[browser:log] [%.1fms][KernelSelect] %s variant=%s reason=%s\n", ms, s->op, s->choice[i].kernel,
                  s->choice[i].reason);
    return true;
}

static bool tell_step(teller *t, const qn_plan_names *names, i64 when, const qn_ev_step *p, qn_err *e)
{
    const bool decode = p->phase.n == 6 && !memcmp(p->phase.p, "decode", 6);
    const i64 batch = t->o->batch > 1 ? t->o->batch : 1;
    const qn_plan_step *s = qn_plan_names_get(names, p->step);
    char text[128];
    if (p->ns < 0) return true;
    if (p->pass != t->pass) {
        if ((t->decode != decode || !decode || t->done >= batch) && !flush(t, e)) return false;
        t->pass = p->pass;
        t->decode = decode;
    }
    t->end_ms = (double)(when + p->ns) / 1e6;
    if (!*s->op) return add_time(&t->now, label_of(&t->now, "step", e), (double)p->ns, e);
    while (t->steps.n <= (size_t)p->step)
        if (!QN_RUN_PUSH(&t->steps, e)) return false;
    told *w = &t->steps.p[p->step];
    if (!tell_selected(t, w, s, p->rows, (double)when / 1e6, e)) return false;
    if (!w->label) {
        make_label(s->op, s->role, s->layer, text);
        w->label = label_of(&t->now, text, e) + 1;
    }
    return add_time(&t->now, w->label - 1, (double)p->ns, e);
}

static bool tell_event(void *user, const qn_plan_names *names, const qn_event *ev, qn_err *e)
{
    teller *t = user;
    switch (ev->kind) {
    case QN_EV_step: return tell_step(t, names, ev->t, &ev->step, e);
    case QN_EV_pass:
        if (ev->pass.pass == t->pass && t->now.now.n) t->done++, t->rows += ev->pass.rows;
        return true;
    case QN_EV_sample:
        if (ev->sample.pass != t->pass || !t->now.now.n || ev->sample.ns < 0) return true;
        t->end_ms = (double)(ev->t + ev->sample.ns) / 1e6;
        return add_time(&t->now, label_of(&t->now, "sample", e), (double)ev->sample.ns, e);
    default: return true;
    }
}

static bool from_trace(const qn_run *r, const qn_report_options *o, qn_buf *out, qn_err *e)
{
    teller t = { .o = o, .out = out };
    const bool ok = qn_trace_each(r->path, tell_event, &t, e) && flush(&t, e);
    close_sheet(&t.now);
    qn_free(t.steps.p);
    qn_table_close(&t.selected);
    qn_arena_close(&t.arena);
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

static bool put_phase(const qn_run *r, qn_phase phase, const qn_report_options *o, qn_buf *out, qn_err *e)
{
    u64 passes = 1;
    sheet s = { 0 };
    const bool each = has_passes(r, phase, &passes), doppler = !strcmp(r->source, "doppler");
    size_t pass = 0;
    bool ok = true;
    for (u64 k = 0; ok && k < passes; k++) {
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
            if (one->phase == phase) ok = add_time(&s, label_of(&s, series_label(one, doppler, room), e),
                                                   each ? (double)one->ns[k] : (double)one->total_ns, e);
        }
        if (phase == PHASE_decode) snprintf(title, sizeof title, "Batch decode (N=%llu)", (unsigned long long)rows);
        else snprintf(title, sizeof title, "Prefill (prefill)");
        if (ok && s.now.n) put_sheet(&s, title, ms, out);
        ok = ok && qn_report_flush(o, out, e);
    }
    close_sheet(&s);
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
        else ok = put_phase(r, PHASE_prefill, o, out, e) && put_phase(r, PHASE_decode, o, out, e);
        for (size_t k = 0; ok && k < r->requests.n; k++) put_request(r, &r->requests.p[k], out);
    }
    return ok;
}
