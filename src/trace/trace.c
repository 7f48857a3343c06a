/* trace.c - rings in, lines out. The thread here looks at every ring 20 times a second: producers never make a system call, and a
 * reader that follows the file is at most that far behind. Events keep the order in which one thread put them. */
#include "trace/trace.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "trace/ring.h"
#include "trace/sink.h"

#define RING_BYTES ((size_t)8 << 20)   /* 6 s of a 0.5B model's steps on two cores, 90 ms on an H200 */
#define SHARED_BYTES ((size_t)1 << 20)
#define LOOK_NS 50000000u
#define FRAME_NS 1000000000u           /* compressed pieces are at most this old */
#define GIVE_UP_NS 2000000000u
#define LANES_MOST 1024

enum { WORD_text = 1, WORD_step = 2 };
enum { STEP_WORDS = 7 };

const char *const qn_pass_names[3] = { "prefill", "decode", "mixed" };

struct qn_tracer {
    qn_ring ring;
    qn_trace *t;
    qn_tracer *next;         /* under t->lock */
    qn_buf line;             /* the producer's */
    atomic_bool closed;
};

struct qn_trace {
    int level;
    u64 begin_ns;
    qn_ev_trace head;        /* what the program said of itself */
    qn_sink sink;            /* the thread's, until it ended */
    pthread_t thread;
    bool running;            /* there is a thread */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool quit;               /* under lock, with: */
    const char *status;
    u64 end_ns;
    qn_buf header;           /* under lock until it is there; empty: not yet */
    bool headed;             /* the thread has written it */
    qn_tracer *first;        /* under lock; the first is the shared one, whose producer holds the lock */
    u64 lost;                /* of rings that are gone */
    u64 written_ns;          /* when the last piece was */
    atomic_ullong give_up_ns;
};

/* ---- producers */

static int least_level(qn_ev_kind kind)
{
    if (kind == QN_EV_step) return QN_TRACE_STEP;
    return kind == QN_EV_pass || kind == QN_EV_sample || kind == QN_EV_token ? QN_TRACE_TOKEN : QN_TRACE_REQUEST;
}

bool qn_trace_wants(const qn_trace *t, int level) { return t && t->level >= level; }
i64 qn_trace_time(const qn_trace *t, u64 now_ns) { return (i64)(now_ns - t->begin_ns); }
void qn_trace_set_head(qn_trace *t, const qn_ev_trace *head) { t->head = *head; }
const qn_ev_trace *qn_trace_head(const qn_trace *t) { return &t->head; }
qn_trace *qn_tracer_trace(const qn_tracer *r) { return r->t; }

static qn_tracer *new_tracer(qn_trace *t, size_t bytes, qn_err *e)
{
    qn_tracer *r = qn_new(sizeof *r, e);
    if (!r) return NULL;
    r->t = t;
    if (qn_ring_open(&r->ring, bytes, e)) {
        if (qn_buf_room(&r->line, 4096)) return r; /* longer than an event of a token: nothing is allocated between two */
        qn_fail(e, QN_ENOMEM, "no memory for a trace");
    }
    qn_ring_close(&r->ring);
    qn_free(r);
    return NULL;
}

static void free_tracer(qn_tracer *r)
{
    qn_ring_close(&r->ring);
    qn_buf_close(&r->line);
    qn_free(r);
}

qn_tracer *qn_tracer_open(qn_trace *t, qn_err *e)
{
    qn_tracer *r = new_tracer(t, RING_BYTES, e), **at = &t->first;
    if (!r) return NULL;
    pthread_mutex_lock(&t->lock);
    while (*at) at = &(*at)->next;
    *at = r;
    pthread_mutex_unlock(&t->lock);
    return r;
}

void qn_tracer_close(qn_tracer *r)
{
    if (r) atomic_store(&r->closed, true);
}

void qn_tracer_put(qn_tracer *r, const qn_event *ev)
{
    if (!qn_trace_wants(r->t, least_level(ev->kind))) return;
    r->line.n = 0;
    r->line.failed = false;
    qn_ev_line(&r->line, ev);
    if (r->line.failed || r->line.n > QN_LINE_MOST) {
        atomic_fetch_add(&r->ring.lost, 1);
        return;
    }
    const u64 head = WORD_text | (u64)r->line.n << 32;
    qn_ring_put(&r->ring, &head, 1, r->line.p, r->line.n);
}

void qn_tracer_step(qn_tracer *r, const qn_step_mark *m)
{
    const int lanes = qn_mini(m->lanes, LANES_MOST);
    u64 w[STEP_WORDS + LANES_MOST];
    w[0] = WORD_step | (u64)m->phase << 8 | (u64)lanes << 16 | (u64)m->step << 32;
    w[1] = m->begin;
    w[2] = m->end - m->begin;
    w[3] = (u64)m->pass << 32 | (u32)m->rows;
    w[4] = (u64)m->pos;
    w[5] = m->bytes;
    w[6] = m->flops;
    for (int i = 0; i < lanes; i++) w[STEP_WORDS + i] = m->times[i].end - m->times[i].begin;
    qn_ring_put(&r->ring, w, STEP_WORDS + (size_t)lanes, NULL, 0);
}

void qn_tracer_settle(qn_tracer *r)
{
    const struct timespec ms = { .tv_nsec = 1000000 };
    for (int i = 0; i < 200 && !qn_ring_empty(&r->ring); i++) {
        pthread_mutex_lock(&r->t->lock);
        const bool useless = r->t->header.n == 0;
        pthread_cond_signal(&r->t->wake);
        pthread_mutex_unlock(&r->t->lock);
        if (useless) return;
        nanosleep(&ms, NULL);
    }
}

void qn_trace_put(qn_trace *t, const qn_event *ev)
{
    if (!t) return;
    pthread_mutex_lock(&t->lock);
    if (ev->kind != QN_EV_trace) {
        qn_tracer_put(t->first, ev);
    } else if (t->header.n == 0) {
        qn_ev_line(&t->header, ev);
        if (t->header.failed) t->header.n = 0; /* close writes a short one */
        pthread_cond_signal(&t->wake);
    }
    pthread_mutex_unlock(&t->lock);
}

/* ---- the thread */

static void put_step(qn_trace *t, const qn_ring *ring, u64 head)
{
    u64 w[STEP_WORDS];
    i64 busy[LANES_MOST];
    const size_t lanes = head >> 16 & 0xFFFF;
    qn_ring_copy(ring, 0, w, sizeof w);
    if (lanes) qn_ring_copy(ring, STEP_WORDS, busy, lanes * sizeof *busy);
    const char *phase = qn_pass_names[head >> 8 & 0xFF];
    const qn_event ev = {
        .kind = QN_EV_step, .t = qn_trace_time(t, w[1]),
        .step = { .pass = (i64)(w[3] >> 32), .step = (i64)(head >> 32), .phase = { phase, strlen(phase) },
                  .rows = (i64)(u32)w[3], .pos = (i64)w[4], .ns = (i64)w[2], .busy = { busy, lanes }, .bytes = (i64)w[5],
                  .flops = (i64)w[6] },
    };
    qn_ev_line(&t->sink.text, &ev);
}

/* One record; returns its words. */
static size_t take_record(qn_trace *t, const qn_ring *ring)
{
    qn_sink *s = &t->sink;
    u64 head;
    qn_ring_copy(ring, 0, &head, sizeof head);
    const bool text = (head & 0xFF) == WORD_text;
    const size_t bytes = text ? head >> 32 : 0;
    const size_t words = text ? 1 + (bytes + sizeof(u64) - 1) / sizeof(u64) : STEP_WORDS + (head >> 16 & 0xFFFF);
    if (s->error) {
        s->lost++;
        return words;
    }
    if (text) {
        qn_ring_copy(ring, 1, qn_buf_room(&s->text, bytes), bytes); /* there is room: flushed at a piece, a line fits behind it */
        s->text.n += bytes;
    } else {
        put_step(t, ring, head);
    }
    s->waiting++;
    return words;
}

static void drain(qn_trace *t, qn_ring *ring)
{
    const u64 until = atomic_load_explicit(&ring->head, memory_order_acquire);
    while (atomic_load_explicit(&ring->tail, memory_order_relaxed) != until) {
        qn_ring_drop(ring, take_record(t, ring));
        if (t->sink.text.n >= QN_SINK_PIECE) {
            qn_sink_flush(&t->sink);
            t->written_ns = qn_now_ns();
        }
    }
}

/* Every ring once; those that are closed and empty go. */
static void drain_all(qn_trace *t)
{
    pthread_mutex_lock(&t->lock);
    for (qn_tracer **at = &t->first, *r; (r = *at) != NULL;) {
        const bool closed = atomic_load(&r->closed);
        pthread_mutex_unlock(&t->lock);
        drain(t, &r->ring);
        pthread_mutex_lock(&t->lock);
        if (!closed) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        t->lost += atomic_load(&r->ring.lost);
        free_tracer(r);
    }
    pthread_mutex_unlock(&t->lock);
}

/* The header waits for the model; a run that ends before gets a short one. */
static void put_header(qn_trace *t)
{
    static const char *const levels[] = { "request", "token", "step" };
    static const char program[] = "quern " QN_VERSION;
    const qn_event ev = { .kind = QN_EV_trace,
                          .trace = { .schema = QN_TRACE_SCHEMA, .program = { program, sizeof program - 1 },
                                     .level = { levels[t->level], strlen(levels[t->level]) } } };
    if (t->header.n) qn_buf_put(&t->sink.text, t->header.p, t->header.n);
    else qn_ev_line(&t->sink.text, &ev);
    t->sink.waiting++;
    t->headed = true;
}

static void wait_a_moment(qn_trace *t)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (!t->quit) pthread_cond_timedwait(&t->wake, &t->lock, &until);
}

/* Events that found no room in a ring. */
static u64 count_lost(qn_trace *t)
{
    u64 n = t->lost;
    pthread_mutex_lock(&t->lock);
    for (const qn_tracer *r = t->first; r; r = r->next) n += atomic_load(&r->ring.lost);
    pthread_mutex_unlock(&t->lock);
    return n;
}

/* Of the calling thread. */
static u64 processor_ns(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t)) return 0;
    return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

static void put_end(qn_trace *t)
{
    qn_sink *s = &t->sink;
    qn_sink_flush(s);
    if (s->error) return;
    const i64 now = qn_trace_time(t, t->end_ns);
    const qn_event ev = { .kind = QN_EV_end, .t = now,
                          .end = { .status = { t->status, strlen(t->status) }, .events = (i64)s->lines + 1,
                                   .lost = (i64)count_lost(t), .writer_ns = (i64)processor_ns(), .ns = now } };
    qn_ev_line(&s->text, &ev);
    qn_sink_flush(s);
    s->lines += s->error == 0; /* not among those that may be lost: it was not measured */
}

static void *work(void *arg)
{
    qn_trace *t = arg;
    for (bool quit = false; !quit;) {
        pthread_mutex_lock(&t->lock);
        wait_a_moment(t);
        quit = t->quit;
        const bool ready = t->header.n > 0 || quit;
        pthread_mutex_unlock(&t->lock);
        if (!ready) continue;
        if (!t->headed) put_header(t);
        drain_all(t);
        const u64 now = qn_now_ns();
        if (t->sink.z && now - t->written_ns < FRAME_NS) continue;
        qn_sink_flush(&t->sink);
        t->written_ns = now;
    }
    put_end(t);
    return NULL;
}

/* ---- open, close */

static bool start(qn_trace *t, qn_err *e)
{
    sigset_t all, before;
    pthread_condattr_t attr;
    pthread_mutex_init(&t->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&t->wake, &attr);
    pthread_condattr_destroy(&attr);
    sigfillset(&all); /* the thread hears no signal: SIGPIPE and SIGXFSZ become errors of its writes */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    t->running = pthread_create(&t->thread, NULL, work, t) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (t->running) return true;
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    return qn_fail(e, QN_EFAIL, "cannot start the thread that writes the trace");
}

static void free_trace(qn_trace *t)
{
    while (t->first) {
        qn_tracer *r = t->first;
        t->first = r->next;
        free_tracer(r);
    }
    qn_sink_close(&t->sink);
    qn_buf_close(&t->header);
    qn_free(t);
}

qn_trace *qn_trace_open(const char *path, int level, qn_err *e)
{
    qn_trace *t = qn_new(sizeof *t, e);
    if (!t) return NULL;
    t->level = level;
    t->sink.fd = -1;
    t->first = new_tracer(t, SHARED_BYTES, e);
    if (t->first && qn_sink_open(&t->sink, path, &t->give_up_ns, e) && start(t, e)) {
        t->begin_ns = qn_now_ns(); /* the thread asks for it only once there is something to write */
        return t;
    }
    free_trace(t);
    return NULL;
}

void qn_trace_close(qn_trace *t, const char *status, qn_trace_sum *out)
{
    if (!t) return;
    atomic_store(&t->give_up_ns, qn_now_ns() + GIVE_UP_NS);
    pthread_mutex_lock(&t->lock);
    t->quit = true;
    t->status = status;
    t->end_ns = qn_now_ns(); /* writing what is left is no part of the run */
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    if (out) {
        *out = (qn_trace_sum){ .events = t->sink.lines, .lost = count_lost(t) + t->sink.lost, .bytes = t->sink.bytes };
        const char *why = t->sink.error ? strerrordesc_np(t->sink.error) : "the disk was too slow";
        if (t->sink.error == ETIMEDOUT) why = "nobody read them";
        if (out->lost) snprintf(out->why, sizeof out->why, "%s", why ? why : "unknown error");
    }
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    free_trace(t);
}
