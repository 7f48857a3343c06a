/* render_markdown.c - a document as Markdown: a heading a section, a pipe table a table. What could be taken for
 * markup in names that came from a log is escaped. */
#include <string.h>

#include "report/doc.h"

static void put_plain(qn_buf *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char c = s[i];
        if (strchr("|\\`*<>[]", c) && c) qn_buf_putc(out, '\\');
        if (c == '_' && (i == 0 || i + 1 == n)) qn_buf_putc(out, '\\'); /* inside a word it is a letter */
        qn_buf_putc(out, (u8)c < 0x20 ? ' ' : c);
    }
}

static void put_row(qn_buf *out, const qn_doc_table *t, size_t row)
{
    for (size_t k = 0; k < t->n_columns; k++) {
        qn_buf b = { 0 };
        if (t->columns[k].hidden) continue;
        qn_cell_show(&t->columns[k], &t->cells.p[row * t->n_columns + k], &b);
        qn_buf_puts(out, "| ");
        put_plain(out, b.p ? b.p : "", b.n);
        qn_buf_putc(out, ' ');
        out->failed = out->failed || b.failed;
        qn_buf_close(&b);
    }
    qn_buf_puts(out, "|\n");
}

static void put_table(qn_buf *out, const qn_doc_table *t)
{
    if (!t->cells.n) return;
    if (*t->title) {
        qn_buf_puts(out, "\n### ");
        put_plain(out, t->title, strlen(t->title));
        qn_buf_putc(out, '\n');
    }
    qn_buf_putc(out, '\n');
    for (size_t k = 0; k < t->n_columns; k++) {
        if (t->columns[k].hidden) continue;
        qn_buf_puts(out, "| ");
        put_plain(out, t->columns[k].head, strlen(t->columns[k].head));
        qn_buf_putc(out, ' ');
    }
    qn_buf_puts(out, "|\n");
    for (size_t k = 0; k < t->n_columns; k++)
        if (!t->columns[k].hidden) qn_buf_puts(out, t->columns[k].unit == UNIT_text ? "|---" : "|---:");
    qn_buf_puts(out, "|\n");
    for (size_t r = 0; r < t->cells.n / t->n_columns; r++) put_row(out, t, r);
}

void qn_doc_to_markdown(const qn_doc *d, qn_buf *out)
{
    for (size_t i = 0; i < d->sections.n; i++) {
        const qn_doc_section *s = &d->sections.p[i];
        if (!s->lines.n && !s->tables.n) continue;
        qn_buf_printf(out, "%s## ", out->n ? "\n" : "");
        put_plain(out, s->title, strlen(s->title));
        qn_buf_putc(out, '\n');
        for (size_t k = 0; k < s->lines.n; k++) {
            qn_buf_puts(out, k ? "- " : "\n- ");
            put_plain(out, s->lines.p[k], strlen(s->lines.p[k]));
            qn_buf_putc(out, '\n');
        }
        for (size_t k = 0; k < s->tables.n; k++) put_table(out, &s->tables.p[k]);
    }
}
