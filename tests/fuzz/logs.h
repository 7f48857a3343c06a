/* logs.h - what the fuzz targets of the log readers share: any bytes as a log. What is accepted must add up: phases to the wall
 * time, samples to totals; and every report on it comes out whole. The first byte may ask for a failing allocation. */
#ifndef QN_FUZZ_LOGS_H
#define QN_FUZZ_LOGS_H

#include <stdlib.h>
#include <string.h>

#include "report/import.h"
#include "report/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static inline void check_run(const qn_run *r)
{
    u64 sum = 0, length = 0;
    for (int i = 0; i < N_PHASES; i++) sum += r->phase_ns[i];
    if (sum != r->wall_ns) __builtin_trap();
    for (size_t i = 0; i < r->series.n; i++) {
        const qn_series *s = &r->series.p[i];
        u64 total = 0;
        for (size_t k = 0; k < s->n_samples; k++) total += s->ns[k];
        if (s->n_samples && total != s->total_ns) __builtin_trap();
        length += strlen(s->kernel) + strlen(s->op) + strlen(s->role) + strlen(s->type);
    }
    for (size_t i = 0; i < r->notes.n; i++) length += strlen(r->notes.p[i]);
    for (size_t i = 0; i < r->choices.n; i++) length += strlen(r->choices.p[i].kernel) + strlen(r->choices.p[i].reason);
    for (size_t i = 0; i < r->spans.n; i++)
        if (r->spans.p[i].series >= r->series.n) __builtin_trap();
    volatile u64 seen = length;
    (void)seen;
}

/* Every format has something to say about a run that was accepted, whatever its figures are. */
static inline void check_reports(qn_run *const *runs, size_t n)
{
    for (int f = 0; f < N_FORMATS; f++) {
        qn_report_options o = QN_REPORT_DEFAULT;
        qn_buf out = { 0 };
        qn_err e = { 0 };
        o.format = (qn_format)f;
        o.top = -1;
        if (!qn_report_write((const qn_run *const *)runs, n, &o, &out, &e)) __builtin_trap();
        qn_buf_close(&out);
    }
}

/* One reader, whatever the bytes look like; without one the reader that knows them. */
static inline int read_log(const uint8_t *data, size_t n, bool (*import)(qn_import *im, qn_err *e))
{
    qn_err e = { 0 };
    qn_runs runs = { 0 };
    bool ok;
    if (!n) return 0;
    qn_mem_fail_at(data[0] & 0x80 ? data[0] & 0x3F : 0, data[0] & 0x40);
    if (import) {
        qn_import im = { .path = "fuzz.log", .text = qn_stream_open_bytes("fuzz.log", data + 1, n - 1, &e), .runs = &runs };
        ok = im.text && import(&im, &e);
        qn_stream_close(im.text);
    } else {
        ok = qn_runs_open_bytes("fuzz.log", data + 1, n - 1, &runs.p, &runs.n, &e);
    }
    qn_mem_fail_at(0, false);
    if (ok == (e.code != QN_OK)) __builtin_trap(); /* refused with a reason, or accepted without */
    for (size_t i = 0; ok && i < runs.n; i++) check_run(runs.p[i]);
    if (ok && runs.n) check_reports(runs.p, runs.n);
    for (size_t i = 0; i < runs.n; i++) qn_run_close(runs.p[i]);
    qn_free(runs.p);
    return 0;
}

#endif
