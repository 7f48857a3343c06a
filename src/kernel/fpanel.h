/* fpanel.h - matrices of floats in panels, every weight as the file has it (f32, f16, bf16): panels of 16 rows, in each the 16
 * weights of a column side by side, column after column. The order in which generic/gemm.h reads; the last panel is padded with
 * rows of zeros. panel.h has the others, for dot-product instructions. */
#ifndef QN_FPANEL_H
#define QN_FPANEL_H

#include "kernel/panel.h"

/* Bytes of a packed matrix; 0: the type is not one of floats. */
size_t qn_fpanel_bytes(qn_dtype type, int rows, int cols);
/* Packs panels first..last-1 of the matrix w; out is where panel 0 begins. */
void qn_fpanel_pack(qn_dtype type, const void *w, int rows, int cols, int first, int last, u8 *out);
/* Where weight (r, c) lies. */
static inline size_t qn_fpanel_at(int cols, int r, int c)
{
    return ((size_t)(r / QN_PANEL) * (size_t)cols + (size_t)c) * QN_PANEL + (size_t)(r % QN_PANEL);
}

#endif
