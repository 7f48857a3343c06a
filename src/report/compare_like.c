/* compare_like.c - whether two runs may be held against each other. What a comparison is made for may differ:
 * kernels, the type of the weights, the program. What would make the difference mean nothing may not: another
 * model, machine, thread count or work. */
#include <stdio.h>
#include <string.h>

#include "base/table.h"
#include "report/compare.h"

/* Both say it, and they say different things. */
static bool differ(const char *a, const char *b) { return a && b && a[0] && b[0] && strcmp(a, b); }

static bool says(char out[160], const char *what, const char *a, const char *b)
{
    snprintf(out, 160, "%s: %.50s and %.50s", what, a, b);
    return false;
}

static bool says_numbers(char out[160], const char *what, i64 a, i64 b)
{
    snprintf(out, 160, "%s: %lld and %lld", what, (long long)a, (long long)b);
    return false;
}

/* Equal files, or the same architecture, layers and number of weights in another type. */
static bool same_model(const qn_run *a, const qn_run *b, char out[160])
{
    if (differ(a->arch, b->arch)) return says(out, "other architectures", a->arch, b->arch);
    if (a->layers && b->layers && a->layers != b->layers)
        return says_numbers(out, "other numbers of layers", a->layers, b->layers);
    const double p = (double)a->params, q = (double)b->params;
    if (p > 0 && q > 0 && (p > 1.02 * q || q > 1.02 * p)) /* a tied output matrix may be stored apart */
        return says_numbers(out, "other numbers of weights", (i64)a->params, (i64)b->params);
    if (differ(a->hash, b->hash) && !differ(a->type, b->type)) return says(out, "other model files", a->model, b->model);
    if (differ(a->model, b->model) && !a->hash[0] && !differ(a->type, b->type))
        return says(out, "other models", a->model, b->model);
    return true;
}

static i64 prompt_of(const qn_run *r)
{
    i64 n = 0;
    for (size_t i = 0; i < r->requests.n; i++) n += r->requests.p[i].prompt - r->requests.p[i].cached;
    return n;
}

/* The time of steps whose place in the model both have, of all the steps' time of a. 1 when there are no steps, or
 * no memory to look: then nothing speaks against it. */
static double shared_time(const qn_run *a, const qn_run *b)
{
    qn_table places = { 0 };
    double all = 0, both = 0;
    bool ok = true;
    for (size_t i = 0; i < b->series.n && ok; i++)
        ok = qn_table_put(&places, b->series.p[i].role, strlen(b->series.p[i].role), (u32)i, NULL) != QN_NONE;
    for (size_t i = 0; i < a->series.n; i++) {
        const qn_series *s = &a->series.p[i];
        all += (double)s->total_ns;
        if (!s->role[0] || qn_table_get(&places, s->role, strlen(s->role)) != QN_NONE) both += (double)s->total_ns;
    }
    qn_table_close(&places);
    return ok && all > 0 && b->series.n ? both / all : 1;
}

static void note(qn_buf *notes, const char *what, const char *a, const char *b)
{
    if (notes && differ(a, b)) qn_buf_printf(notes, "%s: %.60s, then %.60s\n", what, a, b);
}

bool qn_run_is_like(const qn_run *a, const qn_run *b, char out[160], qn_buf *notes)
{
    out[0] = 0;
    if (strcmp(a->source, b->source)) return says(out, "logs of other programs", a->source, b->source);
    if (!same_model(a, b, out)) return false;
    if (differ(a->device, b->device)) return says(out, "other devices", a->device, b->device);
    if (differ(a->cpu, b->cpu)) return says(out, "other processors", a->cpu, b->cpu);
    if (a->threads && b->threads && a->threads != b->threads)
        return says_numbers(out, "other numbers of threads", a->threads, b->threads);
    const i64 p = prompt_of(a), q = prompt_of(b);
    if (p > 0 && q > 0 && (10 * p > 11 * q || 10 * q > 11 * p)) return says_numbers(out, "prompts of other lengths", p, q);
    const double shared = shared_time(a, b);
    if (shared < 0.5) {
        snprintf(out, 160, "other plans: steps that hold %.0f %% of the first run's time are not in the second",
                 100 * (1 - shared));
        return false;
    }
    note(notes, "weights", a->type, b->type);
    note(notes, "instruction set", a->isa, b->isa);
    note(notes, "program", a->program, b->program);
    note(notes, "commit", a->commit, b->commit);
    note(notes, "host", a->host, b->host);
    if (notes && differ(a->plan_hash, b->plan_hash)) qn_buf_puts(notes, "the plans use other kernels\n");
    if (notes && p != q && p > 0 && q > 0) qn_buf_printf(notes, "prompts: %lld, then %lld tokens\n", (long long)p, (long long)q);
    return true;
}

const char *qn_run_title(const qn_run *r, char out[80])
{
    const char *slash = strrchr(r->path, '/'), *name = slash ? slash + 1 : r->path;
    if (!name[0]) name = r->model;
    snprintf(out, 80, "%.50s%s%.24s", name, r->type[0] ? ", " : "", r->type);
    return out;
}
