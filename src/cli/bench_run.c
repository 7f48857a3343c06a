/* bench_run.c - takes the samples of one test. As llama-bench does: random token ids, the prompt in passes of n_batch, then one
 * token a pass; no sampling and no text, so the figures are those of the model alone. What is new per sample is only the
 * tokens: a depth is filled once and gone back to. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "cli/bench.h"
#include "cli/tracing.h"

#define SEED 1
#define MOST_SPREAD 0.10  /* of the median, from least to most: a quiet machine stays below 3 % */

/* The kernel forgets the process's highest resident size, so that the next model gets its own. Best effort. */
static void forget_peak(void)
{
    const int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    (void)!write(fd, "5", 1);
    close(fd);
}

static bool push_random(qn_bench_setup *s, int n, qn_err *e)
{
    for (int i = 0; i < n; i++) {
        const u64 id = qn_rng_at(SEED, s->drawn++) % (u64)s->info.n_vocab;
        if (!qn_session_push(s->session, (int32_t)id, e)) return false;
    }
    return true;
}

static bool read_prompt(qn_bench_setup *s, int n, qn_err *e)
{
    size_t left = 0;
    if (!push_random(s, n, e)) return false;
    do {
        if (!qn_engine_step(s->engine, &left, e)) return false;
    } while (left > 0);
    return true;
}

/* A device makes its tokens by itself, each the likeliest: waiting for the host in between is no part of its work. */
static bool generate_ahead(qn_bench_setup *s, int n, qn_err *e)
{
    int32_t ids[32];
    if (!push_random(s, 1, e)) return false;
    for (int done = 0; done < n;) {
        const int now = qn_mini(n - done, (int)QN_COUNT(ids));
        if (done && !qn_session_push(s->session, ids[QN_COUNT(ids) - 1], e)) return false;
        if (!qn_session_decode(s->session, now, ids, e)) return false;
        done += now;
    }
    return true;
}

static bool generate(qn_bench_setup *s, int n, qn_err *e)
{
    if (n > 1 && strcmp(qn_engine_device(s->engine), "cpu")) return generate_ahead(s, n, e);
    for (int i = 0; i < n; i++)
        if (!push_random(s, 1, e) || !qn_engine_step(s->engine, NULL, e)) return false;
    return true;
}

bool qn_bench_open(const qn_cli *c, const char *name, qn_bench_setup *s, qn_err *e)
{
    forget_peak();
    const u64 start = qn_now_ns();
    if (!qn_cli_open(c, name, &s->args, &s->model, &s->engine, e)) return false;
    s->load_ns = qn_now_ns() - start;
    qn_model_get_info(s->model, &s->info);
    s->session = qn_session_open(s->engine, e);
    if (!s->session || !generate(s, 1, e)) return false;
    s->first_token_ns = qn_now_ns() - start;
    return true;
}

void qn_bench_close(qn_bench_setup *s, bool ok)
{
    qn_session_close(s->session);
    qn_cli_close(s->model, s->engine, ok);
    s->session = NULL;
    s->engine = NULL;
    s->model = NULL;
}

const char *qn_bench_name(const qn_bench_test *t, char out[64])
{
    char depth[24] = "";
    if (t->n_depth) snprintf(depth, sizeof depth, " @ d%d", t->n_depth);
    if (t->n_prompt && t->n_gen) snprintf(out, 64, "pp%d+tg%d%s", t->n_prompt, t->n_gen, depth);
    else if (t->n_gen) snprintf(out, 64, "tg%d%s", t->n_gen, depth);
    else snprintf(out, 64, "pp%d%s", t->n_prompt, depth);
    return out;
}

/* ---- the bound ------------------------------------------------------------------------------------------------------ */

static void add_pass(const qn_engine *en, int rows, int ctx, u64 *bytes, u64 *flops)
{
    for (int i = 0; i < qn_engine_n_steps(en); i++) {
        qn_step_info s;
        qn_engine_get_step(en, i, rows, ctx, &s);
        *bytes += s.bytes;
        *flops += s.flops;
    }
}

/* What the weights' type allows: quantised ones as bytes, 16-bit ones as bfloat16, if the machine is faster at that. */
static double arithmetic_rate(const qn_bench_setup *s, const char **which)
{
    const qn_ceilings *k = s->ceilings;
    const bool half = !strcmp(s->info.type, "F16") || !strcmp(s->info.type, "BF16");
    const double other = !strcmp(s->info.type, "F32") ? 0 : half ? k->bf16.p50 : k->int8.p50;
    *which = other <= k->flops.p50 ? "f32" : half ? "bf16" : "int8";
    return other > k->flops.p50 ? other : k->flops.p50;
}

/* Decoding is bound by what it reads, a prompt by what it computes. The cost of a token grows evenly with its place, so the
 * token in the middle stands for all. */
static void count_work(qn_bench_result *r)
{
    const qn_bench_setup *s = r->setup;
    const qn_bench_test *t = &r->test;
    const int n_batch = s->args.n_batch;
    u64 unused = 0, token = 0;
    for (int i = 0; i < t->n_prompt; i += n_batch)
        add_pass(s->engine, qn_mini(n_batch, t->n_prompt - i), t->n_depth + i, &unused, &r->flops);
    if (t->n_gen) add_pass(s->engine, 1, t->n_depth + t->n_prompt + t->n_gen / 2, &token, &unused);
    r->bytes = token * (u64)t->n_gen;
}

/* Sample by sample, in tokens per second: by what memory gave around each where that is known, since on a shared machine it is
 * another thing every second; else by what it gave before all tests. computing_s: of the prompt. */
static void bounds_of(const qn_bench_result *r, const double *reads, double computing_s, double *out)
{
    const qn_ceilings *k = r->setup->ceilings;
    const double usual = k->read_huge.p50 > k->read_small.p50 ? k->read_huge.p50 : k->read_small.p50;
    const int tokens = r->test.n_prompt + r->test.n_gen;
    for (int i = 0; i < r->n; i++) out[i] = tokens / ((double)r->bytes / (reads[i] > 0 ? reads[i] : usual) + computing_s);
}

static bool find_bound(qn_bench_result *r, qn_err *e)
{
    const qn_ceilings *k = r->setup->ceilings;
    count_work(r);
    if (!k || k->read_huge.p50 <= 0 || k->flops.p50 <= 0) return true;
    double *bound = qn_new_array((size_t)r->n, sizeof *bound, e);
    if (!bound) return false;
    const double computing_s = (double)r->flops / arithmetic_rate(r->setup, &r->arithmetic);
    bounds_of(r, r->reads, computing_s, bound);
    for (int i = 0; i < r->n; i++) bound[i] = r->ts[i] / bound[i];
    r->share = qn_median_of(bound, (size_t)r->n);
    for (int v = 0; v < r->n_rivals; v++) {
        bounds_of(r, r->rival_reads[v], computing_s, bound);
        for (int i = 0; i < r->n; i++) bound[i] /= r->rival_ts[v][i];
        r->most[v] = qn_median_of(bound, (size_t)r->n);
    }
    qn_free(bound);
    return true;
}

/* ---- disturbance ---------------------------------------------------------------------------------------------------- */

static long switches(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? u.ru_nivcsw : 0;
}

const char *qn_bench_disturbance(const qn_bench_result *r, char out[160])
{
    const qn_stats *t = &r->ns_stats;
    const double spread = r->n > 2 && t->p50 > 0 ? (t->max - t->min) / t->p50 : 0;
    if (r->slow_memory) {
        snprintf(out, 160, "memory gave less than %.4g GB/s, and %.4g s were waited for it", r->setup->memory_from / 1e9,
                 r->setup->memory_wait);
        return out;
    }
    if (spread <= MOST_SPREAD && !qn_others_disturb(&r->others)) return NULL;
    snprintf(out, 160, "samples spread over %.0f %% of the median, %.0f involuntary context switches a second, others took "
             "%.1f %% of the cores, the host %.1f %%", 100 * spread, r->switches_s, 100 * qn_others_share(&r->others),
             100 * qn_host_share(&r->others));
    return out;
}

bool qn_bench_rest(double seconds, qn_err *e)
{
    struct timespec t = { .tv_sec = (time_t)seconds };
    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    qn_interrupt_polled(true);
    if (seconds > 0) nanosleep(&t, NULL); /* Ctrl-C ends it early */
    qn_interrupt_polled(false);
    return !qn_interrupted() || qn_fail(e, QN_ECANCELLED, "interrupted");
}

/* ---- samples -------------------------------------------------------------------------------------------------------- */

static void record(const qn_bench_setup *s, const qn_bench_test *t, int rep, int tokens, u64 begin, u64 ns)
{
    char name[64];
    qn_tracing_test(qn_engine_trace(s->engine), qn_bench_name(t, name), rep, (u64)tokens, begin, ns);
}

static bool warm_up(qn_bench_setup *s, const qn_bench_test *t, qn_err *e)
{
    const u64 begin = qn_now_ns();
    const bool ok = read_prompt(s, t->n_prompt, e) && generate(s, t->n_gen ? 1 : 0, e);
    record(s, t, -1, t->n_prompt + (t->n_gen ? 1 : 0), begin, qn_now_ns() - begin);
    qn_session_rewind(s->session, t->n_depth);
    return ok;
}

/* What memory gives now, where that is a bound of the test or samples wait for it. */
static double look_at_memory(qn_bench_setup *s, const qn_bench_test *t)
{
    return (s->ceilings && t->n_gen) || s->memory_from > 0 ? qn_engine_sweep(s->engine) : 0;
}

/* Samples are on their way. */
typedef struct taking {
    qn_bench_setup *s;
    qn_bench_result *r;
    double memory;          /* what it gave last */
    double waited_s;        /* for memory: rests, and samples that do not count */
    double switches;        /* during all that count */
    u64 begin;              /* of our newest sample: when, and what the cores did */
    double switched;
    qn_core_use from, to;
} taking;

static bool take_sample(taking *k, int i, qn_err *e)
{
    const qn_bench_test *t = &k->r->test;
    const long before = switches();
    k->from = qn_core_use_now();
    k->begin = qn_now_ns();
    if (!read_prompt(k->s, t->n_prompt, e) || !generate(k->s, t->n_gen, e)) return false;
    k->r->ns[i] = (double)(qn_now_ns() - k->begin);
    k->r->ts[i] = (t->n_prompt + t->n_gen) * 1e9 / k->r->ns[i];
    k->switched = (double)(switches() - before);
    k->to = qn_core_use_now();
    qn_session_rewind(k->s->session, t->n_depth);
    return true;
}

/* One that does not count is recorded as a warm-up is. */
static void record_sample(taking *k, int i, bool counts)
{
    const qn_bench_test *t = &k->r->test;
    record(k->s, t, counts ? i : -1, t->n_prompt + t->n_gen, k->begin, (u64)k->r->ns[i]);
    if (!counts) return;
    k->switches += k->switched;
    qn_core_use_add(&k->r->others, &k->from, &k->to);
}

static bool is_slow(const taking *k, double memory) { return memory < k->s->memory_from; }
static bool may_wait(const taking *k) { return k->waited_s < k->s->memory_wait; }

static void count_waiting(taking *k, u64 since) { k->waited_s += (double)(qn_now_ns() - since) / 1e9; }

static bool await_memory(taking *k, qn_err *e)
{
    while (is_slow(k, k->memory) && may_wait(k)) {
        const u64 since = qn_now_ns();
        if (!qn_bench_rest(0.5, e)) return false;
        k->memory = look_at_memory(k->s, &k->r->test);
        count_waiting(k, since);
    }
    return true;
}

/* Sample i of ours (rival NULL) or of a rival; reads: what memory gave around it. One around which it gave too little does
 * not count, while there is time to wait. llama-bench warms up in each of its runs: next to it (fresh), so do we. */
static bool take_one(taking *k, qn_rival *rival, bool fresh, int i, double *ts, double *reads, qn_err *e)
{
    for (;;) {
        if (!await_memory(k, e)) return false;
        const u64 since = qn_now_ns();
        if (!rival && fresh) {
            if (!warm_up(k->s, &k->r->test, e)) return false;
            k->memory = look_at_memory(k->s, &k->r->test);
        }
        const double before = k->memory;
        if (!(rival ? qn_rival_sample(rival, k->s, &k->r->test, ts, e) : take_sample(k, i, e))) return false;
        k->memory = look_at_memory(k->s, &k->r->test);
        const bool slow = is_slow(k, before) || is_slow(k, k->memory), counts = !slow || !may_wait(k);
        if (!rival) record_sample(k, i, counts);
        *reads = (before + k->memory) / 2;
        k->r->slow_memory = k->r->slow_memory || (slow && counts);
        if (counts) return true;
        count_waiting(k, since);
    }
}

static bool take_samples(taking *k, qn_err *e)
{
    qn_bench_result *r = k->r;
    if (k->s->memory_from > 0 && (k->memory = look_at_memory(k->s, &r->test)) <= 0)
        return qn_fail(e, QN_EUSAGE, "--memory-from: memory is asked by reading repacked weights, and here are none");
    for (int i = 0; i < r->n; i++) {
        if (!take_one(k, NULL, i == 0 || r->n_rivals, i, NULL, &r->reads[i], e)) return false;
        for (int v = 0; v < r->n_rivals; v++)
            if (!take_one(k, &r->rivals[v], false, i, &r->rival_ts[v][i], &r->rival_reads[v][i], e)) return false;
    }
    return true;
}

static bool make_room(qn_bench_result *r, qn_err *e)
{
    const size_t n = (size_t)r->n;
    r->ns = qn_new_array(n, sizeof *r->ns, e);
    r->ts = r->ns ? qn_new_array(n, sizeof *r->ts, e) : NULL;
    r->reads = r->ts ? qn_new_array(n, sizeof *r->reads, e) : NULL;
    bool ok = r->reads != NULL;
    for (int k = 0; ok && k < r->n_rivals; k++)
        ok = (r->rival_ts[k] = qn_new_array(n, sizeof(double), e)) && (r->rival_reads[k] = qn_new_array(n, sizeof(double), e));
    return ok;
}

void qn_bench_result_close(qn_bench_result *r)
{
    qn_free(r->ns);
    qn_free(r->ts);
    qn_free(r->reads);
    for (int k = 0; k < QN_RIVALS_MOST; k++) qn_free(r->rival_ts[k]), qn_free(r->rival_reads[k]);
}

/* qn_stats_of sorts; samples are kept as they came. */
static void sum_up(const double *x, int n, double *room, qn_stats *out)
{
    for (int i = 0; i < n; i++) room[i] = x[i];
    qn_stats_of(room, (size_t)n, out);
}

static bool sum_up_all(qn_bench_result *r, qn_err *e)
{
    double *room = qn_new_array((size_t)r->n, sizeof *room, e);
    if (!room) return false;
    sum_up(r->ns, r->n, room, &r->ns_stats);
    sum_up(r->ts, r->n, room, &r->ts_stats);
    for (int k = 0; k < r->n_rivals; k++) {
        sum_up(r->rival_ts[k], r->n, room, &r->rival_stats[k]);
        qn_stats_ratio(r->ts, r->rival_ts[k], (size_t)r->n, room, &r->ratio[k]);
    }
    qn_free(room);
    return true;
}

bool qn_bench_measure(qn_bench_setup *s, qn_bench_result *r, qn_err *e)
{
    const time_t now = time(NULL);
    struct tm utc;
    taking k = { .s = s, .r = r };
    char text[160];
    if (!make_room(r, e)) return false;
    if (gmtime_r(&now, &utc)) strftime(r->time, sizeof r->time, "%Y-%m-%dT%H:%M:%SZ", &utc);
    qn_session_rewind(s->session, 0);
    if (!read_prompt(s, r->test.n_depth, e) || !take_samples(&k, e) || !sum_up_all(r, e)) return false;
    r->switches_s = k.switches * 1e9 / (r->ns_stats.mean * r->n);
    qn_engine_get_memory(s->engine, &r->memory);
    r->disturbed = qn_bench_disturbance(r, text) != NULL;
    return find_bound(r, e);
}
