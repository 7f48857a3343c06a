/* files.h - for tests: a folder that goes away again, files with given bytes in it, and what a refusal must look like. */
#ifndef QN_TEST_FILES_H
#define QN_TEST_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

static char test_dir[64];

static int make_test_dir(void **state)
{
    (void)state;
    snprintf(test_dir, sizeof test_dir, "/tmp/quern-test-XXXXXX");
    return mkdtemp(test_dir) ? 0 : -1;
}

__attribute__((unused)) static void remove_tree(const char *dir)
{
    DIR *d = opendir(dir);
    if (!d) return;
    for (struct dirent *it; (it = readdir(d));) {
        if (!strcmp(it->d_name, ".") || !strcmp(it->d_name, "..")) continue;
        char path[600];
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", dir, it->d_name);
        if (!lstat(path, &st) && S_ISDIR(st.st_mode)) remove_tree(path);
        else unlink(path);
    }
    closedir(d);
    rmdir(dir);
}

__attribute__((unused)) static int remove_test_dir(void **state)
{
    (void)state;
    remove_tree(test_dir);
    return 0;
}

/* A path in the test's folder; four of them live at a time. */
__attribute__((unused)) static const char *at(const char *name)
{
    static char paths[4][512];
    static int next;
    next = (next + 1) % 4;
    snprintf(paths[next], sizeof paths[next], "%s/%s", test_dir, name);
    return paths[next];
}

__attribute__((unused)) static const char *put_file(const char *name, const void *p, size_t n)
{
    const char *path = at(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return path;
}

__attribute__((unused)) static u8 *get_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    u8 *p = malloc(*n + 1);
    assert_non_null(p);
    assert_int_equal(fread(p, 1, *n, f), *n);
    fclose(f);
    return p;
}

/* One sentence that has the word in it. */
__attribute__((unused)) static void check_refusal(const qn_err *e, const char *word)
{
    if (!e->code || !e->msg[0] || strchr(e->msg, '\n') || !strstr(e->msg, word))
        fail_msg("code %d, message \"%s\", expected to find \"%s\"", e->code, e->msg, word);
}

#endif
