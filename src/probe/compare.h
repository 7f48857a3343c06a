/* compare.h - runs a kernel on one case and compares. Internal to probe/. */
#ifndef QN_COMPARE_H
#define QN_COMPARE_H

#include "probe/case.h"
#include "probe/probe.h"
#include "probe/reference.h"

/* known: the references of this case's shape and seed, or NULL. Fills at, why and the error figures of r. False: the kernel is
 * wrong; or, with e->code set, there was no memory to tell. */
bool qn_compare(const qn_kernel *k, qn_case *c, const qn_references *known, qn_pool *pool, qn_probe_result *r, qn_err *e);

/* What a run of anything left in the outputs, against the oracle: for kernels that are not ours. */
bool qn_compare_outputs(qn_case *c, const qn_references *known, qn_probe_result *r, qn_err *e);

#endif
