/* test_file.c - files: what is not a plain file is refused at once, reading is bounded, writing is whole or not at all, names
 * do not lead out of their folder, and a map whose file was cut is an error on every thread. */
#include "files.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/file.h"

static void test_map(void **state)
{
    (void)state;
    qn_err e = { 0 };
    qn_map m;
    assert_true(qn_map_open(&m, put_file("some", "bytes", 5), &e));
    assert_int_equal(m.bytes, 5);
    assert_memory_equal(m.p, "bytes", 5);
    qn_map_close(&m);
    qn_map_close(&m); /* twice is fine */
    assert_true(qn_map_open(&m, put_file("empty", "", 0), &e));
    assert_true(m.bytes == 0 && m.p);
    qn_map_close(&m);
    assert_false(qn_map_open(&m, at("none"), &e));
    check_refusal(&e, "No such file");
    assert_false(qn_map_open(&m, "/dev/null", &e));
    check_refusal(&e, "is a device");
    assert_int_equal(mkfifo(at("fifo"), 0600), 0);
    assert_false(qn_map_open(&m, at("fifo"), &e));
    check_refusal(&e, "is a pipe");
    assert_true(m.p == NULL && m.bytes == 0);
}

static void test_read(void **state)
{
    (void)state;
    qn_err e = { 0 };
    char *p;
    size_t n;
    put_file("text", "hello", 5);
    assert_true(qn_file_read(at("text"), 5, &p, &n, &e));
    assert_int_equal(n, 5);
    assert_string_equal(p, "hello");
    qn_free(p);
    assert_false(qn_file_read(at("text"), 4, &p, &n, &e));
    check_refusal(&e, "larger than the 4 bytes");
    assert_true(qn_file_read("/proc/self/status", 1 << 20, &p, &n, &e)); /* says it has 0 bytes */
    assert_true(n > 100 && strlen(p) == n && strstr(p, "VmPeak"));
    qn_free(p);
    assert_false(qn_file_read("/proc/self/status", 10, &p, &n, &e));
    assert_false(qn_file_read("/dev/zero", 10, &p, &n, &e));
    check_refusal(&e, "is a device");
    assert_false(qn_file_read(at("fifo2"), 10, &p, &n, &e));
    assert_null(p);
    assert_true(qn_is_dir(test_dir) && !qn_is_file(test_dir) && qn_is_file(at("text")) && !qn_is_dir(at("text")));
    assert_false(qn_is_file(at("none")) || qn_is_dir(at("none")) || qn_is_file("/dev/null"));
}

static size_t count_files(void)
{
    size_t n = 0;
    DIR *d = opendir(test_dir);
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

static void check_content(const char *name, const char *want)
{
    size_t n;
    u8 *p = get_file(at(name), &n);
    assert_int_equal(n, strlen(want));
    assert_memory_equal(p, want, n);
    free(p);
}

static void test_out(void **state)
{
    (void)state;
    qn_err e = { 0 };
    qn_out o;
    put_file("target", "old", 3);
    const size_t files = count_files();
    assert_true(qn_out_open(&o, at("target"), &e));
    assert_true(qn_out_write(&o, "new ", 4, &e) && qn_out_write(&o, "text", 4, &e) && qn_out_write_at(&o, 0, "N", 1, &e));
    assert_int_equal(o.bytes, 8);
    check_content("target", "old");
    assert_int_equal(count_files(), files + 1);
    assert_true(qn_out_commit(&o, &e));
    check_content("target", "New text");
    qn_out_close(&o);
    qn_out_close(&o);
    assert_true(qn_out_open(&o, at("target"), &e)); /* not committed */
    assert_true(qn_out_write(&o, "lost", 4, &e));
    qn_out_close(&o);
    check_content("target", "New text");
    assert_int_equal(count_files(), files);
    assert_int_equal(symlink("target", at("link")), 0); /* the file behind a link is replaced, the link stays */
    assert_true(qn_out_open(&o, at("link"), &e) && qn_out_write(&o, "via", 3, &e) && qn_out_commit(&o, &e));
    qn_out_close(&o);
    struct stat st;
    assert_true(!lstat(at("link"), &st) && S_ISLNK(st.st_mode));
    check_content("target", "via");
    static const struct { const char *path, *word; } bad[] = {
        { "/dev/null", "is a device" }, { "/nowhere/at/all", "No such file" }, { "/tmp", "is a folder" },
    };
    for (size_t i = 0; i < QN_COUNT(bad); i++) {
        assert_false(qn_out_open(&o, bad[i].path, &e));
        check_refusal(&e, bad[i].word);
        qn_out_close(&o);
    }
    char *name = malloc(5001);
    memset(name, 'x', 5000), name[5000] = 0;
    assert_false(qn_out_open(&o, name, &e));
    check_refusal(&e, "File name too long");
    free(name);
}

static void test_full(void **state)
{
    (void)state;
    qn_err e = { 0 };
    qn_out o;
    struct rlimit was, small;
    put_file("kept", "kept", 4);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    small = (struct rlimit){ .rlim_cur = 4096, .rlim_max = was.rlim_max };
    void (*old)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    static char big[65536];
    assert_true(qn_out_open(&o, at("kept"), &e));
    const bool ok = qn_out_write(&o, big, sizeof big, &e);
    qn_out_close(&o);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    signal(SIGXFSZ, old);
    assert_false(ok);
    check_refusal(&e, "File too large");
    check_content("kept", "kept");
}

static void test_paths(void **state)
{
    (void)state;
    qn_err e = { 0 };
    char *p = qn_path_join("a/b", "c", &e);
    assert_string_equal(p, "a/b/c");
    qn_free(p);
    p = qn_path_join("a/", "c", &e);
    assert_string_equal(p, "a/c");
    qn_free(p);
    p = qn_path_join("", "c", &e);
    assert_string_equal(p, "c");
    qn_free(p);
    assert_true(qn_mkdirs(at("x/y/z"), &e) && qn_is_dir(at("x/y/z")) && qn_mkdirs(at("x/y/z"), &e));
    put_file("plain", "", 0);
    assert_false(qn_mkdirs(at("plain"), &e));
    assert_false(qn_mkdirs(at("plain/sub"), &e));
    char longer[300];
    memset(longer, 'd', sizeof longer), longer[299] = 0, longer[250] = '/';
    assert_string_equal(qn_path_tail(longer), longer + 251);
    longer[250] = 'd';
    assert_int_equal(strlen(qn_path_tail(longer)), 96);
    assert_string_equal(qn_path_tail("short/path"), "short/path");
}

static void within(const char *dir, const char *name, const char *word)
{
    qn_err e = { 0 };
    char *p = qn_path_within(dir, name, &e);
    if (!word) {
        if (!p) fail_msg("%s", e.msg);
        qn_free(p);
        return;
    }
    assert_null(p);
    check_refusal(&e, word);
}

static void test_within(void **state)
{
    (void)state;
    qn_err e = { 0 };
    assert_true(qn_mkdirs(at("in"), &e) && qn_mkdirs(at("inner"), &e) && qn_mkdirs(at("hub/snapshots/rev"), &e)
                && qn_mkdirs(at("hub/blobs"), &e));
    put_file("in/file", "x", 1), put_file("inner/file", "x", 1), put_file("hub/blobs/abc", "x", 1);
    assert_int_equal(symlink("file", at("in/link")), 0);
    assert_int_equal(symlink("/etc/passwd", at("in/out")), 0);
    assert_int_equal(symlink("../inner/file", at("in/beside")), 0); /* its path begins like the folder's */
    assert_int_equal(symlink("../../blobs/abc", at("hub/snapshots/rev/model.safetensors")), 0);
    assert_int_equal(symlink("../../../in/file", at("hub/snapshots/rev/other")), 0);
    char in[128], rev[128];
    snprintf(in, sizeof in, "%s", at("in")), snprintf(rev, sizeof rev, "%s", at("hub/snapshots/rev"));
    within(in, "file", NULL);
    within(in, "link", NULL);
    within(in, "none", "No such file");
    within(in, "out", "leads out of its folder");
    within(in, "beside", "leads out of its folder");
    static const char *const bad[] = { "../../etc/passwd", "/etc/passwd", "C:\\x", "..", ".", "", "a/b", "..\\x" };
    for (size_t i = 0; i < QN_COUNT(bad); i++) within(in, bad[i], "leads out of the folder");
    within(rev, "model.safetensors", NULL);
    within(rev, "other", "leads out of its folder");
}

static void read_map(void *user)
{
    const qn_map *m = user;
    volatile u64 sum = 0;
    for (u64 i = 0; i < m->bytes; i += 512) sum += m->p[i];
    (void)sum;
}

static void *read_on_thread(void *user)
{
    read_map(user);
    return NULL;
}

static bool read_on_threads(qn_map *m, qn_err *e)
{
    pthread_t t[4];
    for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, read_on_thread, m);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    return qn_maps_whole(m, 1, "it", e);
}

static void test_guard(void **state)
{
    (void)state;
    qn_err e = { 0 };
    static char big[1 << 20];
    memset(big, 1, sizeof big);
    qn_map m, other;
    assert_true(qn_map_open(&m, put_file("shrinks", big, sizeof big), &e));
    assert_true(read_on_threads(&m, &e));
    assert_int_equal(truncate(at("shrinks"), 100000), 0);
    assert_false(read_on_threads(&m, &e));
    assert_int_equal(e.code, QN_EIO);
    assert_true(m.p[99999] == 1 && m.p[1 << 19] == 0); /* what is left is left */
    assert_true(qn_map_open(&other, put_file("whole", big, sizeof big), &e));
    assert_true(read_on_threads(&other, &e)); /* one damaged file is no harm to another */
    assert_true(qn_bytes_whole(other.p + 5, "it", &e) && qn_bytes_whole(big, "it", &e));
    assert_false(qn_bytes_whole(m.p + 5, "it", &e));
    assert_false(qn_maps_whole((qn_map[]){ other, m }, 2, "it", &e)); /* and it stays damaged */
    qn_map_close(&m);
    assert_true(read_on_threads(&other, &e));
    qn_map_close(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map), cmocka_unit_test(test_read), cmocka_unit_test(test_out), cmocka_unit_test(test_full),
        cmocka_unit_test(test_paths), cmocka_unit_test(test_within), cmocka_unit_test(test_guard),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
