/* profile.c - where an answer's time went: a step trace into a file that nobody sees, and the report on it. The file has no name
 * (it is gone when the program is, however that ends); it lies on disk, because as memory it would show up in the figures. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/prompt.h"
#include "report/run.h"
#include "trace/trace.h"

/* An unnamed file; -1 with *e. */
static int open_unnamed(qn_err *e)
{
    const char *dir = getenv("TMPDIR");
    char path[512];
    int fd = open(dir && *dir ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) return fd;
    snprintf(path, sizeof path, "%.400s/quern-XXXXXX", dir && *dir ? dir : "/tmp"); /* not every file system has O_TMPFILE */
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) unlink(path);
    if (fd < 0) fd = memfd_create("quern-trace", MFD_CLOEXEC); /* no place on any disk */
    if (fd < 0) qn_fail_errno(e, "no place for the trace of a profile");
    return fd;
}

bool qn_profile_open(qn_profile *p, qn_engine_args *a, qn_err *e)
{
    *p = (qn_profile){ .fd = -1 };
    a->trace_level = QN_TRACE_STEP;
    if (!a->trace) {
        p->fd = open_unnamed(e);
        if (p->fd < 0) return false;
        snprintf(p->path, sizeof p->path, "/proc/self/fd/%d", p->fd);
        a->trace = p->path;
    }
    p->trace = a->trace;
    return true;
}

bool qn_profile_report(const qn_profile *p, const qn_report_options *o, qn_buf *out, qn_err *e)
{
    qn_run **runs = NULL;
    size_t n = 0;
    if (!qn_runs_open(p->trace, false, NULL, NULL, &runs, &n, e)) return false;
    const bool ok = qn_report_write((const qn_run *const *)runs, n, o, out, e);
    for (size_t i = 0; i < n; i++) qn_run_close(runs[i]);
    qn_free(runs);
    return ok;
}

void qn_profile_close(qn_profile *p)
{
    if (p->fd >= 0 && p->trace) close(p->fd);
    *p = (qn_profile){ .fd = -1 };
}
