/* doc.h - a report before it has a look: sections of sentences, facts and tables whose cells keep their numbers.
 * Sections fill it, renderers walk it; so a section is written once for the terminal, Markdown, JSON, CSV and the
 * page. Building cannot fail in the middle: a lack of memory is remembered, and the renderer's caller asks once at
 * the end. */
#ifndef QN_DOC_H
#define QN_DOC_H

#include "base/buf.h"
#include "report/run.h"

/* How a number is shown to people. JSON and CSV have it as it is: ns, bytes, 0..1. */
typedef enum qn_unit { UNIT_text, UNIT_count, UNIT_ms, UNIT_us, UNIT_share, UNIT_bytes, UNIT_real } qn_unit;

typedef struct qn_column {
    const char *key;        /* in JSON and CSV: "total_ns" */
    const char *head;       /* for people: "ms" */
    qn_unit unit;
    int decimals;
    int rank;               /* what a narrow terminal drops first: the highest; 0: never */
    bool hidden;            /* for programs only */
} qn_column;

typedef struct qn_cell { const char *text; double value; bool known; } qn_cell;

typedef struct qn_doc_table {
    const char *key, *title;          /* title "": none */
    const qn_column *columns;
    size_t n_columns;
    QN_RUN_LIST(qn_cell) cells;       /* [rows, n_columns] */
} qn_doc_table;

typedef struct qn_fact { const char *key, *text; double value; } qn_fact; /* text NULL: a number */
typedef struct qn_doc_section {
    const char *key, *title;
    QN_RUN_LIST(const char *) lines;  /* for people */
    QN_RUN_LIST(qn_fact) facts;       /* for programs */
    QN_RUN_LIST(qn_doc_table) tables;
} qn_doc_section;

typedef struct qn_doc {
    qn_arena arena;
    QN_RUN_LIST(qn_doc_section) sections;
    bool failed;
} qn_doc;

void qn_doc_section_begin(qn_doc *d, const char *key, const char *title);
void qn_doc_line(qn_doc *d, const char *fmt, ...) QN_PRINTF(2, 3);
void qn_doc_fact(qn_doc *d, const char *key, const char *text);
void qn_doc_number(qn_doc *d, const char *key, double value);
/* Columns must outlive the document. Then cells, row by row. */
void qn_doc_table_begin(qn_doc *d, const char *key, const char *title, const qn_column *columns, size_t n);
void qn_doc_text(qn_doc *d, const char *text);      /* copied */
void qn_doc_value(qn_doc *d, double value);
void qn_doc_known(qn_doc *d, double value, bool known); /* not known: an empty cell */
bool qn_doc_empty(const qn_doc_section *s);
void qn_doc_close(qn_doc *d);

/* A cell as people read it; "" when it is not known. */
void qn_cell_show(const qn_column *c, const qn_cell *cell, qn_buf *out);

/* The renderers. */
void qn_doc_to_text(const qn_doc *d, int width, bool color, qn_buf *out);
void qn_doc_to_markdown(const qn_doc *d, qn_buf *out);
void qn_doc_to_json(const qn_doc *d, qn_buf *out);
void qn_doc_to_csv(const qn_doc *d, qn_buf *out);

#endif
