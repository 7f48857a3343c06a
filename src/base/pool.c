/* pool.c - fork and join over pinned threads. One generation counter starts a job, one counter of lanes at work ends it; both
 * are spun on for SPIN_NS and then slept on with a futex. The spin covers the gap between two steps of a token (about 1 us),
 * the sleep the gap between two requests.
 * When lanes outnumber the cores a spinning lane would keep the working one from its core: then nobody spins. */
#include "base/pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/mem.h"

#define SPIN_NS 200000u

/* A value to wait on, on a cache line of its own. sleepers saves the system call when everybody spins. */
typedef struct qn_signal { atomic_uint value, sleepers; char pad[56]; } qn_signal;

typedef struct worker { qn_pool *pool; int i; pthread_t thread; } worker;

struct qn_pool {
    int n, n_started;
    bool spin;
    qn_job job;
    const void *args;
    qn_signal start;                        /* value: generation; a new one means that a job is there */
    qn_signal done;                         /* value: lanes that have not finished it */
    atomic_bool quit;
    worker *workers;                     /* [n], lane 0 unused: the caller */
};

/* Sleeps while value == seen. A waker changes the value before it looks at sleepers, a sleeper counts itself before the
 * system looks at the value: one of the two always sees the other. */
static void sleep_on(qn_signal *s, u32 seen)
{
    atomic_fetch_add(&s->sleepers, 1);
    syscall(SYS_futex, &s->value, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    atomic_fetch_sub(&s->sleepers, 1);
}

static void wake(qn_signal *s)
{
    if (atomic_load(&s->sleepers)) syscall(SYS_futex, &s->value, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

#if defined(__x86_64__)
static void relax(void) { __builtin_ia32_pause(); }
#else
static void relax(void) { __asm__ volatile("" ::: "memory"); }
#endif

/* Waits until the value is another than old; returns it. */
static u32 wait_change(qn_signal *s, u32 old, bool spin)
{
    const u64 until = spin ? qn_now_ns() + SPIN_NS : 0;
    for (u32 v;;) {
        for (int i = 0; i < 64; i++, relax())
            if ((v = atomic_load_explicit(&s->value, memory_order_acquire)) != old) return v;
        if (!spin || qn_now_ns() > until) sleep_on(s, old);
    }
}

static void *work(void *arg)
{
    const worker *w = arg;
    qn_pool *p = w->pool;
    qn_cpu_pin(w->i, p->n);
    for (u32 seen = 0;;) {
        seen = wait_change(&p->start, seen, p->spin);
        if (atomic_load(&p->quit)) return NULL;
        p->job(p->args, (qn_lane){ w->i, p->n });
        if (atomic_fetch_sub(&p->done.value, 1) == 1) wake(&p->done);
    }
}

qn_pool *qn_pool_open(int threads, qn_err *e)
{
    const int cores = qn_cpu_threads();
    qn_pool *p = qn_new(sizeof *p, e);
    if (!p) return NULL;
    p->n = threads > 0 ? threads : cores;
    p->spin = p->n <= cores;
    p->workers = qn_new_array((size_t)p->n, sizeof *p->workers, e);
    if (!p->workers) {
        qn_pool_close(p);
        return NULL;
    }
    for (int i = 1; i < p->n; i++) {
        p->workers[i] = (worker){ .pool = p, .i = i };
        if (pthread_create(&p->workers[i].thread, NULL, work, &p->workers[i])) {
            qn_fail(e, QN_EFAIL, "cannot start thread %d of %d", i + 1, p->n);
            qn_pool_close(p);
            return NULL;
        }
        p->n_started = i;
    }
    return p;
}

void qn_pool_close(qn_pool *p)
{
    if (!p) return;
    atomic_store(&p->quit, true);
    atomic_fetch_add(&p->start.value, 1);
    wake(&p->start);
    for (int i = 1; i <= p->n_started; i++) pthread_join(p->workers[i].thread, NULL);
    qn_free(p->workers);
    qn_free(p);
}

int qn_pool_n(const qn_pool *p) { return p->n; }

void qn_pool_run(qn_pool *p, qn_job job, const void *args)
{
    p->job = job;
    p->args = args;
    if (p->n > 1) {
        atomic_store(&p->done.value, (u32)p->n - 1);
        atomic_fetch_add(&p->start.value, 1);
        wake(&p->start);
    }
    job(args, (qn_lane){ 0, p->n });
    for (u32 left; p->n > 1 && (left = atomic_load_explicit(&p->done.value, memory_order_acquire)) != 0;)
        wait_change(&p->done, left, p->spin);
}
