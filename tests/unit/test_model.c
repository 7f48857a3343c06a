/* test_model.c - what a well-formed file can say that makes no sense: each key that is needed missing in turn, each in a
 * wrong type, numbers that contradict each other, tensors missing or of another shape. Every refusal names the culprit, and
 * the good file still opens afterwards. */
#include "files.h"

#include "format/gguf.h"
#include "quern.h"

static qn_source *good(void)
{
    qn_err e = { 0 };
    qn_source *s = qn_gguf_open("tests/data/models/qwen3/model.gguf", &e);
    if (!s) fail_msg("%s", e.msg);
    return s;
}

static qn_kv *key(qn_source *s, const char *name)
{
    for (size_t i = 0; i < s->n_kvs; i++)
        if (s->kvs[i].key.n == strlen(name) && !memcmp(s->kvs[i].key.p, name, s->kvs[i].key.n)) return &s->kvs[i];
    fail_msg("the reference has no key %s", name);
    return NULL;
}

static qn_tensor *tensor(qn_source *s, const char *name)
{
    for (size_t i = 0; i < s->n_tensors; i++)
        if (!strcmp(s->tensors[i].name, name)) return &s->tensors[i];
    fail_msg("the reference has no tensor %s", name);
    return NULL;
}

/* Writes s as it was changed, closes it, and opens the file as a model. */
static qn_model *reopen(qn_source *s, qn_err *e)
{
    qn_gguf_writer w = { 0 };
    const char *path = at("changed.gguf");
    *e = (qn_err){ 0 };
    if (!qn_gguf_write_open(&w, path, s, NULL, e)) fail_msg("%s", e->msg);
    for (size_t i = 0; i < s->n_tensors; i++)
        if (!qn_gguf_write_tensor(&w, i, 0, s->tensors[i].data, (size_t)w.bytes[i], e)) fail_msg("%s", e->msg);
    if (!qn_gguf_write_commit(&w, e)) fail_msg("%s", e->msg);
    qn_gguf_write_close(&w);
    qn_source_close(s);
    *e = (qn_err){ 0 };
    return qn_model_open(path, e);
}

static void refused(qn_source *s, const char *word)
{
    qn_err e;
    qn_model *m = reopen(s, &e);
    if (m) fail_msg("opened, though %s is wrong", word);
    if (!strstr(e.msg, word)) fail_msg("\"%s\" does not name %s", e.msg, word);
}

static void accepted(qn_source *s)
{
    qn_err e;
    qn_model *m = reopen(s, &e);
    if (!m) fail_msg("%s", e.msg);
    qn_model_close(m);
}

static const char *const needed[] = {
    "general.architecture", "qwen3.block_count", "qwen3.context_length", "qwen3.embedding_length", "qwen3.feed_forward_length",
    "qwen3.attention.head_count", "qwen3.attention.layer_norm_rms_epsilon",
};

static void missing_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < QN_COUNT(needed); i++) {
        qn_source *s = good();
        key(s, needed[i])->key = (qn_str){ "x.other", 7 };
        refused(s, needed[i]);
    }
    accepted(good());
}

static void wrong_types(void **state)
{
    (void)state;
    static const u32 numbers[] = { 1, 2, 3 };
    const qn_value values[] = {
        { .kind = KIND_str, .as.s = { "3", 1 } }, { .kind = KIND_f32, .as.f = 3 }, { .kind = KIND_bool, .as.b = true },
        { .kind = KIND_array, .item = KIND_u32, .n = 3, .data = numbers }, { .kind = KIND_i64, .as.i = -3 },
        { .kind = KIND_u64, .as.u = UINT64_MAX },
    };
    for (size_t i = 0; i < QN_COUNT(values); i++) {
        qn_source *s = good();
        key(s, "qwen3.block_count")->v = values[i];
        refused(s, "qwen3.block_count");
    }
    qn_source *s = good(); /* any width of integer is fine */
    key(s, "qwen3.block_count")->v = (qn_value){ .kind = KIND_i64, .as.i = 3 };
    accepted(s);
    s = good();
    key(s, "qwen3.attention.layer_norm_rms_epsilon")->v = (qn_value){ .kind = KIND_f32, .as.f = -1 };
    refused(s, "epsilon");
}

static void set(const char *name, u64 v, const char *word)
{
    qn_source *s = good();
    key(s, name)->v = (qn_value){ .kind = KIND_u32, .as.u = v };
    refused(s, word);
}

static void senseless_numbers(void **state)
{
    (void)state;
    set("qwen3.block_count", 0, "block_count");
    set("qwen3.block_count", 1025, "block_count");
    set("qwen3.block_count", 4, "blk.3.");
    set("qwen3.attention.head_count", 0, "head_count");
    set("qwen3.attention.head_count_kv", 0, "head_count_kv");
    set("qwen3.attention.head_count_kv", 8, "head_count_kv");  /* more than heads */
    set("qwen3.attention.head_count_kv", 3, "head_count_kv");  /* does not divide 4 */
    set("qwen3.attention.key_length", 0, "key_length");
    set("qwen3.attention.key_length", 4096, "key_length");
    set("qwen3.attention.value_length", 16, "value_length");
    set("qwen3.rope.dimension_count", 64, "dimension_count");
    set("qwen3.rope.dimension_count", 31, "dimension_count");
    set("qwen3.embedding_length", 0, "embedding_length");
    set("qwen3.context_length", 0, "context_length");
    set("qwen3.vocab_size", 511, "token_embd.weight");
    qn_source *s = good(); /* 7 heads into 64 */
    key(s, "qwen3.attention.key_length")->key = (qn_str){ "x.k", 3 };
    key(s, "qwen3.attention.value_length")->key = (qn_str){ "x.v", 3 };
    key(s, "qwen3.attention.head_count")->v.as.u = 7;
    key(s, "qwen3.attention.head_count_kv")->v.as.u = 7;
    refused(s, "embedding_length");
}

static void tensors_that_do_not_fit(void **state)
{
    (void)state;
    static const char *const names[] = { "token_embd.weight", "output_norm.weight", "blk.0.attn_q.weight", "blk.1.attn_k_norm.weight",
                                         "blk.2.ffn_down.weight", "blk.2.ffn_norm.weight" };
    for (size_t i = 0; i < QN_COUNT(names); i++) {
        qn_source *s = good();
        tensor(s, names[i])->name = "somewhere.else";
        refused(s, names[i]);
    }
    qn_source *s = good(); /* a row less than the vocabulary has */
    tensor(s, "token_embd.weight")->dims[1]--;
    refused(s, "[64, 511], wanted [64, 512]");
    s = good(); /* q and k change places */
    tensor(s, "blk.0.attn_q.weight")->name = "swap";
    tensor(s, "blk.0.attn_k.weight")->name = "blk.0.attn_q.weight";
    tensor(s, "swap")->name = "blk.0.attn_k.weight";
    refused(s, "blk.0.attn_");
    s = good(); /* one that nobody needs is counted, not refused */
    qn_tensor extra = *tensor(s, "output_norm.weight");
    extra.name = "blk.0.mystery.weight";
    qn_err e = { 0 };
    assert_true(qn_source_put_tensor(s, &extra, &e));
    qn_model *m = reopen(s, &e);
    if (!m) fail_msg("%s", e.msg);
    char *json;
    size_t n;
    assert_true(qn_model_describe(m, &json, &n, &e));
    assert_non_null(strstr(json, "\"unused_tensors\":1"));
    qn_free(json);
    qn_model_close(m);
}

static void architectures(void **state)
{
    (void)state;
    static char large[1 << 20];
    memset(large, 'a', sizeof large);
    const qn_str names[] = { { "evil", 4 }, { "", 0 }, { large, sizeof large }, { "../../x", 7 }, { "\x1b[31mred\n", 9 } };
    for (size_t i = 0; i < QN_COUNT(names); i++) {
        qn_err e;
        qn_source *s = good();
        key(s, "general.architecture")->v.as.s = names[i];
        qn_model *m = reopen(s, &e);
        assert_null(m);
        assert_int_equal(e.code, QN_EUNSUPPORTED);
        assert_non_null(strstr(e.msg, "unsupported architecture"));
        for (const char *c = e.msg; *c; c++) assert_true((u8)*c >= 0x20);
    }
}

/* Truncated behind our back: an error, not a signal. */
static void cut_while_mapped(void **state)
{
    (void)state;
    qn_err e;
    qn_model *m = reopen(good(), &e);
    assert_non_null(m);
    qn_options o = QN_OPTIONS_DEFAULT;
    qn_engine *en = qn_engine_open(m, &o, &e);
    assert_non_null(en);
    qn_session *s = qn_session_open(en, &e);
    const int32_t ids[] = { 1, 2, 3 };
    assert_true(qn_session_eval(s, ids, 3, NULL, NULL, &e));
    assert_int_equal(truncate(at("changed.gguf"), 4096), 0);
    assert_false(qn_session_eval(s, ids, 3, NULL, NULL, &e));
    assert_int_equal(e.code, QN_EIO);
    assert_non_null(strstr(e.msg, "changed.gguf"));
    qn_session_close(s);
    qn_engine_close(en);
    qn_model_close(m);
    accepted(good());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_keys), cmocka_unit_test(wrong_types), cmocka_unit_test(senseless_numbers),
        cmocka_unit_test(tensors_that_do_not_fit), cmocka_unit_test(architectures), cmocka_unit_test(cut_while_mapped),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
