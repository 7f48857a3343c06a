/* driver.c - finds the driver and reports its errors. What is called, and when, is others' business. */
#include "kernel/cuda/driver.h"

#include <dlfcn.h>
#include <string.h>

/* dlsym hands out object pointers; C has no cast from them to functions, so the bytes are copied. */
static bool find(const qn_driver *d, const char *symbol, void *out, qn_err *e)
{
    void *p = dlsym(d->library, symbol);
    if (!p) return qn_fail(e, QN_EUNSUPPORTED, "the CUDA driver is too old: it has no %s", symbol);
    memcpy(out, &p, sizeof p);
    return true;
}

/* NODELETE: the driver leaves threads behind and does not like to be unloaded. */
bool qn_driver_open(qn_driver *d, const char *library, qn_err *e)
{
    *d = (qn_driver){ .library = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) };
    if (!d->library) return qn_fail(e, QN_EUNSUPPORTED, "there is no CUDA driver here (%s)", library);
#define CALL(name, symbol, params) if (!find(d, #symbol, &d->name, e)) return qn_driver_close(d), false;
#include "kernel/cuda/driver.def"
#undef CALL
    return true;
}

void qn_driver_close(qn_driver *d)
{
    if (d->library) dlclose(d->library);
    *d = (qn_driver){ 0 };
}

bool qn_driver_ok(const qn_driver *d, int error, const char *what, qn_err *e)
{
    const char *name = NULL;
    if (error == 0) return true;
    if (d->error_name(error, &name) != 0 || !name) name = "an unknown error";
    return qn_fail(e, error == CU_OUT_OF_MEMORY ? QN_ENOMEM : QN_EFAIL, "CUDA: %s failed with %s (%d)", what, name, error);
}
