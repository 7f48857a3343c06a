/* device_row.h - for tests: a weight of a device row, read as abi.h describes it. */
#ifndef QN_TEST_DEVICE_ROW_H
#define QN_TEST_DEVICE_ROW_H

#include <string.h>

#include "base/half.h"
#include "kernel/cuda/abi.h"

static inline float row_half(const u8 *p, u32 i)
{
    u16 h;
    memcpy(&h, p + 2 * i, 2);
    return qn_f16_f32(h);
}

/* kind, and where the planes of third words and scales begin in the row */
static inline float row_weight(u32 kind, u32 high, u32 scale, const u8 *row, u32 c)
{
    float f;
    u16 h;
    u8 six;
    const u32 nibble = kind == QN_W_q4 || kind == QN_W_q4m ? (u32)(row[c / 32 * 16 + c % 16] >> (c % 32 < 16 ? 0 : 4)) & 15 : 0;
    switch (kind) {
    case QN_W_f32: memcpy(&f, row + 4 * c, 4); return f;
    case QN_W_f16: return row_half(row, c);
    case QN_W_bf16: memcpy(&h, row + 2 * c, 2); return qn_bf16_f32(h);
    case QN_W_q8: return row_half(row + scale, c / 32) * (float)(i8)row[c];
    case QN_W_q4: return row_half(row + scale, c / 32) * (float)((int)nibble - 8);
    case QN_W_q4m: return row_half(row + scale, c / 32 * 2) * (float)nibble + row_half(row + scale, c / 32 * 2 + 1);
    default: break;
    }
    const u8 *two = row + c / 16 * 8 + c % 4, *third = row + high + c / 16 * 4 + c % 4; /* of each 16 two words and one */
    if (c % 16 < 8) six = two[c % 16 / 4 * 4];
    else if (c % 16 < 12) six = *third;
    else six = (u8)(two[0] << 6 | (two[4] & 3) << 4 | (*third & 3) << 2);
    return row_half(row + scale, c / 16) * (float)((i8)(six & 0xFC) / 4);
}

#endif
