/* sampler.c - never sorts the vocabulary: it takes the best 64, or the best k where there is a top-k, by a small heap; where a
 * rule needs more of them the place of its cut is found by adding up (ranking.h), and where no rule leaves anything out it walks
 * through the weights of all. What goes over the vocabulary are kernels (ops best and softmax), chosen like those of a plan. A
 * tie goes to the lower id, so results do not depend on how the selection was made. */
#include "engine/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

bool qn_sampler_open(qn_sampler *s, int n_vocab, qn_isa isa, const qn_tuned *tuned, qn_err *e)
{
    const qn_args softmax = { .softmax = { .n = 1, .d = n_vocab } }, best = { .best = { .n = 1, .d = n_vocab, .k = 40 } };
    *s = (qn_sampler){ .n_vocab = n_vocab };
    s->softmax = qn_choose_kernel(OP_softmax, &softmax, isa, BUCKET_one, tuned);
    s->best = qn_choose_kernel(OP_best, &best, isa, BUCKET_one, tuned);
    s->work = qn_new_array((size_t)n_vocab, sizeof *s->work, e);
    s->counts = s->work ? qn_new_array((size_t)n_vocab, sizeof *s->counts, e) : NULL;
    s->set = s->counts ? qn_new_array((size_t)n_vocab, sizeof *s->set, e) : NULL;
    s->ids = s->set ? qn_new_array((size_t)n_vocab, sizeof *s->ids, e) : NULL;
    s->values = s->ids ? qn_new_array((size_t)n_vocab, sizeof *s->values, e) : NULL;
    s->chance = s->values ? qn_new_array((size_t)n_vocab, sizeof *s->chance, e) : NULL;
    s->weight = s->chance ? qn_new_array((size_t)n_vocab, sizeof *s->weight, e) : NULL;
    s->key = s->weight ? qn_new_array((size_t)n_vocab, sizeof *s->key, e) : NULL;
    return s->key && qn_ranking_open(&s->ranking, n_vocab, e);
}

void qn_sampler_close(qn_sampler *s)
{
    qn_free(s->work);
    qn_free(s->counts);
    qn_free(s->set);
    qn_free(s->ids);
    qn_free(s->values);
    qn_free(s->chance);
    qn_free(s->weight);
    qn_free(s->key);
    qn_ranking_close(&s->ranking);
    *s = (qn_sampler){ 0 };
}

static bool in(qn_err *e, const char *name, double v, double lo, double hi)
{
    if (v >= lo && v <= hi) return true; /* NaN fails */
    return qn_fail(e, QN_EUSAGE, "%s is %g; it must be between %g and %g", name, v, lo, hi);
}

bool qn_sampling_check(const qn_sampling *p, int n_vocab, qn_err *e)
{
    if (!in(e, "temperature", (double)p->temp, 0, 100) || !in(e, "top_k", p->top_k, 0, INT32_MAX) ||
        !in(e, "top_p", (double)p->top_p, 0, 1) || !in(e, "min_p", (double)p->min_p, 0, 1) ||
        !in(e, "typical_p", (double)p->typical_p, 0, 1) || !in(e, "repeat_penalty", (double)p->repeat_penalty, 0.01, 100) ||
        !in(e, "presence_penalty", (double)p->presence_penalty, -100, 100) ||
        !in(e, "frequency_penalty", (double)p->frequency_penalty, -100, 100) ||
        !in(e, "repeat_last_n", p->repeat_last_n, -1, INT32_MAX) || !in(e, "n_probs", p->n_probs, 0, QN_MOST_PROBS)) return false;
    for (int i = 0; i < p->n_bias; i++) {
        if (p->bias[i].id < 0 || p->bias[i].id >= n_vocab)
            return qn_fail(e, QN_EUSAGE, "logit bias for token %d, which is not between 0 and %d", p->bias[i].id, n_vocab - 1);
        if (isnan(p->bias[i].add) || p->bias[i].add == INFINITY)
            return qn_fail(e, QN_EUSAGE, "logit bias for token %d is no number", p->bias[i].id);
    }
    return true;
}

/* ---- penalties */

static void penalise(float *work, i32 id, int count, const qn_sampling *p)
{
    float v = work[id];
    v = v > 0 ? v / p->repeat_penalty : v * p->repeat_penalty;
    work[id] = v - p->presence_penalty - (float)count * p->frequency_penalty;
}

bool qn_sampling_penalises(const qn_sampling *p)
{
    return (p->repeat_penalty != 1 || p->presence_penalty != 0 || p->frequency_penalty != 0) && p->repeat_last_n != 0;
}

static void apply_penalties(qn_sampler *s, const qn_sampling *p, const i32 *history, size_t n_history)
{
    const size_t back = p->repeat_last_n < 0 ? n_history : qn_minz(n_history, (size_t)p->repeat_last_n);
    if (!qn_sampling_penalises(p) || back == 0) return;
    const i32 *last = history + n_history - back;
    for (size_t i = 0; i < back; i++)
        if (s->counts[last[i]] < UINT16_MAX) s->counts[last[i]]++;
    for (size_t i = 0; i < back; i++) { /* the first visit of an id penalises it and clears its count */
        if (s->counts[last[i]] == 0) continue;
        penalise(s->work, last[i], s->counts[last[i]], p);
        s->counts[last[i]] = 0;
    }
}

/* ---- selection */

static bool better(const qn_candidate *a, const qn_candidate *b)
{
    return a->logit > b->logit || (a->logit == b->logit && a->id < b->id);
}

static int best_first(const void *x, const void *y)
{
    const qn_candidate *a = x, *b = y;
    return better(a, b) ? -1 : better(b, a) ? 1 : 0;
}

/* The k best tokens by logit into s->set, best first. Returns how many: fewer than k only if the vocabulary is smaller. */
static int select_best(qn_sampler *s, const float *logits, int k)
{
    k = qn_mini(k, s->n_vocab);
    s->best->fn(&(qn_best){ .n = 1, .d = s->n_vocab, .k = k, .id = s->ids, .v = s->values, .x = logits }, lane_of(0, 1));
    for (int i = 0; i < k; i++) s->set[i] = (qn_candidate){ .id = s->ids[i], .logit = s->values[i] };
    return k;
}

/* y[i] = e^(x[i] / temp) / their sum; the logarithm of that sum. y may be x. */
static double weigh(const qn_sampler *s, float *y, const float *x, float temp)
{
    float log_sum;
    s->softmax->fn(&(qn_softmax){ .n = 1, .d = s->n_vocab, .y = y, .x = x, .scale = 1 / temp, .log_sum = &log_sum },
                   lane_of(0, 1));
    return (double)log_sum;
}

#define PART 1024 /* weights that are added up as floats, by eights */

static double sum_part(const float *w, int n)
{
    float s[8] = { 0 };
    for (int i = 0; i < n; i++) s[i % 8] += w[i];
    return ((double)s[0] + (double)s[1] + (double)s[2] + (double)s[3]) +
           ((double)s[4] + (double)s[5] + (double)s[6] + (double)s[7]);
}

static void set_probabilities(qn_candidate *set, int n, double log_sum)
{
    for (int i = 0; i < n; i++) set[i].p = (float)exp((double)set[i].logit - log_sum);
}

/* ---- truncation; each returns how many of set[0..n) remain */

static int cut_top_p(const qn_candidate *set, int n, float top_p)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += (double)set[i].p;
        if (sum >= (double)top_p) return i + 1;
    }
    return n;
}

static int cut_min_p(const qn_candidate *set, int n, float min_p)
{
    int keep = 1;
    while (keep < n && set[keep].p >= set[0].p * min_p) keep++;
    return keep;
}

/* Keeps the tokens whose surprise is nearest to the expected one until they hold typical_p, best first afterwards. Works on
 * probabilities normalised over the set. p is lent out to hold the distance while sorting. */
static int nearest_first(const void *x, const void *y)
{
    const qn_candidate *a = x, *b = y;
    return a->p < b->p ? -1 : a->p > b->p ? 1 : best_first(x, y);
}

static int cut_typical(qn_candidate *set, int n, float typical_p)
{
    double entropy = 0, log_sum, total = 0, sum = 0;
    for (int i = 0; i < n; i++) total += exp((double)(set[i].logit - set[0].logit));
    log_sum = (double)set[0].logit + log(total);
    for (int i = 0; i < n; i++) {
        const double lp = (double)set[i].logit - log_sum;
        if (lp > -INFINITY) entropy -= exp(lp) * lp;
    }
    for (int i = 0; i < n; i++) set[i].p = (float)fabs(log_sum - (double)set[i].logit - entropy);
    qsort(set, (size_t)n, sizeof *set, nearest_first);
    int keep = 0;
    while (keep < n && sum < (double)typical_p) sum += exp((double)set[keep++].logit - log_sum);
    keep = qn_maxi(keep, 1);
    qsort(set, (size_t)keep, sizeof *set, best_first);
    return keep;
}

#define GUESS 64 /* as many as most rules leave over */

/* What the rules leave over of s->set[0..n), best first, whose probabilities add up to e^all. */
static int apply_rules(qn_sampler *s, const qn_sampling *p, int n, double all)
{
    set_probabilities(s->set, n, all);
    return cut_min_p(s->set, cut_top_p(s->set, n, p->top_p), p->min_p);
}

/* With top-k probabilities are those among the k, which are in s->set. */
static int truncate_few(qn_sampler *s, const qn_sampling *p, int n)
{
    double sum = 0;
    if (p->typical_p < 1) n = cut_typical(s->set, n, p->typical_p);
    for (int i = 0; i < n; i++) sum += exp((double)(s->set[i].logit - s->set[0].logit));
    return apply_rules(s, p, n, (double)s->set[0].logit + log(sum));
}

/* What the rules leave over of the best, best first; 0: more than GUESS. Without top-k probabilities are those among all. */
static int truncate(qn_sampler *s, const qn_sampling *p)
{
    const int n = select_best(s, s->work, p->top_k ? p->top_k : GUESS);
    if (p->top_k) return truncate_few(s, p, n);
    const int keep = apply_rules(s, p, n, weigh(s, s->chance, s->work, 1));
    return keep < n || n == s->n_vocab ? keep : 0;
}

static i32 draw_from(const qn_candidate *set, int n, float temp, double u)
{
    double sum = 0, at = 0;
    for (int i = 0; i < n; i++) sum += exp((double)((set[i].logit - set[0].logit) / temp));
    for (int i = 0; i < n - 1; i++) {
        at += exp((double)((set[i].logit - set[0].logit) / temp));
        if (u * sum < at) return set[i].id;
    }
    return set[n - 1].id;
}

/* The same with as many as the rules leave over, after truncate() without top-k: s->set[0] is the best, s->chance is made. */
static i32 draw_ranked(qn_sampler *s, const qn_sampling *p, double u)
{
    qn_ranking *r = &s->ranking;
    const float top = s->set[0].logit, least = s->chance[s->set[0].id] * p->min_p;
    qn_rank cut;
    const qn_rank *end = p->top_p < 1 ? &cut : NULL;
    for (int i = 0; i < s->n_vocab; i++) s->key[i] = top - s->work[i];
    qn_ranking_order(r, s->key, s->work);
    if (end) cut = qn_ranking_reach(r, s->chance, (double)p->top_p * qn_ranking_weigh(r, s->chance, NULL), false, NULL);
    weigh(s, s->weight, s->work, p->temp);
    for (int i = 0; i < s->n_vocab; i++) s->weight[i] = s->chance[i] >= least ? s->weight[i] : 0;
    const double sum = qn_ranking_weigh(r, s->weight, end);
    return qn_ranking_reach(r, s->weight, u * sum, true, end).last;
}

/* Takes the logits of those away whose surprise is not nearest to the expected one, until the rest holds typical_p. */
static void drop_untypical(qn_sampler *s, float typical_p)
{
    const int n = s->n_vocab;
    const double log_sum = weigh(s, s->chance, s->work, 1);
    double entropy[8] = { 0 };
    for (int i = 0; i < n; i++)
        entropy[i % 8] += s->chance[i] > 0 ? (double)s->chance[i] * (log_sum - (double)s->work[i]) : 0;
    for (int k = 1; k < 8; k++) entropy[0] += entropy[k];
    for (int i = 0; i < n; i++) s->key[i] = (float)fabs(log_sum - (double)s->work[i] - entropy[0]);
    qn_ranking *r = &s->ranking;
    qn_ranking_order(r, s->key, s->work);
    const double sum = qn_ranking_weigh(r, s->chance, NULL);
    const qn_rank end = qn_ranking_reach(r, s->chance, (double)typical_p * sum, false, NULL);
    for (int k = 0; k < end.tokens; k++) s->values[k] = s->work[r->near[k]];
    for (int i = 0; i < n; i++) s->work[i] = r->range[i] < end.range ? s->work[i] : -INFINITY;
    for (int k = 0; k < end.tokens; k++) s->work[r->near[k]] = s->values[k];
}

/* No rule leaves anything out: a walk through all weights, in the order of the vocabulary. Uses up s->work. */
static i32 draw_from_all(qn_sampler *s, float temp, double u)
{
    const int n = s->n_vocab;
    double sum = 0, at = 0, part;
    weigh(s, s->work, s->work, temp);
    for (int i = 0; i < n; i += PART) sum += sum_part(s->work + i, qn_mini(PART, n - i)); /* 1, but for rounding */
    int i = 0;
    for (; i + PART < n && at + (part = sum_part(s->work + i, PART)) <= u * sum; i += PART) at += part;
    for (; i < n; i++) {
        at += (double)s->work[i];
        if (u * sum < at) return i;
    }
    for (i = n - 1; i > 0 && !(s->work[i] > 0); i--) {} /* rounding, u was next to 1: the last that has any weight */
    return i;
}

static bool takes_all(const qn_sampling *p)
{
    return p->top_k == 0 && p->top_p >= 1 && p->min_p <= 0 && p->typical_p >= 1;
}

i32 qn_sampler_draw(qn_sampler *s, const float *logits, const qn_sampling *p, const i32 *history, size_t n_history, u64 n_drawn,
                    float *logprob)
{
    memcpy(s->work, logits, (size_t)s->n_vocab * sizeof *logits);
    apply_penalties(s, p, history, n_history);
    for (int i = 0; i < p->n_bias; i++) s->work[p->bias[i].id] += p->bias[i].add;
    i32 id;
    if (p->temp <= 0 || p->top_k == 1) {
        select_best(s, s->work, 1);
        id = s->set[0].id;
    } else if (takes_all(p)) {
        id = draw_from_all(s, p->temp, qn_rng_unit(p->seed, n_drawn));
    } else {
        if (p->typical_p < 1 && p->top_k == 0) drop_untypical(s, p->typical_p);
        const int n = truncate(s, p);
        const double u = qn_rng_unit(p->seed, n_drawn);
        id = n > 0 ? draw_from(s->set, n, p->temp, u) : draw_ranked(s, p, u);
    }
    if (logprob) *logprob = NAN;
    if (p->n_probs) { /* a pass of exponentials over the vocabulary: only for those who look at it */
        const double sum = weigh(s, s->chance, logits, 1);
        if (logprob) *logprob = (float)((double)logits[id] - sum);
        const int n = select_best(s, logits, p->n_probs);
        for (int i = 0; i < n; i++) s->probs[i] = (qn_prob){ s->set[i].id, (float)((double)s->set[i].logit - sum) };
    }
    return id;
}

bool qn_sampler_few(const qn_sampling *p, int n)
{
    return p->temp > 0 && p->top_k > 0 && p->top_k <= n && p->n_probs == 0 && p->n_bias == 0 && !qn_sampling_penalises(p);
}

i32 qn_sampler_draw_few(qn_sampler *s, const i32 *ids, const float *logits, int n, const qn_sampling *p, u64 n_drawn)
{
    n = qn_mini(n, p->top_k);
    for (int i = 0; i < n; i++) s->set[i] = (qn_candidate){ .id = ids[i], .logit = logits[i] };
    if (n == 1) return s->set[0].id;
    return draw_from(s->set, truncate_few(s, p, n), p->temp, qn_rng_unit(p->seed, n_drawn));
}

bool qn_sample(const float *logits, int n_vocab, const qn_sampling *p, const int32_t *history, size_t n_history,
               uint64_t n_drawn, int32_t *id, float *logprob, qn_err *e)
{
    if (n_vocab < 1) return qn_fail(e, QN_EUSAGE, "a vocabulary of %d tokens", n_vocab);
    if (!qn_sampling_check(p, n_vocab, e)) return false;
    for (size_t i = 0; i < n_history; i++)
        if (history[i] < 0 || history[i] >= n_vocab) return qn_fail(e, QN_EUSAGE, "token %d in the history", history[i]);
    qn_sampler s;
    const bool ok = qn_sampler_open(&s, n_vocab, qn_cpu_isa(), NULL, e);
    if (ok) *id = qn_sampler_draw(&s, logits, p, history, n_history, n_drawn, logprob);
    qn_sampler_close(&s);
    return ok;
}
