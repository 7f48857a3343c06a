/* probe_device.c - `quern probe --device cuda`: the linears of a model, or shapes that are named, on a GPU, beside cuBLAS. */
#include <stdio.h>

#include "base/mem.h"
#include "cli/probe.h"
#include "cli/tracing.h"
#include "probe/device.h"
#include "probe/device_contest.h"

/* What is probed when nothing else is said: a layer of a 1B model and its vocabulary, as types that people use. */
static const char *const matrices[] = {
    "type=f16 rows=2048 cols=2048", "type=f16 rows=8192 cols=2048", "type=f16 rows=2048 cols=8192", "type=f16 rows=128256 "
                                                                                                    "cols=2048",
    "type=q8_0 rows=8192 cols=2048", "type=q4_0 rows=8192 cols=2048", "type=q4_k rows=8192 cols=2048", "type=q6_k "
                                                                                                       "rows=8192 cols=2048",
};
static const int rows[] = { 1, 8, 64, 512 }; /* a token, some sequences, many, a prompt */

typedef struct stand {
    qn_cli *c;
    const qn_probe_device *a;
    qn_specs specs;
    qn_rivals rivals;
    qn_device_fair *fair;
    qn_contest *all;
    int n, wrong;
    qn_ceilings ceilings;
    qn_probe_page page;
    qn_bar bar;
} stand;

static bool add_matrix(qn_specs *s, const char *sizes, qn_err *e)
{
    char text[QN_SHAPE_TEXT + 32];
    for (size_t i = 0; i < QN_COUNT(rows); i++) {
        snprintf(text, sizeof text, "op=linear n=%d %s", rows[i], sizes);
        if (!qn_specs_add_text(s, text, e)) return false;
    }
    return true;
}

/* The matrices of a model's plan, each with our numbers of rows. */
static bool add_model(stand *f, const char *name, qn_err *e)
{
    const qn_engine_args engine = { .device = "cpu", .no_tuning = true, .no_repack = true };
    qn_specs all = { 0 };
    bool ok = qn_specs_add_model(f->c, &all, name, &engine, e);
    qn_specs_filter(&all, OP_linear, -1);
    for (int i = 0; ok && i < all.n; i++) {
        char text[QN_SHAPE_TEXT];
        qn_shape s = all.at[i].shape;
        s.args.linear.bias = NULL;
        qn_shape_print(&s, false, text);
        ok = add_matrix(&f->specs, text, e);
    }
    qn_specs_close(&all);
    return ok;
}

static bool gather(stand *f, qn_err *e)
{
    const qn_probe_device *a = f->a;
    for (int i = 0; i < a->specs->n; i++)
        if (!qn_specs_add_text(&f->specs, a->specs->at[i], e)) return false;
    if (f->c->n_args && !add_model(f, f->c->args[0], e)) return false;
    for (size_t i = 0; !a->specs->n && !f->c->n_args && i < QN_COUNT(matrices); i++)
        if (!add_matrix(&f->specs, matrices[i], e)) return false;
    qn_specs_filter(&f->specs, OP_linear, a->type);
    return f->specs.n || qn_fail(e, QN_EUSAGE, "no shape is a linear of this type");
}

static bool open_all(stand *f, qn_err *e)
{
    const qn_engine_args engine = { .device = f->a->device };
    char note[240] = "";
    f->fair = qn_device_fair_open(f->a->device, &f->rivals, e);
    f->all = f->fair ? qn_new_array((size_t)f->specs.n, sizeof *f->all, e) : NULL;
    if (!f->all || !qn_cli_need_ceilings(f->c, &engine, e)) return false;
    const bool known = qn_cli_kept_ceilings(&engine, &f->ceilings, note);
    f->page = (qn_probe_page){ .c = f->c, .format = f->a->format, .ceilings = known ? &f->ceilings : NULL,
                               .all_failures = f->a->all_failures, .n_specs = f->specs.n, .n_variants = 3 + f->rivals.n,
                               .rivals = &f->rivals };
    return true;
}

static bool show(qn_buf *b)
{
    const bool ok = !b->failed && qn_cli_write(b->p, b->n) && qn_cli_flush();
    b->n = 0;
    return ok;
}

static bool hold_all(stand *f, qn_err *e)
{
    const qn_contest_opts o = { .seconds = f->a->seconds, .seed = f->a->seed, .progress = qn_bar_show, .user = &f->bar };
    qn_buf b = { 0 };
    bool ok = true;
    qn_probe_print_head(&b, &f->page);
    bool heard = show(&b);
    for (int i = 0; ok && heard && i < f->specs.n; i++) {
        qn_bar_open(&f->bar, f->c);
        ok = qn_device_contest(f->fair, &f->specs.at[i].shape, &o, &f->all[f->n++], e);
        qn_bar_close(&f->bar);
        for (int k = 0; ok && k < f->all[i].n; k++) f->wrong += f->all[i].at[k].checked && !f->all[i].at[k].right;
        if (ok) qn_probe_print(&b, &f->page, &f->all[i], i + 1);
        heard = show(&b);
    }
    if (ok && heard) {
        qn_probe_print_tail(&b, &f->page, f->all, f->n);
        show(&b);
    }
    qn_buf_close(&b);
    return ok;
}

int qn_probe_on_device(qn_cli *c, const qn_probe_device *a)
{
    stand f = { .c = c, .a = a };
    qn_err e = { 0 };
    qn_interrupt_polled(true);
    const bool ok = gather(&f, &e) && open_all(&f, &e) && hold_all(&f, &e);
    qn_interrupt_polled(false);
    for (int i = 0; i < f.n; i++) qn_contest_close(&f.all[i]);
    qn_free(f.all);
    qn_device_fair_close(f.fair);
    qn_specs_close(&f.specs);
    if (!ok) return qn_cli_fail(c, &e);
    if (f.wrong) qn_cli_note(c, "%d variants are wrong", f.wrong);
    return f.wrong ? QN_EXIT_FAIL : QN_EXIT_OK;
}
