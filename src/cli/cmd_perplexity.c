/* cmd_perplexity.c - quern perplexity: how surprised a model is by a text. Scored as llama-perplexity scores, so that figures
 * compare: the text is cut into chunks of n_ctx tokens, each is read on its own (its first token replaced by the beginning of
 * sequence if the model wants one), and only the second half is counted, where every token has at least n_ctx / 2 before it. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/tracing.h"

typedef struct ppl_args { qn_engine_args engine; int chunks; bool json; } ppl_args;

static const qn_opt options[] = {
    { "chunks", NULL, NULL, OPT_int, QN_AT(ppl_args, chunks, int), "N", "-1", "score only the first N chunks; -1: all", -1,
      INT_MAX },
    { "json", NULL, NULL, OPT_flag, QN_AT(ppl_args, json, bool), NULL, NULL, "print one JSON object", 0, 0 },
    { 0 },
};

static const qn_opt_group groups[] = {
    { "Text", options, 0 },
    { "Engine", qn_engine_opts, offsetof(ppl_args, engine) },
    { 0 },
};

typedef struct score {
    const int32_t *ids; /* the chunk */
    int n_ctx, n_vocab;
    double nll, nll2;   /* sums of -log p and of its square */
    u64 count;
    qn_bar *bar;
    double done, share; /* of all chunks: before this one, and its own */
} score;

static double surprise(const float *logits, int n, int32_t id)
{
    double sum = 0, most = (double)logits[0];
    for (int i = 1; i < n; i++)
        if ((double)logits[i] > most) most = (double)logits[i];
    for (int i = 0; i < n; i++) sum += exp((double)logits[i] - most);
    return log(sum) - ((double)logits[id] - most);
}

static bool take_row(void *user, int pos, const float *logits)
{
    score *s = user;
    const double v = surprise(logits, s->n_vocab, s->ids[pos + 1]);
    s->nll += v;
    s->nll2 += v * v;
    s->count++;
    return qn_bar_show(s->bar, "scoring", s->done + s->share * (pos + 1) / s->n_ctx);
}

/* The first half only fills the cache: no logits are computed for it. */
static bool score_chunk(qn_engine *en, qn_session *session, score *s, qn_err *e)
{
    const size_t first = (size_t)s->n_ctx / 2;
    size_t left = 0;
    if (!qn_session_set(session, s->ids, first, NULL, e)) return false;
    do {
        if (!qn_engine_step(en, &left, e)) return false;
    } while (left > 0);
    return qn_session_eval(session, s->ids + first, (size_t)s->n_ctx - 1 - first, take_row, s, e);
}

static bool adds_bos(const qn_model *m, int bos, bool *out, qn_err *e)
{
    int32_t *ids = NULL;
    size_t n = 0;
    if (!qn_tokenize(qn_model_tokenizer(m), "", 0, NULL, QN_TOK_ADD_SPECIAL, &ids, &n, e)) return false;
    *out = n > 0 && bos >= 0 && ids[0] == bos;
    qn_free(ids);
    return true;
}

static bool score_all(const qn_cli *c, const ppl_args *a, const qn_model *m, qn_engine *en, int32_t *ids, size_t n_ids,
                      score *s, int *n_chunks, qn_err *e)
{
    qn_model_info info;
    bool bos = false;
    qn_bar bar;
    qn_model_get_info(m, &info);
    if (!adds_bos(m, info.bos_id, &bos, e)) return false;
    qn_session *session = qn_session_open(en, e);
    if (!session) return false;
    const int n_ctx = a->engine.n_ctx;
    const int n = qn_mini((int)qn_minz(n_ids / (size_t)n_ctx, INT_MAX), a->chunks < 0 ? INT_MAX : a->chunks);
    bool ok = true;
    qn_bar_open(&bar, c);
    *s = (score){ .n_ctx = n_ctx, .n_vocab = info.n_vocab, .bar = &bar, .share = 1.0 / qn_maxi(n, 1) };
    for (int i = 0; ok && i < n; i++) {
        int32_t *chunk = ids + (size_t)i * (size_t)n_ctx;
        const int32_t kept = chunk[0];
        if (bos) chunk[0] = info.bos_id;
        s->ids = chunk;
        s->done = (double)i / n;
        ok = score_chunk(en, session, s, e);
        chunk[0] = kept;
    }
    qn_bar_close(&bar);
    qn_session_close(session);
    *n_chunks = n;
    return ok;
}

static int report(const qn_cli *c, const ppl_args *a, const score *s, int n_chunks, size_t n_ids)
{
    qn_buf b = { 0 };
    const double mean = s->nll / (double)s->count, variance = s->nll2 / (double)s->count - mean * mean;
    const double ppl = exp(mean), error = s->count > 1 && variance > 0 ? sqrt(variance / (double)(s->count - 1)) * ppl : 0;
    if (a->json)
        qn_buf_printf(&b, "{\"perplexity\": %.6f, \"error\": %.6f, \"nll\": %.8f, \"n_ctx\": %d, \"chunks\": %d, "
                      "\"scored\": %llu, \"tokens\": %zu}\n", ppl, error, mean, s->n_ctx, n_chunks,
                      (unsigned long long)s->count, n_ids);
    else
        qn_buf_printf(&b, "Final estimate: PPL = %.4f +/- %.5f\n", ppl, error);
    return qn_cli_finish(c, &b);
}

static bool read_text(const qn_cli *c, const qn_model *m, qn_trace *trace, int n_ctx, int32_t **ids, size_t *n_ids, qn_err *e)
{
    char *text = NULL;
    size_t n = 0;
    if (!qn_model_tokenizer(m)) return qn_fail(e, QN_EUNSUPPORTED, "%s has no vocabulary", c->args[0]);
    bool ok = qn_cli_read(c->args[1], &text, &n, e);
    const u64 begin = qn_now_ns();
    ok = ok && qn_tokenize(qn_model_tokenizer(m), text, n, NULL, QN_TOK_ADD_SPECIAL, ids, n_ids, e);
    if (ok) qn_tracing_tokenize(trace, begin, n, *n_ids);
    qn_free(text);
    if (ok && *n_ids < 2 * (size_t)n_ctx)
        return qn_fail(e, QN_EUSAGE, "%s: %zu tokens are too few; two contexts of %d are the least", c->args[1], *n_ids, n_ctx);
    return ok;
}

static int run(qn_cli *c, void *values)
{
    ppl_args *a = values;
    qn_model *m = NULL;
    qn_engine *en = NULL;
    qn_err e = { 0 };
    int32_t *ids = NULL;
    size_t n_ids = 0;
    int n_chunks = 0;
    score s = { 0 };
    if (a->engine.n_ctx == 0) a->engine.n_ctx = 512;
    bool ok = a->engine.n_ctx >= 4 || qn_fail(&e, QN_EUSAGE, "--ctx-size: a chunk needs at least 4 tokens");
    ok = ok && qn_cli_open(c, c->args[0], &a->engine, &m, &en, &e) &&
         read_text(c, m, qn_engine_trace(en), a->engine.n_ctx, &ids, &n_ids, &e) &&
         score_all(c, a, m, en, ids, n_ids, &s, &n_chunks, &e);
    if (ok && s.count == 0) ok = qn_fail(&e, QN_EUSAGE, "--chunks: nothing to score");
    const int code = ok ? report(c, a, &s, n_chunks, n_ids) : qn_cli_fail(c, &e);
    qn_free(ids);
    qn_cli_close(m, en, ok);
    return code;
}

const qn_command qn_command_perplexity = {
    .name = "perplexity",
    .args = "MODEL FILE",
    .summary = "Score a text: perplexity with its error",
    .about = "Cuts FILE into chunks of -c tokens (512 unless told), reads each on its own and scores the second half of each, as "
             "llama-perplexity does, so that figures compare. Prints the perplexity and its standard error.",
    .examples = "quern perplexity model.gguf wiki.test.raw\tthe usual figure\n"
                "quern perplexity model.gguf text.txt -c 2048 --chunks 4 --json\ta longer context, four chunks\n",
    .min_args = 2,
    .max_args = 2,
    .groups = groups,
    .values_bytes = sizeof(ppl_args),
    .run = run,
};
