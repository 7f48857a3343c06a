/* device_contest.h - contests on a GPU: one linear, our kernels for it and cuBLAS's, each checked against double precision, then
 * timed in turns. The result is an ordinary contest. */
#ifndef QN_DEVICE_CONTEST_H
#define QN_DEVICE_CONTEST_H

#include "probe/contest.h"

typedef struct qn_device_fair qn_device_fair;

/* rivals: filled with who of cuBLAS is there. word: "cuda" or "cuda:N". */
qn_device_fair *qn_device_fair_open(const char *word, qn_rivals *rivals, qn_err *e);
void qn_device_fair_close(qn_device_fair *f);

/* Only linears without bias. Whoever is wrong is not timed. o: seconds, seed, progress and user count. */
bool qn_device_contest(qn_device_fair *f, const qn_shape *s, const qn_contest_opts *o, qn_contest *out, qn_err *e);

#endif
