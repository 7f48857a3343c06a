/* render_json.c - a document as one JSON object: a key a section; in it its facts, its sentences, and its tables as
 * lists of objects. Numbers as they are, unrounded; what is not known is null. */
#include <math.h>
#include <string.h>

#include "report/doc.h"

static void put_number(qn_buf *out, double v)
{
    if (!isfinite(v)) qn_buf_puts(out, "null");
    else if (v == floor(v) && fabs(v) < 9e15) qn_buf_printf(out, "%.0f", v);
    else qn_buf_printf(out, "%.10g", v);
}

static void put_text(qn_buf *out, const char *s) { qn_buf_json(out, s ? s : "", s ? strlen(s) : 0); }

static void put_table(qn_buf *out, const qn_doc_table *t)
{
    put_text(out, t->key);
    qn_buf_puts(out, ":[");
    for (size_t i = 0; i < t->cells.n; i++) {
        const size_t k = i % t->n_columns;
        const qn_cell *c = &t->cells.p[i];
        qn_buf_puts(out, k ? "," : i ? ",\n    {" : "\n    {");
        put_text(out, t->columns[k].key);
        qn_buf_putc(out, ':');
        if (!c->known) qn_buf_puts(out, "null");
        else if (t->columns[k].unit == UNIT_text) put_text(out, c->text);
        else put_number(out, c->value);
        if (k + 1 == t->n_columns) qn_buf_putc(out, '}');
    }
    qn_buf_puts(out, "]");
}

static void put_section(qn_buf *out, const qn_doc_section *s)
{
    put_text(out, s->key);
    qn_buf_puts(out, ":{");
    for (size_t k = 0; k < s->facts.n; k++) {
        qn_buf_puts(out, k ? "," : "");
        put_text(out, s->facts.p[k].key);
        qn_buf_putc(out, ':');
        if (s->facts.p[k].text) put_text(out, s->facts.p[k].text);
        else put_number(out, s->facts.p[k].value);
    }
    qn_buf_printf(out, "%s\"lines\":[", s->facts.n ? ",\n   " : "");
    for (size_t k = 0; k < s->lines.n; k++) {
        qn_buf_puts(out, k ? ",\n    " : "");
        put_text(out, s->lines.p[k]);
    }
    qn_buf_puts(out, "]");
    for (size_t k = 0; k < s->tables.n; k++) {
        const qn_doc_table *t = &s->tables.p[k];
        qn_buf_puts(out, ",\n   ");
        put_table(out, t);
    }
    qn_buf_puts(out, "}");
}

void qn_doc_to_json(const qn_doc *d, qn_buf *out)
{
    qn_buf_puts(out, "{");
    for (size_t i = 0; i < d->sections.n; i++) {
        qn_buf_puts(out, i ? ",\n  " : "\n  ");
        put_section(out, &d->sections.p[i]);
    }
    qn_buf_puts(out, "}");
}
