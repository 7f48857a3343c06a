/* fake_driver.h - for tests: a driver with one large device that is always there. Who includes it adds memory, copies and launches,
 * and whatever else is to be watched or to fail. */
#ifndef QN_TEST_FAKE_DRIVER_H
#define QN_TEST_FAKE_DRIVER_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "kernel/cuda/abi.h"
#include "kernel/cuda/driver.h"

static int f_init(unsigned flags) { return (void)flags, 0; }
static int f_version(int *v) { return *v = 13000, 0; }
static int f_error(int error, const char **name) { return (void)error, *name = "CUDA_ERROR_TEST", 0; }
static int f_count(int *n) { return *n = 1, 0; }
static int f_get(int *device, int ordinal) { return *device = ordinal, 0; }
static int f_name(char *name, int cap, int device) { return (void)device, snprintf(name, (size_t)cap, "Fake GPU"), 0; }
static int f_bytes(size_t *n, int device) { return (void)device, *n = (size_t)1 << 40, 0; }
static int f_handle(void **out, int device) { return (void)device, *out = (void *)(uintptr_t)4096, 0; }
static int f_handle2(void **out, unsigned flags) { return (void)flags, *out = (void *)(uintptr_t)4096, 0; }
static int f_done(void *p) { return (void)p, 0; }
static int f_release(int device) { return (void)device, 0; }
static int f_info(size_t *have, size_t *all) { return *have = *all = (size_t)1 << 40, 0; }
static int f_pin(void *p, size_t bytes, unsigned flags) { return (void)p, (void)bytes, (void)flags, 1; }

/* The one kernel that loading a plan starts. */
static void do_angles(const qn_cangles *a)
{
    float *out = (float *)(uintptr_t)a->table;
    const float *freq = (const float *)(uintptr_t)a->freq;
    for (int i = 0; i < a->n_pos * a->n_pair; i++) {
        const double angle = (double)(i / a->n_pair) * (double)freq[i % a->n_pair];
        out[2 * i] = (float)(cos(angle) * (double)a->mscale);
        out[2 * i + 1] = (float)(sin(angle) * (double)a->mscale);
    }
}

#define FAKE_DRIVER \
    .init = f_init, .version = f_version, .error_name = f_error, .device_count = f_count, .device_get = f_get, \
    .device_name = f_name, .device_bytes = f_bytes, .ctx_retain = f_handle, .ctx_release = f_release, .ctx_set = f_done, \
    .mem_info = f_info, .host_pin = f_pin, .stream_create = f_handle2, .stream_destroy = f_done, .event_destroy = f_done

#endif
