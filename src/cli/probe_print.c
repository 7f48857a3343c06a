/* probe_print.c - contests as tables, in the layout of other probes' output ("seed"), as JSON lines and as CSV; as a page:
 * probe_html.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/probe.h"

double qn_probe_ceiling(const qn_probe_page *p, const qn_contest *c)
{
    const qn_ceilings *t = p->ceilings;
    if (!t) return 0;
    const int type = qn_args_type(c->shape.op, &c->shape.args);
    const bool bytes = c->shape.op == OP_qlinear, bf16 = c->shape.op == OP_blinear || (c->shape.op == OP_matmul &&
                                                                                       type == DT_bf16);
    const double rate = t->device[0] ? t->bf16.p50 : bytes ? t->int8.p50 : bf16 && t->bf16.n ? t->bf16.p50 : t->flops.p50;
    const double move = t->read_huge.p50 > 0 ? (double)c->cost.bytes / t->read_huge.p50 : 0;
    const double compute = rate > 0 ? (double)c->cost.flops / rate : 0;
    return 1e9 * fmax(move, compute);
}

static const char *word(const qn_contender *k)
{
    if (!k->checked) return "not checked";
    return k->right ? "right" : "WRONG";
}

static int by_time(const qn_contest *c, int *order)
{
    int n = 0;
    for (int i = 0; i < c->n; i++) {
        if (c->at[i].misses) continue;
        const double ns = c->at[i].right ? qn_contender_ns(c, &c->at[i]) : INFINITY;
        int at = n++;
        for (; at > 0; at--) {
            const qn_contender *b = &c->at[order[at - 1]];
            if ((b->right ? qn_contender_ns(c, b) : INFINITY) <= ns) break;
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    return n;
}

static void put_tags(qn_buf *b, const qn_contest *c, int i)
{
    const qn_contender *k = &c->at[i];
    if (k->rival) qn_buf_puts(b, " [baseline]");
    if (!k->right) qn_buf_puts(b, " [bad-rel]");
    if (i == c->best) qn_buf_puts(b, " [best]");
    if (i == c->chosen) qn_buf_puts(b, " [engine]");
}

/* ---- text */

static void put_time(qn_buf *b, const qn_stats *s)
{
    if (s->n) qn_buf_printf(b, " %10.3f %9.3f %5.1f %%", s->p50 / 1e3, s->min / 1e3, s->p50 > 0 ?
                            50 * (s->hi - s->lo) / s->p50 : 0);
    else qn_buf_printf(b, " %10s %9s %7s", "-", "-", "-");
}

void qn_probe_verdict(qn_buf *b, const qn_contest *c)
{
    if (c->best < 0) {
        qn_buf_puts(b, "nobody got it right");
        return;
    }
    const qn_contender *best = &c->at[c->best];
    qn_buf_printf(b, "best: %s", best->name);
    if (c->next >= 0) {
        const qn_contender *next = &c->at[c->next];
        const double ratio = qn_contender_ns(c, next) / qn_contender_ns(c, best);
        if (c->noise) qn_buf_printf(b, "; %s is within noise of it", next->name);
        else qn_buf_printf(b, ", %.2f times as fast as %s", ratio, next->name);
    }
    if (c->chosen >= 0 && c->chosen != c->best && qn_contender_ns(c, &c->at[c->chosen]) > 0)
        qn_buf_printf(b, ", %.2f times as fast as the engine's own choice",
                      qn_contender_ns(c, &c->at[c->chosen]) / qn_contender_ns(c, best));
    if (c->parts_ns > 0)
        qn_buf_printf(b, "; %.2f times as fast as its parts one by one (%.3f us)", c->parts_ns / qn_contender_ns(c, best),
                      c->parts_ns / 1e3);
    if (c->engine_ns > 0)
        qn_buf_printf(b, "; the engine took %.3f us, %+.1f %%", c->engine_ns / 1e3,
                      100 * (c->engine_ns / qn_contender_ns(c, best) - 1));
}

static void print_text(qn_buf *b, const qn_probe_page *p, const qn_contest *c, int number)
{
    int order[512];
    const int n = by_time(c, order);
    const double limit = qn_probe_ceiling(p, c);
    qn_buf_printf(b, "%s%d. %s%s\n", qn_cli_color(p->c, 1, QN_BOLD), number, c->text, qn_cli_color(p->c, 1, QN_PLAIN));
    qn_buf_printf(b, "  %-34s %10s %9s %7s %10s %9s %7s %8s %9s %6s %9s %9s %8s\n", "us a call", "warm", "min", "+-",
                  "cold", "min", "+-",
                  "GB/s", "GFLOP/s", "ceil", "maxAbs", "maxRel", "NMSE");
    for (int i = 0; i < n; i++) {
        const qn_contender *k = &c->at[order[i]];
        const double ns = qn_contender_ns(c, k);
        qn_buf_printf(b, "  %-34s", k->name);
        put_time(b, &k->warm);
        put_time(b, &k->cold);
        if (ns > 0) {
            qn_buf_printf(b, " %8.2f %9.2f", (double)c->cost.bytes / ns, (double)c->cost.flops / ns);
            if (limit > 0) qn_buf_printf(b, " %4.0f %%", 100 * limit / ns);
            else qn_buf_printf(b, " %6s", "-");
        } else {
            qn_buf_printf(b, " %8s %9s %6s", "-", "-", "-");
        }
        qn_buf_printf(b, " %9.2e %9.2e %8.1e", k->off.max_abs, k->off.max_rel, k->off.nmse);
        put_tags(b, c, order[i]);
        if (k->cached) qn_buf_puts(b, " cached");
        qn_buf_putc(b, '\n');
        if (!k->right) qn_buf_printf(b, "      %s: %s\n", word(k), k->why);
    }
    qn_buf_puts(b, "  ");
    qn_probe_verdict(b, c);
    qn_buf_puts(b, "\n\n");
}

/* ---- seed */

/* "matmul" is printed as the seed's op names say it */
static void put_seed_spec(qn_buf *b, const qn_contest *c)
{
    const qn_matmul *m = &c->shape.args.matmul;
    if (c->shape.op != OP_matmul) {
        qn_buf_printf(b, "Spec %s:\n", c->text);
        return;
    }
    const bool scaled = m->batch > 1 || m->alpha != 1 || m->beta != 0;
    const char *op = m->biased ? "matmul_bias_add" : scaled ? "matmul_alpha_beta" : "matmul";
    qn_buf_printf(b, "Spec op=%s | batch=%d | m=%d | n=%d | k=%d | tA=%d | tB=%d:\n", op, m->batch, m->n, m->cols, m->k,
                  m->ta, m->tb);
}

/* "0.14": three digits, zeros at the end cut */
static void put_ms(qn_buf *b, double ns)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%.3f", ns / 1e6);
    while (n > 1 && text[n - 1] == '0' && text[n - 2] != '.') text[--n] = 0;
    qn_buf_puts(b, text);
}

static void print_seed(qn_buf *b, const qn_probe_page *p, const qn_contest *c, int number)
{
    (void)p, (void)number;
    put_seed_spec(b, c);
    for (int i = 0; i < c->n; i++) {
        const qn_contender *k = &c->at[i];
        if (k->misses) continue;
        qn_buf_printf(b, "   - %s", k->name);
        put_tags(b, c, i);
        qn_buf_puts(b, ": median_warm=");
        put_ms(b, k->warm.p50);
        qn_buf_puts(b, "ms | median_cold=");
        put_ms(b, k->cold.p50);
        qn_buf_puts(b, "ms");
        if (c->engine_ns > 0 && qn_contender_ns(c, k) > 0) {
            qn_buf_puts(b, " [vs engine ");
            put_ms(b, c->engine_ns);
            qn_buf_printf(b, "ms] (%+.2f%%)", 100 * (qn_contender_ns(c, k) / c->engine_ns - 1));
        } else {
            qn_buf_puts(b, " [vs engine N/A]");
        }
        qn_buf_printf(b, " maxAbs=%.4e maxRel=%.4e\n", k->off.max_abs, k->off.max_rel);
    }
    qn_buf_putc(b, '\n');
}

/* ---- JSON, CSV */

static void put_json_stats(qn_buf *b, const char *name, const qn_stats *s)
{
    qn_buf_printf(b, ", \"%s\": {\"n\": %zu, \"p50_ns\": %.1f, \"min_ns\": %.1f, \"lo_ns\": %.1f, \"hi_ns\": %.1f, "
                     "\"sd_ns\": %.1f}", name,
                  s->n, s->p50, s->min, s->lo, s->hi, s->sd);
}

static void print_json(qn_buf *b, const qn_probe_page *p, const qn_contest *c, int number)
{
    (void)number;
    qn_buf_printf(b, "{\"spec\": \"%s\", \"bytes\": %llu, \"flops\": %llu, \"ranked_by\": \"%s\", \"ceiling_ns\": %.1f, "
                     "\"engine_ns\": %.1f, \"parts_ns\": %.1f, "
                  "\"best\": ", c->text, (unsigned long long)c->cost.bytes, (unsigned long long)c->cost.flops,
                  c->by_cold ? "cold" : "warm", qn_probe_ceiling(p, c), c->engine_ns, c->parts_ns);
    qn_buf_printf(b, c->best >= 0 ? "\"%s\"" : "null%s", c->best >= 0 ? c->at[c->best].name : "");
    qn_buf_printf(b, ", \"within_noise\": %s, \"variants\": [", c->noise ? "true" : "false");
    for (int i = 0; i < c->n; i++) {
        const qn_contender *k = &c->at[i];
        qn_buf_printf(b, "%s\n  {\"name\": \"%s\"", i ? "," : "", k->name);
        if (k->misses) {
            qn_buf_printf(b, ", \"unsupported\": \"%s\"}", k->misses);
            continue;
        }
        qn_buf_printf(b, ", \"right\": %s, \"max_abs\": %.6g, \"max_rel\": %.6g, \"nmse\": %.6g, \"cached\": %s, "
                         "\"engine\": %s",
                      k->right ? "true" : "false", k->off.max_abs, k->off.max_rel, k->off.nmse, k->cached ? "true" : "false",
                      i == c->chosen ? "true" : "false");
        if (k->rival) {
            qn_buf_puts(b, ", \"library\": ");
            qn_buf_json(b, k->rival->version, strlen(k->rival->version));
        }
        put_json_stats(b, "warm", &k->warm);
        put_json_stats(b, "cold", &k->cold);
        qn_buf_puts(b, ", \"why\": ");
        qn_buf_json(b, k->why, strlen(k->why));
        qn_buf_putc(b, '}');
    }
    qn_buf_puts(b, "]}\n");
}

static void print_csv(qn_buf *b, const qn_probe_page *p, const qn_contest *c, int number)
{
    (void)p, (void)number;
    for (int i = 0; i < c->n; i++) {
        const qn_contender *k = &c->at[i];
        qn_buf_printf(b, "\"%s\",%s,%s,%s,%zu,%.1f,%.1f,%.1f,%.1f,%zu,%.1f,%.1f,%.1f,%.1f,%.6g,%.6g,%.6g,%d,%d,%d,%.1f\n",
                      c->text, k->name,
                      k->misses ? "" : word(k), k->misses ? k->misses : "", k->warm.n, k->warm.p50, k->warm.min, k->warm.lo,
                      k->warm.hi,
                      k->cold.n, k->cold.p50, k->cold.min, k->cold.lo, k->cold.hi, k->off.max_abs,
                      k->off.max_rel, k->off.nmse, i == c->best,
                      i == c->chosen, k->cached, c->engine_ns);
    }
}

void qn_probe_print(qn_buf *b, const qn_probe_page *p, const qn_contest *c, int number)
{
    static void (*const formats[])(qn_buf *, const qn_probe_page *, const qn_contest *, int) = {
        [PROBE_text] = print_text, [PROBE_seed] = print_seed, [PROBE_json] = print_json, [PROBE_csv] = print_csv };
    if (p->format != PROBE_html) formats[p->format](b, p, c, number); /* a page is written when all is known */
}

void qn_probe_print_head(qn_buf *b, const qn_probe_page *p)
{
    if (p->format == PROBE_csv)
        qn_buf_puts(b, "spec,variant,verdict,unsupported,warm_n,warm_p50_ns,warm_min_ns,warm_lo_ns,warm_hi_ns,cold_n,cold_p50_ns,"
                       "cold_min_ns,cold_lo_ns,cold_hi_ns,max_abs,max_rel,nmse,best,engine,cached,engine_ns\n");
    if (p->format != PROBE_text && p->format != PROBE_seed) return;
    if (p->threads) qn_buf_printf(b, "%d specs, %d variants, %d threads on %s\n", p->n_specs, p->n_variants, p->threads,
                                  qn_cpu_name());
    else qn_buf_printf(b, "%d specs, %d variants on %s\n", p->n_specs, p->n_variants, p->ceilings ? p->ceilings->device :
                       "a GPU");
    for (int i = 0; p->rivals && i < p->rivals->n; i++)
        qn_buf_printf(b, "baseline %s: %s\n", p->rivals->at[i].name, p->rivals->at[i].version);
    for (size_t i = 0; p->rivals && i < QN_COUNT(p->rivals->absent); i++)
        if (p->rivals->absent[i][0]) qn_buf_printf(b, "%s\n", p->rivals->absent[i]);
    qn_buf_putc(b, '\n');
}

/* ---- what took no part */

typedef struct tally { const char *reason; int n; } tally;

static const char *variant(const qn_probe_page *p, int i)
{
    if (i < qn_n_kernels) return qn_kernels[i].name;
    return p->rivals && i - qn_n_kernels < p->rivals->n ? p->rivals->at[i - qn_n_kernels].name : NULL;
}

/* One line for a variant: how many specs it skipped, by reason. */
static void put_skipped(qn_buf *b, const qn_probe_page *p, const char *name, const qn_contest *all, int n)
{
    tally t[8] = { { 0 } };
    int kinds = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < all[i].n; k++) {
            const qn_contender *w = &all[i].at[k];
            if (!w->misses || strcmp(w->name, name)) continue;
            if (p->all_failures) qn_buf_printf(b, " - %s: %s skipped (%s)\n", name, all[i].text, w->misses);
            int j = 0;
            while (j < kinds && strcmp(t[j].reason, w->misses)) j++;
            if (j == kinds && kinds < 8) t[kinds++] = (tally){ w->misses, 0 };
            if (j < 8) t[j].n++;
        }
    if (!kinds || p->all_failures) return;
    qn_buf_printf(b, " - %s:", name);
    for (int j = 0; j < kinds; j++) qn_buf_printf(b, "%s skipped %d (%s)", j ? "," : "", t[j].n, t[j].reason);
    qn_buf_putc(b, '\n');
}

static void put_failures(qn_buf *b, const qn_probe_page *p, const qn_contest *all, int n)
{
    int failures = 0, results = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < all[i].n; k++) all[i].at[k].misses ? failures++ : results++;
    if (p->format == PROBE_seed) qn_buf_printf(b, "Processed %d total results with %d failures\n", results, failures);
    else qn_buf_printf(b, "%d pairs of variant and spec were run, %d were not\n", results, failures);
    if (!failures) return;
    qn_buf_puts(b, p->format == PROBE_seed ? "Variant failures:\n" : "Not run, and why:\n");
    for (int v = 0; v < qn_n_kernels + QN_RIVALS; v++)
        if (variant(p, v)) put_skipped(b, p, variant(p, v), all, n);
    if (!p->all_failures) qn_buf_puts(b, "   (use --verbose-failures to list every skipped spec)\n");
}

void qn_probe_print_tail(qn_buf *b, const qn_probe_page *p, const qn_contest *all, int n)
{
    if (p->format == PROBE_html) qn_probe_html(b, p, all, n);
    if (p->format == PROBE_seed || p->format == PROBE_text) put_failures(b, p, all, n);
}
