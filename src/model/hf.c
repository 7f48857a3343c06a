/* hf.c - opens a Hugging Face folder. Reads the configuration (hf_config.c) and the tensors under the names they have
 * (format/safetensors.c), and puts them into a second source under their GGUF names, in the form that GGUF has. */
#include "model/hf.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "format/safetensors.h"
#include "model/hf_parts.h"

/* A vector becomes F32; Gemma's norms are stored less one. */
static bool translate_vector(qn_source *s, qn_tensor *t, bool plus_one, qn_err *e)
{
    if (t->type == DT_f32 && !plus_one) return true;
    const size_t n = (size_t)t->dims[0]; /* at most INT32_MAX */
    float *y = qn_arena_new(&s->arena, n * sizeof *y, e);
    if (!y) return false;
    qn_dtypes[t->type].decode(t->data, y, n);
    for (size_t i = 0; plus_one && i < n; i++) y[i] += 1;
    t->type = DT_f32;
    t->data = (const u8 *)y;
    t->bytes = n * sizeof *y;
    return true;
}

static bool translate(qn_source *s, const qn_source *raw, const qn_hf_config *c, qn_err *e)
{
    u32 ignored = 0;
    for (size_t i = 0; i < raw->n_tensors; i++) {
        char name[65];
        qn_tensor t = raw->tensors[i];
        if (!qn_hf_name(c, t.name, name) || (c->tied == 1 && !strcmp(name, "output.weight"))) {
            ignored++;
            continue;
        }
        t.name = name;
        const bool norm = c->gemma && strstr(name, "norm.weight");
        if (t.n_dims == 1 && !translate_vector(s, &t, norm, e)) return false;
        if (!qn_source_put_tensor(s, &t, e)) return false;
    }
    if (c->tied == 0 && !qn_source_tensor(s, "output.weight"))
        return qn_fail(e, QN_EFORMAT, "%s: missing tensor lm_head.weight (tie_word_embeddings is false)",
                       qn_path_tail(s->path));
    return !ignored || qn_source_put_u32(s, "quern.ignored_tensors", ignored, e);
}

/* Llama 3 divides each frequency by a factor that depends on its wave length: 1 for short waves, `factor` for those longer
 * than the context it was first trained on, a blend between. */
static bool add_rope_factors(qn_source *s, const qn_hf_config *c, qn_err *e)
{
    const qn_hf_rope *r = &c->rope;
    if (!r->llama3) return true;
    const size_t n = c->d_head / 2;
    float *y = qn_arena_new(&s->arena, n * sizeof *y, e);
    if (!y) return false;
    for (size_t i = 0; i < n; i++) {
        const double wave = 2 * M_PI * pow(r->base, 2 * (double)i / c->d_head);
        const double blend = (r->old_ctx / wave - r->low) / (r->high - r->low);
        if (wave < r->old_ctx / r->high) y[i] = 1;
        else if (wave > r->old_ctx / r->low) y[i] = (float)r->factor;
        else y[i] = (float)(1 / ((1 - blend) / r->factor + blend));
    }
    const qn_tensor t = { .name = "rope_freqs.weight", .type = DT_f32, .n_dims = 1, .dims = { n, 1, 1, 1 },
                          .data = (const u8 *)y, .bytes = n * sizeof *y };
    return qn_source_put_tensor(s, &t, e);
}

/* The raw source borrows the arena while it is filled and then leaves its maps behind: what tensors point to belongs to s. */
static bool read_tensors(qn_source *s, qn_source *raw, qn_err *e)
{
    raw->arena = s->arena;
    const bool ok = qn_safetensors_read(raw, s->path, e);
    s->arena = raw->arena;
    s->maps = raw->maps;
    s->n_maps = raw->n_maps;
    raw->arena = (qn_arena){ 0 };
    raw->maps = NULL;
    raw->n_maps = 0;
    return ok;
}

/* That a file was cut short says more than what a parser thinks of its zeros. */
static bool read_folder(qn_source *s, qn_source *raw, qn_err *e)
{
    qn_hf_config c = { 0 };
    const bool ok = qn_hf_config_read(s, s->path, &c, e) && read_tensors(s, raw, e) && add_rope_factors(s, &c, e)
                    && translate(s, raw, &c, e);
    return qn_maps_whole(s->maps, s->n_maps, qn_path_tail(s->path), e) && ok;
}

qn_source *qn_hf_open(const char *dir, qn_err *e)
{
    qn_source *s = qn_new(sizeof *s, e), *raw = s ? qn_new(sizeof *raw, e) : NULL;
    bool ok = raw && (s->path = qn_strdup(dir, e)) && (raw->path = qn_strdup(dir, e));
    ok = ok && (qn_is_dir(dir) || qn_fail(e, QN_EIO, "%s: no such folder", qn_path_tail(dir)));
    ok = ok && read_folder(s, raw, e);
    qn_source_close(raw);
    if (ok) {
        s->alignment = 32;
        return s;
    }
    qn_source_close(s);
    return NULL;
}
