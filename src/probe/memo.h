/* memo.h - what the probe has found out before, in SQLite. A result is kept under everything that could change it: the
 * kernel and the hash of its code (or the library's version), the processor, the threads, the shape. References are kept beside
 * them. Each row carries a sum over itself: one that was damaged is as good as not there. Two probes may write at once. */
#ifndef QN_MEMO_H
#define QN_MEMO_H

#include "probe/contest.h"

typedef struct qn_memo qn_memo;

/* note: one sentence when an old file had to be set aside; else "". NULL: no cache can be had here, *e says why. */
qn_memo *qn_memo_open(const char *path, char note[240], qn_err *e);
void qn_memo_close(qn_memo *s);

/* Fills in and marks as cached whoever is known. *damaged counts rows that do not fit their sum. */
bool qn_memo_get(qn_memo *s, qn_contest *c, int threads, int *damaged, qn_err *e);
/* Keeps what is new. */
bool qn_memo_put(qn_memo *s, const qn_contest *c, int threads, qn_err *e);

/* A reference (reference.h): n doubles. False: it is not there, or not what was kept. */
typedef struct qn_reference_key { const char *shape; u64 inputs; int mood, operand; } qn_reference_key;
bool qn_memo_get_reference(qn_memo *s, const qn_reference_key *key, double *out, size_t n, qn_err *e);
bool qn_memo_put_reference(qn_memo *s, const qn_reference_key *key, const double *p, size_t n, qn_err *e);

/* Of the object file that a kernel was compiled into; "?" for what is not there; "oracle": of the references. */
const char *qn_kernel_code(const char *kernel);

#endif
