/* cmd_batch_bench.c - quern batch-bench: what many sequences at once give in all, with the tests and columns of
 * llama-batched-bench. B sequences each read PP tokens, then each makes TG; every pass has one row of each. One engine, B
 * sessions. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/numlist.h"
#include "base/rng.h"
#include "base/stats.h"
#include "cli/shelf.h"
#include "cli/tracing.h"

typedef struct batch_args {
    qn_engine_args engine;
    qn_list prompts, gens, sequences;
    int repeats, format;
    bool shared;
} batch_args;

static const qn_opt options[] = {
    { "n-prompt", "npp", NULL, OPT_list, QN_AT(batch_args, prompts, qn_list), "LIST", NULL,
      "tokens of each prompt; 128,512 unless told", 0, 0 },
    { "n-gen", "ntg", NULL, OPT_list, QN_AT(batch_args, gens, qn_list), "LIST", NULL,
      "tokens that each sequence makes; 128 unless told", 0, 0 },
    { "n-parallel", "npl", NULL, OPT_list, QN_AT(batch_args, sequences, qn_list), "LIST", NULL,
      "sequences at once; 1,2,4,8 unless told", 0, 0 },
    { "shared-prompt", "pps", NULL, OPT_flag, QN_AT(batch_args, shared, bool), NULL, NULL,
      "one prompt for all: it is read once and its cache shared", 0, 0 },
    { "repetitions", "r", NULL, OPT_int, QN_AT(batch_args, repeats, int), "N", "1",
      "runs of each row; medians are printed", 1, 1000 },
    { "output", "o", "output-format", OPT_choice, QN_AT(batch_args, format, int), "md|jsonl", "md", "format on stdout", 0, 0 },
    { 0 },
};

static const qn_opt_group groups[] = {
    { "Tests", options, 0 },
    { "Engine", qn_engine_opts, offsetof(batch_args, engine) },
    { 0 },
};

#define MOST_TOKENS (1 << 22)
#define MOST_SEQUENCES 4096
#define SEED 2

typedef struct batch_bench {
    const batch_args *a;
    qn_model *model;
    qn_engine *engine;
    qn_session **sessions; /* [n_sessions] */
    int n_sessions, n_vocab;
    int32_t *ids;          /* [longest prompt] */
    u64 drawn;
    double *pp_s, *tg_s;   /* [repeats] */
} batch_bench;

typedef struct row { int pp, tg, pl; double t_pp, t_tg; } row;

static int32_t draw(batch_bench *b) { return (int32_t)(qn_rng_at(SEED, b->drawn++) % (u64)b->n_vocab); }

static bool step_until_done(batch_bench *b, qn_err *e)
{
    size_t left = 0;
    do {
        if (!qn_engine_step(b->engine, &left, e)) return false;
    } while (left > 0);
    return true;
}

/* With a shared prompt the first session reads it and the others find its pages; else each has its own. */
static bool read_prompts(batch_bench *b, const row *r, qn_err *e)
{
    for (int k = 0; k < r->pl; k++) {
        if (k == 0 || !b->a->shared)
            for (int i = 0; i < r->pp; i++) b->ids[i] = draw(b);
        if (!qn_session_set(b->sessions[k], b->ids, (size_t)r->pp, NULL, e)) return false;
        if (k == 0 && b->a->shared && !step_until_done(b, e)) return false;
    }
    return step_until_done(b, e);
}

static bool generate(batch_bench *b, const row *r, qn_err *e)
{
    for (int i = 0; i < r->tg; i++) {
        for (int k = 0; k < r->pl; k++)
            if (!qn_session_push(b->sessions[k], draw(b), e)) return false;
        if (!qn_engine_step(b->engine, NULL, e)) return false;
    }
    return true;
}

static bool run_once(batch_bench *b, const row *r, int rep, double *pp_s, double *tg_s, qn_err *e)
{
    for (int k = 0; k < b->n_sessions; k++) qn_session_rewind(b->sessions[k], 0);
    const u64 start = qn_now_ns();
    if (r->pp && !read_prompts(b, r, e)) return false;
    const u64 middle = qn_now_ns();
    if (!generate(b, r, e)) return false;
    const u64 end = qn_now_ns();
    *pp_s = (double)(middle - start) * 1e-9;
    *tg_s = (double)(end - middle) * 1e-9;
    char name[64];
    snprintf(name, sizeof name, "pp%d+tg%d x %d", r->pp, r->tg, r->pl);
    qn_tracing_test(qn_engine_trace(b->engine), name, rep, (u64)(r->pp + r->tg) * (u64)r->pl, start, end - start);
    return true;
}

static bool run_row(batch_bench *b, row *r, qn_err *e)
{
    qn_stats s;
    for (int i = 0; i < b->a->repeats; i++)
        if (!run_once(b, r, i, &b->pp_s[i], &b->tg_s[i], e)) return false;
    qn_stats_of(b->pp_s, (size_t)b->a->repeats, &s);
    r->t_pp = s.p50;
    qn_stats_of(b->tg_s, (size_t)b->a->repeats, &s);
    r->t_tg = s.p50;
    return true;
}

static double rate(double n, double seconds) { return seconds > 0 ? n / seconds : 0; }

static bool print_row(const batch_bench *b, const row *r)
{
    const batch_args *a = b->a;
    const int n_prompt = a->shared ? r->pp : r->pl * r->pp, n_kv = n_prompt + r->pl * r->tg;
    const double t = r->t_pp + r->t_tg, s_pp = r->pp ? rate(n_prompt, r->t_pp) : 0;
    const double s_tg = r->tg ? rate(r->pl * r->tg, r->t_tg) : 0;
    const int threads = qn_engine_threads(b->engine), n_batch = a->engine.n_batch;
    bool ok;
    if (a->format == 0)
        ok = qn_cli_printf("|%6d | %6d | %4d | %6d | %8.3f | %8.2f | %8.3f | %8.2f | %8.3f | %8.2f |\n", r->pp, r->tg, r->pl,
                           n_kv, r->t_pp, s_pp, r->t_tg, s_tg, t, rate(n_kv, t));
    else
        ok = qn_cli_printf("{\"n_kv_max\": %lld, \"n_batch\": %d, \"n_ubatch\": %d, \"flash_attn\": 1, \"is_pp_shared\": %d, "
                           "\"n_gpu_layers\": %d, \"n_threads\": %d, \"n_threads_batch\": %d, \"pp\": %d, \"tg\": %d, "
                           "\"pl\": %d, \"n_kv\": %d, \"t_pp\": %.6f, \"speed_pp\": %.6f, \"t_tg\": %.6f, \"speed_tg\": %.6f, "
                           "\"t\": %.6f, \"speed\": %.6f}\n", (long long)a->engine.n_ctx * a->engine.n_seq, n_batch, n_batch,
                           a->shared, qn_cli_gpu_layers(b->model, b->engine), threads, threads, r->pp, r->tg, r->pl, n_kv,
                           r->t_pp, s_pp, r->t_tg, s_tg, t, rate(n_kv, t));
    return ok && qn_cli_flush();
}

static bool run_rows(batch_bench *b, const qn_ints *pp, const qn_ints *tg, const qn_ints *pl, qn_err *e)
{
    row warm = { .pp = 32, .tg = 1, .pl = 1 };
    warm.pp = qn_mini(warm.pp, b->a->engine.n_ctx - 1);
    if (!run_once(b, &warm, -1, &warm.t_pp, &warm.t_tg, e)) return false;
    if (b->a->format == 0)
        qn_cli_printf("|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |\n"
                      "|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|\n");
    for (int i = 0; i < pp->n; i++)
        for (int j = 0; j < tg->n; j++)
            for (int k = 0; k < pl->n; k++) {
                row r = { .pp = pp->at[i], .tg = tg->at[j], .pl = pl->at[k] };
                if (r.pp + r.tg > 0 && !(run_row(b, &r, e) && print_row(b, &r))) return false;
            }
    return true;
}

static bool read_list(const qn_list *typed, const char *preset, int lo, int hi, const char *what, qn_ints *out, qn_err *e)
{
    if (typed->n == 0) return qn_ints_parse(out, preset, lo, hi, what, e);
    for (int i = 0; i < typed->n; i++)
        if (!qn_ints_parse(out, typed->at[i], lo, hi, what, e)) return false;
    return true;
}

static bool open_all(batch_bench *b, const qn_cli *c, int longest, qn_err *e)
{
    const batch_args *a = b->a;
    qn_model_info info;
    if (!qn_cli_open(c, c->n_args ? c->args[0] : NULL, &a->engine, &b->model, &b->engine, e)) return false;
    qn_model_get_info(b->model, &info);
    b->n_vocab = info.n_vocab;
    b->ids = qn_new_array((size_t)qn_maxi(longest, 32), sizeof *b->ids, e);
    b->pp_s = b->ids ? qn_new_array((size_t)a->repeats, sizeof *b->pp_s, e) : NULL;
    b->tg_s = b->pp_s ? qn_new_array((size_t)a->repeats, sizeof *b->tg_s, e) : NULL;
    b->sessions = b->tg_s ? qn_new_array((size_t)a->engine.n_seq, sizeof(qn_session *), e) : NULL;
    if (!b->sessions) return false;
    while (b->n_sessions < a->engine.n_seq) {
        b->sessions[b->n_sessions] = qn_session_open(b->engine, e);
        if (!b->sessions[b->n_sessions++]) return false;
    }
    return true;
}

static void close_all(batch_bench *b, bool ok)
{
    for (int k = 0; k < b->n_sessions; k++) qn_session_close(b->sessions[k]);
    qn_free(b->sessions);
    qn_free(b->ids);
    qn_free(b->pp_s);
    qn_free(b->tg_s);
    qn_cli_close(b->model, b->engine, ok);
}

static int run(qn_cli *c, void *values)
{
    batch_args *a = values;
    qn_ints pp = { 0 }, tg = { 0 }, pl = { 0 };
    batch_bench b = { .a = a };
    qn_err e = { 0 };
    bool ok = read_list(&a->prompts, "128,512", 0, MOST_TOKENS, "--n-prompt", &pp, &e) &&
              read_list(&a->gens, "128", 0, MOST_TOKENS, "--n-gen", &tg, &e) &&
              read_list(&a->sequences, "1,2,4,8", 1, MOST_SEQUENCES, "--n-parallel", &pl, &e);
    const int longest = qn_ints_max(&pp) + qn_ints_max(&tg);
    if (ok && longest == 0) ok = qn_fail(&e, QN_EUSAGE, "nothing to measure: prompts and tokens to make are 0");
    if (ok && a->engine.n_ctx && a->engine.n_ctx < longest)
        ok = qn_fail(&e, QN_EUSAGE, "--ctx-size: %d is less than the %d tokens of a sequence", a->engine.n_ctx, longest);
    if (!a->engine.n_ctx) a->engine.n_ctx = qn_maxi(longest, 2);
    if (!a->engine.n_batch) a->engine.n_batch = 512;
    a->engine.n_seq = qn_ints_max(&pl);
    ok = ok && open_all(&b, c, qn_ints_max(&pp), &e) && run_rows(&b, &pp, &tg, &pl, &e);
    const int code = ok || !e.code ? QN_EXIT_OK : qn_cli_fail(c, &e); /* no error: stdout takes no more, main says why */
    close_all(&b, ok);
    qn_ints_close(&pp);
    qn_ints_close(&tg);
    qn_ints_close(&pl);
    if (a->engine.trace && ok) qn_shelf_record(c, a->engine.trace);
    return code;
}

const qn_command qn_command_batch_bench = {
    .name = "batch-bench",
    .args = "[MODEL]",
    .summary = "Measure many sequences at once: prompts, then tokens in one batch",
    .about = "For each combination of prompt length, tokens to make and number of sequences B: all B prompts of random "
             "tokens are read, then all B sequences make their tokens together, one row of each in every pass. Columns "
             "are those of llama-batched-bench: times and rates of prompts (PP), of making tokens (TG), and of all of "
             "it; N_KV is the number of tokens in the cache at the end. Choosing tokens is not included.",
    .examples = "quern batch-bench model.gguf -npp 128,512 -ntg 128 -npl 1,2,4,8\tthe usual sweep\n"
                "quern batch-bench model.gguf -npp 512 -npl 1-16*2 -pps -o jsonl\tone prompt for all, for a program\n",
    .min_args = 0,
    .max_args = 1,
    .groups = groups,
    .values_bytes = sizeof(batch_args),
    .run = run,
};
