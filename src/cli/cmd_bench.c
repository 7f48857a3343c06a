/* cmd_bench.c - quern bench: how many tokens a second a model reads and makes here. llama-bench's tests, lists and output, so
 * that scripts for it work; the machine's ceilings beside every figure; and other engines measured in the same breath, because
 * figures of different minutes on a shared machine do not compare. */
#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "base/numlist.h"
#include "cli/bench.h"
#include "cli/shelf.h"
#include "cli/tracing.h"
#include "probe/machine.h"

typedef struct bench_args {
    qn_list models, prompts, gens, pairs, depths, threads, batches, isas, kvs, against;
    int repeats, format, format_err;
    double delay, memory_from, memory_wait;
    bool ceilings, no_repack, no_tuning;
    const char *kernel;
    const char *device;
    const char *trace;
    int trace_level;
} bench_args;

static const qn_opt tests[] = {
    { "model", "m", NULL, OPT_list, QN_AT(bench_args, models, qn_list), "MODEL", NULL, "one more model", 0, 0 },
    { "n-prompt", "p", NULL, OPT_list, QN_AT(bench_args, prompts, qn_list), "LIST", NULL,
      "read prompts of so many tokens; 0: none; 512 unless told", 0, 0 },
    { "n-gen", "n", NULL, OPT_list, QN_AT(bench_args, gens, qn_list), "LIST", NULL,
      "generate so many tokens; 0: none; 128 unless told", 0, 0 },
    { "prompt-gen", "pg", NULL, OPT_list, QN_AT(bench_args, pairs, qn_list), "P,N", NULL, "read P, then generate N", 0, 0 },
    { "n-depth", "d", NULL, OPT_list, QN_AT(bench_args, depths, qn_list), "LIST", NULL,
      "behind so many tokens that are there already; 0 unless told", 0, 0 },
    { "repetitions", "r", NULL, OPT_int, QN_AT(bench_args, repeats, int), "N", "5", "samples of each test", 1, 10000 },
    { "delay", NULL, NULL, OPT_real, QN_AT(bench_args, delay, double), "S", "0", "seconds to rest before each test", 0, 3600 },
    { "memory-from", NULL, NULL, OPT_real, QN_AT(bench_args, memory_from, double), "GB/S", "0",
      "only samples around which memory gave so much", 0, 1e6 },
    { "memory-wait", NULL, NULL, OPT_real, QN_AT(bench_args, memory_wait, double), "S", "600",
      "seconds that a test waits for such memory, at most", 0, 86400 },
    { "against", NULL, NULL, OPT_list, QN_AT(bench_args, against, qn_list), "COMMAND", NULL,
      "another engine's llama-bench, sampled in turn with quern", 0, 0 },
    { 0 },
};

static const qn_opt settings[] = {
    { "threads", "t", NULL, OPT_list, QN_AT(bench_args, threads, qn_list), "LIST", NULL,
      "threads; 0: one per physical core that this process may use", 0, 0 },
    { "batch-size", "b", NULL, OPT_list, QN_AT(bench_args, batches, qn_list), "LIST", NULL,
      "most tokens in one pass; 512 unless told", 0, 0 },
    { "isa", NULL, NULL, OPT_list, QN_AT(bench_args, isas, qn_list), "LIST", NULL,
      "highest instruction sets (auto,avx2,...); auto unless told", 0, 0 },
    { "kv", "ctk", "cache-type-k", OPT_list, QN_AT(bench_args, kvs, qn_list), "LIST", NULL,
      "types of the KV cache (f16,f32,q8_0); f16 unless told", 0, 0 },
    { "kernel", NULL, NULL, OPT_text, QN_AT(bench_args, kernel, const char *), "OP=NAME", NULL,
      "use this kernel for every step of that op; several apart by commas", 0, 0 },
    { "no-tuning", NULL, NULL, OPT_flag, QN_AT(bench_args, no_tuning, bool), NULL, NULL,
      "do not use what `quern probe --tune` found out", 0, 0 },
    { "no-repack", NULL, NULL, OPT_flag, QN_AT(bench_args, no_repack, bool), NULL, NULL,
      "leave the weights as they are mapped, though kernels want another order", 0, 0 },
    { "device", NULL, NULL, OPT_text, QN_AT(bench_args, device, const char *), "DEVICE", "auto", QN_DEVICE_HELP, 0, 0 },
    { 0 },
};

static const qn_opt outputs[] = {
    { "output", "o", NULL, OPT_choice, QN_AT(bench_args, format, int), QN_BENCH_FORMATS, "md", "format on stdout", 0, 0 },
    { "output-err", "oe", NULL, OPT_choice, QN_AT(bench_args, format_err, int), QN_BENCH_FORMATS "|none", "none",
      "format on stderr, as well", 0, 0 },
    { "ceilings", NULL, NULL, OPT_flag, QN_AT(bench_args, ceilings, bool), NULL, "on",
      "measure the machine's ceilings first; --no-ceilings: do not", 0, 0 },
    { "trace", NULL, NULL, OPT_text, QN_AT(bench_args, trace, const char *), "FILE", NULL, QN_TRACE_HELP, 0, 0 },
    { "trace-level", NULL, NULL, OPT_choice, QN_AT(bench_args, trace_level, int), QN_TRACE_LEVELS, "step", QN_LEVEL_HELP, 0, 0 },
    { 0 },
};

static const qn_opt_group groups[] = { { "Tests", tests, 0 }, { "Settings", settings, 0 }, { "Output", outputs, 0 }, { 0 } };

static const char *const kv_names[] = { "f16", "f32", "q8_0" }; /* in the order of QN_KV_* */

#define MOST_TESTS 4096
#define MOST_TOKENS (1 << 24)

typedef struct bench {
    const qn_cli *c;
    const bench_args *a;
    const char **models;      /* [n_models] */
    int n_models;
    qn_ints threads, batches, isas, kvs;
    qn_bench_test *tests;     /* [n_tests] */
    int n_tests, n_ctx;
    qn_ceilings *ceilings;    /* [n_ceilings], one for each pair of threads and ISA */
    int n_ceilings;
    double load;
    int n_run, n_disturbed;   /* tests */
    qn_rival rivals[QN_RIVALS_MOST];
    int n_rivals;
    qn_bench_printer out, err;
} bench;

/* ---- what to run ---------------------------------------------------------------------------------------------------- */

static bool read_numbers(const qn_list *typed, int preset, int lo, int hi, const char *what, qn_ints *out, qn_err *e)
{
    for (int i = 0; i < typed->n; i++)
        if (!qn_ints_parse(out, typed->at[i], lo, hi, what, e)) return false;
    return typed->n > 0 || qn_ints_add(out, preset, e);
}

static bool parse_kv(const char *word, int *kv)
{
    for (size_t i = 0; i < QN_COUNT(kv_names); i++)
        if (!strcmp(word, kv_names[i])) return *kv = (int)i, true;
    return false;
}

/* Words between commas, each known to parse(). */
static bool read_words(const qn_list *typed, bool (*parse)(const char *, int *), const char *what, qn_ints *out, qn_err *e)
{
    for (int i = 0; i < typed->n; i++) {
        for (const char *s = typed->at[i];; s++) {
            char word[24] = "";
            const size_t n = strcspn(s, ",");
            int v = 0;
            memcpy(word, s, qn_minz(n, sizeof word - 1));
            if (n >= sizeof word || !parse(word, &v)) return qn_fail(e, QN_EUSAGE, "%s: \"%s\" is unknown", what, word);
            if (!qn_ints_add(out, v, e)) return false;
            s += n;
            if (!*s) break;
        }
    }
    return typed->n > 0 || qn_ints_add(out, 0, e);
}

static bool add_test(bench *b, int p, int n, int depth, qn_err *e)
{
    if (p == 0 && n == 0) return true;
    if (b->n_tests == MOST_TESTS) return qn_fail(e, QN_EUSAGE, "more than %d tests", MOST_TESTS);
    qn_bench_test *more = qn_resize(b->tests, ((size_t)b->n_tests + 1) * sizeof *more, e);
    if (!more) return false;
    b->tests = more;
    more[b->n_tests++] = (qn_bench_test){ p, n, depth };
    b->n_ctx = qn_maxi(b->n_ctx, p + n + depth);
    return true;
}

static bool add_pair(bench *b, const char *text, int depth, qn_err *e)
{
    qn_ints two = { 0 };
    bool ok = qn_ints_parse(&two, text, 1, MOST_TOKENS, "--prompt-gen", e);
    if (ok && two.n != 2) ok = qn_fail(e, QN_EUSAGE, "--prompt-gen: \"%.60s\" is not a pair P,N", text);
    ok = ok && add_test(b, two.at[0], two.at[1], depth, e);
    qn_ints_close(&two);
    return ok;
}

static bool add_tests(bench *b, const qn_ints *prompts, const qn_ints *gens, int depth, qn_err *e)
{
    bool ok = true;
    for (int i = 0; ok && i < prompts->n; i++) ok = add_test(b, prompts->at[i], 0, depth, e);
    for (int i = 0; ok && i < gens->n; i++) ok = add_test(b, 0, gens->at[i], depth, e);
    for (int i = 0; ok && i < b->a->pairs.n; i++) ok = add_pair(b, b->a->pairs.at[i], depth, e);
    return ok;
}

static bool read_tests(bench *b, qn_err *e)
{
    qn_ints prompts = { 0 }, gens = { 0 }, depths = { 0 };
    bool ok = read_numbers(&b->a->prompts, 512, 0, MOST_TOKENS, "--n-prompt", &prompts, e) &&
              read_numbers(&b->a->gens, 128, 0, MOST_TOKENS, "--n-gen", &gens, e) &&
              read_numbers(&b->a->depths, 0, 0, MOST_TOKENS, "--n-depth", &depths, e);
    for (int i = 0; ok && i < depths.n; i++) ok = add_tests(b, &prompts, &gens, depths.at[i], e);
    qn_ints_close(&prompts);
    qn_ints_close(&gens);
    qn_ints_close(&depths);
    return ok && (b->n_tests > 0 || qn_fail(e, QN_EUSAGE, "nothing to measure: every list is 0"));
}

static bool read_models(bench *b, qn_err *e)
{
    const qn_list *more = &b->a->models;
    b->n_models = b->c->n_args + more->n;
    b->models = qn_new_array((size_t)b->n_models + 1, sizeof *b->models, e);
    if (!b->models) return false;
    for (int i = 0; i < b->c->n_args; i++) b->models[i] = b->c->args[i];
    for (int i = 0; i < more->n; i++) b->models[b->c->n_args + i] = more->at[i];
    if (b->n_models == 0) b->n_models = 1; /* NULL: the default model */
    return true;
}

static bool read_rivals(bench *b, qn_err *e)
{
    const qn_list *typed = &b->a->against;
    if (typed->n > QN_RIVALS_MOST) return qn_fail(e, QN_EUSAGE, "--against: at most %d engines", QN_RIVALS_MOST);
    for (int i = 0; i < typed->n; i++)
        if (!qn_rival_open(&b->rivals[b->n_rivals++], typed->at[i], e)) return false;
    return true;
}

/* A trace has one header and one plan. */
static bool check_trace(const bench *b, qn_err *e)
{
    if (!b->a->trace || b->n_models * b->threads.n * b->batches.n * b->isas.n * b->kvs.n == 1) return true;
    return qn_fail(e, QN_EUSAGE, "--trace records one model with one setting: give one of each");
}

static bool read_args(bench *b, qn_err *e)
{
    const bench_args *a = b->a;
    return read_numbers(&a->threads, 0, 0, 1024, "--threads", &b->threads, e) &&
           read_numbers(&a->batches, 512, 1, 1 << 20, "--batch-size", &b->batches, e) &&
           read_words(&a->isas, qn_isa_parse, "--isa", &b->isas, e) && read_words(&a->kvs, parse_kv, "--kv", &b->kvs, e) &&
           read_tests(b, e) && read_models(b, e) && read_rivals(b, e) && check_trace(b, e);
}

/* ---- running it ----------------------------------------------------------------------------------------------------- */

static bool measure_ceilings(bench *b, qn_err *e)
{
    qn_bar bar;
    bool ok = true;
    if (!b->a->ceilings) return true;
    b->ceilings = qn_new_array((size_t)b->threads.n * (size_t)b->isas.n, sizeof *b->ceilings, e);
    if (!b->ceilings) return false;
    qn_bar_open(&bar, b->c);
    for (int t = 0; ok && t < b->threads.n; t++)
        for (int i = 0; ok && i < b->isas.n; i++) {
            const qn_ceilings_opts o = { .threads = b->threads.at[t], .isa = b->isas.at[i], .seconds = 0.15,
                                         .progress = qn_bar_show, .user = &bar };
            ok = qn_cli_measure_ceilings(b->a->device, &o, &b->ceilings[b->n_ceilings++], e);
        }
    qn_bar_close(&bar);
    return ok;
}

static bool run_test(bench *b, qn_bench_setup *s, const qn_bench_test *t, qn_err *e)
{
    qn_bench_result r = { .test = *t, .setup = s, .n = b->a->repeats, .load = b->load, .n_rivals = b->n_rivals,
                          .rivals = b->rivals };
    char name[64], why[160];
    if (!qn_bench_rest(b->a->delay, e)) return false;
    qn_cli_debug(b->c, "%s: %s", s->info.path, qn_bench_name(t, name));
    bool ok = qn_bench_measure(s, &r, e);
    b->n_run += ok;
    b->n_disturbed += ok && r.disturbed;
    if (ok && r.disturbed) qn_cli_debug(b->c, "%s: %s", qn_bench_name(t, name), qn_bench_disturbance(&r, why));
    ok = ok && qn_bench_print(&b->out, &r, e) && qn_bench_print(&b->err, &r, e);
    qn_bench_result_close(&r);
    return ok;
}

static bool run_setup(bench *b, const char *model, int t, int n_batch, int i, int kv, qn_err *e)
{
    const qn_ceilings *ceilings = b->n_ceilings ? &b->ceilings[t * b->isas.n + i] : NULL;
    qn_bench_setup s = { .args = { .threads = b->threads.at[t], .isa = b->isas.at[i], .kv = kv, .n_ctx = b->n_ctx,
                                   .n_batch = n_batch, .no_repack = b->a->no_repack, .device = b->a->device,
                                   .no_tuning = b->a->no_tuning, .kernel = b->a->kernel,
                                   .trace = b->a->trace, .trace_level = b->a->trace_level, .ceilings = ceilings },
                         .kv = kv_names[kv], .ceilings = ceilings, .memory_from = b->a->memory_from * 1e9,
                         .memory_wait = b->a->memory_wait };
    bool ok = qn_bench_open(b->c, model, &s, e);
    const bool on_cpu = ok && !strcmp(qn_engine_device(s.engine), "cpu");
    if (ok && ceilings && on_cpu != !ceilings->device[0]) s.ceilings = NULL; /* those of the other */
    for (int k = 0; ok && k < b->n_tests; k++) ok = run_test(b, &s, &b->tests[k], e);
    qn_bench_close(&s, ok);
    return ok;
}

static bool run_model(bench *b, const char *model, qn_err *e)
{
    const int n = b->threads.n * b->batches.n * b->isas.n * b->kvs.n;
    bool ok = true;
    for (int k = 0; ok && k < n; k++) {
        int at = k;
        const int t = at % b->threads.n;
        at /= b->threads.n;
        const int n_batch = b->batches.at[at % b->batches.n];
        at /= b->batches.n;
        ok = run_setup(b, model, t, n_batch, at % b->isas.n, b->kvs.at[at / b->isas.n], e);
    }
    return ok;
}

static bool run_all(bench *b, qn_err *e)
{
    qn_machine m;
    qn_machine_look(&m);
    b->load = m.load; /* before measuring: that of the others */
    bool ok = measure_ceilings(b, e);
    for (int i = 0; ok && i < b->n_models; i++) ok = run_model(b, b->models[i], e);
    qn_err late = { 0 };
    const bool ended = qn_bench_print_end(&b->out, b->ceilings, b->n_ceilings, &late) &&
                       qn_bench_print_end(&b->err, b->ceilings, b->n_ceilings, &late);
    if (ok && !ended) *e = late;
    if (b->n_disturbed)
        qn_cli_note(b->c, "The machine was disturbed in %d of %d tests: absolute figures mean little, -v says why.",
                    b->n_disturbed, b->n_run);
    return ok && ended;
}

static void close_all(bench *b)
{
    qn_ints_close(&b->threads);
    qn_ints_close(&b->batches);
    qn_ints_close(&b->isas);
    qn_ints_close(&b->kvs);
    qn_free(b->models);
    qn_free(b->tests);
    qn_free(b->ceilings);
    for (int i = 0; i < b->n_rivals; i++) qn_rival_close(&b->rivals[i]);
}

static int run(qn_cli *c, void *values)
{
    const bench_args *a = values;
    bench b = { .c = c, .a = a };
    qn_err e = { 0 };
    bool ok = read_args(&b, &e);
    if (ok) {
        b.out = (qn_bench_printer){ .format = a->format, .fd = 1, .batch = b.batches.n > 1 || b.batches.at[0] != 512,
                                    .isa = b.isas.n > 1 || b.isas.at[0], .kv = b.kvs.n > 1 || b.kvs.at[0] };
        b.err = b.out;
        b.err.format = a->format_err;
        b.err.fd = 2;
        ok = run_all(&b, &e);
    }
    const int code = ok || !e.code ? QN_EXIT_OK : qn_cli_fail(c, &e); /* no error: stdout takes no more, main says why */
    close_all(&b);
    if (a->trace && code == QN_EXIT_OK) qn_shelf_record(c, a->trace);
    return code;
}

const qn_command qn_command_bench = {
    .name = "bench",
    .args = "[MODEL...]",
    .summary = "Measure tokens per second, next to the machine's limits and other engines",
    .about = "Reads prompts of random tokens (ppN) and generates tokens one by one (tgN), as llama-bench does: after a "
             "warm-up, -r samples of each test. Choosing tokens and text are no part of any figure. Numbers may be "
             "lists and ranges: 16,32 or 1-8 or 1-8+2 or 1-64*2; all combinations are run.\n\n"
             "A table has llama-bench's columns and then the median with its 95 % interval, and how near it is to the "
             "ceiling that this machine showed: for prompts the arithmetic, just before; for generating the bytes that "
             "each token must read, with memory asked before and behind every sample. The other formats have "
             "llama-bench's keys first and ours behind them. A disturbed machine is reported on stderr and in the key "
             "`disturbed`; -v says for each test why.\n\n"
             "--against runs another program that takes llama-bench's options, once for each of our samples and in "
             "turn with them, on the same file, test and number of threads, and prints the ratio ours / theirs with "
             "its 95 % interval; the key `ratio_most` is what the ceiling around their samples would have allowed. The "
             "command is cut at spaces, no shell is involved; NAME=COMMAND gives it a name. It may be repeated. "
             "Another build of quern fits too: --against \"old=/opt/quern bench\". A program that knows no -d is "
             "asked to generate behind a prompt (-gp) instead.\n\n"
             "On a shared machine memory may be half as fast one minute as the next. --memory-from 70 takes samples, also "
             "those of other engines, only while it gives 70 GB/s, and takes them again if it gave less behind them; what "
             "does not come within --memory-wait is taken as it is, and the test is called disturbed.",
    .examples = "quern bench model.gguf\tpp512 and tg128\n"
                "quern bench model.gguf -p 0 -n 64 -d 0,2048,8192 -t 1,2\tgenerating at three depths, with one and two threads\n"
                "quern bench a.gguf b.gguf -pg 512,128 -o json\ttwo models, for a program\n"
                "quern bench model.gguf -r 9 --against \"llama=/opt/llama.cpp/llama-bench -fa 1\"\tside by side\n",
    .min_args = 0,
    .max_args = INT_MAX,
    .groups = groups,
    .values_bytes = sizeof(bench_args),
    .run = run,
};
