/* sampler.h - from logits to a token. The order is llama.cpp's: penalties and bias, top-k, typical, top-p, min-p,
 * temperature, draw. */
#ifndef QN_SAMPLER_H
#define QN_SAMPLER_H

#include "base/mem.h"
#include "engine/ranking.h"
#include "kernel/plan.h"
#include "kernel/tuned.h"

#define QN_MOST_PROBS 20

typedef struct qn_candidate { i32 id; float logit, p; } qn_candidate;

typedef struct qn_sampler {
    int n_vocab;
    float *work;              /* [n_vocab] logits with penalties and bias */
    u16 *counts;              /* [n_vocab] of each token among the last ones; zero between calls */
    qn_candidate *set;        /* [n_vocab] */
    i32 *ids;                 /* [n_vocab] what the kernel finds, and */
    float *values;            /* [n_vocab] its values */
    float *chance, *weight;   /* [n_vocab] probabilities; the same at the temperature to draw with */
    float *key;               /* [n_vocab] of the order that */
    qn_ranking ranking;       /* looks at */
    const qn_kernel *softmax, *best;
    qn_prob probs[QN_MOST_PROBS];
} qn_sampler;

/* isa, tuned: as for a plan's choices; tuned may be NULL. */
bool qn_sampler_open(qn_sampler *s, int n_vocab, qn_isa isa, const qn_tuned *tuned, qn_err *e);
void qn_sampler_close(qn_sampler *s);

/* Says what is senseless in p, naming the allowed range. */
bool qn_sampling_check(const qn_sampling *p, int n_vocab, qn_err *e);
bool qn_sampling_penalises(const qn_sampling *p); /* tokens that were there before */

/* n_drawn: tokens this seed has drawn before. *logprob (may be NULL): of the token in the model's own distribution, NaN
 * unless p->n_probs; s->probs gets the best p->n_probs. Cannot fail: p was checked. */
i32 qn_sampler_draw(qn_sampler *s, const float *logits, const qn_sampling *p, const i32 *history, size_t n_history, u64 n_drawn,
                    float *logprob);

/* The same from the best tokens alone, best first, a tie to the lower id: the same token where `few` holds for as many. */
bool qn_sampler_few(const qn_sampling *p, int n);
i32 qn_sampler_draw_few(qn_sampler *s, const i32 *ids, const float *logits, int n, const qn_sampling *p, u64 n_drawn);

#endif
