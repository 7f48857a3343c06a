/* source.c - metadata and tensors of a model by name, whatever file they came from. Two growing arrays and a table over each;
 * look-ups that say in one sentence which key is missing or has the wrong type. Parses nothing. */
#include "format/source.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void qn_source_close(qn_source *s)
{
    if (!s) return;
    qn_table_close(&s->kv_index);
    qn_table_close(&s->tensor_index);
    for (int i = 0; i < s->n_maps; i++) qn_map_close(&s->maps[i]);
    qn_free(s->maps);
    qn_free(s->kvs);
    qn_free(s->tensors);
    qn_free(s->path);
    qn_arena_close(&s->arena);
    qn_free(s);
}

/* ---- looking up ---- */

const qn_value *qn_source_get(const qn_source *s, const char *key)
{
    const u32 i = qn_table_get(&s->kv_index, key, strlen(key));
    return i == QN_NONE ? NULL : &s->kvs[i].v;
}

const qn_tensor *qn_source_tensor(const qn_source *s, const char *name)
{
    const u32 i = qn_table_get(&s->tensor_index, name, strlen(name));
    return i == QN_NONE ? NULL : &s->tensors[i];
}

const char *qn_kind_name(qn_kind k)
{
    static const char *const names[N_KINDS] = {
        "uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "bool", "string", "array", "uint64", "int64",
        "float64",
    };
    return (unsigned)k < N_KINDS ? names[k] : "unknown";
}

static bool is_signed(qn_kind k) { return k == KIND_i8 || k == KIND_i16 || k == KIND_i32 || k == KIND_i64; }

static bool is_unsigned(qn_kind k) { return k == KIND_u8 || k == KIND_u16 || k == KIND_u32 || k == KIND_u64; }

static const qn_value *need(const qn_source *s, const char *key, qn_err *e)
{
    const qn_value *v = qn_source_get(s, key);
    if (!v) qn_fail(e, QN_EFORMAT, "%s: missing key %s", qn_path_tail(s->path), key);
    return v;
}

static bool mismatch(const qn_source *s, const char *key, const qn_value *v, const char *wanted, qn_err *e)
{
    return qn_fail(e, QN_EFORMAT, "%s: key %s is of type %s, must be %s", qn_path_tail(s->path), key, qn_kind_name(v->kind),
                   wanted);
}

bool qn_source_u32(const qn_source *s, const char *key, u32 lo, u32 hi, u32 *out, qn_err *e)
{
    const qn_value *v = need(s, key, e);
    if (!v) return false;
    if (!is_signed(v->kind) && !is_unsigned(v->kind)) return mismatch(s, key, v, "an integer", e);
    if (is_signed(v->kind) && v->as.i < 0)
        return qn_fail(e, QN_EFORMAT, "%s: key %s is %" PRId64 ", must be within %u..%u", qn_path_tail(s->path), key,
                       v->as.i, lo, hi);
    if (v->as.u < lo || v->as.u > hi)
        return qn_fail(e, QN_EFORMAT, "%s: key %s is %" PRIu64 ", must be within %u..%u", qn_path_tail(s->path), key,
                       v->as.u, lo, hi);
    *out = (u32)v->as.u;
    return true;
}

bool qn_source_f32(const qn_source *s, const char *key, float *out, qn_err *e)
{
    const qn_value *v = need(s, key, e);
    if (!v) return false;
    if (v->kind != KIND_f32 && v->kind != KIND_f64) return mismatch(s, key, v, "a float", e);
    if (!isfinite(v->as.f) || !isfinite((float)v->as.f))
        return qn_fail(e, QN_EFORMAT, "%s: key %s is not a finite number", qn_path_tail(s->path), key);
    *out = (float)v->as.f;
    return true;
}

bool qn_source_bool(const qn_source *s, const char *key, bool *out, qn_err *e)
{
    const qn_value *v = need(s, key, e);
    if (!v) return false;
    if (v->kind != KIND_bool) return mismatch(s, key, v, "a bool", e);
    *out = v->as.b;
    return true;
}

bool qn_source_str(const qn_source *s, const char *key, qn_str *out, qn_err *e)
{
    const qn_value *v = need(s, key, e);
    if (!v) return false;
    if (v->kind != KIND_str) return mismatch(s, key, v, "a string", e);
    *out = v->as.s;
    return true;
}

size_t qn_kind_bytes(qn_kind k)
{
    static const u8 bytes[N_KINDS] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    return (unsigned)k < N_KINDS ? bytes[k] : 0;
}

void qn_value_load(qn_value *v, qn_kind kind, const void *p)
{
    u64 raw = 0;
    const size_t n = qn_kind_bytes(kind);
    memcpy(&raw, p, n); /* the machine is little-endian, as the file is */
    float f;
    memcpy(&f, &raw, 4);
    v->kind = kind;
    if (kind == KIND_bool) v->as.b = raw != 0;
    else if (kind == KIND_f32) v->as.f = (double)f;
    else if (is_signed(kind)) v->as.i = (i64)(raw << (64 - 8 * n)) >> (64 - 8 * n);
    else v->as.u = raw; /* f64 too: its bits are the double */
}

static qn_value item(const qn_value *v, size_t i)
{
    qn_value x = { .kind = v->item };
    const size_t n = qn_kind_bytes(v->item);
    if (v->kind == KIND_array && v->data && i < v->n && n) qn_value_load(&x, v->item, (const u8 *)v->data + i * n);
    return x;
}

double qn_value_at(const qn_value *v, size_t i)
{
    const qn_value x = item(v, i);
    if (x.kind == KIND_f32 || x.kind == KIND_f64) return x.as.f;
    if (x.kind == KIND_bool) return x.as.b;
    return is_signed(x.kind) ? (double)x.as.i : (double)x.as.u;
}

i64 qn_value_int_at(const qn_value *v, size_t i)
{
    const qn_value x = item(v, i);
    if (x.kind == KIND_f32 || x.kind == KIND_f64) return x.as.f > -0x1p63 && x.as.f < 0x1p63 ? (i64)x.as.f : 0;
    return x.kind == KIND_bool ? x.as.b : x.as.i;
}

/* ---- building ---- */

/* Room for one more: an array holds as many as the next power of two, so no capacity needs to be kept. */
static void *grow(void *p, size_t n, size_t size, qn_err *e)
{
    size_t bytes;
    if (n & (n - 1)) return p;
    if (!qn_mul(n ? 2 * n : 1, size, &bytes)) {
        qn_fail(e, QN_ENOMEM, "out of memory: %zu x %zu bytes asked for", 2 * n, size);
        return NULL;
    }
    return qn_resize(p, bytes, e);
}

bool qn_source_add(qn_source *s, qn_str key, const qn_value *v, qn_err *e)
{
    qn_kv *kvs = grow(s->kvs, s->n_kvs, sizeof *kvs, e);
    if (!kvs) return false;
    s->kvs = kvs;
    const u32 at = qn_table_put(&s->kv_index, key.p, key.n, (u32)s->n_kvs, e);
    if (at == QN_NONE) return false;
    if (at != (u32)s->n_kvs)
        return qn_fail(e, QN_EFORMAT, "%s: key %.*s is there twice", qn_path_tail(s->path), (int)qn_minz(key.n, 80), key.p);
    s->kvs[s->n_kvs++] = (qn_kv){ .key = key, .v = *v };
    return true;
}

bool qn_source_put(qn_source *s, const char *key, const qn_value *v, qn_err *e)
{
    const u32 i = qn_table_get(&s->kv_index, key, strlen(key));
    if (i != QN_NONE) {
        s->kvs[i].v = *v;
        return true;
    }
    const qn_str k = { .p = qn_arena_strndup(&s->arena, key, strlen(key), e), .n = strlen(key) };
    return k.p && qn_source_add(s, k, v, e);
}

bool qn_source_put_u32(qn_source *s, const char *key, u32 v, qn_err *e)
{
    return qn_source_put(s, key, &(qn_value){ .kind = KIND_u32, .as.u = v }, e);
}

bool qn_source_put_f32(qn_source *s, const char *key, float v, qn_err *e)
{
    return qn_source_put(s, key, &(qn_value){ .kind = KIND_f32, .as.f = (double)v }, e);
}

bool qn_source_put_bool(qn_source *s, const char *key, bool v, qn_err *e)
{
    return qn_source_put(s, key, &(qn_value){ .kind = KIND_bool, .as.b = v }, e);
}

bool qn_source_put_str(qn_source *s, const char *key, const char *p, size_t n, qn_err *e)
{
    const char *copy = qn_arena_strndup(&s->arena, p, n, e);
    return copy && qn_source_put(s, key, &(qn_value){ .kind = KIND_str, .as.s = { copy, n } }, e);
}

bool qn_source_put_array(qn_source *s, const char *key, qn_kind kind, const void *data, size_t n, qn_err *e)
{
    return qn_source_put(s, key, &(qn_value){ .kind = KIND_array, .item = kind, .data = data, .n = n }, e);
}

bool qn_source_put_strs(qn_source *s, const char *key, const qn_str *strs, size_t n, qn_err *e)
{
    return qn_source_put(s, key, &(qn_value){ .kind = KIND_array, .item = KIND_str, .strs = strs, .n = n }, e);
}

bool qn_source_put_tensor(qn_source *s, const qn_tensor *t, qn_err *e)
{
    qn_tensor *tensors = grow(s->tensors, s->n_tensors, sizeof *tensors, e);
    if (!tensors) return false;
    s->tensors = tensors;
    const size_t n = strlen(t->name);
    const char *name = qn_arena_strndup(&s->arena, t->name, n, e);
    if (!name) return false;
    const u32 at = qn_table_put(&s->tensor_index, name, n, (u32)s->n_tensors, e);
    if (at == QN_NONE) return false;
    if (at != (u32)s->n_tensors)
        return qn_fail(e, QN_EFORMAT, "%s: tensor %.80s is there twice", qn_path_tail(s->path), name);
    s->tensors[s->n_tensors] = *t;
    s->tensors[s->n_tensors++].name = name;
    return true;
}

bool qn_source_add_map(qn_source *s, const char *path, qn_err *e)
{
    qn_map *maps = grow(s->maps, (size_t)s->n_maps, sizeof *maps, e);
    if (!maps) return false;
    s->maps = maps;
    if (!qn_map_open(&s->maps[s->n_maps], path, e)) return false;
    s->n_maps++;
    return true;
}
