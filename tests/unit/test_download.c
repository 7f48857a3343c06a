/* test_download.c - a whole pull against a server of a few lines in this process, with every allocation (ours and libcurl's)
 * failing in turn: a clean error or the right file, never a crash, a leak or a half model that looks whole. What servers can do
 * wrong is tested from outside, in tests/e2e/test_pull.py. */
#include <arpa/inet.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "hub/hub.h"

#define COMMIT "0123456789012345678901234567890123456789"
#define BODY_BYTES 100000

typedef struct world { int listener; pthread_t thread; char root[64]; char body[BODY_BYTES]; char sha[65]; } world;

static void say(int fd, const char *text, size_t n)
{
    for (ssize_t w; n && (w = send(fd, text, n, MSG_NOSIGNAL)) > 0; n -= (size_t)w) text += w;
}

static void answer(const world *w, int fd, const char *request)
{
    char head[512];
    static const char listing[] = "{\"sha\":\"" COMMIT "\",\"siblings\":["
                                  "{\"rfilename\":\"sub/m-Q8_0.gguf\"},{\"rfilename\":\"x.md\"}]}";
    const bool api = strstr(request, "/api/models/") != NULL;
    snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nConnection: close\r\nX-Linked-Etag: \"%s\"\r\nContent-Length: %zu\r\n\r\n",
             w->sha, api ? sizeof listing - 1 : sizeof w->body);
    say(fd, head, strlen(head));
    if (strncmp(request, "GET", 3) != 0) return;
    if (api) say(fd, listing, sizeof listing - 1);
    else say(fd, w->body, sizeof w->body);
}

static void *serve(void *user)
{
    const world *w = user;
    for (int fd; (fd = accept(w->listener, NULL, NULL)) >= 0; close(fd)) {
        char request[4096];
        size_t n = 0;
        for (ssize_t r = 1; r > 0 && n < sizeof request - 1; n += (size_t)(r > 0 ? r : 0)) {
            request[n] = '\0';
            if (strstr(request, "\r\n\r\n")) break;
            r = recv(fd, request + n, sizeof request - 1 - n, 0);
        }
        request[n] = '\0';
        if (strstr(request, "\r\n\r\n")) answer(w, fd, request);
    }
    return NULL;
}

static int set_up(void **state)
{
    static world w;
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof at;
    qn_sha256 s;
    char url[64], path[128];
    for (size_t i = 0; i < sizeof w.body; i++) w.body[i] = (char)(i * 31);
    qn_sha256_begin(&s);
    qn_sha256_add(&s, w.body, sizeof w.body);
    qn_sha256_end(&s, w.sha);
    w.listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(w.listener, (struct sockaddr *)&at, sizeof at) || listen(w.listener, 16)) return 1;
    if (getsockname(w.listener, (struct sockaddr *)&at, &n)) return 1;
    snprintf(w.root, sizeof w.root, "/tmp/quern-pull-XXXXXX");
    if (!mkdtemp(w.root) || pthread_create(&w.thread, NULL, serve, &w)) return 1;
    snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(at.sin_port));
    snprintf(path, sizeof path, "%s/hub", w.root);
    setenv("HF_ENDPOINT", url, 1);
    setenv("HF_HUB_CACHE", path, 1);
    setenv("QUERN_HOME", w.root, 1);
    setenv("no_proxy", "127.0.0.1", 1);
    unsetenv("HF_HUB_OFFLINE");
    unsetenv("HF_TOKEN");
    *state = &w;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static void wipe(const world *w)
{
    char path[128];
    snprintf(path, sizeof path, "%s/hub", w->root);
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int tear_down(void **state)
{
    world *w = *state;
    shutdown(w->listener, SHUT_RDWR); /* which ends accept */
    pthread_join(w->thread, NULL);
    close(w->listener);
    return nftw(w->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void check_file(const world *w, const char *path)
{
    qn_err e = { 0 };
    char *text = NULL;
    size_t n = 0;
    assert_true(qn_file_read(path, 1 << 20, &text, &n, &e));
    assert_int_equal(n, sizeof w->body);
    assert_memory_equal(text, w->body, n);
    qn_free(text);
}

static void pulls(void **state)
{
    const world *w = *state;
    qn_hub_pulled p;
    qn_err e = { 0 };
    if (!qn_hub_pull("hf:o/r", NULL, NULL, &p, &e)) fail_msg("%s", e.msg);
    assert_int_equal(p.fetched, sizeof w->body);
    assert_int_equal(p.bytes, sizeof w->body);
    check_file(w, p.path);
    char *found = NULL;
    assert_true(qn_hub_find("o/r", &found, &e));
    assert_string_equal(found, p.path);
    qn_free(found);
    qn_free(p.path);
    assert_true(qn_hub_pull("o/r/sub/m-Q8_0.gguf", NULL, NULL, &p, &e));
    assert_int_equal(p.fetched, 0);
    qn_free(p.path);
}

/* Runs a pull with allocation n failing. Returns false when n was never reached. */
static bool pull_failing(const world *w, u64 n, bool forever)
{
    qn_hub_pulled p;
    qn_err e = { 0 };
    char *found = NULL;
    wipe(w);
    const u64 before = qn_mem_count();
    qn_mem_fail_at(n, forever);
    const bool ok = qn_hub_pull("hf:o/r", NULL, NULL, &p, &e);
    const bool reached = qn_mem_count() - before >= n;
    qn_mem_fail_at(0, false);
    if (ok) check_file(w, p.path);
    else assert_true(e.code != QN_OK && e.msg[0]);
    qn_free(ok ? p.path : NULL);
    if (qn_hub_find("o/r", &found, &e)) check_file(w, found); /* visible means whole */
    qn_free(found);
    return reached;
}

static void without_memory(void **state)
{
    const world *w = *state;
    for (u64 n = 1; pull_failing(w, n, false); n += 3) assert_true(n < 5000);
    for (u64 n = 2; pull_failing(w, n, true); n += 7) assert_true(n < 5000);
}

static bool stop_at(void *user, const char *what, double share)
{
    int *left = user;
    (void)what, (void)share;
    return --*left > 0;
}

static void cancels_anywhere(void **state)
{
    const world *w = *state;
    for (int calls = 1; calls < 40; calls++) {
        qn_hub_pulled p;
        qn_err e = { 0 };
        int left = calls;
        wipe(w);
        if (qn_hub_pull("hf:o/r", stop_at, &left, &p, &e)) {
            check_file(w, p.path);
            qn_free(p.path);
        } else {
            assert_int_equal(e.code, QN_ECANCELLED);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(pulls), cmocka_unit_test(without_memory),
                                        cmocka_unit_test(cancels_anywhere) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
