/* shared.c - what commands that run a model have in common: the options of an engine, names to models, ids typed by hand. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/tracing.h"
#include "hub/hub.h"

const qn_opt qn_engine_opts[] = {
    { "ctx-size", "c", NULL, OPT_int, QN_AT(qn_engine_args, n_ctx, int), "N", NULL,
      "tokens of context; 0: the model's own, at most 8192", 0, INT_MAX },
    { "batch-size", "b", NULL, OPT_int, QN_AT(qn_engine_args, n_batch, int), "N", NULL,
      "most tokens in one pass; 0: 512", 0, 1 << 20 },
    { "threads", "t", NULL, OPT_int, QN_AT(qn_engine_args, threads, int), "N", NULL,
      "threads; 0: one per physical core that this process may use", 0, 1024 },
    { "isa", NULL, NULL, OPT_choice, QN_AT(qn_engine_args, isa, int), QN_ISA_CHOICES, "auto",
      "highest instruction set the kernels may use", 0, 0 },
    { "kv", NULL, "cache-type", OPT_choice, QN_AT(qn_engine_args, kv, int), "f16|f32|q8_0", "f16",
      "type of the KV cache", 0, 0 },
    { "no-repack", NULL, NULL, OPT_flag, QN_AT(qn_engine_args, no_repack, bool), NULL, NULL,
      "leave the weights as they are mapped, though kernels want another order", 0, 0 },
    { "kernel", NULL, NULL, OPT_text, QN_AT(qn_engine_args, kernel, const char *), "OP=NAME", NULL,
      "use this kernel for every step of that op; several apart by commas", 0, 0 },
    { "no-tuning", NULL, NULL, OPT_flag, QN_AT(qn_engine_args, no_tuning, bool), NULL, NULL,
      "do not use what `quern probe --tune` found out", 0, 0 },
    { "device", NULL, NULL, OPT_text, QN_AT(qn_engine_args, device, const char *), "DEVICE", "auto", QN_DEVICE_HELP, 0, 0 },
    { "trace", NULL, NULL, OPT_text, QN_AT(qn_engine_args, trace, const char *), "FILE", NULL,
      QN_TRACE_HELP, 0, 0 },
    { "trace-level", NULL, NULL, OPT_choice, QN_AT(qn_engine_args, trace_level, int), QN_TRACE_LEVELS, "step",
      QN_LEVEL_HELP, 0, 0 },
    { 0 },
};

bool qn_cli_find_model(const qn_cli *c, const char *name, char **path, qn_err *e)
{
    if (!qn_hub_find(name, path, e)) return false;
    qn_cli_debug(c, "model: %s", *path);
    return true;
}

/* A machine without GPU, or a build without kernels for one, is nothing to tell with every answer: -v does. */
static void say_device(const qn_cli *c, const qn_engine *en)
{
    const char *note = qn_engine_device_note(en);
    if (!note) return;
    const bool expected = strstr(note, "no CUDA") != NULL;
    if (expected) qn_cli_debug(c, "device: %s; the CPU runs", note);
    else if (!strcmp(qn_engine_device(en), "cpu")) qn_cli_note(c, "device: %s; the CPU runs", note);
    else qn_cli_note(c, "device: %s", note);
}

char *qn_cli_tuning_path(void)
{
    qn_err ignored = { 0 }; /* no place for it: nothing was ever tuned */
    char *dir = qn_place_path(QN_PLACE_CACHE, &ignored), *path = dir ? qn_path_join(dir, "winners.jsonl", &ignored) : NULL;
    qn_free(dir);
    return path;
}

static bool open_engine(const qn_cli *c, const qn_engine_args *a, qn_trace *trace, qn_model *m,
                        qn_engine **en, qn_err *e)
{
    qn_options o = QN_OPTIONS_DEFAULT;
    qn_bar bar;
    qn_bar_open(&bar, c);
    o.threads = a->threads;
    o.isa = a->isa; /* the choices stand in the order of QN_ISA_* and QN_KV_* */
    o.kv = a->kv;
    o.n_ctx = a->n_ctx;
    o.n_batch = a->n_batch;
    o.n_seq = a->n_seq;
    o.no_repack = a->no_repack;
    o.device = a->device;
    o.kernel = a->kernel;
    char *tuning = a->no_tuning ? NULL : qn_cli_tuning_path();
    o.tuning = tuning;
    o.progress = qn_bar_show;
    o.progress_user = &bar;
    o.trace = trace;
    *en = qn_engine_open(m, &o, e);
    qn_bar_close(&bar);
    qn_free(tuning);
    if (!*en) return false;
    qn_interrupt_arm(*en);
    qn_cli_debug(c, "engine: %s, %d threads, %s", qn_engine_device(*en), qn_engine_threads(*en), qn_engine_isa(*en));
    say_device(c, *en);
    if (qn_interrupted()) return qn_fail(e, QN_ECANCELLED, "interrupted");
    return true;
}

static void close_all(qn_model *m, qn_engine *en, qn_trace *trace, bool ok)
{
    const u64 begin = qn_now_ns();
    if (trace) qn_interrupt_polled(true);
    qn_interrupt_arm(NULL);
    qn_engine_close(en);
    qn_model_close(m);
    qn_tracing_load(trace, "close", begin, 0);
    qn_tracing_end(trace, qn_interrupted() ? QN_EXIT_SIGINT : ok ? QN_EXIT_OK : QN_EXIT_FAIL);
    qn_interrupt_polled(false);
}

bool qn_cli_open(const qn_cli *c, const char *name, const qn_engine_args *args, qn_model **m, qn_engine **en, qn_err *e)
{
    char *path = NULL;
    *m = NULL;
    if (en) *en = NULL;
    qn_tracing t;
    if (!qn_cli_find_model(c, name, &path, e)) return false;
    if (args && args->trace) qn_interrupt_polled(true); /* Ctrl-C must not end the program before the trace has its end */
    if (!qn_tracing_open(&t, c, args, e)) return qn_interrupt_polled(false), qn_free(path), false;
    const u64 begin = qn_now_ns();
    *m = qn_model_open(path, e);
    qn_free(path);
    if (*m) qn_tracing_load(t.trace, "open", begin, 0);
    const bool ok = *m && (!args || open_engine(c, args, t.trace, *m, en, e));
    qn_tracing_release(&t);
    if (ok) {
        if (t.trace) qn_interrupt_polled(false); /* the engine hears it now */
        return true;
    }
    close_all(*m, en ? *en : NULL, t.trace, false);
    *m = NULL;
    if (en) *en = NULL;
    return false;
}

void qn_cli_close(qn_model *m, qn_engine *en, bool ok) { close_all(m, en, en ? qn_engine_trace(en) : NULL, ok); }

int qn_cli_gpu_layers(const qn_model *m, const qn_engine *en)
{
    qn_model_info info;
    qn_model_get_info(m, &info);
    return strcmp(qn_engine_device(en), "cpu") ? info.n_layer : 0;
}

static bool is_between(char ch) { return ch == ' ' || ch == ',' || ch == '\n' || ch == '\t' || ch == '\r'; }

/* One number at text[*at]; steps over it. */
static bool parse_id(const char *text, size_t n, size_t *at, int n_vocab, size_t position, int32_t *id, qn_err *e)
{
    char word[24];
    size_t len = 0;
    i64 v;
    while (*at + len < n && !is_between(text[*at + len]) && text[*at + len] != ']') len++;
    const size_t kept = qn_minz(len, sizeof word - 1);
    memcpy(word, text + *at, kept);
    word[kept] = 0;
    if (kept < len || !qn_parse_i64(word, 0, INT32_MAX, &v))
        return qn_fail(e, QN_EUSAGE, "tokens: \"%s\" at position %zu is not a token id", word, position);
    if (n_vocab > 0 && v >= n_vocab)
        return qn_fail(e, QN_EUSAGE, "tokens: %lld at position %zu is not below the vocabulary's %d", (long long)v, position,
                       n_vocab);
    *id = (int32_t)v;
    *at += len;
    return true;
}

bool qn_cli_parse_ids(const char *text, size_t n, int n_vocab, int32_t **ids, size_t *n_ids, qn_err *e)
{
    qn_buf b = { 0 };
    size_t at = 0, count = 0;
    while (at < n && is_between(text[at])) at++;
    const bool bracket = at < n && text[at] == '[';
    at += bracket;
    for (;;) {
        int32_t id;
        while (at < n && is_between(text[at])) at++;
        if (at >= n || (bracket && text[at] == ']')) break;
        if (!parse_id(text, n, &at, n_vocab, count++, &id, e)) return qn_buf_close(&b), false;
        qn_buf_put(&b, &id, sizeof id);
    }
    const bool closed = at < n && text[at] == ']';
    for (at += closed; at < n && is_between(text[at]);) at++;
    if (closed != bracket || at < n) {
        qn_buf_close(&b);
        return qn_fail(e, QN_EUSAGE, "tokens: the list does not end where it should, after %zu ids", count);
    }
    char *taken = NULL;
    size_t bytes = 0;
    if (!b.p) qn_buf_puts(&b, "");
    if (!qn_buf_take(&b, &taken, &bytes, e)) return false;
    *ids = (int32_t *)(void *)taken;
    *n_ids = count;
    return true;
}

int qn_cli_rewrite(qn_cli *c, qn_write_fn write, const char *type, int threads)
{
    qn_options o = QN_OPTIONS_DEFAULT;
    qn_bar bar;
    qn_err e = { 0 };
    char *path = NULL;
    qn_bar_open(&bar, c);
    o.threads = threads;
    o.progress = qn_bar_show;
    o.progress_user = &bar;
    const bool ok = qn_cli_find_model(c, c->args[0], &path, &e) && write(path, c->args[1], type, &o, &e);
    qn_bar_close(&bar);
    qn_free(path);
    if (ok) qn_cli_note(c, "wrote %s", c->args[1]);
    return ok ? QN_EXIT_OK : qn_cli_fail(c, &e);
}
