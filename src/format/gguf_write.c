/* gguf_write.c - a source as a GGUF v3 file. The header is made and written first, so every tensor has its place before its
 * bytes exist: they may then come in any order and from any thread. What is not written reads as zero, and nothing appears
 * under the file's name before commit. Encoding is the caller's (model/requant.c). */
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "format/gguf.h"

static void put_u32(qn_buf *b, u32 v) { qn_buf_put(b, &v, sizeof v); }
static void put_u64(qn_buf *b, u64 v) { qn_buf_put(b, &v, sizeof v); }

static void put_str(qn_buf *b, const char *p, size_t n)
{
    put_u64(b, n);
    qn_buf_put(b, p, n);
}

static void put_number(qn_buf *b, const qn_value *v)
{
    const float f = v->kind == KIND_f32 ? (float)v->as.f : 0;
    const u8 flag = v->kind == KIND_bool ? v->as.b : 0;
    if (v->kind == KIND_f32) qn_buf_put(b, &f, sizeof f);
    else if (v->kind == KIND_bool) qn_buf_put(b, &flag, 1);
    else qn_buf_put(b, &v->as, qn_kind_bytes(v->kind)); /* the low bytes of a little-endian number are the narrow number */
}

static bool put_array(qn_buf *b, const qn_source *s, const qn_kv *kv, qn_err *e)
{
    const qn_value *v = &kv->v;
    if (v->item == KIND_array)
        return qn_fail(e, QN_EUNSUPPORTED, "%s: key %.*s is an array of arrays, which cannot be written", qn_path_tail(s->path),
                       (int)qn_minz(kv->key.n, 80), kv->key.p);
    put_u32(b, (u32)v->item);
    put_u64(b, v->n);
    if (v->item != KIND_str) qn_buf_put(b, v->data, v->n * qn_kind_bytes(v->item));
    else for (size_t i = 0; i < v->n; i++) put_str(b, v->strs[i].p, v->strs[i].n);
    return true;
}

/* Which part of a split model it was means nothing in a file that is whole, nor do notes that quern makes for itself. */
static bool is_kept(const qn_kv *kv)
{
    return kv->key.n < 6 || (memcmp(kv->key.p, "split.", 6) && memcmp(kv->key.p, "quern.", 6));
}

static bool put_keys(qn_buf *b, const qn_source *s, qn_err *e)
{
    for (size_t i = 0; i < s->n_kvs; i++) {
        const qn_kv *kv = &s->kvs[i];
        if (!is_kept(kv)) continue;
        put_str(b, kv->key.p, kv->key.n);
        put_u32(b, (u32)kv->v.kind);
        if (kv->v.kind == KIND_str) put_str(b, kv->v.as.s.p, kv->v.as.s.n);
        else if (kv->v.kind != KIND_array) put_number(b, &kv->v);
        else if (!put_array(b, s, kv, e)) return false;
    }
    return true;
}

static u64 align_up(u64 n, u64 a) { return (n + a - 1) / a * a; }

/* Fills bytes and offsets, the latter still from the start of the data. */
static bool lay_out(qn_gguf_writer *w, const qn_source *s, const qn_dtype *types, u64 align, qn_err *e)
{
    u64 at = 0;
    for (size_t i = 0; i < s->n_tensors; i++) {
        const qn_tensor *t = &s->tensors[i];
        const qn_dtype_info *dt = &qn_dtypes[types ? types[i] : t->type];
        if (t->dims[0] % (u64)dt->block)
            return qn_fail(e, QN_EUNSUPPORTED, "tensor %s: rows of %llu weights, %s needs a multiple of %d", t->name,
                           (unsigned long long)t->dims[0], dt->name, dt->block);
        const u64 n = t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3]; /* the reader has checked the product */
        w->bytes[i] = n / (u64)dt->block * dt->block_bytes;
        w->offsets[i] = at;
        at = align_up(at + w->bytes[i], align);
    }
    w->total = at;
    return true;
}

static void put_tensors(qn_buf *b, const qn_gguf_writer *w, const qn_source *s, const qn_dtype *types)
{
    for (size_t i = 0; i < s->n_tensors; i++) {
        const qn_tensor *t = &s->tensors[i];
        put_str(b, t->name, strlen(t->name));
        put_u32(b, (u32)t->n_dims);
        for (int d = 0; d < t->n_dims; d++) put_u64(b, t->dims[d]);
        put_u32(b, qn_dtypes[types ? types[i] : t->type].gguf_id);
        put_u64(b, w->offsets[i]);
    }
}

static bool put_header(qn_buf *b, const qn_gguf_writer *w, const qn_source *s, const qn_dtype *types, qn_err *e)
{
    u64 n_keys = 0;
    for (size_t i = 0; i < s->n_kvs; i++) n_keys += is_kept(&s->kvs[i]);
    qn_buf_put(b, "GGUF", 4);
    put_u32(b, 3);
    put_u64(b, s->n_tensors);
    put_u64(b, n_keys);
    if (!put_keys(b, s, e)) return false;
    put_tensors(b, w, s, types);
    return !b->failed || qn_fail(e, QN_ENOMEM, "no memory for the header of a GGUF file");
}

bool qn_gguf_write_open(qn_gguf_writer *w, const char *path, const qn_source *s, const qn_dtype *types, qn_err *e)
{
    *w = (qn_gguf_writer){ 0 };
    const u64 align = s->alignment ? s->alignment : 32;
    qn_buf head = { 0 };
    w->offsets = qn_new_array(s->n_tensors, sizeof *w->offsets, e);
    w->bytes = w->offsets ? qn_new_array(s->n_tensors, sizeof *w->bytes, e) : NULL;
    bool ok = w->bytes && lay_out(w, s, types, align, e) && put_header(&head, w, s, types, e) && qn_out_open(&w->out, path, e);
    if (ok) {
        const u64 start = align_up(head.n, align);
        for (size_t i = 0; i < s->n_tensors; i++) w->offsets[i] += start;
        w->total += start;
        ok = qn_out_write(&w->out, head.p, head.n, e);
        /* the whole length at once: what lies between tensors is zero */
        if (ok && ftruncate(w->out.fd, (off_t)w->total)) ok = qn_fail_errno(e, "%s: cannot write", qn_path_tail(path));
    }
    qn_buf_close(&head);
    if (!ok) qn_gguf_write_close(w);
    return ok;
}

bool qn_gguf_write_tensor(qn_gguf_writer *w, size_t i, u64 at, const void *p, size_t n, qn_err *e)
{
    assert(at <= w->bytes[i] && n <= w->bytes[i] - at);
    return qn_out_write_at(&w->out, w->offsets[i] + at, p, n, e);
}

bool qn_gguf_write_commit(qn_gguf_writer *w, qn_err *e) { return qn_out_commit(&w->out, e); }

void qn_gguf_write_close(qn_gguf_writer *w)
{
    qn_out_close(&w->out);
    qn_free(w->offsets);
    qn_free(w->bytes);
    *w = (qn_gguf_writer){ 0 };
}
