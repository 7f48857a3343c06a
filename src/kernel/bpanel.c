/* bpanel.c - bf16 in 12 bits, packed and read back. Packing is bound by memory: codes are made and turned in 16-byte vectors,
 * and written past the caches. */
#include "kernel/bpanel.h"

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/half.h"

#define RUN 32 /* columns of a row that are turned into codes at a time */

size_t qn_bpanel_bytes(int cols) { return sizeof(qn_bpanel) + (size_t)(cols / QN_QUAD) * sizeof(qn_quad); }

/* Eight numbers of 16 bits. Signed, since SSE2 compares no others; without their signs all of them are positive. */
typedef i16 eight __attribute__((vector_size(16)));

static eight read8(const u16 *p)
{
    eight v;
    memcpy(&v, p, sizeof v);
    return v;
}

#if defined(__SSE2__)
static eight larger(eight a, eight b) { return (eight)_mm_max_epi16((__m128i)a, (__m128i)b); }
#else
static eight larger(eight a, eight b)
{
    const eight which = a > b;
    return (a & which) | (b & ~which);
}
#endif

/* f16 to bf16. Numbers that are normal in f16, which is nearly all: three bits fewer and another bias, in 16-bit arithmetic.
 * Zeros, denormals, infinities and NaN (one of 400 in a matrix of small weights) go the long way. */
static void narrow_run(const u16 *in, u16 *out)
{
    eight odd = { 0 };
    for (int i = 0; i < RUN; i += 8) {
        const eight v = read8(in + i), mag = v & 0x7FFF;
        odd |= (mag < 0x0400) | (mag > 0x7BFF);
        const eight b = ((mag + 3 + (mag >> 3 & 1)) >> 3) + (112 << 7) + (v & (i16)0x8000);
        memcpy(out + i, &b, sizeof b);
    }
    u64 any[2];
    memcpy(any, &odd, sizeof any);
    for (int i = 0; any[0] | any[1] && i < RUN; i++)
        if ((u16)((in[i] & 0x7FFF) - 0x0400) >= 0x7800) out[i] = qn_f32_bf16(qn_f16_f32(in[i]));
}

/* What the row's codes leave out: the exponent 15 below that of its largest weight. Rounding keeps order, so the largest f16 is
 * the largest bf16. */
static u16 base_of(qn_dtype type, const u16 *row, int cols)
{
    eight top = { 0 };
    for (int i = 0; i < cols; i += 8) top = larger(read8(row + i) & 0x7FFF, top);
    i16 most = 0;
    for (int i = 0; i < 8; i++) most = top[i] > most ? top[i] : most;
    if (type == DT_f16) most = qn_f32_bf16(qn_f16_f32((u16)most)) & 0x7FFF;
    return most >> 7 > 15 ? (u16)(((most >> 7) - 15) * 128) : 0;
}

/* bf16 to codes. What lies below the window is nearer to the least code, 1, or to zero. */
static void code_run(u16 *v, u16 base)
{
    const eight none = { 0 }, from = none + (i16)base, half = larger(from - 128, none);
    for (int i = 0; i < RUN; i += 8) {
        const eight all = read8(v + i), mag = all & 0x7FFF, over = larger(mag, from) - from;
        const eight least = (mag > half) & (over == 0); /* -1 where it is */
        const eight code = (all & (i16)0x8000) | (over - least);
        memcpy(v + i, &code, sizeof code);
    }
}

typedef u32 words __attribute__((vector_size(16)));

/* What is written here is read much later, from memory: stored past the caches, whose lines would be fetched first (20 GB/s
 * instead of 7). Such stores have no order of their own: flush() makes them seen before whatever says that the work is done. */
#if defined(__SSE2__)
static void stream(u8 *out, words v) { _mm_stream_si128((__m128i *)(void *)out, (__m128i)v); }
static void flush(void) { _mm_sfence(); }
#else
static void stream(u8 *out, words v) { memcpy(out, &v, sizeof v); }
static void flush(void) {}
#endif

#define BOTH(mask) ((u32)(mask) << 16 | (u32)(mask)) /* of a pair */

/* Four pairs of four rows, row_words apart, to the rows' part of a quad. */
static void turn(const u32 *in, size_t row_words, u8 *out)
{
    words v[4];
    for (int r = 0; r < 4; r++) memcpy(&v[r], in + (size_t)r * row_words, sizeof v[r]);
    const words a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5), b = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
    const words c = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7), d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
    const words last = __builtin_shufflevector(c, d, 2, 3, 6, 7);
    stream(out, __builtin_shufflevector(a, b, 0, 1, 4, 5) | (last & BOTH(QN_FOURTH_0)) << 4);
    stream(out + QN_GROUP, __builtin_shufflevector(a, b, 2, 3, 6, 7) | (last & BOTH(QN_FOURTH_1)) << 8);
    stream(out + 2 * QN_GROUP, __builtin_shufflevector(c, d, 0, 1, 4, 5) | (last & BOTH(QN_FOURTH_2)) << 12 |
                                   (last & BOTH(QN_FOURTH_S)) >> 4);
}

void qn_bpanel_pack(qn_dtype type, const u16 *w, int rows, int cols, int panel, qn_bpanel *out)
{
    u32 part[QN_PANEL][RUN / 2];
    const int n = qn_mini(QN_PANEL, rows - panel * QN_PANEL);
    const u16 *first = w + (size_t)(panel * QN_PANEL) * (size_t)cols;
    memset(part, 0, sizeof part);
    for (int r = 0; r < QN_PANEL; r++)
        out->base[r][0] = out->base[r][1] = r < n ? base_of(type, first + (size_t)r * (size_t)cols, cols) : 0;
    for (int c = 0; c < cols; c += RUN) {
        for (int r = 0; r < n; r++) {
            const u16 *row = first + (size_t)r * (size_t)cols + (size_t)c;
            if (type == DT_bf16) memcpy(part[r], row, sizeof part[r]);
            else narrow_run(row, (u16 *)part[r]);
            code_run((u16 *)part[r], out->base[r][0]);
        }
        for (int i = 0; i < RUN / 2; i += 4)
            for (int r = 0; r < QN_PANEL; r += 4) turn(&part[r][i], RUN / 2, (u8 *)out->quad[(c / 2 + i) / 4].w[0][r]);
    }
    flush();
}

float qn_bpanel_at(const qn_bpanel *p, int r, int c)
{
    const qn_quad *q = &p->quad[c / QN_QUAD];
    const int i = c % QN_QUAD / 2, side = c % 2;
    const u32 l[3] = { q->w[0][r][side], q->w[1][r][side], q->w[2][r][side] };
    const u32 code = i < 3 ? l[i] & QN_CODE
                           : (l[0] >> 4 & QN_FOURTH_0) | (l[1] >> 8 & QN_FOURTH_1) | (l[2] >> 12 & QN_FOURTH_2) |
                                 (l[2] << 4 & QN_FOURTH_S);
    return code & 0x7FFF ? qn_bf16_f32((u16)(code + p->base[r][side])) : 0;
}
