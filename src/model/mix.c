/* mix.c - which type each tensor of a model gets. Matrices get the mix's base type, what is most sensitive gets more bits, what
 * does not fill its blocks gets a smaller block, vectors stay F32. The rules are those that other tools follow, so that a
 * Q4_K_M is the same thing everywhere. Knows names and shapes only; requant.c does the work. */
#include "model/mix.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/str.h"

typedef enum tilt { EVEN, SMALL, MEDIUM } tilt; /* how many tensors get more bits than the base */

typedef struct mix { const char *name; u32 file_type; qn_dtype base; tilt tilt; } mix;

/* file_type: the numbers of general.file_type */
static const mix mixes[] = {
    { "F32", 0, DT_f32, EVEN },       { "F16", 1, DT_f16, EVEN },       { "BF16", 32, DT_bf16, EVEN },
    { "Q8_0", 7, DT_q8_0, EVEN },     { "Q4_0", 2, DT_q4_0, EVEN },     { "Q4_1", 3, DT_q4_1, EVEN },
    { "Q5_0", 8, DT_q5_0, EVEN },     { "Q5_1", 9, DT_q5_1, EVEN },     { "Q4_K_S", 14, DT_q4_k, SMALL },
    { "Q4_K_M", 15, DT_q4_k, MEDIUM }, { "Q5_K_S", 16, DT_q5_k, SMALL }, { "Q5_K_M", 17, DT_q5_k, MEDIUM },
    { "Q6_K", 18, DT_q6_k, EVEN },
    /* short for the medium mixes */
    { "Q4_K", 15, DT_q4_k, MEDIUM },  { "Q5_K", 17, DT_q5_k, MEDIUM },
};

static const mix *find(const char *name, qn_err *e)
{
    for (size_t i = 0; i < QN_COUNT(mixes); i++)
        if (!strcasecmp(mixes[i].name, name)) return &mixes[i];
    qn_dtype t;
    char list[160];
    size_t n = 0;
    for (size_t i = 0; i < QN_COUNT(mixes); i++)
        n += (size_t)snprintf(list + n, sizeof list - n, " %s", mixes[i].name);
    const bool known = qn_dtype_from_name(name, &t) || !strncasecmp(name, "Q3_K_", 5) || !strncasecmp(name, "Q2_K_", 5);
    qn_fail(e, QN_EUSAGE, known ? "type %.16s can be read but not made; there are%s" : "unknown type %.16s; there are%s", name,
            list);
    return NULL;
}

/* What the rules look at, beside one tensor. */
typedef struct facts { bool tied, wide; int n_down, n_value; } facts;

/* The part of a name behind "blk.N."; NULL if it is not of a layer. */
static const char *in_layer(const char *name, int *layer)
{
    if (strncmp(name, "blk.", 4)) return NULL;
    char digits[8];
    const char *p = name + 4, *dot = strchr(p, '.');
    if (!dot || (size_t)(dot - p) >= sizeof digits) return NULL;
    memcpy(digits, p, (size_t)(dot - p));
    digits[dot - p] = 0;
    i64 n;
    if (!qn_parse_i64(digits, 0, 1 << 20, &n)) return NULL;
    *layer = (int)n;
    return dot + 1;
}

static bool is_down(const char *part) { return part && !strncmp(part, "ffn_down", 8); }
static bool is_value(const char *part) { return part && !strcmp(part, "attn_v.weight"); }

static void look(const qn_source *s, facts *f)
{
    *f = (facts){ .tied = !qn_source_tensor(s, "output.weight") };
    int n_layer = 0, layer;
    for (size_t i = 0; i < s->n_tensors; i++) {
        const char *part = in_layer(s->tensors[i].name, &layer);
        if (!part) continue;
        n_layer = qn_maxi(n_layer, layer + 1);
        f->n_down += is_down(part) && qn_ends_with(part, ".weight");
        f->n_value += is_value(part);
    }
    /* the 70B shapes share each value head among 8 query heads: its few weights get more bits */
    const qn_tensor *q = qn_source_tensor(s, "blk.0.attn_q.weight"), *v = qn_source_tensor(s, "blk.0.attn_v.weight");
    f->wide = n_layer == 80 && q && v && q->dims[1] == 8 * v->dims[1];
}

/* The first eighth of the layers, the last eighth, and every third between. */
static bool is_chosen(int layer, int n) { return layer < n / 8 || layer >= 7 * n / 8 || (layer - n / 8) % 3 == 2; }

static bool is_matrix(const qn_tensor *t)
{
    return t->n_dims >= 2 && qn_ends_with(t->name, ".weight") && !qn_ends_with(t->name, "_norm.weight")
           && !qn_ends_with(t->name, "ffn_gate_inp.weight");
}

static qn_dtype layer_type(const mix *m, const facts *f, const char *part, int layer)
{
    const bool value = is_value(part), down = is_down(part);
    const int n = value ? f->n_value : f->n_down;
    if (m->tilt == MEDIUM && (value || down) && is_chosen(layer, n)) return DT_q6_k;
    if (m->tilt == MEDIUM && !strcmp(part, "attn_qkv.weight")) return m->base == DT_q4_k ? DT_q5_k : DT_q6_k;
    if (m->tilt == SMALL && m->base == DT_q4_k && ((value && layer < 4) || (down && layer < n / 8))) return DT_q5_k;
    if (value && f->wide && m->base == DT_q4_k) return DT_q5_k;
    return m->base;
}

/* Rows that are no multiple of 256 go to the nearest type with blocks of 32, those that do not fill these either to F16. */
static qn_dtype fitting(qn_dtype t, u64 cols)
{
    if (cols % (u64)qn_dtypes[t].block == 0) return t;
    const qn_dtype small = t == DT_q4_k ? DT_q5_0 : t == DT_q5_k ? DT_q5_1 : t == DT_q6_k ? DT_q8_0 : t;
    return cols % (u64)qn_dtypes[small].block == 0 ? small : DT_f16;
}

static qn_dtype type_of(const mix *m, const facts *f, const qn_tensor *t)
{
    if (t->n_dims == 1) return DT_f32;
    if (!is_matrix(t)) return t->type;
    if (qn_dtypes[m->base].block == 1) return m->base;
    int layer = 0;
    const char *part = in_layer(t->name, &layer);
    const bool output = !strcmp(t->name, "output.weight") || (f->tied && !strcmp(t->name, "token_embd.weight"));
    if (output && m->base != DT_q8_0) return fitting(DT_q6_k, t->dims[0]);
    return fitting(part ? layer_type(m, f, part, layer) : m->base, t->dims[0]);
}

bool qn_mix_plan(qn_source *s, const char *name, qn_dtype *types, qn_err *e)
{
    const mix *m = find(name, e);
    if (!m) return false;
    facts f;
    look(s, &f);
    for (size_t i = 0; i < s->n_tensors; i++) types[i] = type_of(m, &f, &s->tensors[i]);
    return qn_source_put_u32(s, "general.file_type", m->file_type, e)
           && qn_source_put_u32(s, "general.quantization_version", 2, e);
}
