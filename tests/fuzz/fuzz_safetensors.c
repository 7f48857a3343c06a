/* fuzz_safetensors.c - any bytes as a safetensors file. What is accepted is walked; the first byte may ask for a failing
 * allocation. */
#include <string.h>

#include "base/mem.h"
#include "format/safetensors_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    qn_err e = { 0 };
    qn_source *s = qn_new(sizeof *s, &e);
    if (!s || !(s->path = qn_strdup("fuzz", &e)) || !n) {
        qn_source_close(s);
        return 0;
    }
    qn_mem_fail_at(data[0] & 0x80 ? data[0] & 0x3F : 0, data[0] & 0x40);
    const bool ok = qn_safetensors_parse(s, data + 1, n - 1, 0, "fuzz.safetensors", &e);
    qn_mem_fail_at(0, false);
    if (ok == (e.code != QN_OK)) __builtin_trap();
    volatile u64 sum = 0;
    for (size_t i = 0; ok && i < s->n_tensors; i++) {
        const qn_tensor *t = &s->tensors[i];
        if ((uintptr_t)t->data % qn_dtypes[t->type].block_bytes) __builtin_trap();
        sum += t->data[0] + (u64)t->data[t->bytes - 1];
    }
    (void)sum;
    qn_source_close(s);
    return 0;
}
