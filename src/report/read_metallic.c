/* read_metallic.c - Metallic's metrics as a run. A GpuOpCompleted is a launch; its path has the phase, the block, the stage and
 * the kernel. An iteration_total is a token, and its pass: the first one holds the prompt. Waits, command buffers and host spans
 * lie over each other, so they are in no sum here; only where a phase has no launches at all (the cheap mode) its command buffers
 * stand for them. `--format metallic` prints all of it from the log itself. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "report/import.h"
#include "report/metallic.h"

#define LONGEST_US ((u64)1e13) /* four months */

typedef struct gathering {
    qn_run *r;
    QN_RUN_LIST(u64) buffers[N_PHASES]; /* ns of command buffers */
    qn_table chosen;
    double first, last;     /* seconds; of the time stamps */
    u64 pass_ns;            /* of launches since the pass before */
    u64 spans;              /* host spans that are in no sum */
    u64 bad_at;
    char bad_why[120];
} gathering;

static bool contains(qn_str s, const char *word) { return memmem(s.p, s.n, word, strlen(word)) != NULL; }

static bool ends(qn_str s, const char *word)
{
    const size_t n = strlen(word);
    return s.n >= n && !memcmp(s.p + s.n - n, word, n);
}

static bool equals(qn_str s, const char *word) { return s.n == strlen(word) && ends(s, word); }

/* Seconds of "2025-12-18T10:11:12.345678Z"; < 0: none. */
static double seconds_of(qn_str s)
{
    char text[48];
    struct tm tm = { 0 };
    if (s.n < 19 || s.n >= sizeof text) return -1;
    memcpy(text, s.p, s.n);
    text[s.n] = 0;
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    if (!rest) return -1;
    double sub = 0;
    size_t n = *rest == '.' ? 1 + strspn(rest + 1, "0123456789") : 0;
    char fraction[16];
    snprintf(fraction, sizeof fraction, "0%.*s", (int)qn_minz(n, 10), rest);
    if (n > 1) qn_parse_double(fraction, 0, 1, &sub);
    return (double)timegm(&tm) + sub;
}

/* ---- launches */

static qn_phase phase_of(qn_str op)
{
    if (op.n >= 15 && !memcmp(op.p, "Generation Loop", 15)) return PHASE_decode;
    if (op.n >= 17 && !memcmp(op.p, "Prompt Processing", 17)) return PHASE_prefill;
    return op.n >= 14 && !memcmp(op.p, "tensor_staging", 14) ? PHASE_load : PHASE_other;
}

static int layer_of(qn_str op)
{
    const char *p = memmem(op.p, op.n, "block_", 6), *end = op.p + op.n;
    int n = 0;
    if (!p || (p += 6) >= end || *p < '0' || *p > '9') return -1;
    for (; p < end && *p >= '0' && *p <= '9' && n < 100000; p++) n = 10 * n + (*p - '0');
    return n;
}

/* The stage without its block: mlp_swiglu of .../mlp_swiglu_block_3_op/... */
static qn_str role_of(qn_str op)
{
    for (size_t i = 0; i < op.n;) {
        size_t n = 0;
        while (i + n < op.n && op.p[i + n] != '/') n++;
        const qn_str part = { op.p + i, n };
        const char *block = memmem(part.p, part.n, "_block_", 7);
        if (block && ends(part, "_op")) return (qn_str){ part.p, (size_t)(block - part.p) };
        i += n + 1;
    }
    return (qn_str){ "", 0 };
}

static qn_str kernel_of(qn_str op)
{
    const char *slash = memrchr(op.p, '/', op.n);
    return slash ? (qn_str){ slash + 1, (size_t)(op.p + op.n - slash - 1) } : op;
}

static bool add_launch(gathering *g, const qn_metallic_event *ev, qn_err *e)
{
    qn_run *r = g->r;
    const qn_str name = kernel_of(ev->op);
    const char *kernel = qn_run_text(r, name, e), *role = kernel ? qn_run_text(r, role_of(ev->op), e) : NULL;
    if (!role) return false;
    const char *op = ev->n_data && contains(ev->op, "matmul") ? "matmul" : "";
    const char *type = ends(name, "(Q)") ? "Q" : ends(name, "(D)") ? "D" : "";
    const qn_phase phase = phase_of(ev->op);
    qn_series *s = qn_run_series(r, phase, kernel, op, role, type, layer_of(ev->op), e);
    if (phase == PHASE_prefill || phase == PHASE_decode) g->pass_ns += ev->us * 1000;
    return s && qn_series_add(s, ev->us * 1000, e);
}

static bool add_op(gathering *g, const qn_metallic_event *ev, qn_err *e)
{
    if (!ev->op.n || !ev->timed) return true;
    if (contains(ev->op, "cb_wait") || ends(ev->op, "wait") || contains(ev->op, "CB Wait")) return true;
    if (!contains(ev->op, "/cb_gpu")) return contains(ev->op, "foundry_capture#") ? true : add_launch(g, ev, e);
    u64 *slot = QN_RUN_PUSH(&g->buffers[phase_of(ev->op)], e);
    if (slot) *slot = ev->us * 1000;
    return slot != NULL;
}

/* ---- tokens */

static bool add_iteration(gathering *g, u64 ns, qn_err *e)
{
    qn_run *r = g->r;
    const bool first = r->tokens.n == 0;
    const i64 t = r->tokens.n ? r->tokens.p[r->tokens.n - 1].t : 0;
    qn_run_token *token = QN_RUN_PUSH(&r->tokens, e);
    qn_run_pass *pass = token ? QN_RUN_PUSH(&r->passes, e) : NULL;
    if (!pass) return false;
    *token = (qn_run_token){ .t = t + (i64)ns, .ns = ns, .request = 1, .index = (i64)r->tokens.n - 1 };
    *pass = (qn_run_pass){ .t = t, .number = (i64)r->passes.n, .ns = ns, .steps_ns = g->pass_ns < ns ? g->pass_ns : ns,
                           .phase = first ? PHASE_prefill : PHASE_decode, .rows = 1, .seqs = 1, .pos = (i64)r->passes.n - 1 };
    r->phase_ns[pass->phase] += ns;
    r->phase_tokens[pass->phase]++;
    g->pass_ns = 0;
    return true;
}

static bool add_host(gathering *g, const qn_metallic_event *ev, qn_err *e)
{
    if (!ev->timed) return true;
    if (equals(ev->parent, "generation_loop") && equals(ev->kernel, "iteration_total")) return add_iteration(g, ev->us * 1000, e);
    g->spans++;
    return true;
}

/* ---- the rest */

static bool add_choice(gathering *g, const qn_metallic_event *ev, qn_err *e)
{
    char key[256];
    const int n = snprintf(key, sizeof key, "%.*s\n%.*s\n%.*s", (int)qn_minz(ev->op.n, 80), ev->op.p ? ev->op.p : "",
                           (int)qn_minz(ev->backend.n, 80), ev->backend.p ? ev->backend.p : "", (int)qn_minz(ev->reason.n, 80),
                           ev->reason.p ? ev->reason.p : "");
    if (qn_table_get(&g->chosen, key, (size_t)n) != QN_NONE) return true;
    const char *kept = qn_arena_strndup(&g->r->arena, key, (size_t)n, e);
    if (!kept || qn_table_put(&g->chosen, kept, (size_t)n, 1, e) == QN_NONE) return false;
    qn_run_choice *c = QN_RUN_PUSH(&g->r->choices, e);
    if (!c) return false;
    *c = (qn_run_choice){ .step = -1, .role = "", .rows = "", .rejected = "", .op = "", .kernel = "", .reason = "" };
    const char *op = qn_run_text(g->r, ev->op, e), *kernel = op ? qn_run_text(g->r, ev->backend, e) : NULL;
    const char *reason = kernel ? qn_run_text(g->r, ev->reason, e) : NULL;
    if (!reason) return false;
    c->op = op;
    c->kernel = kernel;
    c->reason = reason;
    return true;
}

static u64 bytes_of(const qn_metallic_event *ev, const char *name)
{
    yyjson_val *v = yyjson_obj_get(ev->members, name);
    return yyjson_is_uint(v) ? yyjson_get_uint(v) : 0;
}

/* Only the first and the latest are kept: there may be ten a second. */
static bool add_memory(gathering *g, const qn_metallic_event *ev, qn_err *e)
{
    qn_run *r = g->r;
    qn_run_memory *m = r->memory.n < 2 ? QN_RUN_PUSH(&r->memory, e) : &r->memory.p[1];
    if (!m) return false;
    const u64 resident = bytes_of(ev, "total_bytes"), peak = m->peak > r->memory.p[0].peak ? m->peak : r->memory.p[0].peak;
    *m = (qn_run_memory){ .when = r->memory.n == 1 ? "loaded" : "end", .parts = "", .weights = r->model_bytes,
                          .kv = bytes_of(ev, "kv_pool_reserved_bytes"), .kv_used = bytes_of(ev, "kv_pool_used_bytes"),
                          .scratch = bytes_of(ev, "tensor_pool_reserved_bytes"), .resident = resident,
                          .peak = resident > peak ? resident : peak };
    return true;
}

static bool take_event(void *user, const qn_metallic_event *ev, qn_err *e)
{
    gathering *g = user;
    const double t = ev->when.n ? seconds_of(ev->when) : -1;
    if (t >= 0 && g->first < 0) g->first = t;
    if (t > g->last) g->last = t;
    if (ev->timed ? ev->us > LONGEST_US : yyjson_obj_get(ev->members, "duration_us") != NULL) {
        g->r->ignored++; /* below zero, or longer than any run */
        return true;
    }
    if (!strcmp(ev->type, "GpuOpCompleted")) return add_op(g, ev, e);
    if (!strcmp(ev->type, "InternalKernelCompleted")) return add_host(g, ev, e);
    if (!strcmp(ev->type, "KernelBackendSelected")) return add_choice(g, ev, e);
    if (!strcmp(ev->type, "HostMemory")) return add_memory(g, ev, e);
    if (!strcmp(ev->type, "ModelWeights")) g->r->model_bytes = bytes_of(ev, "total_bytes");
    else if (!strcmp(ev->type, "GgufFileMmap") && !g->r->model_bytes) g->r->model_bytes = bytes_of(ev, "size_bytes");
    return true;
}

/* ---- the end */

static bool add_buffers(gathering *g, qn_err *e)
{
    for (int phase = 0; phase < N_PHASES; phase++) {
        bool launches = false;
        for (size_t i = 0; i < g->r->series.n; i++) launches |= g->r->series.p[i].phase == (qn_phase)phase;
        for (size_t i = 0; !launches && i < g->buffers[phase].n; i++) {
            qn_series *s = qn_run_series(g->r, (qn_phase)phase, "command buffer", "command buffer", "", "", -1, e);
            if (!s || !qn_series_add(s, g->buffers[phase].p[i], e)) return false;
        }
    }
    return true;
}

static bool add_request(qn_run *r, qn_err *e)
{
    qn_run_request *q = r->tokens.n ? QN_RUN_PUSH(&r->requests, e) : NULL;
    if (!q) return e->code == QN_OK;
    *q = (qn_run_request){ .id = 1, .tokens = (i64)r->tokens.n, .stop = "", .first_ns = r->phase_ns[PHASE_prefill],
                           .prompt_ns = r->phase_ns[PHASE_prefill], .decode_ns = r->phase_ns[PHASE_decode] };
    q->ns = q->prompt_ns + q->decode_ns;
    return true;
}

static bool finish(gathering *g, qn_err *e)
{
    qn_run *r = g->r;
    u64 sum = 0;
    if (!add_buffers(g, e) || !add_request(r, e)) return false;
    for (size_t i = 0; i < r->series.n; i++)
        if (r->series.p[i].phase == PHASE_load) r->phase_ns[PHASE_load] += r->series.p[i].total_ns;
    for (int i = 0; i < N_PHASES; i++) sum += r->phase_ns[i];
    const double wall = g->first >= 0 ? g->last - g->first : 0;
    r->wall_ns = wall > 0 && wall < 1e8 && wall * 1e9 > (double)sum ? (u64)(wall * 1e9) : sum;
    r->phase_ns[PHASE_other] += r->wall_ns - sum;
    r->program = "Metallic";
    r->level = "step";
    r->ended = true; /* such a log has no end of its own */
    if (r->bad && !qn_run_note(r, e, "%" PRIu64 " damaged record%s, the first at byte %" PRIu64 ": %s", r->bad,
                               r->bad == 1 ? "" : "s", g->bad_at, g->bad_why)) return false;
    if (g->spans && !qn_run_note(r, e, "%" PRIu64 " host spans lie inside each other and are in no sum; see --format metallic",
                                 g->spans)) return false;
    return true;
}

static bool blank(qn_str s)
{
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t')) s.n--;
    return s.n == 0;
}

static bool take_line(gathering *g, const qn_line *line, qn_err *e)
{
    qn_err why = { 0 };
    if (blank(line->text)) return true;
    if (!qn_metallic_take(line->text, take_event, g, &why, e)) return false;
    if (!why.code) return true;
    if (!line->whole) return qn_run_note(g->r, e, "1 cut record at byte %" PRIu64, line->at);
    if (g->r->bad++ == 0) {
        g->bad_at = line->at;
        snprintf(g->bad_why, sizeof g->bad_why, "%.119s", why.msg);
    }
    return true;
}

bool qn_import_metallic(qn_import *im, qn_err *e)
{
    gathering g = { .r = qn_import_run(im, "metallic", e), .first = -1, .last = -1 };
    qn_line line;
    bool ok = g.r != NULL;
    for (qn_got got; ok && (got = qn_import_line(im, &line, e)) != QN_GOT_END;) ok = got == QN_GOT_ONE && take_line(&g, &line, e);
    ok = ok && finish(&g, e);
    for (int i = 0; i < N_PHASES; i++) qn_free(g.buffers[i].p);
    qn_table_close(&g.chosen);
    return ok;
}
