/* gpu.c - opens a device and keeps its books. Every call's result is checked here; who uses a device sees a qn_err. */
#include "kernel/cuda/gpu.h"

#include <string.h>

#include "kernel/cuda/fatbin.h"

#define OLDEST 12000 /* CUDA 12.0: what kernels of this build need at least */

static bool ok(const qn_gpu *g, int error, const char *what, qn_err *e) { return qn_driver_ok(&g->d, error, what, e); }

static bool look(qn_gpu *g, qn_err *e)
{
    int n = 0, cooperative = 0;
    size_t bytes = 0;
    const int error = g->d.init(0);
    if (error != 0 && error != CU_NO_DEVICE) return ok(g, error, "starting the driver", e);
    if (error == CU_NO_DEVICE || g->d.device_count(&n) != 0 || n == 0)
        return qn_fail(e, QN_EUNSUPPORTED, "the CUDA driver sees no device");
    if (g->ordinal >= n)
        return qn_fail(e, QN_EUSAGE, "there is no cuda:%d; the driver sees %d device%s", g->ordinal, n, n == 1 ? "" : "s");
    if (!ok(g, g->d.version(&g->version), "asking for the driver's version", e)) return false;
    if (g->version < OLDEST)
        return qn_fail(e, QN_EUNSUPPORTED, "the CUDA driver is too old: it is for CUDA %d.%d, at least %d.%d is needed",
                       g->version / 1000, g->version % 1000 / 10, OLDEST / 1000, OLDEST % 1000 / 10);
    const bool good = ok(g, g->d.device_get(&g->device, g->ordinal), "finding the device", e) &&
                      ok(g, g->d.device_name(g->name, sizeof g->name, g->device), "naming the device", e) &&
                      ok(g, g->d.device_bytes(&bytes, g->device), "asking for the device's memory", e) &&
                      ok(g, g->d.device_attr(&g->n_sm, CU_ATTR_SM, g->device), "asking for multiprocessors", e) &&
                      ok(g, g->d.device_attr(&g->major, CU_ATTR_MAJOR, g->device), "asking for the capability", e) &&
                      ok(g, g->d.device_attr(&g->minor, CU_ATTR_MINOR, g->device), "asking for the capability", e) &&
                      ok(g, g->d.device_attr(&g->smem, CU_ATTR_SMEM_BLOCK, g->device), "asking for shared memory", e) &&
                      ok(g, g->d.device_attr(&cooperative, CU_ATTR_COOPERATIVE, g->device), "asking for cooperation", e);
    g->cooperative = cooperative != 0;
    g->memory = bytes;
    return good;
}

static bool load_module(qn_gpu *g, const qn_fatbin *f, qn_err *e)
{
    assert(g->n_modules < QN_GPU_MODULES);
    const int error = g->d.module_load(&g->modules[g->n_modules], f->image);
    if (error == CU_NO_BINARY || error == CU_INVALID_PTX || error == CU_PTX_VERSION)
        return qn_fail(e, QN_EUNSUPPORTED, "%s has compute capability %d.%d; this build's kernels need 8.0 or more and a driver "
                       "that knows them", g->name, g->major, g->minor);
    if (!ok(g, error, "loading the kernels", e)) return false;
    g->n_modules++;
    return true;
}

static void *module_of(const qn_gpu *g, const char *name)
{
    for (int i = 0; i < qn_n_fatbins && i < g->n_modules; i++)
        if (!strcmp(qn_fatbins[i].name, name)) return g->modules[i];
    return NULL;
}

static bool load_kernels(qn_gpu *g, qn_err *e)
{
    for (int i = 0; i < qn_n_fatbins; i++)
        if (!load_module(g, &qn_fatbins[i], e)) return false;
#define FN(name, fatbin) \
    if (!ok(g, g->d.module_function(&g->fn[FN_##name], module_of(g, #fatbin), "qn_" #name), "finding a kernel", e)) return false;
#include "kernel/cuda/functions.def"
#undef FN
    return true;
}

bool qn_gpu_open(qn_gpu *g, int ordinal, bool kernels, qn_err *e)
{
    g->ordinal = ordinal;
    if (!look(g, e)) return false;
    const int error = g->d.ctx_retain(&g->ctx, g->device);
    if (error == CU_OUT_OF_MEMORY)
        return qn_fail(e, QN_ENOMEM, "cuda:%d (%s) has no memory left for a context", ordinal, g->name);
    if (!ok(g, error, "opening the device", e)) return false;
    g->retained = true;
    return ok(g, g->d.ctx_set(g->ctx), "entering the device", e) &&
           ok(g, g->d.stream_create(&g->stream, CU_STREAM_NON_BLOCKING), "making a stream", e) &&
           (!kernels || load_kernels(g, e));
}

void qn_gpu_close(qn_gpu *g)
{
    if (g->retained) {
        g->d.ctx_set(g->ctx);
        if (g->stream) g->d.stream_wait(g->stream);
        for (int i = 0; i < g->n_blocks; i++) g->d.mem_free(g->blocks[i]);
        for (int i = 0; i < g->n_modules; i++) g->d.module_unload(g->modules[i]);
        if (g->stream) g->d.stream_destroy(g->stream);
        g->d.ctx_release(g->device);
    }
    qn_driver_close(&g->d);
    *g = (qn_gpu){ 0 };
}

bool qn_gpu_enter(qn_gpu *g, qn_err *e) { return ok(g, g->d.ctx_set(g->ctx), "entering the device", e); }

bool qn_gpu_free_bytes(qn_gpu *g, u64 *bytes, qn_err *e)
{
    size_t have = 0, all = 0;
    if (!ok(g, g->d.mem_info(&have, &all), "asking for free memory", e)) return false;
    *bytes = have;
    return true;
}

bool qn_gpu_take(qn_gpu *g, const char *what, u64 bytes, u64 *address, qn_err *e)
{
    u64 have = 0;
    assert(g->n_blocks < QN_GPU_BLOCKS);
    const int error = g->d.mem_alloc(address, bytes ? bytes : 16);
    if (error == 0) {
        g->blocks[g->n_blocks++] = *address;
        g->taken += bytes;
        return true;
    }
    if (error != CU_OUT_OF_MEMORY || !qn_gpu_free_bytes(g, &have, e)) return ok(g, error, "taking device memory", e);
    return qn_fail(e, QN_ENOMEM, "not enough memory on cuda:%d for %s: need %llu bytes, %llu are free", g->ordinal, what,
                   (unsigned long long)bytes, (unsigned long long)have);
}

static u64 take_stamp(qn_gpu *g)
{
    const u64 stamp = g->stamp;
    g->stamp = 0;
    return stamp;
}

bool qn_gpu_launch(qn_gpu *g, int fn, qn_grid grid, const void *args, qn_err *e)
{
    const u64 stamp = take_stamp(g);
    /* the driver copies as many arguments as the kernel has; its interface only forgot the const */
    void *params[] = { (void *)(uintptr_t)args, (void *)(uintptr_t)&stamp };
    return ok(g, g->d.launch(g->fn[fn], grid.x, grid.y, 1, grid.threads, 1, 1, grid.smem, g->stream, params, NULL),
              "starting a kernel", e);
}

bool qn_gpu_launch_together(qn_gpu *g, int fn, qn_grid grid, const void *args, qn_err *e)
{
    void *params[] = { (void *)(uintptr_t)args };
    return ok(g, g->d.launch_together(g->fn[fn], grid.x, grid.y, 1, grid.threads, 1, 1, grid.smem, g->stream, params),
              "starting the persistent kernel", e);
}

#define EARLY_SINCE 12030 /* the driver that captures early starts into graphs */

bool qn_gpu_launch_early(qn_gpu *g, int fn, qn_grid grid, int cluster, const void *args, qn_err *e)
{
    qn_launch_attr attrs[2] = { 0 };
    qn_launch how = { grid.x, grid.y, 1, grid.threads, 1, 1, grid.smem, g->stream, attrs, 0 };
    if (g->major < 9) return qn_gpu_launch(g, fn, grid, args, e);
    const u64 stamp = take_stamp(g);
    void *params[] = { (void *)(uintptr_t)args, (void *)(uintptr_t)&stamp };
    if (cluster > 1)
        attrs[how.n_attrs++] = (qn_launch_attr){ .id = CU_LAUNCH_CLUSTER, .value.cluster = { (unsigned)cluster, 1, 1 } };
    if (g->version >= EARLY_SINCE) attrs[how.n_attrs++] = (qn_launch_attr){ .id = CU_LAUNCH_EARLY, .value.flag = 1 };
    return ok(g, g->d.launch_ex(&how, g->fn[fn], params, NULL), "starting a kernel", e);
}

bool qn_gpu_wait(qn_gpu *g, qn_err *e)
{
    const int error = g->d.stream_wait(g->stream);
    if (error == 0) return true;
    ok(g, error, "running on the device", e);
    return qn_fail_within(e, "the device is lost");
}
