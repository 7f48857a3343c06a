/* report.h - runs in, a report out. A format is one row of formats.def and one function qn_format_<name>; a section
 * of the default report is one row of sections.def and one file. Neither knows where a run came from. */
#ifndef QN_REPORT_H
#define QN_REPORT_H

#include "base/buf.h"
#include "report/analysis.h"

typedef enum qn_format {
#define FORMAT(name, doc) FORMAT_##name,
#include "report/formats.def"
#undef FORMAT
    N_FORMATS
} qn_format;
extern const char *const qn_format_names[N_FORMATS];
extern const char qn_format_choices[]; /* "|text|markdown...": an option's choices begin behind the first bar */

typedef struct qn_report_options {
    qn_format format;
    qn_analysis_options analysis;
    int top;                    /* rows of a table; 0: the format's own number; -1: all */
    int phase;                  /* qn_phase of the steps to show; -1: all */
    const char *sections;       /* names with commas between; NULL: all (csv: steps) */
    int width;                  /* of the terminal, columns; 0: as wide as it needs */
    bool color;
    /* of --format metallic, as its analyser has them */
    int kernel_top;             /* 0: 50 */
    const char *kernel_filter;  /* NULL: none */
    bool include_kernel_totals;
    int batch;                  /* of --format doppler: decode passes in one table; 0: 1 */
    /* Takes text away while the report is made, so that a long one need not lie in memory whole; NULL: all of it stays in out. */
    bool (*write)(void *user, const void *p, size_t n, qn_err *e);
    void *user;
} qn_report_options;

#define QN_REPORT_DEFAULT ((qn_report_options){ .phase = -1 })

typedef bool (*qn_format_fn)(const qn_run *const *runs, size_t n, const qn_report_options *o, qn_buf *out, qn_err *e);

/* Appends the report on runs[n] to out. */
bool qn_report_write(const qn_run *const *runs, size_t n, const qn_report_options *o, qn_buf *out, qn_err *e);
/* For formats: hands out over when it has become long. */
bool qn_report_flush(const qn_report_options *o, qn_buf *out, qn_err *e);

#define FORMAT(name, doc) \
    bool qn_format_##name(const qn_run *const *runs, size_t n, const qn_report_options *o, qn_buf *out, qn_err *e);
#include "report/formats.def"
#undef FORMAT

#endif
