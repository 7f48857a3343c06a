/* test_safetensors.c - safetensors files and folders: shapes, types and places as written; every wrong header refused by one
 * sentence; nothing outside the folder opened, whatever an index names. */
#include "files.h"

#include "format/safetensors.h"

static qn_source *make(void)
{
    qn_err e = { 0 };
    qn_source *s = qn_new(sizeof *s, &e);
    assert_non_null(s);
    s->path = qn_strdup("model", &e);
    return s;
}

static void put_st(const char *name, u64 n_header, const char *header, size_t n_data)
{
    qn_buf b = { 0 };
    qn_buf_put(&b, &n_header, 8);
    qn_buf_puts(&b, header);
    for (size_t i = 0; i < n_data; i++) qn_buf_putc(&b, (char)i);
    put_file(name, b.p, b.n);
    qn_buf_close(&b);
}

static qn_source *try_open(const char *dir, qn_err *e)
{
    *e = (qn_err){ 0 };
    qn_source *s = make();
    if (qn_safetensors_read(s, dir, e)) return s;
    qn_source_close(s);
    return NULL;
}

static void refuse_folder(const char *dir, const char *word)
{
    qn_err e;
    assert_null(try_open(dir, &e));
    check_refusal(&e, word);
}

static void refuse_header(const char *header, size_t n_data, const char *word)
{
    put_st("model.safetensors", strlen(header), header, n_data);
    refuse_folder(test_dir, word);
}

static void test_good(void **state)
{
    (void)state;
    qn_err e;
    static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                                 "\"a.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
                                 "\"b.weight\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[24,30]},"
                                 "\"odd\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[30,38]},"
                                 "\"mask\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[38,39]},"
                                 "\"one\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[39,41]}}   ";
    put_st("model.safetensors", sizeof header - 1, header, 41);
    qn_source *s = try_open(test_dir, &e);
    assert_string_equal(e.msg, "");
    assert_int_equal(s->n_tensors, 4);
    const qn_tensor *t = qn_source_tensor(s, "a.weight");
    assert_true(t->type == DT_f32 && t->n_dims == 2 && t->dims[0] == 3 && t->dims[1] == 2 && t->bytes == 24 && t->data[1] == 1);
    t = qn_source_tensor(s, "b.weight");
    assert_true(t->type == DT_bf16 && t->n_dims == 1 && t->dims[0] == 3 && t->data[0] == 24);
    t = qn_source_tensor(s, "odd");
    assert_int_equal((uintptr_t)t->data % 4, 0);
    assert_int_equal(t->data[0], 30);
    t = qn_source_tensor(s, "one");
    assert_true(t->n_dims == 1 && t->dims[0] == 1 && (uintptr_t)t->data % 2 == 0 && t->data[1] == 40);
    qn_source_close(s);
}

static void test_short(void **state)
{
    (void)state;
    for (size_t n = 0; n <= 8; n++) {
        put_file("model.safetensors", "\2\0\0\0\0\0\0\0{}", n);
        refuse_folder(test_dir, "too short");
    }
    put_file("model.safetensors", "\2\0\0\0\0\0\0\0{}", 10);
    qn_err e;
    qn_source_close(try_open(test_dir, &e));
    assert_string_equal(e.msg, "");
    static const struct { u64 n; const char *word; } lengths[] = {
        { 0, "does not begin with {" }, { 1, "does not begin with {" }, { 3, "too short for its header of 3" },
        { 4000, "too short for its header" }, { 100000001, "the limit is 100000000" }, { UINT64_MAX, "the limit is" },
        { 1ull << 63, "the limit is" }, { UINT64_MAX - 7, "the limit is" },
    };
    for (size_t i = 0; i < QN_COUNT(lengths); i++) {
        put_st("model.safetensors", lengths[i].n, "{}", 0);
        refuse_folder(test_dir, lengths[i].word);
    }
    static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
    put_st("model.safetensors", sizeof header - 1, header, 8);
    size_t n;
    u8 *p = get_file(at("model.safetensors"), &n);
    for (size_t k = 0; k < n; k++) { /* cut at every byte */
        put_file("model.safetensors", p, k);
        refuse_folder(test_dir, "too short");
    }
    free(p);
    put_st("model.safetensors", sizeof header - 1 - 7, header, 15); /* the length says 7 less */
    refuse_folder(test_dir, "JSON");
}

static void test_headers(void **state)
{
    (void)state;
    refuse_header("[1,2,3]", 0, "does not begin with {");
    refuse_header(" {}", 0, "does not begin with {");
    refuse_header("{\"a\"", 0, "not valid JSON");
    refuse_header("{\"\xFF\":{}}", 0, "not valid JSON");
    refuse_header("{} x", 0, "not valid JSON");
    enum { N = 100000 };
    char *deep = malloc(N + 1);
    memset(deep, '[', N), deep[0] = '{', deep[N] = 0;
    refuse_header(deep, 0, "nested deeper");
    free(deep);
    static const struct { const char *body, *word; } rows[] = {
        { "1", "not described by" }, { "[]", "not described by" }, { "{}", "not described by" },
        { "{\"dtype\":1,\"shape\":[2],\"data_offsets\":[0,8]}", "not described by" },
        { "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"more\":1}", "not described by" },
        { "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}", "end before they begin" },
        { "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-1,7]}", "two whole numbers" },
        { "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0.0,8.0]}", "two whole numbers" },
        { "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8.5]}", "two whole numbers" },
        { "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,1e30]}", "two whole numbers" },
        { "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,1e999]}", "two whole numbers" },
        { "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,\"8\"]}", "two whole numbers" },
        { "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4,8]}", "two whole numbers" },
        { "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}", "two whole numbers" },
        { "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":8}", "two whole numbers" },
        { "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,9]}", "needs 1 bytes more" },
        { "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,18446744073709551615]}", "bytes more than there are" },
        { "{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}", "do not fit shape" },
        { "{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,8]}", "a dimension is not" },
        { "{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}", "a dimension is not" },
        { "{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}", "a dimension is not" },
        { "{\"dtype\":\"F32\",\"shape\":[4294967298],\"data_offsets\":[0,8]}", "a dimension is not" },
        { "{\"dtype\":\"F32\",\"shape\":[2147483647,2147483647,2147483647],\"data_offsets\":[0,8]}", "more elements" },
        { "{\"dtype\":\"F32\",\"shape\":[1,1,1,1,2],\"data_offsets\":[0,8]}", "more than 4 dimensions" },
        { "{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}", "shape is not an array" },
        { "{\"dtype\":\"F8_E5M2\",\"shape\":[8],\"data_offsets\":[0,8]}", "unsupported dtype F8_E5M2" },
        { "{\"dtype\":\"U64\",\"shape\":[1],\"data_offsets\":[0,8]}", "unsupported dtype U64" },
        { "{\"dtype\":\"XX\",\"shape\":[1],\"data_offsets\":[0,8]}", "unsupported dtype XX" },
        { "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}", "8 bytes of data, its tensors take 4" },
    };
    for (size_t i = 0; i < QN_COUNT(rows); i++) {
        char header[256];
        snprintf(header, sizeof header, "{\"q.weight\":%s}", rows[i].body);
        refuse_header(header, 8, rows[i].word);
    }
    refuse_header("{\"x\":{\"dtype\":\"XX\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, "unsupported dtype XX");
    refuse_header("{\"\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "name is empty");
    refuse_header("{\"a\\u0000b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "NUL");
    refuse_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                  "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "there twice");
}

static void put_index(const char *body)
{
    put_file("shards/model.safetensors.index.json", body, strlen(body));
}

static void test_index(void **state)
{
    (void)state;
    qn_err e;
    char dir[128];
    assert_int_equal(mkdir(at("shards"), 0700), 0);
    snprintf(dir, sizeof dir, "%s", at("shards"));
    refuse_folder(dir, "model.safetensors: No such file");
    static const char a[] = "{\"a.weight\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
    static const char b[] = "{\"b.weight\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
    put_st("shards/m-00001-of-00002.safetensors", sizeof a - 1, a, 8);
    put_st("shards/m-00002-of-00002.safetensors", sizeof b - 1, b, 8);
    put_index("{\"weight_map\":{\"a.weight\":\"m-00001-of-00002.safetensors\",\"b.weight\":\"m-00002-of-00002.safetensors\"}}");
    qn_source *s = try_open(dir, &e);
    assert_string_equal(e.msg, "");
    assert_true(s->n_maps == 2 && s->n_tensors == 2);
    assert_int_equal(qn_source_tensor(s, "b.weight")->file, 1);
    qn_source_close(s);
    assert_int_equal(symlink("/etc/passwd", at("shards/out.safetensors")), 0);
    assert_int_equal(symlink("../model.safetensors", at("shards/up.safetensors")), 0);
    static const struct { const char *index, *word; } rows[] = {
        { "{\"weight_map\":{\"a.weight\":\"none.safetensors\"}}", "none.safetensors: No such file" },
        { "{\"weight_map\":{\"a.weight\":\"../../etc/passwd\"}}", "../../etc/passwd leads out of the folder" },
        { "{\"weight_map\":{\"a.weight\":\"/etc/passwd\"}}", "leads out of the folder" },
        { "{\"weight_map\":{\"a.weight\":\"C:\\\\x\"}}", "leads out of the folder" },
        { "{\"weight_map\":{\"a.weight\":\"..\"}}", "leads out of the folder" },
        { "{\"weight_map\":{\"a.weight\":\"\"}}", "leads out of the folder" },
        { "{\"weight_map\":{\"a.weight\":\"out.safetensors\"}}", "a link that leads out" },
        { "{\"weight_map\":{\"a.weight\":\"up.safetensors\"}}", "a link that leads out" },
        { "{\"weight_map\":{\"a.weight\":\"m-00001-of-00002.safetensors\\u0000\"}}", "not a file name" },
        { "{\"weight_map\":{\"a.weight\":7}}", "not a file name" },
        { "{\"weight_map\":{\"b.weight\":\"m-00001-of-00002.safetensors\"}}", "b.weight is not in" },
        { "{\"weight_map\":{}}", "missing or empty weight_map" },
        { "{\"weight_map\":[\"a\"]}", "missing or empty weight_map" },
        { "{}", "missing or empty weight_map" },
        { "[]", "missing or empty weight_map" },
        { "{\"weight_map\":", "not valid JSON" },
    };
    for (size_t i = 0; i < QN_COUNT(rows); i++) {
        put_index(rows[i].index);
        refuse_folder(dir, rows[i].word);
    }
    put_index("{\"weight_map\":{\"a.weight\":\"m-00001-of-00002.safetensors\",\"b.weight\":\"m-00001-of-00002.safetensors\"}}");
    refuse_folder(dir, "b.weight is not in m-00001");
    static const char many[] = "{\"weight_map\":{\"a.weight\":\"m-00001-of-00002.safetensors\","
                               "\"b.weight\":\"m-00002-of-00002.safetensors\"}}";
    put_index(many);
    for (u64 n = 1;; n++) {
        e = (qn_err){ 0 };
        s = make();
        const u64 before = qn_mem_count();
        qn_mem_fail_at(n, n % 2);
        const bool ok = qn_safetensors_read(s, dir, &e);
        qn_mem_fail_at(0, false);
        const bool reached = qn_mem_count() - before >= n;
        qn_source_close(s);
        assert_true(ok || e.code == QN_ENOMEM || n <= 2); /* the first two look which file there is */
        if (!reached) break;
    }
}

static void test_canary(void **state)
{
    (void)state;
    qn_err e;
    qn_source *s = try_open("tests/data/models/gemma3", &e);
    assert_string_equal(e.msg, "");
    assert_int_equal(qn_source_tensor(s, "model.embed_tokens.weight")->dims[0], 72);
    qn_source_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good), cmocka_unit_test(test_short), cmocka_unit_test(test_headers),
        cmocka_unit_test(test_index), cmocka_unit_test(test_canary),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
