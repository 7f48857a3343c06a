/* numlist.h - whole numbers as people list them on a command line: "16,32", "1-8", "1-8+2", "1-64*2". */
#ifndef QN_NUMLIST_H
#define QN_NUMLIST_H

#include "base/err.h"

#define QN_INTS_MOST 1024 /* numbers in one list: enough for any sweep, too few to fill memory by a slip */

typedef struct qn_ints { int *at; int n; } qn_ints; /* zeroed = empty */

bool qn_ints_add(qn_ints *list, int v, qn_err *e);
/* Adds what text lists, in its order; every number must lie within lo..hi (lo >= 0). what: the option, for messages. */
bool qn_ints_parse(qn_ints *list, const char *text, int lo, int hi, const char *what, qn_err *e);
int qn_ints_max(const qn_ints *list); /* 0 when empty */
void qn_ints_close(qn_ints *list);

#endif
