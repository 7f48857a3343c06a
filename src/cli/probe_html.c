/* probe_html.c - contests as one HTML file: what was measured as JSON, inside the page that reports share (report/page.h);
 * page/probe.js draws it. No figure is made there that is not here. */
#include <stdio.h>

#include "base/str.h"
#include "cli/probe.h"
#include "report/page.h"

static void put_variant(qn_buf *b, const qn_contest *c, int i)
{
    const qn_contender *k = &c->at[i];
    qn_buf_putc(b, '{');
    qn_put_text(b, "name", k->name);
    if (k->misses) {
        qn_put_text(b, "misses", k->misses);
        qn_buf_putc(b, '}');
        return;
    }
    qn_put_stats(b, "warm", &k->warm);
    qn_put_stats(b, "cold", &k->cold);
    qn_put_text(b, "isa", k->kernel ? qn_isa_name(k->kernel->isa) : "");
    if (k->rival) qn_put_text(b, "library", k->rival->version);
    qn_put_flag(b, "right", k->right);
    if (!k->right) qn_put_text(b, "why", k->why);
    qn_put_flag(b, "cached", k->cached);
    qn_put_flag(b, "best", i == c->best);
    qn_put_flag(b, "engine", i == c->chosen);
    qn_put_real(b, "max_abs", k->off.max_abs);
    qn_put_real(b, "max_rel", k->off.max_rel);
    qn_put_real(b, "nmse", k->off.nmse);
    qn_buf_putc(b, '}');
}

static void put_contest(qn_buf *b, const qn_probe_page *p, const qn_contest *c)
{
    qn_buf verdict = { 0 };
    qn_probe_verdict(&verdict, c);
    qn_buf_putc(&verdict, 0);
    qn_put_text(b, "spec", c->text);
    qn_put_text(b, "op", qn_ops[c->shape.op].name);
    qn_put_int(b, "bytes", c->cost.bytes);
    qn_put_int(b, "flops", c->cost.flops);
    qn_put_text(b, "by", c->by_cold ? "cold" : "warm");
    qn_put_real(b, "ceiling_ns", qn_probe_ceiling(p, c));
    qn_put_real(b, "engine_ns", c->engine_ns);
    qn_put_real(b, "parts_ns", c->parts_ns);
    qn_put_text(b, "verdict", verdict.failed ? "" : verdict.p);
    qn_put_key(b, "variants");
    qn_buf_putc(b, '[');
    for (int i = 0; i < c->n; i++) {
        if (i) qn_buf_putc(b, ',');
        put_variant(b, c, i);
    }
    qn_buf_putc(b, ']');
    b->failed = b->failed || verdict.failed;
    qn_buf_close(&verdict);
}

static void put_ceilings(qn_buf *b, const qn_ceilings *t)
{
    qn_put_key(b, "ceilings");
    qn_buf_putc(b, '{');
    qn_put_real(b, "read_gbs", t ? t->read_huge.p50 / 1e9 : 0);
    qn_put_real(b, "read_small_gbs", t ? t->read_small.p50 / 1e9 : 0);
    qn_put_real(b, "f32_gflops", t ? t->flops.p50 / 1e9 : 0);
    qn_put_real(b, "bf16_gflops", t && t->bf16.n ? t->bf16.p50 / 1e9 : 0);
    qn_put_real(b, "int8_gops", t ? t->int8.p50 / 1e9 : 0);
    qn_put_real(b, "barrier_us", t ? t->barrier_ns.p50 / 1e3 : 0);
    qn_buf_putc(b, '}');
}

static void put_libraries(qn_buf *b, const qn_rivals *r)
{
    qn_put_key(b, "baselines");
    qn_buf_putc(b, '[');
    for (int i = 0; r && i < r->n; i++) {
        char text[160];
        snprintf(text, sizeof text, "%.40s: %.96s", r->at[i].name, r->at[i].version);
        qn_put_string(b, text);
    }
    for (size_t i = 0; r && i < QN_COUNT(r->absent); i++)
        if (r->absent[i][0]) qn_put_string(b, r->absent[i]);
    qn_buf_putc(b, ']');
}

void qn_probe_html(qn_buf *out, const qn_probe_page *p, const qn_contest *all, int n)
{
    qn_buf b = { 0 };
    qn_buf_putc(&b, '{');
    qn_put_text(&b, "kind", "probe");
    qn_put_text(&b, "cpu", qn_cpu_name());
    qn_put_text(&b, "isa", qn_isa_name(qn_cpu_isa()));
    qn_put_int(&b, "threads", (u64)p->threads);
    qn_put_int(&b, "n_variants", (u64)p->n_variants);
    put_ceilings(&b, p->ceilings);
    put_libraries(&b, p->rivals);
    qn_put_key(&b, "specs");
    qn_buf_putc(&b, '[');
    for (int i = 0; i < n; i++) {
        qn_buf_puts(&b, i ? ",{" : "{");
        put_contest(&b, p, &all[i]);
        qn_buf_putc(&b, '}');
    }
    qn_buf_puts(&b, "]}");
    qn_page_write("quern probe", &b, out);
    qn_buf_close(&b);
}
