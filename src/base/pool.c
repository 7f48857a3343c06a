/* pool.c - fork and join over pinned threads. A job is cut into pieces that whoever is free takes, one by one, from a ticket: a
 * lane that another program keeps from its core takes fewer, and one that sleeps is not waited for, because a job ends when its
 * pieces do and not when its lanes say so.
 *
 * The ticket holds a job's number, how many pieces it has and which is next, in one word: all that decides whether there is a
 * piece to take. (The count was beside it once. A late lane could then see the old job's last ticket with the next job's count,
 * and took a piece of a job that had not begun; the job then ended one piece early.) What the job is may be read while the next
 * one is being written: whoever got a piece has read it right, since it cannot change before that piece is done.
 *
 * Waiting is a spin and then a sleep on a futex. The spin covers the gap between two steps of a token (about 1 us), the sleep the
 * gap between two requests. How long to spin is learned: each wait that ended in a sleep makes the next spins four times
 * shorter, each that did not lets them grow. On a machine with other work long spins fail and only burn the time slice that
 * this thread will need; when lanes outnumber the cores nobody spins at all.
 *
 * Who waits lets memory go on: a lane asks for the beginning of its share of the weights that come next, while others end their
 * pieces or the caller does the small steps between two products. Tokens of SmolLM2 Q4_1 and Qwen2.5-0.5B Q4_0 and F16 take 1 to
 * 3 % less where memory gives 52 GB/s; where it gives 87, and for larger models, it hardly matters (2 lanes, Zen 5, SPEED.md).
 *
 * Workers are pinned, the caller is not: it is the program's own thread. Where the system has put it on a worker's core, that
 * worker moves to the core that is left. (They shared one core for as long as the system liked, some 100 ms after a pause: a job
 * of two pieces of 1 us took 2.3 us, or 10 while the worker had to be woken, with the other core idle; 1.3 now.) */
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

#define SPIN_MOST 200000u
#define SPIN_LEAST 3000u
#define SPIN_GROWTH 2000u
#define SOON_BYTES ((size_t)256 << 10)      /* of what comes next, a lane: 64 KiB gain half as much, 512 no more */
#define SOON_LINES 4                        /* between two looks at whether the wait is over */
#define PIECE_BITS 20                       /* of the ticket; the job's number has the 24 that are left: none comes back */
#define MOST_PIECES ((1 << PIECE_BITS) - 1) /* while a lane stands between two instructions */

/* A value to wait on, on a cache line of its own. sleepers saves the system call when everybody spins. */
typedef struct qn_signal { atomic_uint value, sleepers; char pad[56]; } qn_signal;

typedef struct worker { qn_pool *pool; int i, cpu; pthread_t thread; } worker;

/* What a lane knows of waiting: how long to spin (0: never), and how far it is with asking for what comes next. Addresses are
 * numbers here, since what is asked for need not exist. */
typedef struct waiter { u32 spin_ns; uintptr_t next, at, end; } waiter;

/* What changes with every job stays away from what does not: a worker looks at all of it before it takes its first piece. */
struct qn_pool {
    int n, n_started;
    bool spin;
    atomic_bool quit;
    worker *workers;                        /* [n], lane 0 is the caller: its core is the one that no worker has */
    char pad0[64];
    _Atomic(qn_job) job;
    _Atomic(const void *) args;
    char pad[64];
    atomic_ullong ticket;                   /* number of the job, its pieces, the next one to take */
    char pad2[64];
    qn_signal start;                        /* value: generation; a new one means that a job is there */
    qn_signal left;                         /* value: pieces that are not done */
    /* qn_soon, read value by value: a mixture of two asks for memory that nobody wants or that is not there: no harm */
    _Atomic(const u8 *) soon;
    atomic_int soon_units;
    atomic_size_t soon_unit_bytes;
    char pad3[64];
    waiter caller;
    int caller_cpu;                         /* where the caller was last; no worker is there */
};

static _Thread_local int self;              /* lane of this thread; 0: a caller */

int qn_pool_self(void) { return self; }

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

/* This lane's share of what comes next, unless it knows it already. */
static void learn_next(const qn_pool *p, waiter *w)
{
    const uintptr_t next = (uintptr_t)atomic_load_explicit(&p->soon, memory_order_relaxed);
    if (next == w->next) return;
    const int units = atomic_load_explicit(&p->soon_units, memory_order_relaxed);
    const size_t unit_bytes = atomic_load_explicit(&p->soon_unit_bytes, memory_order_relaxed);
    const qn_lane mine = lane_of(self, p->n);
    const size_t from = (size_t)lane_begin(units, mine) * unit_bytes, to = (size_t)lane_end(units, mine) * unit_bytes;
    w->next = next;
    w->at = next + from;
    w->end = next + (to - from < SOON_BYTES ? to : from + SOON_BYTES);
}

static void ask_for_next(waiter *w)
{
    for (int i = 0; i < SOON_LINES && w->at < w->end; i++, w->at += 64) __builtin_prefetch((const void *)w->at, 0, 2); /* to L2 */
}

/* Waits until the value is another than old; returns it. */
static u32 wait_change(const qn_pool *p, qn_signal *s, u32 old, waiter *w)
{
    u32 v;
    const u64 until = w->spin_ns ? qn_now_ns() + w->spin_ns : 0;
    learn_next(p, w);
    do {
        for (int i = 0; i < 64; i++) {
            if ((v = atomic_load_explicit(&s->value, memory_order_acquire)) != old) {
                if (w->spin_ns && w->spin_ns < SPIN_MOST) w->spin_ns += SPIN_GROWTH;
                return v;
            }
            if (w->at < w->end) ask_for_next(w);
            else relax();
        }
    } while (w->spin_ns && qn_now_ns() < until);
    if (w->spin_ns) w->spin_ns = w->spin_ns / 4 > SPIN_LEAST ? w->spin_ns / 4 : SPIN_LEAST;
    while ((v = atomic_load_explicit(&s->value, memory_order_acquire)) == old) sleep_on(s, old);
    return v;
}

static unsigned long long first_ticket(u32 job, int pieces)
{
    return (unsigned long long)job << 2 * PIECE_BITS | (unsigned long long)pieces << PIECE_BITS;
}

/* Takes pieces until there are none. */
static void take_pieces(qn_pool *p)
{
    unsigned long long t = atomic_load_explicit(&p->ticket, memory_order_acquire);
    for (;;) {
        const int i = (int)(t & MOST_PIECES), n = (int)(t >> PIECE_BITS & MOST_PIECES);
        if (i >= n) return;
        const qn_job job = atomic_load_explicit(&p->job, memory_order_relaxed);
        const void *args = atomic_load_explicit(&p->args, memory_order_relaxed);
        if (!atomic_compare_exchange_weak_explicit(&p->ticket, &t, t + 1, memory_order_acq_rel, memory_order_acquire)) continue;
        job(args, lane_of(i, n));
        if (atomic_fetch_sub(&p->left.value, 1) == 1 && self) wake(&p->left);
        t = atomic_load_explicit(&p->ticket, memory_order_acquire);
    }
}

static void *work(void *arg)
{
    const worker *me = arg;
    qn_pool *p = me->pool;
    waiter w = { .spin_ns = p->spin ? SPIN_MOST : 0 };
    self = me->i;
    for (u32 seen = 0;;) {
        seen = wait_change(p, &p->start, seen, &w);
        if (atomic_load(&p->quit)) return NULL;
        take_pieces(p);
    }
}

static bool start_worker(qn_pool *p, int i, const qn_places *places, qn_err *e)
{
    p->workers[i] = (worker){ .pool = p, .i = i, .cpu = p->n <= places->n ? places->cpu[i] : -1 };
    if (pthread_create(&p->workers[i].thread, NULL, work, &p->workers[i]))
        return qn_fail(e, QN_EFAIL, "cannot start thread %d of %d", i + 1, p->n);
    qn_cpu_pin(p->workers[i].thread, p->workers[i].cpu);
    p->n_started = i;
    return true;
}

/* Lets no worker be where the caller is. */
static void make_way(qn_pool *p)
{
    const int here = qn_cpu_here();
    if (here == p->caller_cpu) return;
    p->caller_cpu = here;
    for (int i = 1; i < p->n; i++) {
        if (p->workers[i].cpu != here || here < 0) continue;
        p->workers[i].cpu = p->workers[0].cpu;
        p->workers[0].cpu = here;
        qn_cpu_pin(p->workers[i].thread, p->workers[i].cpu);
    }
}

qn_pool *qn_pool_open(int threads, qn_err *e)
{
    qn_places places;
    qn_cpu_places(&places);
    qn_pool *p = qn_new(sizeof *p, e);
    if (!p) return NULL;
    p->n = threads > 0 ? threads : places.threads;
    p->spin = p->n <= places.threads;
    p->caller.spin_ns = p->spin ? SPIN_MOST : 0;
    p->workers = qn_new_array((size_t)p->n, sizeof *p->workers, e);
    bool ok = p->workers != NULL;
    p->caller_cpu = -1;
    if (ok) p->workers[0].cpu = places.n ? places.cpu[0] : -1;
    for (int i = 1; i < p->n && ok; i++) ok = start_worker(p, i, &places, e);
    if (ok) return p;
    qn_pool_close(p);
    return NULL;
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

void qn_pool_soon(qn_pool *p, qn_soon next)
{
    if (next.at == atomic_load_explicit(&p->soon, memory_order_relaxed)) return;
    atomic_store_explicit(&p->soon_units, next.units, memory_order_relaxed);
    atomic_store_explicit(&p->soon_unit_bytes, next.unit_bytes, memory_order_relaxed);
    atomic_store_explicit(&p->soon, next.at, memory_order_relaxed);
}

void qn_pool_run(qn_pool *p, qn_job job, const void *args) { qn_pool_share(p, job, args, p->n); }

void qn_pool_share(qn_pool *p, qn_job job, const void *args, int pieces)
{
    if (p->n == 1 || pieces <= 1 || pieces > MOST_PIECES) {
        for (int i = 0; i < pieces; i++) job(args, lane_of(i, pieces));
        return;
    }
    make_way(p);
    const u32 generation = atomic_load_explicit(&p->start.value, memory_order_relaxed) + 1;
    atomic_store_explicit(&p->job, job, memory_order_relaxed);
    atomic_store_explicit(&p->args, args, memory_order_relaxed);
    atomic_store_explicit(&p->left.value, (u32)pieces, memory_order_relaxed);
    atomic_store_explicit(&p->ticket, first_ticket(generation, pieces), memory_order_release);
    atomic_store(&p->start.value, generation);
    wake(&p->start);
    take_pieces(p);
    for (u32 left; (left = atomic_load_explicit(&p->left.value, memory_order_acquire)) != 0;)
        wait_change(p, &p->left, left, &p->caller);
}
