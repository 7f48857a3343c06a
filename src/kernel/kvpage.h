/* kvpage.h - how the KV of a layer lies in a page of QN_PAGE tokens: head by head, first the K of a head and then its V. V is
 * a row of d_head values for each token. K lies across: for each of its values the QN_PAGE tokens side by side, so that the
 * scores of a page are a vector that grows by one multiply-add for each value, with nothing to add up in the end.
 * f32, f16:  K [d_head][QN_PAGE]
 * q8_0:      K [d_head / 32] of { f16 scale[QN_PAGE], i8 q[32][QN_PAGE] }: as many bytes as its blocks have. */
#ifndef QN_KVPAGE_H
#define QN_KVPAGE_H

#include "kernel/op.h"

#define QN_KV_HEAD_MOST 512 /* values of a head; the model refuses larger ones */
#define QN_Q8_GROUP ((size_t)QN_PAGE * 34) /* bytes of 32 values of all tokens of a page, as q8_0 */

/* Bytes of the K, or of the V, of one head in a page. */
static inline size_t qn_kv_part_bytes(qn_dtype type, int d_head)
{
    return qn_dtype_bytes(type, (size_t)QN_PAGE * (size_t)d_head);
}

/* Where the K of a head begins, given its layer's part of a page; its V is one part further. */
static inline size_t qn_kv_head_at(qn_dtype type, int d_head, int head)
{
    return 2 * (size_t)head * qn_kv_part_bytes(type, d_head);
}

/* The K of token t (0..QN_PAGE-1) into and out of the K of its head: for references and checks, value by value. */
void qn_kv_put_k(qn_dtype type, u8 *part, int t, const float *k, int d_head);
void qn_kv_get_k(qn_dtype type, const u8 *part, int t, float *k, int d_head);

#endif
