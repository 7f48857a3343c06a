/* test_trace.c - recording: lines as JSON says, nothing lost in order, rings that are full, disks that are full, zstd, readers that
 * do not read, and no memory. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "trace/ring.h"
#include "trace/trace.h"

static char dir[] = "/tmp/quern-trace-XXXXXX";
static char path_of[256];

static const char *at(const char *name)
{
    snprintf(path_of, sizeof path_of, "%s/%s", dir, name);
    return path_of;
}

static qn_str text(const char *s) { return (qn_str){ s, strlen(s) }; }

static qn_event note(const char *s) { return (qn_event){ .kind = QN_EV_note, .t = 5, .note = { .text = text(s) } }; }

static void put_header(qn_trace *t)
{
    const qn_event ev = { .kind = QN_EV_trace, .trace = { .schema = 1, .program = text("test") } };
    qn_trace_put(t, &ev);
}

static char *slurp(const char *path, size_t *n)
{
    char *p = NULL;
    qn_err e = { 0 };
    assert_true(qn_file_read(path, (size_t)1 << 28, &p, n, &e));
    return p;
}

static size_t count_lines(const char *p, size_t n)
{
    size_t lines = 0;
    for (size_t i = 0; i < n; i++) lines += p[i] == '\n';
    return lines;
}

/* Every line parses; returns how many there are. */
static size_t check_lines(const char *p, size_t n)
{
    size_t lines = 0;
    assert_true(n == 0 || p[n - 1] == '\n');
    for (size_t from = 0, to; from < n; from = to + 1, lines++) {
        qn_err e = { 0 };
        for (to = from; p[to] != '\n';) to++;
        yyjson_doc *doc = qn_json_parse(p + from, to - from, 0, "line", &e);
        if (!doc) fail_msg("line %zu: %s", lines, e.msg);
        yyjson_doc_free(doc);
    }
    return lines;
}

static void line_of(const qn_event *ev, const char *expected)
{
    qn_buf b = { 0 };
    qn_ev_line(&b, ev);
    assert_string_equal(b.p, expected);
    qn_buf_close(&b);
}

static void lines(void **state)
{
    const i64 busy[] = { 0, 7, 99, 100, INT64_MAX };
    qn_event ev = { .kind = QN_EV_step, .t = -12,
                    .step = { .pass = 1, .step = 10, .phase = text("decode"), .rows = 1, .pos = 1234567, .ns = INT64_MIN,
                              .busy = { busy, 5 } } };
    (void)state;
    line_of(&ev, "{\"ev\":\"step\",\"t\":-12,\"pass\":1,\"step\":10,\"phase\":\"decode\",\"rows\":1,\"pos\":1234567,"
                 "\"ns\":-9223372036854775808,\"busy\":[0,7,99,100,9223372036854775807],\"bytes\":0,\"flops\":0}\n");
    ev = note("a \"quote\", a \\, a\nnewline, \x01, \x7F, \xC3\xA4 and broken \xC3");
    line_of(&ev, "{\"ev\":\"note\",\"t\":5,\"text\":\"a \\\"quote\\\", a \\\\, a\\nnewline, \\u0001, \\u007f, \xC3\xA4 and broken "
                 "\xEF\xBF\xBD\"}\n");
    ev = (qn_event){ .kind = QN_EV_probe, .probe = { .p50_ns = 1234.5678, .min_ns = (double)NAN } };
    line_of(&ev, "{\"ev\":\"probe\",\"t\":0,\"samples\":0,\"p50_ns\":1234.5678,\"bytes\":0,\"flops\":0}\n");
    ev = (qn_event){ .kind = QN_EV_memory, .memory = { .when = text("end"), .parts = text("{\"norms\":1}") } };
    line_of(&ev, "{\"ev\":\"memory\",\"t\":0,\"when\":\"end\",\"weights\":0,\"parts\":{\"norms\":1},\"kv\":0,\"kv_used\":0,"
                 "\"scratch\":0,\"resident\":0,\"peak\":0}\n");
}

static void every_kind_has_a_line(void **state)
{
    qn_buf b = { 0 };
    (void)state;
    for (int k = 0; k < (int)N_EV_KINDS; k++) {
        const qn_event ev = { .kind = (qn_ev_kind)k };
        const qn_ev_info *info = qn_ev_info_of(ev.kind);
        for (int i = 0; i < info->n_fields; i++) {
            assert_true(info->fields[i].offset >= offsetof(qn_event, trace) && info->fields[i].offset < sizeof(qn_event));
            assert_true(i == 0 || info->fields[i].offset > info->fields[i - 1].offset);
        }
        qn_ev_line(&b, &ev);
    }
    assert_null(qn_ev_info_of(N_EV_KINDS));
    assert_int_equal(check_lines(b.p, b.n), N_EV_KINDS);
    qn_buf_close(&b);
}

static void ring(void **state)
{
    qn_ring r = { 0 };
    qn_err e = { 0 };
    u64 next = 0, seen = 0;
    (void)state;
    assert_true(qn_ring_open(&r, 4096, &e)); /* 512 words */
    for (int round = 0; round < 1000; round++) {
        for (;;) { /* until it is full: records of 1 + 0..6 words */
            u64 w[7] = { 1 + next % 7 };
            for (u64 i = 1; i < w[0]; i++) w[i] = next * 10 + i;
            const u64 lost = r.lost;
            if (!qn_ring_put(&r, w, 1, w + 1, (w[0] - 1) * 8)) {
                assert_int_equal(r.lost, lost + 1);
                break;
            }
            next++;
        }
        for (int i = 0; i < 50 && !qn_ring_empty(&r); i++, seen++) {
            u64 w[7];
            qn_ring_copy(&r, 0, w, 8);
            assert_int_equal(w[0], 1 + seen % 7);
            qn_ring_copy(&r, 0, w, w[0] * 8);
            for (u64 k = 1; k < w[0]; k++) assert_int_equal(w[k], seen * 10 + k);
            qn_ring_drop(&r, w[0]);
        }
    }
    assert_int_equal(r.lost, 1000);
    qn_ring_close(&r);
}

static void *put_notes(void *arg)
{
    for (int i = 0; i < 1000; i++) {
        const qn_event ev = note("from a thread");
        qn_trace_put(arg, &ev);
    }
    return NULL;
}

/* Steps of one producer in order, notes of others whole, all of it counted; the header first though it came last. */
static void record(const char *path, qn_trace_sum *sum)
{
    qn_err e = { 0 };
    qn_lane_time times[2] = { { 10, 20, "" }, { 10, 15, "" } };
    pthread_t threads[3];
    qn_trace *t = qn_trace_open(path, QN_TRACE_STEP, &e);
    assert_non_null(t);
    qn_tracer *r = qn_tracer_open(t, &e);
    assert_non_null(r);
    const u64 begin = qn_now_ns();
    for (u32 i = 0; i < 20000; i++) {
        const qn_step_mark m = { .pass = 3, .step = i, .phase = QN_PASS_DECODE, .rows = 1, .pos = 7, .lanes = 2, .begin = begin,
                                 .end = begin + 30, .bytes = 1u << 20, .flops = 5, .times = times };
        qn_tracer_step(r, &m);
    }
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, put_notes, t), 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    put_header(t);
    qn_tracer_settle(r);
    qn_tracer_close(r);
    qn_trace_close(t, "ok", sum);
}

static void check_record(const char *p, size_t n)
{
    const char *s = strstr(p, "\"step\":0,");
    assert_memory_equal(p, "{\"ev\":\"trace\",\"t\":0,\"schema\":1", 30);
    assert_int_equal(check_lines(p, n), 1 + 20000 + 3000 + 1);
    for (int i = 0; i < 20000; i++) {
        char key[32];
        snprintf(key, sizeof key, "\"step\":%d,", i);
        s = strstr(s, key);
        assert_non_null(s);
    }
    assert_non_null(strstr(s, "\"ns\":30,\"busy\":[10,5],\"bytes\":1048576,\"flops\":5}"));
    assert_non_null(strstr(p, "{\"ev\":\"end\""));
    assert_non_null(strstr(p, "\"status\":\"ok\",\"events\":23002,\"lost\":0,"));
}

static void plain(void **state)
{
    qn_trace_sum sum;
    size_t n;
    (void)state;
    record(at("plain.jsonl"), &sum);
    char *p = slurp(at("plain.jsonl"), &n);
    assert_int_equal(sum.lost, 0);
    assert_int_equal(sum.events, 23002);
    assert_int_equal(sum.bytes, n);
    check_record(p, n);
    qn_free(p);
}

static void compressed(void **state)
{
    qn_trace_sum sum;
    size_t n, frame, frames = 0;
    qn_buf all = { 0 };
    (void)state;
    record(at("a.jsonl.zst"), &sum);
    char *p = slurp(at("a.jsonl.zst"), &n);
    assert_int_equal(sum.bytes, n);
    assert_true(n < 1000000);
    for (size_t from = 0; from < n; from += frame, frames++) { /* each frame is whole lines */
        frame = ZSTD_findFrameCompressedSize(p + from, n - from);
        assert_false(ZSTD_isError(frame));
        const unsigned long long size = ZSTD_getFrameContentSize(p + from, n - from);
        char *room = qn_buf_room(&all, size);
        assert_int_equal(ZSTD_decompress(room, size, p + from, frame), size);
        all.n += size;
        assert_int_equal(all.p[all.n - 1], '\n');
    }
    assert_true(frames > 1);
    qn_buf_putc(&all, 0);
    check_record(all.p, all.n - 1);
    qn_buf_close(&all);
    qn_free(p);
}

static void levels(void **state)
{
    static const qn_ev_kind kinds[] = { QN_EV_load, QN_EV_request, QN_EV_pass, QN_EV_sample, QN_EV_token, QN_EV_step, QN_EV_done };
    static const size_t expected[] = { 3, 6, 7 };
    (void)state;
    for (int level = 0; level < 3; level++) {
        qn_err e = { 0 };
        size_t n;
        qn_trace *t = qn_trace_open(at("levels.jsonl"), level, &e);
        assert_non_null(t);
        put_header(t);
        for (size_t i = 0; i < QN_COUNT(kinds); i++) qn_trace_put(t, &(qn_event){ .kind = kinds[i] });
        qn_trace_close(t, "ok", NULL);
        char *p = slurp(at("levels.jsonl"), &n);
        assert_int_equal(check_lines(p, n), expected[level] + 2);
        qn_free(p);
    }
    assert_false(qn_trace_wants(NULL, QN_TRACE_REQUEST));
    qn_trace_put(NULL, NULL);
    qn_trace_close(NULL, "ok", NULL);
}

static void no_header(void **state)
{
    qn_err e = { 0 };
    size_t n;
    qn_trace *t = qn_trace_open(at("short.jsonl"), QN_TRACE_TOKEN, &e);
    (void)state;
    assert_non_null(t);
    qn_trace_put(t, &(qn_event){ .kind = QN_EV_load });
    qn_trace_close(t, "failed", NULL);
    char *p = slurp(at("short.jsonl"), &n);
    assert_int_equal(check_lines(p, n), 3);
    assert_non_null(strstr(p, "{\"ev\":\"trace\",\"t\":0,\"schema\":1,\"program\":\"quern "));
    assert_non_null(strstr(p, "\"level\":\"token\""));
    assert_non_null(strstr(p, "\"status\":\"failed\",\"events\":3,"));
    qn_free(p);
}

/* Nobody drains before the header: the ring fills, and what did not fit is counted. */
static void full_ring(void **state)
{
    qn_err e = { 0 };
    qn_trace_sum sum;
    size_t n;
    qn_trace *t = qn_trace_open(at("full.jsonl"), QN_TRACE_STEP, &e);
    qn_tracer *r = qn_tracer_open(t, &e);
    const qn_step_mark m = { .phase = QN_PASS_PREFILL };
    (void)state;
    assert_non_null(r);
    for (int i = 0; i < 200000; i++) qn_tracer_step(r, &m);
    put_header(t);
    qn_trace_close(t, "ok", &sum);
    char *p = slurp(at("full.jsonl"), &n);
    const size_t kept = check_lines(p, n) - 2;
    assert_true(kept > 100000 && kept < 190000);
    assert_int_equal(sum.lost, 200000 - kept);
    assert_string_equal(sum.why, "the disk was too slow");
    char lost[32];
    snprintf(lost, sizeof lost, "\"lost\":%zu,", 200000 - kept);
    assert_non_null(strstr(p, lost));
    qn_free(p);
}

static void too_long(void **state)
{
    qn_err e = { 0 };
    qn_trace_sum sum;
    size_t n;
    char *big = malloc((2u << 20) + 1);
    qn_trace *t = qn_trace_open(at("long.jsonl"), QN_TRACE_STEP, &e);
    (void)state;
    assert_true(t && big);
    memset(big, 'x', 2u << 20);
    big[2u << 20] = 0;
    put_header(t);
    const qn_event ev = note(big);
    qn_trace_put(t, &ev);
    big[900000] = 0;
    for (int i = 0; i < 3; i++) {
        const qn_event fits = note(big);
        qn_trace_put(t, &fits);
        usleep(60000); /* the shared ring holds one of them */
    }
    qn_trace_close(t, "ok", &sum);
    assert_int_equal(sum.lost, 1);
    char *p = slurp(at("long.jsonl"), &n);
    assert_int_equal(check_lines(p, n), 5);
    qn_free(p);
    free(big);
}

static void put_many(const char *path, qn_trace_sum *sum)
{
    qn_err e = { 0 };
    qn_trace *t = qn_trace_open(path, QN_TRACE_STEP, &e);
    if (!t) fail_msg("%s", e.msg);
    put_header(t);
    for (int i = 0; i < 3000; i++) {
        const qn_event ev = note("a line of some length, so that there is something to write to the disk");
        qn_trace_put(t, &ev);
        if (i % 1000 == 0) usleep(40000);
    }
    qn_trace_close(t, "ok", sum);
}

static void dev_full(void **state)
{
    qn_trace_sum sum;
    (void)state;
    put_many("/dev/full", &sum);
    assert_int_equal(sum.events, 0);
    assert_int_equal(sum.lost, 3001); /* the header too */
    assert_string_equal(sum.why, "No space left on device");
}

/* A limit on the size of files: the file ends on a full line, and everything is either in it or counted. */
static void size_limit(void **state)
{
    struct rlimit before, small;
    static const char *const names[] = { "limit.jsonl", "limit.jsonl.zst" };
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (int i = 0; i < 2; i++) {
        qn_trace_sum sum;
        size_t n;
        small = (struct rlimit){ i ? 200 : 65536, before.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        put_many(at(names[i]), &sum);
        setrlimit(RLIMIT_FSIZE, &before);
        assert_string_equal(sum.why, "File too large");
        assert_int_equal(sum.events + sum.lost, 3001);
        char *p = slurp(at(names[i]), &n);
        assert_int_equal(n, sum.bytes);
        if (i == 0) assert_int_equal(check_lines(p, n), sum.events);
        if (i == 0) assert_true(n > 65000);
        qn_free(p);
    }
}

static void refused(void **state)
{
    qn_err e = { 0 };
    (void)state;
    assert_null(qn_trace_open(dir, QN_TRACE_STEP, &e));
    assert_non_null(strstr(e.msg, "Is a directory"));
    assert_int_equal(mkfifo(at("fifo"), 0600), 0);
    assert_null(qn_trace_open(at("fifo"), QN_TRACE_STEP, &e));
    assert_non_null(strstr(e.msg, "nobody reads from it"));
    assert_null(qn_trace_open(at("no/where"), QN_TRACE_STEP, &e));
    assert_non_null(strstr(e.msg, "No such file"));
    assert_null(qn_trace_open("", QN_TRACE_STEP, &e));
    FILE *f = fopen(at("letter"), "w");
    fputs("Dear Ada, this is no trace.", f);
    fclose(f);
    assert_null(qn_trace_open(at("letter"), QN_TRACE_STEP, &e));
    assert_non_null(strstr(e.msg, "holds something that is no trace"));
    if (geteuid() == 0) return; /* root may write anywhere */
    chmod(dir, 0500);
    assert_null(qn_trace_open(at("new"), QN_TRACE_STEP, &e));
    chmod(dir, 0700);
    assert_non_null(strstr(e.msg, "Permission denied"));
}

static void *read_later(void *arg)
{
    const int fd = open(arg, O_RDONLY);
    char *p = malloc(1 << 20);
    size_t lines_read = 0;
    usleep(300000);
    for (ssize_t n; (n = read(fd, p, 1 << 20)) > 0;) lines_read += count_lines(p, (size_t)n);
    free(p);
    close(fd);
    return (void *)lines_read;
}

/* A pipe whose reader is slow gets everything; one whose reader never reads is given up after two seconds; one that left ends. */
static void pipes(void **state)
{
    qn_trace_sum sum;
    pthread_t thread;
    void *lines_read;
    char path[256];
    (void)state;
    snprintf(path, sizeof path, "%s", at("pipe"));
    assert_int_equal(mkfifo(path, 0600), 0);
    pthread_create(&thread, NULL, read_later, path);
    usleep(50000);
    put_many(path, &sum);
    pthread_join(thread, &lines_read);
    assert_int_equal(sum.lost, 0);
    assert_int_equal((size_t)lines_read, 3002);
    const int fd = open(path, O_RDONLY | O_NONBLOCK);
    const u64 begin = qn_now_ns();
    put_many(path, &sum);
    const u64 took = qn_now_ns() - begin;
    assert_true(took > 1500000000u && took < 4000000000u);
    assert_string_equal(sum.why, "nobody read them");
    assert_int_equal(sum.events + sum.lost, 3001);
    qn_err e = { 0 };
    qn_trace *t = qn_trace_open(path, QN_TRACE_STEP, &e);
    close(fd);
    put_header(t);
    qn_trace_close(t, "ok", &sum);
    assert_int_equal(sum.lost, 1);
    assert_string_equal(sum.why, "Broken pipe");
}

static void no_memory(void **state)
{
    (void)state;
    for (int zst = 0; zst < 2; zst++) {
        bool done = false;
        for (u64 k = 1; !done; k++) {
            qn_err e = { 0 };
            assert_true(k < 100);
            qn_mem_fail_at(k, false);
            qn_trace *t = qn_trace_open(at(zst ? "mem.jsonl.zst" : "mem.jsonl"), QN_TRACE_STEP, &e);
            qn_tracer *r = t ? qn_tracer_open(t, &e) : NULL;
            done = r != NULL;
            if (t) put_header(t);
            if (r) qn_tracer_put(r, &(qn_event){ .kind = QN_EV_load });
            else assert_int_equal(e.code, QN_ENOMEM);
            qn_trace_close(t, "ok", NULL);
        }
        qn_mem_fail_at(0, false);
    }
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", dir);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines), cmocka_unit_test(every_kind_has_a_line), cmocka_unit_test(ring), cmocka_unit_test(plain),
        cmocka_unit_test(compressed), cmocka_unit_test(levels), cmocka_unit_test(no_header), cmocka_unit_test(full_ring),
        cmocka_unit_test(too_long), cmocka_unit_test(dev_full), cmocka_unit_test(size_limit), cmocka_unit_test(refused),
        cmocka_unit_test(pipes), cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
