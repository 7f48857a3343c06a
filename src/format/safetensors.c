/* safetensors.c - names, types, shapes and places of the tensors of a Hugging Face folder. A file is a length, a JSON header and
 * data; the header is checked against the bytes that are there, number by number, and the data stays mapped. Several files are
 * named by an index, whose names are not trusted. What the tensors mean is model/hf.c's to say. */
#include "format/safetensors.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "format/safetensors_parse.h"

enum { MOST_HEADER = 100000000, MOST_INDEX = 64 << 20, MOST_NAME = 256, MOST_SHARDS = 1024, MOST_DEPTH = 16 };

typedef struct reader {
    qn_source *s;
    const char *path;
    const u8 *data; u64 n_data; /* behind the header */
    int file;
    qn_err *e;
} reader;

static bool bad(const reader *r, const char *name, const char *what)
{
    return qn_fail(r->e, QN_EFORMAT, "%s: tensor %.80s: %s", r->path, name, what);
}

/* Types that exist but hold no weights we could use. They may stand in the file as long as nobody needs them. */
static bool is_other_dtype(const char *dtype)
{
    static const char *const others[] = {
        "BOOL", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64", "F64", "C64", "F4", "F6_E2M3", "F6_E3M2",
        "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ",
    };
    for (size_t i = 0; i < QN_COUNT(others); i++)
        if (!strcmp(dtype, others[i])) return true;
    return false;
}

static bool is_weight(const char *name)
{
    const size_t n = strlen(name);
    return (n >= 7 && !strcmp(name + n - 7, ".weight")) || (n >= 5 && !strcmp(name + n - 5, ".bias"));
}

/* dims come contiguous first: the file's shape backwards. A scalar is one element. */
static bool read_shape(const reader *r, qn_tensor *t, yyjson_val *shape, size_t *n)
{
    const size_t n_dims = yyjson_arr_size(shape);
    if (!yyjson_is_arr(shape)) return bad(r, t->name, "shape is not an array");
    if (n_dims > 4) return bad(r, t->name, "has more than 4 dimensions");
    for (size_t d = 0; d < 4; d++) t->dims[d] = 1;
    t->n_dims = n_dims ? (int)n_dims : 1;
    *n = 1;
    for (size_t d = 0; d < n_dims; d++) {
        yyjson_val *v = yyjson_arr_get(shape, n_dims - 1 - d);
        const u64 dim = yyjson_get_uint(v);
        if (!yyjson_is_uint(v) || dim < 1 || dim > INT32_MAX)
            return bad(r, t->name, "a dimension is not a whole number from 1 to 2147483647");
        if (!qn_mul(*n, dim, n)) return bad(r, t->name, "has more elements than can be counted");
        t->dims[d] = dim;
    }
    return true;
}

static bool read_offsets(const reader *r, qn_tensor *t, yyjson_val *offsets)
{
    yyjson_val *first = yyjson_arr_get(offsets, 0), *last = yyjson_arr_get(offsets, 1);
    if (yyjson_arr_size(offsets) != 2 || !yyjson_is_uint(first) || !yyjson_is_uint(last))
        return bad(r, t->name, "data_offsets are not two whole numbers");
    const u64 begin = yyjson_get_uint(first), end = yyjson_get_uint(last);
    if (begin > end) return bad(r, t->name, "data_offsets end before they begin");
    if (end > r->n_data)
        return qn_fail(r->e, QN_EFORMAT, "%s: too short: tensor %.80s needs %" PRIu64 " bytes more than there are",
                       r->path, t->name, end - r->n_data);
    t->data = r->data + begin;
    t->bytes = end - begin;
    return true;
}

/* Old writers did not pad the header, so data may begin anywhere: an element must not straddle its alignment. */
static bool align(const reader *r, qn_tensor *t)
{
    if ((uintptr_t)t->data % qn_dtypes[t->type].block_bytes == 0) return true;
    u8 *copy = qn_arena_new(&r->s->arena, (size_t)t->bytes, r->e);
    if (!copy) return false;
    memcpy(copy, t->data, (size_t)t->bytes);
    t->data = copy;
    return true;
}

static bool read_tensor(const reader *r, const char *name, size_t n_name, yyjson_val *v, u64 *used)
{
    qn_tensor t = { .name = name, .file = r->file };
    if (!n_name || n_name > MOST_NAME || strlen(name) != n_name)
        return qn_fail(r->e, QN_EFORMAT, "%s: a tensor's name is empty, longer than %d bytes or has a NUL in it", r->path,
                       MOST_NAME);
    const char *dtype = yyjson_get_str(yyjson_obj_get(v, "dtype"));
    if (!yyjson_is_obj(v) || yyjson_obj_size(v) != 3 || !dtype)
        return bad(r, name, "is not described by dtype, shape and data_offsets");
    if (!read_offsets(r, &t, yyjson_obj_get(v, "data_offsets"))) return false;
    *used += t.bytes; /* cannot wrap: each is at most the file, and there are fewer than 2^27 */
    static const struct { const char *name; qn_dtype type; } known[] = {
        { "F32", DT_f32 }, { "F16", DT_f16 }, { "BF16", DT_bf16 },
    };
    size_t k = 0, n = 0, bytes = 0;
    while (k < QN_COUNT(known) && strcmp(dtype, known[k].name)) k++;
    if (k == QN_COUNT(known)) {
        if (is_other_dtype(dtype) && !is_weight(name)) return true;
        return qn_fail(r->e, QN_EUNSUPPORTED, "%s: tensor %.80s: unsupported dtype %.20s", r->path, name, dtype);
    }
    t.type = known[k].type;
    if (!read_shape(r, &t, yyjson_obj_get(v, "shape"), &n)) return false;
    if (!qn_mul(n, qn_dtypes[t.type].block_bytes, &bytes) || bytes != t.bytes)
        return bad(r, name, "data_offsets do not fit shape and dtype");
    return align(r, &t) && qn_source_put_tensor(r->s, &t, r->e);
}

bool qn_safetensors_parse(qn_source *s, const u8 *p, u64 bytes, int file, const char *path, qn_err *e)
{
    reader r = { .s = s, .path = qn_path_tail(path), .file = file, .e = e };
    u64 n = 0, used = 0;
    if (bytes < 8) return qn_fail(e, QN_EFORMAT, "%s: too short to be a safetensors file: %" PRIu64 " bytes", r.path, bytes);
    memcpy(&n, p, 8);
    if (n > MOST_HEADER)
        return qn_fail(e, QN_EFORMAT, "%s: header of %" PRIu64 " bytes, the limit is %d", r.path, n, MOST_HEADER);
    if (n > bytes - 8) return qn_fail(e, QN_EFORMAT, "%s: too short for its header of %" PRIu64 " bytes", r.path, n);
    if (n < 2 || p[8] != '{')
        return qn_fail(e, QN_EFORMAT, "%s: not a safetensors file: its header does not begin with {", r.path);
    r.data = p + 8 + n;
    r.n_data = bytes - 8 - n;
    yyjson_doc *doc = qn_json_parse((const char *)p + 8, (size_t)n, MOST_DEPTH, path, e);
    if (!doc) return false;
    bool ok = true;
    size_t i, count;
    yyjson_val *key, *v;
    yyjson_obj_foreach(yyjson_doc_get_root(doc), i, count, key, v) {
        if (!ok) break;
        if (!strcmp(yyjson_get_str(key), "__metadata__")) continue;
        ok = read_tensor(&r, yyjson_get_str(key), yyjson_get_len(key), v, &used);
    }
    yyjson_doc_free(doc);
    if (ok && used != r.n_data)
        ok = qn_fail(e, QN_EFORMAT, "%s: %" PRIu64 " bytes of data, its tensors take %" PRIu64, r.path, r.n_data, used);
    return ok;
}

static bool read_file(qn_source *s, const char *dir, const char *name, qn_err *e)
{
    char *path = qn_path_within(dir, name, e);
    const bool ok = path && qn_source_add_map(s, path, e)
                    && qn_safetensors_parse(s, s->maps[s->n_maps - 1].p, s->maps[s->n_maps - 1].bytes, s->n_maps - 1, path, e);
    qn_free(path);
    return ok;
}

/* ---- several files ---- */

/* Reads each shard when it is first named; then every tensor must be in the shard that the index says. */
static bool read_shards(qn_source *s, const char *dir, const char *index, yyjson_val *map, qn_table *shards, qn_err *e)
{
    size_t i, count;
    yyjson_val *key, *v;
    yyjson_obj_foreach(map, i, count, key, v) {
        const char *shard = yyjson_get_str(v);
        if (!shard || strlen(shard) != yyjson_get_len(v))
            return qn_fail(e, QN_EFORMAT, "%s: weight_map of %.80s is not a file name", qn_path_tail(index),
                           yyjson_get_str(key));
        if (qn_table_get(shards, shard, strlen(shard)) != QN_NONE) continue;
        if (shards->n >= MOST_SHARDS)
            return qn_fail(e, QN_EFORMAT, "%s: names more than %d files", qn_path_tail(index), MOST_SHARDS);
        if (!read_file(s, dir, shard, e)) return false;
        if (qn_table_put(shards, shard, strlen(shard), (u32)s->n_maps - 1, e) == QN_NONE) return false;
    }
    yyjson_obj_foreach(map, i, count, key, v) {
        const qn_tensor *t = qn_source_tensor(s, yyjson_get_str(key));
        if (t ? t->file != (int)qn_table_get(shards, yyjson_get_str(v), yyjson_get_len(v)) : is_weight(yyjson_get_str(key)))
            return qn_fail(e, QN_EFORMAT, "%s: tensor %.80s is not in %.80s", qn_path_tail(index), yyjson_get_str(key),
                           yyjson_get_str(v));
    }
    return true;
}

static bool read_index(qn_source *s, const char *dir, const char *index, qn_err *e)
{
    yyjson_doc *doc = qn_json_read(index, MOST_INDEX, e);
    if (!doc) return false;
    yyjson_val *map = yyjson_obj_get(yyjson_doc_get_root(doc), "weight_map");
    qn_table shards = { 0 };
    const bool ok = yyjson_obj_size(map) ? read_shards(s, dir, index, map, &shards, e)
                                         : qn_fail(e, QN_EFORMAT, "%s: missing or empty weight_map", qn_path_tail(index));
    qn_table_close(&shards);
    yyjson_doc_free(doc);
    return ok;
}

static bool is_there(const char *dir, const char *name)
{
    char *path = qn_path_join(dir, name, NULL);
    const bool there = path && qn_is_file(path);
    qn_free(path);
    return there;
}

bool qn_safetensors_read(qn_source *s, const char *dir, qn_err *e)
{
    static const char one[] = "model.safetensors", many[] = "model.safetensors.index.json";
    if (is_there(dir, one) || !is_there(dir, many)) return read_file(s, dir, one, e);
    char *path = qn_path_within(dir, many, e);
    const bool ok = path && read_index(s, dir, path, e);
    qn_free(path);
    return ok;
}
