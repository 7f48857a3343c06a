/* test_gguf.c - GGUF files: the reference models come out as they are, and every way to be wrong is refused by one sentence,
 * without memory for what is not there. Bad files are made here, byte by byte; the last test is that a good one still loads. */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/str.h"
#include "format/gguf.h"
#include "gguf_make.h"

static const char *const models[] = { "llama", "llama3", "mistral", "qwen2", "qwen3", "gemma3" };

static void test_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < QN_COUNT(models); i++) {
        qn_err e = { 0 };
        char path[128], key[64];
        snprintf(path, sizeof path, "tests/data/models/%s/model.gguf", models[i]);
        qn_source *s = qn_gguf_open(path, &e);
        assert_string_equal(e.msg, "");
        assert_non_null(s);
        qn_str arch;
        u32 d, n_vocab;
        assert_true(qn_source_str(s, "general.architecture", &arch, &e));
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

/* What g_good wrote. */
static void check_good(const qn_source *s)
{
    qn_err e = { 0 };
    u32 u;
    float f;
    bool b;
    assert_int_equal(s->n_kvs, 15);
    assert_int_equal(s->n_tensors, 2);
    assert_true(qn_source_u32(s, "a.u8", 0, 255, &u, &e) && u == 200);
    assert_true(qn_source_get(s, "a.i8")->as.i == -100);
    assert_true(qn_source_u32(s, "a.u16", 0, 60000, &u, &e) && u == 60000);
    assert_true(qn_source_get(s, "a.i16")->as.i == -30000);
    assert_true(qn_source_u32(s, "a.u32", 0, UINT32_MAX, &u, &e) && u == 4000000000u);
    assert_true(qn_source_get(s, "a.i32")->as.i == -2000000000);
    assert_true(qn_source_f32(s, "a.f32", &f, &e) && f == 1.5f);
    assert_true(qn_source_bool(s, "a.bool", &b, &e) && b);
    assert_true(qn_source_get(s, "a.u64")->as.u == UINT64_MAX - 1);
    assert_true(qn_source_get(s, "a.i64")->as.i == -5);
    assert_true(qn_source_get(s, "a.f64")->as.f == 1e300);
    const qn_value *v = qn_source_get(s, "a.strs");
    assert_true(v->kind == KIND_array && v->item == KIND_str && v->n == 3);
    assert_true(v->strs[0].n == 1 && v->strs[1].n == 0 && v->strs[2].n == 2 && !memcmp(v->strs[2].p, "yz", 2));
    v = qn_source_get(s, "a.ints");
    assert_true(v->n == 2 && qn_value_int_at(v, 0) == -7 && qn_value_at(v, 1) == 9);
    v = qn_source_get(s, "a.nest");
    assert_true(v->item == KIND_array && v->n == 2 && !v->data && !v->strs);
    const qn_tensor *t = qn_source_tensor(s, "m");
    assert_true(t->type == DT_f32 && t->dims[0] == 4 && t->dims[1] == 2 && t->dims[2] == 1 && t->bytes == 32);
    for (int i = 0; i < 8; i++) assert_true(((const float *)(const void *)t->data)[i] == (float)i + 0.5f);
    t = qn_source_tensor(s, "v");
    assert_true(t->type == DT_q8_0 && t->bytes == 34 && t->data[33] == 33);
}

static void test_versions(void **state)
{
    (void)state;
    for (u32 version = 2; version <= 3; version++) {
        qn_buf b = { 0 };
        size_t n_head;
        qn_err e = { 0 };
        g_good(&b, version, &n_head);
        qn_source *s = qn_gguf_open(put_file("good.gguf", b.p, b.n), &e);
        assert_string_equal(e.msg, "");
        check_good(s);
        qn_source_close(s);
        qn_buf_close(&b);
    }
}

static void refuse(const char *name, const void *p, size_t n, const char *word)
{
    qn_err e = { 0 };
    assert_null(qn_gguf_open(put_file(name, p, n), &e));
    check_refusal(&e, word);
    check_refusal(&e, name);
}

static void refuse_buf(qn_buf *b, const char *word)
{
    assert_false(b->failed);
    refuse("bad.gguf", b->p ? b->p : "", b->n, word);
    qn_buf_close(b);
    *b = (qn_buf){ 0 };
}

static void test_magic(void **state)
{
    (void)state;
    static const struct { const char *p; size_t n; const char *word; } rows[] = {
        { "", 0, "too short" }, { "G", 1, "too short" }, { "GG", 2, "too short" }, { "GGU", 3, "too short" },
        { "GGUF", 4, "too short" }, { "GGUF\3\0\0\0", 8, "too short" },
        { "GGUF\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 23, "too short" },
        { "GGML\1\0\0\0", 8, "old GGML" }, { "ggjt\1\0\0\0", 8, "GGJT" }, { "FUGG\0\0\0\3", 8, "big-endian" },
        { "\177ELF\2\1\1\0", 8, "ELF" }, { "PK\3\4\0\0\0\0", 8, "zip" }, { "\211PNG\r\n\032\n", 8, "PNG" },
        { "\20\0\0\0\0\0\0\0{\"a\":{}}      ", 22, "safetensors" }, { "{\"model_type\":1}", 16, "JSON" },
        { "nonsense", 8, "not a GGUF file" },
    };
    for (size_t i = 0; i < QN_COUNT(rows); i++) refuse("magic.gguf", rows[i].p, rows[i].n, rows[i].word);
    for (size_t n = 4; n < 24; n++) refuse("magic.gguf", rows[6].p, n, "too short");
    static const struct { u32 version; const char *word; } versions[] = {
        { 0, "version 0" }, { 1, "version 1" }, { 4, "version 4" }, { UINT32_MAX, "version 4294967295" },
        { 0x03000000, "big-endian GGUF (version 3)" },
    };
    for (size_t i = 0; i < QN_COUNT(versions); i++) {
        qn_buf b = { 0 };
        size_t n_head;
        g_good(&b, versions[i].version, &n_head);
        refuse_buf(&b, versions[i].word);
    }
}

static void test_counts(void **state)
{
    (void)state;
    static const u64 huge[] = { UINT64_MAX, 1ull << 63, 1ull << 32, 1000001 };
    qn_buf b = { 0 };
    size_t n_head;
    for (size_t i = 0; i < QN_COUNT(huge); i++) {
        g_good(&b, 3, &n_head);
        memcpy(b.p + 8, &huge[i], 8);
        refuse_buf(&b, "tensors it announces");
        g_good(&b, 3, &n_head);
        memcpy(b.p + 16, &huge[i], 8);
        refuse_buf(&b, "keys it announces");
    }
    g_good(&b, 3, &n_head); /* one more tensor, one more key than there are */
    b.p[8] = 3;
    refuse_buf(&b, "bad.gguf");
    g_good(&b, 3, &n_head);
    b.p[16] = 16;
    refuse_buf(&b, "bad.gguf");
}

static void test_lengths(void **state)
{
    (void)state;
    static const u64 lengths[] = { UINT64_MAX, UINT64_MAX - 7, 1ull << 63, 1ull << 32, 1000 };
    qn_buf b = { 0 };
    for (size_t i = 0; i < QN_COUNT(lengths); i++) {
        g_head(&b, 3, 0, 1), g_u64(&b, lengths[i]), qn_buf_puts(&b, "some more bytes that are not enough");
        refuse_buf(&b, "a key");
        g_head(&b, 3, 0, 1), g_key(&b, "k", KIND_str), g_u64(&b, lengths[i]), qn_buf_puts(&b, "not enough either");
        refuse_buf(&b, "a string value");
        g_head(&b, 3, 0, 1), g_key(&b, "k", KIND_array), g_u32(&b, KIND_str), g_u64(&b, 1), g_u64(&b, lengths[i]);
        qn_buf_puts(&b, "nor that");
        refuse_buf(&b, "a string of an array");
        for (u32 kind = 0; kind < N_KINDS; kind++) {
            g_head(&b, 3, 0, 1), g_key(&b, "k", KIND_array), g_u32(&b, kind), g_u64(&b, lengths[i]);
            qn_buf_puts(&b, "a few bytes");
            refuse_buf(&b, "key k has");
        }
    }
    g_head(&b, 3, 0, 1), g_key(&b, "k", KIND_array), g_u32(&b, KIND_u8), g_u64(&b, 1ull << 40);
    while (b.n < 200) qn_buf_putc(&b, 0);
    refuse_buf(&b, "key k has 1099511627776 elements");
    g_head(&b, 3, 0, 1), g_key(&b, "", KIND_u8), g_u8(&b, 1), g_u64(&b, 0);
    refuse_buf(&b, "no name");
    g_head(&b, 3, 0, 1), g_key(&b, "k", (qn_kind)13), g_u64(&b, 0);
    refuse_buf(&b, "unknown type 13");
    g_head(&b, 3, 0, 1), g_key(&b, "k", KIND_array), g_u32(&b, 77), g_u64(&b, 0);
    refuse_buf(&b, "unknown type 77");
    g_head(&b, 3, 0, 1), g_key(&b, "k", KIND_bool), g_u8(&b, 2), g_u64(&b, 0);
    refuse_buf(&b, "neither 0 nor 1");
    g_head(&b, 3, 0, 1), g_key(&b, "k", KIND_array);
    for (int i = 0; i < 10000; i++) g_u32(&b, KIND_array), g_u64(&b, 1);
    refuse_buf(&b, "nested too deep");
    g_head(&b, 3, 0, 2), g_key_u32(&b, "same.key", 1), g_key_u32(&b, "same.key", 1);
    refuse_buf(&b, "key same.key is there twice");
}

static void test_alignment(void **state)
{
    (void)state;
    static const u32 bad[] = { 0, 1, 3, 4, 33, 1u << 31, 1u << 21 }, good[] = { 8, 64, 4096, 1u << 20 };
    qn_buf b = { 0 };
    for (size_t i = 0; i < QN_COUNT(bad); i++) {
        g_head(&b, 3, 0, 1), g_key_u32(&b, "general.alignment", bad[i]);
        refuse_buf(&b, "power of two");
    }
    for (u32 kind = 0; kind < N_KINDS; kind++) {
        if (kind == KIND_u32) continue;
        g_head(&b, 3, 0, 1), g_key(&b, "general.alignment", (qn_kind)kind);
        if (kind == KIND_array) g_u32(&b, KIND_u32);
        g_u64(&b, kind == KIND_u64 ? 1ull << 63 : 1), g_u32(&b, 32);
        refuse_buf(&b, "must be uint32");
    }
    for (size_t i = 0; i < QN_COUNT(good); i++) {
        qn_err e = { 0 };
        g_head(&b, 3, 1, 1), g_key_u32(&b, "general.alignment", good[i]), g_tensor(&b, "t", 1, (u64[]){ 1 }, 0, good[i]);
        g_pad(&b, good[i]);
        const size_t data = b.n + good[i];
        while (b.n < data) qn_buf_putc(&b, 1);
        qn_buf_put(&b, &(float){ 42 }, 4);
        qn_source *s = qn_gguf_open(put_file("aligned.gguf", b.p, b.n), &e);
        assert_string_equal(e.msg, "");
        assert_int_equal(s->alignment, good[i]);
        assert_true(*(const float *)(const void *)s->tensors[0].data == 42);
        qn_source_close(s);
        qn_buf_close(&b);
        b = (qn_buf){ 0 };
    }
}

static void refuse_tensor(const char *name, u32 n_dims, const u64 *dims, u32 type, u64 offset, const char *word)
{
    qn_buf b = { 0 };
    g_head(&b, 3, 1, 0), g_tensor(&b, name, n_dims, dims, type, offset), g_pad(&b, 32);
    for (int i = 0; i < 1024; i++) qn_buf_putc(&b, 0);
    refuse_buf(&b, word);
}

static void test_tensors(void **state)
{
    (void)state;
    static const u64 one[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    static const u32 n_dims[] = { 0, 5, 1000000, UINT32_MAX }, types[] = { 4, 5, 9, 15, 31, 40, 1000, 1u << 31, UINT32_MAX };
    for (size_t i = 0; i < QN_COUNT(n_dims); i++) refuse_tensor("t", n_dims[i], one, 0, 0, "1 to 4 dimensions");
    for (u32 place = 0; place < 4; place++) {
        u64 dims[4] = { 1, 1, 1, 1 };
        dims[place] = 0;
        refuse_tensor("t", 4, dims, 0, 0, "a dimension must be from 1");
        dims[place] = 1ull << 31;
        refuse_tensor("t", 4, dims, 0, 0, "a dimension must be from 1");
        dims[place] = UINT64_MAX;
        refuse_tensor("t", 4, dims, 0, 0, "a dimension must be from 1");
    }
    for (size_t i = 0; i < QN_COUNT(types); i++) {
        char word[64];
        snprintf(word, sizeof word, "unsupported type %u for tensor blk.t", types[i]);
        refuse_tensor("blk.t", 1, (u64[]){ 256 }, types[i], 0, word);
    }
    refuse_tensor("t", 2, (u64[]){ 8, 64 }, 14, 0, "multiple of 256");
    refuse_tensor("t", 1, (u64[]){ 33 }, 8, 0, "multiple of 32");
    refuse_tensor("t", 4, (u64[]){ INT32_MAX, INT32_MAX, INT32_MAX, 1 }, 0, 0, "more elements than can be counted");
    refuse_tensor("t", 3, (u64[]){ INT32_MAX, INT32_MAX, 2 }, 0, 0, "tensor t");
    refuse_tensor("t", 1, (u64[]){ 4 }, 0, 1, "not a multiple of the alignment");
    refuse_tensor("t", 1, (u64[]){ 4 }, 0, 31, "not a multiple of the alignment");
    refuse_tensor("t", 1, (u64[]){ 257 }, 0, 0, "tensor t needs 4 bytes more");
    refuse_tensor("t", 1, (u64[]){ 256 }, 0, 32, "tensor t needs 32 bytes more");
    refuse_tensor("t", 1, (u64[]){ 1 }, 0, 1ull << 63, "bytes more than there are");
    refuse_tensor("t", 1, (u64[]){ 64 }, 0, UINT64_MAX - 31, "bytes more than there are");
    refuse_tensor("", 1, one, 0, 0, "no name");
    char name[70];
    memset(name, 'n', sizeof name), name[65] = 0;
    refuse_tensor(name, 1, one, 0, 0, "65 bytes long, the limit is 64");
    qn_buf b = { 0 };
    g_head(&b, 3, 2, 0), g_tensor(&b, "dup", 1, one, 0, 0), g_tensor(&b, "dup", 1, one, 0, 0), g_pad(&b, 32), g_u64(&b, 0);
    refuse_buf(&b, "tensor dup is there twice");
    refuse_tensor("evil\033[2J\n", 1, one, 99, 0, "evil\\x1b[2J\\x0a");
}

static void test_cut(void **state)
{
    (void)state;
    qn_buf b = { 0 };
    size_t n_head;
    g_good(&b, 3, &n_head);
    const size_t data = (n_head + 31) / 32 * 32;
    for (size_t n = 0; n < n_head; n++) refuse("cut.gguf", b.p, n, "too short");
    const size_t borders[] = { n_head, data - 1, data, data + 1, data + 31, data + 32, data + 33, data + 65 };
    for (size_t i = 0; i < QN_COUNT(borders); i++) refuse("cut.gguf", b.p, borders[i], "too short");
    qn_err e = { 0 };
    qn_source *s = qn_gguf_open(put_file("cut.gguf", b.p, b.n), &e);
    check_good(s);
    qn_source_close(s);
    qn_buf_close(&b);
}

/* Every bit of the header turned once: whatever comes of it is a refusal or a source that can be walked. */
static void test_flips(void **state)
{
    (void)state;
    qn_buf b = { 0 };
    size_t n_head;
    g_good(&b, 3, &n_head);
    for (size_t bit = 0; bit < 8 * n_head; bit++) {
        qn_err e = { 0 };
        b.p[bit / 8] = (char)(b.p[bit / 8] ^ 1 << bit % 8);
        qn_source *s = qn_gguf_open(put_file("flip.gguf", b.p, b.n), &e);
        b.p[bit / 8] = (char)(b.p[bit / 8] ^ 1 << bit % 8);
        assert_true(s || e.msg[0]);
        u64 sum = 0;
        for (size_t i = 0; s && i < s->n_tensors; i++) sum += s->tensors[i].data[s->tensors[i].bytes - 1];
        for (size_t i = 0; s && i < s->n_kvs; i++) sum += (u64)s->kvs[i].key.p[0];
        assert_true(s == NULL || sum);
        qn_source_close(s);
    }
    qn_buf_close(&b);
}

static void refuse_path(const char *path, const char *word)
{
    qn_err e = { 0 };
    const u64 begin = qn_now_ns();
    assert_null(qn_gguf_open(path, &e));
    check_refusal(&e, word);
    assert_true(qn_now_ns() - begin < 1000000000u);
}

static void test_paths(void **state)
{
    (void)state;
    refuse_path(test_dir, "is a folder");
    assert_int_equal(mkfifo(at("fifo.gguf"), 0600), 0);
    refuse_path(at("fifo.gguf"), "is a pipe");
    refuse_path("/dev/zero", "is a device");
    refuse_path("/dev/random", "is a device");
    refuse_path("/nowhere/x.gguf", "No such file");
    refuse_path("", "No such file");
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    snprintf(sa.sun_path, sizeof sa.sun_path, "%s", at("sock.gguf"));
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    refuse_path(at("sock.gguf"), "is a socket");
    close(fd);
    assert_int_equal(symlink("loop.gguf", at("loop.gguf")), 0);
    refuse_path(at("loop.gguf"), "symbolic links");
    char *name = malloc(5001);
    memset(name, 'x', 5000), name[5000] = 0;
    refuse_path(name, "File name too long");
    free(name);
    chmod(put_file("secret.gguf", "GGUF", 4), 0);
    const bool root = geteuid() == 0; /* who may read everything, so become somebody else for a moment */
    if (root) assert_int_equal(seteuid(65534), 0);
    refuse_path(at("secret.gguf"), "Permission denied");
    if (root) assert_int_equal(seteuid(0), 0);
}

/* ---- split files ---- */

static void put_part(const char *name, u32 no, u32 count, u32 total, const char *tensor)
{
    qn_buf b = { 0 };
    g_head(&b, 3, 1, 4);
    g_key_str(&b, "general.architecture", "llama");
    g_key(&b, "split.no", KIND_u16), qn_buf_put(&b, &(u16){ (u16)no }, 2);
    g_key(&b, "split.count", KIND_u16), qn_buf_put(&b, &(u16){ (u16)count }, 2);
    g_key(&b, "split.tensors.count", KIND_i32), g_u32(&b, total);
    g_tensor(&b, tensor, 1, (u64[]){ 2 }, 0, 0), g_pad(&b, 32);
    qn_buf_put(&b, (float[]){ (float)no, 7 }, 8);
    put_file(name, b.p, b.n);
    qn_buf_close(&b);
}

static void test_split(void **state)
{
    (void)state;
    static const char *const names[] = { "m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf" };
    static const char *const tensors[] = { "a", "b", "c" };
    qn_err e = { 0 };
    for (u32 i = 0; i < 3; i++) put_part(names[i], i, 3, 3, tensors[i]);
    for (u32 any = 0; any < 3; any++) {
        qn_source *s = qn_gguf_open(at(names[any]), &e);
        assert_string_equal(e.msg, "");
        assert_int_equal(s->n_tensors, 3);
        assert_int_equal(s->n_maps, 3);
        for (u32 i = 0; i < 3; i++) {
            const qn_tensor *t = qn_source_tensor(s, tensors[i]);
            assert_int_equal(t->file, i);
            assert_true(((const float *)(const void *)t->data)[0] == (float)i);
        }
        qn_source_close(s);
    }
    unlink(at(names[1]));
    refuse_path(at(names[2]), "m-00002-of-00003.gguf: part 2 of 3 is missing");
    put_part(names[1], 2, 3, 3, "b");
    refuse_path(at(names[0]), "says it is part 3 of 3, must be 2 of 3");
    put_part(names[1], 1, 4, 3, "b");
    refuse_path(at(names[0]), "says it is part 2 of 4");
    put_part(names[1], 1, 3, 3, "c");
    refuse_path(at(names[0]), "tensor c is there twice");
    put_part(names[1], 1, 3, 3, "b");
    put_part(names[0], 0, 3, 4, "a");
    refuse_path(at(names[0]), "hold 3 tensors, split.tensors.count says 4");
    put_part("other.gguf", 0, 3, 3, "a");
    refuse_path(at("other.gguf"), "its name must end in");
    put_part("other.gguf", 0, 60000, 3, "a");
    refuse_path(at("other.gguf"), "split.count");
    put_part("x-00001-of-00001.gguf", 0, 1, 1, "a");
    qn_source *s = qn_gguf_open(at("x-00001-of-00001.gguf"), &e);
    assert_non_null(s);
    qn_source_close(s);
}

/* ---- writing ---- */

static void test_write(void **state)
{
    (void)state;
    for (size_t m = 0; m < QN_COUNT(models); m++) {
        qn_err e = { 0 };
        char path[128];
        snprintf(path, sizeof path, "tests/data/models/%s/model.gguf", models[m]);
        qn_source *s = qn_gguf_open(path, &e);
        qn_gguf_writer w;
        assert_true(qn_source_put_bool(s, "quern.note", true, &e) && qn_source_put_u32(s, "split.no", 0, &e));
        assert_true(qn_gguf_write_open(&w, at("out.gguf"), s, NULL, &e));
        for (size_t i = s->n_tensors; i-- > 0;) { /* backwards, in two pieces */
            const qn_tensor *t = &s->tensors[i];
            const size_t half = (size_t)t->bytes / 2;
            assert_true(qn_gguf_write_tensor(&w, i, half, t->data + half, (size_t)t->bytes - half, &e));
            assert_true(qn_gguf_write_tensor(&w, i, 0, t->data, half, &e));
        }
        assert_int_not_equal(access(at("out.gguf"), F_OK), 0);
        assert_true(qn_gguf_write_commit(&w, &e));
        qn_gguf_write_close(&w);
        size_t n, n_want;
        u8 *got = get_file(at("out.gguf"), &n), *want = get_file(path, &n_want);
        assert_int_equal(n, n_want);
        assert_memory_equal(got, want, n);
        free(got), free(want);
        unlink(at("out.gguf"));
        assert_true(qn_gguf_write_open(&w, at("out.gguf"), s, NULL, &e)); /* given up half-way */
        qn_gguf_write_close(&w);
        assert_int_not_equal(access(at("out.gguf"), F_OK), 0);
        qn_source_close(s);
    }
    size_t left = 0;
    DIR *d = opendir(test_dir);
    for (struct dirent *it; (it = readdir(d));) left += !strncmp(it->d_name, ".quern-", 7);
    closedir(d);
    assert_int_equal(left, 0);
}

static void test_write_kinds(void **state)
{
    (void)state;
    qn_buf b = { 0 };
    size_t n_head;
    qn_err e = { 0 };
    qn_gguf_writer w;
    g_good(&b, 3, &n_head);
    qn_source *s = qn_gguf_open(put_file("kinds.gguf", b.p, b.n), &e);
    assert_false(qn_gguf_write_open(&w, at("kinds-out.gguf"), s, NULL, &e));
    check_refusal(&e, "a.nest is an array of arrays");
    assert_true(qn_source_put_u32(s, "a.nest", 1, &e)); /* replaced: now it can be written */
    assert_true(qn_gguf_write_open(&w, at("kinds-out.gguf"), s, NULL, &e));
    for (size_t i = 0; i < 2; i++)
        assert_true(qn_gguf_write_tensor(&w, i, 0, s->tensors[i].data, (size_t)s->tensors[i].bytes, &e));
    assert_true(qn_gguf_write_commit(&w, &e));
    qn_gguf_write_close(&w);
    qn_source *again = qn_gguf_open(at("kinds-out.gguf"), &e);
    assert_int_equal(again->n_kvs, s->n_kvs);
    for (size_t i = 0; i < s->n_kvs; i++) {
        const qn_value *x = &s->kvs[i].v, *y = &again->kvs[i].v;
        assert_true(x->kind == y->kind && x->item == y->item && x->n == y->n);
        if (x->kind == KIND_bool) assert_int_equal(x->as.b, y->as.b);
        else if (x->kind != KIND_str && x->kind != KIND_array) assert_true(x->as.u == y->as.u);
    }
    assert_true(qn_value_int_at(qn_source_get(again, "a.ints"), 0) == -7);
    assert_memory_equal(qn_source_get(again, "a.strs")->strs[2].p, "yz", 2);
    qn_source_close(again);
    qn_source_close(s);
    qn_buf_close(&b);
    assert_false(qn_gguf_write_open(&w, test_dir, &(qn_source){ .path = "x" }, NULL, &e));
    check_refusal(&e, "is a folder");
}

/* ---- memory and faults ---- */

static void test_alloc_fails(void **state)
{
    (void)state;
    static const char *const names[] = { "n-00001-of-00002.gguf", "n-00002-of-00002.gguf" };
    for (u32 i = 0; i < 2; i++) put_part(names[i], i, 2, 2, i ? "b" : "a");
    for (int forever = 0; forever < 2; forever++) {
        for (u64 n = 1;; n++) {
            qn_err e = { 0 };
            qn_mem_fail_at(n, forever);
            qn_source *s = qn_gguf_open(at(names[1]), &e);
            qn_mem_fail_at(0, false);
            qn_source_close(s);
            if (s) break;
            assert_int_equal(e.code, QN_ENOMEM);
            assert_true(n < 1000);
        }
    }
}

static bool sum_tensor(const qn_source *s, qn_err *e)
{
    const qn_tensor *t = &s->tensors[0];
    volatile u64 sum = 0;
    for (u64 i = 0; i < t->bytes; i += 4096) sum += t->data[i];
    (void)sum;
    return qn_maps_whole(s->maps, s->n_maps, "model", e);
}

/* The file loses its tail while it is mapped: reading it is an error, not the end of the process. */
static void test_cut_while_mapped(void **state)
{
    (void)state;
    qn_buf b = { 0 };
    qn_err e = { 0 };
    g_head(&b, 3, 1, 0), g_tensor(&b, "t", 1, (u64[]){ 65536 }, 0, 0), g_pad(&b, 32);
    const size_t data = b.n;
    for (int i = 0; i < 65536; i++) qn_buf_put(&b, &(float){ 1 }, 4);
    qn_source *s = qn_gguf_open(put_file("shrinks.gguf", b.p, b.n), &e);
    assert_non_null(s);
    assert_true(sum_tensor(s, &e));
    assert_int_equal(truncate(at("shrinks.gguf"), (off_t)data), 0);
    assert_false(sum_tensor(s, &e));
    assert_int_equal(e.code, QN_EIO);
    check_refusal(&e, "model: a file was cut short");
    assert_false(sum_tensor(s, &e)); /* zeros are not weights: it stays an error */
    qn_source_close(s);
    s = qn_gguf_open(put_file("shrinks.gguf", b.p, b.n), &e);
    assert_non_null(s);
    assert_true(sum_tensor(s, &e));
    qn_source_close(s);
    qn_buf_close(&b);
}

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
static const bool sanitized = true; /* keeps what was freed for a while */
#else
static const bool sanitized = false;
#endif

static u64 peak_before;

static int setup(void **state)
{
    u64 now;
    qn_mem_process(&now, &peak_before);
    return make_test_dir(state);
}

static void test_memory_and_canary(void **state)
{
    (void)state;
    u64 now, peak;
    qn_mem_process(&now, &peak);
    if (!sanitized) assert_true(peak - peak_before < (32u << 20));
    test_reference(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference), cmocka_unit_test(test_versions), cmocka_unit_test(test_magic),
        cmocka_unit_test(test_counts), cmocka_unit_test(test_lengths), cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_tensors), cmocka_unit_test(test_cut), cmocka_unit_test(test_flips),
        cmocka_unit_test(test_paths), cmocka_unit_test(test_split), cmocka_unit_test(test_write),
        cmocka_unit_test(test_write_kinds), cmocka_unit_test(test_alloc_fails),
        cmocka_unit_test(test_cut_while_mapped), cmocka_unit_test(test_memory_and_canary),
    };
    return cmocka_run_group_tests(tests, setup, remove_test_dir);
}
