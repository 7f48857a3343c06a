/* test_tokenizer.c - tokenizers made in code: merging against a plain reference, long words in linear time and little stack,
 * any bytes, marks, bad files, memory that runs out. Real tokenizers are in test_golden_tokenizers.c. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "small_tokenizer.h"

static qn_tokenizer *open_small(const char *alphabet, int n, u64 seed, const char *split, small_merges *m)
{
    qn_err e = { 0 };
    qn_buf json = { 0 };
    small_draw(m, alphabet, n, seed);
    small_json(&json, m, split, NULL);
    qn_tokenizer *t = qn_tokenizer_from_json(json.p, json.n, NULL, 0, "small", &e);
    if (!t) print_message("%s\n", e.msg);
    assert_non_null(t);
    qn_buf_close(&json);
    return t;
}

static i32 *encode(const qn_tokenizer *t, const char *s, size_t n, unsigned flags, size_t *n_ids)
{
    qn_err e = { 0 };
    i32 *ids = NULL;
    const bool ok = qn_tokenize(t, s, n, NULL, flags, &ids, n_ids, &e);
    if (!ok) print_message("%s\n", e.msg);
    assert_true(ok);
    return ids;
}

/* ---- merging */

static i32 token_of(const small_merges *m, const char *alphabet, int x) { return x < 0 ? (u8)alphabet[-1 - x] : m->id[x]; }

/* The best pair again and again, by looking at all of them: what BPE is. Returns how many ids are left. */
static size_t merge_plainly(const small_merges *m, const char *alphabet, i32 *v, size_t n)
{
    for (;;) {
        int best = m->n;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            for (int k = 0; k < best; k++) {
                if (v[i] != token_of(m, alphabet, m->left[k]) || v[i + 1] != token_of(m, alphabet, m->right[k])) continue;
                best = k;
                at = i;
            }
        }
        if (best == m->n) return n;
        v[at] = m->id[best];
        memmove(v + at + 1, v + at + 2, (n - at - 2) * sizeof *v);
        n--;
    }
}

static void merges_as_the_definition_says(void **state)
{
    (void)state;
    static const char *const alphabets[] = { "a", "ab", "abc", "abcdefgh" };
    for (u64 seed = 0; seed < 60; seed++) {
        const char *alphabet = alphabets[seed % 4];
        small_merges m;
        qn_tokenizer *t = open_small(alphabet, 3 + (int)(seed * 7 % 40), seed, NULL, &m);
        enum { n = 300 };
        char s[n];
        i32 want[n];
        for (size_t i = 0; i < n; i++) want[i] = (u8)(s[i] = alphabet[qn_rng_at(seed + 1000, i) % strlen(alphabet)]);
        size_t n_ids;
        i32 *ids = encode(t, s, n, 0, &n_ids);
        assert_int_equal(n_ids, merge_plainly(&m, alphabet, want, n));
        assert_memory_equal(ids, want, n_ids * sizeof *ids);
        qn_free(ids);
        qn_tokenizer_close(t);
    }
}

/* A long word in windows gives what its tokens, taken a few hundred at a time, give: neighbours encode to themselves. */
static void long_words_are_exact(void **state)
{
    (void)state;
    static const char *const alphabets[] = { "a", "ab", "abc", "abcdefghijklm" };
    for (u64 seed = 0; seed < 16; seed++) {
        const char *alphabet = alphabets[seed % 4];
        small_merges m;
        qn_tokenizer *t = open_small(alphabet, 10 + (int)seed * 4, seed + 77, NULL, &m);
        const size_t n = 30000;
        char *s = malloc(n + 1);
        for (size_t i = 0; i < n; i++) s[i] = alphabet[qn_rng_at(seed, i) % strlen(alphabet)];
        size_t n_ids, at = 0;
        i32 *ids = encode(t, s, n, 0, &n_ids);
        for (size_t i = 0; i < n_ids; i += 100) {
            const size_t count = n_ids - i < 200 ? n_ids - i : 200;
            qn_err e = { 0 };
            char *text;
            size_t bytes, again;
            assert_true(qn_detokenize(t, ids + i, count, true, &text, &bytes, &e));
            assert_memory_equal(text, s + at, bytes);
            i32 *part = encode(t, text, bytes, 0, &again);
            assert_int_equal(again, count);
            assert_memory_equal(part, ids + i, count * sizeof *part);
            for (size_t k = i; k < i + 100 && k < n_ids; k++) at += ids[k] < 256 ? 1 : qn_token_text(t, ids[k]).n;
            qn_free(part);
            qn_free(text);
        }
        assert_int_equal(at, n);
        qn_free(ids);
        free(s);
        qn_tokenizer_close(t);
    }
}

/* ---- runs: time and stack */

static double cpu_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static double time_run(const qn_tokenizer *t, const char *unit, size_t n, double *best)
{
    const size_t len = strlen(unit);
    char *s = malloc(n * len + 1);
    for (size_t i = 0; i < n; i++) memcpy(s + i * len, unit, len);
    const double start = cpu_seconds();
    size_t n_ids;
    i32 *ids = encode(t, s, n * len, QN_TOK_PARSE_SPECIAL, &n_ids);
    const double took = cpu_seconds() - start;
    assert_true(n_ids > 0 && n_ids <= n * len);
    qn_free(ids);
    free(s);
    if (took < *best) *best = took;
    return took;
}

static const char *const units[] = { "A", "7", ".", " ", "\n", "\xE4\xB8\xAD", "\xCC\x81", "\xF0\x9F\x91\xA8\xE2\x80\x8D",
                                     "us", "us ", " \n", "a\xCC\xA3\xCC\x81", "\xFF", "<|begin|", "'s" };

/* One long word and one long list of words of everything that may come in runs. Alone on a machine ten times the text takes
 * ten to twelve times as long; beside other work caches and pages are slower, so the test fails at 20. Quadratic is 100. */
static void runs_take_linear_time(void **state)
{
    (void)state;
    small_merges m;
    qn_tokenizer *tokenizers[] = { open_small("Asu7.", 30, 5, SMALL_SPLIT, &m), open_small("Asu7.", 60, 6, NULL, &m) };
    for (size_t k = 0; k < QN_COUNT(tokenizers); k++) {
        for (size_t i = 0; i < QN_COUNT(units); i++) {
            double small = 1e9, big = 1e9;
            for (int tries = 0; tries < 8 && !(big <= 20 * small && tries > 0); tries++) {
                time_run(tokenizers[k], units[i], 10000, &small);
                time_run(tokenizers[k], units[i], 100000, &big);
            }
            if (big > 20 * small) print_message("%zu, unit %zu: %g s, 10x: %g s\n", k, i, small, big);
            assert_true(big <= 20 * small);
        }
        qn_tokenizer_close(tokenizers[k]);
    }
}

static void *run_all(void *user)
{
    double best = 1e9;
    for (size_t i = 0; i < QN_COUNT(units); i++) time_run(user, units[i], 150000, &best);
    return NULL;
}

static void runs_need_little_stack(void **state)
{
    (void)state;
    small_merges m;
    qn_tokenizer *t = open_small("Asu7.", 30, 5, SMALL_SPLIT, &m);
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    assert_int_equal(pthread_attr_setstacksize(&attr, 256 * 1024), 0);
    assert_int_equal(pthread_create(&thread, &attr, run_all, t), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    qn_tokenizer_close(t);
}

/* Marks of two classes in turn are the worst case for sorting them. */
static void marks_are_sorted_in_linear_time(void **state)
{
    (void)state;
    double small = 1e9, big = 1e9;
    for (int tries = 0; tries < 8 && !(big <= 20 * small && tries > 0); tries++) {
        for (size_t n = 20000; n <= 200000; n *= 10) {
            qn_err e = { 0 };
            qn_buf in = { 0 }, out = { 0 };
            for (size_t i = 0; i < n; i++) qn_buf_puts(&in, "\xCC\x81\xCC\xA3");
            const double start = cpu_seconds();
            assert_true(qn_normal_form(&out, in.p, in.n, QN_NFC, &e));
            const double took = cpu_seconds() - start;
            assert_int_equal(out.n, in.n);
            assert_memory_equal(out.p, "\xCC\xA3\xCC\xA3", 4);
            double *best = n == 20000 ? &small : &big;
            if (took < *best) *best = took;
            qn_buf_close(&in);
            qn_buf_close(&out);
        }
    }
    assert_true(big <= 20 * small);
}

/* ---- any bytes */

static void any_bytes_work(void **state)
{
    (void)state;
    small_merges m;
    qn_tokenizer *t = open_small("abc", 10, 3, SMALL_SPLIT, &m);
    for (u64 round = 0; round < 300; round++) {
        char s[64];
        const size_t n = qn_rng_at(round, 0) % sizeof s;
        for (size_t i = 0; i < n; i++) s[i] = (char)(u8)(qn_rng_at(round, i + 1) >> 7);
        size_t n_ids, bytes = 0;
        i32 *ids = encode(t, s, n, QN_TOK_PARSE_SPECIAL, &n_ids);
        for (size_t i = 0; i < n_ids; i++) { /* every byte is there, in order */
            qn_buf spelled = { 0 };
            assert_true(qn_bytes_unspell(&spelled, qn_token_text(t, ids[i]).p, qn_token_text(t, ids[i]).n));
            assert_true(bytes + spelled.n <= n);
            assert_memory_equal(spelled.p, s + bytes, spelled.n);
            bytes += spelled.n;
            qn_buf_close(&spelled);
        }
        assert_int_equal(bytes, n);
        qn_err e = { 0 };
        char *text;
        assert_true(qn_detokenize(t, ids, n_ids, true, &text, &bytes, &e));
        assert_true(qn_utf8_valid(text, bytes));
        qn_free(text);
        qn_free(ids);
    }
    qn_tokenizer_close(t);
}

/* ---- control tokens */

static size_t count_controls(const qn_tokenizer *t, const char *s, const u8 *marks, unsigned flags)
{
    qn_err e = { 0 };
    i32 *ids;
    size_t n, count = 0;
    assert_true(qn_tokenize(t, s, strlen(s), marks, flags, &ids, &n, &e));
    for (size_t i = 0; i < n; i++) count += qn_token_is_control(t, ids[i]);
    qn_free(ids);
    return count;
}

static void control_tokens_only_where_they_may_be(void **state)
{
    (void)state;
    small_merges m;
    qn_tokenizer *t = open_small("abc", 10, 3, SMALL_SPLIT, &m);
    const char *s = "<|begin|>a<|end|>";
    u8 marks[17] = { 0 };
    assert_int_equal(count_controls(t, s, NULL, QN_TOK_PARSE_SPECIAL), 2);
    assert_int_equal(count_controls(t, s, NULL, 0), 0);
    assert_int_equal(count_controls(t, s, marks, QN_TOK_PARSE_SPECIAL), 2);
    for (size_t i = 0; i < 17; i++) { /* one marked byte anywhere in a token's spelling is enough */
        marks[i] = 1;
        assert_int_equal(count_controls(t, s, marks, QN_TOK_PARSE_SPECIAL), i == 9 ? 2 : 1);
        marks[i] = 0;
    }
    memset(marks, 1, sizeof marks);
    assert_int_equal(count_controls(t, s, marks, QN_TOK_PARSE_SPECIAL), 0);
    size_t n;
    i32 *ids = encode(t, "<tool>", 6, 0, &n); /* added but ordinary: always found */
    assert_int_equal(n, 1);
    assert_int_equal(ids[0], m.n_tokens + 2);
    qn_free(ids);
    ids = encode(t, "", 0, QN_TOK_ADD_SPECIAL, &n);
    assert_int_equal(n, 1);
    assert_int_equal(ids[0], m.n_tokens);
    qn_free(ids);
    assert_true(qn_token_is_end(t, m.n_tokens + 1));
    assert_false(qn_token_is_end(t, m.n_tokens));
    assert_false(qn_token_is_end(t, -1));
    assert_false(qn_token_is_end(t, 1 << 30));
    qn_tokenizer_close(t);
}

/* Control tokens that are looked for in normalised text keep to the marks as well. */
static void marks_hold_with_a_normalizer(void **state)
{
    (void)state;
    const char *json = "{\"added_tokens\":[{\"id\":3,\"content\":\"<s>\",\"special\":true,\"normalized\":true}],"
                       "\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"a\"},\"model\":{\"type\":\"BPE\",\"unk_token\":\"b\","
                       "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}}";
    qn_err e = { 0 };
    qn_tokenizer *t = qn_tokenizer_from_json(json, strlen(json), NULL, 0, "small", &e);
    assert_non_null(t);
    u8 marks[4] = { 0 };
    assert_int_equal(count_controls(t, "<s>b", marks, QN_TOK_PARSE_SPECIAL), 1);
    marks[1] = 1;
    assert_int_equal(count_controls(t, "<s>b", marks, QN_TOK_PARSE_SPECIAL), 0);
    assert_int_equal(count_controls(t, "<s>b", NULL, 0), 0);
    qn_tokenizer_close(t);
}

/* ---- streaming */

static void streams_whole_characters(void **state)
{
    (void)state;
    qn_err e = { 0 };
    small_merges m;
    qn_tokenizer *t = open_small("abc", 10, 3, NULL, &m);
    qn_decoder *d = qn_decoder_open(t, false, &e);
    qn_buf out = { 0 };
    const i32 smile[] = { 0xF0, 0x9F, 0x99, 0x82 };
    for (int i = 0; i < 4; i++) {
        assert_true(qn_decoder_push(d, smile[i], &out, &e));
        assert_int_equal(out.n, i < 3 ? 0 : 4);
    }
    assert_true(qn_decoder_push(d, 0xF0, &out, &e));
    assert_true(qn_decoder_push(d, m.n_tokens, &out, &e)); /* a control token shows nothing */
    assert_true(qn_decoder_push(d, 'x', &out, &e));
    assert_string_equal(out.p, "\xF0\x9F\x99\x82\xEF\xBF\xBDx");
    assert_true(qn_decoder_push(d, 0xE4, &out, &e));
    assert_true(qn_decoder_push(d, -5, &out, &e));
    assert_true(qn_decoder_push(d, 1 << 30, &out, &e));
    assert_true(qn_decoder_flush(d, &out, &e));
    assert_string_equal(out.p, "\xF0\x9F\x99\x82\xEF\xBF\xBDx\xEF\xBF\xBD");
    out.n = 0;
    const u64 before = qn_mem_count();
    for (int i = 0; i < 1000; i++) assert_true(qn_decoder_push(d, smile[i % 4], &out, &e) && (out.n < 16 || (out.n = 0, true)));
    assert_int_equal(qn_mem_count(), before); /* nothing is allocated per token */
    qn_buf_close(&out);
    qn_decoder_close(d);
    qn_tokenizer_close(t);
}

/* ---- GGUF vocabularies */

#define STR(s) { s, sizeof(s) - 1 }

static const qn_str spm_tokens[] = { STR("<unk>"), STR("<s>"), STR("</s>"), STR("<0x0A>"), STR("<0xC3>"), STR("<0xA9>"),
                                     STR("\xE2\x96\x81"), STR("a"), STR("b"), STR("ab"), STR("\xE2\x96\x81" "a"), STR("aba") };
static const float spm_scores[] = { 0, 0, 0, 0, 0, 0, -10, -11, -12, -1, -2, -3 };
static const i32 spm_types[] = { 2, 3, 3, 6, 6, 6, 1, 1, 1, 1, 1, 1 };

static void check(const qn_tokenizer *t, const char *s, const char *want)
{
    size_t n;
    i32 *ids = encode(t, s, strlen(s), QN_TOK_ADD_SPECIAL | QN_TOK_PARSE_SPECIAL, &n);
    qn_buf have = { 0 };
    for (size_t i = 0; i < n; i++) qn_buf_printf(&have, "%s%d", i ? " " : "", ids[i]);
    qn_buf_puts(&have, "");
    assert_string_equal(have.p ? have.p : "", want);
    qn_buf_close(&have);
    qn_free(ids);
}

static void sentencepiece(void **state)
{
    (void)state;
    qn_err e = { 0 };
    qn_vocab v = small_pieces(spm_tokens, spm_scores, spm_types, QN_COUNT(spm_tokens));
    qn_tokenizer *t = qn_tokenizer_from_vocab(&v, "small", &e);
    assert_non_null(t);
    check(t, "a", "1 10");
    check(t, "ab", "1 6 9");            /* ab before _a: the better score */
    check(t, "aba", "1 6 11");
    check(t, "\xC3\xA9\n", "1 6 4 5 3"); /* bytes for what no token spells */
    check(t, "z", "1 6 0");             /* and the unknown token where there are none */
    check(t, "a</s>a", "1 10 2 10");
    char *text;
    size_t n;
    const i32 ids[] = { 1, 10, 4, 5, 3, 9, 4, 2, 10 };
    assert_true(qn_detokenize(t, ids, QN_COUNT(ids), false, &text, &n, &e));
    assert_string_equal(text, "a\xC3\xA9\n" "ab\xEF\xBF\xBD a");
    qn_free(text);
    assert_int_equal(qn_tokenizer_bos(t), 1);
    assert_int_equal(qn_tokenizer_eos(t), 2);
    assert_true(qn_tokenizer_adds_bos(t));
    qn_tokenizer_close(t);

    v.bos = 12; /* = n: dropped, never read */
    v.eos = INT32_MAX;
    v.unk = -7;
    v.add_eos = 1;
    t = qn_tokenizer_from_vocab(&v, "small", &e);
    assert_non_null(t);
    assert_int_equal(qn_tokenizer_bos(t), -1);
    assert_int_equal(qn_tokenizer_eos(t), -1);
    check(t, "az", "10");
    qn_tokenizer_close(t);
    v.scores = NULL;
    assert_null(qn_tokenizer_from_vocab(&v, "small", &e));
    assert_string_equal(e.msg, "small: missing key tokenizer.ggml.scores");
    v.model = (qn_str)STR("bert");
    assert_null(qn_tokenizer_from_vocab(&v, "small", &e));
    assert_string_equal(e.msg, "small: tokenizer.ggml.model: bert is not supported");
    v.model = (qn_str)STR("gpt2");
    v.pre = (qn_str)STR("no\nsuch");
    assert_null(qn_tokenizer_from_vocab(&v, "small", &e));
    assert_string_equal(e.msg, "small: tokenizer.ggml.pre: no\\x0asuch is not supported");
    v.n = 0;
    assert_null(qn_tokenizer_from_vocab(&v, "small", &e));
}

static void every_pre_name_opens(void **state)
{
    (void)state;
    static const char *const names[] = { "gpt-2", "llama-bpe", "llama3", "qwen2", "qwen35", "smollm", "deepseek-llm",
                                         "deepseek-coder",
                                         "deepseek-v3", "falcon", "mpt", "starcoder", "refact", "command-r", "olmo", "dbrx",
                                         "stablelm2", "tekken", "gpt-4o", "llama4", "default", "" };
    static const qn_str tokens[] = { STR("a"), STR("1"), STR("\xC4\xA0"), STR("\xC4\x8A"), STR("\xC4\xA0" "a"), STR("aa") };
    static const qn_str merges[] = { STR("a a"), STR("\xC4\xA0 a"), STR("x y"), STR(""), STR(" ") };
    for (size_t i = 0; i < QN_COUNT(names); i++) {
        qn_err e = { 0 };
        qn_vocab v = QN_VOCAB_DEFAULT;
        v.model = (qn_str)STR("gpt2");
        v.pre = (qn_str){ names[i], strlen(names[i]) };
        v.n = QN_COUNT(tokens);
        v.tokens = tokens;
        v.merges = merges;
        v.n_merges = QN_COUNT(merges);
        qn_tokenizer *t = qn_tokenizer_from_vocab(&v, "small", &e);
        if (!t) print_message("%s: %s\n", names[i], e.msg);
        assert_non_null(t);
        check(t, "aa a\n", "5 4 3");
        check(t, "11", "1 1");
        qn_tokenizer_close(t);
    }
}

/* ---- bad files */

#define MODEL(vocab, merges) "\"model\":{\"type\":\"BPE\",\"vocab\":" vocab ",\"merges\":" merges "}"
#define ADDED(list) "{\"added_tokens\":" list "," MODEL("{\"a\":0,\"b\":1,\"ab\":2}", "[\"a b\"]") "}"
#define STEP(key, value) "{\"" key "\":" value "," MODEL("{\"a\":0,\"b\":1,\"ab\":2}", "[\"a b\"]") "}"

static const struct { const char *json, *why; } bad[] = {
    { "", "not valid JSON" },
    { "{", "not valid JSON" },
    { "[]", "model: missing" },
    { "{\"model\":7}", "model: missing" },
    { "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{}}}", "model: type WordPiece is not supported" },
    { "{\"model\":{\"type\":\"BPE\",\"vocab\":[]}}", "model.vocab" },
    { "{" MODEL("{}", "[]") "}", "model.vocab: is empty" },
    { "{" MODEL("{\"a\":2147483648}", "[]") "}", "id 2147483648 is out of range" },
    { "{" MODEL("{\"a\":-1}", "[]") "}", "model.vocab" },
    { "{" MODEL("{\"a\":1.5}", "[]") "}", "model.vocab" },
    { "{" MODEL("{\"a\":18446744073709551616}", "[]") "}", "model.vocab" },
    { "{" MODEL("{\"a\":\"0\"}", "[]") "}", "model.vocab" },
    { "{" MODEL("{\"a\":0,\"b\":0}", "[]") "}", "two tokens have the id 0" },
    { "{" MODEL("{\"a\":0,\"a\":1}", "[]") "}", "a token is listed twice" },
    { "{" MODEL("{\"a\":0}", "7") "}", "model.merges" },
    { "{" MODEL("{\"a\":0}", "[\"a z\"]") "}", "model.merges: number 0 names a token" },
    { "{" MODEL("{\"a\":0}", "[\"a a\"]") "}", "model.merges: number 0 names a token" },
    { "{" MODEL("{\"a\":0}", "[\"aa\"]") "}", "model.merges: number 0 is not two tokens" },
    { "{" MODEL("{\"a\":0}", "[[\"a\"]]") "}", "model.merges: number 0 is not two tokens" },
    { "{" MODEL("{\"a\":0}", "[[1,2]]") "}", "model.merges: number 0 is not two tokens" },
    { ADDED("7"), "added_tokens" },
    { ADDED("[7]"), "added_tokens" },
    { ADDED("[{\"id\":3}]"), "content: missing" },
    { ADDED("[{\"content\":\"x\"}]"), "added_tokens" },
    { ADDED("[{\"id\":4294967295,\"content\":\"x\"}]"), "out of range" },
    { ADDED("[{\"id\":3,\"content\":\"x\",\"special\":1}]"), "special: must be true or false" },
    { STEP("normalizer", "{}"), "normalizer: has no type" },
    { STEP("normalizer", "{\"type\":\"Frob\"}"), "normalizer: type Frob is not supported" },
    { STEP("normalizer", "{\"type\":\"Sequence\"}"), "normalizers: must be a list" },
    { STEP("normalizer", "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"(\"},\"content\":\"\"}"),
      "regular expression: missing closing" },
    { STEP("normalizer", "{\"type\":\"Prepend\"}"), "prepend: missing" },
    { STEP("pre_tokenizer", "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[z-a]\"}}"), "regular expression: range out of order" },
    { STEP("pre_tokenizer", "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a{9999999}\"}}"), "regular expression" },
    { STEP("pre_tokenizer", "{\"type\":\"Split\",\"pattern\":7}"), "pattern must be an object" },
    { STEP("pre_tokenizer", "{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"Sideways\"}"), "behavior" },
    { STEP("pre_tokenizer", "{\"type\":\"Metaspace\"}"), "replacement: missing" },
    { STEP("decoder", "{\"type\":\"CTC\"}"), "decoder: type CTC is not supported" },
    { STEP("decoder", "{\"type\":\"Strip\",\"content\":\" \",\"start\":-1,\"stop\":0}"), "start" },
    { STEP("post_processor", "{\"type\":\"TemplateProcessing\"}"), "post_processor.single" },
    { STEP("post_processor", "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"x\"}}]}"),
      "post_processor.special_tokens" },
    { STEP("post_processor", "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"x\"}}],"
                             "\"special_tokens\":{\"x\":{\"ids\":[3]}}}"),
      "post_processor: names a token id" },
    { STEP("post_processor", "{\"type\":\"BertProcessing\",\"cls\":7}"), "post_processor: names a token id" },
};

static void bad_files_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < QN_COUNT(bad); i++) {
        qn_err e = { 0 };
        qn_tokenizer *t = qn_tokenizer_from_json(bad[i].json, strlen(bad[i].json), NULL, 0, "bad.json", &e);
        const bool ok = !t && strstr(e.msg, "bad.json") && strstr(e.msg, bad[i].why);
        if (!ok) print_message("%s\n  said %s\n  not  %s\n", bad[i].json, t ? "nothing" : e.msg, bad[i].why);
        qn_tokenizer_close(t);
        assert_true(ok);
    }
}

/* A good file cut at every byte is never a tokenizer; nested too deep it is refused without recursion. */
static void cut_and_deep_files_are_refused(void **state)
{
    (void)state;
    const char *good = ADDED("[{\"id\":3,\"content\":\"x\",\"special\":true}]");
    qn_err e = { 0 };
    for (size_t n = 0; n < strlen(good); n++) assert_null(qn_tokenizer_from_json(good, n, NULL, 0, "cut.json", &e));
    qn_buf deep = { 0 };
    for (int i = 0; i < 100000; i++) qn_buf_puts(&deep, "{\"a\":");
    assert_null(qn_tokenizer_from_json(deep.p, deep.n, NULL, 0, "deep.json", &e));
    assert_non_null(strstr(e.msg, "deep.json"));
    qn_buf_close(&deep);
    qn_tokenizer *t = qn_tokenizer_from_json(good, strlen(good), "{", 1, "good.json", &e);
    assert_null(t);
    assert_non_null(strstr(e.msg, "tokenizer_config.json"));
}

/* A pattern that backtracks without end stops with an error that names the file. */
static void backtracking_is_limited(void **state)
{
    (void)state;
    const char *json = STEP("pre_tokenizer", "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a+)+$\"},\"behavior\":\"Isolated\"}");
    qn_err e = { 0 };
    qn_tokenizer *t = qn_tokenizer_from_json(json, strlen(json), NULL, 0, "bomb.json", &e);
    assert_non_null(t);
    i32 *ids;
    size_t n;
    assert_false(qn_tokenize(t, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", 41, NULL, 0, &ids, &n, &e));
    assert_non_null(strstr(e.msg, "bomb.json: regular expression: too much backtracking"));
    qn_tokenizer_close(t);
}

/* ---- memory runs out */

static bool whole_life(const char *json, size_t n, qn_err *e)
{
    qn_tokenizer *t = qn_tokenizer_from_json(json, n, "{\"eos_token\":\"<|end|>\"}", 23, "small", e);
    i32 *ids = NULL;
    char *text = NULL;
    size_t k;
    qn_arena arena = { 0 };
    qn_vocab v;
    bool ok = t && qn_tokenize(t, "abc <|end|>\xC3\xA9 e\xCC\x81 ab", 19, NULL, 3, &ids, &k, e) &&
              qn_detokenize(t, ids, k, true, &text, &k, e) && qn_tokenizer_export(t, &arena, &v, e);
    if (ok) {
        qn_tokenizer *u = qn_tokenizer_from_vocab(&v, "small", e);
        ok = u != NULL;
        qn_tokenizer_close(u);
    }
    qn_arena_close(&arena);
    qn_free(text);
    qn_free(ids);
    qn_tokenizer_close(t);
    return ok;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    small_merges m;
    qn_buf json = { 0 };
    small_draw(&m, "abc", 10, 3);
    small_json(&json, &m, SMALL_SPLIT, "{\"type\":\"NFC\"}");
    for (int forever = 0; forever < 2; forever++) {
        u64 n = 1;
        for (;; n++) {
            qn_err e = { 0 };
            qn_mem_fail_at(n, forever);
            const bool ok = whole_life(json.p, json.n, &e);
            qn_mem_fail_at(0, false);
            if (ok) break;
            if (e.code != QN_ENOMEM) print_message("allocation %llu: %s\n", (unsigned long long)n, e.msg);
            assert_int_equal(e.code, QN_ENOMEM);
        }
        assert_true(n > 20);
    }
    qn_buf_close(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_as_the_definition_says), cmocka_unit_test(long_words_are_exact),
        cmocka_unit_test(runs_take_linear_time), cmocka_unit_test(runs_need_little_stack),
        cmocka_unit_test(marks_are_sorted_in_linear_time), cmocka_unit_test(any_bytes_work),
        cmocka_unit_test(control_tokens_only_where_they_may_be), cmocka_unit_test(marks_hold_with_a_normalizer),
        cmocka_unit_test(streams_whole_characters), cmocka_unit_test(sentencepiece), cmocka_unit_test(every_pre_name_opens),
        cmocka_unit_test(bad_files_are_refused), cmocka_unit_test(cut_and_deep_files_are_refused),
        cmocka_unit_test(backtracking_is_limited), cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
