/* plan_names.c - steps by number. */
#include "report/plan_names.h"

#include "trace/reader.h"

static const qn_plan_step unknown = { .op = "", .role = "", .type = "", .layer = -1 };

static qn_plan_step *at(qn_plan_names *n, i64 step, qn_err *e)
{
    while (n->steps.n <= (size_t)step) {
        qn_plan_step *s = QN_RUN_PUSH(&n->steps, e);
        if (!s) return NULL;
        *s = unknown;
    }
    return &n->steps.p[step];
}

static const char *keep(qn_plan_names *n, qn_str s, qn_err *e) { return s.n ? qn_arena_strndup(&n->arena, s.p, s.n, e) : ""; }

/* "1", "2-8", "9+" */
static bool parse_rows(qn_str s, i64 *lo, i64 *hi)
{
    i64 v[2] = { 0, 0 };
    int n = 0;
    size_t i = 0;
    for (; i < s.n; i++) {
        if (s.p[i] >= '0' && s.p[i] <= '9' && v[n] < 1000000) v[n] = v[n] * 10 + (s.p[i] - '0');
        else if (s.p[i] == '-' && i && !n) n = 1;
        else break;
    }
    *lo = v[0];
    *hi = i < s.n && s.p[i] == '+' ? INT64_MAX : v[n];
    return *lo > 0 && *hi >= *lo;
}

static bool add_choice(qn_plan_names *n, qn_plan_step *s, const qn_ev_choice *c, qn_err *e)
{
    qn_plan_choice *out = &s->choice[s->n_choices];
    if (s->n_choices == QN_CHOICES_MOST || !parse_rows(c->rows, &out->lo, &out->hi)) return true;
    if (!(out->kernel = keep(n, c->kernel, e)) || !(out->reason = keep(n, c->reason, e))) return false;
    s->n_choices++;
    return true;
}

bool qn_plan_names_add(qn_plan_names *n, const qn_event *ev, qn_err *e)
{
    if (ev->kind != QN_EV_plan && ev->kind != QN_EV_choice) return true;
    const i64 step = ev->kind == QN_EV_plan ? ev->plan.step : ev->choice.step;
    if (step < 0 || step >= QN_STEPS_MOST) return true;
    qn_plan_step *s = at(n, step, e);
    if (!s) return false;
    if (ev->kind == QN_EV_choice) return add_choice(n, s, &ev->choice, e);
    const qn_ev_plan *p = &ev->plan;
    const char *op = keep(n, p->op, e), *role = op ? keep(n, p->role, e) : NULL, *type = role ? keep(n, p->type, e) : NULL;
    if (!type) return false;
    s->op = op;
    s->role = role;
    s->type = type;
    s->layer = p->layer >= 0 && p->layer < QN_STEPS_MOST ? (int)p->layer : -1;
    s->logits = p->logits != 0;
    return true;
}

const qn_plan_step *qn_plan_names_get(const qn_plan_names *n, i64 step)
{
    return step >= 0 && (size_t)step < n->steps.n ? &n->steps.p[step] : &unknown;
}

int qn_plan_choice_for(const qn_plan_step *s, i64 rows)
{
    for (int i = 0; i < s->n_choices; i++)
        if (rows >= s->choice[i].lo && rows <= s->choice[i].hi) return i;
    return -1;
}

const char *qn_plan_kernel(const qn_plan_step *s, i64 rows)
{
    const int i = qn_plan_choice_for(s, rows);
    return i < 0 ? "" : s->choice[i].kernel;
}

void qn_plan_names_close(qn_plan_names *n)
{
    qn_free(n->steps.p);
    qn_arena_close(&n->arena);
}

bool qn_trace_each(const char *path, qn_trace_event_fn fn, void *user, qn_err *e)
{
    qn_plan_names names = { 0 };
    qn_reader *r = qn_reader_open(path, false, e);
    qn_event ev;
    bool ok = r != NULL;
    for (int got; ok && (got = qn_reader_next(r, &ev, e)) != 0;)
        ok = got > 0 && (got == 2 || (qn_plan_names_add(&names, &ev, e) && fn(user, &names, &ev, e)));
    qn_reader_close(r);
    qn_plan_names_close(&names);
    return ok;
}
