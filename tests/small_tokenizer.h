/* small_tokenizer.h - for tests: tokenizers made in code, so that nothing has to be fetched. Byte-level ones have the 256
 * bytes, then a token for each merge, then two control tokens and one that is added but ordinary. */
#ifndef QN_TEST_SMALL_TOKENIZER_H
#define QN_TEST_SMALL_TOKENIZER_H

#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

#define SMALL_SPLIT                                                                                                     \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|" \
    "\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"

typedef struct small_merges { char text[400][48]; int left[400], right[400], id[400], n, n_tokens; } small_merges;

/* n merges between tokens made so far, drawn from the letters of `alphabet` and what they merge into. */
static void small_draw(small_merges *m, const char *alphabet, int n, u64 seed)
{
    const int letters = (int)strlen(alphabet);
    u64 k = 0;
    m->n = 0;
    int pool[400], n_pool = letters;
    for (int i = 0; i < letters; i++) pool[i] = -1 - i; /* a letter; 0 and up: merge number */
    for (int tries = 0; m->n < n && tries < 100 * n; tries++) {
        const int l = pool[qn_rng_at(seed, k++) % (u64)n_pool], r = pool[qn_rng_at(seed, k++) % (u64)n_pool];
        char text[128];
        snprintf(text, sizeof text, "%.*s%.*s", l < 0 ? 1 : 47, l < 0 ? alphabet - 1 - l : m->text[l], r < 0 ? 1 : 47,
                 r < 0 ? alphabet - 1 - r : m->text[r]);
        bool old = strlen(text) > 40;
        for (int i = 0; i < m->n && !old; i++) old = m->left[i] == l && m->right[i] == r;
        if (old) continue;
        snprintf(m->text[m->n], sizeof m->text[0], "%.47s", text);
        m->left[m->n] = l;
        m->right[m->n] = r;
        bool seen = false;
        for (int i = 0; i < m->n; i++) seen = seen || strcmp(m->text[i], text) == 0;
        if (!seen && n_pool < 399) pool[n_pool++] = m->n;
        m->n++;
    }
    m->n_tokens = 256;
    for (int i = 0; i < m->n; i++) {
        m->id[i] = -1;
        for (int j = 0; j < i && m->id[i] < 0; j++) {
            if (strcmp(m->text[i], m->text[j]) == 0) m->id[i] = m->id[j];
        }
        if (m->id[i] < 0) m->id[i] = m->n_tokens++;
    }
}

/* The tokenizer.json of these merges. split NULL: no pattern, a text is one word. */
static void small_json(qn_buf *out, const small_merges *m, const char *split, const char *normalizer)
{
    qn_buf_puts(out, "{\"added_tokens\":[");
    static const char *const added[] = { "<|begin|>", "<|end|>", "<tool>" };
    for (int i = 0; i < 3; i++) {
        qn_buf_printf(out, "%s{\"id\":%d,\"content\":\"%s\",\"special\":%s,\"normalized\":false}", i ? "," : "", m->n_tokens + i,
                      added[i], i < 2 ? "true" : "false");
    }
    qn_buf_printf(out, "],\"normalizer\":%s,\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[",
                  normalizer ? normalizer : "null");
    if (split) qn_buf_printf(out, "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"%s\"},\"behavior\":\"Isolated\"},", split);
    qn_buf_puts(out, "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]},"
                     "\"decoder\":{\"type\":\"ByteLevel\"},\"post_processor\":{\"type\":\"TemplateProcessing\","
                     "\"single\":[{\"SpecialToken\":{\"id\":\"<|begin|>\"}},{\"Sequence\":{}}],");
    qn_buf_printf(out, "\"special_tokens\":{\"<|begin|>\":{\"ids\":[%d]}}},\"model\":{\"type\":\"BPE\",\"vocab\":{", m->n_tokens);
    for (int b = 0; b < 256; b++) {
        qn_buf spelled = { 0 };
        const char byte = (char)(u8)b;
        qn_bytes_spell(&spelled, &byte, 1);
        qn_buf_puts(out, b ? "," : "");
        qn_buf_json(out, spelled.p, spelled.n);
        qn_buf_printf(out, ":%d", b);
        qn_buf_close(&spelled);
    }
    int next = 256;
    for (int i = 0; i < m->n; i++) {
        if (m->id[i] == next) qn_buf_printf(out, ",\"%s\":%d", m->text[i], next++);
    }
    qn_buf_puts(out, "},\"merges\":[");
    for (int i = 0; i < m->n; i++) {
        const size_t r = m->right[i] < 0 ? 1 : strlen(m->text[m->right[i]]), n = strlen(m->text[i]);
        qn_buf_printf(out, "%s\"%.*s %s\"", i ? "," : "", (int)(n - r), m->text[i], m->text[i] + n - r);
    }
    qn_buf_puts(out, "]}}");
}

/* SentencePiece with these pieces. */
static inline qn_vocab small_pieces(const qn_str *tokens, const float *scores, const i32 *types, size_t n)
{
    qn_vocab v = QN_VOCAB_DEFAULT;
    v.model = (qn_str){ "llama", 5 };
    v.n = n;
    v.tokens = tokens;
    v.scores = scores;
    v.types = types;
    return v;
}

#endif
