/* html.c - qn_format_html: runs and their analyses as one JSON value inside the page that draws it (page.h). Its
 * one idea: the page computes no figure; what it shows comes from the analysis, and what it draws (spans, tokens,
 * totals of series) from the run. Long lists are thinned so that a page stays a page: disturbed tokens always
 * stay. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "report/page.h"
#include "report/report.h"

enum { MOST_TOKENS = 4000, MOST_PASSES = 64 }; /* dots that a drawing can tell apart; passes on the timeline */

/* Text that should be a JSON object, as it is, if it is one: a trace may hold anything. */
static void put_object(qn_buf *b, const char *key, const char *text)
{
    qn_err ignored = { 0 };
    const size_t n = text ? strlen(text) : 0;
    yyjson_doc *doc = n ? qn_json_parse(text, n, 0, key, &ignored) : NULL;
    qn_put_key(b, key);
    if (doc && yyjson_is_obj(yyjson_doc_get_root(doc))) qn_buf_put(b, text, n);
    else qn_buf_puts(b, "null");
    if (ignored.code == QN_ENOMEM) b->failed = true;
    yyjson_doc_free(doc);
}

static void put_facts(qn_buf *b, const qn_run *r)
{
    const struct { const char *key, *value; } texts[] = {
        { "program", r->program }, { "commit", r->commit }, { "command", r->command }, { "started", r->started },
        { "level", r->level }, { "host", r->host }, { "os", r->os }, { "cpu", r->cpu }, { "device", r->device },
        { "isa", r->isa }, { "model", r->model }, { "model_path", r->model_path }, { "arch", r->arch }, { "type", r->type },
        { "hash", r->hash }, { "plan_hash", r->plan_hash }, { "status", r->status },
    };
    qn_put_key(b, "facts");
    qn_buf_putc(b, '{');
    for (size_t i = 0; i < QN_COUNT(texts); i++) qn_put_text(b, texts[i].key, texts[i].value);
    qn_put_real(b, "seed", (double)r->seed);
    qn_put_real(b, "cores", (double)r->cores);
    qn_put_real(b, "threads", (double)r->threads);
    qn_put_real(b, "layers", (double)r->layers);
    qn_put_int(b, "model_bytes", r->model_bytes);
    qn_put_int(b, "params", r->params);
    put_object(b, "settings", r->settings);
    qn_buf_putc(b, '}');
}

static void put_ceilings(qn_buf *b, const qn_run *r, const qn_analysis *a)
{
    qn_put_key(b, "ceilings");
    qn_buf_putc(b, '{');
    qn_put_real(b, "read_gbs", a->ceilings.read_gbs);
    qn_put_real(b, "read_small_gbs", r->read_small_gbs);
    qn_put_real(b, "f32_gflops", a->ceilings.f32);
    qn_put_real(b, "bf16_gflops", a->ceilings.bf16);
    qn_put_real(b, "int8_gops", a->ceilings.int8);
    qn_put_real(b, "barrier_us", r->barrier_us);
    qn_buf_putc(b, '}');
}

static void put_phases(qn_buf *b, const qn_analysis *a)
{
    qn_put_key(b, "phases");
    qn_buf_putc(b, '[');
    for (int i = 0; i < N_PHASES; i++) {
        const qn_phase_sum *p = &a->phases[i];
        qn_buf_puts(b, i ? ",{" : "{");
        qn_put_text(b, "phase", qn_phase_names[i]);
        qn_put_int(b, "ns", p->ns);
        qn_put_real(b, "share", p->share);
        qn_put_int(b, "tokens", p->tokens);
        qn_put_int(b, "passes", p->passes);
        qn_put_real(b, "tok_s", p->tok_s);
        qn_put_stats(b, "token_ns", p->has_spread ? &p->token_ns : NULL);
        qn_put_int(b, "steps_ns", p->steps_ns);
        qn_put_int(b, "between_ns", p->between_ns);
        qn_put_real(b, "bytes", p->bytes);
        qn_put_real(b, "flops", p->flops);
        qn_buf_putc(b, '}');
    }
    qn_buf_putc(b, ']');
}

/* What the drawings need of each series, in the order that spans count in. */
static void put_series(qn_buf *b, const qn_run *r)
{
    qn_put_key(b, "series");
    qn_buf_putc(b, '[');
    for (size_t i = 0; i < r->series.n; i++) {
        const qn_series *s = &r->series.p[i];
        qn_buf_puts(b, i ? ",[" : "[");
        qn_put_string(b, qn_phase_names[s->phase]);
        qn_put_string(b, s->kernel);
        qn_put_string(b, s->op);
        qn_put_string(b, s->role);
        qn_put_string(b, s->type);
        qn_put_number(b, s->layer);
        qn_put_number(b, (double)s->n);
        qn_put_number(b, (double)s->total_ns);
        qn_put_number(b, (double)s->wait_ns);
        qn_put_number(b, s->bytes);
        qn_put_number(b, s->flops);
        qn_buf_putc(b, ']');
    }
    qn_buf_putc(b, ']');
}

static void put_row(qn_buf *b, const qn_row *w)
{
    qn_put_text(b, "name", w->name);
    qn_put_text(b, "kernel", w->kernel);
    qn_put_text(b, "op", w->op);
    qn_put_text(b, "role", w->role);
    qn_put_text(b, "phase", qn_phase_names[w->phase]);
    qn_put_int(b, "expected", w->expected);
    qn_put_int(b, "n", w->n);
    qn_put_int(b, "total_ns", w->total_ns);
    qn_put_real(b, "share", w->share);
    qn_put_real(b, "avg_ns", w->avg_ns);
    qn_put_flag(b, "has_spread", w->has_spread);
    qn_put_real(b, "p50_ns", w->p50_ns);
    qn_put_real(b, "p95_ns", w->p95_ns);
    qn_put_real(b, "p99_ns", w->p99_ns);
    qn_put_int(b, "max_ns", w->max_ns);
    qn_put_int(b, "wait_ns", w->wait_ns);
    qn_put_real(b, "gbs", w->gbs);
    qn_put_real(b, "gflops", w->gflops);
    qn_put_text(b, "bound", qn_bound_names[w->bound]);
    qn_put_real(b, "of_ceiling", w->of_ceiling);
}

/* The rows of every grouping, so that the page can switch between them without a sum of its own. */
static bool put_groupings(qn_buf *b, const qn_run *r, const qn_analysis_options *o, qn_err *e)
{
    static const qn_by all[] = { BY_kernel, BY_op, BY_role, BY_layer };
    qn_put_key(b, "by");
    qn_buf_putc(b, '{');
    for (size_t k = 0; k < QN_COUNT(all); k++) {
        qn_analysis a = { 0 };
        qn_analysis_options with = *o;
        with.by = all[k];
        const bool ok = qn_analysis_open(&a, r, &with, e);
        qn_put_key(b, qn_by_names[all[k]]);
        qn_buf_putc(b, '[');
        for (size_t i = 0; ok && i < a.rows.n; i++) {
            qn_buf_puts(b, i ? ",{" : "{");
            put_row(b, &a.rows.p[i]);
            qn_buf_putc(b, '}');
        }
        qn_buf_putc(b, ']');
        qn_analysis_close(&a);
        if (!ok) return false;
    }
    qn_buf_putc(b, '}');
    return true;
}

/* A token is disturbed if a pass that ended while it was waited for was. */
static bool is_disturbed(const qn_analysis *a, const qn_run_token *t)
{
    size_t lo = 0, hi = a->disturbed.n;
    while (lo < hi) { /* the first that ends behind the token before */
        const size_t mid = (lo + hi) / 2;
        const qn_run_pass *p = &a->run->passes.p[a->disturbed.p[mid].pass];
        if (p->t + (i64)p->ns > t->t - (i64)t->ns) hi = mid;
        else lo = mid + 1;
    }
    if (lo == a->disturbed.n || t->index == 0) return false;
    const qn_run_pass *p = &a->run->passes.p[a->disturbed.p[lo].pass];
    return p->t + (i64)p->ns <= t->t;
}

static void put_tokens(qn_buf *b, const qn_analysis *a)
{
    const qn_run *r = a->run;
    size_t k = 0;
    const size_t every = r->tokens.n / MOST_TOKENS + 1;
    qn_put_key(b, "tokens");
    qn_buf_putc(b, '[');
    for (size_t i = 0; i < r->tokens.n; i++) {
        const qn_run_token *t = &r->tokens.p[i];
        const bool disturbed = is_disturbed(a, t);
        if (i % every && !disturbed) continue;
        qn_buf_puts(b, b->p && b->n && b->p[b->n - 1] == ']' ? ",[" : "[");
        qn_put_number(b, (double)t->t);
        qn_put_number(b, (double)t->ns);
        qn_put_number(b, (double)t->index);
        qn_put_number(b, (double)t->pos);
        qn_put_number(b, disturbed);
        qn_buf_putc(b, ']');
    }
    qn_buf_putc(b, ']');
    const size_t every_pass = r->passes.n / MOST_TOKENS + 1;
    qn_put_key(b, "passes");
    qn_buf_putc(b, '[');
    for (size_t i = 0; i < r->passes.n; i++) {
        const qn_run_pass *p = &r->passes.p[i];
        const bool disturbed = k < a->disturbed.n && a->disturbed.p[k].pass == i;
        k += disturbed;
        if (i % every_pass && !disturbed) continue;
        qn_buf_puts(b, b->p && b->n && b->p[b->n - 1] == ']' ? ",[" : "[");
        qn_put_number(b, (double)p->t);
        qn_put_number(b, (double)p->ns);
        qn_put_number(b, (double)p->steps_ns);
        qn_put_string(b, qn_phase_names[p->phase]);
        qn_put_number(b, p->rows);
        qn_put_number(b, (double)p->pos);
        qn_put_number(b, disturbed);
        qn_put_number(b, p->seqs);
        qn_buf_putc(b, ']');
    }
    qn_buf_putc(b, ']');
}

static const qn_run_pass *find_pass(const qn_run *r, u32 number)
{
    for (size_t i = 0; i < r->passes.n; i++)
        if (r->passes.p[i].number == number) return &r->passes.p[i];
    return NULL;
}

/* Spans come pass by pass, in order of time; each pass counts from its own begin. */
static void put_spans(qn_buf *b, const qn_run *r)
{
    size_t shown = 0;
    qn_put_key(b, "spans");
    qn_buf_putc(b, '[');
    for (size_t i = 0; i < r->spans.n && shown < MOST_PASSES; shown++) {
        const u32 pass = r->spans.p[i].pass;
        const qn_run_pass *p = find_pass(r, pass);
        const i64 begin = p && p->t <= r->spans.p[i].t ? p->t : r->spans.p[i].t;
        qn_buf_puts(b, shown ? ",{" : "{");
        qn_put_text(b, "phase", p ? qn_phase_names[p->phase] : "");
        qn_put_real(b, "rows", p ? p->rows : 0);
        qn_put_real(b, "pos", p ? (double)p->pos : 0);
        qn_put_int(b, "ns", p ? p->ns : 0);
        qn_put_key(b, "steps");
        qn_buf_putc(b, '[');
        for (size_t first = i; i < r->spans.n && r->spans.p[i].pass == pass; i++) {
            const qn_run_span *s = &r->spans.p[i];
            qn_buf_printf(b, "%s[%lld,%llu,%u]", i > first ? "," : "", (long long)(s->t - begin), (unsigned long long)s->ns,
                          s->series);
        }
        qn_buf_puts(b, "]}");
    }
    qn_buf_putc(b, ']');
}

static void put_growth(qn_buf *b, const qn_analysis *a)
{
    static const char *const kinds[] = { [GROWTH_unknown] = "unknown", [GROWTH_flat] = "flat", [GROWTH_grows] = "grows",
                                         [GROWTH_shrinks] = "shrinks" };
    qn_put_key(b, "growth");
    qn_buf_putc(b, '[');
    for (size_t i = 0; i < a->growth.n; i++) {
        const qn_growth *g = &a->growth.p[i];
        if (g->kind == GROWTH_unknown) continue;
        qn_buf_puts(b, b->p && b->n && b->p[b->n - 1] == '}' ? ",{" : "{");
        qn_put_text(b, "name", g->name);
        qn_put_text(b, "kind", kinds[g->kind]);
        qn_put_real(b, "x_lo", g->x_lo);
        qn_put_real(b, "x_hi", g->x_hi);
        qn_put_real(b, "at_zero_ns", g->at_zero_ns);
        qn_put_real(b, "slope_ns", g->slope_ns);
        qn_put_real(b, "error_ns", g->error_ns);
        qn_put_real(b, "r2", g->r2);
        qn_put_real(b, "first_ns", g->first_ns);
        qn_put_real(b, "last_ns", g->last_ns);
        qn_put_text(b, "verdict", g->verdict);
        qn_buf_putc(b, '}');
    }
    qn_buf_putc(b, ']');
}

static void put_memory(qn_buf *b, const qn_run *r)
{
    qn_put_key(b, "memory");
    qn_buf_putc(b, '[');
    for (size_t i = 0; i < r->memory.n; i++) {
        const qn_run_memory *m = &r->memory.p[i];
        qn_buf_puts(b, i ? ",{" : "{");
        qn_put_text(b, "when", m->when);
        put_object(b, "parts", m->parts);
        qn_put_int(b, "weights", m->weights);
        qn_put_int(b, "kv", m->kv);
        qn_put_int(b, "kv_used", m->kv_used);
        qn_put_int(b, "scratch", m->scratch);
        qn_put_int(b, "resident", m->resident);
        qn_put_int(b, "peak", m->peak);
        qn_buf_putc(b, '}');
    }
    qn_buf_putc(b, ']');
    qn_put_key(b, "loads");
    qn_buf_putc(b, '[');
    for (size_t i = 0; i < r->loads.n; i++) {
        qn_buf_puts(b, i ? ",{" : "{");
        qn_put_text(b, "phase", r->loads.p[i].phase);
        qn_put_int(b, "ns", r->loads.p[i].ns);
        qn_put_int(b, "bytes", r->loads.p[i].bytes);
        qn_buf_putc(b, '}');
    }
    qn_buf_putc(b, ']');
}

static void put_words(qn_buf *b, const qn_run *r, const qn_analysis *a)
{
    qn_put_key(b, "advice");
    qn_buf_putc(b, '[');
    for (size_t i = 0; i < a->advice.n; i++) {
        qn_buf_puts(b, i ? ",{" : "{");
        qn_put_real(b, "cost_ns", a->advice.p[i].cost_ns);
        qn_put_text(b, "what", a->advice.p[i].what);
        qn_put_text(b, "try_this", a->advice.p[i].try_this);
        qn_buf_putc(b, '}');
    }
    qn_buf_putc(b, ']');
    qn_put_key(b, "notes");
    qn_buf_putc(b, '[');
    for (size_t i = 0; i < a->remarks.n; i++) qn_put_string(b, a->remarks.p[i].text);
    for (size_t i = 0; i < r->notes.n; i++) qn_put_string(b, r->notes.p[i]);
    qn_buf_putc(b, ']');
    qn_put_key(b, "choices");
    qn_buf_putc(b, '[');
    for (size_t i = 0; i < a->choices.n; i++) {
        const qn_choice_group *c = &a->choices.p[i];
        qn_buf_puts(b, i ? ",{" : "{");
        qn_put_text(b, "op", c->op);
        qn_put_text(b, "role", c->role);
        qn_put_text(b, "rows", c->rows);
        qn_put_text(b, "kernel", c->kernel);
        qn_put_text(b, "reason", c->reason);
        qn_put_text(b, "rejected", c->rejected);
        qn_put_int(b, "steps", c->steps);
        qn_buf_putc(b, '}');
    }
    qn_buf_putc(b, ']');
}

static void put_sums(qn_buf *b, const qn_run *r, const qn_analysis *a)
{
    qn_put_int(b, "wall_ns", a->wall_ns);
    qn_put_flag(b, "ended", r->ended);
    qn_put_int(b, "lost", r->lost);
    qn_put_int(b, "unknown", r->unknown);
    qn_put_int(b, "bad", r->bad);
    qn_put_int(b, "ignored", r->ignored);
    qn_put_int(b, "first_ns", a->first_ns);
    qn_put_stats(b, "gaps", a->has_gaps ? &a->gaps : NULL);
    qn_put_real(b, "disturbed_ns", a->disturbed_ns);
    qn_put_key(b, "implied");
    if (!a->implied.known) {
        qn_buf_puts(b, "null");
        return;
    }
    qn_buf_putc(b, '{');
    qn_put_real(b, "tok_s", a->implied.tok_s);
    qn_put_real(b, "of_roof", a->implied.of_roof);
    qn_put_real(b, "bandwidth_gbs", a->implied.bandwidth_gbs);
    qn_buf_putc(b, '}');
}

static bool put_run(qn_buf *b, const qn_run *r, size_t i, size_t n, const qn_analysis_options *o, qn_err *e)
{
    qn_analysis a = { 0 };
    qn_buf name = { 0 };
    bool ok = qn_analysis_open(&a, r, o, e);
    if (ok) {
        const char *what = r->type && r->type[0] ? r->type : r->model ? r->model : "";
        if (n > 1) qn_buf_printf(&name, "%zu. %.80s", i + 1, what[0] ? what : qn_path_tail(r->path));
        qn_put_text(b, "name", name.p ? name.p : r->model);
        qn_put_text(b, "source", r->source);
        qn_put_text(b, "path", r->path);
        put_facts(b, r);
        put_ceilings(b, r, &a);
        put_sums(b, r, &a);
        put_phases(b, &a);
        put_series(b, r);
        ok = put_groupings(b, r, o, e);
        put_tokens(b, &a);
        put_spans(b, r);
        put_growth(b, &a);
        put_memory(b, r);
        put_words(b, r, &a);
    }
    b->failed = b->failed || name.failed;
    qn_buf_close(&name);
    qn_analysis_close(&a);
    return ok;
}

bool qn_format_html(const qn_run *const *runs, size_t n, const qn_report_options *o, qn_buf *out, qn_err *e)
{
    qn_buf data = { 0 };
    bool ok = true;
    qn_buf_puts(&data, "{\"kind\":\"report\",\"runs\":[");
    for (size_t i = 0; ok && i < n; i++) {
        qn_buf_puts(&data, i ? ",{" : "{");
        ok = put_run(&data, runs[i], i, n, &o->analysis, e);
        qn_buf_putc(&data, '}');
    }
    qn_buf_puts(&data, "]}");
    if (ok) qn_page_write(n && runs[0]->model && runs[0]->model[0] ? runs[0]->model : "quern report", &data, out);
    qn_buf_close(&data);
    if (ok && out->failed) return qn_fail(e, QN_ENOMEM, "not enough memory for the page");
    return ok;
}
