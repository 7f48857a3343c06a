/* doc.c - builds a document. One list function grows everything; after the first lack of memory nothing is added any
 * more. */
#include "report/doc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* A place for one more element of a list, zeroed; NULL once memory has failed. */
static void *grow(qn_doc *d, void **p, size_t *n, size_t *cap, size_t size)
{
    if (d->failed) return NULL;
    if (*n == *cap) {
        const size_t more = *cap ? 2 * *cap : 8;
        size_t bytes;
        void *bigger = qn_mul(more, size, &bytes) ? qn_resize(*p, bytes, NULL) : NULL;
        if (!bigger) return d->failed = true, NULL;
        *p = bigger;
        *cap = more;
    }
    void *at = (char *)*p + *n * size;
    memset(at, 0, size);
    (*n)++;
    return at;
}

#define GROW(d, list) grow(d, (void **)&(list)->p, &(list)->n, &(list)->cap, sizeof *(list)->p)

static const char *keep(qn_doc *d, const char *s, size_t n)
{
    const char *copy = d->failed ? NULL : qn_arena_strndup(&d->arena, s, n, NULL);
    if (!copy) d->failed = true;
    return copy;
}

static qn_doc_section *current(qn_doc *d)
{
    return d->failed || !d->sections.n ? NULL : &d->sections.p[d->sections.n - 1];
}

void qn_doc_section_begin(qn_doc *d, const char *key, const char *title)
{
    qn_doc_section *s = GROW(d, &d->sections);
    if (!s) return;
    s->key = key;
    s->title = title;
}

void qn_doc_line(qn_doc *d, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    qn_doc_section *s = current(d);
    if (!s || n < 0) return;
    size_t bytes = qn_minz((size_t)n, sizeof text - 1);
    if (bytes < (size_t)n) bytes = qn_utf8_whole(text, bytes);
    const char *copy = keep(d, text, bytes);
    const char **line = GROW(d, &s->lines);
    if (line) *line = copy;
}

void qn_doc_fact(qn_doc *d, const char *key, const char *text)
{
    qn_doc_section *s = current(d);
    if (!s) return;
    const char *copy = keep(d, text, strlen(text));
    qn_fact *f = GROW(d, &s->facts);
    if (f) *f = (qn_fact){ .key = key, .text = copy };
}

void qn_doc_number(qn_doc *d, const char *key, double value)
{
    qn_doc_section *s = current(d);
    qn_fact *f = s ? GROW(d, &s->facts) : NULL;
    if (f) *f = (qn_fact){ .key = key, .value = value };
}

void qn_doc_table_begin(qn_doc *d, const char *key, const char *title, const qn_column *columns, size_t n)
{
    qn_doc_section *s = current(d);
    if (!s) return;
    const char *copy = keep(d, title, strlen(title));
    qn_doc_table *t = GROW(d, &s->tables);
    if (t) *t = (qn_doc_table){ .key = key, .title = copy, .columns = columns, .n_columns = n };
}

static void put_cell(qn_doc *d, qn_cell c)
{
    qn_doc_section *s = current(d);
    if (!s || !s->tables.n) return;
    qn_doc_table *t = &s->tables.p[s->tables.n - 1];
    qn_cell *at = GROW(d, &t->cells);
    if (at) *at = c;
}

void qn_doc_text(qn_doc *d, const char *text)
{
    const char *copy = keep(d, text, strlen(text));
    put_cell(d, (qn_cell){ .text = copy, .known = true });
}

void qn_doc_value(qn_doc *d, double value) { put_cell(d, (qn_cell){ .value = value, .known = true }); }

void qn_doc_known(qn_doc *d, double value, bool known) { put_cell(d, (qn_cell){ .value = known ? value : 0, .known =
                                                                                known }); }

bool qn_doc_empty(const qn_doc_section *s)
{
    return !s->lines.n && !s->facts.n && !s->tables.n;
}

void qn_doc_close(qn_doc *d)
{
    for (size_t i = 0; i < d->sections.n; i++) {
        qn_doc_section *s = &d->sections.p[i];
        for (size_t k = 0; k < s->tables.n; k++) qn_free(s->tables.p[k].cells.p);
        qn_free(s->tables.p);
        qn_free(s->facts.p);
        qn_free(s->lines.p);
    }
    qn_free(d->sections.p);
    qn_arena_close(&d->arena);
    *d = (qn_doc){ 0 };
}

void qn_cell_show(const qn_column *c, const qn_cell *cell, qn_buf *out)
{
    char human[32];
    if (!cell->known) return;
    switch (c->unit) {
    case UNIT_text: qn_buf_puts(out, cell->text ? cell->text : ""); break;
    case UNIT_count: qn_buf_printf(out, "%.0f", cell->value); break;
    case UNIT_ms: qn_buf_printf(out, "%.*f", c->decimals, cell->value / 1e6); break;
    case UNIT_us: qn_buf_printf(out, "%.*f", c->decimals, cell->value / 1e3); break;
    case UNIT_share: qn_buf_printf(out, "%.*f%%", c->decimals, 100 * cell->value); break;
    case UNIT_bytes: qn_buf_puts(out, qn_human_bytes(cell->value > 0 ? (u64)cell->value : 0, human)); break;
    case UNIT_real: qn_buf_printf(out, "%.*f", c->decimals, cell->value); break;
    }
}
