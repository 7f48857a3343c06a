/* test_db.c - a database of ours is made, found again, shared; what is not ours is set aside, and nothing is ever lost silently. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/db.h"

#define ID 0x51544553u
static const char schema[] = "CREATE TABLE IF NOT EXISTS t(a INTEGER);";

typedef struct place { char dir[64], path[96], note[240]; } place;

static int set_up(void **state)
{
    place *p = calloc(1, sizeof *p);
    snprintf(p->dir, sizeof p->dir, "/tmp/quern-db-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    snprintf(p->path, sizeof p->path, "%s/deep/er/x.db", p->dir);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const names[] = { "deep/er/x.db", "deep/er/x.db.old", "deep/er/x.db-journal", "deep/er", "deep", "" };
    place *p = *state;
    for (size_t i = 0; i < QN_COUNT(names); i++) {
        char path[160];
        snprintf(path, sizeof path, "%s/%s", p->dir, names[i]);
        remove(path);
    }
    free(p);
    return 0;
}

static sqlite3 *open_ok(place *p, int version)
{
    qn_err e = { 0 };
    sqlite3 *db = qn_db_open(p->path, ID, version, schema, p->note, &e);
    if (!db) fail_msg("%s", e.msg);
    return db;
}

static i64 count(sqlite3 *db)
{
    qn_err e = { 0 };
    sqlite3_stmt *s = qn_db_prepare(db, "SELECT count(*) FROM t", &e);
    assert_non_null(s);
    assert_int_equal(qn_db_step(s, &e), 1);
    const i64 n = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return n;
}

static void add_row(place *p)
{
    qn_err e = { 0 };
    sqlite3 *db = open_ok(p, 1);
    assert_true(qn_db_exec(db, "INSERT INTO t VALUES (7)", &e));
    qn_db_close(db);
}

static void found_again(void **state)
{
    place *p = *state;
    add_row(p);
    add_row(p);
    assert_string_equal(p->note, "");
    sqlite3 *db = open_ok(p, 1), *other = open_ok(p, 1);
    assert_int_equal(count(db), 2);
    assert_int_equal(count(other), 2);
    qn_db_close(db);
    qn_db_close(other);
}

static void expect_new(place *p, int version, const char *why)
{
    sqlite3 *db = open_ok(p, version);
    assert_int_equal(count(db), 0);
    if (!strstr(p->note, why)) fail_msg("note: %s", p->note);
    qn_db_close(db);
}

static void other_version(void **state)
{
    add_row(*state);
    expect_new(*state, 2, "another version");
}

static void write_file(const char *path, const char *text, off_t at)
{
    const int fd = open(path, O_WRONLY | O_CREAT, 0666);
    assert_true(fd >= 0 && pwrite(fd, text, strlen(text), at) == (ssize_t)strlen(text));
    close(fd);
}

static void no_database(void **state)
{
    place *p = *state;
    add_row(p);
    assert_int_equal(truncate(p->path, 0), 0);
    write_file(p->path, "this was a shopping list once, and it is long enough to be no header of a database at all ........", 0);
    expect_new(p, 1, "is damaged");
}

static void flipped_bits(void **state)
{
    place *p = *state;
    add_row(p);
    write_file(p->path, "\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f", 4096); /* the head of the table's page */
    expect_new(p, 1, "is damaged");
}

static void foreign(void **state)
{
    place *p = *state;
    qn_err e = { 0 };
    sqlite3 *db = open_ok(p, 1);
    assert_true(qn_db_exec(db, "PRAGMA application_id = 99", &e));
    qn_db_close(db);
    expect_new(p, 1, "is not ours");
}

static void no_place(void **state)
{
    place *p = *state;
    qn_err e = { 0 };
    assert_null(qn_db_open("/proc/none/x.db", ID, 1, schema, p->note, &e));
    assert_true(e.code != QN_OK && *e.msg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(found_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_version, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_database, set_up, tear_down),
        cmocka_unit_test_setup_teardown(flipped_bits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(foreign, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_place, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
