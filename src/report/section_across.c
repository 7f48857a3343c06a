/* section_across.c - several runs side by side: what they are and how fast, then each role's time a launch in all of
 * them. For precisions of one model, or machines; intervals and verdicts are `quern compare`'s. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "report/analysis_parts.h"
#include "report/sections.h"

static const qn_column columns[] = {
    { "run", "run", UNIT_text, 0, 0, false },                  { "wall_ns", "ms", UNIT_ms, 2, 3, false },
    { "prefill_tok_s", "prefill tok/s", UNIT_real, 2, 2, false }, { "decode_tok_s", "decode tok/s", UNIT_real, 2, 0, false },
    { "token_ns", "ms/token", UNIT_ms, 2, 0, false },          { "prefill_call_ns", "prefill ms", UNIT_ms, 0, 1, false },
    { "head_ns", "LM head ms", UNIT_ms, 2, 2, false },         { "weight_bytes", "weights a token", UNIT_bytes, 0, 2,
                                                                 false },
    { "of_roof", "of bandwidth", UNIT_share, 0, 0, false },
};

static void put_runs(const qn_analysis *const *all, size_t n, qn_doc *d)
{
    qn_doc_table_begin(d, "runs", "", columns, QN_COUNT(columns));
    for (size_t i = 0; i < n; i++) {
        const qn_analysis *a = all[i];
        const qn_implied *m = &a->implied;
        const double tok_s = m->known ? m->tok_s : a->phases[PHASE_decode].tok_s;
        char label[96];
        qn_doc_text(d, qn_run_label(a->run, label));
        qn_doc_value(d, (double)a->wall_ns);
        qn_doc_known(d, a->phases[PHASE_prefill].tok_s, a->phases[PHASE_prefill].tok_s > 0);
        qn_doc_known(d, tok_s, tok_s > 0);
        qn_doc_known(d, tok_s > 0 ? 1e9 / tok_s : 0, tok_s > 0);
        qn_doc_known(d, m->prefill_ns, m->known);
        qn_doc_known(d, m->head_ns, m->known);
        qn_doc_known(d, m->weight_bytes, m->weight_bytes > 0);
        qn_doc_known(d, m->of_roof, m->of_roof > 0);
    }
}

/* ---- roles --------------------------------------------------------------------------------------------------------- */

enum { MOST_RUNS = 12 };
typedef struct line { const char *role; qn_phase phase; double avg_ns[MOST_RUNS], total_ns; } line;
typedef struct lines { line *p; size_t n, cap; } lines;

static bool add_rows(lines *ls, qn_table *seen, qn_arena *keys, const qn_analysis *a, size_t run, qn_arena *names)
{
    qn_rows rows = { 0 };
    qn_err e;
    bool ok = qn_rows_of(a, BY_role, false, names, &rows, &e);
    for (size_t i = 0; ok && i < rows.n; i++) {
        const qn_row *r = &rows.p[i];
        const size_t n = strlen(r->name);
        char *key = qn_arena_new(keys, n + 2, &e);
        if (!(ok = key != NULL)) break;
        key[0] = (char)('0' + r->phase);
        memcpy(key + 1, r->name, n);
        const u32 at = qn_table_put(seen, key, n + 1, (u32)ls->n, &e);
        line *l = at == QN_NONE ? NULL : at == ls->n ? QN_RUN_PUSH(ls, &e) : &ls->p[at];
        if (!(ok = l != NULL)) break;
        if (at + 1 == ls->n) l->role = r->name, l->phase = r->phase;
        l->avg_ns[run] = r->avg_ns;
        l->total_ns += (double)r->total_ns;
    }
    qn_free(rows.p);
    return ok;
}

static int by_total(const void *x, const void *y)
{
    const line *a = x, *b = y;
    return a->total_ns < b->total_ns ? 1 : a->total_ns > b->total_ns ? -1 : strcmp(a->role, b->role);
}

static const qn_column *make_columns(const qn_analysis *const *all, size_t n, qn_doc *d)
{
    qn_column *c = qn_arena_new(&d->arena, (n + 3) * sizeof *c, NULL);
    if (!c) return NULL;
    c[0] = (qn_column){ .key = "role", .head = "us a launch", .unit = UNIT_text };
    c[1] = (qn_column){ .key = "phase", .head = "phase", .unit = UNIT_text };
    for (size_t i = 0; i < n; i++) {
        char label[96];
        const char *name = qn_run_label(all[i]->run, label);
        const char *head = qn_arena_strndup(&d->arena, name, strlen(name), NULL);
        if (!head) return NULL;
        c[2 + i] = (qn_column){ .key = head, .head = head, .unit = UNIT_us, .decimals = 1 };
    }
    c[2 + n] = (qn_column){ .key = "ratio", .head = "last/first", .unit = UNIT_real, .decimals = 2 };
    return c;
}

static void put_roles(const qn_analysis *const *all, size_t n, qn_doc *d)
{
    lines ls = { 0 };
    qn_table seen = { 0 };
    qn_arena keys = { 0 };
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) ok = add_rows(&ls, &seen, &keys, all[i], i, &d->arena);
    const qn_column *c = ok ? make_columns(all, n, d) : NULL;
    if (!c) d->failed = true;
    if (c && ls.n) {
        qsort(ls.p, ls.n, sizeof *ls.p, by_total);
        qn_doc_table_begin(d, "roles", "", c, n + 3);
    }
    for (size_t i = 0; c && i < ls.n; i++) {
        const line *l = &ls.p[i];
        const double first = l->avg_ns[0], last = l->avg_ns[n - 1];
        qn_doc_text(d, l->role);
        qn_doc_text(d, qn_phase_names[l->phase]);
        for (size_t k = 0; k < n; k++) qn_doc_known(d, l->avg_ns[k], l->avg_ns[k] > 0);
        qn_doc_known(d, first > 0 ? last / first : 0, first > 0 && last > 0);
    }
    qn_free(ls.p);
    qn_table_close(&seen);
    qn_arena_close(&keys);
}

void qn_section_across(const qn_analysis *const *all, size_t n, qn_doc *d)
{
    if (n < 2) return;
    put_runs(all, n, d);
    if (n <= MOST_RUNS) put_roles(all, n, d);
}
