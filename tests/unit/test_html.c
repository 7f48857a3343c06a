/* test_html.c - the page as text: it holds its parts, nothing that a trace says can act in it, and the data in it is JSON. What it
 * looks like is looked at in a browser (tests/browser). */
#include "unit/files.h"

#include "base/json.h"
#include "report/page.h"
#include "report/report.h"

static char *page_of(const char *path, size_t *n)
{
    qn_err e = { 0 };
    qn_run **runs;
    size_t n_runs;
    qn_buf out = { 0 };
    qn_report_options o = QN_REPORT_DEFAULT;
    char *text;
    o.format = FORMAT_html;
    if (!qn_runs_open(path, false, NULL, NULL, &runs, &n_runs, &e)) fail_msg("%s", e.msg);
    assert_true(qn_report_write((const qn_run *const *)runs, n_runs, &o, &out, &e));
    for (size_t i = 0; i < n_runs; i++) qn_run_close(runs[i]);
    qn_free(runs);
    assert_true(qn_buf_take(&out, &text, n, &e));
    return text;
}

/* The data of the page, parsed; also that the page has one data element and ends as it should. */
static yyjson_doc *data_of(const char *page)
{
    qn_err e = { 0 };
    static const char open[] = "<script id=\"data\" type=\"application/json\">";
    const char *from = strstr(page, open);
    assert_non_null(from);
    from += sizeof open - 1;
    const char *to = strstr(from, "</script>");
    assert_non_null(to);
    assert_non_null(strstr(to, "</html>"));
    yyjson_doc *doc = qn_json_parse(from, (size_t)(to - from), 0, "data", &e);
    if (!doc) fail_msg("%s", e.msg);
    return doc;
}

static void sample(void **state)
{
    (void)state;
    size_t n;
    char *page = page_of("tests/data/trace/sample.jsonl", &n);
    yyjson_doc *doc = data_of(page);
    yyjson_val *run = yyjson_arr_get(yyjson_obj_get(yyjson_doc_get_root(doc), "runs"), 0);
    assert_non_null(run);
    assert_true(yyjson_arr_size(yyjson_obj_get(run, "tokens")) == 14 && yyjson_arr_size(yyjson_obj_get(run, "spans")) > 1);
    assert_true(yyjson_arr_size(yyjson_obj_get(run, "series")) > 40);
    yyjson_val *by = yyjson_obj_get(run, "by");
    static const char *const groupings[] = { "kernel", "op", "role", "layer" };
    for (size_t i = 0; i < QN_COUNT(groupings); i++) assert_true(yyjson_arr_size(yyjson_obj_get(by, groupings[i])) > 2);
    yyjson_doc_free(doc);
    assert_null(strstr(page, "{{"));
    assert_null(strstr(page, "http://www.") == strstr(page, "http://www.w3.org/2000/svg") ? NULL : page); /* only the SVG name */
    assert_null(strstr(page, "https://"));
    qn_free(page);
}

static void inert(void **state)
{
    (void)state;
    static const char trace[] =
        "{\"ev\":\"trace\",\"t\":0,\"schema\":1,\"level\":\"step\",\"model\":\"</script><img src=x onerror=alert(1)>&amp;\\u2028\","
        "\"command\":\"</SCRIPT ><!--<script>\",\"settings\":{\"</script>\":\"<b>\"}}\n"
        "{\"ev\":\"plan\",\"t\":0,\"step\":0,\"op\":\"<svg onload=1>\",\"role\":\"</title>\"}\n"
        "{\"ev\":\"step\",\"t\":5,\"pass\":1,\"step\":0,\"phase\":\"decode\",\"rows\":1,\"pos\":0,\"ns\":7}\n"
        "{\"ev\":\"pass\",\"t\":4,\"pass\":1,\"phase\":\"decode\",\"rows\":1,\"pos\":0,\"ns\":9}\n"
        "{\"ev\":\"note\",\"t\":9,\"text\":\"<script>alert(1)</script>\"}\n";
    size_t n;
    char *page = page_of(put_file("evil.jsonl", trace, sizeof trace - 1), &n), *clean = page_of("tests/data/trace/sample.jsonl", &n);
    yyjson_doc_free(data_of(page));
    size_t scripts = 0, expected = 0;
    for (const char *p = page; (p = strchr(p, '<')); p++) scripts += !strncasecmp(p, "<script", 7) || !strncasecmp(p, "</script", 8);
    for (const char *p = clean; (p = strchr(p, '<')); p++) expected += !strncasecmp(p, "<script", 7) || !strncasecmp(p, "</script", 8);
    assert_int_equal(scripts, expected);
    assert_null(strstr(page, "<img"));
    assert_null(strstr(page, "<svg onload"));
    assert_null(strstr(page, "<!--"));
    qn_free(page);
    qn_free(clean);
}

/* Runs without anything: one record, no steps, no tokens. */
static void odd(void **state)
{
    (void)state;
    static const char *const traces[] = {
        "{\"ev\":\"trace\",\"t\":0,\"schema\":1}\n",
        "{\"ev\":\"end\",\"t\":0,\"status\":\"ok\",\"events\":1}\n",
        "{\"ev\":\"token\",\"t\":5,\"request\":1,\"index\":0,\"id\":3,\"pos\":1,\"ns\":5}\n",
        "{\"ev\":\"memory\",\"t\":5,\"when\":\"end\",\"weights\":0,\"parts\":[1]}\n",
    };
    for (size_t i = 0; i < QN_COUNT(traces); i++) {
        size_t n;
        char *page = page_of(put_file("odd.jsonl", traces[i], strlen(traces[i])), &n);
        yyjson_doc_free(data_of(page));
        qn_free(page);
    }
}

static void no_memory(void **state)
{
    (void)state;
    qn_err e = { 0 };
    qn_run **runs;
    size_t n_runs;
    bool done = false;
    assert_true(qn_runs_open("tests/data/trace/sample.jsonl", false, NULL, NULL, &runs, &n_runs, &e));
    for (u64 n = 1; !done; n++) {
        qn_buf out = { 0 };
        qn_report_options o = QN_REPORT_DEFAULT;
        o.format = FORMAT_html;
        e = (qn_err){ 0 };
        qn_mem_fail_at(n, true);
        done = qn_report_write((const qn_run *const *)runs, n_runs, &o, &out, &e);
        qn_mem_fail_at(0, false);
        if (!done) assert_int_equal(e.code, QN_ENOMEM);
        qn_buf_close(&out);
        assert_true(n < 100000);
    }
    qn_run_close(runs[0]);
    qn_free(runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(sample), cmocka_unit_test(inert), cmocka_unit_test(odd), cmocka_unit_test(no_memory) };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
