/* cmd_probe.c - quern probe: which kernels are right, which is best for each shape, and the winners for the engine to use. The
 * work is src/probe's; here are the options, the cache's place and the order of things. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/probe.h"
#include "cli/shelf.h"
#include "cli/tracing.h"
#include "hub/hub.h"
#include "probe/memo.h"
#include "probe/tune.h"

typedef struct probe_args {
    const char *op, *type, *trace, *record, *output, *device;
    qn_list specs;
    int isa, timeout_s, threads, format;
    u64 seed;
    double seconds;
    bool check, json, tune, builtin, no_cache, all_failures;
} probe_args;

static const qn_opt what[] = {
    { "spec", NULL, NULL, OPT_list, QN_AT(probe_args, specs, qn_list), "SPEC", NULL,
      "a shape: \"op=matmul m=1 n=896 k=4864 tB=1\"; may be given again", 0, 0 },
    { "trace", NULL, NULL, OPT_text, QN_AT(probe_args, trace, const char *), "FILE", NULL,
      "the shapes of a recorded run, with what the engine took for each", 0, 0 },
    { "op", NULL, NULL, OPT_text, QN_AT(probe_args, op, const char *), "OP", NULL, "only this op", 0, 0 },
    { "type", NULL, "dtype", OPT_text, QN_AT(probe_args, type, const char *), "TYPE", NULL, "only this type", 0, 0 },
    { "device", NULL, NULL, OPT_text, QN_AT(probe_args, device, const char *), "DEVICE", "cpu",
      "cpu; cuda or cuda:N: linears on a GPU, beside cuBLAS", 0, 0 },
    { "isa", NULL, NULL, OPT_choice, QN_AT(probe_args, isa, int), QN_ISA_CHOICES, "auto",
      "only this instruction set; auto: all that this machine runs", 0, 0 },
    { 0 },
};

static const qn_opt how[] = {
    { "check", NULL, NULL, OPT_flag, QN_AT(probe_args, check, bool), NULL, NULL,
      "compare every kernel with its reference, time nothing", 0, 0 },
    { "tune", NULL, NULL, OPT_flag, QN_AT(probe_args, tune, bool), NULL, NULL, "keep the winners; plans use them from then "
                                                                               "on", 0, 0 },
    { "builtin", NULL, NULL, OPT_flag, QN_AT(probe_args, builtin, bool), NULL, NULL,
      "with --tune: print the program's own table of winners anew, as C (winners.def), and keep nothing", 0, 0 },
    { "record", NULL, NULL, OPT_text, QN_AT(probe_args, record, const char *), "FILE", NULL,
      "write what was timed as a trace; .zst: compressed", 0, 0 },
    { "threads", "t", NULL, OPT_int, QN_AT(probe_args, threads, int), "N", NULL, "threads; 0: all cores", 0, 1024 },
    { "time", NULL, NULL, OPT_real, QN_AT(probe_args, seconds, double), "S", "1", "most seconds to time one shape", 0.01,
      3600 },
    { "no-cache", NULL, NULL, OPT_flag, QN_AT(probe_args, no_cache, bool), NULL, NULL, "measure again what is known", 0, 0 },
    { "seed", "s", NULL, OPT_u64, QN_AT(probe_args, seed, u64), "N", "0", "seed of the data; 0: from the clock for --check",
      0, 0 },
    { "timeout", NULL, NULL, OPT_int, QN_AT(probe_args, timeout_s, int), "S", "60", "a kernel that takes longer has failed", 1,
      86400 },
    { "format", NULL, NULL, OPT_choice, QN_AT(probe_args, format, int), QN_PROBE_FORMATS, "text", "how to print; html is one "
                                                                                                   "file with plots", 0, 0 },
    { "output", "o", NULL, OPT_text, QN_AT(probe_args, output, const char *), "FILE", NULL, "write to a file", 0, 0 },
    { "verbose-failures", NULL, NULL, OPT_flag, QN_AT(probe_args, all_failures, bool), NULL, NULL,
      "list every pair of variant and shape that was not run, with the reason", 0, 0 },
    { "json", NULL, NULL, OPT_flag, QN_AT(probe_args, json, bool), NULL, NULL, "one JSON object per kernel or shape", 0, 0 },
    { 0 },
};

static const qn_opt_group groups[] = { { "What", what, 0 }, { "How", how, 0 }, { 0 } };

/* ---- --check */

typedef struct walk { const qn_cli *cli; bool json; int n; } walk;

static void put_json(qn_buf *b, const qn_probe_result *r)
{
    qn_buf_printf(b, "{\"kernel\": \"%s\", \"op\": \"%s\", \"isa\": \"%s\", \"passed\": %s, \"cases\": %d, \"seed\": %llu, "
                  "\"max_abs\": %.6g, \"max_rel\": %.6g, \"nmse\": %.6g, \"worst\": %.6g, \"at\": ", r->kernel->name,
                  qn_ops[r->kernel->op].name, qn_isa_name(r->kernel->isa), r->passed ? "true" : "false", r->cases,
                  (unsigned long long)r->seed, r->off.max_abs, r->off.max_rel, r->off.nmse, r->off.worst);
    qn_buf_json(b, r->at, strlen(r->at));
    qn_buf_puts(b, ", \"why\": ");
    qn_buf_json(b, r->why, strlen(r->why));
    qn_buf_puts(b, "}\n");
}

static void put_line(qn_buf *b, const qn_cli *c, const qn_probe_result *r)
{
    qn_buf_printf(b, "%s%-6s%s %-36s %4d cases  nmse %8.2g  worst %5.2f of its bound\n",
                  qn_cli_color(c, 1, r->passed ? QN_GREEN : QN_RED), r->passed ? "ok" : "FAILED", qn_cli_color(c, 1, QN_PLAIN),
                  r->kernel->name, r->cases, r->off.nmse, r->off.worst);
    if (!r->passed)
        qn_buf_printf(b, "       %s\n       in case %s, seed %llu\n", r->why, r->at, (unsigned long long)r->seed);
}

static bool flush_buf(qn_buf *b)
{
    const bool ok = !b->failed && qn_cli_write(b->p, b->n) && qn_cli_flush();
    b->n = 0;
    return ok;
}

static bool take_result(void *user, const qn_probe_result *r)
{
    walk *w = user;
    qn_buf b = { 0 };
    if (w->json) put_json(&b, r);
    else put_line(&b, w->cli, r);
    const bool ok = flush_buf(&b);
    qn_buf_close(&b);
    w->n++;
    return ok && !qn_interrupted();
}

static bool read_filters(const probe_args *a, qn_probe_opts *o, qn_err *e)
{
    if (a->op) {
        for (int i = 0; i < N_OPS; i++)
            if (!strcmp(qn_ops[i].name, a->op)) o->op = i;
        if (o->op < 0) return qn_fail(e, QN_EUSAGE, "--op: there is no op %.40s", a->op);
    }
    if (a->type) {
        qn_dtype t;
        if (!qn_dtype_from_name(a->type, &t)) return qn_fail(e, QN_EUSAGE, "--type: there is no type %.40s", a->type);
        o->type = (int)t;
    }
    o->isa = a->isa;
    o->seed = a->seed;
    o->timeout_s = a->timeout_s;
    if (a->isa && !qn_cpu_runs((qn_isa)a->isa))
        return qn_fail(e, QN_EUNSUPPORTED, "--isa: this machine has no %s; its highest level is %s", qn_isa_name((qn_isa)a->isa),
                       qn_isa_name(qn_cpu_isa()));
    return true;
}

static int check(qn_cli *c, const probe_args *a)
{
    qn_probe_opts o = QN_PROBE_DEFAULT;
    qn_err e = { 0 };
    walk w = { c, a->json, 0 };
    int failed = 0;
    qn_interrupt_polled(true);
    const bool ok = read_filters(a, &o, &e) && qn_probe_check(&o, take_result, &w, &failed, &e);
    qn_interrupt_polled(false);
    if (!ok && e.code == QN_ECANCELLED && !qn_interrupted()) return QN_EXIT_OK; /* the reader left */
    if (!ok) return qn_cli_fail(c, &e);
    qn_cli_note(c, "%d kernels checked, %d failed", w.n, failed);
    return failed ? QN_EXIT_FAIL : QN_EXIT_OK;
}

/* ---- contests */

typedef struct fair {
    qn_cli *c;
    const probe_args *a;
    qn_specs specs;
    qn_rivals rivals;
    qn_pool *pool;
    qn_memo *memo;              /* NULL: nothing is remembered */
    qn_contest *all;
    int n, wrong;
    bool resident;              /* the model fits the caches */
    qn_ceilings ceilings;
    qn_bar bar;                 /* over all shapes */
    u64 begin_ns;
    int damaged;
    qn_probe_page page;
    qn_tracing tracing;         /* of --record */
} fair;

/* ---- --record */

static bool open_record(fair *f, qn_err *e)
{
    const qn_engine_args a = { .threads = qn_pool_n(f->pool), .trace = f->a->record, .seed = f->a->seed };
    if (!qn_tracing_open(&f->tracing, f->c, &a, e)) return false;
    if (!f->tracing.trace) return true;
    qn_event head = { .kind = QN_EV_trace, .trace = *qn_trace_head(f->tracing.trace) };
    head.trace.threads = qn_pool_n(f->pool);
    head.trace.isa = (qn_str){ qn_isa_name(qn_cpu_isa()), strlen(qn_isa_name(qn_cpu_isa())) };
    qn_trace_put(f->tracing.trace, &head);
    return true;
}

static void record(const fair *f, const qn_contest *c, u64 begin)
{
    qn_trace *t = f->tracing.trace;
    for (int i = 0; t && i < c->n; i++) {
        const qn_contender *k = &c->at[i];
        const qn_stats *s = c->by_cold ? &k->cold : &k->warm;
        if (!s->n) continue;
        const qn_event ev = { .kind = QN_EV_probe, .t = qn_trace_time(t, begin),
                              .probe = { .spec = { c->text, strlen(c->text) }, .kernel = { k->name, strlen(k->name) },
                                         .samples = (i64)s->n, .p50_ns = s->p50, .min_ns = s->min,
                                         .bytes = (i64)c->cost.bytes, .flops = (i64)c->cost.flops } };
        qn_trace_put(t, &ev);
    }
}

/* ---- running them */

static bool gather(fair *f, qn_err *e)
{
    const probe_args *a = f->a;
    qn_probe_opts o = QN_PROBE_DEFAULT;
    const qn_engine_args engine = { .threads = a->threads, .device = "cpu", .no_tuning = true };
    if (!read_filters(a, &o, e)) return false;
    if (a->tune && a->isa) return qn_fail(e, QN_EUSAGE, "--tune takes the best of all levels: leave --isa out");
    for (int i = 0; i < a->specs.n; i++)
        if (!qn_specs_add_text(&f->specs, a->specs.at[i], e)) return false;
    if (f->c->n_args && !qn_specs_add_model(f->c, &f->specs, f->c->args[0], &engine, e)) return false;
    if (a->trace && !qn_specs_add_trace(&f->specs, a->trace, e)) return false;
    if (!a->specs.n && !f->c->n_args && !a->trace && !qn_specs_add_built_in(&f->specs, e)) return false;
    qn_specs_filter(&f->specs, o.op, o.type);
    if (!qn_specs_add_parts(&f->specs, f->c->n_args || a->trace, e)) return false;
    return f->specs.n || qn_fail(e, QN_EUSAGE, "no shape is of this op and type");
}

static void open_memo(fair *f)
{
    char note[240] = "";
    qn_err e = { 0 };
    char *dir = qn_place_path(QN_PLACE_CACHE, &e), *path = dir ? qn_path_join(dir, "probe.db", &e) : NULL;
    f->memo = path ? qn_memo_open(path, note, &e) : NULL;
    if (!f->memo) qn_cli_note(f->c, "results cannot be kept: %s", e.msg);
    if (note[0]) qn_cli_note(f->c, "%s", note);
    qn_free(path);
    qn_free(dir);
}

/* One bar over all shapes: part of the one at hand that is done. */
static bool tell(void *user, const char *name, double part)
{
    fair *f = user;
    (void)name;
    return qn_bar_show(&f->bar, "probing", ((double)(f->n - 1) + (part > 0 ? part : 0)) / f->specs.n);
}

/* The bar leaves its line to what is printed, and comes back with the time that has passed. */
static void show_bar(fair *f)
{
    qn_bar_open(&f->bar, f->c);
    f->bar.start_ns = f->begin_ns;
    snprintf(f->bar.what, sizeof f->bar.what, "probing");
}

static bool hold(fair *f, qn_contest *k, const qn_spec *spec, qn_err *e)
{
    const probe_args *a = f->a;
    const qn_contest_opts o = { .isa = a->isa, .threads = qn_pool_n(f->pool), .seconds = a->seconds, .seed = a->seed,
                                .timeout_s = a->timeout_s, .resident = f->resident, .memo = f->memo,
                                .progress = tell, .user = f };
    const int threads = qn_pool_n(f->pool);
    qn_err ignored = { 0 }; /* a cache that fails is no reason to stop */
    if (!qn_contest_open(k, &spec->shape, &f->rivals, &o, e)) return false;
    k->engine_ns = spec->engine_ns;
    k->deepest = spec->deepest;
    qn_contest_add_up(k, f->all, f->n - 1);
    const u64 begin = qn_now_ns();
    if (f->memo && !a->no_cache) qn_memo_get(f->memo, k, threads, &f->damaged, &ignored);
    if (!qn_contest_run(k, f->pool, &o, e)) return false;
    record(f, k, begin);
    if (f->memo && !qn_memo_put(f->memo, k, threads, &ignored)) qn_cli_debug(f->c, "results are not kept: %s", ignored.msg);
    for (int i = 0; i < k->n; i++) f->wrong += k->at[i].checked && !k->at[i].right;
    return true;
}

static bool say(const fair *f, qn_buf *b)
{
    return f->a->output || f->a->builtin || f->page.format == PROBE_html || flush_buf(b);
}

static bool hold_all(fair *f, qn_buf *out, qn_err *e)
{
    bool ok = true;
    f->begin_ns = qn_now_ns();
    qn_probe_print_head(out, &f->page);
    bool heard = say(f, out);
    for (int i = 0; ok && heard && i < f->specs.n; i++) {
        show_bar(f);
        ok = hold(f, &f->all[f->n++], &f->specs.at[i], e);
        qn_bar_close(&f->bar);
        if (!ok) break;
        qn_probe_print(out, &f->page, &f->all[i], i + 1);
        heard = say(f, out);
    }
    if (ok && heard) {
        qn_probe_print_tail(out, &f->page, f->all, f->n);
        say(f, out);
    }
    return ok;
}

static bool open_fair(fair *f, qn_err *e)
{
    const qn_engine_args engine = { .threads = f->a->threads };
    char note[240] = "";
    f->pool = qn_pool_open(f->a->threads, e);
    if (!f->pool) return false;
    f->all = qn_new_array((size_t)f->specs.n, sizeof *f->all, e);
    if (!f->all) return false;
    qn_rivals_open(&f->rivals, qn_pool_n(f->pool));
    open_memo(f);
    qn_topology t;
    qn_cpu_topology(&t);
    f->resident = f->specs.model_bytes && f->specs.model_bytes <= t.l3 / 2; /* KV and scratch need some too */
    const bool known = qn_cli_need_ceilings(f->c, &engine, e) && qn_cli_kept_ceilings(&engine, &f->ceilings, note);
    if (!known && e->code == QN_ECANCELLED) return false;
    int variants = f->rivals.n;
    for (int i = 0; i < qn_n_kernels; i++) variants += qn_cpu_runs(qn_kernels[i].isa);
    f->page = (qn_probe_page){ .c = f->c, .format = f->a->json ? PROBE_json : f->a->format, .ceilings = known ?
                               &f->ceilings : NULL,
                               .all_failures = f->a->all_failures, .n_specs = f->specs.n, .n_variants = variants,
                               .threads = qn_pool_n(f->pool), .rivals = &f->rivals };
    return true;
}

static void close_fair(fair *f)
{
    for (int i = 0; i < f->n; i++) qn_contest_close(&f->all[i]);
    qn_free(f->all);
    qn_memo_close(f->memo);
    qn_rivals_close(&f->rivals);
    qn_pool_close(f->pool);
    qn_specs_close(&f->specs);
}

static bool print_table(fair *f, const qn_tuned *winners, qn_buf *out)
{
    out->n = 0; /* instead of the tables */
    qn_tuned_print_table(out, winners, qn_pool_n(f->pool));
    return true;
}

static bool keep_winners(fair *f, qn_buf *out, qn_err *e)
{
    char date[16];
    const time_t now = time(NULL);
    struct tm utc;
    qn_tuned winners = { 0 };
    char *path = qn_cli_tuning_path();
    if (!path) return qn_fail(e, QN_EIO, "--tune: there is no folder to keep winners in (HOME is not set)");
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &utc));
    const int threads = qn_pool_n(f->pool);
    bool ok = qn_tune(f->all, f->n, threads, date, &winners, e);
    if (f->a->builtin) ok = ok && print_table(f, &winners, out);
    else ok = ok && qn_tune_write(&winners, path, threads, e);
    if (ok && !f->a->builtin)
        qn_cli_note(f->c, "%zu shapes are tuned in %s; `quern plan` says where it is used", winners.n, path);
    for (size_t i = 0; ok && i < winners.n; i++)
        qn_cli_debug(f->c, "%s %s: %s, %.2fx", qn_ops[winners.at[i].op].name, winners.at[i].shape,
                     winners.at[i].kernel ? winners.at[i].kernel->name : "apart", winners.at[i].gain);
    qn_tuned_close(&winners);
    qn_free(path);
    return ok;
}

static int contests(qn_cli *c, const probe_args *a)
{
    fair f = { .c = c, .a = a };
    qn_err e = { 0 };
    qn_buf out = { 0 };
    qn_interrupt_polled(true);
    bool ok = gather(&f, &e) && open_fair(&f, &e) && open_record(&f, &e) && hold_all(&f, &out, &e);
    qn_interrupt_polled(false);
    if (f.damaged) qn_cli_note(c, "%d results in the cache were damaged and have been measured again", f.damaged);
    if (ok && a->tune) ok = keep_winners(&f, &out, &e);
    const int wrong = f.wrong;
    qn_tracing_end(f.tracing.trace, ok ? QN_EXIT_OK : e.code == QN_ECANCELLED ? QN_EXIT_SIGINT : QN_EXIT_FAIL);
    qn_tracing_release(&f.tracing);
    close_fair(&f);
    if (!ok) {
        qn_buf_close(&out);
        return qn_cli_fail(c, &e);
    }
    const int code = qn_cli_deliver(c, &out, a->output);
    if (code != QN_EXIT_OK) return code;
    if (wrong) qn_cli_note(c, "%d variants are wrong", wrong);
    return wrong ? QN_EXIT_FAIL : QN_EXIT_OK;
}

static int on_device(qn_cli *c, const probe_args *a)
{
    qn_probe_opts o = QN_PROBE_DEFAULT;
    qn_err e = { 0 };
    if (a->check || a->tune || a->trace || a->record || a->op || a->output) {
        qn_fail(&e, QN_EUSAGE, "--device %.40s takes shapes, a model, --type, --time, --seed and --format alone", a->device);
        return qn_cli_fail(c, &e);
    }
    if (!read_filters(a, &o, &e)) return qn_cli_fail(c, &e);
    const qn_probe_device d = { .device = a->device, .specs = &a->specs, .type = o.type,
                                .format = a->json ? PROBE_json : a->format, .seed = a->seed, .seconds = a->seconds,
                                .all_failures = a->all_failures };
    return qn_probe_on_device(c, &d);
}

static int run(qn_cli *c, void *values)
{
    const probe_args *a = values;
    if (strcmp(a->device, "cpu") && strcmp(a->device, "auto")) return on_device(c, a);
    return a->check ? check(c, a) : contests(c, a);
}

const qn_command qn_command_probe = {
    .name = "probe",
    .args = "[MODEL]",
    .summary = "Find out which kernels are right and which are best, and have the engine use them",
    .about = "Takes shapes (of MODEL's plan, of a trace, from --spec, or a built-in list), has every kernel and every "
             "library that "
             "can compute them do so, checks each against double precision, then times those that are right, in turns, "
             "with warm and "
             "with cold caches, until the interval of the median is under 2 % or time is up. Results are remembered under "
             "the hash of "
             "the kernel's code: what did not change is not measured again. --tune writes the winners; plans use them.\n\n"
             "With --check only compares: odd sizes, poisoned outputs, guarded buffers, one to several lanes. A kernel "
             "that crashes "
             "or hangs fails by its name. Exit status 1 if a variant is wrong.",
    .examples = "quern probe --check\tis every kernel right?\nquern probe model.gguf --tune\tmake this model faster here\n"
                "quern probe --spec \"op=matmul m=1 n=896 k=4864 tB=1\"\tone shape\n"
                "quern probe --format html -o kernels.html\tthe built-in list as a page with plots\n",
    .min_args = 0,
    .max_args = 1,
    .groups = groups,
    .values_bytes = sizeof(probe_args),
    .run = run,
};
