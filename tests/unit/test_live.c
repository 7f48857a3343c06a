/* test_live.c - the screen of a run that goes on: figures of the sample trace, any size of screen, texts that would disturb it. */
#include "unit/files.h"

#include "report/live.h"

static void feed(qn_live *l, qn_reader *r, size_t most)
{
    qn_event ev;
    qn_err e = { 0 };
    for (size_t i = 0; i < most && qn_reader_next(r, &ev, &e) == 1; i++) assert_true(qn_live_add(l, &ev, &e));
}

static char *screen(qn_live *l, qn_reader *r, qn_by by, int width, int height)
{
    qn_buf out = { 0 };
    qn_reader_state st;
    qn_err e = { 0 };
    char *text;
    qn_reader_get_state(r, &st);
    assert_true(qn_live_draw(l, &st, by, width, height, false, &out, &e));
    assert_true(qn_buf_take(&out, &text, NULL, &e));
    return text;
}

static void has(char *text, const char *word)
{
    if (!strstr(text, word)) fail_msg("no \"%s\" in:\n%s", word, text);
}

static void grows(void **state)
{
    (void)state;
    qn_err e = { 0 };
    qn_reader *r = qn_reader_open("tests/data/trace/sample.jsonl", false, &e);
    qn_live *l = qn_live_open("sample.jsonl", &e);
    assert_true(r && l);
    char *text = screen(l, r, BY_kernel, 100, 30); /* before the first record */
    has(text, "quern top");
    qn_free(text);
    feed(l, r, 500);
    text = screen(l, r, BY_role, 100, 30);
    has(text, "sample Q8_0");
    has(text, "request  1: ");
    has(text, "ffn_down");
    assert_false(qn_live_ended(l));
    qn_free(text);
    const qn_event pass = { .kind = QN_EV_pass, .pass = { .pass = 1, .phase = { "decode", 6 }, .kv_used = 99 << 10 } };
    assert_true(qn_live_add(l, &pass, &e)); /* what the cache holds is said while the run goes on */
    text = screen(l, r, BY_role, 100, 30);
    has(text, "KV 99.0 KiB of 48.0 MiB");
    qn_free(text);
    feed(l, r, 100000);
    text = screen(l, r, BY_layer, 100, 40);
    has(text, "ended after");
    has(text, "layer 1");
    has(text, "14 of at most 14 tokens");
    has(text, "peak 668 MiB");
    assert_true(qn_live_ended(l));
    qn_free(text);
    qn_live_close(l);
    qn_reader_close(r);
}

static void any_size(void **state)
{
    (void)state;
    qn_err e = { 0 };
    qn_reader *r = qn_reader_open("tests/data/trace/sample.jsonl", false, &e);
    qn_live *l = qn_live_open("sample.jsonl", &e);
    feed(l, r, 100000);
    for (int width = 1; width < 130; width += 7)
        for (int height = 0; height < 40; height += 3) {
            char *text = screen(l, r, BY_op, width, height);
            int lines = 0, columns = 0;
            for (const char *p = text; *p; p++) {
                if (*p == '\n') lines++, columns = 0;
                else if (((u8)*p & 0xC0) != 0x80) columns++;
                assert_true(columns <= width);
            }
            assert_true(lines <= height);
            qn_free(text);
        }
    qn_live_close(l);
    qn_reader_close(r);
}

static void hostile(void **state)
{
    (void)state;
    static const char trace[] =
        "{\"ev\":\"trace\",\"t\":0,\"schema\":1,\"level\":\"step\",\"model\":\"\\u001b[2Jx\\n\\ny\",\"cpu\":\"\\u001b]0;t\\u0007\"}\n"
        "{\"ev\":\"plan\",\"t\":0,\"step\":0,\"op\":\"a\\u001b[31m\",\"role\":\"\\n\"}\n"
        "{\"ev\":\"step\",\"t\":99000000000000000,\"pass\":1,\"step\":0,\"phase\":\"decode\",\"rows\":1,\"pos\":0,\"ns\":0}\n"
        "{\"ev\":\"token\",\"t\":99000000000000000,\"request\":1,\"index\":9000000000000000000,\"id\":0,\"pos\":0,\"ns\":1}\n"
        "{\"ev\":\"token\",\"t\":0,\"request\":1,\"index\":1,\"id\":0,\"pos\":0,\"ns\":1}\n";
    qn_err e = { 0 };
    const char *path = put_file("hostile.jsonl", trace, sizeof trace - 1);
    qn_reader *r = qn_reader_open(path, false, &e);
    qn_live *l = qn_live_open(path, &e);
    assert_true(r && l);
    feed(l, r, 100);
    for (qn_by by = BY_kernel; by <= BY_layer; by++) {
        char *text = screen(l, r, by, 200, 30);
        assert_null(strchr(text, 27));
        assert_null(strstr(text, "nan"));
        assert_null(strstr(text, "inf"));
        qn_free(text);
    }
    qn_live_close(l);
    qn_reader_close(r);
}

static void no_memory(void **state)
{
    (void)state;
    bool done = false;
    for (u64 n = 1; !done; n++) {
        qn_err e = { 0 };
        qn_reader *r = qn_reader_open("tests/data/trace/sample.jsonl", false, &e);
        assert_non_null(r);
        qn_buf out = { 0 };
        qn_reader_state st;
        qn_event ev;
        qn_mem_fail_at(n, true);
        qn_live *l = qn_live_open("x", &e);
        bool ok = l != NULL;
        while (ok && qn_reader_next(r, &ev, &e) == 1) ok = qn_live_add(l, &ev, &e);
        qn_reader_get_state(r, &st);
        done = ok && !e.code && qn_live_draw(l, &st, BY_kernel, 80, 24, false, &out, &e);
        qn_mem_fail_at(0, false);
        if (!done) assert_int_equal(e.code, QN_ENOMEM);
        qn_buf_close(&out);
        qn_live_close(l);
        qn_reader_close(r);
        n += n / 16;
        assert_true(n < 100000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(grows), cmocka_unit_test(any_size), cmocka_unit_test(hostile),
                                        cmocka_unit_test(no_memory) };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
