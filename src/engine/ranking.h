/* ranking.h - an order of all tokens, and how far their weights reach in it, without sorting them. */
#ifndef QN_RANKING_H
#define QN_RANKING_H

#include "base/mem.h"

typedef struct qn_ranking {
    int n, n_near;
    const float *key, *logits;   /* of the order at hand: smaller keys first; then larger logits, then lower ids */
    u16 *range;                  /* [n] of each token's key */
    double *mass;                /* weight in each range */
    i32 *near;                   /* [n] tokens of the range that was looked at last, in order */
} qn_ranking;

/* A place in the order: so many ranges as a whole, and so many tokens of the next. */
typedef struct qn_rank { int range, tokens; i32 last; } qn_rank; /* last: the token before the place */

bool qn_ranking_open(qn_ranking *r, int n, qn_err *e);
void qn_ranking_close(qn_ranking *r);

/* key: 0 at least, or NaN: those come last. Both arrays must stay as they are while the order is used. */
void qn_ranking_order(qn_ranking *r, const float *key, const float *logits);

/* The weights, 0 at least, to be reached; returns their sum over what is before `end`. NULL: over all. */
double qn_ranking_weigh(qn_ranking *r, const float *weight, const qn_rank *end);

/* The shortest beginning of the order whose weights reach `target`, at least one token; beyond: exceed it. Where
 * rounding keeps it from being reached, the longest one that ends with some weight. */
qn_rank qn_ranking_reach(qn_ranking *r, const float *weight, double target, bool beyond, const qn_rank *end);

#endif
