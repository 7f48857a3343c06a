/* test_hf.c - Hugging Face folders: all reference models come out equal to their GGUF files, key by key and weight by weight;
 * configurations in every spelling; every wrong one refused by file and key. */
#include "files.h"

#include <math.h>

#include "base/half.h"
#include "base/str.h"
#include "format/gguf.h"
#include "model/hf.h"

static const char *const models[] = { "llama", "llama3", "mistral", "qwen2", "qwen3", "gemma3" };

static u64 rows_of(const qn_tensor *t) { return t->dims[1] * t->dims[2] * t->dims[3]; }

static void check_keys(const qn_source *got, const qn_source *want)
{
    for (size_t i = 0; i < want->n_kvs; i++) {
        char key[128];
        const qn_kv *kv = &want->kvs[i];
        snprintf(key, sizeof key, "%.*s", (int)kv->key.n, kv->key.p);
        if (!strcmp(key, "general.name") || !strcmp(key, "general.file_type") || !strncmp(key, "tokenizer.", 10)) continue;
        const qn_value *v = qn_source_get(got, key);
        if (!v) fail_msg("%s: missing key %s", got->path, key);
        assert_int_equal(v->kind, kv->v.kind);
        if (v->kind == KIND_str) {
            assert_int_equal(v->as.s.n, kv->v.as.s.n);
            assert_memory_equal(v->as.s.p, kv->v.as.s.p, v->as.s.n);
        } else if (v->as.u != kv->v.as.u) {
            fail_msg("%s: key %s differs", got->path, key);
        }
    }
}

static void check_tensor(const qn_tensor *got, const qn_tensor *want, bool permuted, u64 d_head)
{
    assert_int_equal(got->type, want->type);
    assert_int_equal(got->n_dims, want->n_dims);
    assert_memory_equal(got->dims, want->dims, sizeof got->dims);
    assert_int_equal(got->bytes, want->bytes);
    assert_int_equal((uintptr_t)got->data % 4, 0);
    if (!strcmp(got->name, "rope_freqs.weight")) {
        const float *a = (const float *)(const void *)got->data, *b = (const float *)(const void *)want->data;
        for (u64 i = 0; i < got->dims[0]; i++) assert_true(fabsf(a[i] - b[i]) <= 1e-5f * fabsf(b[i]));
        return;
    }
    const u64 row_bytes = got->bytes / rows_of(got);
    for (u64 r = 0; r < rows_of(got); r++) {
        const u64 from = permuted && qn_hf_is_permuted(got->name) ? qn_hf_row(r, d_head) : r;
        if (memcmp(got->data + from * row_bytes, want->data + r * row_bytes, (size_t)row_bytes))
            fail_msg("%s: row %llu differs", got->name, (unsigned long long)r);
    }
}

static void test_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < QN_COUNT(models); i++) {
        qn_err e = { 0 };
        char path[128], key[64];
        snprintf(path, sizeof path, "tests/data/models/%s", models[i]);
        qn_source *got = qn_hf_open(path, &e);
        assert_string_equal(e.msg, "");
        assert_non_null(got);
        snprintf(path, sizeof path, "tests/data/models/%s/model.gguf", models[i]);
        qn_source *want = qn_gguf_open(path, &e);
        assert_non_null(want);
        check_keys(got, want);
        qn_str arch;
        u32 d_head;
        bool neox = false;
        assert_true(qn_source_str(got, "general.architecture", &arch, &e));
        snprintf(key, sizeof key, "%.*s.attention.key_length", (int)arch.n, arch.p);
        assert_true(qn_source_u32(got, key, 1, 1000, &d_head, &e));
        if (qn_source_get(got, "quern.rope.neox")) assert_true(qn_source_bool(got, "quern.rope.neox", &neox, &e));
        assert_int_equal(neox, arch.n == 5 && !memcmp(arch.p, "llama", 5));
        assert_null(qn_source_get(got, "quern.ignored_tensors"));
        assert_int_equal(got->n_tensors, want->n_tensors);
        for (size_t k = 0; k < want->n_tensors; k++) {
            const qn_tensor *t = qn_source_tensor(got, want->tensors[k].name);
            if (!t) fail_msg("%s: missing tensor %s", models[i], want->tensors[k].name);
            check_tensor(t, &want->tensors[k], neox, d_head);
        }
        qn_source_close(got);
        qn_source_close(want);
    }
}

/* ---- configurations ---- */

#define BASE "\"hidden_size\":64,\"intermediate_size\":160,\"num_hidden_layers\":4,\"num_attention_heads\":4," \
             "\"vocab_size\":512,\"max_position_embeddings\":512,\"rms_norm_eps\":1e-5"

static void put_model(const char *header, size_t n_data)
{
    qn_buf b = { 0 };
    const u64 n = strlen(header);
    qn_buf_put(&b, &n, 8);
    qn_buf_puts(&b, header);
    for (size_t i = 0; i < n_data; i++) qn_buf_putc(&b, (char)(i % 2 ? 0x3F : 0x80)); /* bf16 1.0 */
    put_file("model.safetensors", b.p, b.n);
    qn_buf_close(&b);
}

static qn_source *open_config(const char *config, qn_err *e)
{
    *e = (qn_err){ 0 };
    put_file("config.json", config, strlen(config));
    return qn_hf_open(test_dir, e);
}

static qn_source *accept(const char *config)
{
    qn_err e;
    qn_source *s = open_config(config, &e);
    if (!s) fail_msg("%s: %s", config, e.msg);
    return s;
}

static void refuse(const char *config, const char *word)
{
    qn_err e;
    qn_source *s = open_config(config, &e);
    if (s) fail_msg("%s: was accepted", config);
    check_refusal(&e, word);
    check_refusal(&e, "config.json");
}

static u32 get_u32(const qn_source *s, const char *key)
{
    qn_err e = { 0 };
    u32 u = 0;
    if (!qn_source_u32(s, key, 0, UINT32_MAX, &u, &e)) fail_msg("%s", e.msg);
    return u;
}

static float get_f32(const qn_source *s, const char *key)
{
    qn_err e = { 0 };
    float f = 0;
    if (!qn_source_f32(s, key, &f, &e)) fail_msg("%s", e.msg);
    return f;
}

static bool has_text(const qn_source *s, const char *key, const char *want)
{
    const qn_value *v = qn_source_get(s, key);
    return v && v->kind == KIND_str && v->as.s.n == strlen(want) && !memcmp(v->as.s.p, want, v->as.s.n);
}

static void test_llama_configs(void **state)
{
    (void)state;
    put_model("{}", 0);
    qn_source *s = accept("{\"model_type\":\"llama\"," BASE "}");
    assert_int_equal(get_u32(s, "llama.attention.head_count_kv"), 4);
    assert_int_equal(get_u32(s, "llama.attention.key_length"), 16);
    assert_int_equal(get_u32(s, "llama.rope.dimension_count"), 16);
    assert_true(get_f32(s, "llama.rope.freq_base") == 1e4f && get_f32(s, "llama.attention.layer_norm_rms_epsilon") == 1e-5f);
    assert_true(!qn_source_get(s, "llama.rope.scaling.type") && !qn_source_get(s, "llama.attention.sliding_window"));
    assert_true(has_text(s, "general.name", strrchr(test_dir, '/') + 1));
    qn_source_close(s);
    s = accept("{\"model_type\":\"llama\",\"head_dim\":null,\"rope_theta\":5e5,"
               "\"rope_scaling\":{\"type\":\"linear\",\"factor\":4}," BASE "}");
    assert_true(get_f32(s, "llama.rope.freq_base") == 5e5f && get_f32(s, "llama.rope.scaling.factor") == 4);
    assert_true(has_text(s, "llama.rope.scaling.type", "linear"));
    qn_source_close(s);
    s = accept("{\"model_type\":\"llama\",\"rope_theta\":500000.0,\"head_dim\":32,\"rope_scaling\":{\"factor\":8.0,"
               "\"high_freq_factor\":4.0,\"low_freq_factor\":1.0,\"original_max_position_embeddings\":64,"
               "\"rope_type\":\"llama3\"}," BASE "}");
    const qn_tensor *t = qn_source_tensor(s, "rope_freqs.weight");
    assert_true(t && t->dims[0] == 16 && t->bytes == 64);
    const float *f = (const float *)(const void *)t->data;
    assert_true(f[0] == 1 && f[15] == 8 && !qn_source_get(s, "llama.rope.scaling.type"));
    qn_source_close(s);
    s = accept("{\"model_type\":\"qwen2\",\"rope_scaling\":{\"factor\":4.0,\"original_max_position_embeddings\":32768,"
               "\"type\":\"yarn\",\"beta_fast\":16}," BASE "}");
    assert_true(has_text(s, "qwen2.rope.scaling.type", "yarn") && get_f32(s, "qwen2.rope.scaling.yarn_beta_fast") == 16);
    assert_int_equal(get_u32(s, "qwen2.rope.scaling.original_context_length"), 32768);
    assert_true(!qn_source_get(s, "quern.rope.neox") && !qn_source_get(s, "qwen2.rope.scaling.attn_factor"));
    qn_source_close(s);
    s = accept("{\"model_type\":\"qwen3\",\"rope_parameters\":{\"factor\":4.0,\"rope_type\":\"yarn\",\"rope_theta\":1e6,"
               "\"attention_factor\":1.0}," BASE "}");
    assert_int_equal(get_u32(s, "qwen3.rope.scaling.original_context_length"), 512);
    assert_true(fabsf(get_f32(s, "qwen3.rope.scaling.attn_factor") * (1 + 0.1f * logf(4)) - 1) < 1e-6f);
    assert_true(get_f32(s, "qwen3.rope.freq_base") == 1e6f);
    qn_source_close(s);
    refuse("{\"model_type\":\"qwen3\",\"rope_scaling\":{\"factor\":4,\"type\":\"yarn\",\"mscale\":1}," BASE "}", "mscale");
    refuse("{\"model_type\":\"qwen3\",\"rope_scaling\":{\"factor\":0.5,\"type\":\"yarn\"}," BASE "}", "factor must be at");
}

static void test_windows(void **state)
{
    (void)state;
    put_model("{}", 0);
    qn_source *s = accept("{\"model_type\":\"mistral\",\"sliding_window\":128," BASE "}");
    assert_int_equal(get_u32(s, "llama.attention.sliding_window"), 128);
    assert_null(qn_source_get(s, "llama.attention.sliding_window_pattern"));
    qn_source_close(s);
    s = accept("{\"model_type\":\"mistral\",\"sliding_window\":null," BASE "}");
    assert_null(qn_source_get(s, "llama.attention.sliding_window"));
    qn_source_close(s);
    s = accept("{\"model_type\":\"qwen2\",\"sliding_window\":128,\"use_sliding_window\":false,\"max_window_layers\":2," BASE "}");
    assert_null(qn_source_get(s, "qwen2.attention.sliding_window"));
    qn_source_close(s);
    s = accept("{\"model_type\":\"qwen2\",\"sliding_window\":128,\"use_sliding_window\":true,\"max_window_layers\":3," BASE "}");
    const qn_value *v = qn_source_get(s, "qwen2.attention.sliding_window_pattern");
    assert_true(v && v->n == 4 && v->item == KIND_bool && !qn_value_int_at(v, 2) && qn_value_int_at(v, 3));
    qn_source_close(s);
    refuse("{\"model_type\":\"qwen2\",\"sliding_window\":128,\"use_sliding_window\":1," BASE "}", "use_sliding_window");
    refuse("{\"model_type\":\"gemma3_text\",\"layer_types\":[\"full_attention\"]," BASE "}", "layer_types");
    refuse("{\"model_type\":\"gemma3_text\",\"layer_types\":[\"a\",\"b\",\"c\",\"d\"]," BASE "}", "layer_types");
    refuse("{\"model_type\":\"mistral\",\"sliding_window\":0," BASE "}", "sliding_window");
}

/* With pictures: the text half is nested, leaves out defaults, and its tensors have one prefix more. */
static void test_gemma(void **state)
{
    (void)state;
    static const char header[] =
        "{\"language_model.model.layers.0.input_layernorm.weight\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[0,8]},"
        "\"language_model.model.layers.1.self_attn.q_proj.weight\":{\"dtype\":\"BF16\",\"shape\":[2,2],\"data_offsets\":[8,16]},"
        "\"language_model.model.layers.2.input_layernorm.weight\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[16,18]},"
        "\"vision_tower.vision_model.embeddings.patch_embedding.bias\":{\"dtype\":\"BF16\",\"shape\":[1],"
        "\"data_offsets\":[18,20]}}";
    put_model(header, 20);
    qn_source *s = accept("{\"model_type\":\"gemma3\",\"text_config\":{\"hidden_size\":2560,\"intermediate_size\":10240,"
                          "\"model_type\":\"gemma3_text\",\"num_hidden_layers\":2,"
                          "\"rope_scaling\":{\"factor\":8.0,\"rope_type\":\"linear\"},\"sliding_window\":1024}}");
    assert_int_equal(get_u32(s, "gemma3.embedding_length"), 2560);
    assert_int_equal(get_u32(s, "gemma3.attention.head_count"), 8);
    assert_int_equal(get_u32(s, "gemma3.attention.key_length"), 256);
    assert_int_equal(get_u32(s, "gemma3.attention.sliding_window"), 1024);
    assert_true(get_f32(s, "gemma3.rope.freq_base") == 1e6f && get_f32(s, "gemma3.rope.scaling.factor") == 8);
    assert_true(!qn_source_get(s, "gemma3.attention.scale") && !qn_source_get(s, "gemma3.rope.freq_base_swa"));
    assert_int_equal(get_u32(s, "quern.ignored_tensors"), 2);
    assert_int_equal(s->n_tensors, 2);
    const qn_tensor *t = qn_source_tensor(s, "blk.0.attn_norm.weight");
    assert_true(t->type == DT_f32 && t->bytes == 16 && ((const float *)(const void *)t->data)[3] == 2); /* 1 + 1 */
    t = qn_source_tensor(s, "blk.1.attn_q.weight");
    assert_true(t->type == DT_bf16 && t->bytes == 8);
    qn_source_close(s);
    put_model("{}", 0);
    s = accept("{\"model_type\":\"gemma3_text\",\"head_dim\":16,\"query_pre_attn_scalar\":64,\"rope_local_base_freq\":20000,"
               "\"sliding_window_pattern\":2," BASE "}");
    assert_true(get_f32(s, "gemma3.attention.scale") == 0.125f && get_f32(s, "gemma3.rope.freq_base_swa") == 2e4f);
    const qn_value *v = qn_source_get(s, "gemma3.attention.sliding_window_pattern");
    assert_true(v && v->n == 4 && qn_value_int_at(v, 0) && !qn_value_int_at(v, 1) && !qn_value_int_at(v, 3));
    qn_source_close(s);
    refuse("{\"model_type\":\"gemma3_text\",\"final_logit_softcapping\":30.0," BASE "}", "final_logit_softcapping");
    refuse("{\"model_type\":\"gemma3_text\",\"use_bidirectional_attention\":true," BASE "}", "use_bidirectional_attention");
}

/* Half-precision vectors and names that fit several tables. */
static void test_tensors(void **state)
{
    (void)state;
    put_model("{\"model.norm.weight\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]},"
              "\"lm_head.weight\":{\"dtype\":\"BF16\",\"shape\":[1,2],\"data_offsets\":[4,8]},"
              "\"model.layers.3.post_attention_layernorm.weight\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[8,12]},"
              "\"model.layers.03.mlp.up_proj.weight\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[12,14]},"
              "\"model.layers.-1.mlp.up_proj.weight\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[14,16]},"
              "\"model.layers.4.mlp.up_proj.weight\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[16,18]},"
              "\"model.layers.1.self_attn.rotary_emb.inv_freq\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[18,20]},"
              "\"model.layers.1..weight\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[20,22]},"
              "\"model.layers.weight\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[22,24]}}", 24);
    qn_source *s = accept("{\"model_type\":\"llama\",\"tie_word_embeddings\":false," BASE "}");
    assert_int_equal(s->n_tensors, 3);
    assert_int_equal(get_u32(s, "quern.ignored_tensors"), 6);
    const qn_tensor *t = qn_source_tensor(s, "output_norm.weight");
    assert_true(t->type == DT_f32 && t->bytes == 8 && ((const float *)(const void *)t->data)[1] == 1);
    t = qn_source_tensor(s, "blk.3.ffn_norm.weight");
    assert_true(t && t->type == DT_f32 && ((const float *)(const void *)t->data)[0] == qn_f16_f32(0x3F80));
    assert_true(qn_source_tensor(s, "output.weight")->type == DT_bf16);
    qn_source_close(s);
    s = accept("{\"model_type\":\"llama\",\"tie_word_embeddings\":true," BASE "}");
    assert_null(qn_source_tensor(s, "output.weight"));
    qn_source_close(s);
    s = accept("{\"model_type\":\"llama\"," BASE "}");
    assert_non_null(qn_source_tensor(s, "output.weight"));
    qn_source_close(s);
    put_model("{}", 0);
    qn_err e;
    assert_null(open_config("{\"model_type\":\"llama\",\"tie_word_embeddings\":false," BASE "}", &e));
    check_refusal(&e, "missing tensor lm_head.weight");
}

static void test_refused(void **state)
{
    (void)state;
    put_model("{}", 0);
    static const char *const keys[] = { "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                                        "vocab_size", "max_position_embeddings", "num_key_value_heads", "head_dim" };
    static const char *const values[] = { "0", "-1", "1e400", "\"8\"", "1.5", "4294967296", "true", "[4]", "{}",
                                          "99999999999999999999" };
    char config[1024];
    for (size_t k = 0; k < QN_COUNT(keys); k++) {
        for (size_t v = 0; v < QN_COUNT(values); v++) { /* the first of two equal keys counts */
            snprintf(config, sizeof config, "{\"model_type\":\"llama\",\"%s\":%s," BASE "}", keys[k], values[v]);
            refuse(config, keys[k]);
        }
    }
    static const char *const needed[] = { "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                                          "vocab_size", "max_position_embeddings", "rms_norm_eps" };
    for (size_t k = 0; k < QN_COUNT(needed); k++) {
        snprintf(config, sizeof config, "{\"model_type\":\"llama\"," BASE "}");
        memcpy(strstr(config, needed[k]), "XX", 2);
        refuse(config, needed[k]);
        refuse(config, "is missing");
    }
    static const struct { const char *extra, *word; } rows[] = {
        { "\"model_type\":\"evil\"", "model_type evil is not supported" }, { "\"model_type\":1", "model_type" },
        { "\"x\":1", "key model_type is missing" }, { "\"model_type\":\"llama\",\"hidden_act\":\"relu\"", "hidden_act relu" },
        { "\"model_type\":\"llama\",\"rms_norm_eps\":\"1e-5\"", "rms_norm_eps" },
        { "\"model_type\":\"llama\",\"rms_norm_eps\":-1", "rms_norm_eps" },
        { "\"model_type\":\"llama\",\"rope_theta\":0", "rope_theta" },
        { "\"model_type\":\"llama\",\"rope_theta\":1e400", "rope_theta" },
        { "\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}", "rope_type dynamic" },
        { "\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"linear\"}", "factor is missing" },
        { "\"model_type\":\"llama\",\"rope_scaling\":{\"type\":7,\"factor\":2}", "rope_type" },
        { "\"model_type\":\"llama\",\"rope_scaling\":[2]", "rope_scaling" },
        { "\"model_type\":\"llama\",\"rope_parameters\":3", "rope_parameters" },
        { "\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8}", "low_freq_factor" },
        { "\"model_type\":\"llama\",\"quantization_config\":{\"bits\":4}", "quantization_config" },
        { "\"model_type\":\"llama\",\"partial_rotary_factor\":0.5", "partial_rotary_factor" },
        { "\"model_type\":\"llama\",\"num_attention_heads\":7", "does not divide hidden_size" },
        { "\"model_type\":\"llama\",\"head_dim\":15", "head_dim must be even" },
        { "\"model_type\":\"llama\",\"tie_word_embeddings\":\"no\"", "tie_word_embeddings" },
        { "\"model_type\":\"gemma3\",\"text_config\":1", "text_config" },
    };
    for (size_t i = 0; i < QN_COUNT(rows); i++) {
        snprintf(config, sizeof config, "{%s," BASE "}", rows[i].extra);
        refuse(config, rows[i].word);
    }
    refuse("", "JSON");
    refuse("[]", "must be a JSON object");
    refuse("{\"model_type\":\"llama\"", "JSON");
    unlink(at("config.json"));
    qn_err e = { 0 };
    assert_null(qn_hf_open(test_dir, &e));
    check_refusal(&e, "a folder without config.json");
    assert_int_equal(symlink("/etc/passwd", at("config.json")), 0);
    assert_null(qn_hf_open(test_dir, &e));
    check_refusal(&e, "leads out of its folder");
    unlink(at("config.json"));
    assert_null(qn_hf_open(at("none"), &e));
    check_refusal(&e, "no such folder");
}

/* A snapshot of the Hugging Face cache: every file is a link to a blob; messages still name the file. */
static void test_cache(void **state)
{
    (void)state;
    static const char *const files[] = { "config.json", "model.safetensors" };
    qn_err e = { 0 };
    char dir[128], path[256], blob[64];
    assert_true(qn_mkdirs(at("repo/snapshots/0123"), &e) && qn_mkdirs(at("repo/blobs"), &e));
    snprintf(dir, sizeof dir, "%s", at("repo/snapshots/0123"));
    for (size_t i = 0; i < 2; i++) {
        size_t n;
        snprintf(path, sizeof path, "tests/data/models/qwen3/%s", files[i]);
        u8 *p = get_file(path, &n);
        snprintf(blob, sizeof blob, "repo/blobs/%zx", i + 0xabc);
        put_file(blob, p, n);
        free(p);
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        snprintf(blob, sizeof blob, "../../blobs/%zx", i + 0xabc);
        assert_int_equal(symlink(blob, path), 0);
    }
    qn_source *s = qn_hf_open(dir, &e);
    if (!s) fail_msg("%s", e.msg);
    assert_int_equal(s->n_tensors, 35);
    qn_source_close(s);
    put_file("repo/blobs/abc", "{}", 2);
    assert_null(qn_hf_open(dir, &e));
    check_refusal(&e, "config.json: key model_type is missing");
}

static void test_alloc_fails(void **state)
{
    (void)state;
    static const char *const some[] = { "gemma3", "llama3" };
    for (size_t i = 0; i < 2; i++) {
        char path[64];
        snprintf(path, sizeof path, "tests/data/models/%s", some[i]);
        for (u64 n = 1;; n++) {
            qn_err e = { 0 };
            const u64 before = qn_mem_count();
            qn_mem_fail_at(n, n % 2);
            qn_source *s = qn_hf_open(path, &e);
            qn_mem_fail_at(0, false);
            const bool reached = qn_mem_count() - before >= n;
            qn_source_close(s);
            assert_true(s || e.code == QN_ENOMEM);
            if (!reached) break;
        }
    }
    test_reference(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference), cmocka_unit_test(test_llama_configs), cmocka_unit_test(test_windows),
        cmocka_unit_test(test_gemma), cmocka_unit_test(test_tensors), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_cache), cmocka_unit_test(test_alloc_fails),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
