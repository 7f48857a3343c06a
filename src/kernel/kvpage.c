/* kvpage.c - K of one token, to and from its place across a page. */
#include "kernel/kvpage.h"

#include <string.h>

#include "format/blocks.h"

static void put_q8_0(u8 *part, int t, const float *k, int d_head)
{
    qn_q8_0 b;
    for (int i = 0; i < d_head; i += 32) {
        u8 *group = part + (size_t)i / 32 * QN_Q8_GROUP, *values = group + 2 * QN_PAGE + t;
        qn_q8_0_encode(k + i, &b);
        memcpy(group + 2 * t, &b.d, 2);
        for (int j = 0; j < 32; j++) values[j * QN_PAGE] = (u8)b.q[j];
    }
}

static void get_q8_0(const u8 *part, int t, float *k, int d_head)
{
    qn_q8_0 b;
    for (int i = 0; i < d_head; i += 32) {
        const u8 *group = part + (size_t)i / 32 * QN_Q8_GROUP, *values = group + 2 * QN_PAGE + t;
        memcpy(&b.d, group + 2 * t, 2);
        for (int j = 0; j < 32; j++) b.q[j] = (i8)values[j * QN_PAGE];
        qn_q8_0_decode(&b, k + i);
    }
}

void qn_kv_put_k(qn_dtype type, u8 *part, int t, const float *k, int d_head)
{
    const qn_dtype_info *info = &qn_dtypes[type];
    if (type == DT_q8_0) put_q8_0(part, t, k, d_head);
    else for (int i = 0; i < d_head; i++) info->encode(k + i, part + (size_t)(i * QN_PAGE + t) * info->block_bytes, 1);
}

void qn_kv_get_k(qn_dtype type, const u8 *part, int t, float *k, int d_head)
{
    const qn_dtype_info *info = &qn_dtypes[type];
    if (type == DT_q8_0) get_q8_0(part, t, k, d_head);
    else for (int i = 0; i < d_head; i++) info->decode(part + (size_t)(i * QN_PAGE + t) * info->block_bytes, k + i, 1);
}
