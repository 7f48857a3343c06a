/* ceiling_store.c - one row per machine, isa and number of threads, and one per device (isa "cuda", no threads). A row carries
 * the hash of its own figures: SQLite notices a broken page, not a flipped bit in a number, and a wrong ceiling would be
 * believed. */
#include "probe/ceiling_store.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/db.h"
#include "base/file.h"
#include "base/sha256.h"

#define FILE_ID 0x716E6365u /* "qnce" */
#define VERSION 1

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS ceilings (cpu TEXT, isa TEXT, threads INTEGER, taken INTEGER, read_small REAL, read_huge REAL, "
    "huge_share REAL, f32 REAL, int8 REAL, bf16 REAL, barrier_ns REAL, clock_ns REAL, bytes REAL, hash TEXT, "
    "PRIMARY KEY (cpu, isa, threads)) WITHOUT ROWID;";

enum { FIGURES = 9 };

static void list_figures(const qn_ceilings *c, double out[FIGURES])
{
    const double all[FIGURES] = { c->read_small.p50, c->read_huge.p50, c->huge_share, c->flops.p50, c->int8.p50,
                                  c->bf16.p50, c->barrier_ns.p50, c->clock_ns.p50, (double)c->bytes };
    memcpy(out, all, sizeof all);
}

typedef struct key { const char *name, *isa; int threads; } key;

static key key_of(const char *device, qn_isa isa, int threads)
{
    return device[0] ? (key){ device, "cuda", 0 } : (key){ qn_cpu_name(), qn_isa_name(isa), threads };
}

static void hash_of(key k, const double figures[FIGURES], char hex[65])
{
    char text[512];
    qn_sha256 h;
    size_t n = (size_t)snprintf(text, sizeof text, "%s %d", k.isa, k.threads);
    for (int i = 0; i < FIGURES; i++) n += (size_t)snprintf(text + n, sizeof text - n, " %.17g", figures[i]);
    qn_sha256_begin(&h);
    qn_sha256_add(&h, k.name, strlen(k.name));
    qn_sha256_add(&h, text, n);
    qn_sha256_end(&h, hex);
}

static void bind_key(sqlite3_stmt *s, key k)
{
    sqlite3_bind_text(s, 1, k.name, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, k.isa, -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 3, k.threads);
}

bool qn_ceilings_save(const char *path, const qn_ceilings *c, char note[240], qn_err *e)
{
    double figures[FIGURES];
    char hash[65];
    sqlite3 *db = qn_db_open(path, FILE_ID, VERSION, schema, note, e);
    if (!db) return false;
    const key k = key_of(c->device, c->isa, c->threads);
    list_figures(c, figures);
    hash_of(k, figures, hash);
    sqlite3_stmt *s = qn_db_prepare(db, "INSERT OR REPLACE INTO ceilings VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)", e);
    bool ok = s != NULL;
    if (ok) {
        bind_key(s, k);
        sqlite3_bind_int64(s, 4, (sqlite3_int64)time(NULL));
        for (int i = 0; i < FIGURES; i++) sqlite3_bind_double(s, 5 + i, figures[i]);
        sqlite3_bind_text(s, 5 + FIGURES, hash, -1, SQLITE_STATIC);
        ok = qn_db_step(s, e) == 0;
    }
    sqlite3_finalize(s);
    qn_db_close(db);
    return ok;
}

/* The row at hand, if its hash is right. */
static bool read_row(sqlite3_stmt *s, key k, qn_ceilings *out)
{
    double f[FIGURES];
    char hash[65];
    for (int i = 0; i < FIGURES; i++) f[i] = sqlite3_column_double(s, i);
    hash_of(k, f, hash);
    const char *kept = (const char *)sqlite3_column_text(s, FIGURES);
    if (!kept || strcmp(kept, hash)) return false;
    *out = (qn_ceilings){ .huge_share = f[2], .bytes = (u64)f[8] };
    qn_stats *const at[] = { &out->read_small, &out->read_huge, NULL, &out->flops, &out->int8, &out->bf16, &out->barrier_ns,
                             &out->clock_ns };
    for (int i = 0; i < (int)QN_COUNT(at); i++)
        if (at[i] && f[i] > 0) *at[i] = (qn_stats){ .n = 1, .p50 = f[i] };
    return true;
}

bool qn_ceilings_load(const char *path, const char *device, qn_isa isa, int threads, qn_ceilings *out, char note[240], qn_err *e)
{
    const key k = key_of(device, isa, threads);
    note[0] = 0;
    if (!qn_is_file(path)) return false;
    sqlite3 *db = qn_db_open(path, FILE_ID, VERSION, schema, note, e);
    if (!db) return false;
    sqlite3_stmt *s = qn_db_prepare(db, "SELECT read_small, read_huge, huge_share, f32, int8, bf16, barrier_ns, clock_ns, bytes, "
                                        "hash FROM ceilings WHERE cpu = ? AND isa = ? AND threads = ?", e);
    bool found = false;
    if (s) {
        bind_key(s, k);
        if (qn_db_step(s, e) == 1) {
            found = read_row(s, k, out);
            if (!found) snprintf(note, 240, "the ceilings kept in %.150s are damaged and not used", path);
        }
    }
    sqlite3_finalize(s);
    qn_db_close(db);
    if (!found) return false;
    if (device[0]) snprintf(out->device, sizeof out->device, "%s", device);
    else out->isa = isa, out->threads = threads;
    return true;
}
