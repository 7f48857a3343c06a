/* fpanel.c - packs matrices of floats. Once per matrix, at load: plain C, but walked so that both sides stay in the cache. */
#include "kernel/fpanel.h"

#include <string.h>

static bool is_float(qn_dtype type) { return type == DT_f32 || type == DT_f16 || type == DT_bf16; }

size_t qn_fpanel_bytes(qn_dtype type, int rows, int cols)
{
    if (!is_float(type)) return 0;
    const size_t panels = ((size_t)rows + QN_PANEL - 1) / QN_PANEL;
    return panels * (size_t)cols * QN_PANEL * qn_dtypes[type].block_bytes;
}

#define BAND 64 /* columns of the 16 rows at a time: 4 KiB of the file's floats, 4 KiB of the panel */

static void turn_2(const u16 *w, size_t stride, int rows, int n, u16 *out)
{
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < n; c++) out[c * QN_PANEL + r] = w[(size_t)r * stride + (size_t)c];
}

static void turn_4(const u32 *w, size_t stride, int rows, int n, u32 *out)
{
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < n; c++) out[c * QN_PANEL + r] = w[(size_t)r * stride + (size_t)c];
}

void qn_fpanel_pack(qn_dtype type, const void *w, int rows, int cols, int first, int last, u8 *out)
{
    const size_t size = qn_dtypes[type].block_bytes, one = qn_fpanel_bytes(type, QN_PANEL, cols);
    for (int i = first; i < last; i++) {
        const int n = qn_mini(QN_PANEL, rows - i * QN_PANEL);
        const u8 *from = (const u8 *)w + (size_t)i * one;
        u8 *to = out + (size_t)i * one;
        if (n < QN_PANEL) memset(to, 0, one);
        for (int c = 0; c < cols; c += BAND) {
            const int len = qn_mini(BAND, cols - c);
            const void *a = from + (size_t)c * size;
            void *b = to + (size_t)c * QN_PANEL * size;
            if (size == 2) turn_2(a, (size_t)cols, n, len, b);
            else turn_4(a, (size_t)cols, n, len, b);
        }
    }
}
