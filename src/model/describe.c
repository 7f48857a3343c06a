/* describe.c - everything known about a model as JSON: for `quern info --json` and for tools. */
#include "model/describe.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"

#define SHOWN 16 /* array elements; a vocabulary has 150,000 */

static void put_number(qn_buf *b, double v)
{
    if (isfinite(v)) qn_buf_printf(b, "%.9g", v);
    else qn_buf_puts(b, "null");
}

static void put_value(qn_buf *b, const qn_value *v)
{
    switch (v->kind) {
    case KIND_str: qn_buf_json(b, v->as.s.p, v->as.s.n); return;
    case KIND_bool: qn_buf_puts(b, v->as.b ? "true" : "false"); return;
    case KIND_f32: case KIND_f64: put_number(b, v->as.f); return;
    case KIND_i8: case KIND_i16: case KIND_i32: case KIND_i64: qn_buf_printf(b, "%lld", (long long)v->as.i); return;
    case KIND_array: break;
    default: qn_buf_printf(b, "%llu", (unsigned long long)v->as.u); return;
    }
    qn_buf_printf(b, "{\"type\":\"%s\",\"length\":%zu,\"first\":[", qn_kind_name(v->item), v->n);
    for (size_t i = 0; i < qn_minz(v->n, SHOWN) && (v->strs || v->data); i++) {
        if (i) qn_buf_putc(b, ',');
        if (v->strs) qn_buf_json(b, v->strs[i].p, v->strs[i].n);
        else if (v->item == KIND_f32 || v->item == KIND_f64) put_number(b, qn_value_at(v, i));
        else qn_buf_printf(b, "%lld", (long long)qn_value_int_at(v, i));
    }
    qn_buf_puts(b, "]}");
}

static void put_metadata(qn_buf *b, const qn_source *s)
{
    qn_buf_puts(b, ",\"metadata\":{");
    for (size_t i = 0; i < s->n_kvs; i++) {
        if (i) qn_buf_putc(b, ',');
        qn_buf_json(b, s->kvs[i].key.p, s->kvs[i].key.n);
        qn_buf_putc(b, ':');
        put_value(b, &s->kvs[i].v);
    }
    qn_buf_putc(b, '}');
}

static void put_types(qn_buf *b, const qn_model *m)
{
    qn_type_count by_type[N_DTYPES];
    qn_model_count(m, by_type);
    qn_buf_puts(b, ",\"types\":{");
    bool any = false;
    for (int t = 0; t < (int)N_DTYPES; t++) {
        if (by_type[t].tensors == 0) continue;
        qn_buf_printf(b, "%s\"%s\":{\"tensors\":%llu,\"weights\":%llu,\"bytes\":%llu}", any ? "," : "", qn_dtypes[t].name,
                      (unsigned long long)by_type[t].tensors, (unsigned long long)by_type[t].weights,
                      (unsigned long long)by_type[t].bytes);
        any = true;
    }
    qn_buf_putc(b, '}');
}

static void put_tensors(qn_buf *b, const qn_source *s)
{
    qn_buf_puts(b, ",\"tensors\":[");
    for (size_t i = 0; i < s->n_tensors; i++) {
        const qn_tensor *t = &s->tensors[i];
        qn_buf_puts(b, i ? ",{\"name\":" : "{\"name\":");
        qn_buf_json(b, t->name, strlen(t->name));
        qn_buf_printf(b, ",\"type\":\"%s\",\"shape\":[", qn_dtypes[t->type].name);
        for (int d = 0; d < t->n_dims; d++) qn_buf_printf(b, "%s%llu", d ? "," : "", (unsigned long long)t->dims[d]);
        qn_buf_printf(b, "],\"bytes\":%llu}", (unsigned long long)t->bytes);
    }
    qn_buf_putc(b, ']');
}

static void put_context(qn_buf *b, const qn_model *m)
{
    static const struct { const char *name; int kv; } kinds[] = {
        { "f16", QN_KV_F16 }, { "f32", QN_KV_F32 }, { "q8_0", QN_KV_Q8_0 },
    };
    qn_buf_puts(b, ",\"kv_bytes\":{");
    for (size_t i = 0; i < QN_COUNT(kinds); i++) {
        qn_buf_printf(b, "%s\"%s\":{", i ? "," : "", kinds[i].name);
        bool any = false;
        for (int n = 2048; n > 0 && n < m->n_ctx_train * 2LL; n *= 4) {
            const int ctx = qn_mini(n, m->n_ctx_train);
            qn_buf_printf(b, "%s\"%d\":%llu", any ? "," : "", ctx, (unsigned long long)qn_model_kv_bytes(m, ctx, kinds[i].kv));
            any = true;
            if (ctx == m->n_ctx_train || n > 1 << 28) break;
        }
        qn_buf_putc(b, '}');
    }
    qn_buf_putc(b, '}');
}

static void put_facts(qn_buf *b, const qn_model *m)
{
    qn_model_info i;
    qn_model_get_info(m, &i);
    qn_buf_puts(b, "{\"path\":");
    qn_buf_json(b, i.path, strlen(i.path));
    qn_buf_puts(b, ",\"name\":");
    qn_buf_json(b, i.name, strlen(i.name));
    qn_buf_printf(b, ",\"arch\":\"%s\",\"type\":\"%s\",\"n_params\":%llu,\"n_bytes\":%llu,\"n_layer\":%d,\"n_head\":%d,"
                  "\"n_kv\":%d,\"d_model\":%d,\"d_head\":%d,\"d_ff\":%d,\"n_vocab\":%d,\"n_ctx_train\":%d,\"sliding_window\":%d,"
                  "\"rope_base\":%.9g,\"unused_tensors\":%d,\"tied_output\":%s", i.arch, i.type, (unsigned long long)i.n_params,
                  (unsigned long long)i.n_bytes, i.n_layer, i.n_head, i.n_kv, i.d_model, i.d_head, i.d_ff, i.n_vocab,
                  i.n_ctx_train, i.sliding_window, (double)m->rope_base, m->n_extra,
                  m->output.data == m->embed.data ? "true" : "false");
    qn_buf_puts(b, ",\"tokenizer\":");
    qn_buf_json(b, i.tokenizer_kind, strlen(i.tokenizer_kind));
    qn_buf_printf(b, ",\"bos_id\":%d,\"eos_id\":%d,\"chat_template\":", i.bos_id, i.eos_id);
    if (i.chat_template) qn_buf_json(b, i.chat_template, strlen(i.chat_template));
    else qn_buf_puts(b, "null");
    qn_buf_puts(b, ",\"chat_template_error\":");
    if (m->chat_error.code) qn_buf_json(b, m->chat_error.msg, strlen(m->chat_error.msg));
    else qn_buf_puts(b, "null");
}

bool qn_model_describe(const qn_model *m, char **json, size_t *n, qn_err *e)
{
    qn_buf b = { 0 };
    put_facts(&b, m);
    put_types(&b, m);
    put_context(&b, m);
    put_metadata(&b, m->src);
    put_tensors(&b, m->src);
    qn_buf_putc(&b, '}');
    return qn_buf_take(&b, json, n, e);
}
