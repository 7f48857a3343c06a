/* report.c - analyses each run, lets the sections fill a document, and hands it to the renderer of the format.
 * Formats of other programs have their own files. */
#include "report/report.h"

#include <string.h>

#include "report/sections.h"

#define MUCH ((size_t)1 << 20)

const char *const qn_format_names[N_FORMATS] = {
#define FORMAT(name, doc) #name,
#include "report/formats.def"
#undef FORMAT
};

const char qn_format_choices[] =
#define FORMAT(name, doc) "|" #name
#include "report/formats.def"
#undef FORMAT
    ;

typedef struct section { const char *name, *title; void (*fill)(const qn_analysis *, const qn_report_options *,
                                                                qn_doc *); } section;
static const section sections[] = {
#define SECTION(name, title) { #name, title, qn_section_##name },
#include "report/sections.def"
#undef SECTION
};

/* Is name one of the words of list? */
static bool listed(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *p = list; *p;) {
        const size_t len = strcspn(p, ",");
        if (len == n && !memcmp(p, name, n)) return true;
        p += len + (p[len] == ',');
    }
    return false;
}

static bool check_sections(const char *list, qn_err *e)
{
    for (const char *p = list; *p;) {
        const size_t len = strcspn(p, ",");
        bool known = len == 6 && !memcmp(p, "across", 6);
        for (size_t i = 0; i < QN_COUNT(sections) && !known; i++)
            known = strlen(sections[i].name) == len && !memcmp(p, sections[i].name, len);
        if (!known) return qn_fail(e, QN_EUSAGE,
                                   "there is no section '%.*s'; there are run, phases, steps, growth, disturbed, ...",
                                   (int)qn_minz(len, 40), p);
        p += len + (p[len] == ',');
    }
    return true;
}

static const char *wanted(const qn_report_options *o)
{
    return o->sections ? o->sections : o->format == FORMAT_csv ? "steps" : NULL;
}

static void fill(const qn_analysis *a, const qn_report_options *o, qn_doc *d)
{
    for (size_t i = 0; i < QN_COUNT(sections); i++) {
        if (wanted(o) && !listed(wanted(o), sections[i].name)) continue;
        qn_doc_section_begin(d, sections[i].name, sections[i].title);
        sections[i].fill(a, o, d);
        if (!d->failed && qn_doc_empty(&d->sections.p[d->sections.n - 1])) d->sections.n--;
    }
}

static void render(const qn_doc *d, const qn_report_options *o, qn_buf *out)
{
    switch (o->format) {
    case FORMAT_markdown: qn_doc_to_markdown(d, out); break;
    case FORMAT_json: qn_doc_to_json(d, out); break;
    case FORMAT_csv: qn_doc_to_csv(d, out); break;
    default: qn_doc_to_text(d, o->width, o->color, out); break;
    }
}

static bool write_doc(qn_doc *d, const qn_report_options *o, qn_buf *out, qn_err *e)
{
    if (!d->failed) render(d, o, out);
    const bool ok = !d->failed && !out->failed;
    qn_doc_close(d);
    return ok || qn_fail(e, QN_ENOMEM, "not enough memory for the report");
}

static bool write_run(const qn_run *r, const qn_analysis *a, size_t n, const qn_report_options *o, qn_buf *out, qn_err *e)
{
    qn_doc d = { 0 };
    char label[96];
    if (n > 1 && o->format == FORMAT_text) qn_buf_printf(out, "%s==== %s ====\n", out->n ? "\n" : "",
                                                         qn_run_label(r, label));
    if (n > 1 && o->format == FORMAT_markdown) qn_buf_printf(out, "%s# %s\n", out->n ? "\n" : "", qn_run_label(r, label));
    fill(a, o, &d);
    return write_doc(&d, o, out, e);
}

static bool write_across(const qn_analysis *all, size_t n, const qn_report_options *o, qn_buf *out, qn_err *e)
{
    qn_doc d = { 0 };
    const qn_analysis **each = qn_new_array(n, sizeof *each, e);
    if (!each) return false;
    for (size_t i = 0; i < n; i++) each[i] = &all[i];
    qn_doc_section_begin(&d, "across", "Side by side");
    qn_section_across(each, n, &d);
    qn_free(each);
    return write_doc(&d, o, out, e);
}

/* The formats that sections fill: text, Markdown, JSON, CSV. */
static bool write_sections(const qn_run *const *runs, size_t n, const qn_report_options *o, qn_buf *out, qn_err *e)
{
    if (o->sections && !check_sections(o->sections, e)) return false;
    const bool json = o->format == FORMAT_json, across = n > 1 && (wanted(o) ? listed(wanted(o), "across") : true);
    qn_analysis *all = qn_new_array(n + 1, sizeof *all, e);
    bool ok = all != NULL;
    if (json) qn_buf_puts(out, "{\"runs\":[");
    for (size_t i = 0; ok && i < n; i++) {
        if (json && i) qn_buf_puts(out, ",\n");
        ok = qn_analysis_open(&all[i], runs[i], &o->analysis, e) && write_run(runs[i], &all[i], n, o, out, e);
    }
    if (json) qn_buf_puts(out, "]");
    if (ok && across) {
        if (json) qn_buf_puts(out, ",\"compared\":");
        ok = write_across(all, n, o, out, e);
    }
    if (json) qn_buf_puts(out, "}\n");
    for (size_t i = 0; all && i < n; i++) qn_analysis_close(&all[i]);
    qn_free(all);
    return ok && (!out->failed || qn_fail(e, QN_ENOMEM, "not enough memory for the report"));
}

bool qn_format_text(const qn_run *const *runs, size_t n, const qn_report_options *o, qn_buf *out, qn_err *e)
{
    return write_sections(runs, n, o, out, e);
}

bool qn_format_markdown(const qn_run *const *runs, size_t n, const qn_report_options *o, qn_buf *out, qn_err *e)
{
    return write_sections(runs, n, o, out, e);
}

bool qn_format_json(const qn_run *const *runs, size_t n, const qn_report_options *o, qn_buf *out, qn_err *e)
{
    return write_sections(runs, n, o, out, e);
}

bool qn_format_csv(const qn_run *const *runs, size_t n, const qn_report_options *o, qn_buf *out, qn_err *e)
{
    return write_sections(runs, n, o, out, e);
}

bool qn_report_flush(const qn_report_options *o, qn_buf *out, qn_err *e)
{
    if (!o->write || out->failed || out->n < MUCH) return true;
    const bool ok = o->write(o->user, out->p, out->n, e);
    out->n = 0;
    return ok;
}

bool qn_report_write(const qn_run *const *runs, size_t n, const qn_report_options *o, qn_buf *out, qn_err *e)
{
    static const qn_format_fn formats[N_FORMATS] = {
#define FORMAT(name, doc) qn_format_##name,
#include "report/formats.def"
#undef FORMAT
    };
    if (n == 0) return qn_fail(e, QN_EUSAGE, "no run to report on");
    assert((int)o->format >= 0 && o->format < N_FORMATS);
    return formats[o->format](runs, n, o, out, e) &&
           (!out->failed || qn_fail(e, QN_ENOMEM, "not enough memory for the report"));
}
