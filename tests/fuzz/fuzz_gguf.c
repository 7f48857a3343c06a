/* fuzz_gguf.c - any bytes as a GGUF file. What is accepted is walked: every key, every string, both ends of every tensor. The
 * first byte may ask for a failing allocation, so that the ways out are walked too. */
#include <string.h>

#include "base/mem.h"
#include "format/gguf_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static u64 walk(const qn_source *s)
{
    u64 sum = 0;
    for (size_t i = 0; i < s->n_kvs; i++) {
        const qn_value *v = &s->kvs[i].v;
        sum += (u64)s->kvs[i].key.p[s->kvs[i].key.n - 1];
        if (v->kind == KIND_str && v->as.s.n) sum += (u64)v->as.s.p[v->as.s.n - 1];
        for (size_t k = 0; v->strs && k < v->n; k++)
            if (v->strs[k].n) sum += (u64)v->strs[k].p[v->strs[k].n - 1];
        if (v->data && v->n) sum += (u64)qn_value_int_at(v, v->n - 1) + (qn_value_at(v, 0) > 0);
    }
    for (size_t i = 0; i < s->n_tensors; i++) {
        const qn_tensor *t = &s->tensors[i];
        if (qn_source_tensor(s, t->name) != t) __builtin_trap();
        sum += t->data[0] + (u64)t->data[t->bytes - 1];
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    qn_err e = { 0 };
    qn_source *s = qn_new(sizeof *s, &e);
    if (!s || !(s->path = qn_strdup("fuzz.gguf", &e)) || !n) {
        qn_source_close(s);
        return 0;
    }
    qn_mem_fail_at(data[0] & 0x80 ? data[0] & 0x3F : 0, data[0] & 0x40);
    const bool ok = qn_gguf_parse(s, data + 1, n - 1, &e);
    qn_mem_fail_at(0, false);
    if (ok == (e.code != QN_OK)) __builtin_trap(); /* refused with a reason, or accepted without */
    volatile u64 sum = ok ? walk(s) : 0;
    (void)sum;
    qn_source_close(s);
    return 0;
}
