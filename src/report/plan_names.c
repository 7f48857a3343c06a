/* plan_names.c - steps by number. */
#include "report/plan_names.h"

#include "report/analysis_parts.h"

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

static bool add_choice(qn_plan_names *n, qn_plan_step *s, const qn_ev_choice *c, qn_err *e)
{
    if (s->n_choices == QN_CHOICES_MOST) return true;
    qn_rows_parse(c->rows, &s->choice[s->n_choices].lo, &s->choice[s->n_choices].hi);
    return (s->choice[s->n_choices++].kernel = keep(n, c->kernel, e)) != NULL;
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
    s->layer = p->layer >= 0 && p->layer < QN_STEPS_MOST ? (int)p->layer : -1;
    s->logits = p->logits != 0;
    return (s->op = keep(n, p->op, e)) && (s->role = keep(n, p->role, e)) && (s->type = keep(n, p->type, e));
}

const qn_plan_step *qn_plan_names_get(const qn_plan_names *n, i64 step)
{
    return step >= 0 && (size_t)step < n->steps.n ? &n->steps.p[step] : &unknown;
}

int qn_plan_choice(const qn_plan_step *s, i64 rows)
{
    for (int i = 0; i < s->n_choices; i++)
        if (rows >= s->choice[i].lo && rows <= s->choice[i].hi) return i;
    return -1;
}

const char *qn_plan_kernel(const qn_plan_step *s, i64 rows)
{
    const int i = qn_plan_choice(s, rows);
    return i < 0 ? "" : s->choice[i].kernel;
}

void qn_plan_names_close(qn_plan_names *n)
{
    qn_free(n->steps.p);
    qn_arena_close(&n->arena);
}
