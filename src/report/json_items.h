/* json_items.h - the elements of one long JSON array, one by one, without holding the whole text: the array that the text is, or
 * the one that a key of the outermost object names. For trace files of gigabytes, which are often one single line. */
#ifndef QN_JSON_ITEMS_H
#define QN_JSON_ITEMS_H

#include "report/import.h"

typedef struct qn_items {
    qn_import *im;
    const char *key;        /* of the array in the outermost object */
    int state;
    u64 bad, bad_at;        /* elements that are no JSON; the first one */
    bool cut;               /* the text ended inside an element, at cut_at */
    u64 cut_at;
} qn_items;

/* The next element that is an object (others are counted as bad); lives until the next call. */
qn_got qn_items_next(qn_items *it, qn_str *element, qn_err *e);

#endif
