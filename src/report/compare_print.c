/* compare_print.c - a comparison as a document (report/doc.h: text, Markdown), as JSON, and as a page that shows
 * that JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/compare.h"
#include "report/doc.h"
#include "report/page.h"

static const qn_column phase_columns[] = {
    { "name", "phase", UNIT_text, 0, 0, false },          { "a_ns", "before ms", UNIT_ms, 3, 0, false },
    { "b_ns", "after ms", UNIT_ms, 3, 0, false },         { "change", "change", UNIT_share, 1, 0, false },
    { "diff_ns", "diff ms", UNIT_ms, 3, 3, false },       { "lo_ns", "from", UNIT_ms, 3, 2, false },
    { "hi_ns", "to", UNIT_ms, 3, 2, false },              { "n", "samples", UNIT_count, 0, 4, false },
    { "verdict", "verdict", UNIT_text, 0, 0, false },
};
static const qn_column step_columns[] = {
    { "name", "step", UNIT_text, 0, 0, false },           { "phase", "phase", UNIT_text, 0, 0, false },
    { "a_ns", "before us", UNIT_us, 2, 2, false },        { "b_ns", "after us", UNIT_us, 2, 2, false },
    { "change", "change", UNIT_share, 1, 0, false },      { "diff_ns", "diff us", UNIT_us, 2, 0, false },
    { "lo_ns", "from", UNIT_us, 2, 3, false },            { "hi_ns", "to", UNIT_us, 2, 3, false },
    { "cost_ns", "in all ms", UNIT_ms, 3, 1, false },     { "verdict", "verdict", UNIT_text, 0, 0, false },
};

static const char *verdict_of(const qn_delta *d)
{
    return d->regressed ? "regression" : d->verdict == VERDICT_unknown ? "no spread" : qn_verdict_names[d->verdict];
}

static void put_middle(qn_doc *d, const qn_delta *x)
{
    qn_doc_known(d, x->a_ns, x->in_a);
    qn_doc_known(d, x->b_ns, x->in_b);
    qn_doc_known(d, x->change, x->in_a && x->in_b);
    qn_doc_value(d, x->diff_ns);
    qn_doc_known(d, x->lo_ns, x->has_interval);
    qn_doc_known(d, x->hi_ns, x->has_interval);
}

static void put_versus(qn_doc *d, const qn_compare *c, const qn_versus *v, size_t number, int top)
{
    char a[80], b[80];
    char title[200];
    snprintf(title, sizeof title, "%zu. %s against %s%s", number, qn_run_title(v->b, b), qn_run_title(c->a, a),
             v->regressed ? ": slower" : "");
    const char *kept = qn_arena_strndup(&d->arena, title, strlen(title), NULL);
    if (!kept) d->failed = true;
    qn_doc_section_begin(d, "versus", kept ? kept : "");
    for (size_t i = 0; i < v->notes.n; i++) qn_doc_line(d, "%s", v->notes.p[i]);
    const bool tokens = c->a->phase_tokens[PHASE_decode] || c->a->phase_tokens[PHASE_prefill];
    qn_doc_table_begin(d, "phases", tokens ? "A token of each phase (load, tokenize: the whole)" : "The whole of each phase",
                       phase_columns, QN_COUNT(phase_columns));
    for (size_t i = 0; i < v->phases.n; i++) {
        const qn_delta *x = &v->phases.p[i];
        qn_doc_text(d, x->name);
        put_middle(d, x);
        qn_doc_value(d, (double)x->n);
        qn_doc_text(d, verdict_of(x));
    }
    qn_doc_table_begin(d, "steps", tokens ? "Steps, a token: what costs most first" : "Steps: what costs most first",
                       step_columns, QN_COUNT(step_columns));
    for (size_t i = 0; i < v->steps.n && (top < 0 || i < (size_t)top); i++) {
        const qn_delta *x = &v->steps.p[i];
        qn_doc_text(d, x->name);
        qn_doc_text(d, qn_phase_names[x->phase]);
        put_middle(d, x);
        qn_doc_value(d, x->cost_ns);
        qn_doc_text(d, verdict_of(x));
    }
}

/* ---- the data of the page, which is the JSON too */

static void put_deltas(qn_buf *b, const char *key, const qn_delta *d, size_t n)
{
    qn_put_key(b, key);
    qn_buf_putc(b, '[');
    for (size_t i = 0; i < n; i++, d++) {
        qn_buf_puts(b, i ? ",{" : "{");
        qn_put_text(b, "name", d->name);
        qn_put_text(b, "phase", qn_phase_names[d->phase]);
        qn_put_flag(b, "in_a", d->in_a);
        qn_put_flag(b, "in_b", d->in_b);
        qn_put_flag(b, "gates", d->gates);
        qn_put_flag(b, "has_interval", d->has_interval);
        qn_put_flag(b, "paired", d->paired);
        qn_put_flag(b, "regressed", d->regressed);
        qn_put_int(b, "n", d->n);
        qn_put_real(b, "a_ns", d->a_ns);
        qn_put_real(b, "b_ns", d->b_ns);
        qn_put_real(b, "diff_ns", d->diff_ns);
        qn_put_real(b, "lo_ns", d->lo_ns);
        qn_put_real(b, "hi_ns", d->hi_ns);
        qn_put_real(b, "change", d->change);
        qn_put_real(b, "cost_ns", d->cost_ns);
        qn_put_text(b, "verdict", qn_verdict_names[d->verdict]);
        qn_buf_putc(b, '}');
    }
    qn_buf_putc(b, ']');
}

static void put_data(const qn_compare *c, qn_buf *b)
{
    char label[80];
    qn_buf_puts(b, "{\"kind\":\"compare\"");
    qn_put_text(b, "model", c->a->model);
    qn_put_text(b, "base", qn_run_title(c->a, label));
    qn_put_text(b, "by", qn_by_names[c->by]);
    qn_put_real(b, "threshold", c->threshold);
    qn_put_flag(b, "regressed", c->regressed);
    qn_put_key(b, "others");
    qn_buf_putc(b, '[');
    for (size_t i = 0; i < c->others.n; i++) {
        const qn_versus *v = &c->others.p[i];
        qn_buf_puts(b, i ? ",{" : "{");
        qn_put_text(b, "name", qn_run_title(v->b, label));
        qn_put_flag(b, "regressed", v->regressed);
        qn_put_key(b, "notes");
        qn_buf_putc(b, '[');
        for (size_t k = 0; k < v->notes.n; k++) qn_put_string(b, v->notes.p[k]);
        qn_buf_putc(b, ']');
        put_deltas(b, "phases", v->phases.p, v->phases.n);
        put_deltas(b, "steps", v->steps.p, v->steps.n);
        qn_buf_putc(b, '}');
    }
    qn_buf_puts(b, "]}\n");
}

static void write_page(const qn_compare *c, qn_buf *out)
{
    qn_buf data = { 0 };
    put_data(c, &data);
    qn_page_write("quern compare", &data, out);
    qn_buf_close(&data);
}

bool qn_compare_write(const qn_compare *c, qn_compare_format format, int top, int width, bool color, qn_buf *out, qn_err *e)
{
    qn_doc d = { 0 };
    if (format == COMPARE_html) write_page(c, out);
    else if (format == COMPARE_json) put_data(c, out);
    else for (size_t i = 0; i < c->others.n; i++) put_versus(&d, c, &c->others.p[i], i + 1, top);
    if (format == COMPARE_text) qn_doc_to_text(&d, width, color, out);
    else if (format == COMPARE_markdown) qn_doc_to_markdown(&d, out);
    const bool ok = !d.failed && !out->failed;
    qn_doc_close(&d);
    return ok || qn_fail(e, QN_ENOMEM, "not enough memory for the comparison");
}
