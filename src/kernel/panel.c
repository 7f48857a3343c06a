/* panel.c - packing, and its inverse in the most obvious way. Packing runs once per matrix at load, four values to a
 * 32-bit word: 16 rows of words side by side are a group, so a row's block is shifts and masks of whole words. What reads
 * panels for a living is in kernel/<isa>/. */
#include "kernel/panel.h"

#include <string.h>

#include "base/half.h"
#include "format/blocks.h"
#include "kernel/bpanel.h"

#define LOW 0x0F0F0F0Fu /* the low nibbles of four bytes */

static u32 word(const u8 *p)
{
    u32 v;
    memcpy(&v, p, 4);
    return v;
}

static void put_word(u8 *group, int r, u32 v) { memcpy(group + 4 * r, &v, 4); }

/* Two groups of four nibbles, in the low halves of their bytes, into one vector. */
static void put_pair(u8 *group, int r, u32 even, u32 odd) { put_word(group, r, (even & LOW) | (odd & LOW) << 4); }

/* 16 bytes as the file has them: the low nibbles are values 0..15, the high ones 16..31. */
static void put_nibbles(u8 q[4][QN_GROUP], int r, const u8 *in)
{
    for (int i = 0; i < 4; i++) put_pair(q[i], r, word(in + i % 2 * 8) >> i / 2 * 4, word(in + i % 2 * 8 + 4) >> i / 2 * 4);
}

/* 32 bytes with a value of this block each, in their bits shift .. shift+3. */
static void put_wide(u8 q[4][QN_GROUP], int r, const u8 *in, int shift)
{
    for (int i = 0; i < 4; i++) put_pair(q[i], r, word(in + 8 * i) >> shift, word(in + 8 * i + 4) >> shift);
}

/* Row 0 is the first to write a mask of fifth bits. */
static void put_bits(u64 *high, int r, u32 four) { *high = (r ? *high : 0) | (u64)(four & 15) << 4 * r; }

static void put_fifth(u64 high[8], int r, const u8 *in)
{
    for (int g = 0; g < 8; g++) put_bits(&high[g], r, word(in) >> 4 * g);
}

static void put_q8_0(qn_panel_q8_0 *o, int r, const qn_q8_0 *b)
{
    o->d[r] = b->d;
    for (int g = 0; g < 8; g++) put_word(o->q[g], r, word((const u8 *)b->q + 4 * g) ^ 0x80808080u); /* + 128 */
}

static void put_q4_0(qn_panel_q4_0 *o, int r, const qn_q4_0 *b)
{
    o->d[r] = b->d;
    put_nibbles(o->q, r, b->q);
}

static void put_q4_1(qn_panel_q4_1 *o, int r, const qn_q4_1 *b)
{
    o->d[r] = b->d;
    o->m[r] = b->m;
    put_nibbles(o->q, r, b->q);
}

static void put_q5_0(qn_panel_q5_0 *o, int r, const qn_q5_0 *b)
{
    o->d[r] = b->d;
    put_nibbles(o->q, r, b->q);
    put_fifth(o->high, r, b->high);
}

static void put_q5_1(qn_panel_q5_1 *o, int r, const qn_q5_1 *b)
{
    o->d[r] = b->d;
    o->m[r] = b->m;
    put_nibbles(o->q, r, b->q);
    put_fifth(o->high, r, b->high);
}

static void put_kscales(const u8 packed[12], int r, u8 (*scale)[16], u8 (*min)[16])
{
    u8 s[8], m[8];
    qn_kscale_get(packed, s, m);
    for (int i = 0; i < 8; i++) {
        scale[i][r] = s[i];
        min[i][r] = m[i];
    }
}

static void put_q4_k(qn_panel_q4_k *o, int r, const qn_q4_k *b)
{
    o->d[r] = b->d;
    o->dmin[r] = b->dmin;
    put_kscales(b->scale, r, o->scale, o->min);
    for (int i = 0; i < 8; i++) put_wide(o->q[i], r, b->q + i / 2 * 32, i % 2 * 4);
}

static void put_q5_k(qn_panel_q5_k *o, int r, const qn_q5_k *b)
{
    o->d[r] = b->d;
    o->dmin[r] = b->dmin;
    put_kscales(b->scale, r, o->scale, o->min);
    for (int i = 0; i < 8; i++) {
        put_wide(o->q[i], r, b->q + i / 2 * 32, i % 2 * 4);
        for (int g = 0; g < 8; g++) /* the multiply gathers bit 0 of four bytes into four neighbours */
            put_bits(&o->high[i][g], r, (word(b->high + 4 * g) >> i & 0x01010101u) * 0x01020408u >> 24);
    }
}

static void put_q6_k(qn_panel_q6_k *o, int r, const qn_q6_k *b)
{
    o->d[r] = b->d;
    for (int i = 0; i < 16; i++) o->scale[i][r] = b->scale[i];
    for (int i = 0; i < 8; i++) { /* 128 values: four runs of 32, two in the low nibbles, two in the high ones */
        const int run = i % 4;
        put_wide(o->q[i], r, b->low + i / 4 * 64 + run % 2 * 32, run / 2 * 4);
        for (int half = 0; half < 2; half++) {
            u32 v = 0;
            for (int g = 0; g < 4; g++) v |= (word(b->high + i / 4 * 32 + half * 16 + 4 * g) >> 2 * run & 0x03030303u) << 2 * g;
            put_word(o->high[i][half], r, v);
        }
    }
}

/* ---- the types */

/* A row of blocks into row r of a panel. */
typedef void (*put_fn)(u8 *panel, int r, const u8 *row, int blocks);

#define PUT(name) \
    static void put_row_##name(u8 *panel, int r, const u8 *row, int blocks) \
    { \
        for (int i = 0; i < blocks; i++) \
            put_##name((qn_panel_##name *)(void *)panel + i, r, (const qn_##name *)(const void *)row + i); \
    }
PUT(q8_0) PUT(q4_0) PUT(q4_1) PUT(q5_0) PUT(q5_1) PUT(q4_k) PUT(q5_k) PUT(q6_k)
#undef PUT

typedef struct form {
    put_fn put;
    size_t bytes;
} form;

static const form forms[N_DTYPES] = {
#define FORM(name) [DT_##name] = { put_row_##name, sizeof(qn_panel_##name) }
    FORM(q8_0), FORM(q4_0), FORM(q4_1), FORM(q5_0), FORM(q5_1), FORM(q4_k), FORM(q5_k), FORM(q6_k),
#undef FORM
};

qn_panel_kind qn_panel_of(qn_dtype type)
{
    return forms[type].put                     ? PANEL_int8
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
    case PANEL_bf16: return cols % 32 ? 0 : (size_t)qn_n_twins(rows) * qn_twin_bytes(cols);
    default: return 0;
    }
}

/* A few blocks of all rows at a time: what is written stays in L1 until all 16 rows are in it. */
static void pack_int8(qn_dtype type, const u8 *w, int rows, int cols, int panel, u8 *out)
{
    const form *f = &forms[type];
    const int blocks = cols / qn_dtypes[type].block, step = f->bytes > 1024 ? 2 : 16;
    const size_t block_bytes = qn_dtypes[type].block_bytes;
    const int n = qn_mini(QN_PANEL, rows - panel * QN_PANEL);
    if (n < QN_PANEL) memset(out, 0, (size_t)blocks * f->bytes);
    for (int b = 0; b < blocks; b += step)
        for (int r = 0; r < n; r++) {
            const size_t at = (size_t)(panel * QN_PANEL + r) * (size_t)blocks + (size_t)b;
            f->put(out + (size_t)b * f->bytes, r, w + at * block_bytes, qn_mini(step, blocks - b));
        }
}

void qn_panel_pack(qn_dtype type, const void *w, int rows, int cols, int first, int last, u8 *out)
{
    const size_t one = qn_panel_bytes(type, QN_PANEL, cols); /* a panel; of floats, a twin */
    for (int i = first; i < last; i++) {
        if (qn_panel_of(type) == PANEL_int8) pack_int8(type, w, rows, cols, i, out + (size_t)i * one);
        else qn_bpanel_pack(type, w, rows, cols, i, (qn_twin *)(void *)(out + (size_t)(i / QN_TWIN) * one));
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
    if (qn_panel_of(type) == PANEL_bf16) {
        const u8 *twin = panels + (size_t)(r / (QN_TWIN * QN_PANEL)) * qn_twin_bytes(cols);
        for (int i = c; i < c + len; i++)
            out[i - c] = qn_bpanel_at((const qn_twin *)(const void *)twin, r % (QN_TWIN * QN_PANEL), i);
        return;
    }
    const u8 *panel = panels + (size_t)(r / QN_PANEL) * qn_panel_bytes(type, QN_PANEL, cols);
    r %= QN_PANEL;
    const int block = qn_dtypes[type].block;
    for (int i = c; i < c + len; i++)
        out[i - c] = weight(type, panel + (size_t)(i / block) * forms[type].bytes, r, i % block);
}
