/* test_golden_tokenizers.c - ids and texts of real tokenizers, equal to what Hugging Face's library gives. The answers are in
 * tests/data/tokenizers; the tokenizers come by package name (tools/fetch_tokenizers.sh) and are skipped where that fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "vocab_of.h"

typedef struct sample { yyjson_val *text, *ids, *ids_special, *decoded; } sample;

static void check_ids(const qn_tokenizer *t, const char *name, size_t line, yyjson_val *text, yyjson_val *want, unsigned flags)
{
    qn_err e = { 0 };
    i32 *ids;
    size_t n;
    assert_true(qn_tokenize(t, yyjson_get_str(text), yyjson_get_len(text), NULL, flags, &ids, &n, &e));
    bool same = n == yyjson_arr_size(want);
    for (size_t i = 0; same && i < n; i++) same = ids[i] == yyjson_get_sint(yyjson_arr_get(want, i));
    if (!same) {
        printf("%s line %zu flags %u: %s\n  want", name, line, flags, yyjson_get_str(text));
        for (size_t i = 0; i < yyjson_arr_size(want); i++) printf(" %lld", (long long)yyjson_get_sint(yyjson_arr_get(want, i)));
        printf("\n  have");
        for (size_t i = 0; i < n; i++) printf(" %d", ids[i]);
        printf("\n");
    }
    qn_free(ids);
    assert_true(same);
}

static void check_text(const qn_tokenizer *t, const char *name, size_t line, const sample *s)
{
    qn_err e = { 0 };
    const size_t n = yyjson_arr_size(s->ids);
    i32 *ids = calloc(n + 1, sizeof *ids);
    char *text;
    size_t bytes;
    qn_buf stream = { 0 };
    qn_decoder *d = qn_decoder_open(t, true, &e);
    assert_non_null(d);
    for (size_t i = 0; i < n; i++) {
        ids[i] = (i32)yyjson_get_sint(yyjson_arr_get(s->ids, i));
        assert_true(qn_decoder_push(d, ids[i], &stream, &e));
        assert_true(qn_utf8_valid(stream.p ? stream.p : "", stream.n));
    }
    assert_true(qn_decoder_flush(d, &stream, &e));
    qn_decoder_close(d);
    assert_true(qn_detokenize(t, ids, n, true, &text, &bytes, &e));
    const bool same = bytes == yyjson_get_len(s->decoded) && memcmp(text, yyjson_get_str(s->decoded), bytes) == 0;
    if (!same) printf("%s line %zu\n  want %s\n  have %s\n", name, line, yyjson_get_str(s->decoded), text);
    assert_true(same);
    assert_true(stream.n == bytes && (bytes == 0 || memcmp(stream.p, text, bytes) == 0));
    qn_buf_close(&stream);
    qn_free(text);
    free(ids);
}

static void check_file(const qn_tokenizer *t, const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "tests/data/tokenizers/%s.tokens.jsonl", name);
    qn_err e = { 0 };
    char *data;
    size_t n, line = 0;
    assert_true(qn_file_read(path, 1 << 24, &data, &n, &e));
    for (char *at = data; at < data + n; line++) {
        char *end = memchr(at, '\n', (size_t)(data + n - at));
        if (!end) end = data + n;
        yyjson_doc *doc = qn_json_parse(at, (size_t)(end - at), 0, path, &e);
        assert_non_null(doc);
        yyjson_val *root = yyjson_doc_get_root(doc);
        const sample s = { yyjson_obj_get(root, "text"), yyjson_obj_get(root, "ids"), yyjson_obj_get(root, "ids_special"),
                           yyjson_obj_get(root, "decoded") };
        check_ids(t, name, line + 1, s.text, s.ids, QN_TOK_PARSE_SPECIAL);
        check_ids(t, name, line + 1, s.text, s.ids_special, QN_TOK_PARSE_SPECIAL | QN_TOK_ADD_SPECIAL);
        check_text(t, name, line + 1, &s);
        yyjson_doc_free(doc);
        at = end + 1;
    }
    assert_int_equal(line, 121);
    qn_free(data);
}

static void fetch(const char *name)
{
    char command[120];
    snprintf(command, sizeof command, "tools/fetch_tokenizers.sh %s", name);
    if (system(command) == 0) return;
    print_message("skipped: the %s tokenizer could not be fetched\n", name);
    skip();
}

static qn_tokenizer *open_json(const char *name)
{
    qn_err e = { 0 };
    char path[200], *json, *config;
    size_t n, n_config;
    fetch(name);
    snprintf(path, sizeof path, ".deps/tokenizers/%s/tokenizer_config.json", name);
    assert_true(qn_file_read(path, 1 << 28, &config, &n_config, &e));
    snprintf(path, sizeof path, ".deps/tokenizers/%s/tokenizer.json", name);
    assert_true(qn_file_read(path, 1 << 28, &json, &n, &e));
    qn_tokenizer *t = qn_tokenizer_from_json(json, n, config, n_config, path, &e);
    if (!t) print_message("%s\n", e.msg);
    assert_non_null(t);
    qn_free(json);
    qn_free(config);
    return t;
}

static void check_json(const char *name, const char *kind)
{
    qn_err e = { 0 };
    qn_arena arena = { 0 };
    qn_vocab v;
    qn_tokenizer *t = open_json(name);
    check_file(t, name);
    assert_true(qn_tokenizer_export(t, &arena, &v, &e));
    qn_tokenizer *u = qn_tokenizer_from_vocab(&v, name, &e);
    assert_non_null(u);
    qn_tokenizer_close(t);
    qn_arena_close(&arena);
    assert_string_equal(qn_tokenizer_kind(u), kind);
    check_file(u, name); /* as a GGUF vocabulary it gives the same */
    qn_tokenizer_close(u);
}

static void gpt2(void **state) { (void)state; check_json("gpt2", "BPE (gpt2, pre gpt-2)"); }
static void qwen2_5(void **state) { (void)state; check_json("qwen2_5", "BPE (gpt2, pre qwen2)"); }
static void llama3_2(void **state) { (void)state; check_json("llama3_2", "BPE (gpt2, pre llama-bpe)"); }
static void llama2(void **state) { (void)state; check_json("llama2", "SentencePiece BPE (llama)"); }
static void gemma3(void **state) { (void)state; check_json("gemma3", "SentencePiece BPE (llama, no space prefix)"); }

static void smollm2(void **state)
{
    (void)state;
    qn_err e = { 0 };
    qn_arena arena = { 0 };
    qn_vocab v;
    fetch("smollm2");
    qn_source *s = qn_gguf_open(".deps/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", &e);
    if (!s) print_message("%s\n", e.msg);
    assert_non_null(s);
    assert_true(vocab_of(s, &arena, &v, &e));
    qn_tokenizer *t = qn_tokenizer_from_vocab(&v, "smollm2", &e);
    assert_non_null(t);
    qn_source_close(s);
    qn_arena_close(&arena);
    assert_string_equal(qn_tokenizer_kind(t), "BPE (gpt2, pre smollm)");
    check_file(t, "smollm2");
    qn_tokenizer_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(gpt2),   cmocka_unit_test(qwen2_5), cmocka_unit_test(llama3_2),
                                        cmocka_unit_test(llama2), cmocka_unit_test(gemma3),  cmocka_unit_test(smollm2) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
