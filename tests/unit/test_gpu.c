/* test_gpu.c - every way in which a device cannot be had ends in one clear sentence: no driver, an old one, no device, a wrong
 * number, too little memory. The driver here is a table of functions of this file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
/* cmocka wants these first */
#include <cmocka.h>

#include "kernel/cuda/cuda.h"
#include "kernel/cuda/fatbin.h"
#include "kernel/cuda/gpu.h"

static struct { int devices, version, init, open_refs, blocks; size_t free; } fake;

static int f_init(unsigned flags) { return (void)flags, fake.init; }
static int f_version(int *v) { return *v = fake.version, 0; }
static int f_error(int error, const char **name) { return *name = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_TEST", 0; }
static int f_count(int *n) { return *n = fake.devices, 0; }
static int f_get(int *device, int ordinal) { return *device = ordinal, 0; }
static int f_name(char *name, int cap, int device) { return (void)device, snprintf(name, (size_t)cap, "Fake GPU"), 0; }
static int f_attr(int *v, int attribute, int device) { return (void)attribute, (void)device, *v = 9, 0; }
static int f_bytes(size_t *n, int device) { return (void)device, *n = (size_t)1 << 30, 0; }
static int f_retain(void **ctx, int device) { return (void)device, *ctx = &fake, fake.open_refs++, 0; }
static int f_release(int device) { return (void)device, fake.open_refs--, 0; }
static int f_set(void *ctx) { return ctx == &fake ? 0 : 201; }
static int f_info(size_t *have, size_t *all) { return *have = fake.free, *all = (size_t)1 << 30, 0; }
static int f_stream(void **s, unsigned flags) { return (void)flags, *s = &fake, 0; }
static int f_one(void *s) { return (void)s, 0; }
static int f_free(u64 at) { return (void)at, fake.blocks--, 0; }
static int f_alloc(u64 *at, size_t bytes)
{
    if (bytes > fake.free) return CU_OUT_OF_MEMORY;
    fake.free -= bytes;
    fake.blocks++;
    return *at = 4096, 0;
}

static qn_gpu new_gpu(void)
{
    fake.devices = 1;
    fake.version = 13000;
    fake.init = 0;
    fake.free = 1 << 20;
    return (qn_gpu){ .d = { .init = f_init, .version = f_version, .error_name = f_error, .device_count = f_count,
                            .device_get = f_get, .device_name = f_name, .device_attr = f_attr, .device_bytes = f_bytes,
                            .ctx_retain = f_retain, .ctx_release = f_release, .ctx_set = f_set, .mem_info = f_info,
                            .mem_alloc = f_alloc, .mem_free = f_free, .stream_create = f_stream, .stream_destroy = f_one,
                            .stream_wait = f_one } };
}

static void refuse(qn_gpu *g, int ordinal, const char *words)
{
    qn_err e = { 0 };
    assert_false(qn_gpu_open(g, ordinal, false, &e));
    assert_non_null(strstr(e.msg, words));
    assert_null(strchr(e.msg, '\n'));
    qn_gpu_close(g);
    assert_int_equal(fake.open_refs, 0);
}

static void no_driver(void **state)
{
    (void)state;
    qn_driver d;
    qn_err e = { 0 };
    assert_false(qn_driver_open(&d, "libcuda-that-is-not-there.so.1", &e));
    assert_non_null(strstr(e.msg, "no CUDA driver"));
    assert_false(qn_driver_open(&d, "libm.so.6", &e)); /* a library, but no driver: as one too old */
    assert_non_null(strstr(e.msg, "too old: it has no cuInit"));
    assert_null(d.library);
}

static void no_device(void **state)
{
    (void)state;
    qn_gpu g = new_gpu();
    fake.devices = 0;
    refuse(&g, 0, "sees no device");
    g = new_gpu();
    fake.init = CU_NO_DEVICE;
    refuse(&g, 0, "sees no device");
    g = new_gpu();
    refuse(&g, 3, "no cuda:3; the driver sees 1 device");
    g = new_gpu();
    fake.version = 11040;
    refuse(&g, 0, "too old: it is for CUDA 11.4, at least 12.0");
    g = new_gpu();
    fake.init = 999;
    refuse(&g, 0, "CUDA_ERROR_TEST (999)");
}

static void too_little_memory(void **state)
{
    (void)state;
    qn_gpu g = new_gpu();
    qn_err e = { 0 };
    u64 at = 0;
    assert_true(qn_gpu_open(&g, 0, false, &e));
    assert_true(qn_gpu_take(&g, "scratch", 1 << 19, &at, &e));
    assert_false(qn_gpu_take(&g, "the weights", 1 << 20, &at, &e));
    assert_int_equal(e.code, QN_ENOMEM);
    assert_string_equal(e.msg, "not enough memory on cuda:0 for the weights: need 1048576 bytes, 524288 are free");
    qn_gpu_close(&g);
    assert_int_equal(fake.blocks, 0);
    assert_int_equal(fake.open_refs, 0);
}

/* On this machine, whatever it is: an engine or one sentence, never more, never nothing. */
static void asked_for(void **state)
{
    (void)state;
    qn_err e = { 0 };
    qn_cuda *c = qn_cuda_open(0, &e);
    if (c) assert_true(qn_n_fatbins > 0);
    else assert_true(e.msg[0] && (qn_n_fatbins > 0 || strstr(e.msg, "no CUDA kernels")));
    qn_cuda_close(c);
}

static void words(void **state)
{
    (void)state;
    qn_err e = { 0 };
    qn_options o = QN_OPTIONS_DEFAULT;
    qn_model *m = qn_model_open("tests/data/models/llama/model.gguf", &e);
    assert_non_null(m);
    static const char *const bad[] = { "", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda: 1", "cuda:1024", "CUDA" };
    for (size_t i = 0; i < QN_COUNT(bad); i++) {
        o.device = bad[i];
        assert_null(qn_engine_open(m, &o, &e));
        assert_int_equal(e.code, QN_EUSAGE);
    }
    o.device = "cpu";
    qn_engine *en = qn_engine_open(m, &o, &e);
    assert_non_null(en);
    assert_string_equal(qn_engine_device(en), "cpu");
    assert_null(qn_engine_device_note(en));
    qn_engine_close(en);
    o.device = "cuda:1023";
    assert_null(qn_engine_open(m, &o, &e));
    assert_true(e.msg[0] != 0);
    qn_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(no_driver), cmocka_unit_test(no_device), cmocka_unit_test(too_little_memory),
                                        cmocka_unit_test(asked_for), cmocka_unit_test(words) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
