/* test_hf_convert.c - Hugging Face folders written as GGUF: weights, keys, tokenizer and template come out as they went in, in
 * any type; and when something goes wrong there is no file. */
#include "files.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/str.h"
#include "format/gguf.h"
#include "quern.h"

static const char *const models[] = { "llama", "llama3", "mistral", "qwen2", "qwen3", "gemma3" };
static const qn_options options = { .threads = 2 };

static qn_source *convert(const char *dir, const char *type)
{
    qn_err e = { 0 };
    if (!qn_convert(dir, at("out.gguf"), type, &options, &e)) fail_msg("%s as %s: %s", dir, type ? type : "stored", e.msg);
    qn_source *s = qn_gguf_open(at("out.gguf"), &e);
    if (!s) fail_msg("%s", e.msg);
    return s;
}

/* The largest difference of two tensors, as a share of the largest weight. */
static double distance(const qn_tensor *a, const qn_tensor *b)
{
    const size_t n = (size_t)(a->dims[0] * a->dims[1]);
    float *x = malloc(n * 4), *y = malloc(n * 4);
    qn_dtypes[a->type].decode(a->data, x, n);
    qn_dtypes[b->type].decode(b->data, y, n);
    double most = 0, far = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)y[i]));
        far = fmax(far, fabs((double)x[i] - (double)y[i]));
    }
    free(x), free(y);
    return far / most;
}

static void test_reference(void **state)
{
    (void)state;
    static const struct { const char *type; double bound; } types[] = {
        { NULL, 0 }, { "F32", 0 }, { "F16", 1e-3 }, { "BF16", 5e-3 }, { "Q8_0", 1e-2 }, { "Q4_K_M", 0.2 },
    };
    for (size_t m = 0; m < QN_COUNT(models); m++) {
        for (size_t k = 0; k < QN_COUNT(types); k++) {
            qn_err e = { 0 };
            char path[128];
            snprintf(path, sizeof path, "tests/data/models/%s/model.gguf", models[m]);
            qn_source *want = qn_gguf_open(path, &e);
            snprintf(path, sizeof path, "tests/data/models/%s", models[m]);
            qn_source *got = convert(path, types[k].type);
            assert_int_equal(got->n_tensors, want->n_tensors);
            for (size_t i = 0; i < want->n_tensors; i++) {
                const qn_tensor *b = &want->tensors[i], *a = qn_source_tensor(got, b->name);
                assert_non_null(a);
                assert_memory_equal(a->dims, b->dims, sizeof a->dims);
                if (a->n_dims == 1) assert_int_equal(a->type, DT_f32);
                const double far = distance(a, b);
                if (!(far <= types[k].bound + 1e-6)) fail_msg("%s %s as %s: off by %g", models[m], b->name, types[k].type, far);
            }
            for (size_t i = 0; i < got->n_kvs; i++) assert_true(memcmp(got->kvs[i].key.p, "quern.", 6));
            qn_str str;
            assert_true(qn_source_str(got, "tokenizer.ggml.model", &str, &e) && str.n == 8);
            u32 file_type;
            assert_true(qn_source_u32(got, "general.file_type", 0, 40, &file_type, &e));
            qn_source_close(got);
            qn_source_close(want);
        }
    }
}

/* A byte-level tokenizer with two merges, put beside the weights of a reference model. */
static void put_tokenizer(void)
{
    qn_buf b = { 0 };
    qn_buf_puts(&b, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[{\"id\":258,"
                    "\"content\":\"<|end|>\",\"single_word\":false,\"lstrip\":false,"
                    "\"rstrip\":false,\"normalized\":false,\"special\":true}],"
                    "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                    "\"trim_offsets\":true,\"use_regex\":true},\"post_processor\":null,"
                    "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true},"
                    "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":null,"
                    "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_fallback\":false,\"vocab\":{");
    u32 extra = 256;
    for (u32 c = 0; c < 256; c++) {
        const bool plain = (c > 32 && c < 127) || (c > 160 && c != 173);
        char utf8[4];
        const int n = qn_utf8_put(plain ? c : extra++, utf8);
        qn_buf_json(&b, utf8, (size_t)n);
        qn_buf_printf(&b, ":%u,", c);
    }
    qn_buf_puts(&b, "\"he\":256,\"hel\":257},\"merges\":[\"h e\",\"he l\"]}}");
    put_file("model/tokenizer.json", b.p, b.n);
    qn_buf_close(&b);
    static const char config[] = "{\"eos_token\":\"<|end|>\","
                                 "\"chat_template\":\"{% for m in messages %}{{ m.content }}{% endfor %}\"}";
    put_file("model/tokenizer_config.json", config, sizeof config - 1);
}

static void copy_model(const char *name)
{
    static const char *const files[] = { "config.json", "model.safetensors" };
    for (size_t i = 0; i < 2; i++) {
        char path[128];
        size_t n;
        snprintf(path, sizeof path, "tests/data/models/%s/%s", name, files[i]);
        u8 *p = get_file(path, &n);
        snprintf(path, sizeof path, "model/%s", files[i]);
        put_file(path, p, n);
        free(p);
    }
}

static void test_text(void **state)
{
    (void)state;
    qn_err e = { 0 };
    mkdir(at("model"), 0700);
    copy_model("mistral");
    put_tokenizer();
    qn_source *s = convert(at("model"), "Q8_0");
    const qn_value *tokens = qn_source_get(s, "tokenizer.ggml.tokens"), *types = qn_source_get(s, "tokenizer.ggml.token_type");
    assert_true(tokens && tokens->n == 512 && types && types->n == 512); /* one for each row of the embedding */
    assert_true(tokens->strs[257].n == 3 && !memcmp(tokens->strs[257].p, "hel", 3));
    assert_true(tokens->strs[511].n == 8 && !memcmp(tokens->strs[511].p, "[PAD511]", 8));
    assert_true(qn_value_int_at(types, 0) == 1 && qn_value_int_at(types, 258) == 3 && qn_value_int_at(types, 511) == 5);
    assert_int_equal(qn_source_get(s, "tokenizer.ggml.merges")->n, 2);
    u32 eos;
    assert_true(qn_source_u32(s, "tokenizer.ggml.eos_token_id", 0, 511, &eos, &e) && eos == 258);
    assert_non_null(qn_source_get(s, "tokenizer.chat_template"));
    qn_source_close(s);
    qn_model *folder = qn_model_open(at("model"), &e), *file = qn_model_open(at("out.gguf"), &e);
    if (!folder || !file) fail_msg("%s", e.msg);
    static const char text[] = "hello, the h\xC3\xA9ll\xF0\x9F\x8C\x8D 123<|end|>hel";
    i32 *a, *b;
    size_t n_a, n_b;
    assert_true(qn_tokenize(qn_model_tokenizer(folder), text, sizeof text - 1, NULL, QN_TOK_PARSE_SPECIAL, &a, &n_a, &e));
    assert_true(qn_tokenize(qn_model_tokenizer(file), text, sizeof text - 1, NULL, QN_TOK_PARSE_SPECIAL, &b, &n_b, &e));
    assert_int_equal(n_a, n_b);
    assert_memory_equal(a, b, n_a * sizeof *a);
    assert_int_equal(a[0], 257);
    assert_int_equal(a[n_a - 1], 257);
    qn_free(a), qn_free(b);
    qn_model_info x, y;
    qn_model_get_info(folder, &x);
    qn_model_get_info(file, &y);
    assert_string_equal(x.chat_template, y.chat_template);
    assert_true(x.eos_id == y.eos_id && x.bos_id == y.bos_id);
    qn_model_close(folder);
    qn_model_close(file);
    size_t n;
    u8 *json = get_file(at("model/tokenizer.json"), &n);
    for (size_t cut = 0; cut < n; cut += 97) {
        put_file("model/tokenizer.json", json, cut);
        assert_null(qn_model_open(at("model"), &e));
        check_refusal(&e, "tokenizer.json");
    }
    free(json);
    unlink(at("model/tokenizer.json")); /* text files may lead out of the folder as little as weights */
    assert_int_equal(symlink("/etc/passwd", at("model/tokenizer.json")), 0);
    assert_null(qn_model_open(at("model"), &e));
    check_refusal(&e, "tokenizer.json: a link that leads out");
}

static bool stop_half_way(void *user, const char *what, double share)
{
    assert_string_equal(what, "converting");
    assert_true(share > 0 && share <= 1);
    return --*(int *)user > 0;
}

static void test_refused(void **state)
{
    (void)state;
    qn_err e = { 0 };
    static const char good[] = "tests/data/models/qwen3";
    unlink(at("out.gguf"));
    assert_false(qn_convert("tests/data/models/qwen3/model.gguf", at("out.gguf"), NULL, &options, &e));
    check_refusal(&e, "not a Hugging Face folder");
    assert_false(qn_convert(at("none"), at("out.gguf"), NULL, &options, &e));
    assert_false(qn_convert(good, at("out.gguf"), "Q9_9", &options, &e));
    check_refusal(&e, "unknown type Q9_9");
    assert_false(qn_convert(good, "/nowhere/out.gguf", NULL, &options, &e));
    check_refusal(&e, "No such file");
    assert_false(qn_convert(good, test_dir, NULL, &options, &e));
    check_refusal(&e, "is a folder");
    struct rlimit was, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    small = (struct rlimit){ .rlim_cur = 300000, .rlim_max = was.rlim_max };
    void (*old)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0); /* as a full disk */
    const bool fits = qn_convert(good, at("out.gguf"), NULL, &options, &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    signal(SIGXFSZ, old);
    assert_false(fits);
    check_refusal(&e, "File too large");
    int calls = 3;
    const qn_options stops = { .threads = 2, .progress = stop_half_way, .progress_user = &calls };
    assert_false(qn_convert(good, at("out.gguf"), "F16", &stops, &e));
    assert_int_equal(e.code, QN_ECANCELLED);
    for (u64 n = 1;; n += 7) {
        e = (qn_err){ 0 };
        const u64 before = qn_mem_count();
        qn_mem_fail_at(n, n % 2);
        const bool ok = qn_convert(good, at("out.gguf"), "F16", &options, &e);
        qn_mem_fail_at(0, false);
        const bool reached = qn_mem_count() - before >= n;
        assert_true(ok || e.code == QN_ENOMEM);
        assert_int_equal(access(at("out.gguf"), F_OK) == 0, ok);
        if (ok) unlink(at("out.gguf"));
        if (!reached) break;
    }
    size_t left = 0;
    DIR *d = opendir(test_dir);
    for (struct dirent *it; (it = readdir(d));) left += !strncmp(it->d_name, ".quern-", 7);
    closedir(d);
    assert_int_equal(left, 0);
    qn_source_close(convert(good, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference), cmocka_unit_test(test_text), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
