/* page.c - fills the page's three holes: style, data, script. Inside a script element only `<` can end the data,
 * and in JSON it can only stand in a string, so every one of them becomes \u003c: no text of a trace can leave its
 * place. */
#include "report/page.h"

#include <math.h>
#include <string.h>

static void put_escaped(qn_buf *out, const char *p, size_t n)
{
    for (size_t i = 0, from = 0; i <= n; i++) {
        if (i < n && p[i] != '<' && p[i] != '>' && p[i] != '&') continue;
        qn_buf_put(out, p + from, i - from);
        from = i + 1;
        if (i < n) qn_buf_printf(out, "\\u%04x", (unsigned)p[i]);
    }
}

static void put_title(qn_buf *out, const char *p)
{
    for (; *p; p++) {
        if (*p == '<') qn_buf_puts(out, "&lt;");
        else if (*p == '&') qn_buf_puts(out, "&amp;");
        else if ((unsigned char)*p >= 32) qn_buf_putc(out, *p);
    }
}

void qn_page_write(const char *title, const qn_buf *data, qn_buf *out)
{
    const char *p = qn_page_html;
    for (const char *hole; (hole = strstr(p, "{{")); ) {
        qn_buf_put(out, p, (size_t)(hole - p));
        if (!strncmp(hole, "{{css}}", 7)) qn_buf_puts(out, qn_page_css);
        else if (!strncmp(hole, "{{js}}", 6)) qn_buf_puts(out, qn_page_js);
        else if (!strncmp(hole, "{{data}}", 8)) put_escaped(out, data->p ? data->p : "null", data->p ? data->n : 4);
        else if (!strncmp(hole, "{{title}}", 9)) put_title(out, title);
        p = strstr(hole, "}}") + 2;
    }
    qn_buf_puts(out, p);
    if (data->failed) out->failed = true;
}

static void put_comma(qn_buf *b)
{
    const char last = b->n ? b->p[b->n - 1] : 0;
    if (last && last != '{' && last != '[' && last != ':') qn_buf_putc(b, ',');
}

void qn_put_key(qn_buf *b, const char *key)
{
    put_comma(b);
    qn_buf_json(b, key, strlen(key));
    qn_buf_putc(b, ':');
}

void qn_put_string(qn_buf *b, const char *value)
{
    put_comma(b);
    qn_buf_json(b, value ? value : "", value ? strlen(value) : 0);
}

void qn_put_number(qn_buf *b, double value)
{
    put_comma(b);
    qn_buf_printf(b, "%.12g", isfinite(value) ? value : 0.0);
}

void qn_put_text(qn_buf *b, const char *key, const char *value)
{
    qn_put_key(b, key);
    qn_put_string(b, value);
}

void qn_put_int(qn_buf *b, const char *key, u64 value)
{
    qn_put_key(b, key);
    qn_buf_printf(b, "%llu", (unsigned long long)value);
}

void qn_put_real(qn_buf *b, const char *key, double value)
{
    qn_put_key(b, key);
    qn_put_number(b, value);
}

void qn_put_stats(qn_buf *b, const char *key, const qn_stats *s)
{
    qn_put_key(b, key);
    if (!s || !s->n) {
        qn_buf_puts(b, "null");
        return;
    }
    qn_buf_putc(b, '{');
    qn_put_int(b, "n", s->n);
    qn_put_real(b, "min", s->min);
    qn_put_real(b, "p50", s->p50);
    qn_put_real(b, "lo", s->lo);
    qn_put_real(b, "hi", s->hi);
    qn_put_real(b, "p95", s->p95);
    qn_put_real(b, "p99", s->p99);
    qn_put_real(b, "max", s->max);
    qn_buf_putc(b, '}');
}

void qn_put_flag(qn_buf *b, const char *key, bool value)
{
    qn_put_key(b, key);
    qn_buf_puts(b, value ? "true" : "false");
}
