/* gguf_make.h - for tests: GGUF files put together byte by byte, so that each byte can be wrong. */
#ifndef QN_TEST_GGUF_MAKE_H
#define QN_TEST_GGUF_MAKE_H

#include "base/buf.h"
#include "format/source.h"

__attribute__((unused)) static void g_u8(qn_buf *b, u8 v) { qn_buf_put(b, &v, 1); }
__attribute__((unused)) static void g_u32(qn_buf *b, u32 v) { qn_buf_put(b, &v, 4); }
__attribute__((unused)) static void g_u64(qn_buf *b, u64 v) { qn_buf_put(b, &v, 8); }

__attribute__((unused)) static void g_str(qn_buf *b, const char *s)
{
    g_u64(b, strlen(s));
    qn_buf_puts(b, s);
}

__attribute__((unused)) static void g_head(qn_buf *b, u32 version, u64 n_tensors, u64 n_keys)
{
    qn_buf_puts(b, "GGUF");
    g_u32(b, version);
    g_u64(b, n_tensors);
    g_u64(b, n_keys);
}

__attribute__((unused)) static void g_key(qn_buf *b, const char *key, qn_kind kind)
{
    g_str(b, key);
    g_u32(b, (u32)kind);
}

__attribute__((unused)) static void g_key_u32(qn_buf *b, const char *key, u32 v)
{
    g_key(b, key, KIND_u32);
    g_u32(b, v);
}

__attribute__((unused)) static void g_key_str(qn_buf *b, const char *key, const char *v)
{
    g_key(b, key, KIND_str);
    g_str(b, v);
}

__attribute__((unused)) static void g_tensor(qn_buf *b, const char *name, u32 n_dims, const u64 *dims, u32 type, u64 offset)
{
    g_str(b, name);
    g_u32(b, n_dims);
    for (u32 i = 0; i < n_dims && i < 8; i++) g_u64(b, dims[i]);
    g_u32(b, type);
    g_u64(b, offset);
}

__attribute__((unused)) static void g_pad(qn_buf *b, size_t align)
{
    while (b->n % align) qn_buf_putc(b, 0);
}

/* A small good file of every kind of value and two tensors, F32 [4, 2] and Q8_0 [32]; *n_head: bytes before the data. */
__attribute__((unused)) static void g_good(qn_buf *b, u32 version, size_t *n_head)
{
    g_head(b, version, 2, 15);
    g_key_str(b, "general.architecture", "llama");
    g_key(b, "a.u8", KIND_u8), g_u8(b, 200);
    g_key(b, "a.i8", KIND_i8), g_u8(b, (u8)-100);
    g_key(b, "a.u16", KIND_u16), qn_buf_put(b, &(u16){ 60000 }, 2);
    g_key(b, "a.i16", KIND_i16), qn_buf_put(b, &(i16){ -30000 }, 2);
    g_key_u32(b, "a.u32", 4000000000u);
    g_key(b, "a.i32", KIND_i32), g_u32(b, (u32)-2000000000);
    g_key(b, "a.f32", KIND_f32), qn_buf_put(b, &(float){ 1.5f }, 4);
    g_key(b, "a.bool", KIND_bool), g_u8(b, 1);
    g_key(b, "a.u64", KIND_u64), g_u64(b, UINT64_MAX - 1);
    g_key(b, "a.i64", KIND_i64), g_u64(b, (u64)-5);
    g_key(b, "a.f64", KIND_f64), qn_buf_put(b, &(double){ 1e300 }, 8);
    g_key(b, "a.strs", KIND_array), g_u32(b, KIND_str), g_u64(b, 3), g_str(b, "x"), g_str(b, ""), g_str(b, "yz");
    g_key(b, "a.ints", KIND_array), g_u32(b, KIND_i16), g_u64(b, 2), qn_buf_put(b, (i16[]){ -7, 9 }, 4);
    g_key(b, "a.nest", KIND_array), g_u32(b, KIND_array), g_u64(b, 2);
    g_u32(b, KIND_u8), g_u64(b, 1), g_u8(b, 5), g_u32(b, KIND_str), g_u64(b, 1), g_str(b, "q");
    g_tensor(b, "m", 2, (u64[]){ 4, 2 }, 0, 0);
    g_tensor(b, "v", 1, (u64[]){ 32 }, 8, 32);
    *n_head = b->n;
    g_pad(b, 32);
    for (int i = 0; i < 8; i++) qn_buf_put(b, &(float){ (float)i + 0.5f }, 4);
    for (int i = 0; i < 34; i++) g_u8(b, (u8)i);
}

#endif
