/* bpanel.c - bf16 in 12 bits, packed and read back in the most obvious way. Where its kernels run, avx512bf16/bpack.c packs. */
#include "kernel/bpanel.h"

#include <string.h>

#include "base/cpu.h"
#include "base/half.h"

size_t qn_twin_bytes(int cols) { return sizeof(qn_twin) + (size_t)(cols / QN_QUAD) * sizeof(qn_quad) * QN_TWIN; }

static u16 to_bf16(qn_dtype type, u16 v) { return type == DT_f16 ? qn_f32_bf16(qn_f16_f32(v)) : v; }

/* Rounding keeps order, so the largest f16 is the largest bf16. */
u16 qn_bpanel_base(qn_dtype type, u16 most)
{
    const int exponent = to_bf16(type, most) >> 7;
    return exponent > 15 ? (u16)((exponent - 15) * 128) : 0;
}

static u16 base_of(qn_dtype type, const u16 *row, int cols)
{
    u16 most = 0;
    for (int i = 0; i < cols; i++) {
        const u16 mag = row[i] & 0x7FFF;
        most = mag > most ? mag : most;
    }
    return qn_bpanel_base(type, most);
}

/* What lies below the window is nearer to the least code, 1, or to zero. */
static u16 code_of(u16 v, u16 base)
{
    const u16 sign = v & 0x8000, mag = v & 0x7FFF;
    if (mag > base) return (u16)(sign | (mag - base));
    return mag && mag + 128 > base ? sign | 1 : sign;
}

static void put(qn_quad *q, int r, int c, u16 code)
{
    const int i = c % QN_QUAD / 2, side = c % 2;
    if (i < 3) {
        q->w[i][r][side] |= code;
        return;
    }
    q->w[0][r][side] |= (u16)((code & QN_FOURTH_0) << 4);
    q->w[1][r][side] |= (u16)((code & QN_FOURTH_1) << 8);
    q->w[2][r][side] |= (u16)((code & QN_FOURTH_2) << 12 | (code & QN_FOURTH_S) >> 4);
}

void qn_bpanel_plain(qn_dtype type, const u16 *w, int rows, int cols, int panel, qn_twin *out)
{
    const int half = panel % QN_TWIN;
    memset(out->base[half], 0, sizeof out->base[half]);
    for (int i = 0; i < cols / QN_QUAD; i++) memset(&out->quad[i][half], 0, sizeof(qn_quad));
    for (int r = 0; r < qn_mini(QN_PANEL, rows - panel * QN_PANEL); r++) {
        const u16 *row = w + (size_t)(panel * QN_PANEL + r) * (size_t)cols, base = base_of(type, row, cols);
        out->base[half][r][0] = out->base[half][r][1] = base;
        for (int c = 0; c < cols; c++) put(&out->quad[c / QN_QUAD][half], r, c, code_of(to_bf16(type, row[c]), base));
    }
}

void qn_bpanel_pack(qn_dtype type, const u16 *w, int rows, int cols, int panel, qn_twin *out)
{
#if defined(__x86_64__)
    if (qn_cpu_isa() == ISA_avx512bf16) {
        qn_bpanel_avx512bf16(type, w, rows, cols, panel, out);
        return;
    }
#endif
    qn_bpanel_plain(type, w, rows, cols, panel, out);
}

float qn_bpanel_at(const qn_twin *t, int r, int c)
{
    const int half = r / QN_PANEL, i = c % QN_QUAD / 2, side = c % 2;
    r %= QN_PANEL;
    const qn_quad *q = &t->quad[c / QN_QUAD][half];
    const u32 l[3] = { q->w[0][r][side], q->w[1][r][side], q->w[2][r][side] };
    const u32 code = i < 3 ? l[i] & QN_CODE
                           : (l[0] >> 4 & QN_FOURTH_0) | (l[1] >> 8 & QN_FOURTH_1) | (l[2] >> 12 & QN_FOURTH_2) |
                                 (l[2] << 4 & QN_FOURTH_S);
    return code & 0x7FFF ? qn_bf16_f32((u16)(code + t->base[half][r][side])) : 0;
}
