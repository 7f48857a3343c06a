/* render_csv.c - the tables of a document as CSV (RFC 4180): names of columns, then rows, numbers unrounded, unknown
 * ones empty. Tables that have the same columns follow each other; between others stands an empty line. */
#include <math.h>
#include <string.h>

#include "report/doc.h"

static void put_field(qn_buf *out, const char *s)
{
    if (!strpbrk(s, ",\"\r\n")) {
        qn_buf_puts(out, s);
        return;
    }
    qn_buf_putc(out, '"');
    for (; *s; s++) {
        if (*s == '"') qn_buf_putc(out, '"');
        qn_buf_putc(out, *s);
    }
    qn_buf_putc(out, '"');
}

static void put_cell(qn_buf *out, const qn_column *c, const qn_cell *cell)
{
    if (!cell->known || !isfinite(cell->value)) return;
    if (c->unit == UNIT_text) put_field(out, cell->text ? cell->text : "");
    else if (cell->value == floor(cell->value) && fabs(cell->value) < 9e15) qn_buf_printf(out, "%.0f", cell->value);
    else qn_buf_printf(out, "%.10g", cell->value);
}

static void put_heads(qn_buf *out, const qn_doc_table *t)
{
    if (out->n) qn_buf_putc(out, '\n');
    for (size_t j = 0; j < t->n_columns; j++) {
        qn_buf_puts(out, j ? "," : "");
        put_field(out, t->columns[j].key);
    }
    qn_buf_putc(out, '\n');
}

void qn_doc_to_csv(const qn_doc *d, qn_buf *out)
{
    const qn_column *last = NULL;
    for (size_t i = 0; i < d->sections.n; i++) {
        for (size_t k = 0; k < d->sections.p[i].tables.n; k++) {
            const qn_doc_table *t = &d->sections.p[i].tables.p[k];
            if (t->columns != last) put_heads(out, t); /* tables of the same columns are one table */
            last = t->columns;
            for (size_t j = 0; j < t->cells.n; j++) {
                put_cell(out, &t->columns[j % t->n_columns], &t->cells.p[j]);
                qn_buf_putc(out, (j + 1) % t->n_columns ? ',' : '\n');
            }
        }
    }
}
