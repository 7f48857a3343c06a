/* table.h - a hash table from byte strings to u32. Keys are borrowed: they must outlive the table. Order-free, grow-only. */
#ifndef QN_TABLE_H
#define QN_TABLE_H

#include "base/err.h"

typedef struct qn_table { struct qn_slot *slots; size_t n, cap; } qn_table; /* zeroed = empty */
#define QN_NONE 0xFFFFFFFFu

bool qn_table_reserve(qn_table *t, size_t n, qn_err *e);
/* Puts key if it is new. Returns the value that stands there now, so `!= value` means a duplicate; QN_NONE: no memory. */
u32 qn_table_put(qn_table *t, const char *key, size_t n, u32 value, qn_err *e);
u32 qn_table_get(const qn_table *t, const char *key, size_t n); /* QN_NONE: not there */
void qn_table_close(qn_table *t);
u64 qn_hash(const void *p, size_t n, u64 seed);

#endif
