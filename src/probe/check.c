/* check.c - walks the registry. Each kernel is checked in a child process that writes its findings into a shared page: a crash
 * or a hang ends the child, and the page says in which case. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "kernel/panel.h"
#include "probe/compare.h"

#define POOL_LANES 3
#define TIMEOUT_S 60

/* Types that an op's operand can have: any for weights, three for the cache, none to choose elsewhere. */
static bool takes(qn_op op, int type)
{
    switch (op) {
    case OP_linear:
    case OP_embed: return true;
    case OP_qlinear: return qn_panel_of((qn_dtype)type) == PANEL_int8;
    case OP_plinear: return type == DT_f32 || type == DT_f16 || type == DT_bf16;
    case OP_blinear: return qn_panel_of((qn_dtype)type) == PANEL_bf16;
    case OP_store:
    case OP_attend: return type == DT_f32 || type == DT_f16 || type == DT_q8_0;
    case OP_matmul: return type == DT_f32 || type == DT_f16 || type == DT_bf16;
    default: return type == DT_f32;
    }
}

/* What a child and its parent share. */
typedef struct report {
    qn_probe_result result;
    qn_err trouble;     /* code is set when the check itself could not be done */
} report;

static bool check_case(const qn_kernel *k, const qn_args *sizes, int type, qn_pool *pool, const qn_probe_opts *o, report *p)
{
    const unsigned timeout_s = (unsigned)(o->timeout_s > 0 ? o->timeout_s : TIMEOUT_S);
    qn_args typed = *sizes;
    if (k->op == OP_matmul) typed.matmul.type = (qn_dtype)type;
    if (k->needs && k->needs(&typed)) return true; /* a kernel that takes no case at all fails: no case was run */
    for (int mood = 0; mood < N_MOODS; mood++) {
        qn_case c;
        const u64 seed = p->result.seed + (u64)p->result.cases;
        alarm(timeout_s);
        if (!qn_case_open(&c, k->op, sizes, type, (qn_mood)mood, seed, &p->trouble)) return p->trouble.code == QN_OK;
        const bool ok = qn_compare(k, &c, o->known, pool, &p->result, &p->trouble);
        qn_case_close(&c);
        if (!ok) return false;
        p->result.cases++;
    }
    return true;
}

static void check_all(const qn_kernel *k, const qn_probe_opts *o, report *p)
{
    qn_pool *pool = qn_pool_open(POOL_LANES, &p->trouble);
    bool ok = pool != NULL;
    for (int type = 0; type < N_DTYPES; type++) {
        if (!takes(k->op, type) || (k->type != (int)DT_any && k->type != type)) continue;
        if (o->type >= 0 && o->type != type) continue;
        for (const qn_args *sizes = o->sizes ? o->sizes : qn_ops[k->op].cases; ok && sizes->n; sizes++)
            ok = check_case(k, sizes, type, pool, o, p);
    }
    qn_pool_close(pool);
    p->result.passed = ok && p->result.cases > 0;
    if (ok && !p->result.cases) snprintf(p->result.why, sizeof p->result.why, "no case was run");
}

static void be_child(const qn_kernel *k, const qn_probe_opts *o, report *p)
{
    static const int fatal[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM };
    for (size_t i = 0; i < QN_COUNT(fatal); i++) signal(fatal[i], SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    check_all(k, o, p);
    _exit(0);
}

static void bury_child(int status, qn_probe_result *r)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    r->passed = false;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) snprintf(r->why, sizeof r->why, "does not end");
    else if (WIFSIGNALED(status)) snprintf(r->why, sizeof r->why, "crashes: %s", strsignal(WTERMSIG(status)));
    else snprintf(r->why, sizeof r->why, "ends the process with status %d", WEXITSTATUS(status));
}

bool qn_probe_kernel(const qn_kernel *k, const qn_probe_opts *o, qn_probe_result *r, qn_err *e)
{
    report *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return qn_fail_errno(e, "no memory to check %s", k->name);
    shared->result = (qn_probe_result){ .kernel = k, .seed = o->seed ? o->seed : qn_now_ns() };
    const pid_t child = fork();
    if (child == 0) be_child(k, o, shared);
    int status = 0;
    bool ok = child > 0 || qn_fail_errno(e, "cannot start a process to check %s", k->name);
    while (ok && waitpid(child, &status, 0) < 0)
        if (errno != EINTR) ok = qn_fail_errno(e, "lost the process that checks %s", k->name);
    if (ok) bury_child(status, &shared->result);
    if (ok && shared->trouble.code)
        ok = qn_fail(e, shared->trouble.code, "%s cannot be checked: %s", k->name, shared->trouble.msg);
    *r = shared->result;
    munmap(shared, sizeof *shared);
    return ok;
}

static bool wanted(const qn_kernel *k, const qn_probe_opts *o)
{
    if (!qn_cpu_runs(k->isa) || (o->isa && (int)k->isa != o->isa)) return false;
    if (o->op >= 0 && (int)k->op != o->op) return false;
    return o->type < 0 || k->type == o->type || (k->type == (int)DT_any && takes(k->op, o->type));
}

bool qn_probe_check(const qn_probe_opts *o, qn_probe_fn each, void *user, int *failed, qn_err *e)
{
    qn_probe_opts same = *o; /* one seed for all */
    if (!same.seed) same.seed = qn_now_ns();
    int n = 0;
    *failed = 0;
    for (int i = 0; i < qn_n_kernels; i++) {
        qn_probe_result r;
        if (!wanted(&qn_kernels[i], o)) continue;
        if (!qn_probe_kernel(&qn_kernels[i], &same, &r, e)) return false;
        n++;
        *failed += !r.passed;
        if (!each(user, &r)) return qn_fail(e, QN_ECANCELLED, "stopped after %d kernels", n);
    }
    return n > 0 || qn_fail(e, QN_EUSAGE, "no kernel that this machine runs has this op, type and level");
}
