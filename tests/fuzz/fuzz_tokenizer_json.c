/* fuzz_tokenizer_json.c - any bytes as tokenizer.json (and, behind a NUL, as text for it): refused with a message, or a tokenizer
 * that encodes, decodes, streams and describes itself. */
#include <stdlib.h>
#include <string.h>

#include "text/tokenizer.h"

static void expect(bool ok)
{
    if (!ok) abort();
}

static void use(const qn_tokenizer *t, const char *text, size_t n)
{
    for (unsigned flags = 0; flags < 4; flags++) {
        qn_err e = { 0 };
        i32 *ids = NULL;
        size_t n_ids = 0, bytes = 0;
        if (!qn_tokenize(t, text, n, NULL, flags, &ids, &n_ids, &e)) {
            expect(e.code != QN_OK && e.msg[0]);
            continue;
        }
        char *whole = NULL;
        for (size_t i = 0; i < n_ids; i++) expect(ids[i] >= 0 && ids[i] < qn_tokenizer_n_vocab(t));
        qn_decoder *d = qn_decoder_open(t, flags & 1, &e);
        qn_buf stream = { 0 };
        if (d && qn_detokenize(t, ids, n_ids, flags & 1, &whole, &bytes, &e)) {
            bool ok = true;
            for (size_t i = 0; i < n_ids && ok; i++) ok = qn_decoder_push(d, ids[i], &stream, &e);
            ok = ok && qn_decoder_flush(d, &stream, &e);
            expect(!ok || (stream.n == bytes && (bytes == 0 || memcmp(stream.p, whole, bytes) == 0)));
        }
        qn_buf_close(&stream);
        qn_decoder_close(d);
        qn_free(whole);
        qn_free(ids);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char sample[] = "Hello, world 123 <s> \xE4\xB8\xAD\xF0\x9F\x99\x82\xFF e\xCC\x81";
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    const size_t n = nul ? (size_t)(nul - data) : size;
    qn_err e = { 0 };
    qn_tokenizer *t = qn_tokenizer_from_json((const char *)data, n, NULL, 0, "fuzz", &e);
    if (!t) {
        expect(e.code != QN_OK && e.msg[0]);
        return 0;
    }
    use(t, sample, sizeof sample - 1);
    if (nul) use(t, (const char *)nul + 1, qn_minz(size - n - 1, 4096));
    qn_arena arena = { 0 };
    qn_vocab v;
    if (qn_tokenizer_export(t, &arena, &v, &e)) {
        qn_tokenizer *u = qn_tokenizer_from_vocab(&v, "fuzz", &e);
        if (u) use(u, sample, sizeof sample - 1);
        qn_tokenizer_close(u);
    }
    qn_arena_close(&arena);
    qn_tokenizer_close(t);
    return 0;
}
