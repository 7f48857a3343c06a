/* source.h - what a model is before it is a model: metadata by GGUF key and tensors by GGUF name. A GGUF file is read into
 * one (gguf.c), a Hugging Face folder is translated into one (model/hf_*.c), and the writer (gguf_write.c) turns one into a
 * file. Whoever asks does not see where it came from. */
#ifndef QN_SOURCE_H
#define QN_SOURCE_H

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/table.h"
#include "format/dtype.h"

/* GGUF's own numbers for value types */
typedef enum qn_kind {
    KIND_u8, KIND_i8, KIND_u16, KIND_i16, KIND_u32, KIND_i32, KIND_f32, KIND_bool, KIND_str, KIND_array, KIND_u64,
    KIND_i64, KIND_f64,
    N_KINDS
} qn_kind;

typedef struct qn_value {
    qn_kind kind, item;        /* item: of an array's elements */
    union { u64 u; i64 i; double f; bool b; qn_str s; } as; /* integers of every width are widened; signed ones to i */
    size_t n;                  /* array length */
    const void *data;          /* array of numbers or bools: little-endian elements, possibly unaligned: use qn_value_at */
    const qn_str *strs;        /* array of strings */
} qn_value;                    /* arrays of arrays are checked and then kept with n, data = NULL */

typedef struct qn_kv { qn_str key; qn_value v; } qn_kv;

typedef struct qn_tensor {
    const char *name;          /* NUL-terminated, at most 64 bytes + NUL (names of Hugging Face: 256) */
    qn_dtype type;
    int n_dims;                /* 1..4 */
    u64 dims[4];               /* contiguous dimension first, unused ones 1: [cols, rows, 1, 1] */
    const u8 *data;            /* aligned to its element at least: 8 in GGUF, 2 or 4 in safetensors */
    u64 bytes;
    int file;                  /* index into maps */
} qn_tensor;

typedef struct qn_source {
    char *path;                /* as opened, for messages */
    qn_kv *kvs; size_t n_kvs;
    qn_tensor *tensors; size_t n_tensors;
    qn_table kv_index, tensor_index;
    qn_map *maps; int n_maps;  /* the files behind the tensors */
    qn_arena arena;            /* keys, names, string arrays, derived tensors */
    u32 alignment;
} qn_source;

void qn_source_close(qn_source *s); /* also frees s */

const qn_value *qn_source_get(const qn_source *s, const char *key);            /* NULL: not there */
const qn_tensor *qn_source_tensor(const qn_source *s, const char *name);      /* NULL: not there */

/* Typed look-ups. Missing: false with "PATH: missing key KEY"; another type or out of range: false naming both. */
bool qn_source_u32(const qn_source *s, const char *key, u32 lo, u32 hi, u32 *out, qn_err *e); /* any integer kind */
bool qn_source_f32(const qn_source *s, const char *key, float *out, qn_err *e);              /* f32 or f64, finite */
bool qn_source_bool(const qn_source *s, const char *key, bool *out, qn_err *e);
bool qn_source_str(const qn_source *s, const char *key, qn_str *out, qn_err *e);

/* Element i of an array of numbers. */
double qn_value_at(const qn_value *v, size_t i);
i64 qn_value_int_at(const qn_value *v, size_t i);
const char *qn_kind_name(qn_kind k);
size_t qn_kind_bytes(qn_kind k);                                     /* of a number or bool; 0 for strings and arrays */
void qn_value_load(qn_value *v, qn_kind kind, const void *p);        /* one number or bool as the file holds it */

/* Readers: a key that is already there is an error, and the key's bytes are borrowed. */
bool qn_source_add(qn_source *s, qn_str key, const qn_value *v, qn_err *e);
/* Maps a file behind the tensors; it is maps[n_maps - 1] then. */
bool qn_source_add_map(qn_source *s, const char *path, qn_err *e);

/* Building one (translators, the quantiser): keys and strings are copied into the arena. Replaces a key that is there. */
bool qn_source_put(qn_source *s, const char *key, const qn_value *v, qn_err *e); /* strings in v are borrowed */
bool qn_source_put_u32(qn_source *s, const char *key, u32 v, qn_err *e);
bool qn_source_put_f32(qn_source *s, const char *key, float v, qn_err *e);
bool qn_source_put_bool(qn_source *s, const char *key, bool v, qn_err *e);
bool qn_source_put_str(qn_source *s, const char *key, const char *p, size_t n, qn_err *e);
/* Arrays are borrowed, not copied: they must live as long as s (put them in its arena). */
bool qn_source_put_array(qn_source *s, const char *key, qn_kind item, const void *data, size_t n, qn_err *e);
bool qn_source_put_strs(qn_source *s, const char *key, const qn_str *strs, size_t n, qn_err *e);
/* The name is copied, data is borrowed; a name that is there is an error. */
bool qn_source_put_tensor(qn_source *s, const qn_tensor *t, qn_err *e);

#endif
