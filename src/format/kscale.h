/* kscale.h - the 12 bytes in which Q4_K and Q5_K keep eight 6-bit scales and eight 6-bit mins. Words of four bytes: scales
 * 0..3, mins 0..3, then the low nibbles of scales 4..7 and of mins 4..7; the two high bits of those are the top bits of the
 * first two words. So both ways are a few operations on whole words. */
#ifndef QN_KSCALE_H
#define QN_KSCALE_H

#include <string.h>

#include "base/types.h"

static inline void qn_kscale_get(const u8 packed[12], u8 scale[8], u8 min[8])
{
    u32 w[3];
    memcpy(w, packed, 12);
    const u32 s[2] = { w[0] & 0x3F3F3F3Fu, (w[2] & 0x0F0F0F0Fu) | (w[0] >> 2 & 0x30303030u) };
    const u32 m[2] = { w[1] & 0x3F3F3F3Fu, (w[2] >> 4 & 0x0F0F0F0Fu) | (w[1] >> 2 & 0x30303030u) };
    memcpy(scale, s, 8);
    memcpy(min, m, 8);
}

/* scale and min hold 0..63 */
static inline void qn_kscale_put(const u8 scale[8], const u8 min[8], u8 packed[12])
{
    u32 s[2], m[2];
    memcpy(s, scale, 8);
    memcpy(m, min, 8);
    const u32 w[3] = { s[0] | (s[1] & 0x30303030u) << 2, m[0] | (m[1] & 0x30303030u) << 2,
                       (s[1] & 0x0F0F0F0Fu) | (m[1] & 0x0F0F0F0Fu) << 4 };
    memcpy(packed, w, 12);
}

#endif
