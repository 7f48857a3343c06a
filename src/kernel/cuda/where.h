/* where.h - where a plan shall run, as --device says it. */
#ifndef QN_CUDA_WHERE_H
#define QN_CUDA_WHERE_H

#include "base/err.h"

typedef struct qn_where { bool cuda, must; int ordinal; } qn_where; /* must: no way back to the CPU */

/* "auto" (or NULL), "cpu", "cuda", "cuda:1" to what to try. */
bool qn_where_parse(const char *text, qn_where *out, qn_err *e);

#endif
