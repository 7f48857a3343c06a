/* test_reader.c - traces as they should be, as a cut run leaves them, and as nobody wrote them. */
#include "unit/files.h"

#include <zstd.h>

#include "trace/reader.h"

#define HEADER "{\"ev\":\"trace\",\"t\":0,\"schema\":1,\"program\":\"quern\",\"level\":\"step\",\"seed\":-1}\n"
#define STEP "{\"ev\":\"step\",\"t\":5,\"pass\":1,\"step\":3,\"phase\":\"decode\",\"rows\":1,\"pos\":7,\"ns\":100,\"busy\":[90,80],\"bytes\":10,\"flops\":20}\n"
#define END "{\"ev\":\"end\",\"t\":9,\"status\":\"ok\",\"events\":3,\"lost\":0,\"ns\":9}\n"

/* All of a text read; the number of records. */
static u64 read_all(const void *p, size_t n, qn_reader_state *st, qn_event *last)
{
    qn_err e = { 0 };
    qn_event ev = { 0 };
    qn_reader *r = qn_reader_open(put_file("t.jsonl", p, n), false, &e);
    if (!r) fail_msg("%s", e.msg);
    int got;
    while ((got = qn_reader_next(r, &ev, &e)) == 1)
        if (last) *last = ev;
    assert_int_equal(got, 0);
    qn_reader_get_state(r, st);
    qn_reader_close(r);
    return st->records;
}

static void refused(const void *p, size_t n, const char *word)
{
    qn_err e = { 0 };
    assert_null(qn_reader_open(put_file("bad.jsonl", p, n), false, &e));
    check_refusal(&e, word);
}

static void test_good(void **state)
{
    (void)state;
    qn_reader_state st;
    qn_event ev;
    qn_err e = { 0 };
    const char text[] = HEADER STEP END;
    qn_reader *r = qn_reader_open(put_file("t.jsonl", text, sizeof text - 1), false, &e);
    assert_non_null(r);
    assert_int_equal(qn_reader_next(r, &ev, &e), 1);
    assert_int_equal(ev.kind, QN_EV_trace);
    assert_int_equal(ev.trace.seed, -1);
    assert_memory_equal(ev.trace.program.p, "quern", 5);
    assert_int_equal(qn_reader_next(r, &ev, &e), 1);
    assert_int_equal(ev.kind, QN_EV_step);
    assert_int_equal(ev.t, 5);
    assert_int_equal(ev.step.step, 3);
    assert_int_equal(ev.step.phase.n, 6);
    assert_int_equal(ev.step.busy.n, 2);
    assert_int_equal(ev.step.busy.p[1], 80);
    assert_int_equal(ev.step.flops, 20);
    assert_int_equal(qn_reader_next(r, &ev, &e), 1);
    assert_int_equal(qn_reader_next(r, &ev, &e), 0);
    qn_reader_get_state(r, &st);
    assert_int_equal(st.records, 3);
    assert_int_equal(st.bytes, sizeof text - 1);
    assert_int_equal(st.size, sizeof text - 1);
    assert_int_equal(st.bad + st.unknown + st.cut, 0);
    qn_reader_close(r);
}

/* Other spellings of the same record mean the same. */
static void test_spellings(void **state)
{
    (void)state;
    static const char *const same[] = {
        "{ \"ev\" : \"step\", \"t\": 5, \"ns\": 100, \"step\":3, \"pass\":1, \"busy\":[ 90, 80 ], \"phase\":\"decode\", \"rows\":1.0,"
        " \"pos\":7, \"bytes\":10, \"flops\":2e1, \"new_field\":{\"a\":[1]} }\n",
        "{\"ev\":\"step\",\"t\":5,\"pass\":1,\"step\":3,\"phase\":\"dec\\u006fde\",\"rows\":1,\"pos\":7,\"ns\":100,\"busy\":[90,80],"
        "\"bytes\":10,\"flops\":20}\n",
        "{\"ev\":\"step\",\"t\":5,\"flops\":20,\"pass\":1,\"step\":3,\"bytes\":10,\"phase\":\"decode\",\"rows\":1,\"busy\":[90,80],"
        "\"pos\":7,\"ns\":100}\n", /* another order */
        "{\"ev\":\"step\",\"t\":5,\"pass\":1,\"step\":3,\"phase\":\"decode\",\"rows\":1,\"pos\":7,\"ns\":100,\"busy\":[90,80],"
        "\"bytes\":10,\"flops\":20,\"ns\":7}\n", /* a key twice: the first counts */
        STEP,
    };
    for (size_t i = 0; i < QN_COUNT(same); i++) {
        qn_reader_state st;
        qn_event ev;
        qn_err e = { 0 };
        qn_reader *r = qn_reader_open(put_file("t.jsonl", same[i], strlen(same[i])), false, &e);
        assert_non_null(r);
        assert_int_equal(qn_reader_next(r, &ev, &e), 1);
        assert_int_equal(ev.kind, QN_EV_step);
        assert_true(ev.t == 5 && ev.step.ns == 100 && ev.step.rows == 1 && ev.step.flops == 20 && ev.step.pos == 7);
        assert_int_equal(ev.step.phase.n, 6);
        assert_memory_equal(ev.step.phase.p, "decode", 6);
        assert_true(ev.step.busy.n == 2 && ev.step.busy.p[0] == 90);
        qn_reader_get_state(r, &st);
        assert_int_equal(st.bad, 0);
        qn_reader_close(r);
    }
}

/* Cut at every byte of the last line: all whole records are used, the cut one is said. */
static void test_cut(void **state)
{
    (void)state;
    const char text[] = HEADER STEP END;
    const size_t n = sizeof text - 1, whole = strlen(HEADER STEP);
    for (size_t cut = whole; cut <= n; cut++) {
        qn_reader_state st;
        const u64 got = read_all(text, cut, &st, NULL);
        const bool complete = cut + 1 >= n; /* without its newline the record is still a record */
        assert_int_equal(got, complete ? 3 : 2);
        assert_int_equal(st.cut, cut > whole && !complete);
        if (st.cut) assert_int_equal(st.cut_at, whole);
        assert_int_equal(st.bad, 0);
    }
}

static void test_damage(void **state)
{
    (void)state;
    qn_reader_state st;
    static const struct { const char *line, *why; } bad[] = {
        { "{\"ev\":\"step\",\"t\":5,\"pa", "JSON" },
        { "garbage", "JSON" },
        { "[1,2]", "object" },
        { "{\"t\":5}", "no \"ev\"" },
        { "{\"ev\":7}", "no \"ev\"" },
        { "{\"ev\":\"step\",\"t\":5,\"ns\":-3}", "the ns of a step" },
        { "{\"ev\":\"step\",\"t\":5,\"ns\":1e300}", "the ns of a step" },
        { "{\"ev\":\"step\",\"t\":5,\"ns\":NaN}", "JSON" },
        { "{\"ev\":\"step\",\"t\":5,\"ns\":99999999999999999999999}", "the ns of a step" },
        { "{\"ev\":\"step\",\"t\":5,\"ns\":1.5}", "the ns of a step" },
        { "{\"ev\":\"step\",\"t\":5,\"ns\":\"7\"}", "the ns of a step" },
        { "{\"ev\":\"step\",\"t\":-5,\"ns\":7}", "the t of a step" },
        { "{\"ev\":\"step\",\"t\":1e300,\"ns\":7}", "the t of a step" },
        { "{\"ev\":\"step\",\"t\":5,\"rows\":-1}", "the rows of a step" },
        { "{\"ev\":\"step\",\"t\":5,\"phase\":3}", "the phase of a step" },
        { "{\"ev\":\"step\",\"t\":5,\"busy\":[1,\"x\"]}", "the busy of a step" },
        { "{\"ev\":\"pass\",\"t\":5,\"ns\":-9223372036854775808}", "the ns of a pass" },
    };
    for (size_t i = 0; i < QN_COUNT(bad); i++) {
        char text[1024];
        const int n = snprintf(text, sizeof text, "%s%s\n%s%s", HEADER, bad[i].line, STEP, END);
        assert_int_equal(read_all(text, (size_t)n, &st, NULL), 3);
        assert_int_equal(st.bad, 1);
        assert_int_equal(st.bad_at, strlen(HEADER));
        if (!strstr(st.bad_why, bad[i].why)) fail_msg("%s: \"%s\"", bad[i].line, st.bad_why);
    }
}

static void test_unknown(void **state)
{
    (void)state;
    qn_reader_state st;
    const char text[] = HEADER "{\"ev\":\"energy\",\"t\":1,\"j\":3}\n{\"ev\":\"energy\",\"t\":2}\n{\"ev\":\"clock\"}\n" END;
    assert_int_equal(read_all(text, sizeof text - 1, &st, NULL), 2);
    assert_int_equal(st.unknown, 3);
    assert_string_equal(st.unknown_kinds, "energy, clock");
    assert_int_equal(st.bad, 0);
}

static void test_dress(void **state)
{
    (void)state;
    qn_reader_state st;
    const char bom[] = "\xEF\xBB\xBF" HEADER STEP, crlf[] = "{\"ev\":\"note\",\"t\":1,\"text\":\"a\"}\r\n\r\n  \t\r\n" STEP;
    assert_int_equal(read_all(bom, sizeof bom - 1, &st, NULL), 2);
    assert_int_equal(st.bad, 0);
    assert_int_equal(read_all(crlf, sizeof crlf - 1, &st, NULL), 2);
    assert_int_equal(st.bad, 0);
    refused("", 0, "empty");
    refused("\n\n  \n", 5, "not a trace");
    refused("\037\213\010abc", 6, "gzip");
    refused("GGUF\3\0\0\0", 8, "not a trace");
    qn_err e = { 0 };
    assert_null(qn_reader_open(test_dir, false, &e));
    check_refusal(&e, "folder");
    assert_null(qn_reader_open("/dev/zero", false, &e));
    check_refusal(&e, "neither a file nor a pipe");
    assert_null(qn_reader_open("/no/such/file", false, &e));
    check_refusal(&e, "cannot open");
}

/* A line over the limit is one bad line; the next one is read. */
static void test_long_line(void **state)
{
    (void)state;
    qn_reader_state st;
    const size_t most = (size_t)3 << 20;
    qn_buf b = { 0 };
    qn_buf_puts(&b, HEADER "{\"ev\":\"note\",\"t\":1,\"text\":\"");
    char *room = qn_buf_room(&b, most);
    assert_non_null(room);
    memset(room, 'x', most);
    b.n += most;
    qn_buf_puts(&b, "\"}\n" STEP);
    assert_int_equal(read_all(b.p, b.n, &st, NULL), 2);
    assert_int_equal(st.bad, 1);
    assert_int_equal(st.bad_at, strlen(HEADER));
    qn_buf_close(&b);
}

static void test_zstd(void **state)
{
    (void)state;
    qn_buf b = { 0 };
    qn_reader_state st;
    qn_buf_puts(&b, HEADER);
    for (int i = 0; i < 20000; i++) qn_buf_puts(&b, STEP);
    qn_buf_puts(&b, END);
    const size_t room = ZSTD_compressBound(b.n);
    char *packed = malloc(2 * room);
    assert_non_null(packed);
    const size_t n = ZSTD_compress(packed, room, b.p, b.n, 3);
    assert_int_equal(read_all(packed, n, &st, NULL), 20002);
    assert_int_equal(st.bytes, n);
    assert_string_equal(st.damage, "");
    memcpy(packed + n, packed, n); /* two frames, as a writer that flushes may leave them */
    assert_int_equal(read_all(packed, 2 * n, &st, NULL), 40004);
    assert_true(read_all(packed, n - 9, &st, NULL) < 20002);
    assert_non_null(strstr(st.damage, "breaks off"));
    packed[n / 2] ^= 0x55;
    packed[n / 2 + 1] ^= 0x55;
    read_all(packed, n, &st, NULL);
    assert_true(st.damage[0] || st.bad);
    free(packed);
    qn_buf_close(&b);
}

/* Every allocation fails in turn: one sentence or a full reading, never half of one. */
static void test_no_memory(void **state)
{
    (void)state;
    const char text[] = HEADER STEP END;
    const char *path = put_file("t.jsonl", text, sizeof text - 1);
    bool done = false;
    for (u64 n = 1; !done; n++) {
        qn_err e = { 0 };
        qn_event ev;
        int got = -1;
        qn_mem_fail_at(n, true);
        qn_reader *r = qn_reader_open(path, false, &e);
        while (r && (got = qn_reader_next(r, &ev, &e)) == 1) continue;
        qn_mem_fail_at(0, false);
        if (!r || got < 0) assert_int_equal(e.code, QN_ENOMEM);
        else done = true;
        qn_reader_close(r);
        assert_true(n < 100);
    }
}

/* A followed file is read as it grows, and ends with its end record. */
static void test_follow(void **state)
{
    (void)state;
    qn_err e = { 0 };
    qn_event ev;
    const char *path = put_file("live.jsonl", HEADER, strlen(HEADER));
    qn_reader *r = qn_reader_open(path, true, &e);
    assert_non_null(r);
    assert_int_equal(qn_reader_next(r, &ev, &e), 1);
    assert_int_equal(qn_reader_next(r, &ev, &e), 2);
    FILE *f = fopen(path, "ab");
    assert_non_null(f);
    fputs("{\"ev\":\"note\",\"t\":1,", f);
    fflush(f);
    assert_int_equal(qn_reader_next(r, &ev, &e), 2); /* half a line is no record yet */
    fputs("\"text\":\"hi\"}\n" END, f);
    fclose(f);
    assert_int_equal(qn_reader_next(r, &ev, &e), 1);
    assert_int_equal(ev.kind, QN_EV_note);
    assert_int_equal(qn_reader_next(r, &ev, &e), 1);
    assert_int_equal(ev.kind, QN_EV_end);
    assert_int_equal(qn_reader_next(r, &ev, &e), 0);
    qn_reader_close(r);
}

/* The same of a packed one: each flush of the writer is a frame, and half a frame is no record yet. */
static void test_follow_packed(void **state)
{
    (void)state;
    static const char *const pieces[] = { HEADER, STEP STEP, STEP END };
    static const u64 records[] = { 1, 2, 2 };
    const char *path = put_file("live.jsonl.zst", "", 0);
    qn_reader *r = NULL;
    qn_err e = { 0 };
    qn_event ev;
    for (size_t i = 0; i < QN_COUNT(pieces); i++) {
        char frame[4096];
        const size_t n = ZSTD_compress(frame, sizeof frame, pieces[i], strlen(pieces[i]), 3);
        FILE *f = fopen(path, "ab");
        assert_non_null(f);
        fwrite(frame, 1, n / 2, f);
        fflush(f);
        if (r) assert_int_equal(qn_reader_next(r, &ev, &e), 2);
        fwrite(frame + n / 2, 1, n - n / 2, f);
        fclose(f);
        if (!r) r = qn_reader_open(path, true, &e);
        assert_non_null(r);
        for (u64 k = 0; k < records[i]; k++) assert_int_equal(qn_reader_next(r, &ev, &e), 1);
        if (i + 1 < QN_COUNT(pieces)) assert_int_equal(qn_reader_next(r, &ev, &e), 2);
    }
    assert_int_equal(ev.kind, QN_EV_end);
    assert_int_equal(qn_reader_next(r, &ev, &e), 0);
    qn_reader_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good), cmocka_unit_test(test_spellings), cmocka_unit_test(test_cut), cmocka_unit_test(test_damage),
        cmocka_unit_test(test_unknown), cmocka_unit_test(test_dress), cmocka_unit_test(test_long_line), cmocka_unit_test(test_zstd),
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_follow), cmocka_unit_test(test_follow_packed),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
