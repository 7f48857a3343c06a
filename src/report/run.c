/* run.c - the run as a container: texts kept once, series found by their names in constant time, lists that grow. */
#include "report/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const qn_phase_names[N_PHASES] = { "load", "tokenize", "prefill", "decode", "sample", "other" };

qn_run *qn_run_new(const char *source, const char *path, qn_err *e)
{
    qn_run *r = qn_new(sizeof *r, e);
    if (!r) return NULL;
    r->source = source;
    r->path = qn_run_text(r, (qn_str){ path, strlen(path) }, e);
    r->program = r->commit = r->command = r->started = r->level = r->host = r->os = r->cpu = r->device = r->isa = "";
    r->model = r->model_path = r->arch = r->type = r->hash = r->plan_hash = r->settings = r->status = "";
    if (r->path) return r;
    qn_run_close(r);
    return NULL;
}

void qn_run_close(qn_run *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->series.n; i++) qn_free(r->series.p[i].ns);
    qn_free(r->series.p);
    qn_free(r->passes.p);
    qn_free(r->tokens.p);
    qn_free(r->loads.p);
    qn_free(r->memory.p);
    qn_free(r->tests.p);
    qn_free(r->requests.p);
    qn_free(r->choices.p);
    qn_free(r->spans.p);
    qn_free(r->notes.p);
    qn_free(r->all_texts.p);
    qn_table_close(&r->texts);
    qn_table_close(&r->index);
    qn_arena_close(&r->arena);
    qn_free(r);
}

/* Half as much again each time: what is never used is a third at most, and a long run has many such arrays. The pointer is
 * copied byte by byte, because its type is not known here. */
static bool grow(void *pointer, size_t n, size_t *cap, size_t size, qn_err *e)
{
    void *p;
    size_t more = *cap + *cap / 2 + 8, bytes;
    if (n < *cap) return true;
    if (more < *cap || !qn_mul(more, size, &bytes)) return qn_fail(e, QN_ENOMEM, "out of memory: %zu entries", n);
    memcpy(&p, pointer, sizeof p);
    if (!(p = qn_resize(p, bytes, e))) return false;
    memcpy(pointer, &p, sizeof p);
    *cap = more;
    return true;
}

void *qn_run_push(void *pointer, size_t *n, size_t *cap, size_t size, qn_err *e)
{
    char *p;
    if (!grow(pointer, *n, cap, size, e)) return NULL;
    memcpy(&p, pointer, sizeof p);
    return memset(p + (*n)++ * size, 0, size);
}

const char *qn_run_text(qn_run *r, qn_str s, qn_err *e)
{
    if (s.n == 0) return "";
    const u32 known = qn_table_get(&r->texts, s.p, s.n);
    if (known != QN_NONE) return r->all_texts.p[known];
    const char **slot = QN_RUN_PUSH(&r->all_texts, e);
    if (!slot) return NULL;
    const char *copy = qn_arena_strndup(&r->arena, s.p, s.n, e);
    if (copy && qn_table_put(&r->texts, copy, s.n, (u32)(r->all_texts.n - 1), e) != QN_NONE) {
        *slot = copy;
        return copy;
    }
    r->all_texts.n--;
    return NULL;
}

bool qn_run_note(qn_run *r, qn_err *e, const char *fmt, ...)
{
    char text[320];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const char *kept = qn_run_text(r, (qn_str){ text, strlen(text) }, e);
    const char **slot = kept ? QN_RUN_PUSH(&r->notes, e) : NULL;
    if (slot) *slot = kept;
    return slot != NULL;
}

/* ---- series */

typedef struct key { const char *text[4]; i64 phase, layer; } key; /* texts are kept once, so their places tell them apart */

qn_series *qn_run_series(qn_run *r, qn_phase phase, const char *kernel, const char *op, const char *role,
                         const char *type, int layer, qn_err *e)
{
    const char *const given[4] = { kernel, op, role, type };
    key k = { .phase = phase, .layer = layer };
    for (int i = 0; i < 4; i++)
        if (!(k.text[i] = qn_run_text(r, (qn_str){ given[i], strlen(given[i]) }, e))) return NULL;
    const u32 known = qn_table_get(&r->index, (const char *)&k, sizeof k);
    if (known != QN_NONE) return &r->series.p[known];
    key *kept = qn_arena_new(&r->arena, sizeof k, e);
    if (!kept) return NULL;
    *kept = k;
    qn_series *s = QN_RUN_PUSH(&r->series, e);
    if (!s) return NULL;
    if (qn_table_put(&r->index, (const char *)kept, sizeof k, (u32)(r->series.n - 1), e) == QN_NONE) {
        r->series.n--;
        return NULL;
    }
    s->kernel = k.text[0];
    s->op = k.text[1];
    s->role = k.text[2];
    s->type = k.text[3];
    s->layer = layer;
    s->phase = phase;
    return s;
}

bool qn_series_add(qn_series *s, u64 ns, qn_err *e)
{
    if (s->n_samples == s->cap && !grow(&s->ns, s->n_samples, &s->cap, sizeof *s->ns, e)) return false;
    s->ns[s->n_samples++] = ns;
    if (s->n == 0 || ns < s->min_ns) s->min_ns = ns;
    if (ns > s->max_ns) s->max_ns = ns;
    s->total_ns += ns;
    s->n++;
    return true;
}

void qn_fit_add(qn_fit *f, double x, double y)
{
    f->n++;
    f->sx += x;
    f->sy += y;
    f->sxx += x * x;
    f->sxy += x * y;
    f->syy += y * y;
}
