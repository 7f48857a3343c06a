/* gguf.c - reads GGUF v2 and v3. The file is mapped; keys, strings and tensor data stay where they are in it. A cursor walks the
 * header and knows how many bytes are left: every length and count is compared with that before anything is allocated for
 * it. Knows no model: what a key means is said elsewhere. Split models: gguf_split.c; writing: gguf_write.c. */
#include "format/gguf.h"

#include <inttypes.h>
#include <string.h>

#include "format/gguf_parse.h"

enum {
    MOST_KEYS = 1000000,
    MOST_TENSORS = 1000000,
    MOST_KEY = 65535,            /* as the format's description says */
    MOST_NAME = 64,
    MOST_STRING = 64 << 20,
    MOST_NESTING = 8,            /* arrays of arrays */
    LEAST_KV = 8 + 1 + 4 + 1,    /* bytes of the smallest key and value: length, one letter, type, one byte */
    LEAST_TENSOR = 8 + 1 + 4 + 8 + 4 + 8,
    MOST_ALIGNMENT = 1 << 20,
};

typedef struct cursor {
    const u8 *begin, *at, *end;
    qn_source *s;
    const char *path;
    qn_err *e;
} cursor;

static u64 left(const cursor *c) { return (u64)(c->end - c->at); }

static bool cut(const cursor *c, const char *what)
{
    return qn_fail(c->e, QN_EFORMAT, "%s: too short: the file ends at byte %" PRIu64 ", inside %s", c->path,
                   (u64)(c->end - c->begin), what);
}

static bool take(cursor *c, void *out, size_t n, const char *what)
{
    if (left(c) < n) return cut(c, what);
    memcpy(out, c->at, n);
    c->at += n;
    return true;
}

static bool take_str(cursor *c, qn_str *out, u64 most, const char *what)
{
    u64 n = 0;
    if (!take(c, &n, sizeof n, what)) return false;
    if (n > most)
        return qn_fail(c->e, QN_EFORMAT, "%s: %s is %" PRIu64 " bytes long, the limit is %" PRIu64, c->path, what, n, most);
    if (n > left(c)) return cut(c, what);
    *out = (qn_str){ .p = (const char *)c->at, .n = (size_t)n };
    c->at += n;
    return true;
}

/* ---- what the file is ---- */

static const char *looks_like(const u8 *p, u64 n)
{
    static const struct { const char *magic; size_t n; const char *what; } known[] = {
        { "FUGG", 4, "a big-endian GGUF file" }, { "GGML", 4, "an old GGML file" }, { "lmgg", 4, "an old GGML file" },
        { "ggml", 4, "an old GGML file" }, { "ggjt", 4, "an old GGJT file" }, { "tjgg", 4, "an old GGJT file" },
        { "ggmf", 4, "an old GGMF file" }, { "fmgg", 4, "an old GGMF file" }, { "ggla", 4, "a GGLA adapter" },
        { "algg", 4, "a GGLA adapter" }, { "\177ELF", 4, "a program (ELF)" }, { "\211PNG", 4, "a PNG image" },
        { "PK\003\004", 4, "a zip archive (or a PyTorch file)" }, { "\037\213", 2, "a gzip file" },
        { "\050\265\057\375", 4, "a zstd file" },
        { "\200\002", 2, "a Python pickle" }, { "<!", 2, "a web page" }, { "<html", 5, "a web page" },
        { "version https://git-lfs", 23, "a Git LFS pointer, not the file itself" }, { "{", 1, "JSON text" },
    };
    for (size_t i = 0; i < QN_COUNT(known); i++)
        if (n >= known[i].n && !memcmp(p, known[i].magic, known[i].n)) return known[i].what;
    if (n > 9 && p[8] == '{' && !p[5] && !p[6] && !p[7]) return "a safetensors file";
    return NULL;
}

static bool check_magic(cursor *c)
{
    const u64 n = left(c);
    if (n >= 4 && !memcmp(c->at, "GGUF", 4)) {
        c->at += 4;
        return true;
    }
    const char *like = looks_like(c->at, n);
    if (like) return qn_fail(c->e, QN_EFORMAT, "%s: not a GGUF file; it looks like %s", c->path, like);
    if (n < 4) return qn_fail(c->e, QN_EFORMAT, "%s: too short to be a GGUF file: %" PRIu64 " bytes", c->path, n);
    return qn_fail(c->e, QN_EFORMAT, "%s: not a GGUF file", c->path);
}

static bool check_version(cursor *c)
{
    u32 version = 0;
    if (!take(c, &version, sizeof version, "the header")) return false;
    if (version == 2 || version == 3) return true;
    if (!(version & 0xFFFF) && version)
        return qn_fail(c->e, QN_EUNSUPPORTED, "%s: big-endian GGUF (version %u), only little-endian files can be read",
                       c->path, __builtin_bswap32(version));
    return qn_fail(c->e, QN_EUNSUPPORTED, "%s: GGUF version %u, only 2 and 3 can be read", c->path, version);
}

/* ---- keys and values ---- */

/* What stands in the place of a value, named by the key it belongs to. */
static bool bad(const cursor *c, qn_str key, const char *what)
{
    return qn_fail(c->e, QN_EFORMAT, "%s: key %.*s: %s", c->path, (int)qn_minz(key.n, 80), key.p, what);
}

static bool take_array(cursor *c, qn_str key, qn_value *v, int depth);

static bool take_strs(cursor *c, qn_str key, qn_value *v)
{
    const u8 *from = c->at;
    qn_str one;
    for (size_t i = 0; i < v->n; i++) /* all are walked over before there is memory for any */
        if (!take_str(c, &one, MOST_STRING, "a string of an array")) return false;
    size_t bytes;
    if (!qn_mul(v->n, sizeof one, &bytes)) return bad(c, key, "too many strings");
    qn_str *strs = qn_arena_new(&c->s->arena, bytes, c->e);
    if (!strs) return false;
    c->at = from;
    for (size_t i = 0; i < v->n; i++)
        if (!take_str(c, &strs[i], MOST_STRING, "a string of an array")) return false;
    v->strs = strs;
    return true;
}

/* Arrays of arrays mean nothing to anyone yet: their lengths are checked, their content is skipped. */
static bool take_arrays(cursor *c, qn_str key, size_t n, int depth)
{
    if (depth > MOST_NESTING) return bad(c, key, "arrays nested too deep");
    for (size_t i = 0; i < n; i++) {
        qn_value inner = { .kind = KIND_array };
        if (!take_array(c, key, &inner, depth)) return false;
    }
    return true;
}

static bool take_array(cursor *c, qn_str key, qn_value *v, int depth)
{
    u32 kind = 0;
    u64 n = 0;
    if (!take(c, &kind, sizeof kind, "an array") || !take(c, &n, sizeof n, "an array")) return false;
    if (kind >= N_KINDS)
        return qn_fail(c->e, QN_EFORMAT, "%s: key %.*s: array of unknown type %u", c->path, (int)qn_minz(key.n, 80), key.p,
                       kind);
    const size_t fixed = qn_kind_bytes((qn_kind)kind);
    const size_t least = fixed ? fixed : kind == KIND_str ? 8 : 12; /* of one element */
    if (n > left(c) / least)
        return qn_fail(c->e, QN_EFORMAT, "%s: too short: key %.*s has %" PRIu64 " elements in %" PRIu64 " bytes", c->path,
                       (int)qn_minz(key.n, 80), key.p, n, left(c));
    v->item = (qn_kind)kind;
    v->n = (size_t)n;
    if (kind == KIND_array) return take_arrays(c, key, v->n, depth + 1);
    if (kind == KIND_str) return take_strs(c, key, v);
    v->data = c->at;
    c->at += v->n * fixed;
    return true;
}

static bool take_value(cursor *c, qn_str key, qn_value *v)
{
    u32 kind = 0;
    if (!take(c, &kind, sizeof kind, "a value")) return false;
    if (kind >= N_KINDS)
        return qn_fail(c->e, QN_EFORMAT, "%s: key %.*s: unknown type %u", c->path, (int)qn_minz(key.n, 80), key.p, kind);
    v->kind = (qn_kind)kind;
    if (kind == KIND_array) return take_array(c, key, v, 1);
    if (kind == KIND_str) return take_str(c, &v->as.s, MOST_STRING, "a string value");
    const size_t n = qn_kind_bytes(v->kind);
    if (left(c) < n) return cut(c, "a value");
    if (kind == KIND_bool && *c->at > 1) return bad(c, key, "a bool that is neither 0 nor 1");
    qn_value_load(v, v->kind, c->at);
    c->at += n;
    return true;
}

static bool take_keys(cursor *c, u64 n)
{
    for (u64 i = 0; i < n; i++) {
        qn_str key;
        qn_value v = { 0 };
        if (!take_str(c, &key, MOST_KEY, "a key")) return false;
        if (!key.n) return qn_fail(c->e, QN_EFORMAT, "%s: key %" PRIu64 " has no name", c->path, i);
        if (!take_value(c, key, &v) || !qn_source_add(c->s, key, &v, c->e)) return false;
    }
    return true;
}

static bool find_alignment(cursor *c)
{
    c->s->alignment = 32;
    const qn_value *v = qn_source_get(c->s, "general.alignment");
    if (!v) return true;
    if (v->kind != KIND_u32)
        return qn_fail(c->e, QN_EFORMAT, "%s: key general.alignment is of type %s, must be uint32", c->path,
                       qn_kind_name(v->kind));
    const u64 a = v->as.u;
    if (a < 8 || a > MOST_ALIGNMENT || (a & (a - 1)))
        return qn_fail(c->e, QN_EFORMAT, "%s: key general.alignment is %" PRIu64 ", must be a power of two from 8 to %d",
                       c->path, a, MOST_ALIGNMENT);
    c->s->alignment = (u32)a;
    return true;
}

/* ---- tensors ---- */

typedef struct info { char name[MOST_NAME + 1]; qn_tensor t; u64 offset; } info;

static bool wrong(const cursor *c, const info *i, const char *what, u64 value)
{
    return qn_fail(c->e, QN_EFORMAT, "%s: tensor %s: %s %" PRIu64, c->path, i->name, what, value);
}

static bool take_name(cursor *c, info *i)
{
    qn_str name;
    if (!take_str(c, &name, MOST_NAME, "the name of a tensor")) return false;
    if (!name.n || memchr(name.p, 0, name.n))
        return qn_fail(c->e, QN_EFORMAT, "%s: tensor %zu has %s", c->path, c->s->n_tensors,
                       name.n ? "a NUL in its name" : "no name");
    memcpy(i->name, name.p, name.n);
    i->name[name.n] = 0;
    i->t.name = i->name;
    return true;
}

/* dims and type; sets bytes. A dimension is an int everywhere else, so it must fit one. */
static bool take_shape(cursor *c, info *i)
{
    u32 n_dims = 0, type = 0;
    if (!take(c, &n_dims, sizeof n_dims, "a tensor's shape")) return false;
    if (n_dims < 1 || n_dims > 4) return wrong(c, i, "must have 1 to 4 dimensions, has", n_dims);
    size_t n = 1;
    for (u32 d = 0; d < 4; d++) {
        i->t.dims[d] = 1;
        if (d >= n_dims) continue;
        if (!take(c, &i->t.dims[d], sizeof i->t.dims[d], "a tensor's shape")) return false;
        if (!i->t.dims[d] || i->t.dims[d] > INT32_MAX)
            return wrong(c, i, "a dimension must be from 1 to 2147483647, is", i->t.dims[d]);
        if (!qn_mul(n, i->t.dims[d], &n))
            return wrong(c, i, "has more elements than can be counted: a dimension is", i->t.dims[d]);
    }
    i->t.n_dims = (int)n_dims;
    if (!take(c, &type, sizeof type, "a tensor's type")) return false;
    if (!qn_dtype_from_gguf(type, &i->t.type))
        return qn_fail(c->e, QN_EUNSUPPORTED, "%s: unsupported type %u for tensor %s", c->path, type, i->name);
    const qn_dtype_info *dt = &qn_dtypes[i->t.type];
    if (i->t.dims[0] % (u64)dt->block)
        return qn_fail(c->e, QN_EFORMAT, "%s: tensor %s: rows of %" PRIu64 " weights, %s needs a multiple of %d", c->path,
                       i->name, i->t.dims[0], dt->name, dt->block);
    size_t bytes;
    if (!qn_mul(n / (size_t)dt->block, dt->block_bytes, &bytes)) return wrong(c, i, "is too large: elements", n);
    i->t.bytes = bytes;
    return true;
}

static bool take_info(cursor *c, info *i)
{
    *i = (info){ 0 };
    if (!take_name(c, i) || !take_shape(c, i) || !take(c, &i->offset, sizeof i->offset, "a tensor's place")) return false;
    if (i->offset % c->s->alignment)
        return qn_fail(c->e, QN_EFORMAT, "%s: tensor %s: offset %" PRIu64 " is not a multiple of the alignment %u",
                       c->path, i->name, i->offset, c->s->alignment);
    return true;
}

/* The data begins at the first aligned byte behind the last tensor's entry, so offsets become pointers only now. */
static bool place(cursor *c, const u64 *offsets)
{
    const u64 a = c->s->alignment, head = (u64)(c->at - c->begin), start = (head + a - 1) / a * a;
    const u64 total = (u64)(c->end - c->begin), there = total > start ? total - start : 0;
    for (size_t k = 0; k < c->s->n_tensors; k++) {
        qn_tensor *t = &c->s->tensors[k];
        if (offsets[k] > there || t->bytes > there - offsets[k]) {
            u64 end;
            if (__builtin_add_overflow(offsets[k], t->bytes, &end)) end = UINT64_MAX;
            return qn_fail(c->e, QN_EFORMAT, "%s: too short: tensor %s needs %" PRIu64 " bytes more than there are",
                           c->path, t->name, end - there);
        }
        t->data = c->begin + start + offsets[k];
    }
    return true;
}

static bool take_tensors(cursor *c, u64 n)
{
    u64 *offsets = NULL;
    bool ok = true;
    for (u64 k = 0; ok && k < n; k++) {
        info i;
        if (!(k & (k - 1))) { /* full: at 0, 1, 2, 4, ... */
            u64 *wider = qn_resize(offsets, (size_t)(k ? 2 * k : 1) * sizeof *offsets, c->e);
            if (!wider) break;
            offsets = wider;
        }
        ok = take_info(c, &i) && qn_source_put_tensor(c->s, &i.t, c->e);
        offsets[k] = i.offset;
    }
    ok = ok && c->s->n_tensors == n && place(c, offsets);
    qn_free(offsets);
    return ok;
}

bool qn_gguf_parse(qn_source *s, const u8 *p, u64 bytes, qn_err *e)
{
    cursor c = { .begin = p, .at = p, .end = p + bytes, .s = s, .path = qn_path_tail(s->path), .e = e };
    u64 n_tensors = 0, n_keys = 0;
    if (!check_magic(&c) || !check_version(&c) || !take(&c, &n_tensors, sizeof n_tensors, "the header")
        || !take(&c, &n_keys, sizeof n_keys, "the header"))
        return false;
    if (n_keys > MOST_KEYS || n_keys > left(&c) / LEAST_KV)
        return qn_fail(e, QN_EFORMAT, "%s: too short for the %" PRIu64 " keys it announces", c.path, n_keys);
    if (n_tensors > MOST_TENSORS || n_tensors > left(&c) / LEAST_TENSOR)
        return qn_fail(e, QN_EFORMAT, "%s: too short for the %" PRIu64 " tensors it announces", c.path, n_tensors);
    return take_keys(&c, n_keys) && find_alignment(&c) && take_tensors(&c, n_tensors);
}

/* ---- files ---- */

/* That the file was cut short says more than what a parser thinks of its zeros. */
static bool parse_map(qn_source *s, qn_err *e)
{
    const bool ok = qn_gguf_parse(s, s->maps[0].p, s->maps[0].bytes, e);
    return qn_maps_whole(s->maps, s->n_maps, qn_path_tail(s->path), e) && ok;
}

qn_source *qn_gguf_open_one(const char *path, qn_err *e)
{
    qn_source *s = qn_new(sizeof *s, e);
    if (s && (s->path = qn_strdup(path, e)) && qn_source_add_map(s, path, e) && parse_map(s, e)) return s;
    qn_source_close(s);
    return NULL;
}

qn_source *qn_gguf_open(const char *path, qn_err *e)
{
    qn_source *s = qn_gguf_open_one(path, e);
    return s ? qn_gguf_join(s, e) : NULL;
}
