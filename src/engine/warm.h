/* warm.h - brings the mapped weights into memory before the first token, with progress. */
#ifndef QN_WARM_H
#define QN_WARM_H

#include "format/source.h"

/* False: cancelled by the callback, or a file is shorter than when it was mapped. */
bool qn_warm(const qn_source *s, qn_progress_fn progress, void *user, qn_err *e);

#endif
