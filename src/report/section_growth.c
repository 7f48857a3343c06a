/* section_growth.c - which kernels take longer the further a sequence has come. */
#include "report/sections.h"

enum { TOP = 8 };

static const qn_column columns[] = {
    { "name", "kernel", UNIT_text, 0, 0, false },            { "verdict", "verdict", UNIT_text, 0, 0, false },
    { "first_ns", "ms/token first", UNIT_ms, 3, 2, false },  { "last_ns", "last", UNIT_ms, 3, 2, false },
    { "slope_ns", "us/position", UNIT_us, 4, 1, false },     { "error_ns", "+-", UNIT_us, 4, 3, false },
    { "r2", "r2", UNIT_real, 4, 4, false },                  { "samples", "samples", UNIT_count, 0, 5, false },
    { "at_zero_ns", "at 0", UNIT_ms, 3, 0, true },
};

static void put(const qn_growth *g, qn_doc *d)
{
    qn_doc_text(d, g->name);
    qn_doc_text(d, g->verdict);
    qn_doc_value(d, g->first_ns);
    qn_doc_value(d, g->last_ns);
    qn_doc_value(d, g->slope_ns);
    qn_doc_value(d, g->error_ns);
    qn_doc_value(d, g->r2);
    qn_doc_value(d, (double)g->n);
    qn_doc_value(d, g->at_zero_ns);
}

void qn_section_growth(const qn_analysis *a, const qn_report_options *o, qn_doc *d)
{
    size_t flat = 0, shown = 0;
    const bool people = o->format == FORMAT_text || o->format == FORMAT_markdown;
    const size_t top = !people || o->top < 0 ? a->growth.n : o->top > 0 ? (size_t)o->top : TOP;
    if (!a->growth.n) return;
    const qn_growth *all = &a->growth.p[0];
    if (a->decode_seqs > 1) qn_doc_line(d, "decode of %d sequences, positions %.0f to %.0f", a->decode_seqs, all->x_lo,
                                        all->x_hi);
    else qn_doc_line(d, "decode, positions %.0f to %.0f", all->x_lo, all->x_hi);
    for (size_t i = 0; i < a->growth.n; i++) {
        if (people && i && a->growth.p[i].kind == GROWTH_flat) {
            flat++;
            continue;
        }
        if (shown == top) continue;
        if (shown++ == 0) qn_doc_table_begin(d, "growth", "", columns, QN_COUNT(columns));
        put(&a->growth.p[i], d);
    }
    if (flat) qn_doc_line(d, "%zu other%s flat", flat, flat == 1 ? " is" : "s are");
}
