/* analysis_implied.c - a decode step put together from a table of totals (MLC's profiles). Such a table mixes all
 * prefills and all tokens of a session and says nothing of either; but the counts do: rows are looked up once a
 * forward call, the last row of a prompt is picked once a prefill, everything else runs once or twice a layer.
 * Launches that the profiler lost are seen the same way: counts fall short of a whole number a call. */
#include <math.h>
#include <string.h>

#include "report/analysis_parts.h"

/* Weights in the matrices of models that such tables are about, read once a token; embedding and head are one matrix in
 * all four. */
static const struct { const char *name; double weights; } known_models[] = {
    { "Llama 3.2 1B", 1235746816.0 },
    { "Llama 3.2 3B", 3212574720.0 },
    { "Qwen2.5 0.5B", 493961216.0 },
    { "SmolLM2 135M", 134479872.0 },
};

/* Bits a weight of MLC's codes: the values, and a scale for each group. */
static const struct { const char *code; double bits; } known_codes[] = {
    { "q0f32", 32 }, { "q0f16", 16 }, { "q0bf16", 16 }, { "q3f16", 3.6 }, { "q4f16_ft", 4 }, { "q4f16_autoawq", 4.16 },
    { "q4f16", 4.5 }, { "q4bf16", 4.5 }, { "q4f32", 5 },
};

static double weight_bytes(const qn_run *r, const qn_analysis_options *o)
{
    double weights = o->params > 0 ? o->params : (double)r->params, bits = 0;
    if (r->model_bytes) return (double)r->model_bytes;
    for (size_t i = 0; i < QN_COUNT(known_models) && !(weights > 0); i++)
        if (strstr(r->model, known_models[i].name)) weights = known_models[i].weights;
    for (size_t i = 0; i < QN_COUNT(known_codes) && !(bits > 0); i++)
        if (!strncmp(r->type, known_codes[i].code, strlen(known_codes[i].code))) bits = known_codes[i].bits;
    return weights * bits / 8;
}

static u64 count_of(const qn_run *r, const char *part)
{
    u64 n = 0;
    for (size_t i = 0; i < r->series.n; i++)
        if (strstr(r->series.p[i].kernel, part) && r->series.p[i].n > n) n = r->series.p[i].n;
    return n;
}

/* Launches a call, from what was captured a call: never fewer than that, and where it is about a layer's worth, a whole number of
 * layers (and one more outside them, which norms have). */
static double calls_of(double captured, double layers)
{
    if (captured < 0.75 * layers) return captured > 0 ? ceil(captured - 1e-9) : 0;
    const double whole = ceil((captured - 1) / layers - 1e-9) * layers; /* may be one short */
    return whole >= captured - 1e-9 && whole > 0 ? whole : whole + 1;
}

static void add_kernel(qn_implied *m, const qn_series *s, double *matmul, double *attention)
{
    const double layers = (double)m->layers, avg = s->n ? (double)s->total_ns / (double)s->n : 0;
    const bool prefill = s->phase == PHASE_prefill, decode = s->phase == PHASE_decode;
    const double forwards = (double)(prefill ? m->prefills : decode ? m->steps : m->prefills + m->steps);
    const double calls = calls_of(forwards > 0 ? (double)s->n / forwards : 0, layers);
    m->captured += s->n;
    m->expected += (u64)(calls * forwards + 0.5);
    if (!decode) m->prefill_ns += avg * calls;
    if (prefill) return;
    m->step_ns += avg * calls;
    if (calls >= layers) m->layer_ns += avg * floor(calls / layers + 1e-9);
    if (qn_op_is_matmul(s->kernel)) {
        *matmul += avg * calls;
        if (calls < layers) m->head_ns += avg * calls;
    }
    if (strstr(s->kernel, "paged_kv") || strstr(s->kernel, "attention")) *attention += avg * calls;
}

bool qn_analyse_implied(qn_analysis *a, const qn_analysis_options *o, qn_err *e)
{
    const qn_run *r = a->run;
    qn_implied *m = &a->implied;
    double matmul = 0, attention = 0;
    (void)e;
    if (strcmp(r->source, "mlc")) return true;
    const u64 forwards = count_of(r, "take"), picks = count_of(r, "index_"), decodes = count_of(r, "batch_decode");
    if (forwards <= picks || !decodes) return true;
    m->prefills = picks;
    m->steps = forwards - picks;
    m->layers = (u64)ceil((double)decodes / (double)m->steps - 1e-9);
    for (size_t i = 0; i < r->series.n; i++) add_kernel(m, &r->series.p[i], &matmul, &attention);
    if (!(m->step_ns > 0)) return true;
    m->known = true;
    m->tok_s = 1e9 / m->step_ns;
    m->matmul_share = matmul / m->step_ns;
    m->head_share = m->head_ns / m->step_ns;
    m->attention_share = attention / m->step_ns;
    m->weight_bytes = weight_bytes(r, o);
    m->bandwidth_gbs = a->ceilings.read_gbs;
    if (m->weight_bytes > 0 && m->bandwidth_gbs > 0) {
        m->roof_ns = m->weight_bytes / m->bandwidth_gbs;
        m->roof_tok_s = 1e9 / m->roof_ns;
        m->of_roof = m->roof_ns / m->step_ns;
    }
    return true;
}
