/* panel.c - packing, and its inverse in the most obvious way. Packing runs once per matrix at load,
 * so it is plain C; what reads panels for a living is in kernel/<isa>/. */
#include "kernel/panel.h"

#include <string.h>

#include "base/half.h"
#include "format/blocks.h"

/* One row's block, taken apart: values as they are stored (unsigned), scales as the file has them.
 */
typedef struct parts {
    u8 q[256];
    u16 d, m;
    i8 scale[16];
    u8 min[8];
} parts;

static void nibbles32(const u8 *q, u8 *out) /* low nibbles first, then high ones, of 16 bytes */
{
    for (int i = 0; i < 16; i++) {
        out[i] = q[i] & 15;
        out[i + 16] = q[i] >> 4;
    }
}

static void fifth32(const u8 *high, u8 *out)
{
    for (int i = 0; i < 32; i++) out[i] = (u8)(out[i] | (high[i / 8] >> (i % 8) & 1) << 4);
}

static void take_q8_0(const qn_q8_0 *b, parts *p)
{
    p->d = b->d;
    for (int i = 0; i < 32; i++) p->q[i] = (u8)(b->q[i] + 128);
}

static void take_q4_0(const qn_q4_0 *b, parts *p)
{
    p->d = b->d;
    nibbles32(b->q, p->q);
}

static void take_q4_1(const qn_q4_1 *b, parts *p)
{
    p->d = b->d;
    p->m = b->m;
    nibbles32(b->q, p->q);
}

static void take_q5_0(const qn_q5_0 *b, parts *p)
{
    p->d = b->d;
    nibbles32(b->q, p->q);
    fifth32(b->high, p->q);
}

static void take_q5_1(const qn_q5_1 *b, parts *p)
{
    p->d = b->d;
    p->m = b->m;
    nibbles32(b->q, p->q);
    fifth32(b->high, p->q);
}

static void nibbles256(const u8 *q, u8 *out) /* each 32 bytes: 32 low nibbles, then 32 high ones */
{
    for (int i = 0; i < 256; i++)
        out[i] = i / 32 % 2 ? q[i / 64 * 32 + i % 32] >> 4 : q[i / 64 * 32 + i % 32] & 15;
}

static void take_q4_k(const qn_q4_k *b, parts *p)
{
    p->d = b->d;
    p->m = b->dmin;
    qn_kscale_get(b->scale, (u8 *)p->scale, p->min);
    nibbles256(b->q, p->q);
}

static void take_q5_k(const qn_q5_k *b, parts *p)
{
    p->d = b->d;
    p->m = b->dmin;
    qn_kscale_get(b->scale, (u8 *)p->scale, p->min);
    nibbles256(b->q, p->q);
    for (int i = 0; i < 256; i++) p->q[i] = (u8)(p->q[i] | (b->high[i % 32] >> (i / 32) & 1) << 4);
}

static void take_q6_k(const qn_q6_k *b, parts *p)
{
    p->d = b->d;
    memcpy(p->scale, b->scale, sizeof b->scale);
    for (int i = 0; i < 256; i++) {
        const int run = i % 128 / 32, at = i / 128 * 64 + run % 2 * 32 + i % 32;
        const u8 low = run < 2 ? b->low[at] & 15 : b->low[at] >> 4;
        p->q[i] = (u8)(low | (b->high[i / 128 * 32 + i % 32] >> 2 * run & 3) << 4);
    }
}

/* ---- putting one row into a panel block */

static u8 *byte_of(u8 *groups, int row, int col)
{
    return groups + col / 4 * QN_GROUP + row * 4 + col % 4;
}

static void put_nibbles(u8 *q, int row, int col, u8 v) /* groups 2i and 2i+1 share a vector */
{
    u8 *at = q + col / 8 * QN_GROUP + row * 4 + col % 4;
    *at = (u8)(*at | (v & 15) << (col / 4 % 2 * 4));
}

static void put_fifth(u64 *high, int row, int col, u8 v)
{
    high[col / 4] |= (u64)(v >> 4 & 1) << (row * 4 + col % 4);
}

static void put_q8_0(qn_panel_q8_0 *o, int r, const parts *p)
{
    o->d[r] = p->d;
    for (int i = 0; i < 32; i++) *byte_of(o->q[0], r, i) = p->q[i];
}

static void put_q4_0(qn_panel_q4_0 *o, int r, const parts *p)
{
    o->d[r] = p->d;
    for (int i = 0; i < 32; i++) put_nibbles(o->q[0], r, i, p->q[i]);
}

static void put_q4_1(qn_panel_q4_1 *o, int r, const parts *p)
{
    o->d[r] = p->d;
    o->m[r] = p->m;
    for (int i = 0; i < 32; i++) put_nibbles(o->q[0], r, i, p->q[i]);
}

static void put_q5_0(qn_panel_q5_0 *o, int r, const parts *p)
{
    o->d[r] = p->d;
    for (int i = 0; i < 32; i++) {
        put_nibbles(o->q[0], r, i, p->q[i]);
        put_fifth(o->high, r, i, p->q[i]);
    }
}

static void put_q5_1(qn_panel_q5_1 *o, int r, const parts *p)
{
    o->d[r] = p->d;
    o->m[r] = p->m;
    for (int i = 0; i < 32; i++) {
        put_nibbles(o->q[0], r, i, p->q[i]);
        put_fifth(o->high, r, i, p->q[i]);
    }
}

static void put_q4_k(qn_panel_q4_k *o, int r, const parts *p)
{
    o->d[r] = p->d;
    o->dmin[r] = p->m;
    for (int b = 0; b < 8; b++) {
        o->scale[b][r] = (u8)p->scale[b];
        o->min[b][r] = p->min[b];
        for (int i = 0; i < 32; i++) put_nibbles(o->q[b][0], r, i, p->q[32 * b + i]);
    }
}

static void put_q5_k(qn_panel_q5_k *o, int r, const parts *p)
{
    o->d[r] = p->d;
    o->dmin[r] = p->m;
    for (int b = 0; b < 8; b++) {
        o->scale[b][r] = (u8)p->scale[b];
        o->min[b][r] = p->min[b];
        for (int i = 0; i < 32; i++) {
            put_nibbles(o->q[b][0], r, i, p->q[32 * b + i]);
            put_fifth(o->high[b], r, i, p->q[32 * b + i]);
        }
    }
}

static void put_q6_k(qn_panel_q6_k *o, int r, const parts *p)
{
    o->d[r] = p->d;
    for (int s = 0; s < 16; s++) o->scale[s][r] = p->scale[s];
    for (int i = 0; i < 256; i++) {
        const int b = i / 32, col = i % 32, g = col / 4;
        put_nibbles(o->q[b][0], r, col, p->q[i]);
        u8 *at = &o->high[b][g / 4][r * 4 + col % 4];
        *at = (u8)(*at | (p->q[i] >> 4) << (g % 4 * 2));
    }
}

/* ---- the types */

typedef void (*take_fn)(const void *block, parts *p);
typedef void (*put_fn)(void *panel_block, int row, const parts *p);

#define MAKE(name) \
    static void take_any_##name(const void *b, parts *p) { take_##name(b, p); } \
    static void put_any_##name(void *o, int r, const parts *p) { put_##name(o, r, p); }
MAKE(q8_0)
MAKE(q4_0) MAKE(q4_1) MAKE(q5_0) MAKE(q5_1) MAKE(q4_k) MAKE(q5_k) MAKE(q6_k)
#undef MAKE

    typedef struct form {
    take_fn take;
    put_fn put;
    size_t bytes;
} form;

static const form forms[N_DTYPES] = {
#define FORM(name) [DT_##name] = { take_any_##name, put_any_##name, sizeof(qn_panel_##name) }
    FORM(q8_0), FORM(q4_0), FORM(q4_1), FORM(q5_0), FORM(q5_1), FORM(q4_k), FORM(q5_k), FORM(q6_k),
#undef FORM
};

qn_panel_kind qn_panel_of(qn_dtype type)
{
    return forms[type].take                    ? PANEL_int8
           : type == DT_f16 || type == DT_bf16 ? PANEL_bf16
                                               : PANEL_none;
}

static int n_panels(int rows) { return (rows + QN_PANEL - 1) / QN_PANEL; }

size_t qn_panel_bytes(qn_dtype type, int rows, int cols)
{
    const size_t n = (size_t)n_panels(rows);
    switch (qn_panel_of(type)) {
    case PANEL_int8:
        return cols % qn_dtypes[type].block
                   ? 0
                   : n * (size_t)(cols / qn_dtypes[type].block) * forms[type].bytes;
    case PANEL_bf16: return cols % 32 ? 0 : n * (size_t)(cols / 2) * sizeof(qn_panel_bf16);
    default: return 0;
    }
}

static void pack_int8(qn_dtype type, const u8 *w, int rows, int cols, int panel, u8 *out)
{
    const form *f = &forms[type];
    const int blocks = cols / qn_dtypes[type].block;
    const size_t block_bytes = qn_dtypes[type].block_bytes;
    memset(out, 0, (size_t)blocks * f->bytes);
    for (int r = 0; r < QN_PANEL && panel * QN_PANEL + r < rows; r++) {
        const u8 *row = w + (size_t)(panel * QN_PANEL + r) * (size_t)blocks * block_bytes;
        parts p;
        for (int b = 0; b < blocks; b++) {
            f->take(row + (size_t)b * block_bytes, &p);
            f->put(out + (size_t)b * f->bytes, r, &p);
        }
    }
}

static void pack_bf16(qn_dtype type, const u16 *w, int rows, int cols, int panel,
                      qn_panel_bf16 *out)
{
    memset(out, 0, (size_t)(cols / 2) * sizeof *out);
    for (int r = 0; r < QN_PANEL && panel * QN_PANEL + r < rows; r++) {
        const u16 *row = w + (size_t)(panel * QN_PANEL + r) * (size_t)cols;
        for (int i = 0; i < cols; i++)
            out[i / 2].w[r][i % 2] = type == DT_bf16 ? row[i] : qn_f32_bf16(qn_f16_f32(row[i]));
    }
}

void qn_panel_pack(qn_dtype type, const void *w, int rows, int cols, int first, int last, u8 *out)
{
    const size_t one = qn_panel_bytes(type, QN_PANEL, cols);
    for (int i = first; i < last; i++) {
        if (qn_panel_of(type) == PANEL_int8)
            pack_int8(type, w, rows, cols, i, out + (size_t)i * one);
        else pack_bf16(type, w, rows, cols, i, (qn_panel_bf16 *)(void *)(out + (size_t)i * one));
    }
}

/* ---- back again */

static int nibble_at(const u8 *q, int row, int col)
{
    return q[col / 8 * QN_GROUP + row * 4 + col % 4] >> (col / 4 % 2 * 4) & 15;
}
static int fifth_at(const u64 *high, int row, int col)
{
    return (int)(high[col / 4] >> (row * 4 + col % 4) & 1) << 4;
}
static float half_at(const u16 *h, int row) { return qn_f16_f32(h[row]); }

/* Weight `col` of row r in one panel block. */
static float weight(qn_dtype type, const void *block, int r, int col)
{
    const int b = col / 32, c = col % 32;
    switch (type) {
    case DT_q8_0: {
        const qn_panel_q8_0 *p = block;
        return half_at(p->d, r) * (float)(p->q[c / 4][r * 4 + c % 4] - 128);
    }
    case DT_q4_0: {
        const qn_panel_q4_0 *p = block;
        return half_at(p->d, r) * (float)(nibble_at(p->q[0], r, c) - 8);
    }
    case DT_q4_1: {
        const qn_panel_q4_1 *p = block;
        return half_at(p->d, r) * (float)nibble_at(p->q[0], r, c) + half_at(p->m, r);
    }
    case DT_q5_0: {
        const qn_panel_q5_0 *p = block;
        return half_at(p->d, r) *
               (float)((nibble_at(p->q[0], r, c) | fifth_at(p->high, r, c)) - 16);
    }
    case DT_q5_1: {
        const qn_panel_q5_1 *p = block;
        return half_at(p->d, r) * (float)(nibble_at(p->q[0], r, c) | fifth_at(p->high, r, c)) +
               half_at(p->m, r);
    }
    case DT_q4_k: {
        const qn_panel_q4_k *p = block;
        const int q = nibble_at(p->q[b][0], r, c);
        return half_at(p->d, r) * (float)p->scale[b][r] * (float)q -
               half_at(p->dmin, r) * (float)p->min[b][r];
    }
    case DT_q5_k: {
        const qn_panel_q5_k *p = block;
        const int q = nibble_at(p->q[b][0], r, c) | fifth_at(p->high[b], r, c);
        return half_at(p->d, r) * (float)p->scale[b][r] * (float)q -
               half_at(p->dmin, r) * (float)p->min[b][r];
    }
    case DT_q6_k: {
        const qn_panel_q6_k *p = block;
        const int high = p->high[b][c / 16][r * 4 + c % 4] >> (c / 4 % 4 * 2) & 3;
        return half_at(p->d, r) * (float)p->scale[col / 16][r] *
               (float)((nibble_at(p->q[b][0], r, c) | high << 4) - 32);
    }
    default: return 0;
    }
}

void qn_panel_part(qn_dtype type, const u8 *panels, int cols, int r, int c, int len, float *out)
{
    const u8 *panel = panels + (size_t)(r / QN_PANEL) * qn_panel_bytes(type, QN_PANEL, cols);
    r %= QN_PANEL;
    if (qn_panel_of(type) == PANEL_bf16) {
        const qn_panel_bf16 *p = (const qn_panel_bf16 *)(const void *)panel;
        for (int i = c; i < c + len; i++) out[i - c] = qn_bf16_f32(p[i / 2].w[r][i % 2]);
        return;
    }
    const int block = qn_dtypes[type].block;
    for (int i = c; i < c + len; i++)
        out[i - c] = weight(type, panel + (size_t)(i / block) * forms[type].bytes, r, i % block);
}
