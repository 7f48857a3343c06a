/* read_doppler.c - the console log of a Doppler debug run. Its profile is one table of sums a submission (the prefill, then every
 * batch of N tokens), so a table is a pass and a row is one sample of its kernel; samples of a phase stand in the order of its
 * passes. How long a pass took by the clock is the time between the stamps of two tables. All the rest (device, choices,
 * memory, closing figures) comes from lines with a module's name.
 * A label is op, op:role, op:role:L3 or op:L3.role; layer and role are taken out of it, qn_doppler_label puts them back. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/import.h"

typedef struct console {
    qn_run *r;
    double stamp;           /* ms; of the line before, and of the table before */
    double table_stamp, loaded;
    bool titled, in_table;  /* a title came; its rows come */
    qn_phase phase;
    int rows;               /* tokens in this table */
    double sum_ns;
    u64 table_at;
    i64 pos;                /* of the next token */
    double load_begin;      /* of the loader's present part; < 0: none */
    double duration, load, ttft, prefill, decode, total; /* ms; < 0: not said */
    i64 prompt, tokens;
} console;

static bool begins(qn_str s, const char *word) { return s.n >= strlen(word) && !memcmp(s.p, word, strlen(word)); }

static qn_str skip(qn_str s, size_t n) { return (qn_str){ s.p + n, s.n - n }; }

/* What stands behind word, or nothing. */
static qn_str after(qn_str s, const char *word)
{
    const char *p = memmem(s.p, s.n, word, strlen(word));
    return p ? skip(s, (size_t)(p - s.p) + strlen(word)) : (qn_str){ "", 0 };
}

static qn_str until(qn_str s, const char *ends)
{
    size_t n = 0;
    while (n < s.n && !strchr(ends, s.p[n])) n++;
    return (qn_str){ s.p, n };
}

/* A number at the beginning of s, 0..1e12; -1: none. */
static double number(qn_str s)
{
    char text[40];
    size_t n = 0;
    while (n < s.n && n < sizeof text - 1 && ((s.p[n] >= '0' && s.p[n] <= '9') || s.p[n] == '.')) n++;
    memcpy(text, s.p, n);
    text[n] = 0;
    double v;
    return qn_parse_double(text, 0, 1e12, &v) ? v : -1;
}

static double number_after(qn_str s, const char *word) { return number(after(s, word)); }

static bool set(console *g, const char **to, qn_str s, qn_err *e)
{
    const char *text = qn_run_text(g->r, s, e);
    if (text) *to = text;
    return text != NULL;
}

static u64 ns_of(double ms) { return ms > 0 ? (u64)(ms * 1e6 + 0.5) : 0; }

/* ---- tables */

/* "op:role:L3", "op:L3.role", "op:role", "op" */
static void split_label(qn_str label, qn_str *op, qn_str *role, int *layer)
{
    const char *colon = memchr(label.p, ':', label.n);
    *op = colon ? (qn_str){ label.p, (size_t)(colon - label.p) } : label;
    *role = (qn_str){ "", 0 };
    *layer = -1;
    if (!colon) return;
    qn_str rest = skip(label, op->n + 1);
    const char *last = memrchr(rest.p, ':', rest.n);
    const qn_str tail = last ? skip(rest, (size_t)(last - rest.p) + 1) : rest;
    size_t digits = 1;
    int n = 0;
    for (; tail.n > 1 && digits < tail.n && digits < 6 && tail.p[digits] >= '0' && tail.p[digits] <= '9'; digits++)
        n = 10 * n + (tail.p[digits] - '0');
    const char *dot = digits < tail.n && tail.p[digits] == '.' ? tail.p + digits : NULL;
    if (tail.n < 2 || tail.p[0] != 'L' || digits == 1 || (digits < tail.n && !dot)) {
        *role = rest;
        return;
    }
    *layer = n;
    if (dot) *role = skip(tail, (size_t)(dot - tail.p) + 1);
    else if (last) *role = (qn_str){ rest.p, (size_t)(last - rest.p) };
}

void qn_doppler_label(const qn_series *s, char *out, size_t cap)
{
    if (s->layer < 0) snprintf(out, cap, "%s", s->kernel);
    else if (!strcmp(s->op, "matmul") || !s->role[0]) snprintf(out, cap, "%s:L%d", s->kernel, s->layer);
    else snprintf(out, cap, "%s:L%d.%s", s->op, s->layer, s->role);
}

static qn_series *series_of(console *g, qn_str label, qn_err *e)
{
    qn_str op, role;
    int layer;
    char kernel[256];
    split_label(label, &op, &role, &layer);
    snprintf(kernel, sizeof kernel, "%.*s%s%.*s", (int)qn_minz(op.n, 100), op.p, role.n ? ":" : "",
             (int)qn_minz(role.n, 100), role.p);
    const char *o = qn_run_text(g->r, op, e), *w = o ? qn_run_text(g->r, role, e) : NULL;
    return w ? qn_run_series(g->r, g->phase, kernel, o, w, "", layer, e) : NULL;
}

static bool add_row(console *g, qn_str label, double ms, qn_err *e)
{
    qn_series *s = series_of(g, label, e);
    const u64 ns = ns_of(ms);
    if (!s || !qn_series_add(s, ns, e)) return false;
    g->sum_ns += (double)ns;
    /* a table is a sum over its tokens: one token's share, at the middle of their positions */
    if (g->rows > 0) qn_fit_add(&s->fit, (double)g->pos + (g->rows - 1) / 2.0, (double)ns / g->rows);
    return true;
}

static bool end_table(console *g, double total, qn_err *e)
{
    qn_run *r = g->r;
    const double begin = g->table_stamp > 0 ? g->table_stamp : g->loaded;
    qn_run_pass *p = QN_RUN_PUSH(&r->passes, e);
    if (!p) return false;
    const double wall = begin > 0 && g->stamp > begin ? (double)ns_of(g->stamp - begin) : g->sum_ns;
    *p = (qn_run_pass){ .t = (i64)ns_of(begin), .number = (i64)r->passes.n, .ns = (u64)fmax(wall, g->sum_ns),
                        .steps_ns = (u64)g->sum_ns, .phase = g->phase, .rows = g->rows, .seqs = 1, .pos = g->pos };
    if (g->phase == PHASE_decode) {
        r->phase_tokens[PHASE_decode] += (u64)g->rows;
        g->pos += g->rows;
    }
    /* rows are rounded to 0.01 ms: 200 of them may be off by 1 ms */
    const bool sums_up = total < 0 || fabs(total * 1e6 - g->sum_ns) <= 0.01 * g->sum_ns + 1e6;
    if (!sums_up && !qn_run_note(r, e, "the table at byte %" PRIu64 " has %.2f ms in its rows and says %.2f in all", g->table_at,
                                 g->sum_ns / 1e6, total)) return false;
    g->table_stamp = g->stamp;
    g->in_table = g->titled = false;
    g->sum_ns = 0;
    return true;
}

/* "label   12.34   5.6": the last two words are numbers. */
static bool split_row(qn_str s, qn_str *label, double *ms)
{
    qn_str word[2];
    for (int i = 1; i >= 0; i--) {
        while (s.n && s.p[s.n - 1] == ' ') s.n--;
        size_t n = 0;
        while (n < s.n && s.p[s.n - 1 - n] != ' ') n++;
        if (n == 0 || n == s.n) return false;
        word[i] = (qn_str){ s.p + s.n - n, n };
        s.n -= n;
    }
    while (s.n && s.p[s.n - 1] == ' ') s.n--;
    *label = s;
    char text[32];
    if (word[0].n >= sizeof text || s.n == 0) return false;
    memcpy(text, word[0].p, word[0].n);
    text[word[0].n] = 0;
    return qn_parse_double(text, -1e15, 1e300, ms);
}

static bool take_row(console *g, qn_str text, qn_err *e)
{
    qn_str label;
    double ms;
    if (!split_row(text, &label, &ms)) return true; /* rules and the heading */
    if (label.n == 5 && !memcmp(label.p, "TOTAL", 5)) return end_table(g, ms, e);
    if (ms < 0 || ms > 6e7) { /* a submission of 17 hours */
        g->r->ignored++;
        return true;
    }
    return add_row(g, label, ms, e);
}

static bool take_profile(console *g, qn_str msg, u64 at, qn_err *e)
{
    if (begins(msg, "GPU Profile Report")) {
        if (!g->titled) g->phase = PHASE_other, g->rows = 0;
        g->in_table = true;
        g->table_at = at;
        return true;
    }
    if (g->in_table && g->sum_ns > 0 && !end_table(g, -1, e)) return false; /* its end is missing */
    const double n = number_after(msg, "(N=");
    g->titled = true;
    g->phase = begins(msg, "Prefill") ? PHASE_prefill : memmem(msg.p, msg.n, "ecode", 5) ? PHASE_decode : PHASE_other;
    g->rows = g->phase == PHASE_decode ? n >= 1 && n < 1e6 ? (int)n : 1 : 0;
    return true;
}

/* ---- lines with a module's name */

static bool take_select(console *g, qn_str msg, qn_err *e)
{
    qn_run_choice *c = QN_RUN_PUSH(&g->r->choices, e);
    if (!c) return false;
    *c = (qn_run_choice){ .step = -1, .role = "", .op = "", .rows = g->r->passes.n ? "decode" : "prefill",
                          .kernel = "", .reason = "", .rejected = "" };
    return set(g, &c->op, until(msg, " "), e) && set(g, &c->kernel, until(after(msg, "variant="), " "), e)
        && set(g, &c->reason, until(after(msg, "reason="), " "), e);
}

/* "2.04 GB" */
static u64 size_of(qn_str s)
{
    static const struct { const char *unit; double bytes; } units[] = {
        { "GB", 1073741824.0 }, { "MB", 1048576.0 }, { "KB", 1024.0 },
    };
    const double v = number(s);
    const qn_str unit = until(after(until(s, "/(|,)"), " "), " /(|,)");
    for (size_t i = 0; i < QN_COUNT(units); i++)
        if (v > 0 && v < 1e7 && begins(unit, units[i].unit)) return (u64)(v * units[i].bytes);
    return v > 0 ? (u64)v : 0;
}

static bool take_memory(console *g, qn_str msg, qn_err *e)
{
    qn_run_memory *m = QN_RUN_PUSH(&g->r->memory, e);
    if (!m) return false;
    *m = (qn_run_memory){ .when = "", .parts = "", .weights = size_of(after(msg, "GPU=")),
                          .resident = size_of(after(msg, "Heap=")), .peak = size_of(after(msg, "peak=")) };
    return set(g, &m->when, until(after(msg, "Memory ("), ")"), e);
}

static bool end_load(console *g, const char *phase, qn_err *e)
{
    qn_run_load *l = g->load_begin >= 0 && g->stamp >= g->load_begin ? QN_RUN_PUSH(&g->r->loads, e) : NULL;
    if (l) *l = (qn_run_load){ .phase = phase, .ns = ns_of(g->stamp - g->load_begin) };
    g->load_begin = g->stamp;
    return e->code == QN_OK;
}

static bool take_loader(console *g, qn_str msg, qn_err *e)
{
    if (memmem(msg.p, msg.n, "Memory (", 8)) return take_memory(g, msg, e);
    if (begins(msg, "Loading: ")) {
        g->load_begin = g->stamp;
        return set(g, &g->r->model, skip(msg, 9), e);
    }
    if (begins(msg, "Embeddings tensor loaded")) return end_load(g, "embeddings", e);
    if (begins(msg, "Layers: ") && memmem(msg.p, msg.n, "complete", 8)) return end_load(g, "layers", e);
    if (begins(msg, "Complete:")) return end_load(g, "final norm and head", e);
    return true;
}

static bool take_pipeline(console *g, qn_str msg, qn_err *e)
{
    const qn_str path = until(after(msg, "KernelPath: "), " ");
    char text[200];
    if (path.n) {
        snprintf(text, sizeof text, "{\"kernelPath\":\"%.*s\"}", (int)qn_minz(path.n, 100), path.p);
        if (!strpbrk(text + 15, "\\") && !set(g, &g->r->settings, (qn_str){ text, strlen(text) }, e)) return false;
    }
    const double layers = memmem(msg.p, msg.n, "heads (", 7) ? number(msg) : -1;
    if (layers > 0 && layers < 1e5) g->r->layers = (i64)layers;
    if (begins(msg, "Model loaded")) g->loaded = g->stamp;
    return true;
}

static bool take_tokenizer(console *g, qn_str msg, qn_err *e)
{
    if (begins(msg, "Loading")) g->load_begin = g->stamp;
    return begins(msg, "Loaded") ? end_load(g, "tokenizer", e) : true;
}

static bool take_module(console *g, qn_str module, qn_str msg, u64 at, qn_err *e)
{
    static const struct { const char *name; bool (*take)(console *, qn_str, qn_err *); } modules[] = {
        { "KernelSelect", take_select }, { "Loader", take_loader }, { "Pipeline", take_pipeline },
        { "Tokenizer", take_tokenizer },
    };
    if (module.n == 7 && !memcmp(module.p, "Profile", 7)) return take_profile(g, msg, at, e);
    if (module.n == 3 && !memcmp(module.p, "GPU", 3)) return set(g, &g->r->device, msg, e);
    if (module.n == 4 && !memcmp(module.p, "Perf", 4)) {
        if (g->ttft < 0) g->ttft = number_after(msg, "TTFT: ");
        if (g->prefill < 0) g->prefill = number_after(msg, "Prefill: ");
        if (g->decode < 0) g->decode = number_after(msg, "Decode: ");
        return true;
    }
    for (size_t i = 0; i < QN_COUNT(modules); i++)
        if (module.n == strlen(modules[i].name) && !memcmp(module.p, modules[i].name, module.n))
            return modules[i].take(g, msg, e);
    return true;
}

/* ---- the closing lines, more exact than [Perf] */

static void take_figure(qn_str s, const char *word, double *to)
{
    const double v = number_after(s, word);
    if (v >= 0) *to = v;
}

static bool take_metrics(console *g, qn_str s, qn_err *e)
{
    double prompt = -1, tokens = -1;
    if (begins(s, "prompt=") || begins(s, "tok/s")) return true;
    (void)e;
    take_figure(s, "load=", &g->load);
    take_figure(s, "ttft=", &g->ttft);
    take_figure(s, "first=", &g->ttft); /* as newer versions call it */
    take_figure(s, " prefill=", &g->prefill);
    take_figure(s, "decode=", &g->decode);
    take_figure(s, "total=", &g->total);
    take_figure(s, "prefillTokens=", &prompt);
    take_figure(s, "decodeTokens=", &tokens);
    if (prompt >= 0 && prompt < 1e9) g->prompt = (i64)prompt;
    if (tokens >= 0 && tokens < 1e9) g->tokens = (i64)tokens;
    return true;
}

static bool take_ok(console *g, qn_str s, qn_err *e)
{
    take_figure(s, "duration=", &g->duration);
    g->r->ended = true;
    const qn_str model = until(after(s, "model="), " ");
    g->r->status = number_after(s, "failed=") > 0 ? "failed" : "ok";
    return !model.n || set(g, &g->r->model, model, e);
}

/* ---- lines */

/* [browser:log] [190.3ms][Module] message; the stamp may be missing, the first bracket too. */
static bool take_line(console *g, const qn_line *line, qn_err *e)
{
    qn_str s = line->text;
    if (begins(s, "[ok] ") || begins(s, "[fail] ") || begins(s, "[error] ")) return take_ok(g, s, e);
    if (begins(s, "[metrics] ")) return take_metrics(g, skip(s, 10), e);
    if (begins(s, "[browser:")) {
        const qn_str rest = after(s, "] ");
        s = rest;
    }
    if (!begins(s, "[")) return g->in_table && s.n ? take_row(g, s, e) : true;
    const qn_str first = until(skip(s, 1), "]");
    const double stamp = first.n > 2 && !memcmp(first.p + first.n - 2, "ms", 2) ? number(skip(s, 1)) : -1;
    if (stamp >= 0) {
        if (stamp < g->stamp) g->r->ignored++; /* time went back: the line counts, its stamp does not */
        else g->stamp = stamp;
        s = skip(s, qn_minz(first.n + 2, s.n));
    }
    if (!begins(s, "[")) return true;
    const qn_str module = until(skip(s, 1), "]");
    qn_str msg = skip(s, qn_minz(module.n + 2, s.n));
    while (msg.n && msg.p[0] == ' ') msg = skip(msg, 1);
    return take_module(g, module, msg, line->at, e);
}

/* ---- the end */

static bool add_request(console *g, qn_err *e)
{
    if (g->tokens < 0 && g->ttft < 0 && g->decode < 0) return true;
    qn_run_request *q = QN_RUN_PUSH(&g->r->requests, e);
    if (!q) return false;
    *q = (qn_run_request){ .id = 1, .prompt = g->prompt > 0 ? g->prompt : 0, .stop = "", .first_ns = ns_of(g->ttft),
                           .tokens = g->tokens >= 0 ? g->tokens : (i64)g->r->phase_tokens[PHASE_decode],
                           .prompt_ns = ns_of(g->prefill), .decode_ns = ns_of(g->decode), .ns = ns_of(g->total) };
    return true;
}

/* The closing lines come last and say how long the prompt was and its pass took; now the positions are known. */
static void place_passes(console *g)
{
    qn_run *r = g->r;
    const i64 prompt = g->prompt > 0 ? g->prompt : 0;
    for (size_t i = 0; i < r->passes.n; i++) {
        qn_run_pass *p = &r->passes.p[i];
        if (p->phase == PHASE_decode) p->pos += prompt;
        else if (p->phase == PHASE_prefill) {
            p->rows = (int)prompt;
            const u64 end = (u64)p->t + p->ns, ns = ns_of(g->prefill);
            if (ns >= p->steps_ns && ns <= end) p->ns = ns, p->t = (i64)(end - ns);
        }
    }
    for (size_t i = 0; i < r->series.n; i++) { /* x was counted from the first token: x + prompt */
        qn_fit *f = &r->series.p[i].fit;
        const double d = (double)prompt, n = (double)f->n;
        f->sxx += 2 * d * f->sx + n * d * d;
        f->sxy += d * f->sy;
        f->sx += n * d;
    }
    r->phase_tokens[PHASE_prefill] = (u64)prompt;
}

static void sum_phases(console *g)
{
    qn_run *r = g->r;
    u64 of[N_PHASES] = { 0 }, sum = 0;
    for (size_t i = 0; i < r->passes.n; i++) of[r->passes.p[i].phase] += r->passes.p[i].ns;
    of[PHASE_load] = ns_of(g->load >= 0 ? g->load : g->loaded);
    if (g->prefill >= 0) of[PHASE_prefill] = ns_of(g->prefill);
    if (g->decode >= 0) of[PHASE_decode] = ns_of(g->decode);
    for (int i = 0; i < N_PHASES; i++) sum += of[i];
    r->wall_ns = ns_of(g->duration >= 0 ? g->duration : g->stamp);
    if (r->wall_ns < sum) r->wall_ns = sum;
    of[PHASE_other] += r->wall_ns - sum;
    memcpy(r->phase_ns, of, sizeof of);
}

static bool finish(console *g, qn_err *e)
{
    qn_run *r = g->r;
    if (g->in_table && g->sum_ns > 0) {
        if (!end_table(g, -1, e) || !qn_run_note(r, e, "the last table, at byte %" PRIu64 ", is cut", g->table_at)) return false;
    }
    place_passes(g);
    sum_phases(g);
    r->program = "Doppler";
    r->level = "step";
    if (!r->ended && !qn_run_note(r, e, "no closing line: the log was cut")) return false;
    if (r->series.n && !qn_run_note(r, e, "a table has the sums of one submission: what is counted are tables, not launches"))
        return false;
    return add_request(g, e);
}

bool qn_import_doppler(qn_import *im, qn_err *e)
{
    console g = { .r = qn_import_run(im, "doppler", e), .load_begin = -1, .duration = -1, .load = -1, .ttft = -1, .prefill = -1,
              .decode = -1, .total = -1, .prompt = -1, .tokens = -1 };
    qn_line line;
    if (!g.r) return false;
    for (qn_got got; (got = qn_import_line(im, &line, e)) != QN_GOT_END;)
        if (got == QN_GOT_ERROR || !take_line(&g, &line, e)) return false;
    return finish(&g, e);
}
