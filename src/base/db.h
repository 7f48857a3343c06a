/* db.h - a small SQLite file of ours: opened, made or thrown aside, never trusted. What lies in such a file can be made again, so
 * one that is damaged, foreign or of another version is set aside with a note and a new one begun. Two processes may use one. */
#ifndef QN_DB_H
#define QN_DB_H

#include <sqlite3.h>

#include "base/err.h"

/* Opens the file, making it and its folder where they are missing. `id` tells our files from others (SQLite's application id),
 * `version` changes with the schema. note is filled ("" when there is nothing to say) with one sentence when an old file was set
 * aside, as path.old. NULL: it cannot be opened or written; *e says why, and the caller goes on without. */
sqlite3 *qn_db_open(const char *path, u32 id, int version, const char *schema, char note[240], qn_err *e);

/* A statement, ready to be bound; NULL with *e. */
sqlite3_stmt *qn_db_prepare(sqlite3 *db, const char *sql, qn_err *e);
/* Runs a statement that returns nothing. */
bool qn_db_exec(sqlite3 *db, const char *sql, qn_err *e);
/* Steps once. 1: a row; 0: done; -1: *e says what broke. */
int qn_db_step(sqlite3_stmt *s, qn_err *e);
void qn_db_close(sqlite3 *db); /* NULL is fine */

#endif
