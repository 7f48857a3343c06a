/* fuzz_tokenize.c - any bytes as text for four tokenizers made in code. Byte-level ids spell the text exactly, marked bytes never
 * become control tokens, and what is streamed is what is decoded at once. The first byte chooses flags and marks. */
#include <stdlib.h>

#include "small_tokenizer.h"

#define STR(s) { s, sizeof(s) - 1 }

static const qn_str spm_tokens[] = { STR("<unk>"), STR("<s>"), STR("</s>"), STR("<0x0A>"), STR("<0xC3>"), STR("<0xA9>"),
                                     STR("\xE2\x96\x81"), STR("a"), STR("b"), STR("ab"), STR("\xE2\x96\x81" "a"), STR("aba"),
                                     STR("\xE2\x96\x81\xE2\x96\x81"), STR("aa"), STR("aaaa") };
static const float spm_scores[] = { 0, 0, 0, 0, 0, 0, -10, -11, -12, -1, -2, -3, -4, -5, -6 };
static const i32 spm_types[] = { 2, 3, 3, 6, 6, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1 };

static void expect(bool ok)
{
    if (!ok) abort();
}

static qn_tokenizer *open_bytes(const char *alphabet, u64 seed, const char *split, const char *normalizer)
{
    qn_err e = { 0 };
    small_merges m;
    qn_buf json = { 0 };
    small_draw(&m, alphabet, 40, seed);
    small_json(&json, &m, split, normalizer);
    qn_tokenizer *t = qn_tokenizer_from_json(json.p, json.n, NULL, 0, "small", &e);
    qn_buf_close(&json);
    expect(t != NULL);
    return t;
}

static qn_tokenizer *open_pieces(void)
{
    qn_err e = { 0 };
    const qn_vocab v = small_pieces(spm_tokens, spm_scores, spm_types, QN_COUNT(spm_tokens));
    qn_tokenizer *t = qn_tokenizer_from_vocab(&v, "small", &e);
    expect(t != NULL);
    return t;
}

/* The bytes behind byte-level tokens; a control token stands for its own spelling. */
static void check_spelling(const qn_tokenizer *t, const i32 *ids, size_t n, const char *s, size_t bytes, const u8 *marks)
{
    size_t at = 0;
    qn_buf spelled = { 0 };
    for (size_t i = 0; i < n; i++) {
        const qn_str text = qn_token_text(t, ids[i]);
        spelled.n = 0;
        expect(qn_bytes_unspell(&spelled, text.p, text.n));
        expect(at + spelled.n <= bytes && memcmp(spelled.p, s + at, spelled.n) == 0);
        for (size_t k = 0; qn_token_is_control(t, ids[i]) && k < spelled.n; k++) expect(!marks || !marks[at + k]);
        at += spelled.n;
    }
    expect(at == bytes);
    qn_buf_close(&spelled);
}

static void check_stream(const qn_tokenizer *t, const i32 *ids, size_t n)
{
    qn_err e = { 0 };
    char *whole;
    size_t bytes;
    qn_buf stream = { 0 };
    qn_decoder *d = qn_decoder_open(t, true, &e);
    expect(d && qn_detokenize(t, ids, n, true, &whole, &bytes, &e));
    for (size_t i = 0; i < n; i++) {
        const size_t before = stream.n;
        expect(qn_decoder_push(d, ids[i], &stream, &e));
        expect(stream.n == before || qn_utf8_valid(stream.p + before, stream.n - before));
    }
    expect(qn_decoder_flush(d, &stream, &e));
    expect(stream.n == bytes && (bytes == 0 || memcmp(stream.p, whole, bytes) == 0) && qn_utf8_valid(whole, bytes));
    qn_free(whole);
    qn_buf_close(&stream);
    qn_decoder_close(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static qn_tokenizer *all[4]; /* a fuzz target has no end to close them at */
    if (!all[0]) {
        all[0] = open_bytes("abc<>|", 1, SMALL_SPLIT, NULL);
        all[1] = open_bytes("ab", 2, NULL, NULL);
        all[2] = open_bytes("abc", 3, SMALL_SPLIT, "{\"type\":\"NFKC\"}");
        all[3] = open_pieces();
    }
    if (size == 0) return 0;
    const unsigned flags = data[0] & 2;
    const char *s = (const char *)data + 1;
    const size_t n = size - 1;
    u8 *marks = data[0] & 4 ? malloc(n + 1) : NULL;
    for (size_t i = 0; marks && i < n; i++) marks[i] = i * 0x9E3779B1u >> 29 & data[0] >> 3 & 1;
    for (int k = 0; k < 4; k++) {
        qn_err e = { 0 };
        i32 *ids;
        size_t n_ids;
        expect(qn_tokenize(all[k], s, n, marks, flags, &ids, &n_ids, &e));
        if (k < 2) check_spelling(all[k], ids, n_ids, s, n, marks);
        if (n < 20000) check_stream(all[k], ids, n_ids);
        qn_free(ids);
    }
    free(marks);
    return 0;
}
