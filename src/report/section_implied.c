/* section_implied.c - for tables of totals: what one token costs, and how much of the memory's speed that is. */
#include "report/sections.h"

void qn_section_implied(const qn_analysis *a, const qn_report_options *o, qn_doc *d)
{
    const qn_implied *m = &a->implied;
    (void)o;
    if (!m->known) return;
    const struct { const char *key; double value; } facts[] = {
        { "prefills", (double)m->prefills }, { "steps", (double)m->steps }, { "layers", (double)m->layers },
        { "expected", (double)m->expected }, { "captured", (double)m->captured }, { "step_ns", m->step_ns },
            { "tok_s", m->tok_s },
        { "layer_ns", m->layer_ns }, { "head_ns", m->head_ns }, { "matmul_share", m->matmul_share },
            { "head_share", m->head_share },
        { "attention_share", m->attention_share }, { "prefill_ns", m->prefill_ns }, { "weight_bytes", m->weight_bytes },
        { "bandwidth_gbs", m->bandwidth_gbs }, { "roof_ns", m->roof_ns }, { "roof_tok_s", m->roof_tok_s },
            { "of_roof", m->of_roof } };
    for (size_t i = 0; i < QN_COUNT(facts); i++) qn_doc_number(d, facts[i].key, facts[i].value);
    qn_doc_line(d, "%.0f prefill calls and %.0f decode steps of %.0f layers; %.0f of %.0f launches captured",
                (double)m->prefills, (double)m->steps, (double)m->layers, (double)m->captured, (double)m->expected);
    qn_doc_line(d, "decode step %.2f ms, %.1f tok/s: a layer %.3f ms, LM head %.2f ms; matrices %.1f %%, head %.1f %%, "
                "attention %.1f %%", m->step_ns / 1e6, m->tok_s, m->layer_ns / 1e6, m->head_ns / 1e6,
                100 * m->matmul_share, 100 * m->head_share, 100 * m->attention_share);
    qn_doc_line(d, "prefill call %.0f ms on average", m->prefill_ns / 1e6);
    if (m->of_roof > 0)
        qn_doc_line(d, "%.1f MB of weights a token: at %.0f GB/s %.2f ms, %.1f tok/s; %.0f %% of that is reached",
                    m->weight_bytes / 1e6, m->bandwidth_gbs, m->roof_ns / 1e6, m->roof_tok_s, 100 * m->of_roof);
    else if (m->weight_bytes > 0)
        qn_doc_line(d, "%.1f MB of weights a token; --bandwidth GB/s tells how near that is to the memory's speed",
                    m->weight_bytes / 1e6);
    else qn_doc_line(d, "--params and --bandwidth tell how near that is to the memory's speed");
}
