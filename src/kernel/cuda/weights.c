/* weights.c - stored rows to device rows. Nothing is rounded but the products of two scales that K types hold (to f16, 1 in
 * 2,048) and what has no kind of its own. */
#include "kernel/cuda/weights.h"

#include <string.h>

#include "base/half.h"
#include "format/blocks.h"

bool qn_wmat_native(qn_dtype t)
{
    return t == DT_f16 || qn_wmat_kind(t) != QN_W_f16;
}

int qn_wmat_kind(qn_dtype t)
{
    switch (t) {
    case DT_f32: return QN_W_f32;
    case DT_bf16: return QN_W_bf16;
    case DT_q8_0: return QN_W_q8;
    case DT_q4_0: return QN_W_q4;
    case DT_q4_1: case DT_q4_k: return QN_W_q4m;
    case DT_q6_k: return QN_W_q6;
    default: return QN_W_f16;
    }
}

const char *qn_wmat_name(int kind)
{
    static const char *const names[QN_W_KINDS] = { "f32", "f16", "bf16", "q8", "q4", "q4m", "q6" };
    return names[kind];
}

static u32 align16(u32 n) { return (n + 15) & ~15u; }

qn_wmat qn_wmat_of(qn_dtype type, int rows, int cols)
{
    const u32 n = (u32)cols;
    qn_wmat w = { .rows = (u32)rows, .cols = n, .kind = (u32)qn_wmat_kind(type) };
    switch (w.kind) {
    case QN_W_f32: w.row_bytes = (4 * n + 31) & ~31u; return w; /* 8 values at a time, also at the end */
    case QN_W_f16: case QN_W_bf16: w.row_bytes = align16(2 * n); return w;
    case QN_W_q8: w.scale = align16(n); w.row_bytes = w.scale + align16(n / 32 * 2); return w;
    case QN_W_q4: w.scale = align16(n / 2); w.row_bytes = w.scale + align16(n / 32 * 2); return w;
    case QN_W_q4m: w.scale = align16(n / 2); w.row_bytes = w.scale + align16(n / 32 * 4); return w;
    default:
        w.high = align16(n / 2);
        w.scale = w.high + align16(n / 4);
        w.row_bytes = w.scale + align16(n / 16 * 2);
        return w;
    }
}

/* ---- packing */

static void pack_q8_0(const qn_wmat *w, const qn_q8_0 *b, u8 *out)
{
    u16 *scale = (u16 *)(void *)(out + w->scale);
    for (u32 i = 0; i < w->cols / 32; i++) {
        memcpy(out + 32 * i, b[i].q, 32);
        scale[i] = b[i].d;
    }
}

static void pack_q4_0(const qn_wmat *w, const qn_q4_0 *b, u8 *out)
{
    u16 *scale = (u16 *)(void *)(out + w->scale);
    for (u32 i = 0; i < w->cols / 32; i++) {
        memcpy(out + 16 * i, b[i].q, 16);
        scale[i] = b[i].d;
    }
}

static void pack_q4_1(const qn_wmat *w, const qn_q4_1 *b, u8 *out)
{
    u16 *scale = (u16 *)(void *)(out + w->scale);
    for (u32 i = 0; i < w->cols / 32; i++) {
        memcpy(out + 16 * i, b[i].q, 16);
        scale[2 * i] = b[i].d;
        scale[2 * i + 1] = b[i].m;
    }
}

/* 32 values of 4 bits, value i with value i + 16 */
static void put_nibbles(const u8 v[32], u8 out[16])
{
    for (int i = 0; i < 16; i++) out[i] = (u8)((v[i] & 15) | v[i + 16] << 4);
}

static void pack_q4_k(const qn_wmat *w, const qn_q4_k *b, u8 *out)
{
    u16 *scale = (u16 *)(void *)(out + w->scale);
    for (u32 i = 0; i < w->cols / 256; i++) {
        const float d = qn_f16_f32(b[i].d), dmin = qn_f16_f32(b[i].dmin);
        u8 s[8], m[8], v[32];
        qn_kscale_get(b[i].scale, s, m);
        for (u32 g = 0; g < 8; g++) { /* two groups share 32 bytes: low nibbles, then high ones */
            for (u32 k = 0; k < 32; k++) v[k] = (u8)(b[i].q[g / 2 * 32 + k] >> (g % 2 * 4) & 15);
            put_nibbles(v, out + (8 * i + g) * 16);
            scale[2 * (8 * i + g)] = qn_f32_f16(d * (float)s[g]);
            scale[2 * (8 * i + g) + 1] = qn_f32_f16(-dmin * (float)m[g]);
        }
    }
}

/* value k of a q6_k block, 0..63 */
static u8 q6_value(const qn_q6_k *b, u32 k)
{
    const u32 half = k / 128, run = k % 128 / 32, i = k % 32;
    const u8 low = b->low[64 * half + 32 * (run & 1) + i], high = b->high[32 * half + i];
    return (u8)((run < 2 ? low & 15 : low >> 4) | (high >> (2 * run) & 3) << 4);
}

/* 16 values of 6 bits: abi.h */
static void put_sixes(const u8 v[16], u8 two_words[8], u8 third[4])
{
    for (u32 k = 0; k < 4; k++) {
        two_words[k] = (u8)(v[k] << 2 | v[12 + k] >> 4);
        two_words[4 + k] = (u8)(v[4 + k] << 2 | (v[12 + k] >> 2 & 3));
        third[k] = (u8)(v[8 + k] << 2 | (v[12 + k] & 3));
    }
}

static void pack_q6_k(const qn_wmat *w, const qn_q6_k *b, u8 *out)
{
    u16 *scale = (u16 *)(void *)(out + w->scale);
    for (u32 i = 0; i < w->cols / 256; i++) {
        const float d = qn_f16_f32(b[i].d);
        for (u32 g = 0; g < 8; g++) {
            for (u32 h = 0; h < 2; h++) {
                u8 v[16];
                for (u32 k = 0; k < 16; k++) v[k] = q6_value(&b[i], 32 * g + 16 * h + k) ^ 32; /* now 6 bits of a signed number */
                put_sixes(v, out + (8 * i + g) * 16 + 8 * h, out + w->high + (8 * i + g) * 8 + 4 * h);
            }
            for (u32 k = 0; k < 2; k++) scale[2 * (8 * i + g) + k] = qn_f32_f16(d * (float)b[i].scale[2 * g + k]);
        }
    }
}

/* Any type, through floats, 256 at a time. */
static void pack_decoded(const qn_wmat *w, qn_dtype type, const u8 *row, u8 *out)
{
    float v[256];
    u16 *half = (u16 *)(void *)out;
    for (u32 c = 0; c < w->cols; c += 256) {
        const u32 n = w->cols - c < 256 ? w->cols - c : 256;
        qn_dtypes[type].decode(row + qn_dtype_bytes(type, c), v, n);
        for (u32 i = 0; i < n; i++) half[c + i] = qn_f32_f16(v[i]);
    }
}

void qn_wmat_pack_row(const qn_wmat *w, qn_dtype type, const void *row, u8 *out)
{
    switch (type) {
    case DT_f32: case DT_f16: case DT_bf16: {
        const size_t bytes = qn_dtype_bytes(type, w->cols);
        memcpy(out, row, bytes);
        memset(out + bytes, 0, w->row_bytes - bytes);
        return;
    }
    case DT_q8_0: pack_q8_0(w, row, out); return;
    case DT_q4_0: pack_q4_0(w, row, out); return;
    case DT_q4_1: pack_q4_1(w, row, out); return;
    case DT_q4_k: pack_q4_k(w, row, out); return;
    case DT_q6_k: pack_q6_k(w, row, out); return;
    default: pack_decoded(w, type, row, out);
    }
}
