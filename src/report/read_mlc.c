/* read_mlc.c - the tables of kernels that users of MLC make of a profile, in markdown or padded with blanks; one run each. The
 * tables have totals and no samples, and know no phase: both are read out of the names, which the compiler makes by rule.
 *   - Functions of one kind are numbered in the order of the model's text. The matrix products that end in _kernel_2 are those
 *     for many rows (prefill), the others are for one row (decode): in each, by number, qkv, o, gate+up, down; the fifth of the
 *     decode ones is the output head, which prefill uses too. A dequantizeN in front says the same (1..4; none: the head).
 *   - Of two rms_norm or split_silu_multiply the lower number is for many rows.
 * What runs in both phases is of phase "other": its share cannot be told. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/import.h"

#define KERNELS_MOST 256
#define CELLS 8

typedef struct row { char name[200]; u64 n; u64 total_ns, peak_ns; } row;

typedef struct table {
    qn_import *im;
    qn_run *r;              /* of the title that came last */
    int column[CELLS];      /* what each one is; -1: nothing of use */
    int n_columns;
    QN_RUN_LIST(row) rows;
} table;

enum { COL_name, COL_total, COL_count, COL_avg, COL_peak, COL_other };

/* ---- cells */

static int split(qn_str s, qn_str cell[CELLS])
{
    int n = 0;
    if (s.n && s.p[0] == '|') s.p++, s.n--;
    while (s.n && n < CELLS) {
        size_t k = 0, end;
        while (k < s.n && s.p[k] != '|') k++;
        end = k;
        size_t begin = 0;
        while (begin < end && s.p[begin] == ' ') begin++;
        while (end > begin && (s.p[end - 1] == ' ' || s.p[end - 1] == '\t')) end--;
        cell[n++] = (qn_str){ s.p + begin, end - begin };
        if (k < s.n) k++;
        s.p += k;
        s.n -= k;
    }
    while (n && !cell[n - 1].n) n--;
    return n;
}

static bool is(qn_str s, const char *word) { return s.n == strlen(word) && !memcmp(s.p, word, s.n); }

static bool has(const char *s, const char *word) { return strstr(s, word) != NULL; }

static int column_of(qn_str s)
{
    static const struct { const char *title; int column; } known[] = {
        { "Kernel Name", COL_name }, { "Iterations", COL_count },
        { "Total Time (ms)", COL_total }, { "Total_Time_ms", COL_total },
        { "Avg Time (ms)", COL_avg }, { "Avg_Time_ms", COL_avg }, { "Peak Time (ms)", COL_peak }, { "Peak_Time_ms", COL_peak },
    };
    for (size_t i = 0; i < QN_COUNT(known); i++)
        if (is(s, known[i].title)) return known[i].column;
    return COL_other;
}

static bool parse(qn_str s, double most, double *out)
{
    char text[40];
    if (s.n >= sizeof text) return false;
    memcpy(text, s.p, s.n);
    text[s.n] = 0;
    return qn_parse_double(text, 0, most, out);
}

/* ---- roles */

static int number_after(const char *name, const char *word)
{
    const char *p = strstr(name, word);
    int n = 0, digits = 0;
    if (!p) return -1;
    for (p += strlen(word); *p >= '0' && *p <= '9' && digits < 6; p++, digits++) n = 10 * n + (*p - '0');
    return digits ? n : 0;
}

static bool many_rows(const char *name) { return has(name, "_kernel_2") || has(name, "_kernel_1"); }

/* How many of the rows before by number are of its kind: 0 for the lowest. */
static int rank_of(const table *t, const row *self, const char *word, bool same_rows)
{
    const int mine = number_after(self->name, word);
    int rank = 0;
    for (size_t i = 0; i < t->rows.n; i++) {
        const int n = number_after(t->rows.p[i].name, word);
        rank += n >= 0 && n < mine && (!same_rows || many_rows(t->rows.p[i].name) == many_rows(self->name));
    }
    return rank;
}

static int count_of(const table *t, const char *word)
{
    int n = 0;
    for (size_t i = 0; i < t->rows.n; i++) n += has(t->rows.p[i].name, word);
    return n;
}

static void name_matmul(const table *t, const row *w, const char **role, qn_phase *phase)
{
    static const char *const parts[] = { "qkv", "o", "gate+up", "down", "lm_head" };
    const bool many = many_rows(w->name);
    const int quantised = number_after(w->name, "dequantize"), rank = rank_of(t, w, "NT_matmul", true);
    const int part = quantised >= 1 && quantised <= 4 ? quantised - 1 : quantised == 0 ? 4 : rank;
    *role = part < 5 ? parts[part] : "matmul";
    *phase = part == 4 ? PHASE_other : many ? PHASE_prefill : PHASE_decode;
}

typedef struct rule { const char *word, *op, *role; int phase; } rule; /* phase -1: the lower number is for many rows */

static void name_kernel(const table *t, const row *w, const char **op, const char **role, qn_phase *phase)
{
    static const rule rules[] = {
        { "batch_prefill_ragged", "attention", "attention: new tokens", PHASE_prefill },
        { "batch_prefill_paged", "attention", "attention: cached pages", PHASE_prefill },
        { "merge_state", "attention", "attention: merge", PHASE_prefill },
        { "batch_decode_paged", "attention", "attention", PHASE_decode },
        { "fuse_add_norm", "norm", "residual + norm", PHASE_other },
        { "rms_norm", "norm", "norm", -1 },
        { "silu", "silu", "silu(gate) x up", -1 },
        { "rope", "rope", "split qkv + rope", PHASE_other },
        { "kv_cache_transpose_append", "kv", "kv append", PHASE_other },
        { "take", "embed", "embedding", PHASE_other },
        { "index", "index", "last row", PHASE_prefill },
    };
    *op = *role = "";
    *phase = PHASE_other;
    if (has(w->name, "matmul")) {
        *op = "matmul";
        name_matmul(t, w, role, phase);
        return;
    }
    for (size_t i = 0; i < QN_COUNT(rules); i++) {
        if (!has(w->name, rules[i].word)) continue;
        *op = rules[i].op;
        *role = rules[i].role;
        if (rules[i].phase >= 0) *phase = (qn_phase)rules[i].phase;
        else if (count_of(t, rules[i].word) == 2) *phase = rank_of(t, w, rules[i].word, false) ? PHASE_decode : PHASE_prefill;
        return;
    }
}

/* ---- tables */

static bool end_table(table *t, qn_err *e)
{
    const size_t n = t->rows.n;
    for (size_t i = 0; i < n; i++) {
        const row *w = &t->rows.p[i];
        const char *op, *role;
        qn_phase phase;
        name_kernel(t, w, &op, &role, &phase);
        qn_series *s = qn_run_series(t->r, phase, w->name, op, role, t->r->type, -1, e);
        if (!s) return false;
        s->n += w->n;
        s->total_ns += w->total_ns;
        if (w->peak_ns > s->max_ns) s->max_ns = w->peak_ns;
        t->r->wall_ns += w->total_ns;
        t->r->phase_ns[phase] += w->total_ns;
    }
    t->rows.n = 0;
    t->n_columns = 0;
    return true;
}

static bool begin_run(table *t, qn_str title, qn_err *e)
{
    if (t->r && !end_table(t, e)) return false;
    t->r = qn_import_run(t->im, "mlc", e);
    if (!t->r) return false;
    t->r->program = "MLC";
    t->r->level = "step";
    t->r->ended = true;
    const char *on = memmem(title.p, title.n, " on ", 4);
    const qn_str what = { title.p, on ? (size_t)(on - title.p) : title.n };
    const char *blank = memrchr(what.p, ' ', what.n);
    const bool coded = blank && blank[1] == 'q' && blank + 2 < what.p + what.n && blank[2] >= '0' && blank[2] <= '9';
    const qn_str model = coded ? (qn_str){ what.p, (size_t)(blank - what.p) } : what;
    const qn_str type = coded ? (qn_str){ blank + 1, (size_t)(what.p + what.n - blank - 1) } : (qn_str){ "", 0 };
    const qn_str device = on ? (qn_str){ on + 4, (size_t)(title.p + title.n - on - 4) } : (qn_str){ "", 0 };
    return (t->r->model = qn_run_text(t->r, model, e)) && (t->r->type = qn_run_text(t->r, type, e))
        && (t->r->device = qn_run_text(t->r, device, e));
}

static bool take_heading(table *t, const qn_str *cell, int n, qn_err *e)
{
    if (t->rows.n && !end_table(t, e)) return false;
    bool total = false;
    t->n_columns = n;
    for (int i = 0; i < n; i++) total |= (t->column[i] = column_of(cell[i])) == COL_total;
    if (!total) t->n_columns = 0; /* the list of the ten is a part of the other table */
    else if (!t->r) return begin_run(t, (qn_str){ "", 0 }, e);
    return true;
}

static bool take_row(table *t, const qn_str *cell, int n, u64 at, qn_err *e)
{
    double total = -1, count = -1, peak = 0;
    qn_str name = { "", 0 };
    bool ok = true;
    for (int i = 0; i < n && i < t->n_columns; i++) {
        if (t->column[i] == COL_name) name = cell[i];
        else if (t->column[i] == COL_total) ok &= parse(cell[i], 1e12, &total);
        else if (t->column[i] == COL_count) ok &= parse(cell[i], 1e12, &count);
        else if (t->column[i] == COL_peak) ok &= parse(cell[i], 1e12, &peak);
    }
    if (!name.n || (name.p[0] == '-' && !ok) || (name.p[0] == ':' && !ok)) return true; /* the rule under the heading */
    if (!ok || total < 0 || count < 0 || t->rows.n == KERNELS_MOST) {
        t->r->bad++;
        return t->r->bad > 1 || qn_run_note(t->r, e, "the row at byte %" PRIu64 " makes no sense and was left out", at);
    }
    row *w = QN_RUN_PUSH(&t->rows, e);
    if (!w) return false;
    snprintf(w->name, sizeof w->name, "%.*s", (int)qn_minz(name.n, sizeof w->name - 1), name.p);
    w->n = (u64)count;
    w->total_ns = (u64)(total * 1e6 + 0.5);
    w->peak_ns = (u64)(peak * 1e6 + 0.5);
    return true;
}

static bool take_line(table *t, const qn_line *line, qn_err *e)
{
    static const char title[] = "Profiling Analysis:";
    qn_str cell[CELLS], s = line->text;
    const char *p = s.n && s.p[0] == '#' ? memmem(s.p, s.n, title, sizeof title - 1) : NULL;
    if (p) {
        qn_str rest = { p + sizeof title - 1, s.n - (size_t)(p - s.p) - (sizeof title - 1) };
        while (rest.n && rest.p[0] == ' ') rest.p++, rest.n--;
        while (rest.n && rest.p[rest.n - 1] == ' ') rest.n--;
        return begin_run(t, rest, e);
    }
    const int n = memchr(s.p, '|', s.n) ? split(s, cell) : 0;
    if (n >= 2 && column_of(cell[0]) == COL_name) return take_heading(t, cell, n, e);
    return n >= 2 && t->n_columns ? take_row(t, cell, n, line->at, e) : true;
}

bool qn_import_mlc(qn_import *im, qn_err *e)
{
    table t = { .im = im };
    qn_line line;
    bool ok = true;
    for (qn_got got; ok && (got = qn_import_line(im, &line, e)) != QN_GOT_END;) ok = got == QN_GOT_ONE && take_line(&t, &line, e);
    ok = ok && (!t.r || end_table(&t, e));
    qn_free(t.rows.p);
    if (ok && !im->runs->n) return qn_fail(e, QN_EFORMAT, "%s: no table of kernels in it", im->path);
    return ok;
}
