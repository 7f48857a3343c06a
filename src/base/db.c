/* db.c - opening a SQLite file with care. The check is SQLite's own quick_check: a flipped bit in a page is found before a
 * figure is read from it. */
#include "base/db.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

#define WAIT_MS 5000 /* for another process that writes */

static bool fail_db(sqlite3 *db, qn_err *e) { return qn_fail(e, QN_EIO, "%.180s", sqlite3_errmsg(db)); }

sqlite3_stmt *qn_db_prepare(sqlite3 *db, const char *sql, qn_err *e)
{
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK) return s;
    fail_db(db, e);
    return NULL;
}

int qn_db_step(sqlite3_stmt *s, qn_err *e)
{
    const int got = sqlite3_step(s);
    if (got == SQLITE_ROW) return 1;
    if (got == SQLITE_DONE) return 0;
    fail_db(sqlite3_db_handle(s), e);
    return -1;
}

bool qn_db_exec(sqlite3 *db, const char *sql, qn_err *e)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK || fail_db(db, e);
}

void qn_db_close(sqlite3 *db) { sqlite3_close_v2(db); }

/* The number that a PRAGMA answers; -1: it cannot be asked, the file is no database. */
static i64 ask(sqlite3 *db, const char *sql)
{
    qn_err ignored = { 0 };
    sqlite3_stmt *s = qn_db_prepare(db, sql, &ignored);
    const i64 v = s && qn_db_step(s, &ignored) == 1 ? sqlite3_column_int64(s, 0) : -1;
    sqlite3_finalize(s);
    return v;
}

static bool healthy(sqlite3 *db)
{
    qn_err ignored = { 0 };
    sqlite3_stmt *s = qn_db_prepare(db, "PRAGMA quick_check(1)", &ignored);
    const bool ok = s && qn_db_step(s, &ignored) == 1 && !strcmp((const char *)sqlite3_column_text(s, 0), "ok");
    sqlite3_finalize(s);
    return ok;
}

typedef enum state { STATE_ours, STATE_new, STATE_foreign } state;

static state look_within(sqlite3 *db, u32 id, int version, const char **why)
{
    const i64 found_id = ask(db, "PRAGMA application_id"), tables = ask(db, "SELECT count(*) FROM sqlite_master");
    if (found_id == 0 && tables == 0) return STATE_new;
    if (found_id < 0 || tables < 0 || !healthy(db)) *why = "is damaged";
    else if ((u32)found_id != id) *why = "is not ours";
    else if (ask(db, "PRAGMA user_version") != version) *why = "has another version's content";
    else return STATE_ours;
    return STATE_foreign;
}

/* In one transaction: another process may begin the file between two questions, and half an answer looks foreign. */
static state look(sqlite3 *db, u32 id, int version, const char **why)
{
    sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    const state s = look_within(db, id, version, why);
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    return s;
}

static bool begin_file(sqlite3 *db, u32 id, int version, const char *schema, qn_err *e)
{
    char ids[96];
    snprintf(ids, sizeof ids, "PRAGMA application_id = %d; PRAGMA user_version = %d;", (int)id, version);
    /* another process may have begun it between our look and this: then its tables stand, and IF NOT EXISTS passes over them */
    const bool ok = qn_db_exec(db, "BEGIN IMMEDIATE", e) && qn_db_exec(db, ids, e) && qn_db_exec(db, schema, e);
    return qn_db_exec(db, ok ? "COMMIT" : "ROLLBACK", e) && ok;
}

static sqlite3 *open_file(const char *path, qn_err *e)
{
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) == SQLITE_OK) {
        sqlite3_busy_timeout(db, WAIT_MS);
        return db;
    }
    qn_fail(e, QN_EIO, "%.120s: %.100s", path, db ? sqlite3_errmsg(db) : "no memory");
    qn_db_close(db);
    return NULL;
}

/* The file and what SQLite keeps beside it. */
static void set_aside(const char *path, char note[240], const char *why)
{
    char old[4096];
    snprintf(old, sizeof old, "%s.old", path);
    if (rename(path, old)) unlink(path);
    snprintf(old, sizeof old, "%s-journal", path);
    unlink(old);
    snprintf(note, 240, "%.160s %s: set aside as .old, a new one is begun", path, why);
}

sqlite3 *qn_db_open(const char *path, u32 id, int version, const char *schema, char note[240], qn_err *e)
{
    note[0] = 0;
    if (!qn_mkdirs_for(path, e)) return NULL;
    for (int tries = 0; tries < 2; tries++) {
        sqlite3 *db = open_file(path, e);
        const char *why = NULL;
        if (!db) return NULL;
        const state s = look(db, id, version, &why);
        if (s == STATE_ours || (s == STATE_new && begin_file(db, id, version, schema, e))) return db;
        qn_db_close(db);
        if (s == STATE_new) return NULL; /* *e says why: a full disk, a folder that cannot be written */
        set_aside(path, note, why);
    }
    qn_fail(e, QN_EIO, "%.180s cannot be replaced", path);
    return NULL;
}
