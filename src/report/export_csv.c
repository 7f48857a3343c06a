/* export_csv.c - events as rows of one table. Of our own traces every event that lasted or made a token, its columns being fields
 * of events.def by their names; of other programs' logs passes, tokens and series under the same columns. An empty cell is a
 * thing that the event does not have. */
#include <inttypes.h>
#include <string.h>

#include "report/export.h"
#include "report/plan_names.h"

/* Behind these stand op, role, kernel and layer, which a launch has from the plan. */
static const char *const columns[] = { "ns",    "phase", "pass",  "step",   "rows",   "pos",  "request", "index", "id",
                                       "bytes", "flops", "tokens", "prompt", "stop", "name", "rep" };
enum { COLUMNS = QN_COUNT(columns) };

static const qn_ev_kind kinds[] = { QN_EV_load, QN_EV_tokenize, QN_EV_pass, QN_EV_step, QN_EV_sample, QN_EV_token,
                                    QN_EV_done, QN_EV_test };

typedef const qn_ev_field *field_map[N_EV_KINDS][COLUMNS]; /* NULL: the event has no such thing */

static void put_text(qn_buf *b, qn_str s)
{
    bool quoted = false;
    for (size_t i = 0; i < s.n; i++) quoted |= s.p[i] == ',' || s.p[i] == '"' || s.p[i] == '\n' || s.p[i] == '\r';
    if (quoted) qn_buf_putc(b, '"');
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '"') qn_buf_putc(b, '"');
        qn_buf_putc(b, s.p[i]);
    }
    if (quoted) qn_buf_putc(b, '"');
}

static void put_name(qn_buf *b, const char *s)
{
    qn_buf_putc(b, ',');
    put_text(b, (qn_str){ s, strlen(s) });
}

static void find_fields(field_map map)
{
    for (size_t k = 0; k < QN_COUNT(kinds); k++) {
        const qn_ev_info *info = qn_ev_info_of(kinds[k]);
        for (int f = 0; f < info->n_fields; f++)
            for (size_t c = 0; c < COLUMNS; c++)
                if (!strcmp(info->fields[f].name, columns[c])) map[kinds[k]][c] = &info->fields[f];
    }
}

typedef struct rows { qn_export *x; field_map map; } rows;

static bool put_event(void *user, const qn_plan_names *names, const qn_event *ev, qn_err *e)
{
    const rows *all = user;
    const qn_ev_field *const *map = all->map[ev->kind];
    qn_buf *b = &all->x->out;
    bool any = false;
    for (size_t c = 0; c < COLUMNS; c++) any |= map[c] != NULL;
    if (!any) return true;
    qn_buf_printf(b, "%s,%" PRId64, qn_ev_info_of(ev->kind)->name, ev->t);
    for (size_t c = 0; c < COLUMNS; c++) {
        const qn_ev_field *f = map[c];
        qn_buf_putc(b, ',');
        const void *at = f ? (const char *)ev + f->offset : NULL;
        if (f && f->type == QN_EV_INT) qn_buf_printf(b, "%" PRId64, *(const i64 *)at);
        else if (f && f->type == QN_EV_STR) put_text(b, *(const qn_str *)at);
    }
    const qn_plan_step *p = ev->kind == QN_EV_step ? qn_plan_names_get(names, ev->step.step) : NULL;
    put_name(b, p ? p->op : "");
    put_name(b, p ? p->role : "");
    put_name(b, p ? qn_plan_kernel(p, ev->step.rows) : "");
    if (p && p->layer >= 0) qn_buf_printf(b, ",%d\n", p->layer);
    else qn_buf_puts(b, ",\n");
    return qn_export_flush(all->x, false, e);
}

/* ---- runs of other programs */

/* One value under its column, the others empty: fields are (name, value) until a NULL name. */
typedef struct cell { const char *column; i64 value; } cell;

static bool put_row(qn_export *x, const char *kind, i64 t, const char *phase, const cell *cells, const qn_series *s, qn_err *e)
{
    qn_buf *b = &x->out;
    qn_buf_puts(b, kind);
    if (t >= 0) qn_buf_printf(b, ",%" PRId64, t);
    else qn_buf_putc(b, ',');
    for (size_t c = 0; c < COLUMNS; c++) {
        qn_buf_putc(b, ',');
        if (!strcmp(columns[c], "phase")) qn_buf_puts(b, phase);
        for (const cell *v = cells; v->column; v++)
            if (!strcmp(v->column, columns[c])) qn_buf_printf(b, "%" PRId64, v->value);
    }
    put_name(b, s ? s->op : "");
    put_name(b, s ? s->role : "");
    put_name(b, s ? s->kernel : "");
    if (s && s->layer >= 0) qn_buf_printf(b, ",%d\n", s->layer);
    else qn_buf_puts(b, ",\n");
    return qn_export_flush(x, false, e);
}

static bool write_run(qn_export *x, qn_err *e)
{
    const qn_run *r = x->run;
    for (size_t i = 0; i < r->passes.n; i++) {
        const qn_run_pass *p = &r->passes.p[i];
        const cell cells[] = { { "ns", (i64)p->ns }, { "pass", p->number }, { "rows", p->rows }, { "pos", p->pos }, { 0 } };
        if (!put_row(x, "pass", p->t, qn_phase_names[p->phase], cells, NULL, e)) return false;
    }
    for (size_t i = 0; i < r->tokens.n; i++) {
        const qn_run_token *k = &r->tokens.p[i];
        const cell cells[] = { { "ns", (i64)k->ns }, { "request", k->request }, { "index", k->index }, { "pos", k->pos }, { 0 } };
        if (!put_row(x, "token", k->t, "", cells, NULL, e)) return false;
    }
    for (size_t i = 0; i < r->series.n; i++) { /* all launches of a series in one row: "rep" is their number */
        const qn_series *s = &r->series.p[i];
        const cell cells[] = { { "ns", (i64)s->total_ns }, { "rep", (i64)s->n }, { 0 } };
        if (!put_row(x, "series", -1, qn_phase_names[s->phase], cells, s, e)) return false;
    }
    return true;
}

bool qn_export_csv(qn_export *x, qn_err *e)
{
    qn_buf_puts(&x->out, "kind,t");
    for (size_t c = 0; c < COLUMNS; c++) qn_buf_printf(&x->out, ",%s", columns[c]);
    qn_buf_puts(&x->out, ",op,role,kernel,layer\n");
    if (strcmp(x->run->source, "quern")) return write_run(x, e);
    rows all = { .x = x };
    find_fields(all.map);
    return qn_trace_each(x->run->path, put_event, &all, e);
}
