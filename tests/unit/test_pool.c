/* test_pool.c - every piece of every job runs once, whatever the number of lanes; run under TSan too. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/pool.h"

enum { N = 1000 };
typedef struct sums { int *out; atomic_int lanes; int add; } sums;

static void add_share(const void *args, qn_lane lane)
{
    sums *s = (sums *)(uintptr_t)args;
    for (int i = lane_begin(N, lane), end = lane_end(N, lane); i < end; i++) s->out[i] += s->add;
    atomic_fetch_add(&s->lanes, 1);
}

static void every_share_once(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 9; threads++) {
        qn_err e;
        qn_pool *p = qn_pool_open(threads, &e);
        assert_non_null(p);
        assert_int_equal(qn_pool_n(p), threads);
        int out[N] = { 0 };
        sums s = { .out = out };
        const int jobs = 300;
        for (s.add = 1; s.add <= jobs; s.add++) qn_pool_run(p, add_share, &s);
        assert_int_equal(atomic_load(&s.lanes), threads * jobs);
        for (int i = 0; i < N; i++) assert_int_equal(out[i], jobs * (jobs + 1) / 2);
        qn_pool_close(p);
    }
}

static void every_piece_once(void **state)
{
    (void)state;
    qn_err e;
    for (int threads = 1; threads <= 5; threads++) {
        qn_pool *p = qn_pool_open(threads, &e);
        assert_non_null(p);
        for (int pieces = 1; pieces <= 40; pieces += 3) {
            int out[N] = { 0 };
            sums s = { .out = out };
            for (s.add = 1; s.add <= 50; s.add++) qn_pool_share(p, add_share, &s, pieces);
            assert_int_equal(atomic_load(&s.lanes), pieces * 50);
            for (int i = 0; i < N; i++) assert_int_equal(out[i], 50 * 51 / 2);
        }
        qn_pool_close(p);
    }
}

/* What comes next is asked for and never read: a page that nobody may touch, an address that is none, more than there is. */
static void what_comes_next_is_not_read(void **state)
{
    (void)state;
    qn_err e;
    const long page = sysconf(_SC_PAGESIZE);
    u8 *shut = mmap(NULL, (size_t)page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shut, MAP_FAILED);
    const qn_soon soon[] = { { shut, 16, (size_t)page / 16 }, { (const u8 *)64, 3, 4096 }, { shut, 1 << 20, 1 << 20 }, { 0 } };
    for (int threads = 1; threads <= 3; threads++) {
        qn_pool *p = qn_pool_open(threads, &e);
        assert_non_null(p);
        int out[N] = { 0 };
        sums s = { .out = out };
        for (s.add = 1; s.add <= 400; s.add++) {
            qn_pool_soon(p, soon[s.add % 4]);
            qn_pool_run(p, add_share, &s);
        }
        for (int i = 0; i < N; i++) assert_int_equal(out[i], 400 * 401 / 2);
        qn_pool_close(p);
    }
    munmap(shut, (size_t)page);
}

/* Jobs of few and many pieces in turn, hardly any work in each, more lanes than cores: a lane that is late for one job looks at
 * the next while it is being written. Each piece counts itself in its own place. */
enum { MANY = 61 };
typedef struct counts { atomic_int of[MANY]; } counts;

static void count_piece(const void *args, qn_lane lane)
{
    counts *c = (counts *)(uintptr_t)args;
    atomic_fetch_add_explicit(&c->of[lane.i], 1, memory_order_relaxed);
}

static void late_lanes_take_nothing_twice(void **state)
{
    (void)state;
    qn_err e;
    for (int threads = 2; threads <= 4; threads++) {
        qn_pool *p = qn_pool_open(threads, &e);
        assert_non_null(p);
        for (int job = 0; job < 60000; job++) {
            counts c = { 0 };
            const int pieces = job % 2 ? MANY : 2;
            qn_pool_share(p, count_piece, &c, pieces);
            for (int i = 0; i < MANY; i++) assert_int_equal(atomic_load_explicit(&c.of[i], memory_order_relaxed), i < pieces);
        }
        qn_pool_close(p);
    }
}

/* A lane that is held up keeps its own piece waiting and no other. */
typedef struct slow { atomic_int done, by_others; atomic_int held; } slow;

static void hold_first(const void *args, qn_lane lane)
{
    slow *s = (slow *)(uintptr_t)args;
    (void)lane;
    if (qn_pool_self() && !atomic_exchange(&s->held, 1)) usleep(50000);
    else if (!qn_pool_self()) atomic_fetch_add(&s->by_others, 1), usleep(100);
    atomic_fetch_add(&s->done, 1);
}

static void the_free_lane_takes_over(void **state)
{
    (void)state;
    qn_err e;
    qn_pool *p = qn_pool_open(2, &e);
    assert_non_null(p);
    slow s = { 0 };
    qn_pool_share(p, hold_first, &s, 40);
    assert_int_equal(atomic_load(&s.done), 40);
    if (atomic_load(&s.held)) assert_int_equal(atomic_load(&s.by_others), 39);
    qn_pool_close(p);
}

static void wakes_after_a_long_pause(void **state)
{
    (void)state;
    qn_err e;
    qn_pool *p = qn_pool_open(2, &e);
    assert_non_null(p);
    int out[N] = { 0 };
    sums s = { .out = out, .add = 1 };
    for (int i = 0; i < 5; i++) {
        qn_pool_run(p, add_share, &s);
        usleep(3000); /* longer than the lanes spin */
    }
    assert_int_equal(out[0] + out[N - 1], 10);
    qn_pool_close(p);
    qn_pool_close(NULL);
}

static void shares_cover_all(void **state)
{
    (void)state;
    for (int n = 0; n < 40; n++) {
        for (int lanes = 1; lanes < 12; lanes++) {
            int at = 0;
            for (int i = 0; i < lanes; i++) {
                const qn_lane l = lane_of(i, lanes);
                assert_int_equal(lane_begin(n, l), at);
                at = lane_end(n, l);
            }
            assert_int_equal(at, n);
        }
    }
}

/* Each of two pieces waits until the other has begun, so that two lanes run at once; where? */
typedef struct meeting { atomic_int begun; int cpu[2]; } meeting;

static void meet(const void *args, qn_lane lane)
{
    meeting *m = (meeting *)(uintptr_t)args;
    const u64 until = qn_now_ns() + 2000000000u;
    atomic_fetch_add(&m->begun, 1);
    while (atomic_load(&m->begun) < 2 && qn_now_ns() < until)
        ;
    m->cpu[lane.i] = qn_cpu_here();
}

static void nobody_stands_in_the_callers_way(void **state)
{
    (void)state;
    qn_places places;
    qn_err e;
    qn_cpu_places(&places);
    if (places.n < 2) skip();
    qn_pool *p = qn_pool_open(2, &e);
    assert_non_null(p);
    for (int turn = 0; turn < 6; turn++) {
        meeting m = { .cpu = { -1, -1 } };
        qn_cpu_pin(pthread_self(), places.cpu[turn % 2]); /* as the system might have put it */
        qn_pool_run(p, meet, &m);
        assert_int_equal(atomic_load(&m.begun), 2);
        assert_int_not_equal(m.cpu[0], m.cpu[1]);
    }
    qn_pool_close(p);
}

/* The machine is looked at once, the mask each time. */
static void the_mask_counts_when_it_changes(void **state)
{
    (void)state;
    cpu_set_t all, one;
    qn_places before, within, after;
    qn_cpu_places(&before);
    if (before.n < 2) skip();
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)before.cpu[1], &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    qn_cpu_places(&within);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    qn_cpu_places(&after);
    assert_true(within.n == 1 && within.threads == 1 && within.cpu[0] == before.cpu[1]);
    assert_int_equal(after.n, before.n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mask_counts_when_it_changes), /* first: another pins this thread */
        cmocka_unit_test(every_share_once), cmocka_unit_test(every_piece_once), cmocka_unit_test(late_lanes_take_nothing_twice),
        cmocka_unit_test(what_comes_next_is_not_read),
        cmocka_unit_test(the_free_lane_takes_over), cmocka_unit_test(wakes_after_a_long_pause), cmocka_unit_test(shares_cover_all),
        cmocka_unit_test(nobody_stands_in_the_callers_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
