/* bench_print.c - a result as a row of a table, CSV, JSON or SQL. The one idea: a result becomes a list of fields once, and every
 * format but the table only walks it. llama-bench's keys come first, under its names, so that what reads its output reads ours;
 * those that speak of things quern does not have get the value that means so. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/bench.h"

typedef enum field_kind { FIELD_text, FIELD_int, FIELD_real, FIELD_flag, FIELD_list } field_kind; /* list: JSON */
typedef struct field { const char *key; field_kind kind; size_t at, n; } field;
typedef struct fields { field f[80]; int n; qn_buf text; } fields;

static void put(fields *fs, field_kind kind, const char *key, const char *fmt, ...) QN_PRINTF(4, 5);
static void put(fields *fs, field_kind kind, const char *key, const char *fmt, ...)
{
    va_list ap;
    char room[512];
    field *f = &fs->f[fs->n++];
    assert((size_t)fs->n <= QN_COUNT(fs->f));
    va_start(ap, fmt);
    vsnprintf(room, sizeof room, fmt, ap);
    va_end(ap);
    *f = (field){ .key = key, .kind = kind, .at = fs->text.n };
    qn_buf_puts(&fs->text, room);
    f->n = fs->text.n - f->at;
}

static void put_text(fields *fs, const char *key, const char *s) /* of any length */
{
    fs->f[fs->n++] = (field){ .key = key, .kind = FIELD_text, .at = fs->text.n, .n = strlen(s) };
    assert((size_t)fs->n <= QN_COUNT(fs->f));
    qn_buf_puts(&fs->text, s);
}

static void put_count(fields *fs, const char *key, u64 v) { put(fs, FIELD_int, key, "%llu", (unsigned long long)v); }
static void put_real(fields *fs, const char *key, double v) { put(fs, FIELD_real, key, "%.6f", v); }
static void put_flag(fields *fs, const char *key, bool v) { put(fs, FIELD_flag, key, "%s", v ? "true" : "false"); }

static void put_samples(fields *fs, const char *key, const double *x, int n, int digits)
{
    field *f = &fs->f[fs->n++];
    assert((size_t)fs->n <= QN_COUNT(fs->f));
    *f = (field){ .key = key, .kind = FIELD_list, .at = fs->text.n };
    for (int i = 0; i < n; i++) qn_buf_printf(&fs->text, "%s%.*f", i ? ", " : "[", digits, x[i]);
    qn_buf_putc(&fs->text, ']');
    f->n = fs->text.n - f->at;
}

/* llama-bench's word for where it ran */
static const char *backend(const qn_bench_setup *s)
{
    return !strcmp(qn_engine_device(s->engine), "cpu") ? "CPU" : "CUDA";
}

/* "qwen2 0.5B Q8_0" */
static const char *model_type(const qn_model_info *m, char *out, size_t cap)
{
    const double n = (double)m->n_params;
    if (n >= 4e8) snprintf(out, cap, "%s %.*fB %s", m->arch, n < 9.95e9 ? 1 : 0, n / 1e9, m->type);
    else snprintf(out, cap, "%s %.*fM %s", m->arch, n < 9.95e6 ? 1 : 0, n / 1e6, m->type);
    return out;
}

static void put_machine(fields *fs, const qn_bench_setup *s)
{
    char type[96];
    put_text(fs, "build_commit", "quern-" QN_VERSION);
    put_count(fs, "build_number", 0);
    put_text(fs, "cpu_info", qn_cpu_name());
    put_text(fs, "gpu_info", strcmp(qn_engine_device(s->engine), "cpu") ? qn_engine_device(s->engine) : "");
    put_text(fs, "backends", backend(s));
    put_text(fs, "model_filename", s->info.path);
    put_text(fs, "model_type", model_type(&s->info, type, sizeof type));
    put_count(fs, "model_size", s->info.n_bytes);
    put_count(fs, "model_n_params", s->info.n_params);
}

static void put_settings(fields *fs, const qn_bench_setup *s)
{
    put_count(fs, "n_batch", (u64)s->args.n_batch);
    put_count(fs, "n_ubatch", (u64)s->args.n_batch);
    put_count(fs, "n_threads", (u64)qn_engine_threads(s->engine));
    put_text(fs, "cpu_mask", "0x0");
    put_flag(fs, "cpu_strict", false);
    put_count(fs, "poll", 0);
    put_text(fs, "type_k", s->kv);
    put_text(fs, "type_v", s->kv);
    put_count(fs, "n_gpu_layers", (u64)qn_cli_gpu_layers(s->model, s->engine));
    put_count(fs, "n_cpu_moe", 0);
    put_text(fs, "split_mode", "none");
    put_count(fs, "main_gpu", 0);
    put_flag(fs, "no_kv_offload", false);
    put_flag(fs, "flash_attn", true);
    put_text(fs, "devices", "none");
    put_text(fs, "tensor_split", "0.00");
    put_text(fs, "tensor_buft_overrides", "none");
    put_flag(fs, "use_mmap", true);
    put_text(fs, "load_mode", "mmap");
    put_flag(fs, "embeddings", false);
    put_count(fs, "no_op_offload", 0);
    put_flag(fs, "no_host", false);
    put_count(fs, "fit_target", 0);
    put_count(fs, "fit_min_ctx", 0);
}

static void put_figures(fields *fs, const qn_bench_result *r)
{
    put_count(fs, "n_prompt", (u64)r->test.n_prompt);
    put_count(fs, "n_gen", (u64)r->test.n_gen);
    put_count(fs, "n_depth", (u64)r->test.n_depth);
    put_text(fs, "test_time", r->time);
    put_count(fs, "avg_ns", (u64)r->ns_stats.mean);
    put_count(fs, "stddev_ns", (u64)r->ns_stats.sd);
    put_real(fs, "avg_ts", r->ts_stats.mean);
    put_real(fs, "stddev_ts", r->ts_stats.sd);
    put_samples(fs, "samples_ns", r->ns, r->n, 0);
    put_samples(fs, "samples_ts", r->ts, r->n, 6);
}

static void put_rivals(fields *fs, const qn_bench_result *r)
{
    qn_buf *b = &fs->text;
    field *f = &fs->f[fs->n++];
    *f = (field){ .key = "against", .kind = FIELD_list, .at = b->n };
    for (int i = 0; i < r->n_rivals; i++) {
        const qn_rival *v = &r->rivals[i];
        qn_buf_puts(b, i ? ", {\"name\": " : "[{\"name\": ");
        qn_buf_json(b, v->label, strlen(v->label));
        qn_buf_puts(b, ", \"command\": ");
        qn_buf_json(b, v->command, strlen(v->command));
        qn_buf_printf(b, ", \"depth_as\": \"%s\"", !r->test.n_depth ? "" : v->behind && !r->test.n_prompt ? "-gp" : "-d");
        qn_buf_printf(b, ", \"median_ts\": %.6f, \"lo_ts\": %.6f, \"hi_ts\": %.6f, ", r->rival_stats[i].p50,
                      r->rival_stats[i].lo, r->rival_stats[i].hi);
        qn_buf_printf(b, "\"ratio\": %.4f, \"ratio_lo\": %.4f, \"ratio_hi\": %.4f, \"ratio_most\": %.4f, \"samples_ts\": ",
                      r->ratio[i].p50, r->ratio[i].lo, r->ratio[i].hi, r->most[i]);
        for (int k = 0; k < r->n; k++) qn_buf_printf(b, "%s%.6f", k ? ", " : "[", r->rival_ts[i][k]);
        qn_buf_puts(b, "]}");
    }
    qn_buf_puts(b, r->n_rivals ? "]" : "[]");
    f->n = b->n - f->at;
}

/* Our own keys, behind the others. */
static void put_more(fields *fs, const qn_bench_result *r)
{
    const qn_bench_setup *s = r->setup;
    const qn_ceilings *k = s->ceilings;
    put_text(fs, "isa", qn_engine_isa(s->engine));
    put_flag(fs, "repack", !s->args.no_repack);
    put_real(fs, "median_ts", r->ts_stats.p50);
    put_real(fs, "lo_ts", r->ts_stats.lo);
    put_real(fs, "hi_ts", r->ts_stats.hi);
    put_count(fs, "load_ns", s->load_ns);
    put_count(fs, "first_token_ns", s->first_token_ns);
    put_count(fs, "peak_rss_bytes", r->memory.peak);
    put_count(fs, "kv_bytes", r->memory.kv);
    put_count(fs, "scratch_bytes", r->memory.scratch);
    put_flag(fs, "disturbed", r->disturbed);
    put_real(fs, "switches_s", r->switches_s);
    put_real(fs, "others_share", qn_others_share(&r->others));
    put_real(fs, "host_share", qn_host_share(&r->others));
    put_real(fs, "memory_from_bytes_s", s->memory_from);
    put_real(fs, "load_average", r->load);
    put_count(fs, "bytes_read", r->bytes);
    put_count(fs, "flops", r->flops);
    put(fs, FIELD_real, "ceiling_read_small_bytes_s", "%.0f", k ? k->read_small.p50 : 0);
    put(fs, FIELD_real, "ceiling_read_huge_bytes_s", "%.0f", k ? k->read_huge.p50 : 0);
    put(fs, FIELD_real, "ceiling_flop_s", "%.0f", k ? k->flops.p50 : 0);
    put(fs, FIELD_real, "ceiling_int8_op_s", "%.0f", k ? k->int8.p50 : 0);
    put(fs, FIELD_real, "ceiling_bf16_flop_s", "%.0f", k ? k->bf16.p50 : 0);
    put_text(fs, "ceiling_arithmetic", r->arithmetic ? r->arithmetic : "");
    put_samples(fs, "samples_read_bytes_s", r->reads, r->n, 0);
    put_real(fs, "share_of_ceiling", r->share);
    put_flag(fs, "includes_sampling", false);
    put_rivals(fs, r);
}

/* ---- formats that walk the fields ----------------------------------------------------------------------------------- */

static void write_json(qn_buf *b, const fields *fs, const char *before, const char *between)
{
    for (int i = 0; i < fs->n; i++) {
        const field *f = &fs->f[i];
        qn_buf_printf(b, "%s%s\"%s\": ", i ? between : "", before, f->key);
        if (f->kind == FIELD_text) qn_buf_json(b, fs->text.p + f->at, f->n);
        else qn_buf_put(b, fs->text.p + f->at, f->n);
    }
}

static void write_quoted(qn_buf *b, const fields *fs, const field *f, char quote)
{
    const char *s = fs->text.p + f->at;
    const bool flag = f->kind == FIELD_flag; /* as llama-bench has them: 0 and 1 */
    qn_buf_putc(b, quote);
    if (flag) qn_buf_putc(b, *s == 't' ? '1' : '0');
    for (size_t i = 0; !flag && i < f->n; i++) {
        if (s[i] == quote) qn_buf_putc(b, quote);
        qn_buf_putc(b, s[i]);
    }
    qn_buf_putc(b, quote);
}

static bool in_columns(const field *f) { return f->kind != FIELD_list || !strcmp(f->key, "against"); }

static void write_columns(qn_buf *b, const fields *fs, char quote) /* quote 0: the keys */
{
    const char *between = "";
    for (int i = 0; i < fs->n; i++) {
        if (!in_columns(&fs->f[i])) continue;
        qn_buf_puts(b, between);
        if (quote) write_quoted(b, fs, &fs->f[i], quote);
        else qn_buf_puts(b, fs->f[i].key);
        between = quote == '"' ? "," : ", ";
        if (!quote) between = ",";
    }
}

static void write_sql(qn_buf *b, const fields *fs, bool first)
{
    static const char *const types[] = { "TEXT", "INTEGER", "REAL", "INTEGER", "TEXT" }; /* by kind */
    const char *between = "";
    if (first) qn_buf_puts(b, "CREATE TABLE IF NOT EXISTS llama_bench (");
    for (int i = 0; first && i < fs->n; i++) {
        if (!in_columns(&fs->f[i])) continue;
        qn_buf_printf(b, "%s\n  %s %s", between, fs->f[i].key, types[fs->f[i].kind]);
        between = ",";
    }
    if (first) qn_buf_puts(b, "\n);\n\n");
    qn_buf_puts(b, "INSERT INTO llama_bench (");
    write_columns(b, fs, 0);
    qn_buf_puts(b, ") VALUES (");
    write_columns(b, fs, '\'');
    qn_buf_puts(b, ");\n");
}

/* ---- the table ------------------------------------------------------------------------------------------------------ */

static void cell(qn_buf *b, int width, bool right, const char *fmt, ...) QN_PRINTF(4, 5);
static void cell(qn_buf *b, int width, bool right, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (const char *p = text; *p; p++) width += ((unsigned char)*p & 0xC0) == 0x80; /* bytes that take no column */
    qn_buf_printf(b, "| %*s ", right ? width : -width, text);
}

typedef struct column { const char *title; int width; bool right, shown; } column;

static int list_columns(const qn_bench_printer *p, const qn_bench_result *r, column *out)
{
    const column fixed[] = {
        { "model", 24, false, true },  { "size", 10, true, true },    { "params", 10, true, true },
        { "backend", 8, false, true }, { "threads", 7, true, true },  { "n_batch", 7, true, p->batch },
        { "isa", 10, true, p->isa },    { "type_kv", 7, true, p->kv }, { "test", 16, true, true },
        { "t/s", 18, true, true },     { "median (95 %)", 28, true, true },
        { "of ceiling", 10, true, r->setup->ceilings != NULL },
    };
    int n = 0;
    for (size_t i = 0; i < QN_COUNT(fixed); i++) out[n++] = fixed[i];
    return n;
}

static void write_head(qn_buf *b, const qn_bench_result *r, const column *columns, int n)
{
    for (int i = 0; i < n; i++)
        if (columns[i].shown) cell(b, columns[i].width, columns[i].right, "%s", columns[i].title);
    for (int i = 0; i < r->n_rivals; i++) {
        cell(b, 16, true, "%s t/s", r->rivals[i].label);
        cell(b, 22, true, "quern / %s", r->rivals[i].label);
    }
    qn_buf_puts(b, "|\n");
    for (int i = 0; i < n; i++) {
        if (!columns[i].shown) continue;
        qn_buf_puts(b, "| ");
        for (int k = 1; k < columns[i].width; k++) qn_buf_putc(b, '-');
        qn_buf_puts(b, columns[i].right ? ": " : "- ");
    }
    for (int i = 0; i < r->n_rivals; i++) qn_buf_puts(b, "| ---------------: | ---------------------: ");
    qn_buf_puts(b, "|\n");
}

static void write_row(qn_buf *b, const qn_bench_printer *p, const qn_bench_result *r, const column *k)
{
    const qn_bench_setup *s = r->setup;
    const qn_stats *t = &r->ts_stats;
    char type[96], name[64];
    const double size = (double)s->info.n_bytes / (1 << 20), params = (double)s->info.n_params / 1e6;
    cell(b, k[0].width, false, "%s", model_type(&s->info, type, sizeof type));
    cell(b, k[1].width, true, "%.2f %s", size >= 1024 ? size / 1024 : size, size >= 1024 ? "GiB" : "MiB");
    cell(b, k[2].width, true, "%.2f %s", params >= 1000 ? params / 1000 : params, params >= 1000 ? "B" : "M");
    cell(b, k[3].width, false, "%s", backend(s));
    cell(b, k[4].width, true, "%d", qn_engine_threads(s->engine));
    if (p->batch) cell(b, k[5].width, true, "%d", s->args.n_batch);
    if (p->isa) cell(b, k[6].width, true, "%s", qn_engine_isa(s->engine));
    if (p->kv) cell(b, k[7].width, true, "%s", s->kv);
    cell(b, k[8].width, true, "%s", qn_bench_name(&r->test, name));
    cell(b, k[9].width, true, "%.2f ± %.2f", t->mean, t->sd);
    cell(b, k[10].width, true, "%.2f (%.2f to %.2f)", t->p50, t->lo, t->hi);
    if (k[11].shown) cell(b, k[11].width, true, "%.0f %%", 100 * r->share);
    for (int i = 0; i < r->n_rivals; i++) {
        cell(b, 16, true, "%.2f", r->rival_stats[i].p50);
        cell(b, 22, true, "%.2f (%.2f to %.2f)", r->ratio[i].p50, r->ratio[i].lo, r->ratio[i].hi);
    }
    qn_buf_puts(b, "|\n");
}

static void write_table(qn_buf *b, const qn_bench_printer *p, const qn_bench_result *r)
{
    column columns[16];
    const int n = list_columns(p, r, columns);
    if (p->rows == 0) write_head(b, r, columns, n);
    write_row(b, p, r, columns);
}

static void write_foot(qn_buf *b, const qn_ceilings *k, int n)
{
    qn_buf_puts(b, "\nquern " QN_VERSION " on ");
    qn_buf_puts(b, qn_cpu_name());
    qn_buf_puts(b, "; random tokens, choosing tokens is not included\n");
    for (int i = 0; i < n; i++) {
        if (k[i].device[0])
            qn_buf_printf(b, "ceilings, %s: read %.0f GB/s; %.0f TFLOP/s f16 on the tensor cores, %.0f f32\n", k[i].device,
                          k[i].read_huge.p50 / 1e9, k[i].bf16.p50 / 1e12, k[i].flops.p50 / 1e12);
        else
            qn_buf_printf(b, "ceilings, %d thread%s, %s: read %.1f GB/s (4 KiB pages), %.1f GB/s (huge pages); "
                          "%.0f GFLOP/s f32, %.0f bf16, %.0f GOP/s int8\n", k[i].threads,
                          k[i].threads == 1 ? "" : "s", qn_isa_name(k[i].isa),
                          k[i].read_small.p50 / 1e9, k[i].read_huge.p50 / 1e9, k[i].flops.p50 / 1e9,
                          k[i].bf16.p50 / 1e9, k[i].int8.p50 / 1e9);
    }
}

/* ---- all of them ---------------------------------------------------------------------------------------------------- */

static bool flush(const qn_bench_printer *p, qn_buf *b, qn_err *e)
{
    bool ok = !b->failed || qn_fail(e, QN_ENOMEM, "not enough memory for the output");
    if (ok && p->fd == 2 && b->n) fwrite(b->p, 1, b->n, stderr);
    if (ok && p->fd == 1 && b->n) ok = qn_cli_write(b->p, b->n) && qn_cli_flush();
    qn_buf_close(b);
    return ok;
}

bool qn_bench_print(qn_bench_printer *p, const qn_bench_result *r, qn_err *e)
{
    fields fs = { 0 };
    qn_buf b = { 0 };
    if (p->format == QN_BENCH_NONE) return true;
    put_machine(&fs, r->setup);
    put_settings(&fs, r->setup);
    put_figures(&fs, r);
    put_more(&fs, r);
    if (fs.text.failed) b.failed = true;
    if (!b.failed) {
        switch (p->format) {
        case QN_BENCH_JSON:
            qn_buf_puts(&b, p->rows ? ",\n  {\n" : "[\n  {\n");
            write_json(&b, &fs, "    ", ",\n");
            qn_buf_puts(&b, "\n  }");
            break;
        case QN_BENCH_JSONL:
            qn_buf_putc(&b, '{');
            write_json(&b, &fs, "", ", ");
            qn_buf_puts(&b, "}\n");
            break;
        case QN_BENCH_CSV:
            if (p->rows == 0) write_columns(&b, &fs, 0), qn_buf_putc(&b, '\n');
            write_columns(&b, &fs, '"');
            qn_buf_putc(&b, '\n');
            break;
        case QN_BENCH_SQL: write_sql(&b, &fs, p->rows == 0); break;
        default: write_table(&b, p, r);
        }
    }
    p->rows++;
    qn_buf_close(&fs.text);
    return flush(p, &b, e);
}

bool qn_bench_print_end(qn_bench_printer *p, const qn_ceilings *ceilings, int n, qn_err *e)
{
    qn_buf b = { 0 };
    if (p->format == QN_BENCH_JSON) qn_buf_puts(&b, p->rows ? "\n]\n" : "[]\n");
    if (p->format == QN_BENCH_MD && p->rows) write_foot(&b, ceilings, n);
    return flush(p, &b, e);
}
