/* store_parts.h - what the files of the run store share. Private to report/store*.c. */
#ifndef QN_STORE_PARTS_H
#define QN_STORE_PARTS_H

#include "base/db.h"
#include "report/store.h"

#define QN_STORE_ID 0x7165726eu /* "qern" */
#define QN_STORE_VERSION 1

struct qn_store { sqlite3 *db; };

/* A statement with values: the letters of `types` say what follows: i (i64), d (double), t (const char *), b
 * (qn_str, bytes). */
sqlite3_stmt *qn_store_ask(qn_store *s, qn_err *e, const char *sql, const char *types, ...);

#endif
