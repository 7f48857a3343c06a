/* render_text.c - a document for a terminal: columns as wide as they need, numbers to the right, and where the window
 * is too narrow the least important columns go first, then long names are cut. Colour only when asked for. */
#include <string.h>

#include "base/str.h"
#include "report/doc.h"

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define CYAN "\033[36m"
#define PLAIN "\033[0m"

typedef struct view { int width; bool color; qn_buf *out; } view;

static void paint(const view *v, const char *code) { if (v->color) qn_buf_puts(v->out, code); }

/* Columns on the screen: characters, not bytes. Our texts are Latin; a wide letter costs alignment, no more. */
static int cells_of(const char *s, size_t n)
{
    int count = 0;
    for (size_t i = 0; i < n; i++) count += ((u8)s[i] & 0xC0) != 0x80;
    return count;
}

static void pad(qn_buf *out, int n)
{
    for (int i = 0; i < n; i++) qn_buf_putc(out, ' ');
}

/* Text may come from any log: control bytes are shown, not sent to the terminal. */
static void put_safe(qn_buf *out, const char *s, size_t n, int most)
{
    int used = 0;
    for (size_t i = 0; i < n && used < most; used++) {
        u32 cp;
        const int len = qn_utf8_get(s + i, n - i, &cp);
        const bool good = len > 0 && cp >= 0x20 && cp != 0x7F && !(cp >= 0x80 && cp < 0xA0);
        const size_t step = len > 0 ? (size_t)len : 1;
        if (used + 1 == most && i + step < n) qn_buf_puts(out, "~");
        else if (good) qn_buf_put(out, s + i, step);
        else qn_buf_putc(out, '?');
        i += step;
    }
}

static void put_wrapped(const view *v, const char *indent, const char *text)
{
    const int room = v->width > 0 ? qn_maxi(v->width - (int)strlen(indent), 20) : 1 << 20;
    int used = 0;
    qn_buf_puts(v->out, indent);
    while (*text) {
        size_t n = strcspn(text, " ");
        const int cells = cells_of(text, n);
        if (used > 0 && used + 1 + cells > room) {
            qn_buf_putc(v->out, '\n');
            qn_buf_puts(v->out, indent);
            used = 0;
        }
        if (used > 0) qn_buf_putc(v->out, ' '), used++;
        put_safe(v->out, text, n, 1 << 20);
        used += cells;
        text += n;
        while (*text == ' ') text++;
    }
    qn_buf_putc(v->out, '\n');
}

enum { MOST_COLUMNS = 32 };
typedef struct layout { int width[MOST_COLUMNS]; bool shown[MOST_COLUMNS]; } layout;

static int cell_width(const view *v, const qn_column *c, const qn_cell *cell)
{
    qn_buf b = { 0 };
    qn_cell_show(c, cell, &b);
    const int n = cells_of(b.p ? b.p : "", b.n);
    v->out->failed = v->out->failed || b.failed;
    qn_buf_close(&b);
    return n;
}

static int total_width(const layout *l, size_t n)
{
    int sum = 0;
    for (size_t k = 0; k < n; k++)
        if (l->shown[k]) sum += l->width[k] + 2;
    return sum - 2;
}

static void lay_out(const view *v, const qn_doc_table *t, layout *l)
{
    const size_t rows = t->cells.n / t->n_columns;
    for (size_t k = 0; k < t->n_columns; k++) {
        bool any = false;
        l->width[k] = cells_of(t->columns[k].head, strlen(t->columns[k].head));
        for (size_t r = 0; r < rows; r++) {
            const qn_cell *c = &t->cells.p[r * t->n_columns + k];
            any = any || (c->known && (!c->text || *c->text));
            l->width[k] = qn_maxi(l->width[k], cell_width(v, &t->columns[k], c));
        }
        l->shown[k] = any && !t->columns[k].hidden; /* what no row knows is not shown */
    }
    while (v->width > 0 && total_width(l, t->n_columns) > v->width) {
        int worst = -1;
        for (size_t k = 0; k < t->n_columns; k++)
            if (l->shown[k] && t->columns[k].rank > (worst < 0 ? 0 : t->columns[worst].rank)) worst = (int)k;
        if (worst < 0) break;
        l->shown[worst] = false;
    }
    for (size_t k = 0; k < t->n_columns && v->width > 0; k++) {
        const int over = total_width(l, t->n_columns) - v->width;
        if (over > 0 && l->shown[k] && t->columns[k].unit == UNIT_text) l->width[k] = qn_maxi(l->width[k] - over, 12);
    }
}

static void put_aligned(const view *v, const char *s, size_t n, int width, bool left)
{
    const int cells = qn_mini(cells_of(s, n), width);
    if (!left) pad(v->out, width - cells);
    put_safe(v->out, s, n, width);
    if (left) pad(v->out, width - cells);
}

static void trim_line(qn_buf *out)
{
    while (out->n && out->p[out->n - 1] == ' ') out->p[--out->n] = 0;
    qn_buf_putc(out, '\n');
}

static void put_table(const view *v, const qn_doc_table *t)
{
    layout l = { 0 };
    if (!t->n_columns || t->n_columns > MOST_COLUMNS || !t->cells.n) return;
    lay_out(v, t, &l);
    if (*t->title) qn_buf_printf(v->out, "\n%s\n", t->title);
    paint(v, DIM);
    bool first = true;
    for (size_t k = 0; k < t->n_columns; k++) {
        if (!l.shown[k]) continue;
        if (!first) qn_buf_puts(v->out, "  ");
        put_aligned(v, t->columns[k].head, strlen(t->columns[k].head), l.width[k], t->columns[k].unit == UNIT_text);
        first = false;
    }
    paint(v, PLAIN);
    trim_line(v->out);
    for (size_t r = 0; r < t->cells.n / t->n_columns; r++) {
        first = true;
        for (size_t k = 0; k < t->n_columns; k++) {
            qn_buf b = { 0 };
            if (!l.shown[k]) continue;
            if (!first) qn_buf_puts(v->out, "  ");
            qn_cell_show(&t->columns[k], &t->cells.p[r * t->n_columns + k], &b);
            put_aligned(v, b.p ? b.p : "", b.n, l.width[k], t->columns[k].unit == UNIT_text);
            v->out->failed = v->out->failed || b.failed;
            qn_buf_close(&b);
            first = false;
        }
        trim_line(v->out);
    }
}

void qn_doc_to_text(const qn_doc *d, int width, bool color, qn_buf *out)
{
    const view v = { .width = width, .color = color, .out = out };
    for (size_t i = 0; i < d->sections.n; i++) {
        const qn_doc_section *s = &d->sections.p[i];
        if (!s->lines.n && !s->tables.n) continue;
        if (out->n) qn_buf_putc(out, '\n');
        if (*s->title) {
            paint(&v, BOLD CYAN);
            qn_buf_puts(out, s->title);
            paint(&v, PLAIN);
            qn_buf_putc(out, '\n');
        }
        for (size_t k = 0; k < s->lines.n; k++) put_wrapped(&v, "", s->lines.p[k]);
        for (size_t k = 0; k < s->tables.n; k++) put_table(&v, &s->tables.p[k]);
    }
}
