/* test_quantize.c - qn_quantize: which type each tensor gets, that its bytes are the encoder's, that nothing else changes, and
 * that whatever goes wrong leaves neither a file nor a temporary behind. Models are made here. */
#include "files.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/rng.h"
#include "format/gguf.h"
#include "model/mix.h"
#include "model/requant.h"

enum { LAYERS = 24 };

static float weight(u64 seed, u64 i) { return (float)(qn_rng_unit(seed, 2 * i) + qn_rng_unit(seed, 2 * i + 1) - 1) * 0.1f; }

static void add(qn_source *s, const char *name, u64 cols, u64 rows)
{
    qn_err e = { 0 };
    const size_t n = (size_t)(cols * (rows ? rows : 1));
    float *x = qn_arena_new(&s->arena, n * sizeof *x, &e);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) x[i] = weight(s->n_tensors, i);
    const qn_tensor t = { .name = name, .type = DT_f32, .n_dims = rows ? 2 : 1, .dims = { cols, rows ? rows : 1, 1, 1 },
                          .data = (const u8 *)x, .bytes = n * sizeof *x };
    assert_true(qn_source_put_tensor(s, &t, &e));
}

typedef struct shape { u64 d_model, d_ff; bool tied; int layers, share; } shape; /* share: query heads per value head */

static const shape usual = { 256, 512, false, LAYERS, 0 };

static qn_source *make(const shape *m)
{
    static const char *const mats[] = { "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up" };
    qn_err e = { 0 };
    char name[64];
    qn_source *s = qn_new(sizeof *s, &e);
    assert_non_null(s);
    s->path = qn_strdup("made", &e);
    assert_true(qn_source_put_str(s, "general.architecture", "llama", 5, &e));
    assert_true(qn_source_put_u32(s, "llama.block_count", (u32)m->layers, &e));
    assert_true(qn_source_put_u32(s, "general.file_type", 0, &e));
    static const float scores[3] = { 1, 2, 3 };
    static const qn_str words[2] = { { "one", 3 }, { "", 0 } };
    assert_true(qn_source_put_array(s, "tokenizer.ggml.scores", KIND_f32, scores, 3, &e));
    assert_true(qn_source_put_strs(s, "tokenizer.ggml.tokens", words, 2, &e));
    add(s, "token_embd.weight", m->d_model, 9);
    add(s, "output_norm.weight", m->d_model, 0);
    if (!m->tied) add(s, "output.weight", m->d_model, 9);
    for (int il = 0; il < m->layers; il++) {
        for (size_t k = 0; k < QN_COUNT(mats); k++) {
            snprintf(name, sizeof name, "blk.%d.%s.weight", il, mats[k]);
            add(s, name, m->d_model, k == 0 && m->share ? (u64)(3 * m->share) : 3);
        }
        snprintf(name, sizeof name, "blk.%d.ffn_down.weight", il);
        add(s, name, m->d_ff, 2);
        snprintf(name, sizeof name, "blk.%d.attn_norm.weight", il);
        add(s, name, m->d_model, 0);
        snprintf(name, sizeof name, "blk.%d.attn_q.bias", il);
        add(s, name, m->d_model, 0);
    }
    return s;
}

static const char *make_file(const char *name, const shape *m)
{
    qn_err e = { 0 };
    const qn_options o = { .threads = 1 };
    qn_source *s = make(m);
    qn_dtype *types = calloc(s->n_tensors, sizeof *types); /* all F32 */
    const bool ok = qn_requant(at(name), s, types, 0, "making", &o, &e);
    if (!ok) fail_msg("%s", e.msg);
    free(types);
    qn_source_close(s);
    return at(name);
}

static int n_entries(void)
{
    int n = 0;
    DIR *d = opendir(test_dir);
    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n - 2;
}

/* ---- which type ---- */

static qn_dtype planned(qn_source *s, const qn_dtype *types, const char *name)
{
    const qn_tensor *t = qn_source_tensor(s, name);
    if (!t) fail_msg("no tensor %s", name);
    return types[t - s->tensors];
}

static void check_plan(const shape *m, const char *mix, const char *name, qn_dtype want)
{
    qn_err e = { 0 };
    qn_source *s = make(m);
    qn_dtype *types = calloc(s->n_tensors, sizeof *types);
    if (!qn_mix_plan(s, mix, types, &e)) fail_msg("%s: %s", mix, e.msg);
    const qn_dtype got = planned(s, types, name);
    if (got != want) fail_msg("%s: %s is %s, not %s", mix, name, qn_dtypes[got].name, qn_dtypes[want].name);
    free(types);
    qn_source_close(s);
}

static void test_mixes(void **state)
{
    (void)state;
    /* of 24 layers: the first and last eighth and every third between */
    static const bool chosen[LAYERS] = { 1, 1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 1, 1, 1 };
    const struct { const char *mix; u32 file_type; qn_dtype base, more; } medium[] = {
        { "Q4_K_M", 15, DT_q4_k, DT_q6_k }, { "q4_k_m", 15, DT_q4_k, DT_q6_k }, { "Q5_K_M", 17, DT_q5_k, DT_q6_k },
        { "Q4_K", 15, DT_q4_k, DT_q6_k },   { "Q5_K_S", 16, DT_q5_k, DT_q5_k }, { "Q6_K", 18, DT_q6_k, DT_q6_k },
        { "Q5_0", 8, DT_q5_0, DT_q5_0 },    { "Q4_0", 2, DT_q4_0, DT_q4_0 },    { "F16", 1, DT_f16, DT_f16 },
        { "BF16", 32, DT_bf16, DT_bf16 },   { "Q8_0", 7, DT_q8_0, DT_q8_0 },    { "F32", 0, DT_f32, DT_f32 },
    };
    for (size_t k = 0; k < QN_COUNT(medium); k++) {
        qn_err e = { 0 };
        u32 v;
        char name[64];
        qn_source *s = make(&usual);
        qn_dtype *types = calloc(s->n_tensors, sizeof *types);
        assert_true(qn_mix_plan(s, medium[k].mix, types, &e));
        for (int il = 0; il < LAYERS; il++) {
            const qn_dtype want = chosen[il] ? medium[k].more : medium[k].base;
            snprintf(name, sizeof name, "blk.%d.attn_v.weight", il);
            assert_int_equal(planned(s, types, name), want);
            snprintf(name, sizeof name, "blk.%d.ffn_down.weight", il);
            assert_int_equal(planned(s, types, name), want);
            snprintf(name, sizeof name, "blk.%d.attn_k.weight", il);
            assert_int_equal(planned(s, types, name), medium[k].base);
            snprintf(name, sizeof name, "blk.%d.ffn_up.weight", il);
            assert_int_equal(planned(s, types, name), medium[k].base);
            snprintf(name, sizeof name, "blk.%d.attn_norm.weight", il);
            assert_int_equal(planned(s, types, name), DT_f32);
            snprintf(name, sizeof name, "blk.%d.attn_q.bias", il);
            assert_int_equal(planned(s, types, name), DT_f32);
        }
        const bool even = qn_dtypes[medium[k].base].block == 1 || medium[k].base == DT_q8_0;
        assert_int_equal(planned(s, types, "output.weight"), even ? medium[k].base : DT_q6_k);
        assert_int_equal(planned(s, types, "token_embd.weight"), medium[k].base);
        assert_int_equal(planned(s, types, "output_norm.weight"), DT_f32);
        assert_true(qn_source_u32(s, "general.file_type", 0, 99, &v, &e));
        assert_int_equal(v, medium[k].file_type);
        assert_true(qn_source_u32(s, "general.quantization_version", 0, 99, &v, &e));
        assert_int_equal(v, 2);
        free(types);
        qn_source_close(s);
    }
}

static void test_small_mix_and_fallbacks(void **state)
{
    (void)state;
    const shape tied = { 256, 512, true, 8, 0 }, narrow = { 96, 160, false, 8, 0 }, odd = { 40, 72, false, 8, 0 }, wide = { 256, 256, true, 80, 0 },
                shared = { 256, 256, true, 80, 8 };
    check_plan(&usual, "Q4_K_S", "blk.3.attn_v.weight", DT_q5_k);
    check_plan(&usual, "Q4_K_S", "blk.4.attn_v.weight", DT_q4_k);
    check_plan(&usual, "Q4_K_S", "blk.2.ffn_down.weight", DT_q5_k);
    check_plan(&usual, "Q4_K_S", "blk.3.ffn_down.weight", DT_q4_k);
    check_plan(&usual, "Q4_K_S", "output.weight", DT_q6_k);
    check_plan(&tied, "Q4_K_S", "token_embd.weight", DT_q6_k);
    check_plan(&tied, "Q8_0", "token_embd.weight", DT_q8_0);
    check_plan(&narrow, "Q4_K_M", "blk.1.attn_q.weight", DT_q5_0);
    check_plan(&narrow, "Q5_K_M", "blk.1.attn_q.weight", DT_q5_1);
    check_plan(&narrow, "Q4_K_M", "blk.0.ffn_down.weight", DT_q8_0);
    check_plan(&narrow, "Q6_K", "blk.1.attn_q.weight", DT_q8_0);
    check_plan(&narrow, "Q4_0", "output.weight", DT_q8_0);
    check_plan(&narrow, "Q4_0", "blk.1.attn_q.weight", DT_q4_0);
    check_plan(&odd, "Q4_K_M", "blk.1.attn_q.weight", DT_f16);
    check_plan(&odd, "Q8_0", "blk.1.ffn_down.weight", DT_f16);
    check_plan(&odd, "BF16", "blk.1.ffn_down.weight", DT_bf16);
    check_plan(&wide, "Q4_K_M", "blk.11.attn_v.weight", DT_q4_k); /* 80 layers, but no heads shared by 8 */
    check_plan(&shared, "Q4_K_M", "blk.11.attn_v.weight", DT_q5_k);
    check_plan(&shared, "Q5_K_M", "blk.11.attn_v.weight", DT_q5_k);
}

/* ---- the file ---- */

static void check_tensor(const qn_tensor *got, const qn_tensor *from)
{
    const size_t n = (size_t)(from->dims[0] * from->dims[1]);
    float *x = malloc(n * sizeof *x);
    u8 *want = malloc(n * sizeof *x);
    qn_dtypes[from->type].decode(from->data, x, n);
    qn_dtypes[got->type].encode(x, want, n);
    assert_int_equal(got->bytes, qn_dtype_bytes(got->type, n));
    assert_int_equal(got->n_dims, from->n_dims);
    assert_memory_equal(got->dims, from->dims, sizeof got->dims);
    if (memcmp(got->data, want, (size_t)got->bytes)) fail_msg("%s: other bytes", got->name);
    free(x), free(want);
}

static void test_bytes(void **state)
{
    (void)state;
    const char *const mixes[] = { "F16", "BF16", "Q8_0", "Q4_1", "Q5_1", "Q4_K_S", "Q4_K_M", "Q5_K_M", "Q6_K" };
    const shape m = { 256, 512, false, 4, 0 };
    make_file("in.gguf", &m);
    for (size_t k = 0; k < QN_COUNT(mixes); k++) {
        qn_err e = { 0 };
        qn_options o = QN_OPTIONS_DEFAULT;
        u8 *bytes[2];
        size_t n[2];
        for (int t = 0; t < 2; t++) { /* whoever did the work, the bytes are the same */
            o.threads = 1 + 2 * t;
            if (!qn_quantize(at("in.gguf"), at("out.gguf"), mixes[k], &o, &e)) fail_msg("%s: %s", mixes[k], e.msg);
            bytes[t] = get_file(at("out.gguf"), &n[t]);
        }
        assert_int_equal(n[0], n[1]);
        assert_memory_equal(bytes[0], bytes[1], n[0]);
        qn_source *a = qn_gguf_open(at("in.gguf"), &e), *b = qn_gguf_open(at("out.gguf"), &e);
        assert_true(a && b);
        assert_int_equal(a->n_tensors, b->n_tensors);
        for (size_t i = 0; i < a->n_tensors; i++) {
            assert_string_equal(a->tensors[i].name, b->tensors[i].name);
            check_tensor(&b->tensors[i], &a->tensors[i]);
        }
        assert_int_equal(qn_value_at(qn_source_get(b, "tokenizer.ggml.scores"), 2), 3);
        assert_int_equal(qn_source_get(b, "tokenizer.ggml.tokens")->strs[0].n, 3);
        qn_source_close(a), qn_source_close(b);
        /* what has its type already is copied, not encoded once more */
        assert_true(qn_quantize(at("out.gguf"), at("again.gguf"), mixes[k], &o, &e));
        size_t n_again;
        u8 *again = get_file(at("again.gguf"), &n_again);
        assert_int_equal(n_again, n[0]);
        assert_memory_equal(again, bytes[0], n_again);
        free(again), free(bytes[0]), free(bytes[1]);
    }
    assert_int_equal(n_entries(), 3);
}

/* ---- what goes wrong ---- */

static void test_refusals(void **state)
{
    (void)state;
    const shape m = { 256, 256, true, 1, 0 };
    const qn_options o = { .threads = 1 };
    char in[128];
    snprintf(in, sizeof in, "%s", make_file("in.gguf", &m));
    const struct { const char *in, *out, *type, *word; int code; } bad[] = {
        { in, at("o.gguf"), "Q9_X", "unknown type Q9_X", QN_EUSAGE },
        { in, at("o.gguf"), "", "unknown type", QN_EUSAGE },
        { in, at("o.gguf"), "Q3_K_M", "Q3_K_M can be read but not made", QN_EUSAGE },
        { in, at("o.gguf"), "MXFP4", "MXFP4 can be read but not made", QN_EUSAGE },
        { in, in, "Q8_0", "is the model itself", QN_EUSAGE },
        { in, "/nowhere/at/all/o.gguf", "Q8_0", "o.gguf", QN_EIO },
        { in, "/proc/o.gguf", "Q8_0", "o.gguf", QN_EIO },
        { in, "/dev/full", "Q8_0", "/dev/full", QN_EIO },
        { in, test_dir, "Q8_0", "folder", QN_EIO },
        { at("none.gguf"), at("o.gguf"), "Q8_0", "none.gguf", QN_EIO },
        { test_dir, at("o.gguf"), "Q8_0", "folder", QN_EIO },
    };
    for (size_t i = 0; i < QN_COUNT(bad); i++) {
        qn_err e = { 0 };
        char from[600], to[600];
        snprintf(from, sizeof from, "%s", i == 9 ? at("none.gguf") : bad[i].in);
        snprintf(to, sizeof to, "%s", i < 4 || i > 8 ? at("o.gguf") : bad[i].out);
        assert_false(qn_quantize(from, to, bad[i].type, &o, &e));
        check_refusal(&e, bad[i].word);
        assert_int_equal(e.code, bad[i].code);
        assert_int_equal(n_entries(), 1);
    }
    qn_err e = { 0 };
    assert_int_equal(link(in, at("same.gguf")), 0); /* another name of the same file */
    assert_false(qn_quantize(in, at("same.gguf"), "Q8_0", &o, &e));
    check_refusal(&e, "is the model itself");
    assert_int_equal(symlink(in, at("link.gguf")), 0);
    assert_false(qn_quantize(in, at("link.gguf"), "Q8_0", &o, &e));
    check_refusal(&e, "is the model itself");
    unlink(at("same.gguf")), unlink(at("link.gguf"));
}

static void test_disk_full(void **state)
{
    (void)state;
    const qn_options o = { .threads = 2 };
    char in[128], out[128];
    snprintf(in, sizeof in, "%s", make_file("in.gguf", &usual));
    snprintf(out, sizeof out, "%s", put_file("out.gguf", "what was there", 14));
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlim_t limits[] = { 0, 100, 4096, 50000 };
    for (size_t i = 0; i < QN_COUNT(limits); i++) {
        qn_err e = { 0 };
        const struct rlimit now = { limits[i], before.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
        const bool ok = qn_quantize(in, out, "Q8_0", &o, &e);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_false(ok);
        assert_int_equal(e.code, QN_EIO);
        check_refusal(&e, "out.gguf");
        assert_int_equal(n_entries(), 2);
        size_t n;
        u8 *p = get_file(out, &n);
        assert_int_equal(n, 14);
        assert_memory_equal(p, "what was there", 14);
        free(p);
    }
}

static void test_not_finite(void **state)
{
    (void)state;
    const shape m = { 256, 256, true, 1, 0 };
    const qn_options o = { .threads = 1 };
    size_t n;
    u8 *bytes = get_file(make_file("in.gguf", &m), &n);
    const float bad[] = { NAN, INFINITY, -INFINITY };
    qn_err e = { 0 };
    qn_source *s = qn_gguf_open(at("in.gguf"), &e);
    const qn_tensor *t = qn_source_tensor(s, "blk.0.ffn_up.weight");
    const size_t place = (size_t)(t->data - s->maps[0].p) + 4 * 300;
    qn_source_close(s);
    for (size_t i = 0; i < QN_COUNT(bad); i++) {
        memcpy(bytes + place, &bad[i], 4);
        put_file("in.gguf", bytes, n);
        assert_false(qn_quantize(at("in.gguf"), at("out.gguf"), "Q4_K_M", &o, &e));
        check_refusal(&e, "tensor blk.0.ffn_up.weight: row 1 has a weight that is not finite");
        assert_int_equal(n_entries(), 1);
        e = (qn_err){ 0 };
        assert_true(qn_quantize(at("in.gguf"), at("out.gguf"), "F16", &o, &e));
        unlink(at("out.gguf"));
    }
    free(bytes);
}

typedef struct watcher { int calls, stop_at, cut_at; double last; bool backwards; } watcher;

static bool watch(void *user, const char *what, double share)
{
    watcher *w = user;
    assert_non_null(what);
    assert_true(share >= 0 && share <= 1);
    w->backwards |= share < w->last;
    w->last = share;
    w->calls++;
    if (w->calls == w->cut_at) assert_int_equal(truncate(at("in.gguf"), 4096), 0);
    return w->calls != w->stop_at;
}

static void test_progress_and_cancel(void **state)
{
    (void)state;
    watcher w = { 0 };
    qn_options o = { .threads = 1, .progress = watch, .progress_user = &w };
    qn_err e = { 0 };
    make_file("in.gguf", &usual);
    assert_true(qn_quantize(at("in.gguf"), at("out.gguf"), "Q8_0", &o, &e));
    assert_true(w.calls > 10 && !w.backwards && w.last == 1);
    unlink(at("out.gguf"));
    for (int stop = 1; stop < w.calls; stop += 31) {
        watcher v = { .stop_at = stop };
        o.progress_user = &v;
        assert_false(qn_quantize(at("in.gguf"), at("out.gguf"), "Q8_0", &o, &e));
        assert_int_equal(e.code, QN_ECANCELLED);
        assert_int_equal(v.calls, stop);
        assert_int_equal(n_entries(), 1);
    }
}

/* Another process cuts the model short while it is read. */
static void test_cut_while_read(void **state)
{
    (void)state;
    watcher w = { .cut_at = 2 };
    /* one thread: with two, the other one may have read all there is before the one that is watched is called again */
    const qn_options o = { .threads = 1, .progress = watch, .progress_user = &w };
    qn_err e = { 0 };
    make_file("in.gguf", &usual);
    assert_false(qn_quantize(at("in.gguf"), at("out.gguf"), "Q8_0", &o, &e));
    assert_int_equal(e.code, QN_EIO);
    check_refusal(&e, "in.gguf");
    assert_int_equal(n_entries(), 1);
}

/* 96 MiB of weights (a file with nothing but a header on the disk) pass through a few MiB. */
static void test_memory_is_bounded(void **state)
{
    (void)state;
    const qn_options o = { .threads = 2 };
    qn_err e = { 0 };
    qn_gguf_writer w;
    qn_source *s = qn_new(sizeof *s, &e);
    assert_non_null(s);
    const qn_tensor t = { .name = "token_embd.weight", .type = DT_f32, .n_dims = 2, .dims = { 4096, 6144, 1, 1 } };
    s->path = qn_strdup("made", &e);
    assert_true(qn_source_put_tensor(s, &t, &e));
    assert_true(qn_gguf_write_open(&w, at("in.gguf"), s, NULL, &e) && qn_gguf_write_commit(&w, &e));
    qn_gguf_write_close(&w);
    qn_source_close(s);
    u64 now, before, after;
    qn_mem_process(&now, &before);
    assert_true(qn_quantize(at("in.gguf"), at("out.gguf"), "Q4_0", &o, &e));
    qn_mem_process(&now, &after);
    if (after - before > 32u << 20) fail_msg("%llu MiB", (unsigned long long)(after - before) >> 20);
}

static void test_no_memory(void **state)
{
    (void)state;
    const shape m = { 256, 256, true, 1, 0 };
    const qn_options o = { .threads = 2 };
    make_file("in.gguf", &m);
    bool ok = false;
    u64 n = 0;
    while (!ok) {
        qn_err e = { 0 };
        assert_true(++n < 1000);
        qn_mem_fail_at(n, n % 2);
        ok = qn_quantize(at("in.gguf"), at("out.gguf"), "Q4_K_M", &o, &e);
        qn_mem_fail_at(0, false);
        if (ok) break;
        assert_int_equal(e.code, QN_ENOMEM);
        assert_int_equal(n_entries(), 1);
    }
    assert_true(n > 10);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_test_dir, remove_test_dir)
    const struct CMUnitTest tests[] = {
        TEST(test_cut_while_read), /* first: cmocka takes SIGBUS at the start of each test, the library once */
        TEST(test_memory_is_bounded),
        TEST(test_mixes),     TEST(test_small_mix_and_fallbacks), TEST(test_bytes),
        TEST(test_refusals),  TEST(test_disk_full),               TEST(test_not_finite),
        TEST(test_no_memory), TEST(test_progress_and_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
