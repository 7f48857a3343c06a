/* section_memory.c - bytes in use: after loading, at the end, and the weights by part. */
#include <string.h>

#include "base/json.h"
#include "report/sections.h"

static const qn_column columns[] = {
    { "when", "when", UNIT_text, 0, 0, false },       { "weights", "weights", UNIT_bytes, 0, 0, false },
    { "kv", "KV", UNIT_bytes, 0, 0, false },          { "kv_used", "KV used", UNIT_bytes, 0, 2, false },
    { "scratch", "scratch", UNIT_bytes, 0, 1, false }, { "resident", "resident", UNIT_bytes, 0, 0, false },
    { "peak", "peak", UNIT_bytes, 0, 1, false },      { "unaccounted", "else", UNIT_bytes, 0, 3, false },
};
static const qn_column part_columns[] = { { "part", "weights of", UNIT_text, 0, 0, false },
                                          { "bytes", "bytes", UNIT_bytes, 0, 0, false } };

static void put_parts(const char *text, qn_doc *d)
{
    qn_err e = { 0 };
    yyjson_doc *doc = *text ? qn_json_parse(text, strlen(text), 0, "parts", &e) : NULL;
    yyjson_val *root = doc ? yyjson_doc_get_root(doc) : NULL, *key, *value;
    size_t i, n;
    bool any = false;
    if (root) yyjson_obj_foreach(root, i, n, key, value) {
        if (!yyjson_is_num(value) || !(yyjson_get_num(value) > 0)) continue;
        if (!any) qn_doc_table_begin(d, "parts", "", part_columns, QN_COUNT(part_columns));
        any = true;
        qn_doc_text(d, yyjson_get_str(key));
        qn_doc_value(d, yyjson_get_num(value));
    }
    if (e.code == QN_ENOMEM) d->failed = true;
    yyjson_doc_free(doc);
}

void qn_section_memory(const qn_analysis *a, const qn_report_options *o, qn_doc *d)
{
    const qn_run *r = a->run;
    (void)o;
    if (!r->memory.n) return;
    qn_doc_table_begin(d, "memory", "", columns, QN_COUNT(columns));
    for (size_t i = 0; i < r->memory.n; i++) {
        const qn_run_memory *m = &r->memory.p[i];
        const u64 named = m->weights + m->kv + m->scratch;
        qn_doc_text(d, m->when);
        qn_doc_known(d, (double)m->weights, m->weights);
        qn_doc_known(d, (double)m->kv, m->kv);
        qn_doc_known(d, (double)m->kv_used, m->kv_used);
        qn_doc_known(d, (double)m->scratch, m->scratch);
        qn_doc_known(d, (double)m->resident, m->resident);
        qn_doc_known(d, (double)m->peak, m->peak);
        qn_doc_known(d, (double)(m->resident > named ? m->resident - named : 0), m->resident > named);
    }
    put_parts(r->memory.p[r->memory.n - 1].parts, d);
}
