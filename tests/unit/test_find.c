/* test_find.c - names to paths over a folder that the test builds: paths, the models folder, the Hugging Face cache with its
 * links, refs and split files; which files make a model; names that must be refused; memory that runs out at every point. */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "hub/choice.h"
#include "hub/hub.h"
#include "hub/repo.h"

#define C1 "1111111111111111111111111111111111111111"
#define C2 "2222222222222222222222222222222222222222"

typedef struct place { char root[64]; } place;

static void put(const place *w, const char *name, const char *text)
{
    char path[512], dir[512];
    qn_err e = { 0 };
    snprintf(path, sizeof path, "%s/%s", w->root, name);
    snprintf(dir, sizeof dir, "%s", path);
    *strrchr(dir, '/') = '\0';
    assert_true(qn_mkdirs(dir, &e));
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void put_repo(const place *w, const char *folder, const char *commit, const char *file)
{
    char name[200], blob[400], id[100];
    qn_err e = { 0 };
    snprintf(name, sizeof name, "%s-%s", commit, file);
    for (char *p = name; *p; p++)
        if (*p == '/') *p = '_';
    snprintf(blob, sizeof blob, "hub/models--%s/blobs/%s", folder, name);
    put(w, blob, "bytes");
    snprintf(id, sizeof id, "%s", folder);
    char *mid = strstr(id, "--");
    *mid = '/';
    memmove(mid + 1, mid + 2, strlen(mid + 2) + 1);
    qn_repo_dir d;
    assert_true(qn_repo_dir_open(&d, id, &e));
    assert_true(qn_repo_link(&d, commit, file, name, &e));
    qn_repo_dir_close(&d);
}

static int set_up(void **state)
{
    static place w; /* one at a time: cmocka runs them in turn */
    qn_err e = { 0 };
    snprintf(w.root, sizeof w.root, "/tmp/quern-find-XXXXXX");
    if (!mkdtemp(w.root)) return 1;
    char path[128];
    setenv("QUERN_HOME", w.root, 1);
    snprintf(path, sizeof path, "%s/hub", w.root);
    setenv("HF_HUB_CACHE", path, 1);
    put(&w, "models/small.gguf", "GGUF");
    put(&w, "models/folder/model.safetensors", "x");
    put_repo(&w, "org--gg", C1, "gg-Q8_0.gguf");
    put_repo(&w, "org--gg", C1, "gg-Q4_K_M.gguf");
    put_repo(&w, "org--gg", C2, "gg-F16.gguf");
    put_repo(&w, "org--split", C1, "q8/x-Q8_0-00001-of-00002.gguf");
    put_repo(&w, "org--split", C1, "q8/x-Q8_0-00002-of-00002.gguf");
    put_repo(&w, "org--half", C1, "x-00002-of-00002.gguf");
    put_repo(&w, "org--st", C1, "model.safetensors");
    put_repo(&w, "org--st", C1, "config.json");
    qn_repo_dir d;
    if (!qn_repo_dir_open(&d, "org/gg", &e)) return 1;
    if (!qn_repo_ref(&d, "main", C1, &e) || !qn_repo_ref(&d, "refs/pr/1", C2, &e)) return 1;
    qn_repo_dir_close(&d);
    *state = &w;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static int tear_down(void **state)
{
    return nftw(((place *)*state)->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void expect(const place *w, const char *name, const char *tail)
{
    qn_err e = { 0 };
    char *path = NULL, want[512];
    if (!qn_hub_find(name, &path, &e)) fail_msg("%s: %s", name, e.msg);
    snprintf(want, sizeof want, "%s/%s", w->root, tail);
    assert_string_equal(path, want);
    assert_int_equal(access(path, R_OK), 0); /* the link leads somewhere */
    qn_free(path);
}

static void expect_none(const char *name, const char *words)
{
    qn_err e = { 0 };
    char *path = NULL;
    assert_false(qn_hub_find(name, &path, &e));
    assert_null(path);
    if (!strstr(e.msg, words)) fail_msg("%s: no '%s' in '%s'", name, words, e.msg);
}

static void paths_and_models(void **state)
{
    const place *w = *state;
    char path[256];
    snprintf(path, sizeof path, "%s/models/small.gguf", w->root);
    expect(w, path, "models/small.gguf");
    snprintf(path, sizeof path, "%s/models", w->root);
    expect(w, path, "models");
    expect(w, "small", "models/small.gguf");
    expect(w, "small.gguf", "models/small.gguf");
    expect(w, "folder", "models/folder");
    expect_none("smal", "no model of this name");
    expect_none("./smal.gguf", "./smal.gguf: no such file;");
    expect_none("../models/small", "no such file");
}

static void cache(void **state)
{
    const place *w = *state;
    const char *s1 = "hub/models--org--gg/snapshots/" C1 "/gg-Q4_K_M.gguf";
    expect(w, "org/gg", s1);
    expect(w, "hf:org/gg", s1);
    expect(w, "org/gg@main", s1);
    expect(w, "org/gg@" C1, s1);
    expect(w, "org/gg/gg-Q8_0.gguf", "hub/models--org--gg/snapshots/" C1 "/gg-Q8_0.gguf");
    expect(w, "hf:org/gg@refs/pr/1", "hub/models--org--gg/snapshots/" C2 "/gg-F16.gguf");
    expect(w, "org/st", "hub/models--org--st/snapshots/" C1); /* no ref: the only snapshot */
    expect(w, "org/split", "hub/models--org--split/snapshots/" C1 "/q8/x-Q8_0-00001-of-00002.gguf");
    expect(w, "org/split/q8", "hub/models--org--split/snapshots/" C1 "/q8/x-Q8_0-00001-of-00002.gguf");
    expect(w, "org/split/q8/x-Q8_0-00002-of-00002.gguf",
           "hub/models--org--split/snapshots/" C1 "/q8/x-Q8_0-00001-of-00002.gguf");
    expect_none("org/gg/none.gguf", "no file named none.gguf");
    expect_none("org/half/x-00002-of-00002.gguf", "x-00001-of-00002.gguf is missing");
    expect_none("org/gg@v9", "quern pull org/gg@v9");
    expect_none("hf:org/other", "quern pull hf:org/other");
    expect_none("other/model", "quern list");
}

static void bad_names(void **state)
{
    static const char *const bad[] = {
        "hf:", "hf:/x", "hf:a/", "hf:../x", "hf:a/..", "hf:a--b/c", "hf:-a/c", "hf:a/b/../c", "hf:a/b//c", "hf:a/b/c/",
        "hf:a/b@", "hf:a/b@../x", "hf:a/b c", "hf:a/b/\x01", "hf:a/b@/x", "hf:a.", "plain",
    };
    (void)state;
    for (size_t i = 0; i < QN_COUNT(bad); i++) {
        qn_repo r;
        qn_err e = { 0 };
        if (qn_repo_parse(&r, bad[i], &e)) fail_msg("%s was taken for a repository", bad[i]);
        assert_int_equal(e.code, QN_EUSAGE);
    }
    qn_repo r;
    qn_err e = { 0 };
    assert_true(qn_repo_parse(&r, "hf:Org-1/re_po.v2/sub dir/f.gguf@refs/pr/3", &e));
    assert_string_equal(r.id, "Org-1/re_po.v2");
    assert_string_equal(r.file, "sub dir/f.gguf");
    assert_string_equal(r.rev, "refs/pr/3");
    qn_repo_close(&r);
}

/* A list of names (separated by spaces) and what must be chosen from it; the first is the one to open, "" the folder. */
static void expect_choice(const char *all, const char *file, const char *open, const char *files)
{
    qn_names l = { 0 };
    qn_choice c;
    qn_err e = { 0 };
    char text[512], got[512] = "";
    snprintf(text, sizeof text, "%s", all);
    for (char *t = text, *rest; t; t = rest) {
        rest = strchr(t, ' ');
        if (rest) *rest++ = '\0';
        assert_true(qn_names_add(&l, t, &e));
    }
    if (!qn_choice_open(&c, &l, file, "repo", &e)) fail_msg("%s: %s", all, e.msg);
    assert_string_equal(c.open ? c.open : "", open);
    for (size_t i = 0; i < c.files.n; i++) {
        if (i) strncat(got, " ", sizeof got - strlen(got) - 1);
        strncat(got, c.files.at[i], sizeof got - strlen(got) - 1);
    }
    assert_string_equal(got, files);
    qn_choice_close(&c);
    qn_names_close(&l);
}

static void choices(void **state)
{
    (void)state;
    expect_choice("a-Q8_0.gguf a-Q4_K_M.gguf a-F16.gguf", NULL, "a-Q4_K_M.gguf", "a-Q4_K_M.gguf");
    expect_choice("README.md a-BF16.gguf a-q8_0.gguf", NULL, "a-q8_0.gguf", "a-q8_0.gguf");
    expect_choice("a-Q2_K.gguf a-BF16.gguf a-IQ1_S.gguf", NULL, "a-Q2_K.gguf", "a-Q2_K.gguf");
    expect_choice("mmproj-Q8_0.gguf z.gguf imatrix.gguf", NULL, "z.gguf", "z.gguf");
    expect_choice("a-Q4_K.gguf a-Q4_K_XL.gguf", NULL, "a-Q4_K.gguf", "a-Q4_K.gguf");
    expect_choice("b-00002-of-00002.gguf b-00001-of-00002.gguf", NULL, "b-00001-of-00002.gguf",
                  "b-00001-of-00002.gguf b-00002-of-00002.gguf");
    expect_choice("Q8/a.gguf Q4/a.gguf", "Q8", "Q8/a.gguf", "Q8/a.gguf");
    expect_choice("model.safetensors consolidated.safetensors config.json tokenizer.model pytorch_model.bin README.md "
                  "onnx/model.onnx chat_template.jinja merges.txt", NULL, "",
                  "chat_template.jinja config.json merges.txt model.safetensors tokenizer.model");
    qn_names l = { 0 };
    qn_choice c;
    qn_err e = { 0 };
    assert_true(qn_names_add(&l, "pytorch_model.bin", &e));
    assert_false(qn_choice_open(&c, &l, NULL, "repo", &e));
    assert_non_null(strstr(e.msg, "neither GGUF nor safetensors"));
    qn_choice_close(&c);
    qn_names_close(&l);
}

static void listed(void **state)
{
    static const char *const want[] = { "folder", "org/gg/gg-Q4_K_M.gguf", "org/gg/gg-Q8_0.gguf",
                                        "org/split/q8/x-Q8_0-00001-of-00002.gguf", "org/st", "small" };
    (void)state;
    qn_hub_list l;
    qn_err e = { 0 };
    assert_true(qn_hub_list_open(&l, &e));
    size_t at = 0;
    for (size_t i = 0; i < l.n; i++) {
        if (strcmp(l.at[i].from, "built-in") == 0) continue; /* there or not: the source tree decides */
        assert_true(at < QN_COUNT(want));
        assert_string_equal(l.at[i].name, want[at++]);
        char *path = NULL;
        assert_true(qn_hub_find(l.at[i].name, &path, &e)); /* a listed name finds what is listed */
        assert_string_equal(path, l.at[i].path);
        qn_free(path);
        if (strstr(l.at[i].name, "split")) assert_int_equal(l.at[i].bytes, 10);
    }
    assert_int_equal(at, QN_COUNT(want));
    qn_hub_list_close(&l);
}

/* Whatever allocation fails: a clean error, or the right answer, and nothing leaks (the sanitizer build looks). */
static void without_memory(void **state)
{
    static const char *const names[] = { "small", "org/gg", "org/st", "nobody/there", NULL };
    (void)state;
    for (size_t k = 0; k < QN_COUNT(names); k++) {
        for (u64 n = 1; n < 400; n++) {
            qn_err e = { 0 };
            char *path = NULL;
            const u64 before = qn_mem_count();
            qn_mem_fail_at(n, true);
            const bool ok = qn_hub_find(names[k], &path, &e);
            const bool reached = qn_mem_count() - before >= n;
            qn_mem_fail_at(0, false);
            assert_int_equal(ok, path != NULL);
            if (!ok) assert_true(e.msg[0]);
            qn_free(path);
            if (!reached) break;
            if (ok) continue;
        }
    }
    for (u64 n = 1; n < 2000; n++) {
        qn_hub_list l;
        qn_err e = { 0 };
        const u64 before = qn_mem_count();
        qn_mem_fail_at(n, true);
        const bool ok = qn_hub_list_open(&l, &e);
        const bool reached = qn_mem_count() - before >= n;
        qn_mem_fail_at(0, false);
        if (ok) qn_hub_list_close(&l);
        if (!reached) break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_and_models), cmocka_unit_test(cache), cmocka_unit_test(bad_names), cmocka_unit_test(choices),
        cmocka_unit_test(listed), cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
