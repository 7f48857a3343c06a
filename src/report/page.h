/* page.h - the page that HTML reports share: the files below page/, made into this program's constants by the
 * build, put together with one JSON value that its script shows. What the value says is its writer's business
 * (html.c, compare_print.c, cli/probe_html.c). */
#ifndef QN_PAGE_H
#define QN_PAGE_H

#include "base/buf.h"
#include "base/stats.h"

extern const char qn_page_html[], qn_page_css[], qn_page_js[];

/* Appends the whole page. title: plain text; data: one JSON value. Whatever they hold is inert in the page. */
void qn_page_write(const char *title, const qn_buf *data, qn_buf *out);

/* JSON by hand: a comma where one is needed, a key, a value. Numbers that are not finite become 0. */
void qn_put_key(qn_buf *b, const char *key);
void qn_put_text(qn_buf *b, const char *key, const char *value);
void qn_put_int(qn_buf *b, const char *key, u64 value);
void qn_put_real(qn_buf *b, const char *key, double value);
void qn_put_stats(qn_buf *b, const char *key, const qn_stats *s); /* NULL, or of nothing: null */
void qn_put_flag(qn_buf *b, const char *key, bool value);
void qn_put_string(qn_buf *b, const char *value);  /* in an array */
void qn_put_number(qn_buf *b, double value);       /* in an array */

#endif
